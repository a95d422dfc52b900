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

/// Names and nice values of the threads whose names begin with this.
fn priorities(prefix: &str) -> Vec<(String, i64)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let found = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).ok()?;
        let (name, numbers) = stat.split_once('(')?.1.rsplit_once(')')?;
        // The nineteenth number of the line; the name is the second.
        let nice = numbers.split_whitespace().nth(16)?.parse().ok()?;
        name.starts_with(prefix).then(|| (name.to_owned(), nice))
    });
    found.collect()
}

/// A thread's name is set by the thread itself, so a moment may pass; if it never comes, this
/// never ends.
fn wait_for(expected: &[String]) {
    while threads() != expected {
        std::thread::yield_now();
    }
}

#[test]
fn r27_these_threads_are_all_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let mut options = Options::default();
    options.workers = Some(3);
    let db = Db::open_with(&path, options.clone()).unwrap();
    let numbered = |name: &str| (0..3).map(|n| format!("esker-{name}-{n}")).collect::<Vec<_>>();
    let others = ["flush", "log", "monitor", "sync"].map(|name| format!("esker-{name}"));
    let mut expected = [&others[..], &numbered("merge"), &numbered("worker")].concat();
    expected.sort();
    wait_for(&expected);
    for number in 0..2000 {
        db.keyspace(&format!("{}", number % 50)).unwrap().insert("k", "v").unwrap();
    }
    db.compact().unwrap();
    assert_eq!(threads(), expected, "work starts no threads");
    // Merging threads have a lower priority, and no other thread has: others wait for their locks (S23).
    let normal = priorities("contract_thread")[0].1;
    for (name, priority) in priorities("esker-") {
        let lower = if name.starts_with("esker-merge-") { 10 } else { 0 };
        assert_eq!(priority, (normal + lower).min(19), "{name}");
    }
    db.close().unwrap();
    assert!(threads().is_empty(), "close ends them all");
    options.read_only = true;
    let db = Db::open_with(&path, options).unwrap();
    assert!(threads().is_empty(), "reading needs none");
    db.close().unwrap();
}
