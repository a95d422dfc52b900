//! A read-only shell answers reads, refuses writes and changes no byte (C9).

use crate::support::{Shell, fail, text, tree};

#[test]
fn reads_are_answered_and_no_byte_changes() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut shell = Shell::start(&db, &["--tiny", "--memory", "8MiB"]);
    for number in 0..1_000 {
        shell.expect(&format!("put key{number} #500"), &["ok"]);
    }
    shell.expect("put in-the-log yes", &["ok"]);
    // A killed writer leaves a log to replay, which a reader does in memory.
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();

    let before = tree(&db);
    let mut shell = Shell::start(&db, &["--read-only"]);
    shell.expect("get in-the-log", &["yes", "ok 1"]);
    assert_eq!(shell.ask("scan - - -").1, "ok 1001");
    shell.expect("snap s", &["ok"]);
    shell.expect("get key7x @s", &["ok 0"]);
    for line in ["put a 1", "del in-the-log", "delrange - -", "put a 1 disk", "flush", "compact"] {
        shell.refuse(line, "read-only");
    }
    shell.expect("begin", &["ok"]);
    shell.expect("put a 1", &["ok"]);
    shell.refuse("commit", "read-only");
    shell.refuse("drop default", "read-only");
    assert!(shell.ask("verify").1.starts_with("ok "));
    shell.close();
    assert_eq!(tree(&db), before);
}

#[test]
fn a_missing_database_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    fail(["shell", "--read-only", text(&db)], 1, text(&db));
    assert!(!db.exists());
}
