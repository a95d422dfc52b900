//! The program that the guide begins with runs as it is printed there.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Language, Linked, compile, execute, has};

/// The first block in this language.
fn block<'a>(guide: &'a str, language: &str) -> &'a str {
    let (_, rest) = guide.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_first_program_of_the_guide_runs_as_printed() {
    if !has(Language::C99) {
        return;
    }
    let guide = fs::read_to_string(support::workspace().join("docs/c.md")).unwrap();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide.c");
    fs::write(&source, block(&guide, "c")).unwrap();
    let program = compile(&source, Language::C99, Linked::Shared, "guide", &[]);
    assert_eq!(execute(&program, &[]), block(&guide, "text"));

    // Where it fails it says why, whatever the compiler makes of it.
    for (tag, level) in [("guide-0", "-O0"), ("guide-2", "-O2")] {
        let program = compile(&source, Language::C99, Linked::Shared, tag, &[level]);
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("my-database"), "a file").unwrap();
        let failed = Command::new(&program).current_dir(directory.path()).output().unwrap();
        let said = String::from_utf8(failed.stderr).unwrap();
        assert_eq!(failed.status.code(), Some(1), "{said}");
        assert!(said.contains("my-database"), "{said}");
    }
}
