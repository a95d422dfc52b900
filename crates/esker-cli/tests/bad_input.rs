//! Whatever the program cannot work with is one line that names the thing, the right exit code,
//! and leaves the disk as it was.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod support;

use std::path::Path;
use support::{Shell, fail, succeed, text, tree};

/// Every command on `dir`, with arguments that are right.
fn every_command(dir: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["get", dir, "k"],
        vec!["put", dir, "k", "v"],
        vec!["del", dir, "k"],
        vec!["scan", dir],
        vec!["keyspaces", dir],
        vec!["stats", dir],
        vec!["verify", dir],
        vec!["compact", dir],
        vec!["shell", dir],
        vec!["shell", "--read-only", dir],
    ]
}

#[track_caller]
fn every_command_fails(dir: &Path, named: &str) {
    for arguments in every_command(text(dir)) {
        fail(arguments, 1, named);
    }
}

#[test]
fn arguments_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let long_name = "n".repeat(256);
    for (arguments, named) in [
        (vec!["frobnicate"], "frobnicate"),
        (vec!["get", db], "<KEY>"),
        (vec!["get", db, "k", "--nonsense"], "--nonsense"),
        (vec!["put", db, "k"], "<VALUE>"),
        (vec!["put", db, "k", "v", "more"], "more"),
        (vec!["put", db, "0xabc", "v"], "0xabc"),
        (vec!["put", db, "k", "#many"], "#many"),
        (vec!["put", db, "k", "v", "--durability", "safe"], "safe"),
        (vec!["put", db, "k", "v", "--keyspace", ""], "keyspace"),
        (vec!["put", db, "k", "v", "--keyspace", &long_name], "keyspace"),
        (vec!["scan", db, "--limit", "-1"], "-1"),
        (vec!["scan", db, "--limit", "ten"], "ten"),
        (vec!["scan", db, "--prefix", "a", "--from", "b"], "--prefix"),
        (vec!["stats", db, "--memory", "lots"], "lots"),
        (vec!["shell"], "<DIR>"),
        (vec!["shell", db, "--read-onyl"], "--read-onyl"),
    ] {
        fail(arguments, 2, named);
        assert!(!path.exists());
    }
}

#[test]
fn keys_and_values_over_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let long = "k".repeat(65_536);
    fail(["put", db, &long, "v"], 1, "65536");
    fail(["put", db, "k", "#1073741825"], 1, "1073741825");
    assert!(!path.exists());
    // The limit of a value follows from the memory number too, and the shell survives both.
    let mut shell = Shell::start(&path, &["--memory", "4MiB"]);
    shell.refuse(&format!("put {long} v"), "key-too-long");
    shell.refuse("put k #4000000", "value-too-large");
    shell.refuse("put k #99999999999", "value-too-large");
    shell.expect(&format!("put {} v", &long[1..]), &["ok"]);
    shell.expect(&format!("get {}", &long[1..]), &["v", "ok 1"]);
    shell.expect("get k", &["ok 0"]);
    shell.close();
}

#[test]
fn a_missing_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    for arguments in every_command(db) {
        if !matches!(arguments[..], ["put", ..] | ["shell", _]) {
            fail(arguments, 1, db);
            assert_eq!(tree(dir.path()), []);
        }
    }
}

#[test]
fn a_file_in_place_of_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "precious").unwrap();
    every_command_fails(&path, text(&path));
    every_command_fails(&path.join("below"), text(&path));
    assert_eq!(tree(dir.path()), [("file".to_owned(), Some(b"precious".to_vec()))]);
}

#[test]
fn a_directory_of_something_else() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "precious").unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let before = tree(dir.path());
    every_command_fails(dir.path(), "not an Esker database");
    assert_eq!(tree(dir.path()), before);
}

#[cfg(unix)]
#[test]
fn a_directory_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    succeed(["put", text(&path), "k", "v"]);
    let before = tree(&path);
    let allow = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    allow(0o000);
    // The superuser is not stopped by permissions: then there is nothing to see here.
    if std::fs::read_dir(&path).is_err() {
        every_command_fails(&path, text(&path));
    } else {
        println!("left out: this user may do everything");
    }
    allow(0o755);
    assert_eq!(tree(&path), before);
}

#[test]
fn a_database_that_is_open_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut shell = Shell::start(&path, &[]);
    shell.expect("put k v", &["ok"]);
    for arguments in every_command(text(&path)) {
        if matches!(arguments[0], "put" | "del" | "compact")
            || arguments[..] == ["shell", text(&path)]
        {
            fail(arguments, 1, "open elsewhere");
        }
    }
    shell.expect("scan - - -", &["k v", "ok 1"]);
    shell.close();
    assert_eq!(succeed(["get", text(&path), "k"]), "v\n");
}
