//! Looking at a database that another process has open, and at one whose process was killed.

use crate::support::{Shell, esker, fail, run, succeed, text, tree};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

fn json_of(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(arguments)).unwrap()
}

/// A shell that has the database open, after `puts` writes that its statistics show.
fn writer(db: &Path, puts: u64) -> Shell {
    // Writes of class Disk are always offered to the slowest operations.
    let mut shell = Shell::start(db, &["--tiny", "--memory", "8MiB", "--durability", "disk"]);
    for number in 0..puts {
        shell.expect(&format!("put key{number} #100"), &["ok"]);
    }
    // The writing thread has not necessarily run yet.
    loop {
        let output = run(["stats", text(db), "--last", "--json"]);
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if stats["puts"] == puts && stats["observed"]["state"] == "live" {
            return shell;
        }
    }
}

#[test]
fn statistics_of_another_process_are_shown_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let shell = writer(&path, 100);
    let stats = json_of(&["stats", db, "--json"]);
    assert_eq!((&stats["puts"], &stats["source"]), (&100.into(), &"statistics file".into()));
    assert_eq!(stats["observed"]["state"], "live");
    assert_eq!(stats["observed"]["process"], shell.child.id());
    assert_eq!(stats["observed"]["keyspaces"], 1);
    assert_eq!(stats["trees"][0]["keyspace"], "default");
    assert!(stats["observed"]["age_us"].as_f64().unwrap() < 60e6, "{stats}");
    let lines = succeed(["stats", db]);
    let first = lines.lines().next().unwrap();
    assert!(first.starts_with(&format!("open in process {}", shell.child.id())), "{first}");
    assert!(lines.lines().any(|line| line.split_whitespace().eq(["puts", "100"])), "{lines}");
    let metrics = succeed(["stats", db, "--openmetrics"]);
    assert!(metrics.contains("\nesker_puts_total 100\n"), "{metrics}");
    assert!(metrics.contains("\nesker_up 1\n") && metrics.ends_with("# EOF\n"), "{metrics}");
    shell.close();
    // Nobody has it open: a fresh look, as ever.
    let stats = json_of(&["stats", db, "--json"]);
    assert_eq!((&stats["puts"], &stats["source"]), (&0.into(), &"opened".into()));
    assert_eq!(stats["observed"], Value::Null);
    let last = json_of(&["stats", db, "--json", "--last"]);
    assert_eq!((&last["puts"], &last["observed"]["state"]), (&100.into(), &"closed".into()));
}

#[test]
fn a_killed_process_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let mut shell = writer(&path, 50);
    let process = shell.child.id();
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();
    let last = json_of(&["stats", db, "--last", "--json"]);
    assert_eq!(last["observed"]["state"], "ended");
    assert_eq!((&last["observed"]["process"], &last["puts"]), (&process.into(), &50.into()));
    // What it did slowly is there after its end, as text and as JSON.
    let slowest = last["slowest"].as_array().unwrap();
    assert!(slowest.iter().any(|slow| slow["operation"] == "put"), "{last}");
    assert!(slowest.iter().all(|slow| slow["keyspace"] == "default"), "{last}");
    let lines = succeed(["stats", db, "--last"]);
    assert!(lines.contains("\nslowest of the last hour: put in keyspace default: "), "{lines}");
    assert!(!lines.contains("slowest.0") && !lines.contains("key49"), "{lines}");
    let top = succeed(["top", db, "--once"]);
    let behind = top.split("\nslowest operations of the last hour\n").nth(1).unwrap_or(&top);
    let is_put = |line: &str| line.split_whitespace().take(2).eq(["put", "default"]);
    assert!(behind.lines().take(6).any(is_put), "{top}");
    let named = format!("process {process} ended without closing it");
    assert!(top.lines().next().unwrap().contains(&named), "{top}");
    let metrics = succeed(["stats", db, "--last", "--openmetrics"]);
    assert!(metrics.contains("esker_up 0") && !metrics.contains("esker_puts"), "{metrics}");
    // Nobody has it open: a fresh look, which names what happened.
    let stats = json_of(&["stats", db, "--json"]);
    assert_eq!(
        (&stats["source"], &stats["observed"]["state"]),
        (&"opened".into(), &"ended".into())
    );
    assert!(succeed(["stats", db]).contains(&named), "the text names it too");
    // The next process goes on in the same file.
    writer(&path, 3).close();
    assert_eq!(json_of(&["stats", db, "--last", "--json"])["observed"]["state"], "closed");
}

#[test]
fn looking_changes_no_byte_and_takes_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let mut shell = writer(&path, 20);
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();
    let before = tree(&path);
    for arguments in
        [&["stats", db, "--last"][..], &["top", db, "--once"], &["top", db, "--once", "--json"]]
    {
        succeed(arguments);
    }
    assert_eq!(tree(&path), before);
    // A directory that cannot be written to can be looked at.
    let writable = std::fs::metadata(&path).unwrap().permissions();
    let mut permissions = writable.clone();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    succeed(["top", db, "--once"]);
    std::fs::set_permissions(&path, writable).unwrap();
}

#[test]
fn inspect_shows_files_of_a_running_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut shell = writer(&path, 500);
    shell.expect("flush", &["ok"]);
    let mut files = 0;
    for (name, content) in tree(&path) {
        let monitor = name.starts_with("EVENTS") || name == "STATISTICS";
        if content.is_none() || monitor || name == "wal/reserve" {
            continue;
        }
        let shown = succeed(["inspect", text(&path.join(&name))]);
        assert!(shown.starts_with("file "), "{name}: {shown}");
        files += 1;
    }
    assert!(files >= 6, "{files}");
    shell.expect("put after yes", &["ok"]);
    shell.close();
}

#[test]
fn top_shows_rates_of_a_writing_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let mut shell = writer(&path, 10);
    // It writes while the other process takes its two readings.
    let mut top = esker()
        .args(["top", db, "--once", "--json", "--interval", "2.5"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut number = 10;
    while top.try_wait().unwrap().is_none() {
        shell.expect(&format!("put key{number} #100"), &["ok"]);
        number += 1;
    }
    let mut answer = String::new();
    top.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let rates = &answer["rates_per_second"];
    assert!(rates["esker_puts"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(rates["esker_written_bytes{purpose=\"log\"}"].as_f64().unwrap() > 0.0, "{answer}");
    assert_eq!(answer["observed"]["state"], "live");
    assert!(answer["stats"]["puts"].as_u64().unwrap() > 10);
    // Without `--json`, and on no terminal, it prints text once.
    let text = succeed(["top", db, "--interval", "0.1"]);
    for title in ["operations", "bytes", "latencies", "writers waited for", "storage", "keyspaces"]
    {
        assert!(text.lines().any(|line| line.starts_with(title)), "{title} is not in {text}");
    }
    shell.close();
}

#[test]
fn top_prints_one_object_per_interval() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let shell = writer(&path, 10);
    let mut top = esker();
    top.arg("top").arg(&path).args(["--json", "--interval", "0.1"]).stdout(Stdio::piped());
    let mut top = top.spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["stats"]["puts"], 10, "{line}");
    }
    // A reader that has seen enough ends it.
    drop(lines);
    assert!(top.wait().unwrap().success());
    shell.close();
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    fail(["top", db, "--once"], 1, "STATISTICS");
    fail(["stats", db, "--last"], 1, "STATISTICS");
    fail(["top", db, "--interval", "0"], 2, "interval");
    fail(["serve-metrics", db, "--listen", "nowhere"], 2, "--listen");
    succeed(["put", db, "k", "v"]);
    let file = path.join("STATISTICS");
    std::fs::write(&file, vec![7; 100_000]).unwrap();
    fail(["top", db, "--once"], 1, "neither of its two slots is whole");
    // The other commands need no such file.
    assert_eq!(json_of(&["stats", db, "--json"])["source"], "opened");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    fail(["top", db, "--once"], 1, "a directory");
    succeed(["put", db, "k", "w"]);
    assert_eq!(succeed(["get", db, "k"]), "w\n");
}

/// `esker serve-metrics` on a port that is free.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(db: &Path) -> Self {
        let mut command = esker();
        command.arg("serve-metrics").arg(db).args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").unwrap().strip_suffix("/metrics\n").unwrap();
        Self { child, address: address.to_owned() }
    }

    /// Status line, headers and body of an answer.
    fn ask(&self, method: &str, path: &str) -> (String, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let (status, headers) = head.split_once("\r\n").unwrap();
        (status.to_owned(), headers.to_lowercase(), body.to_owned())
    }

    fn metrics(&self) -> String {
        let (status, headers, body) = self.ask("GET", "/metrics");
        assert!(status.ends_with("200 OK"), "{status}");
        let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert!(headers.lines().any(|line| line == kind), "{headers}");
        assert!(body.ends_with("# EOF\n"), "{body}");
        body
    }

    /// Asks for the end as Ctrl-C does.
    fn interrupt(mut self) {
        let process = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn metrics_are_served_and_never_stale() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    // It may begin before there is a database, and makes none.
    let server = Server::start(&path);
    assert!(server.metrics().contains("\nesker_up 0\n"));
    assert!(!path.exists());
    let mut shell = writer(&path, 30);
    let body = server.metrics();
    assert!(body.contains("\nesker_up 1\n") && body.contains("\nesker_puts_total 30\n"), "{body}");
    assert!(server.ask("GET", "/").2.contains("/metrics"));
    assert!(server.ask("GET", "/other").0.contains(" 404 "));
    assert!(server.ask("POST", "/metrics").0.contains(" 405 "));
    let (status, _, body) = server.ask("HEAD", "/metrics");
    assert!(status.contains(" 200 ") && body.is_empty(), "{status} {body}");
    // Junk instead of a request ends that connection only.
    let mut junk = TcpStream::connect(&server.address).unwrap();
    junk.write_all(b"\x00\xff nothing\r\n\r\n").unwrap();
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();
    let before = tree(&path);
    let body = server.metrics();
    assert!(body.contains("\nesker_up 0\n") && !body.contains("esker_puts"), "{body}");
    assert!(body.contains("esker_statistics_age_seconds "), "{body}");
    assert_eq!(tree(&path), before);
    fail(["serve-metrics", text(&path), "--listen", &server.address], 1, "cannot listen");
    server.interrupt();
}
