//! The memory that an open takes to replay the most that a kill can leave in the log. A program of its own: each
//! open is measured in a process that does nothing else, by what the system says was resident.
//!
//! An allocator that counts would miss most of it: memtables live in mappings of their own, and two threads
//! replay.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]
#![cfg(target_os = "linux")]

use esker::internals::sync::Point;
use esker::{Cause, Db, Error, Options};
use esker_testkit::barriers::Barriers;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
/// The budget under which the log was written.
const BUDGET: u64 = 64 * MIB;
/// What memtables may have of it: writers stop there, so the log holds no more than that.
const SHARE: u64 = BUDGET / 8;
/// What `docs/recovery.md` allows the memtables of a replay, for the addresses of their entries.
const REPLAYED: u64 = SHARE / 4 * 5;
/// Beside memtables: three loads of a MiB with the places of their batches, a MiB of the log that is read,
/// a run segment of a MiB with its buffers, a MiB of the new log file, and the unused ends of chunks.
const SLACK: u64 = 10 * MIB;
/// So half of the budget is enough, too.
const _: () = assert!(REPLAYED + SLACK < BUDGET / 2);

/// Tells this test binary, run once more, which database to open, and with which budget.
const ROLE: &str = "ESKER_REPLAY_MEMORY_TEST";

fn options(memory: u64) -> Options {
    let mut options = Options::default();
    options.memory = Some(memory);
    options.sync_interval = None;
    // It writes when it likes, and what is written is copied.
    options.monitor = Some(false);
    options
}

/// Writes until writers would have to wait for memory. Returns how many entries that are.
fn fill(db: &Db) -> usize {
    let mut written = 0;
    loop {
        // In no order, and none of them twice.
        let key = (written as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        match db.try_insert(key, [b'v'; 100]) {
            Ok(()) => written += 1,
            Err(Error::WouldBlock { reason: Cause::Memory, .. }) => return written,
            // It came too early for the pace.
            Err(Error::WouldBlock { .. }) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Copies of a database with as much log as its options allow, each as a kill would leave it. Returns how many
/// entries they have.
fn killed(copies: &[PathBuf]) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let (db, barriers) = Barriers::open(dir.path(), options(BUDGET)).unwrap();
    barriers.close(&[Point::FlushBegins]);
    let written = fill(&db);
    let stats = db.stats();
    let (log, memtables) = (stats.log_needed_bytes, stats.memory.memtables);
    println!("{written} entries, {log} bytes of log, {memtables} bytes of memtables");
    assert_eq!(stats.flushes, 0);
    assert!(log > SHARE / 2, "{log} bytes of log are not all that a kill may leave");
    for copy in copies {
        esker_testkit::files::copy(dir.path(), copy);
    }
    drop(barriers);
    db.close().unwrap();
    written
}

/// Bytes in a field of the process's status.
fn resident(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    found.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Opens a database in a process of its own. Returns how many bytes that took at most, beyond what the process
/// had before, and how many entries it found.
fn opened_elsewhere(path: &Path, memory: u64) -> (u64, usize) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_another_process", "--nocapture"])
        .env(ROLE, format!("{memory}:{}", path.display()))
        // On a machine of many processors malloc would keep free memory for each.
        .env("MALLOC_ARENA_MAX", "2")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().find_map(|line| line.split_once("answer: "));
    let (_, answer) = answer.unwrap_or_else(|| panic!("no answer: {output:?}"));
    let (peak, entries) = answer.split_once(' ').unwrap();
    (peak.parse().unwrap(), entries.parse().unwrap())
}

/// No test of its own: the other process of the test below.
#[test]
fn in_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (memory, path) = role.split_once(':').unwrap();
    // Afterwards the code of an open is in memory, and what the process has only once.
    let other = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let db = Db::open_with(other.path(), options(MIB)).unwrap();
        db.insert("key", "value").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
    }
    let before = resident("VmRSS:");
    // 5 resets the peak (proc(5), clear_refs). Where that is refused, it is that of the loop above, or more.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let db = Db::open_with(path, options(memory.parse().unwrap())).unwrap();
    let peak = resident("VmHWM:").saturating_sub(before);
    let entries = db.iter().unwrap().filter(Result::is_ok).count();
    db.close().unwrap();
    println!("answer: {peak} {entries}");
}

/// The budget of the open does not count, but that of the process that wrote the log: all of it is in
/// memory until it is flushed. So with a budget that is smaller than that share, an open exceeds it.
#[test]
fn an_open_takes_what_memtables_may_have_of_the_budget_at_the_kill() {
    let place = tempfile::tempdir().unwrap();
    let budgets = [BUDGET, BUDGET / 2, BUDGET / 16];
    let copies = budgets.map(|memory| place.path().join(memory.to_string()));
    let written = killed(&copies);
    for (memory, path) in budgets.into_iter().zip(&copies) {
        let (peak, found) = opened_elsewhere(path, memory);
        println!("with a budget of {} MiB an open takes {} KiB", memory / MIB, peak >> 10);
        assert_eq!(found, written, "entries, with a budget of {memory}");
        assert!(peak > SHARE / 4 * 3, "{peak} bytes cannot be all: {memory}");
        assert!(peak < REPLAYED + SLACK, "{peak} bytes with a budget of {memory}");
    }
}
