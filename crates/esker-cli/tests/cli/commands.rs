//! The commands that do one thing: their answers as text and as JSON.

use crate::support::{fail, run, succeed, text, tree};
use serde_json::{Value, json};

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(arguments)).unwrap()
}

#[test]
fn put_get_del() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    assert_eq!(succeed(["put", db, "k", "v"]), "");
    assert_eq!(succeed(["get", db, "k"]), "v\n");
    assert_eq!(json_of(&["get", db, "k", "--json"]), json!({ "key": "k", "value": "v" }));
    assert!(
        json_of(&["put", db, "0xff00", "0x00", "--json", "--durability", "disk"])["position"]
            .is_u64()
    );
    assert_eq!(succeed(["get", db, "0xff00"]), "0x00\n");
    assert_eq!(run(["get", db, "0xff00", "--raw"]).stdout, [0]);
    assert_eq!(succeed(["put", db, "long", "#100000"]), "");
    assert_eq!(run(["get", db, "long", "--raw"]).stdout.len(), 100_000);
    assert_eq!(succeed(["del", db, "k", "0xff00", "never-there"]), "");
    fail(["get", db, "k"], 1, "key not found: k");
    let output = run(["get", db, "k", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer, json!({ "key": "k", "value": null }));
}

#[test]
fn a_file_is_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = (dir.path().join("db"), dir.path().join("image"));
    let (db, source) = (text(&path), text(&file));
    // Larger than an eighth of the memory.
    let bytes: Vec<u8> = (0..3_000_000u32).map(|number| (number / 7) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let put = ["put", db, "image", "--file", source, "--memory", "16M", "--json"];
    assert_eq!(json_of(&put), json!({ "bytes": 3_000_000 }));
    assert!(run(["get", db, "image", "--raw"]).stdout == bytes);
    std::fs::write(&file, "small").unwrap();
    assert_eq!(succeed(["put", db, "note", "--file", source]), "");
    assert_eq!(succeed(["get", db, "note", "--raw"]), "small");
    assert_eq!(succeed(["put", db, "nothing", "--file", "-"]), "");
    assert_eq!(succeed(["get", db, "nothing", "--raw"]), "");
    fail(["put", db, "k", "--file", "/is/not/there"], 1, "/is/not/there");
    fail(["put", db, "k", "v", "--file", source], 2, "cannot be used with");
    fail(["put", db, "k"], 2, "required");
    fail(["get", db, "k", "--raw"], 1, "key not found: k");
}

#[test]
fn scan_with_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    for key in ["a", "b1", "b2", "c", "0x20"] {
        succeed(["put", db, key, "v"]);
    }
    assert_eq!(succeed(["scan", db]), "0x20 v\na v\nb1 v\nb2 v\nc v\n");
    assert_eq!(succeed(["scan", db, "--from", "b", "--to", "c"]), "b1 v\nb2 v\n");
    assert_eq!(succeed(["scan", db, "--prefix", "b", "--reverse"]), "b2 v\nb1 v\n");
    assert_eq!(succeed(["scan", db, "--limit", "1"]), "0x20 v\n");
    assert_eq!(succeed(["scan", db, "--from", "x"]), "");
    let lines = succeed(["scan", db, "--limit", "2", "--reverse", "--json"]);
    let entries: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        entries,
        [json!({ "key": "c", "value": "v" }), json!({ "key": "b2", "value": "v" })]
    );
}

#[test]
fn keyspaces_are_separate() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    succeed(["put", db, "k", "1"]);
    succeed(["put", db, "k", "2", "--keyspace", "other"]);
    assert_eq!(succeed(["get", db, "k"]), "1\n");
    assert_eq!(succeed(["get", db, "k", "--keyspace", "other"]), "2\n");
    assert_eq!(succeed(["scan", db, "--keyspace", "other"]), "k 2\n");
    let mut names: Vec<String> = succeed(["keyspaces", db]).lines().map(String::from).collect();
    names.sort();
    assert_eq!(names, ["default", "other"]);
    assert_eq!(json_of(&["keyspaces", db, "--json"]).as_array().unwrap().len(), 2);
    succeed(["del", db, "k", "--keyspace", "other"]);
    assert_eq!(succeed(["scan", db, "--keyspace", "other"]), "");
    // Only put makes a keyspace.
    for arguments in [
        &["get", db, "k", "--keyspace", "third"][..],
        &["scan", db, "--keyspace", "third"],
        &["del", db, "k", "--keyspace", "third"],
        &["compact", db, "--keyspace", "third"],
    ] {
        fail(arguments, 1, "third");
    }
    assert_eq!(succeed(["keyspaces", db]).lines().count(), 2);
}

#[test]
fn stats_verify_compact() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    for key in ["a", "b", "c"] {
        succeed(["put", db, key, "#5000"]);
    }
    assert_eq!(succeed(["compact", db, "--from", "a", "--to", "b"]), "");
    assert!(json_of(&["compact", db, "--json"])["bytes_written"].is_object());
    let stats = succeed(["stats", db]);
    assert!(stats.contains("\nputs ") && stats.contains("keyspace"), "{stats}");
    let stats = json_of(&["stats", db, "--json"]);
    assert_eq!(stats["trees"][0]["keyspace"], "default", "{stats}");
    assert_eq!(stats["trees"][0]["base"]["entries"], 3, "{stats}");
    let verify = succeed(["verify", db]);
    assert!(verify.lines().any(|line| line == "entries 3"), "{verify}");
    let verify = json_of(&["verify", db, "--json"]);
    assert_eq!((&verify["entries"], &verify["problems"]), (&json!(3), &json!([])));
}

#[test]
fn reading_changes_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    succeed(["put", db, "k", "v"]);
    let before = tree(&path);
    for command in ["stats", "verify", "keyspaces", "scan"] {
        succeed([command, db]);
        succeed([command, db, "--json"]);
    }
    succeed(["get", db, "k"]);
    fail(["get", db, "x"], 1, "key not found");
    assert_eq!(tree(&path), before);
}

#[test]
fn every_command_explains_itself() {
    let help = succeed(["--help"]);
    for command in
        ["shell", "get", "put", "del", "scan", "keyspaces", "stats", "verify", "compact", "bench"]
    {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in {help}");
        let help = succeed([command, "--help"]);
        assert!(help.contains("Usage: esker "), "{command}");
    }
    assert!(succeed(["--version"]).starts_with("esker "));
}

#[test]
fn checkpoint_makes_a_second_database() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let (db, copy) = (text(&path), text(&copy));
    succeed(["put", db, "k", "v"]);
    assert_eq!(succeed(["checkpoint", db, "--to", copy]), "");
    succeed(["put", db, "k", "w"]);
    assert_eq!(succeed(["get", copy, "k"]), "v\n");
    assert_eq!(run(["checkpoint", db, "--to", copy]).status.code(), Some(1));
    assert_eq!(succeed(["get", copy, "k"]), "v\n");
}

#[test]
fn explain_says_what_one_operation_did() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    succeed(["put", db, "k", "v"]);
    let put = succeed(["explain", db, "put", "l", "w", "--durability", "disk"]);
    assert!(put.contains("sync of the log: done") && put.contains("waited for sync"), "{put}");
    assert_eq!(succeed(["get", db, "l"]), "w\n");
    let get = succeed(["explain", db, "get", "0x6b"]);
    assert!(get.starts_with("get in keyspace default, found: "), "{get}");
    let json = succeed(["explain", db, "get", "absent", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["found"], &json["operation"]), (&false.into(), &"get".into()));
    let scan = succeed(["explain", db, "scan", "l", "--limit", "5"]);
    assert!(scan.contains("1 entries, 0 stepped over"), "{scan}");
    assert_eq!(run(["explain", db, "get", "k", "--keyspace", "none"]).status.code(), Some(1));
}

#[test]
fn branch_lists_makes_and_drops() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    succeed(["put", db, "k", "v"]);
    assert_eq!(succeed(["branch", db]), "");
    assert_eq!(succeed(["branch", db, "--make", "trial"]), "");
    assert_eq!(succeed(["branch", db, "--snapshot", "monday"]), "");
    assert_eq!(succeed(["branch", db]), "branch trial\nsnapshot monday\n");
    let listed = json!({ "branches": ["trial"], "snapshots": ["monday"] });
    assert_eq!(json_of(&["branch", db, "--json"]), listed);
    assert_eq!(run(["branch", db, "--make", "monday"]).status.code(), Some(1));
    for name in ["trial", "monday"] {
        assert_eq!(succeed(["branch", db, "--drop", name]), "");
    }
    fail(["branch", db, "--drop", "trial"], 1, "there is no branch or named snapshot \"trial\"");
    assert_eq!(succeed(["branch", db]), "");
}
