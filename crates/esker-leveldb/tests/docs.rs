//! The program in `docs/leveldb.md` runs as printed and prints what the page says.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What stands between the fences of the first block of this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_program_of_the_page_runs_as_printed() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(own.join("../../docs/leveldb.md")).unwrap();
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("fruit.c"), block(&page, "c")).unwrap();
    let library = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    compiler.current_dir(&place).args(["-Wall", "-Wextra", "-Werror", "fruit.c", "-o", "fruit"]);
    compiler.arg("-I").arg(own.join("include")).arg("-L").arg(&library).arg("-lesker_leveldb");
    assert!(compiler.status().unwrap().success());
    let mut program = Command::new(place.path().join("fruit"));
    let output = program.current_dir(&place).env("LD_LIBRARY_PATH", &library).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), block(&page, "text"));
    assert!(page.contains("esker import --from leveldb DIR --to NEW"));
}

/// The names that are left out, without their arguments.
fn left_out(workspace: &Path) -> BTreeSet<String> {
    let list = fs::read_to_string(workspace.join("tests/clients/left-out.txt")).unwrap();
    let names = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let bare =
        |line: &str| line.split('(').next().unwrap().strip_prefix("leveldb::").map(str::to_owned);
    names.map(|line| bare(line).unwrap()).collect()
}

#[test]
fn the_page_names_whatever_is_left_out() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(workspace.join("docs/leveldb.md")).unwrap();
    let (_, section) = page.split_once("## What is left out\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").nth(1));
    let names = names.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned));
    let mut named: Vec<String> = names.collect();
    named.sort();
    assert_eq!(named, left_out(&workspace).into_iter().collect::<Vec<_>>());
}
