//! A little lexer: comments, literals and items are found in Rust's text without understanding the
//! rest. What is blanked becomes spaces, so that all views of a file agree byte by byte.

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The offsets at which `word` stands as a word of its own.
pub fn words(code: &str, word: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(|&at| {
            let end = at + word.len();
            (at == 0 || !is_word(bytes[at - 1]) || !is_word(bytes[at]))
                && (end == bytes.len() || !is_word(bytes[end]) || !is_word(bytes[end - 1]))
        })
        .collect()
}

pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Replaces a stretch by spaces, keeping line breaks.
fn blank(bytes: &mut [u8], from: usize, to: usize) {
    for byte in &mut bytes[from..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Blanks comments, and what stands between the quotes of strings and characters.
pub fn blank_comments_and_literals(text: &str) -> String {
    blank_parts(text, true)
}

/// Blanks comments alone.
pub fn blank_comments(text: &str) -> String {
    blank_parts(text, false)
}

fn blank_parts(text: &str, literals: bool) -> String {
    let source = text.as_bytes();
    let mut code = source.to_vec();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        if rest.starts_with(b"//") {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            blank(&mut code, at, at + end);
            at += end;
        } else if rest.starts_with(b"/*") {
            let end = block_comment(rest);
            blank(&mut code, at, at + end);
            at += end;
        } else if let Some((open, close)) = raw_string(source, at) {
            if literals {
                blank(&mut code, open, close);
            }
            at = close;
        } else if rest[0] == b'"' {
            let end = quoted(rest, b'"');
            if literals {
                blank(&mut code, at + 1, at + end - 1);
            }
            at += end;
        } else if rest[0] == b'\'' && is_character(rest) {
            let end = quoted(rest, b'\'');
            if literals {
                blank(&mut code, at + 1, at + end - 1);
            }
            at += end;
        } else {
            at += 1;
        }
    }
    String::from_utf8(code).expect("only whole comments and literals were blanked")
}

/// The length of the block comment at the start; such comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Where a raw string that starts at `at` has its content, and where it ends.
fn raw_string(source: &[u8], at: usize) -> Option<(usize, usize)> {
    if source[at] != b'r' || (at > 0 && is_word(source[at - 1]) && source[at - 1] != b'b') {
        return None;
    }
    let hashes = source[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let open = at + 1 + hashes;
    if source.get(open) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let content = &source[open + 1..];
    let len = content.windows(end.len()).position(|window| window == end)?;
    Some((open + 1, open + 1 + len + end.len()))
}

/// The length of a quoted literal at the start, quotes included.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Whether a single quote begins a character rather than a lifetime.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(byte) if byte.is_ascii() => rest.get(2) == Some(&b'\''),
        Some(_) => true,
        None => false,
    }
}

/// Blanks every item that stands under an attribute that asks for `test`.
pub fn blank_test_items(code: &str) -> String {
    blank_items(code, "test")
}

/// Blanks every item that stands under an attribute that asks for this condition.
pub fn blank_items(code: &str, asked: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (at, _) in code.match_indices("#[cfg(") {
        let close = at + matching(&code.as_bytes()[at + 1..], b'[', b']') + 1;
        let condition = &code[at..close];
        if words(condition, asked).is_empty() || condition.contains(&format!("not({asked}")) {
            continue;
        }
        let end = close + item_len(&code.as_bytes()[close..]);
        blank(&mut bytes, at, end);
    }
    String::from_utf8(bytes).expect("only whole items were blanked")
}

/// The length up to and including the item's closing brace or semicolon. A field or a match arm
/// ends at its comma; in other items commas stand between generics and bounds.
pub fn item_len(rest: &[u8]) -> usize {
    let mut depth = 0_i32;
    let mut item = false;
    for (at, &byte) in rest.iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            b',' if depth == 0 && !item => return at + 1,
            b'{' if depth == 0 => return at + matching(&rest[at..], b'{', b'}'),
            b' ' if depth == 0 => {
                const ITEMS: [&[u8]; 9] =
                    [b"fn", b"impl", b"mod", b"use", b"struct", b"enum", b"trait", b"type", b"let"];
                let before = &rest[..at];
                let word = before.iter().rev().take_while(|&&byte| is_word(byte)).count();
                item |= ITEMS.contains(&&before[at - word..]);
            }
            _ => {}
        }
    }
    rest.len()
}

/// The length up to and including the bracket that closes the one at the start.
pub fn matching(rest: &[u8], open: u8, close: u8) -> usize {
    let mut depth = 0_i32;
    for (at, &byte) in rest.iter().enumerate() {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    rest.len()
}

/// The checks are only as good as this little lexer.
#[test]
fn the_lexer_sees_through_comments_literals_and_tests() {
    let text = r##"
//! unwrap in prose: .unwrap()
fn a<'a>(x: &'a str) -> char { /* unsafe /* nested */ unsafe */ '"' }
fn b() { let s = "fn c() { \" unsafe }"; let r = r#"unsafe " unsafe"#; let q = '\''; }
#[cfg(test)]
mod tests { fn d() { x.unwrap(); } }
#[cfg(not(test))]
fn e() { unsafe {} }
#[cfg(all(test, unix))]
use crate::db;
#[cfg(test)]
#[allow(dead_code)]
fn f<A, B>(a: A) where A: Into<B>, B: Copy { a.unwrap() }
#[cfg(all(test, loom))]
mod models;
fn g<A, B>(a: A) where A: Into<B>, B: Copy {
    a;
}
"##;
    let code = blank_comments_and_literals(text);
    let shipped = blank_test_items(&code);
    assert_eq!((text.len(), text.len()), (code.len(), shipped.len()));
    let uncommented = blank_comments(text);
    assert_eq!(uncommented.len(), text.len());
    assert!(!uncommented.contains("nested") && uncommented.contains("fn c()"), "{uncommented}");
    assert_eq!(words(&code, ".unwrap()").len(), 2);
    assert_eq!(words(&shipped, ".unwrap()").len(), 0);
    assert_eq!(words(&shipped, "unsafe").len(), 1);
    assert_eq!(words("unsafe_code is_unsafe unsafe", "unsafe"), [22]);
    assert_eq!(words(&shipped, "fn").len(), 4);
    let function = &shipped[shipped.find("fn g").unwrap()..];
    assert_eq!(function[..item_len(function.as_bytes())].lines().count(), 3);
    assert_eq!(item_len(b"field: (u8, u8), next"), 16);
    assert_eq!(line_of(text, text.find("fn b").unwrap()), 4);
}
