//! `esker import` as `docs/import.md` prints it.

use crate::support::{copy, esker, text, tree};
use std::path::{Path, PathBuf};
use std::process::Output;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../esker-port/tests/fixtures")
}

fn page() -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(own.join("../../docs/import.md")).unwrap()
}

/// Runs a line of the page in a directory.
fn run(line: &str, place: &Path) -> Output {
    let words = line.split_whitespace().skip(1);
    esker().current_dir(place).args(words).output().unwrap()
}

#[test]
fn the_commands_of_the_page_run_as_printed() {
    let page = page();
    let mut kinds = Vec::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("    esker import ")) {
        let line = format!("esker import {line}");
        let kind = line.split_whitespace().skip_while(|word| *word != "--from").nth(1).unwrap();
        kinds.push(kind.to_owned());
        let place = tempfile::tempdir().unwrap();
        let old = place.path().join("OLD");
        match kind {
            "leveldb" => copy(&fixtures().join("leveldb/db"), &old),
            "lmdb" => copy(&fixtures().join("lmdb"), &old),
            _ => std::fs::create_dir(&old).unwrap(),
        }
        let before = tree(&old);
        let output = run(&line, place.path());
        let (said, errors) =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).into();
        assert_eq!(tree(&old), before, "the source was changed");
        if ["leveldb", "lmdb"].contains(&kind) {
            assert!(output.status.success() && errors.is_empty(), "{line}: {errors}");
            assert!(said.starts_with("imported "), "{said}");
            assert!(said.contains(" keyspaces, checksum "), "{said}");
            // It does not go over what is there, and says the same to a program.
            assert_eq!(run(&line, place.path()).status.code(), Some(1));
            let json = run(&format!("{line}2 --json"), place.path());
            let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
            let entries = json["entries"].as_u64().unwrap();
            assert!(said.starts_with(&format!("imported {entries} entries, ")), "{said} {json}");
            assert!(said.contains(json["checksum"].as_str().unwrap()), "{said} {json}");
            continue;
        }
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(!place.path().join("NEW").exists());
        let feature = format!("import-{kind}");
        if built(kind) {
            let refused = ["cannot read ", "cannot open "].iter().any(|said| errors.contains(said));
            assert!(refused && errors.contains("OLD"), "{errors}");
        } else {
            let command = format!("cargo build --release --features {feature}");
            assert!(errors.contains(&command), "{errors}");
        }
        assert!(page.contains(&format!("| `{feature}` |")), "{feature} is not on the page");
    }
    kinds.sort();
    assert_eq!(kinds, ["fjall", "leveldb", "lmdb", "redb", "rocksdb"]);
}

fn built(kind: &str) -> bool {
    match kind {
        "fjall" => cfg!(feature = "import-fjall"),
        "redb" => cfg!(feature = "import-redb"),
        _ => cfg!(feature = "import-rocksdb"),
    }
}

#[test]
fn named_databases_become_keyspaces() {
    let place = tempfile::tempdir().unwrap();
    let new = place.path().join("new");
    let fixture = fixtures().join("lmdb");
    let line = ["import", "--from", "lmdb", text(&fixture), "--to", text(&new)];
    let said = crate::support::succeed(line.iter().chain(&["--keyspace", "main"]));
    assert!(said.starts_with("imported 322 entries, "), "{said}");
    let names = crate::support::succeed(["keyspaces", text(&new)]);
    for name in ["large", "main", "names"] {
        assert!(names.lines().any(|line| line.split_whitespace().next() == Some(name)), "{names}");
    }
}
