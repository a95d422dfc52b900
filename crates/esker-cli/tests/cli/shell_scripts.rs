//! Scripts for the shell: the exit code, and where a script ends.

use crate::support::{esker, succeed, text};
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

/// Runs lines through `esker shell DIR` with more flags.
fn script(db: &Path, flags: &[&str], lines: &str) -> Output {
    let mut command = esker();
    command.arg("shell").arg(db).args(flags);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A shell that ended before has not read all.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait_with_output().unwrap()
}

#[track_caller]
fn check(output: &Output, code: i32, answers: &[&str], said: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), answers.len(), "{stdout}");
    assert!(lines.iter().zip(answers).all(|(line, start)| line.starts_with(start)), "{stdout}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
}

#[test]
fn a_line_that_fails_makes_the_script_fail_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    check(&script(&db, &[], "put a 1\nget x\n"), 0, &["ok", "ok 0"], "");
    let output = script(&db, &[], "put b 2\nfly\n\nput c\nput d 4\n");
    let said = "esker: 2 lines failed, first line 2: see its answer\n";
    check(&output, 1, &["ok", "err usage", "err usage", "ok"], said);
    let output = script(&db, &["--json"], "get a\nfly");
    let said = "esker: 1 line failed, first line 2: see its answer\n";
    check(&output, 1, &["{\"value\":\"1\"}", "{\"count\":1,", "{\"kind\":\"usage\","], said);
    assert_eq!(succeed(["scan", text(&db)]), "a 1\nb 2\nd 4\n");
}

#[test]
fn a_script_can_end_at_the_first_line_that_fails() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let flags = ["--stop-on-error"];
    check(&script(&db, &flags, "put a 1\nget x\n"), 0, &["ok", "ok 0"], "");
    let output = script(&db, &flags, "put b 2\nbegin\nput c 3\nfly\ncommit\nput d 4\n");
    let said = "esker: 1 line failed, first line 4: see its answer\n";
    check(&output, 1, &["ok", "ok", "ok", "err usage"], said);
    // What was written before is kept, and a batch that was not committed is not.
    assert_eq!(succeed(["scan", text(&db)]), "a 1\nb 2\n");
}

#[test]
fn exit_and_quit_close_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    for word in ["exit", "quit", "close"] {
        let lines = format!("put {word} 1\n{word}\nput later 1\n");
        check(&script(&db, &[], &lines), 0, &["ok", "ok"], "");
        // A script that failed before it left has failed.
        let output = script(&db, &[], &format!("fly\n{word}\n"));
        let said = "esker: 1 line failed, first line 1: see its answer\n";
        check(&output, 1, &["err usage", "ok"], said);
    }
    assert_eq!(succeed(["scan", text(&db)]), "close 1\nexit 1\nquit 1\n");
}

#[test]
fn a_shell_prints_in_the_encoding_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let lines = "put ok \"two words\"\nscan\n";
    check(&script(&db, &[], lines), 0, &["ok", "\"ok\" \"two words\"", "ok 1"], "");
    check(&script(&db, &["--hex"], "scan"), 0, &["0x6f6b 0x74776f20776f726473", "ok 1"], "");
    let base64 = ["0xb64:b2s= 0xb64:dHdvIHdvcmRz", "ok 1"];
    check(&script(&db, &["--base64"], "scan"), 0, &base64, "");
}
