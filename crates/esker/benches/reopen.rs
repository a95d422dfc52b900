//! Measures how long opening takes: after a clean close, and after a kill with a log to replay.
//!
//! ```text
//! cargo bench -p esker --bench reopen -- [KEYS] [DIR]
//! cargo bench -p esker --bench reopen -- write WHAT KEYS DIR
//! cargo bench -p esker --bench reopen -- open WHAT DIR
//! ```
//! A child process makes each database: it closes the *clean* and the *segments* one, and dies
//! without closing the others. The log of *full* is never given back, because its memtable is larger
//! than what is written; *default* has the log that a kill leaves with default options. The second and
//! third lines do one step alone, so that two builds can be compared in turns.

use esker::{Compression, Db, Event, EventKind, Options, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const LOGGED: u64 = 1_500_000;
const VALUE: [u8; 100] = [b'v'; 100];
/// Entries of the database with small segments, and bytes of its segments: a segment has about 16 entries.
const SEGMENTED: u64 = 1_600_000;
const SEGMENT_BYTES: u32 = 1 << 10;

fn main() -> Result<()> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let arguments: Vec<String> =
        std::env::args().filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match arguments.as_slice() {
        ["write", what, keys, dir] => write(what, number(keys), Path::new(dir)),
        ["open", what, dir] => open(what, Path::new(dir)).map(drop),
        _ => {
            let scratch = std::env::temp_dir().join(format!("esker-reopen-{}", std::process::id()));
            let dir = arguments.get(1).map_or(scratch, PathBuf::from);
            let keys = arguments.first().copied().unwrap_or("10000000");
            measure("clean", keys, &dir)?;
            measure("segments", &SEGMENTED.to_string(), &dir)?;
            measure("full", &LOGGED.to_string(), &dir)?;
            measure("default", &LOGGED.to_string(), &dir)
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(1_000_000)
}

/// Keys in no order, each with 16 digits.
fn key(n: u64, of: u64) -> String {
    format!("{:016}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % of)
}

fn options(what: &str) -> Options {
    let mut options = Options::default();
    match what {
        // Nothing that is written is flushed.
        "full" => options.memtable_bytes = Some(1 << 30),
        "segments" => {
            options.segment_bytes = SEGMENT_BYTES;
            options.block_bytes = SEGMENT_BYTES;
            options.compression = Compression::None;
        }
        _ => {}
    }
    options
}

fn write(what: &str, keys: u64, dir: &Path) -> Result<()> {
    let db = Db::open_with(dir, options(what))?;
    for n in 0..keys {
        // In order, the segments are taken over as they were written.
        let key = if what == "segments" { format!("{n:016}") } else { key(n, keys) };
        db.insert(key, VALUE)?;
    }
    if matches!(what, "full" | "default") {
        // As a kill would: no destructor runs, nothing is flushed.
        std::process::abort();
    }
    db.wait_until_idle()?;
    db.close()
}

/// Opens, and returns how long that took and how many bytes of log it replayed.
fn open(what: &str, dir: &Path) -> Result<(Duration, u64)> {
    let mut options = options(what);
    let replayed = Arc::new(AtomicU64::new(0));
    let sum = replayed.clone();
    options.on_event = Some(Arc::new(move |event: &Event| {
        if let EventKind::LogReplayed { bytes, .. } = &event.kind {
            sum.store(*bytes, Ordering::Relaxed);
        }
    }));
    let started = Instant::now();
    let db = Db::open_with(dir, options)?;
    let took = started.elapsed();
    let segments: u64 = db.stats().trees.iter().map(|tree| tree.base.segments).sum();
    db.close()?;
    let bytes = replayed.load(Ordering::Relaxed);
    println!("{what}: open {took:?}, {}; {segments} segments then", rate(took, bytes));
    Ok((took, bytes))
}

fn rate(took: Duration, bytes: u64) -> String {
    format!("{bytes} bytes of log, {:.0} MB/s", bytes as f64 / took.as_secs_f64() / 1e6)
}

fn child(what: &str, keys: &str, dir: &Path) {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("reopen"));
    let status = Command::new(program).args(["write", what, keys]).arg(dir).status();
    println!("{what}: written, {}", status.map_or_else(|e| e.to_string(), |s| s.to_string()));
}

fn measure(what: &str, keys: &str, dir: &Path) -> Result<()> {
    let killed = matches!(what, "full" | "default");
    let mut opens = Vec::new();
    for round in 0..ROUNDS {
        if killed || round == 0 {
            std::fs::remove_dir_all(dir).ok();
            child(what, keys, dir);
        }
        opens.push(open(what, dir)?);
    }
    std::fs::remove_dir_all(dir).ok();
    opens.sort();
    let (took, bytes) = opens[ROUNDS / 2];
    println!("{what}: median {took:?}, {}", rate(took, bytes));
    Ok(())
}
