//! `--branch`: every command on data works on the branch, and on nothing else.

use crate::support::{Shell, fail, run, succeed, text, tree};
use serde_json::Value;
use std::path::Path;

/// A database with an entry, a branch and a named snapshot.
fn example(path: &Path) {
    let db = text(path);
    succeed(["put", db, "k", "main"]);
    succeed(["put", db, "k", "main", "--keyspace", "old"]);
    succeed(["branch", db, "--make", "trial"]);
    succeed(["branch", db, "--snapshot", "monday"]);
}

#[test]
fn a_branch_is_read_and_written_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    example(&path);
    let on = |arguments: &[&str]| succeed([arguments, &["--branch", "trial"]].concat());
    on(&["put", db, "k", "trial"]);
    on(&["put", db, "new", "v", "--keyspace", "new"]);
    assert_eq!(on(&["get", db, "k"]), "trial\n");
    assert_eq!(on(&["scan", db]), "k trial\n");
    assert_eq!(on(&["keyspaces", db]), "default\nnew\nold\n");
    assert_eq!(on(&["drop", db, "old"]), "dropped old\n");
    on(&["del", db, "new", "--keyspace", "new"]);
    on(&["put", db, "l", "v"]);
    on(&["delrange", db, "--prefix", "l"]);
    on(&["compact", db]);
    let explained = on(&["explain", db, "get", "l"]);
    assert!(explained.contains("not found"), "{explained}");
    on(&["explain", db, "put", "m", "v"]);
    let stats: Value = serde_json::from_str(&on(&["stats", db, "--json"])).unwrap();
    let trees = stats["trees"].as_array().unwrap();
    assert!(trees.iter().any(|tree| tree["keyspace"] == "new"), "{stats}");
    assert_eq!(on(&["scan", db]), "k trial\nm v\n");
    // The database itself is as it was.
    assert_eq!(succeed(["scan", db]), "k main\n");
    assert_eq!(succeed(["keyspaces", db]), "default\nold\n");

    let mut shell = Shell::start(&path, &["--branch", "trial"]);
    shell.expect("get k", &["trial", "ok 1"]);
    shell.expect("put shell yes", &["ok"]);
    shell.expect("keyspaces", &["default", "new", "ok 2"]);
    shell.close();
    assert_eq!(on(&["get", db, "shell"]), "yes\n");
    fail(["get", db, "shell"], 1, "key not found");
}

#[test]
fn a_named_snapshot_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    example(&path);
    succeed(["put", db, "k", "later"]);
    assert_eq!(succeed(["get", db, "k", "--branch", "monday"]), "main\n");
    let mut shell = Shell::start(&path, &["--branch", "monday"]);
    shell.expect("get k", &["main", "ok 1"]);
    shell.refuse("put k v", "read-only");
    shell.close();
    for arguments in [
        &["put", db, "k", "v"][..],
        &["del", db, "k"],
        &["delrange", db, "--all"],
        &["drop", db, "old"],
        &["compact", db],
        &["explain", db, "put", "k", "v"],
    ] {
        let arguments = [arguments, &["--branch", "monday"]].concat();
        fail(arguments, 1, "is a named snapshot, which cannot be written to");
    }
    // To go on from it, make a branch of it.
    succeed(["branch", db, "--make", "again", "--branch", "monday"]);
    succeed(["put", db, "l", "v", "--branch", "again"]);
    assert_eq!(succeed(["scan", db, "--branch", "again"]), "k main\nl v\n");
    assert_eq!(succeed(["scan", db, "--branch", "monday"]), "k main\n");
}

#[test]
fn an_unknown_branch_is_an_error_that_names_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    example(&path);
    let before = tree(&path);
    for arguments in [
        &["get", db, "k"][..],
        &["put", db, "k", "v"],
        &["del", db, "k"],
        &["delrange", db, "--all"],
        &["drop", db, "old"],
        &["scan", db],
        &["keyspaces", db],
        &["stats", db],
        &["compact", db],
        &["explain", db, "get", "k"],
        &["dump", db],
        &["shell", db],
        &["branch", db, "--make", "new"],
    ] {
        let arguments = [arguments, &["--branch", "nobody"]].concat();
        fail(arguments, 1, "there is no branch or named snapshot \"nobody\"");
    }
    fail(["get", db, "k", "--branch", "nobody"], 1, "`esker branch` lists them");
    let data = |tree: &[(String, Option<Vec<u8>>)]| -> Vec<String> {
        tree.iter().map(|entry| entry.0.clone()).filter(|name| name.starts_with("data")).collect()
    };
    assert_eq!(data(&tree(&path)), data(&before));
    assert_eq!(succeed(["scan", db]), "k main\n");
    // No database is made for a branch that it cannot have.
    let new = dir.path().join("new");
    for arguments in [&["put", text(&new), "k", "v"][..], &["shell", text(&new)]] {
        fail([arguments, &["--branch", "trial"]].concat(), 1, "no database");
        assert!(!new.exists());
    }
}

#[test]
fn commands_on_whole_directories_take_no_branch() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    example(&path);
    for arguments in
        [&["verify", db][..], &["repair", db, "--plan"], &["checkpoint", db, "--to", "new"]]
    {
        fail([arguments, &["--branch", "trial"]].concat(), 2, "--branch");
    }
    // They have all branches.
    let copy = dir.path().join("copy");
    succeed(["checkpoint", db, "--to", text(&copy)]);
    assert_eq!(succeed(["branch", text(&copy)]), "branch trial\nsnapshot monday\n");
    assert!(run(["verify", text(&copy)]).status.success());
}
