//! The rules of the house, checked on the source tree itself: the order of the layers, the size
//! of files and functions, where unsafe code lives, what is never written outside tests, and that
//! the documents point at things that exist.
//!
//! Nothing here understands Rust in full. Comments and strings are blanked out first, items under
//! `#[cfg(test)]` after that, and what is left is searched as text. Every check gathers all of
//! its findings before it fails, so that one run shows everything there is to mend.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first; groups are set apart by `|` for the eye only.
const LAYERS: &str = "error base | fs sync | block filter | options | wal memtable | cache run | \
                      manifest | directory catalog state | iter compaction txn | commit | \
                      stats admission recovery | db | repair inspect | api | internals";

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const MODULE_PROSE_LINES_MIN: usize = 3;

/// One source file in three views that agree line by line and byte by byte.
struct Source {
    /// Relative to the workspace, with `/` between names.
    name: String,
    /// As it stands in the file.
    text: String,
    /// Without comments and the contents of literals.
    code: String,
    /// Without items under `#[cfg(test)]` as well.
    shipped: String,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Self {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(path).unwrap();
        let code = blank_comments_and_literals(&text);
        let shipped = blank_test_items(&code);
        Self { name, text, code, shipped }
    }

    /// The top-level module of the engine that the file belongs to.
    fn module(&self) -> &str {
        let below = self.name.strip_prefix("crates/esker/src/").unwrap();
        below.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// The modules in files of their own that this file declares for tests only, as their paths
    /// without an ending.
    fn test_modules(&self) -> Vec<String> {
        self.modules(|at| self.shipped.as_bytes()[at] == b' ')
    }

    /// The modules in files of their own whose declarations `chosen` chooses by their places.
    fn modules(&self, chosen: impl Fn(usize) -> bool) -> Vec<String> {
        let (dir, file) = self.name.rsplit_once('/').unwrap();
        let dir = match file {
            "mod.rs" | "lib.rs" | "main.rs" => dir.to_owned(),
            _ => self.name.trim_end_matches(".rs").to_owned(),
        };
        let chosen = words(&self.code, "mod").into_iter().filter(|at| chosen(*at));
        let names = chosen.filter_map(|at| {
            let (name, _) = self.code[at + 3..].split_once(';')?;
            let name = name.trim();
            let placed = self.text[..at].trim_end().lines().last().unwrap_or_default();
            let placed = placed.strip_prefix("#[path = \"");
            if let Some(path) = placed.and_then(|rest| rest.strip_suffix(".rs\"]")) {
                return Some(format!("{dir}/{path}"));
            }
            name.bytes().all(is_word).then(|| format!("{dir}/{name}"))
        });
        names.collect()
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All files below `dir` with this ending, sorted; build output is passed over.
fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    pending.push(path);
                }
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The engine's sources that are not test modules.
fn engine() -> Vec<Source> {
    all_crates().into_iter().filter(|source| source.name.starts_with("crates/esker/src/")).collect()
}

/// The sources of all crates, test modules included.
fn everything() -> Vec<Source> {
    let root = workspace();
    let crates = fs::read_dir(root.join("crates")).unwrap();
    let dirs = crates.map(|entry| entry.unwrap().path().join("src")).filter(|dir| dir.is_dir());
    dirs.flat_map(|dir| files(&dir, ".rs")).map(|path| Source::read(&root, &path)).collect()
}

/// The sources of all crates that are not test modules.
fn all_crates() -> Vec<Source> {
    let mut sources = everything();
    let tests: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    sources.retain(|source| {
        let in_tests = |module: &String| {
            source
                .name
                .strip_prefix(module.as_str())
                .is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        let by_name = source.name.contains("/tests/") || source.name.ends_with("/tests.rs");
        !by_name && !tests.iter().any(in_tests)
    });
    sources
}

#[track_caller]
fn none_of(what: &str, mut findings: Vec<String>) {
    findings.sort();
    findings.dedup();
    assert!(findings.is_empty(), "{what}:\n  {}\n", findings.join("\n  "));
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The offsets at which `word` stands as a word of its own.
fn words(code: &str, word: &str) -> Vec<usize> {
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

fn line_of(text: &str, at: usize) -> usize {
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
fn blank_comments_and_literals(text: &str) -> String {
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
            blank(&mut code, open, close);
            at = close;
        } else if rest[0] == b'"' {
            let end = quoted(rest, b'"');
            blank(&mut code, at + 1, at + end - 1);
            at += end;
        } else if rest[0] == b'\'' && is_character(rest) {
            let end = quoted(rest, b'\'');
            blank(&mut code, at + 1, at + end - 1);
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
fn blank_test_items(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (at, _) in code.match_indices("#[cfg(") {
        let close = at + matching(&code.as_bytes()[at + 1..], b'[', b']') + 1;
        let condition = &code[at..close];
        if words(condition, "test").is_empty() || condition.contains("not(test") {
            continue;
        }
        let end = close + item_len(&code.as_bytes()[close..]);
        blank(&mut bytes, at, end);
    }
    String::from_utf8(bytes).expect("only whole items were blanked")
}

/// The length up to and including the item's closing brace or semicolon. A field or a match arm
/// ends at its comma; in other items commas stand between generics and bounds.
fn item_len(rest: &[u8]) -> usize {
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
fn matching(rest: &[u8], open: u8, close: u8) -> usize {
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

/// Where each name that the crate root exports comes from: `Error` from `error`, `Db` from `api`.
fn root_exports() -> BTreeMap<String, String> {
    let root = workspace();
    let source = Source::read(&root, &root.join("crates/esker/src/lib.rs"));
    let mut exports = BTreeMap::new();
    for (at, _) in source.shipped.match_indices("pub use ") {
        let rest = &source.shipped[at + 8..];
        let statement = &rest[..rest.find(';').unwrap()];
        let module = statement.split("::").next().unwrap().trim().to_owned();
        for name in statement.split(|c: char| !c.is_alphanumeric() && c != '_') {
            exports.insert(name.to_owned(), module.clone());
        }
    }
    exports
}

/// The first segments of all paths that begin with `crate::`, groups in braces included.
fn crate_paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in words(code, "crate::") {
        let rest = &code[at + 7..];
        let len = match rest.as_bytes().first() {
            Some(b'{') => matching(rest.as_bytes(), b'{', b'}'),
            _ => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
        };
        let group = rest[..len].trim_start_matches('{').trim_end_matches('}');
        let mut depth = 0;
        let parts = group.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
            let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
            found.push((at, part[..end.unwrap_or(part.len())].to_owned()));
        }
    }
    found
}

#[test]
fn modules_import_only_modules_to_their_left() {
    let order: Vec<&str> = LAYERS.split_whitespace().filter(|&name| name != "|").collect();
    let rank = |module: &str| order.iter().position(|&name| name == module);
    let exports = root_exports();
    let mut findings = Vec::new();
    for source in engine() {
        let module = source.module();
        if module == "lib" {
            continue;
        }
        let Some(own) = rank(module) else {
            findings.push(format!("{}: module {module} is in no layer", source.name));
            continue;
        };
        for (at, name) in crate_paths(&source.shipped) {
            let target = exports.get(&name).unwrap_or(&name);
            let line = line_of(&source.text, at);
            match rank(target) {
                Some(other) if other <= own => {}
                Some(_) => findings.push(format!(
                    "{}:{line}: {module} uses crate::{name}, which lies to its right",
                    source.name
                )),
                // The uppermost layer sees everything, by `crate::*` if it likes.
                None if module == "api" => {}
                None => findings.push(format!(
                    "{}:{line}: {module} uses crate::{name}, which is in no layer",
                    source.name
                )),
            }
        }
        let depth = source.name["crates/esker/src/".len()..].trim_end_matches("/mod.rs");
        let climb = "super::".repeat(depth.split('/').count());
        for (at, _) in source.shipped.match_indices(&climb) {
            let line = line_of(&source.text, at);
            findings.push(format!("{}:{line}: leaves {module} by super, not crate", source.name));
        }
    }
    none_of(&format!("the layers are {LAYERS}; these imports break their order"), findings);
}

/// A file that no module declares is not compiled, and tests in it never run.
#[test]
fn every_file_is_compiled() {
    let sources = everything();
    let declared: BTreeSet<String> =
        sources.iter().flat_map(|source| source.modules(|_| true)).collect();
    let mut findings = Vec::new();
    for source in &sources {
        let module = source.name.trim_end_matches(".rs").trim_end_matches("/mod");
        let root = ["/src/lib", "/src/main"].iter().any(|root| module.ends_with(root))
            || module.contains("/src/bin/");
        if !root && !declared.contains(module) {
            findings.push(source.name.clone());
        }
    }
    none_of("each file is declared by a module; these are not, so nothing compiles them", findings);
}

/// Lines of seeded bugs and of the comments above them, which nobody has to read to understand the
/// rest.
fn seeded_lines(text: &str) -> usize {
    let mut in_comment = false;
    let seeded = |line: &&str| {
        let line = line.trim();
        in_comment = line.starts_with("// Seeded:") || in_comment && line.starts_with("//");
        in_comment || line.contains("bug!(")
    };
    text.lines().filter(seeded).count()
}

#[test]
fn files_are_short() {
    let mut findings = Vec::new();
    for source in all_crates() {
        // Lines of test items are blank in `shipped` and not in `code`.
        let tests = source.code.lines().zip(source.shipped.lines());
        let tests = tests.filter(|(code, shipped)| code != shipped).count();
        let lines = source.text.lines().count() - tests - seeded_lines(&source.text);
        if lines > FILE_LINES_MAX {
            findings.push(format!("{} has {lines}", source.name));
        }
    }
    none_of(&format!("files have at most {FILE_LINES_MAX} lines without tests"), findings);
}

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    for source in all_crates() {
        for at in words(&source.shipped, "fn") {
            let rest = &source.shipped[at + 2..];
            let name: String = rest
                .trim_start()
                .chars()
                .take_while(|&c| c.is_alphanumeric() || c == '_')
                .collect();
            // A pointer type has no name.
            if name.is_empty() {
                continue;
            }
            let body = &source.shipped[at..at + item_len(&source.shipped.as_bytes()[at..])];
            let counts = |line: &&str| !line.trim().is_empty() && !line.contains("bug!(");
            let lines = body.lines().filter(counts).count();
            if lines > FUNCTION_LINES_MAX {
                let line = line_of(&source.text, at);
                findings.push(format!("{}:{line}: {name} has {lines}", source.name));
            }
        }
    }
    none_of(&format!("functions have at most {FUNCTION_LINES_MAX} lines of code"), findings);
}

/// The modules that the architecture document names as home of unsafe code.
fn unsafe_modules() -> BTreeSet<String> {
    let root = workspace();
    let places = ["ARCHITECTURE.md", "docs/ARCHITECTURE.md", "docs/architecture.md"];
    let text = places.iter().find_map(|place| fs::read_to_string(root.join(place)).ok());
    let text = text.unwrap_or_else(|| panic!("none of {places:?} exists"));
    let intro = "Unsafe code lives only in:";
    let start = text.find(intro).unwrap_or_else(|| panic!("no line says {intro:?}"));
    let list = &text[start + intro.len()..];
    // The list may be wrapped; it ends with its paragraph.
    let list = list.split("\n\n").next().unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn unsafe_code_lives_where_the_architecture_says() {
    let allowed = unsafe_modules();
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for source in all_crates() {
        let engine = source.name.starts_with("crates/esker/src/");
        let module = if engine { source.module() } else { source.name.as_str() };
        for at in words(&source.shipped, "unsafe") {
            let line = line_of(&source.text, at);
            used.insert(module.to_owned());
            if !allowed.contains(module) {
                findings.push(format!("{}:{line}: {module} is not on the list", source.name));
            }
            // A contract stands in the documentation of an unsafe function, a reason at a use.
            let next = source.shipped[at + 6..].trim_start();
            let declares = next.starts_with("fn") || next.starts_with("extern");
            let wanted = if declares { ["# Safety", "SAFETY:"] } else { ["SAFETY:", "SAFETY:"] };
            let above: Vec<&str> = source.text.lines().take(line).collect();
            let above = &above[above.len().saturating_sub(if declares { 40 } else { 12 })..];
            if !above.iter().any(|text| wanted.iter().any(|wanted| text.contains(wanted))) {
                findings.push(format!("{}:{line}: no SAFETY comment", source.name));
            }
        }
    }
    findings.extend(
        allowed
            .difference(&used)
            .map(|module| format!("{module} is listed and has no unsafe code")),
    );
    none_of(&format!("unsafe code lives only in {allowed:?}, each use with its reason"), findings);
}

#[test]
fn nothing_is_left_unfinished_or_unguarded() {
    let mut findings = Vec::new();
    for source in all_crates() {
        let mut banned = vec!["todo!", "unimplemented!", ".unwrap()", "dbg!"];
        if source.name.starts_with("crates/esker/src/") {
            // Nobody polls: whoever waits, waits on a condition.
            banned.push("thread::sleep");
        }
        for word in banned {
            for at in words(&source.shipped, word) {
                let line = line_of(&source.text, at);
                findings.push(format!("{}:{line}: {word}", source.name));
            }
        }
    }
    none_of("these have no place outside tests", findings);
}

#[test]
fn every_module_opens_with_its_idea() {
    let mut findings = Vec::new();
    for source in engine() {
        let below = source.name.strip_prefix("crates/esker/src/").unwrap();
        let is_head = below.ends_with("/mod.rs") && below.matches('/').count() == 1;
        if !is_head && below.contains('/') {
            continue;
        }
        let prose = source.text.lines().take_while(|line| line.starts_with("//!"));
        let prose = prose.filter(|line| line.len() > 4).count();
        if prose < MODULE_PROSE_LINES_MIN {
            findings.push(format!("{} has {prose} lines", source.name));
        }
    }
    none_of(
        &format!("a module opens with at least {MODULE_PROSE_LINES_MIN} lines of `//!`"),
        findings,
    );
}

/// The documents at the root and in `docs`.
fn documents() -> Vec<(PathBuf, String)> {
    let root = workspace();
    let docs = root.join("docs");
    let mut paths = if docs.is_dir() { files(&docs, ".md") } else { Vec::new() };
    for entry in fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Blanks fenced and inline code, in which brackets are no links.
fn without_code(markdown: &str) -> String {
    let mut fenced = false;
    let lines = markdown.lines().map(|line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return String::new();
        }
        if fenced { String::new() } else { line.split('`').step_by(2).collect() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let root = workspace();
    let mut findings = Vec::new();
    for (path, text) in documents() {
        let text = without_code(&text);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links {
            let target = link.split(['#', ' ']).next().unwrap();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !path.parent().unwrap().join(target).exists() {
                let name = path.strip_prefix(&root).unwrap();
                findings.push(format!("{}: {link}", name.display()));
            }
        }
    }
    none_of("these links lead nowhere", findings);
}

/// Whether a piece of code in a document is `file::test`: names in lower case, at least two.
fn test_reference(text: &str) -> Option<(String, &str)> {
    let (file, test) = text.rsplit_once("::")?;
    let fits = |name: &str, more: &str| {
        !name.is_empty()
            && name.chars().all(|c| {
                c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || more.contains(c)
            })
    };
    if !fits(file, ":/.-") || !fits(test, "") || ["std", "core"].contains(&file) {
        return None;
    }
    Some((file.trim_end_matches(".rs").replace("::", "/"), test))
}

#[test]
fn the_tests_named_in_the_contract_exist() {
    let root = workspace();
    let contract = fs::read_to_string(root.join("docs/contract.md")).expect("docs/contract.md");
    let mut sources = files(&root, ".rs");
    sources.extend(files(&root, ".py"));
    let mut findings = Vec::new();
    let mut references = 0;
    for code in contract.split('`').skip(1).step_by(2) {
        let Some((file, test)) = test_reference(code) else { continue };
        references += 1;
        let declared = [format!("fn {test}("), format!("def {test}(")];
        // `wal` stands for wal.rs, wal/mod.rs and wal/tests.rs.
        let found = sources.iter().any(|path| {
            let name = path.with_extension("").to_string_lossy().replace('\\', "/");
            let name = name.trim_end_matches("/mod");
            let fits = [name, name.trim_end_matches("/tests")]
                .iter()
                .any(|name| name.ends_with(&format!("/{file}")));
            let says = |text: String| declared.iter().any(|declared| text.contains(declared));
            fits && fs::read_to_string(path).is_ok_and(says)
        });
        if !found {
            findings.push(code.to_owned());
        }
    }
    assert!(references > 0, "docs/contract.md names no test: write `file::test_name`");
    none_of("docs/contract.md names tests that do not exist", findings);
}

/// The checks above are only as good as this little lexer.
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
use crate::{base::{Seq, Kind}, fs::Fs};
use crate::error::Error;
"##;
    let code = blank_comments_and_literals(text);
    let shipped = blank_test_items(&code);
    assert_eq!((text.len(), text.len()), (code.len(), shipped.len()));
    assert_eq!(words(&code, ".unwrap()").len(), 2);
    assert_eq!(words(&shipped, ".unwrap()").len(), 0);
    assert_eq!(words(&shipped, "unsafe").len(), 1);
    assert_eq!(words("unsafe_code is_unsafe unsafe", "unsafe"), [22]);
    assert_eq!(words(&shipped, "fn").len(), 4);
    let function = &shipped[shipped.find("fn g").unwrap()..];
    assert_eq!(function[..item_len(function.as_bytes())].lines().count(), 3);
    assert_eq!(item_len(b"field: (u8, u8), next"), 16);
    let names: Vec<String> = crate_paths(&shipped).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["base", "fs", "error"]);
    let name = "crates/x/src/a/mod.rs".to_owned();
    let source = Source { name, text: text.into(), code, shipped };
    assert_eq!(source.test_modules(), ["crates/x/src/a/models"]);
    assert_eq!(line_of(text, text.find("fn b").unwrap()), 4);
    assert_eq!(test_reference("kill_loop::a_b1"), Some(("kill_loop".into(), "a_b1")));
    assert_eq!(test_reference("wal::tests::x"), Some(("wal/tests".into(), "x")));
    assert_eq!(test_reference("Db::open"), None);
    assert_eq!(test_reference("esker::Error"), None);
}
