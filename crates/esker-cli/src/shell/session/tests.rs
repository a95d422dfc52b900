use super::*;
use esker::Options;

/// A session on a new database whose directory lives as long as the pair.
fn session() -> (Session, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.memory = Some(16 << 20);
    let db = Db::open_with(dir.path().join("db"), options).unwrap();
    (Session::new(db), dir)
}

/// Runs lines and returns everything that was answered.
fn answers(session: &mut Session, lines: &str) -> String {
    let mut out = Vec::new();
    for line in lines.lines() {
        session.execute(line.as_bytes(), &mut out).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn a_value_is_a_line_before_the_count() {
    let (mut session, _dir) = session();
    assert_eq!(answers(&mut session, "put k v\nget k\nget x"), "ok\nv\nok 1\nok 0\n");
    assert_eq!(answers(&mut session, "put k 0x\nget k"), "ok\n0x\nok 1\n");
    assert_eq!(answers(&mut session, "put k ok\nget k"), "ok\n0x6f6b\nok 1\n");
}

#[test]
fn blank_lines_have_no_answer_and_bad_ones_change_nothing() {
    let (mut session, _dir) = session();
    assert_eq!(answers(&mut session, "\n  \n"), "");
    let answer = answers(&mut session, "put k v safe\nput k 0xz\nget k");
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines[0].starts_with("err usage ") && lines[1].starts_with("err usage "), "{answer}");
    assert_eq!(lines[2..], ["ok 0"]);
}

#[test]
fn a_batch_is_unseen_until_its_commit() {
    let (mut session, _dir) = session();
    answers(&mut session, "put old 1");
    assert_eq!(answers(&mut session, "begin\nput a 1\ndel old\nget a"), "ok\nok\nok\nok 0\n");
    assert!(session.in_batch());
    assert_eq!(answers(&mut session, "commit\nscan - - -"), "ok\na 1\nok 1\n");
    assert!(!session.in_batch());
    assert_eq!(answers(&mut session, "begin\nput b 1\nabort\nget b"), "ok\nok\nok\nok 0\n");
    for line in ["commit", "abort"] {
        assert!(answers(&mut session, line).starts_with("err usage no batch"), "{line}");
    }
    answers(&mut session, "begin");
    assert!(answers(&mut session, "begin").starts_with("err usage a batch is open"));
    assert!(answers(&mut session, "put a 2 disk").starts_with("err usage"));
    assert_eq!(answers(&mut session, "commit disk\nget a"), "ok\n1\nok 1\n");
}

#[test]
fn a_batch_spans_keyspaces() {
    let (mut session, _dir) = session();
    answers(&mut session, "begin\nput k 1\nuse other\nput k 2");
    assert_eq!(session.keyspace(), "other");
    assert_eq!(answers(&mut session, "get k\ncommit\nget k"), "ok 0\nok\n2\nok 1\n");
    assert_eq!(answers(&mut session, "use default\nget k"), "ok\n1\nok 1\n");
    assert_eq!(answers(&mut session, "drop other\ndrop other"), "ok 1\nok 0\n");
}

#[test]
fn a_snapshot_sees_the_past() {
    let (mut session, _dir) = session();
    answers(&mut session, "put a 1\nput b 1\nsnap s\nput a 2\ndel b\nput c 1");
    assert_eq!(answers(&mut session, "get a @s"), "1\nok 1\n");
    assert_eq!(answers(&mut session, "scan - - - @s"), "a 1\nb 1\nok 2\n");
    assert_eq!(answers(&mut session, "scan - - - rev"), "c 1\na 2\nok 2\n");
    assert!(answers(&mut session, "snap s").starts_with("err exists "));
    assert_eq!(answers(&mut session, "unsnap s"), "ok\n");
    assert!(answers(&mut session, "unsnap s").starts_with("err missing "));
    assert!(answers(&mut session, "get a @s").starts_with("err missing "));
}

#[test]
fn ranges_are_half_open_and_limits_hold_from_both_ends() {
    let (mut session, _dir) = session();
    answers(&mut session, "put a 1\nput b 1\nput c 1\nput d 1");
    assert_eq!(answers(&mut session, "scan b d -"), "b 1\nc 1\nok 2\n");
    assert_eq!(answers(&mut session, "scan - - 1"), "a 1\nok 1\n");
    assert_eq!(answers(&mut session, "scan - d 1 rev"), "c 1\nok 1\n");
    assert_eq!(answers(&mut session, "scan - - 0"), "ok 0\n");
    assert_eq!(answers(&mut session, "delrange b d disk\nscan - - -"), "ok\na 1\nd 1\nok 2\n");
    assert_eq!(answers(&mut session, "delrange - -\nscan - - -"), "ok\nok 0\n");
}

#[test]
fn a_key_called_ok_is_no_closing_line() {
    let (mut session, _dir) = session();
    answers(&mut session, "put ok 1\nput err io");
    assert_eq!(answers(&mut session, "scan - - -"), "0x657272 io\n0x6f6b 1\nok 2\n");
    assert_eq!(answers(&mut session, "get 0x6f6b"), "1\nok 1\n");
}

#[test]
fn upkeep_is_answered_and_keeps_the_data() {
    let (mut session, _dir) = session();
    answers(&mut session, "put a #1000\nput b 1");
    assert_eq!(answers(&mut session, "flush\nsync\ncompact\ncompact a b"), "ok\nok\nok\nok\n");
    assert!(answers(&mut session, "verify").starts_with("ok "));
    assert!(answers(&mut session, "stats").contains("\nputs 2\n"));
    assert!(answers(&mut session, "help").ends_with("\nok 20\n"));
    assert_eq!(answers(&mut session, "get b"), "1\nok 1\n");
}

#[test]
fn close_ends_the_session() {
    let (mut session, _dir) = session();
    answers(&mut session, "put a 1\nsnap s\nbegin\nput b 1");
    let mut out = Vec::new();
    assert_eq!(session.execute(b"close", &mut out).unwrap(), Step::End);
    assert_eq!(out, b"ok\n");
    assert!(answers(&mut session, "get a").starts_with("err closed "));
}
