//! The commands that do one thing: their answers as text and as JSON.

use crate::support::{fail, run, succeed, succeed_with, text, tree};
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
    assert_eq!(json_of(&["get", db, "0xff00", "--json"])["key"], json!({ "hex": "ff00" }));
    assert_eq!(run(["get", db, "0xff00", "--raw"]).stdout, [0]);
    assert_eq!(succeed(["put", db, "long", "--make-up", "100000"]), "");
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
    assert_eq!(succeed(["scan", db]), "\" \" v\na v\nb1 v\nb2 v\nc v\n");
    assert_eq!(succeed(["scan", db, "--from", "b", "--to", "c"]), "b1 v\nb2 v\n");
    assert_eq!(succeed(["scan", db, "--prefix", "b", "--reverse"]), "b2 v\nb1 v\n");
    assert_eq!(succeed(["scan", db, "--limit", "1"]), "\" \" v\n");
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
    let said = "the keyspace other is empty, others are not";
    assert_eq!(succeed_with(["scan", db, "--keyspace", "other"], said), "");
    // Only put makes a keyspace.
    for arguments in [
        &["get", db, "k", "--keyspace", "third"][..],
        &["scan", db, "--keyspace", "third"],
        &["del", db, "k", "--keyspace", "third"],
        &["delrange", db, "--all", "--keyspace", "third"],
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
        succeed(["put", db, key, "--make-up", "5000"]);
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
    assert!(verify.ends_with("\nno damage found\n"), "{verify}");
    let verify = json_of(&["verify", db, "--json"]);
    assert_eq!(verify["whole"], true);
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
    for command in [
        "shell",
        "get",
        "put",
        "del",
        "delrange",
        "drop",
        "scan",
        "keyspaces",
        "stats",
        "verify",
        "compact",
        "bench",
    ] {
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

#[test]
fn put_takes_a_time_to_live() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = (dir.path().join("db"), dir.path().join("file"));
    let (db, source) = (text(&path), text(&file));
    std::fs::write(&file, "from a file").unwrap();
    succeed(["put", db, "long", "v", "--ttl", "7d"]);
    succeed(["put", db, "file", "--file", source, "--ttl", "2h"]);
    assert_eq!(succeed(["get", db, "file", "--raw"]), "from a file");
    succeed(["put", db, "short", "v", "--ttl", "1ms"]);
    let put = ["put", db, "short file", "--file", source, "--ttl", "1ms", "--json"];
    assert_eq!(json_of(&put), json!({ "bytes": 11 }));
    // By the time another process reads them they have expired, or they do soon.
    while succeed(["scan", db]).lines().count() > 2 {}
    assert_eq!(succeed(["scan", db]), "file \"from a file\"\nlong v\n");
    // A value that would be written in pieces has to fit the memory when it expires.
    std::fs::write(&file, vec![7; 3_000_000]).unwrap();
    let put = ["put", db, "large", "--file", source, "--memory", "16M"];
    succeed(put);
    fail([&put[..], &["--ttl", "1h"]].concat(), 1, "the limit is 2097152");
    assert_eq!(run(["get", db, "large", "--raw"]).stdout.len(), 3_000_000);
}

#[test]
fn delrange_removes_what_was_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let keys = || -> String {
        let lines = run(["scan", db]).stdout;
        let lines = String::from_utf8(lines).unwrap();
        lines.lines().filter_map(|line| line.split(' ').next()).collect::<Vec<_>>().join(" ")
    };
    for key in ["a", "b1", "b2", "b\u{ff}", "c", "d"] {
        succeed(["put", db, key, "v"]);
    }
    assert_eq!(succeed(["delrange", db, "--from", "x"]), "");
    assert_eq!(keys(), "a b1 b2 b\u{ff} c d");
    assert_eq!(succeed(["delrange", db, "--prefix", "b"]), "");
    assert_eq!(keys(), "a c d");
    assert!(json_of(&["delrange", db, "--to", "b", "--json"])["position"].is_u64());
    assert_eq!(keys(), "c d");
    succeed(["delrange", db, "--from", "c", "--to", "d"]);
    assert_eq!(keys(), "d");
    succeed(["put", db, "d", "v", "--keyspace", "other"]);
    succeed(["delrange", db, "--all", "--durability", "disk"]);
    assert_eq!(keys(), "");
    assert_eq!(succeed(["get", db, "d", "--keyspace", "other"]), "v\n");
}

#[test]
fn drop_says_whether_the_keyspace_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    for name in ["users", "two words", "more"] {
        succeed(["put", db, "k", "v", "--keyspace", name]);
    }
    assert_eq!(succeed(["keyspaces", db]), "default\nmore\n\"two words\"\nusers\n");
    assert_eq!(succeed(["drop", db, "users"]), "dropped users\n");
    fail(["drop", db, "users"], 1, "there is no keyspace users");
    // A name is taken as it was printed, and as it is.
    assert_eq!(succeed(["get", db, "k", "--keyspace", "\"two words\""]), "v\n");
    assert_eq!(succeed(["drop", db, "\"two words\""]), "dropped \"two words\"\n");
    let dropped = json!({ "keyspace": "more", "dropped": true });
    assert_eq!(json_of(&["drop", db, "more", "--json"]), dropped);
    let output = run(["drop", db, "more", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer, json!({ "keyspace": "more", "dropped": false }));
    assert_eq!(json_of(&["keyspaces", db, "--json"]), json!(["default"]));
    fail(["drop", db, "default"], 1, "default");
}

#[test]
fn what_was_printed_is_taken_as_it_was_printed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let values =
        ["plain", "grüne Äpfel", "say \"hi\"", "0xff", "#100", "@s", "-", "ok", "a\\b", "", "a\nb"];
    for value in values {
        // As hexadecimal, what the shell of the system makes of it does not matter.
        let digits: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        succeed(["put", db, "k", &format!("0x{digits}")]);
        for flags in [&[][..], &["--hex"], &["--base64"]] {
            let printed = succeed([&["get", db, "k"], flags].concat());
            succeed(["put", db, "copy", printed.trim_end_matches('\n')]);
            assert_eq!(succeed(["get", db, "copy", "--raw"]), value, "{printed}");
        }
        let json = json_of(&["get", db, "k", "--json"]);
        let expected = match value {
            "a\nb" => json!({ "hex": "610a62" }),
            text => json!(text),
        };
        assert_eq!(json["value"], expected);
    }
    assert_eq!(succeed(["scan", db, "--hex", "--limit", "1"]), "0x636f7079 0x610a62\n");
    assert_eq!(succeed(["scan", db, "--base64", "--limit", "1"]), "0xb64:Y29weQ== 0xb64:YQpi\n");
    let json = json_of(&["scan", db, "--base64", "--limit", "1", "--json"]);
    assert_eq!(json, json!({ "key": { "base64": "Y29weQ==" }, "value": { "base64": "YQpi" } }));
    // What looks like a length is a value like any other.
    succeed(["put", db, "k", "#100"]);
    assert_eq!(succeed(["get", db, "k", "--raw"]), "#100");
    succeed(["put", db, "k", "-5"]);
    assert_eq!(succeed(["get", db, "k"]), "-5\n");
}

#[test]
fn what_is_empty_is_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    succeed(["put", db, "k", "v"]);
    assert_eq!(succeed(["scan", db, "--from", "x"]), "");
    succeed(["del", db, "k"]);
    assert_eq!(succeed_with(["scan", db], "esker: the database is empty\n"), "");
    assert_eq!(succeed_with(["scan", db, "--json", "--limit", "5"], "is empty"), "");
    fail(["get", db, "k"], 1, "k is not in keyspace default: the database is empty");
    succeed(["put", db, "k", "v", "--keyspace", "other"]);
    fail(["get", db, "k"], 1, "the keyspace default is empty, others are not");
    fail(["get", db, "x", "--keyspace", "other"], 1, "`esker scan` lists keys");
}

#[test]
fn json_has_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let (db, copy) = (text(&path), text(&copy));
    succeed(["put", db, "k", "v"]);
    let superblock = path.join("superblock-A");
    let shown = json_of(&["inspect", text(&superblock), "--json"]);
    assert_eq!((&shown["format version"], &shown["file"]), (&3.into(), &"superblock".into()));
    assert!(shown["bytes"].is_u64() && shown["database"].is_string(), "{shown}");
    assert_eq!(json_of(&["checkpoint", db, "--to", copy, "--json"]), json!({ "to": copy }));
    let plan = json_of(&["repair", "--plan", db, "--json"]);
    assert_eq!(plan["plan"]["losses"], false, "{plan}");
    assert!(plan["plan"]["keyspaces"][0]["entries"].is_u64(), "{plan}");
    assert_eq!(json_of(&["branch", db, "--make", "b", "--json"]), json!({ "branch": "b" }));
    assert_eq!(json_of(&["branch", db, "--snapshot", "s", "--json"]), json!({ "snapshot": "s" }));
    let dropped = json!({ "dropped": "s", "kind": "snapshot" });
    assert_eq!(json_of(&["branch", db, "--drop", "s", "--json"]), dropped);
}

#[test]
fn completions_and_manual_pages_have_what_the_help_has() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = succeed(["completions", shell]);
        for word in ["delrange", "serve-metrics", "stop-on-error"] {
            assert!(script.contains(word), "{word} is not in the script for {shell}");
        }
    }
    fail(["completions", "cmd"], 2, "cmd");
    let page = succeed(["man"]);
    assert!(page.contains("delrange") && page.contains("completions"), "{page}");
    let page = succeed(["man", "put"]);
    for word in ["esker put", "\\-\\-ttl", "session:7 open"] {
        assert!(page.contains(word), "{word} is not in {page}");
    }
    assert!(succeed(["man", "bench", "compare"]).contains("compare"));
    fail(["man", "put", "get"], 2, "there is no command \"put get\"");
}
