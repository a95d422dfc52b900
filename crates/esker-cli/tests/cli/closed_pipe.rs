//! A reader that has seen enough (`esker scan DIR | head -1`) ends the program quietly.

use crate::support::{Shell, esker};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

#[test]
fn a_closed_output_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut shell = Shell::start(&db, &[]);
    for number in 0..200 {
        shell.expect(&format!("put key{number} #10000"), &["ok"]);
    }
    shell.close();

    for command in ["scan", "shell"] {
        let mut child = esker()
            .arg(command)
            .arg(&db)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Far more than a pipe holds.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"scan - - -\n").unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("key0 0x"), "{command}");
        drop(output);
        drop(input);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "", "{command}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{command}");
    }
}
