//! Words: how keys, values and names stand in one line that people and scripts write and read.
//!
//! Keys and values are arbitrary bytes, lines are not. A word is plain where it is printable text
//! that nothing else could be mistaken for, text between double quotes where it is other printable
//! text, and hexadecimal after `0x` everywhere else. The way back is exact: `decode` of what was
//! written gives the same bytes for all bytes, which scripts and the crash tests rely on.
//!
//! What decides whether a word is quoted is what a line takes for something else: a space ends a
//! word, a double quote begins a quoted one, `0x` begins one in hexadecimal, `#` a made-up value,
//! `@` a snapshot, and a lone `-` means "no bound". Text is printable where Rust's standard library
//! prints it without escapes: line breaks, other control characters, and characters that are not
//! seen or that change the direction of what is around them are not.
//!
//! The text form of dumps has words of its own (`token`), which its version fixes.

#[cfg(test)]
mod tests;

use crate::token::{self, TokenError, malformed};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use esker::internals::base::limits::VALUE_BYTES_MAX;

/// How bytes are written as words.
///
/// # Example
/// ```
/// use esker_port::word::Encoding;
/// assert_eq!(Encoding::Text.word("süß".as_bytes()), "süß");
/// assert_eq!(Encoding::Hex.word(b"red"), "0x726564");
/// assert_eq!(Encoding::Base64.word(b"red"), "0xb64:cmVk");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As text where they are printable text, in hexadecimal otherwise.
    #[default]
    Text,
    /// All in hexadecimal, after `0x`.
    Hex,
    /// All in Base64, after `0xb64:`.
    Base64,
}

impl Encoding {
    /// Writes `bytes` as a word.
    ///
    /// # Example
    /// ```
    /// use esker_port::word::Encoding;
    /// assert_eq!(Encoding::Text.word(b"apple"), "apple");
    /// assert_eq!(Encoding::Text.word(b"two words"), "\"two words\"");
    /// assert_eq!(Encoding::Text.word(b"two\nlines"), "0x74776f0a6c696e6573");
    /// ```
    pub fn word(self, bytes: &[u8]) -> String {
        match (self, text(bytes)) {
            (Self::Text, Some(text)) if is_plain(text) => text.to_owned(),
            (Self::Text, Some(text)) => quote(text),
            (Self::Text, None) | (Self::Hex, _) => format!("{HEX}{}", hexadecimal(bytes)),
            (Self::Base64, _) => format!("{BASE64}{}", base64(bytes)),
        }
    }

    /// Writes `bytes` as the first word of a line of data. The words that begin the closing line of
    /// an answer are quoted, so that a key called `ok` cannot be mistaken for the end of a scan.
    ///
    /// # Example
    /// ```
    /// use esker_port::word::Encoding;
    /// assert_eq!(Encoding::Text.first_word(b"ok"), "\"ok\"");
    /// assert_eq!(Encoding::Text.word(b"ok"), "ok");
    /// ```
    pub fn first_word(self, bytes: &[u8]) -> String {
        match (self, bytes) {
            (Self::Text, b"ok") => quote("ok"),
            (Self::Text, b"err") => quote("err"),
            _ => self.word(bytes),
        }
    }
}

/// What begins a word in hexadecimal.
const HEX: &str = "0x";
/// What begins a word in Base64. No word in hexadecimal begins so.
const BASE64: &str = "0xb64:";

/// Writes a name as a word.
///
/// # Example
/// ```
/// assert_eq!(esker_port::word::name("my users"), "\"my users\"");
/// ```
pub fn name(name: &str) -> String {
    Encoding::Text.word(name.as_bytes())
}

/// The bytes as text, if they are printable text.
///
/// # Example
/// ```
/// use esker_port::word::text;
/// assert_eq!(text(b"two words"), Some("two words"));
/// assert_eq!(text(b"two\nlines"), None);
/// assert_eq!(text(&[0xff]), None);
/// ```
pub fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Some(text);
    }
    // An escape is longer than its character, and three printable characters have one too.
    let escaped: usize = text.escape_debug().map(char::len_utf8).sum();
    let signs = bytes.iter().filter(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    (escaped == bytes.len() + signs).then_some(text)
}

/// The bytes in hexadecimal, two digits for each.
///
/// # Example
/// ```
/// assert_eq!(esker_port::word::hexadecimal(&[0, 255]), "00ff");
/// ```
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut digits = String::new();
    token::digits_to(bytes, &mut digits);
    digits
}

/// The bytes in Base64, with the signs `+` and `/`, filled up with `=`.
///
/// # Example
/// ```
/// assert_eq!(esker_port::word::base64(b"apple"), "YXBwbGU=");
/// ```
pub fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Whether text is a word as it stands.
fn is_plain(text: &str) -> bool {
    let taken = text == "-" || [HEX, "#", "@"].iter().any(|sign| text.starts_with(sign));
    !text.is_empty() && !taken && !text.contains([' ', '"'])
}

fn quote(text: &str) -> String {
    let mut word = String::with_capacity(text.len() + 2);
    word.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            word.push('\\');
        }
        word.push(c);
    }
    word.push('"');
    word
}

/// Reads a word that stands for a key or a name.
///
/// # Example
/// ```
/// use esker_port::word::decode;
/// assert_eq!(decode(b"apple")?, b"apple");
/// assert_eq!(decode(b"\"two words\"")?, b"two words");
/// assert_eq!(decode(b"0x00ff")?, [0, 255]);
/// assert_eq!(decode(b"0xb64:AP8=")?, [0, 255]);
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn decode(word: &[u8]) -> Result<Vec<u8>, TokenError> {
    if let Some(quoted) = word.strip_prefix(b"\"") {
        return unquote(quoted).ok_or_else(|| malformed(word, QUOTED));
    }
    if let Some(signs) = word.strip_prefix(BASE64.as_bytes()) {
        let remedy = "after 0xb64: stands Base64, filled up with =";
        return BASE64_STANDARD.decode(signs).map_err(|_| malformed(word, remedy));
    }
    token::decode(word)
}

const QUOTED: &str = "a quoted word ends with a double quote, and in it only \\\" \\\\ \\n \\r and \\t \
    have a backslash";

/// Reads what stands behind the quote that begins a word.
fn unquote(quoted: &[u8]) -> Option<Vec<u8>> {
    let inside = quoted.strip_suffix(b"\"")?;
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match byte {
            b'"' => return None,
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                sign @ (b'"' | b'\\') => *sign,
                _ => return None,
            },
            byte => byte,
        });
    }
    Some(bytes)
}

/// Reads a word that stands for the value of `key` where values may be made up: `#N` makes up `N`
/// bytes.
///
/// # Example
/// ```
/// use esker_port::word::decode_value;
/// assert_eq!(decode_value(b"red", b"apple")?, b"red");
/// assert_eq!(decode_value(b"#1000", b"apple")?.len(), 1000);
/// assert_eq!(decode_value(b"\"#1000\"", b"apple")?, b"#1000");
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn decode_value(word: &[u8], key: &[u8]) -> Result<Vec<u8>, TokenError> {
    let Some(digits) = word.strip_prefix(b"#") else { return decode(word) };
    let len = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
    let remedy = "after # stands the length of a made-up value in bytes; a value that begins with # \
        is quoted";
    make_up(len.ok_or_else(|| malformed(word, remedy))?, key)
}

/// Reads a word that stands for a bound: `-` is none.
///
/// # Example
/// ```
/// use esker_port::word::decode_bound;
/// assert_eq!(decode_bound(b"-")?, None);
/// assert_eq!(decode_bound(b"apple")?, Some(b"apple".to_vec()));
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn decode_bound(word: &[u8]) -> Result<Option<Vec<u8>>, TokenError> {
    if word == b"-" { Ok(None) } else { decode(word).map(Some) }
}

/// Splits a line into its words: at spaces that are not between quotes. The words are as they stand
/// in the line.
///
/// # Example
/// ```
/// use esker_port::word::split;
/// let words = split(b"put \"two words\"  0x00")?;
/// assert_eq!(words, [&b"put"[..], b"\"two words\"", b"0x00"]);
/// assert!(split(b"put \"two words").is_err());
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn split(line: &[u8]) -> Result<Vec<&[u8]>, TokenError> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.iter().position(|byte| *byte != b' ') {
        let from = &rest[start..];
        let (word, behind) = from.split_at(first_len(from)?);
        words.push(word);
        rest = behind;
    }
    Ok(words)
}

/// The length of the word with which `line` begins.
fn first_len(line: &[u8]) -> Result<usize, TokenError> {
    let opened = match line {
        [b'"', ..] => 1,
        // A snapshot's name.
        [b'@', b'"', ..] => 2,
        _ => return Ok(line.iter().position(|byte| *byte == b' ').unwrap_or(line.len())),
    };
    let mut escaped = false;
    for (index, &byte) in line.iter().enumerate().skip(opened) {
        if byte == b'"' && !escaped {
            return match line.get(index + 1) {
                None | Some(b' ') => Ok(index + 1),
                Some(_) => Err(malformed(line, "behind the closing double quote stands a space")),
            };
        }
        escaped = byte == b'\\' && !escaped;
    }
    Err(malformed(line, QUOTED))
}

/// Makes up the value of `len` bytes for `key`, if a database would take one so long.
///
/// # Example
/// ```
/// use esker_port::word::make_up;
/// assert_eq!(make_up(1000, b"apple")?.len(), 1000);
/// assert!(make_up(1 << 40, b"apple").is_err());
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn make_up(len: u64, key: &[u8]) -> Result<Vec<u8>, TokenError> {
    if len > VALUE_BYTES_MAX {
        return Err(TokenError::TooLarge { len });
    }
    Ok(pseudo_random(len, key))
}

/// The made-up value of `len` bytes for `key`: a SplitMix64 stream, eight little-endian bytes at
/// a time, that starts at the FNV-1a hash of the key plus the length. Scripts in any language can
/// compute it again to check what they read.
///
/// # Example
/// ```
/// use esker_port::word::pseudo_random;
/// assert_eq!(pseudo_random(100, b"apple"), pseudo_random(100, b"apple"));
/// assert_ne!(pseudo_random(100, b"apple"), pseudo_random(100, b"pear"));
/// ```
pub fn pseudo_random(len: u64, key: &[u8]) -> Vec<u8> {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut state = hash.wrapping_add(len);
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while (bytes.len() as u64) < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}
