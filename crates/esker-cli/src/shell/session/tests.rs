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
    assert_eq!(answers(&mut session, "put k 0x\nget k"), "ok\n\"\"\nok 1\n");
    assert_eq!(answers(&mut session, "put k ok\nget k"), "ok\n\"ok\"\nok 1\n");
}

#[test]
fn text_comes_back_as_it_was_typed() {
    let (mut session, _dir) = session();
    let lines = "put grün \"sehr \\\"grün\\\"\"\nput 0x0a \"#5\"\nscan";
    let entries = "0x0a \"#5\"\ngrün \"sehr \\\"grün\\\"\"\n";
    assert_eq!(answers(&mut session, lines), format!("ok\nok\n{entries}ok 2\n"));
    // What was printed is taken again.
    for entry in entries.lines() {
        assert_eq!(answers(&mut session, &format!("put {entry}")), "ok\n", "{entry}");
    }
    assert_eq!(answers(&mut session, "scan"), format!("{entries}ok 2\n"));
    session.answer_in(Form { encoding: Encoding::Hex, json: false });
    assert_eq!(answers(&mut session, "get 0x0a"), "0x2335\nok 1\n");
    session.answer_in(Form { encoding: Encoding::Base64, json: false });
    assert_eq!(
        answers(&mut session, "scan - z"),
        "0xb64:Cg== 0xb64:IzU=\n0xb64:Z3LDvG4= 0xb64:c2VociAiZ3LDvG4i\nok 2\n"
    );
}

#[test]
fn answers_in_json_are_one_object_per_line() {
    let (mut session, _dir) = session();
    session.answer_in(Form { encoding: Encoding::Text, json: true });
    let answer = answers(&mut session, "put a 1\nput 0xff \"b c\"\nget a\nscan\nkeyspaces");
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"ok":true}"#,
            r#"{"ok":true}"#,
            r#"{"value":"1"}"#,
            r#"{"count":1,"ok":true}"#,
            r#"{"key":"a","value":"1"}"#,
            r#"{"key":{"hex":"ff"},"value":"b c"}"#,
            r#"{"count":2,"ok":true}"#,
            r#"{"keyspace":"default"}"#,
            r#"{"count":1,"ok":true}"#,
        ]
    );
    let answer = answers(&mut session, "fly\nverify\nstats\nhelp");
    let lines: Vec<serde_json::Value> =
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["ok"], &lines[0]["kind"]), (&false.into(), &"usage".into()));
    assert_eq!((&lines[1]["ok"], &lines[1]["entries"]), (&true.into(), &2.into()));
    assert_eq!(lines[2]["puts"], 2);
    // Only the line that ends an answer has the field.
    let closing: Vec<usize> =
        (0..lines.len()).filter(|&index| lines[index].get("ok").is_some()).collect();
    assert_eq!(closing, [0, 1, 3, 4 + HELP.len()]);
}

#[test]
fn failed_lines_are_counted() {
    let (mut session, _dir) = session();
    answers(&mut session, "put k v\nget x\n\n");
    assert_eq!(session.failed(), 0);
    answers(&mut session, "fly\nput k\nget k\nget k @s");
    assert_eq!(session.failed(), 3);
}

#[test]
fn entries_expire() {
    let (mut session, _dir) = session();
    answers(&mut session, "put a 1 ttl=1ms\nput b 1 disk ttl=1ms\nput c 1 ttl=7d");
    answers(&mut session, "begin\nput d 1 ttl=1ms\nput e 1\ncommit");
    // The clock of the system decides when.
    while answers(&mut session, "scan") != "c 1\ne 1\nok 2\n" {}
}

#[test]
fn a_scan_is_cut_only_where_nobody_said_how_long_it_is() {
    let (mut session, _dir) = session();
    answers(&mut session, "put a 1\nput b 1\nput c 1");
    session.limit_scans(2);
    let cut = answers(&mut session, "scan");
    assert!(cut.starts_with("a 1\nb 1\nok 2, and there is more"), "{cut}");
    assert!(answers(&mut session, "scan rev").starts_with("c 1\nb 1\nok 2, and there is more"));
    assert_eq!(answers(&mut session, "scan a c"), "a 1\nb 1\nok 2\n");
    assert_eq!(answers(&mut session, "scan - - 2"), "a 1\nb 1\nok 2\n");
    assert_eq!(answers(&mut session, "scan - - -"), "a 1\nb 1\nc 1\nok 3\n");
    session.limit_scans(3);
    assert_eq!(answers(&mut session, "scan"), "a 1\nb 1\nc 1\nok 3\n");
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
    assert_eq!(answers(&mut session, "scan - - -"), "\"err\" io\n\"ok\" 1\nok 2\n");
    assert_eq!(answers(&mut session, "get 0x6f6b\nget \"ok\""), "1\nok 1\n1\nok 1\n");
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
