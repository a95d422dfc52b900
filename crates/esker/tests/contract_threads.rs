//! Which threads there are (R27). One test in a process of its own, because it counts them.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use esker::{Db, Options};

fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| {
        let name = std::fs::read_to_string(task.unwrap().path().join("comm")).ok()?;
        Some(name.trim().to_owned()).filter(|name| name.starts_with("esker"))
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A thread's name is set by the thread itself, so a moment may pass; if it never comes, this
/// never ends.
fn wait_for(expected: &[&str]) {
    while threads() != expected {
        std::thread::yield_now();
    }
}

#[test]
fn r27_workers_two_threads_for_the_log_and_the_monitor_are_all_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let mut options = Options::default();
    options.workers = Some(3);
    let db = Db::open_with(&path, options.clone()).unwrap();
    let workers = ["esker-worker-0", "esker-worker-1", "esker-worker-2"];
    let expected = [&["esker-log", "esker-monitor", "esker-sync"], &workers[..]].concat();
    wait_for(&expected);
    for number in 0..2000 {
        db.keyspace(&format!("{}", number % 50)).unwrap().insert("k", "v").unwrap();
    }
    db.compact().unwrap();
    assert_eq!(threads(), expected, "work starts no threads");
    db.close().unwrap();
    assert!(threads().is_empty(), "close ends them all");
    options.read_only = true;
    let db = Db::open_with(&path, options).unwrap();
    assert!(threads().is_empty(), "reading needs none");
    db.close().unwrap();
}
