//! What the code itself keeps to: the size of files and functions, where unsafe code lives, what is
//! never written outside tests.

use crate::lexer::{item_len, line_of, words};
use crate::source::{all_crates, engine, everything, none_of, python, workspace};
use std::collections::BTreeSet;
use std::fs;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const MODULE_PROSE_LINES_MIN: usize = 3;

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
    for source in all_crates().into_iter().chain(python()) {
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
