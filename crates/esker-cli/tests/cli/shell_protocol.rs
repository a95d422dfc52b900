//! The shell on a pipe: what is sent, what is answered, and when.

use crate::support::{Shell, esker};
use esker_port::word;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_conversation() {
    let dir = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(&dir.path().join("db"), &[]);
    shell.expect("put k v", &["ok"]);
    shell.expect("get k", &["v", "ok 1"]);
    shell.expect("get absent", &["ok 0"]);
    shell.expect("put a 1 disk", &["ok"]);
    shell.expect("put b 2 buffered", &["ok"]);
    shell.expect("scan - - -", &["a 1", "b 2", "k v", "ok 3"]);
    shell.expect("scan b - 1", &["b 2", "ok 1"]);
    shell.expect("scan - k 1 rev", &["b 2", "ok 1"]);
    shell.expect("snap s", &["ok"]);
    shell.expect("delrange a k", &["ok"]);
    shell.expect("del k process", &["ok"]);
    shell.expect("scan - - -", &["ok 0"]);
    shell.expect("scan - - - rev @s", &["k v", "b 2", "a 1", "ok 3"]);
    shell.expect("get b @s", &["2", "ok 1"]);
    shell.expect("unsnap s", &["ok"]);
    shell.refuse("get b @s", "missing");
    shell.refuse("fly", "usage");
    shell.refuse("put k", "usage");
    shell.close();
}

#[test]
fn batches_and_keyspaces() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut shell = Shell::start(&db, &[]);
    shell.expect("keyspaces", &["default", "ok 1"]);
    shell.expect("begin", &["ok"]);
    shell.expect("put k 1", &["ok"]);
    shell.expect("use second", &["ok"]);
    shell.expect("put k 2", &["ok"]);
    shell.expect("get k", &["ok 0"]);
    shell.expect("commit disk", &["ok"]);
    shell.expect("get k", &["2", "ok 1"]);
    shell.expect("use \"a b ü\"", &["ok"]);
    shell.expect("use 0x61206220c3bc", &["ok"]);
    shell.expect("begin", &["ok"]);
    shell.expect("put k 3", &["ok"]);
    shell.expect("abort", &["ok"]);
    shell.expect("get k", &["ok 0"]);
    shell.close();

    let mut shell = Shell::start(&db, &[]);
    let (mut names, closing) = shell.ask("keyspaces");
    names.sort();
    assert_eq!(names, ["\"a b ü\"", "default", "second"]);
    assert_eq!(closing, "ok 3");
    shell.expect("get k", &["1", "ok 1"]);
    shell.expect("drop second", &["ok 1"]);
    shell.expect("drop second", &["ok 0"]);
    shell.expect("use second", &["ok"]);
    shell.expect("get k", &["ok 0"]);
    shell.close();
}

#[test]
fn all_bytes_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(&dir.path().join("db"), &[]);
    for byte in 0..=255_u8 {
        shell.expect(&format!("put 0x6b{byte:02x} 0x{byte:02x}"), &["ok"]);
    }
    let (lines, closing) = shell.ask("scan - - -");
    assert_eq!(closing, "ok 256");
    for (byte, line) in (0..=255_u8).zip(&lines) {
        let words = word::split(line.as_bytes()).unwrap();
        assert_eq!(words.len(), 2, "{line}");
        assert_eq!(word::decode(words[0]).unwrap(), [b'k', byte], "{line}");
        assert_eq!(word::decode(words[1]).unwrap(), [byte], "{line}");
        // Whatever was printed is understood again, as a key and as a value.
        shell.expect(&format!("put {line}"), &["ok"]);
    }
    assert_eq!(shell.ask("scan - - -"), (lines, "ok 256".into()));
    for (sent, shown) in [
        ("0x", "\"\""),
        ("0x2d", "\"-\""),
        ("0x3078", "\"0x\""),
        ("0x2331", "\"#1\""),
        ("0x4073", "\"@s\""),
        ("0x6f6b", "\"ok\""),
        ("0x6120", "\"a \""),
        ("0x610a", "0x610a"),
    ] {
        for word in [sent, shown] {
            shell.expect(&format!("put k {word}"), &["ok"]);
            shell.expect("get k", &[shown, "ok 1"]);
        }
    }
    shell.close();
}

#[test]
fn upkeep() {
    let dir = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(&dir.path().join("db"), &["--tiny", "--memory", "8MiB"]);
    for number in 0..500 {
        shell.expect(&format!("put key{number:03} #1000"), &["ok"]);
    }
    let before = shell.ask("scan - - -");
    assert_eq!(before.0.len(), 500);
    for line in ["flush", "sync", "compact key1 key2", "compact", "compact - -"] {
        shell.expect(line, &["ok"]);
        assert_eq!(shell.ask("scan - - -"), before, "after {line}");
    }
    let (problems, closing) = shell.ask("verify");
    assert!(problems.is_empty() && closing.starts_with("ok "), "{problems:?} {closing}");
    let (lines, _) = shell.ask("stats");
    assert!(lines.contains(&"puts 500".to_owned()), "{lines:?}");
    let (lines, closing) = shell.ask("help");
    assert_eq!(closing, format!("ok {}", lines.len()));
    shell.close();
}

#[test]
fn the_end_of_the_input_closes_and_keeps_what_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let talk = |input: &[u8]| {
        let mut command = esker();
        command.arg("shell").arg(&db).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    // Line ends of either kind, blank lines, and a last line without an end.
    assert_eq!(
        talk(b"put a 1\r\n\n  put   b 2  \nbegin\nput c 3\nget a"),
        "ok\nok\nok\nok\n1\nok 1\n"
    );
    assert_eq!(talk(b"scan - - -\n"), "a 1\nb 2\nok 2\n");
    // Nothing after close is run.
    assert_eq!(talk(b"close\nput d 4\n"), "ok\n");
    assert_eq!(talk(b"get d\n"), "ok 0\n");
}
