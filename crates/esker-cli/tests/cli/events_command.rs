//! `esker events`, of a database that is closed, open elsewhere, or was killed.

use crate::support::{Shell, esker, fail, run, succeed, text};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

fn kinds(json: &str) -> Vec<String> {
    let kind =
        |line| serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned();
    json.lines().map(kind).collect()
}

#[test]
fn events_are_printed_while_the_database_is_open_and_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut shell = Shell::start(&path, &[]);
    shell.ask("put secret-key secret-value");
    shell.ask("flush");
    // The monitor writes a moment later.
    let mut found = String::new();
    while !found.contains("\"flush\"") {
        found = String::from_utf8(run(["events", text(&path), "--json"]).stdout).unwrap();
    }
    drop(shell.input);
    assert!(shell.child.wait().unwrap().success());
    let before = fs::read(path.join("EVENTS")).unwrap();
    let json = succeed(["events", text(&path), "--json"]);
    assert_eq!(json.as_bytes(), before, "JSON is what the file holds");
    assert_eq!(kinds(&json).last().unwrap(), "database_closed");
    let lines = succeed(["events", text(&path)]);
    assert_eq!(lines.lines().count(), json.lines().count());
    assert!(
        lines.contains(" flush  bytes=")
            && lines.contains("  keyspaces=1  ")
            && !lines.contains("secret"),
        "{lines}"
    );
    assert_eq!(fs::read(path.join("EVENTS")).unwrap(), before, "reading changes nothing");
}

#[test]
fn the_older_file_comes_first_and_unreadable_lines_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let event = |seq| format!("{{\"time\":1,\"seq\":{seq},\"event\":\"flush\"}}\n");
    fs::write(dir.path().join("EVENTS.1"), event(1) + "junk\n" + &event(2)).unwrap();
    let mut now = (event(3) + "{}\n").into_bytes();
    now.extend_from_slice(b"\xff\xfe\n{\"time\":1,\"se");
    fs::write(dir.path().join("EVENTS"), now).unwrap();
    let output = run(["events", text(dir.path()), "--json"]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), event(1) + &event(2) + &event(3));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "esker: 3 lines could not be read\n");
}

#[test]
fn where_nothing_is_the_error_says_so() {
    let dir = tempfile::tempdir().unwrap();
    fail(["events", text(&dir.path().join("none"))], 1, "there is no database");
    fail(["events", text(dir.path())], 1, "holds no file EVENTS");
}

#[test]
fn following_goes_on_over_a_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let (now, before) = (dir.path().join("EVENTS"), dir.path().join("EVENTS.1"));
    let mut child = esker()
        .args(["events", text(dir.path()), "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let append = |seq: u64| {
        let mut file = OpenOptions::new().create(true).append(true).open(&now).unwrap();
        writeln!(file, "{{\"time\":1,\"seq\":{seq},\"event\":\"flush\"}}").unwrap();
    };
    let mut next = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["seq"].as_u64().unwrap()
    };
    for seq in 0..20 {
        append(seq);
        if seq % 3 == 0 {
            // It has to be seen before the next one takes its place.
            assert_eq!(next(), seq);
            append(1000 + seq);
            fs::rename(&now, &before).unwrap();
            assert_eq!(next(), 1000 + seq, "what came before the rotation is read");
        } else {
            assert_eq!(next(), seq);
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn events_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    for round in 0..3_usize {
        let mut shell = Shell::start(&path, &[]);
        shell.ask(&format!("put k{round} v"));
        shell.ask("flush");
        let flushes = || {
            let output = run(["events", text(&path), "--json"]);
            kinds(&String::from_utf8(output.stdout).unwrap())
                .iter()
                .filter(|kind| *kind == "flush")
                .count()
        };
        while flushes() <= round {}
        shell.child.kill().unwrap();
        shell.child.wait().unwrap();
        assert!(flushes() > round, "what was written survives the process");
        // As if the kill had torn a line.
        let mut file = OpenOptions::new().append(true).open(path.join("EVENTS")).unwrap();
        write!(file, "{{\"time\":1,\"se").unwrap();
    }
    let mut shell = Shell::start(&path, &[]);
    for round in 0..3 {
        assert_eq!(shell.ask(&format!("get k{round}")).0.len(), 1);
    }
    drop(shell.input);
    shell.child.wait().unwrap();
    let found = kinds(&String::from_utf8(run(["events", text(&path), "--json"]).stdout).unwrap());
    assert_eq!(found.iter().filter(|kind| *kind == "database_opened").count(), 4);
    assert_eq!(found.iter().filter(|kind| *kind == "database_closed").count(), 1);
}
