//! `--json`: every command prints JSON, in which numbers and truth values are no strings.

use crate::support::{copy, esker, succeed, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Commands without `--json`: what they print is for one reader each.
const OWN_FORMAT: [&str; 2] = ["completions", "man"];
/// Fields that hold bytes or text of the program's user, and identifiers of hexadecimal digits, which may
/// look like a number.
const TEXT: [&str; 6] = ["key", "value", "hex", "base64", "checksum", "database"];

/// Runs on the database `DB`, with an entry of a number, a branch and a named snapshot.
const LINES: [&str; 34] = [
    "get DB 1",
    "put DB k v",
    "put DB k v --durability disk --keyspace spare",
    "del DB k",
    "delrange DB --prefix x",
    "drop DB spare",
    "scan DB",
    "keyspaces DB",
    "stats DB",
    "stats DB --last",
    "stats DB --branch trial",
    "top DB --once",
    "explain DB get 1",
    "explain DB scan",
    "explain DB put k v",
    "events DB",
    "verify DB",
    "branch DB",
    "branch DB --make more",
    "branch DB --drop more",
    "branch DB --snapshot tuesday",
    "checkpoint DB --to COPY",
    "compact DB",
    "inspect DB/superblock-A",
    "inspect DB/LOCK",
    "repair DB --plan",
    "repair DB --to SAVED",
    "repair DB --in-place",
    "dump DB --out DUMP",
    "load LOADED DUMP",
    "import --from leveldb OLD --to IMPORTED",
    "bench --num 200 --workloads fillseq,readrandom",
    "bench --list",
    "bench experiment --list",
];

/// The strings below a value that hold a number or a truth value, with where they are.
fn quoted(place: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| !TEXT.contains(&name.as_str())) {
                quoted(&format!("{place}.{name}"), field, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| quoted(place, item, found)),
        Value::String(text) => {
            let digits = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
            if digits && text.parse::<f64>().is_ok() || text.parse::<bool>().is_ok() {
                found.push(format!("{place}: {text:?}"));
            }
        }
        _ => {}
    }
}

/// Checks what a command printed: each line is JSON, and there is one.
fn check(line: &str, printed: &str, found: &mut Vec<String>) {
    let before = found.len();
    for printed in printed.lines() {
        match serde_json::from_str(printed) {
            Ok(value) => quoted(line, &value, found),
            Err(error) => found.push(format!("{line}: {error}: {printed}")),
        }
        if found.len() > before {
            return;
        }
    }
    if printed.is_empty() {
        found.push(format!("{line}: printed nothing"));
    }
}

fn command(line: &str, place: &Path) -> Command {
    let mut command = esker();
    command.args(line.split(' ')).arg("--json").current_dir(place).stdin(Stdio::null());
    command
}

/// What a server prints before it serves.
fn first_line(mut server: Command) -> String {
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    line
}

/// What a shell answers to these lines.
fn shell(mut shell: Command, lines: &str) -> String {
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn every_command_prints_json_with_numbers_as_numbers() {
    let place = tempfile::tempdir().unwrap();
    let (place, db) = (place.path(), place.path().join("DB"));
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../esker-port/tests/fixtures");
    copy(&fixtures.join("leveldb/db"), &place.join("OLD"));
    succeed(["put", text(&db), "1", "2"]);
    succeed(["branch", text(&db), "--make", "trial"]);
    succeed(["branch", text(&db), "--snapshot", "monday"]);
    let mut found = Vec::new();
    let mut called: BTreeSet<&str> = OWN_FORMAT.into();
    for line in LINES {
        called.insert(line.split(' ').next().unwrap());
        let output = command(line, place).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        check(line, &String::from_utf8(output.stdout).unwrap(), &mut found);
    }
    called.insert("serve-metrics");
    let served = first_line(command("serve-metrics DB --listen 127.0.0.1:0", place));
    check("serve-metrics", &served, &mut found);
    called.insert("shell");
    let lines = "put 1 2\nget 1\nscan\nkeyspaces\nstats\nverify\nsync\nhelp\nclose\n";
    check("shell", &shell(command("shell DB", place), lines), &mut found);
    assert!(found.is_empty(), "not as JSON should be:\n  {}\n", found.join("\n  "));
    let help = succeed(["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.map_while(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: BTreeSet<&str> = commands.filter(|name| !name.is_empty()).collect();
    assert_eq!(called, commands, "commands of this test, and those of the program");
}

#[test]
fn numbers_in_quotes_are_found() {
    let mut found = Vec::new();
    check("a", r#"{"n":"12","deep":[{"m":"-1.5e3"}],"t":"true"}"#, &mut found);
    assert_eq!(found.len(), 3, "{found:?}");
    found.clear();
    check(
        "a",
        r#"{"n":12,"key":"12","name":"x1","word":"infinity","more":{"hex":"00"}}"#,
        &mut found,
    );
    assert_eq!(found, [""; 0]);
    check("a", "fillseq", &mut found);
    check("b", "", &mut found);
    assert_eq!(found.len(), 2, "{found:?}");
}
