//! Measures how long opening takes: after a clean close, and after a kill with a full log.
//!
//! ```text
//! cargo bench -p esker --bench reopen -- [KEYS] [DIR]
//! ```
//! The database is filled by a child process; for the second part another child writes to a log
//! that is never given back (its memtable is larger than what it writes) and dies without closing.

use esker::{Db, Options, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const LOGGED: u64 = 1_500_000;
const VALUE: [u8; 100] = [b'v'; 100];

fn main() -> Result<()> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let arguments: Vec<String> =
        std::env::args().filter(|argument| argument != "--bench").collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    match (argument(1), argument(2), argument(3)) {
        (Some("fill"), Some(keys), Some(dir)) => fill(number(keys), Path::new(dir)),
        (Some("log"), Some(_), Some(dir)) => write_and_die(Path::new(dir)),
        (keys, dir, _) => {
            let scratch = std::env::temp_dir().join(format!("esker-reopen-{}", std::process::id()));
            let dir = dir.map_or(scratch, PathBuf::from);
            measure(keys.unwrap_or("10000000"), &dir)?;
            std::fs::remove_dir_all(&dir).ok();
            Ok(())
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

fn fill(keys: u64, dir: &Path) -> Result<()> {
    let db = Db::open(dir)?;
    for n in 0..keys {
        db.insert(key(n, keys), VALUE)?;
    }
    db.wait_until_idle()?;
    db.close()
}

/// Options under which nothing that is written here is flushed.
fn unflushed() -> Options {
    let mut options = Options::default();
    options.memtable_bytes = Some(1 << 30);
    options
}

fn write_and_die(dir: &Path) -> Result<()> {
    let db = Db::open_with(dir, unflushed())?;
    for n in 0..LOGGED {
        db.insert(key(n, LOGGED), VALUE)?;
    }
    // As a kill would: no destructor runs, nothing is flushed.
    std::process::abort();
}

fn child(what: &str, keys: &str, dir: &Path) {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("reopen"));
    let status = Command::new(program).args([what, keys]).arg(dir).status();
    println!("{what}: {}", status.map_or_else(|e| e.to_string(), |s| s.to_string()));
}

fn measure(keys: &str, dir: &Path) -> Result<()> {
    child("fill", keys, dir);
    let mut clean = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let db = Db::open(dir)?;
        clean.push(started.elapsed());
        let stats = db.stats();
        let entries: u64 = stats.trees.iter().map(|tree| tree.base.entries).sum();
        println!("clean open: {:?} ({entries} entries)", clean[clean.len() - 1]);
        db.close()?;
    }
    let mut killed = Vec::new();
    let mut logged = 0;
    for round in 0..ROUNDS {
        let place = dir.with_extension(format!("killed-{round}"));
        child("log", "-", &place);
        // Each record has a header of 24 bytes and 4 bytes around its key and value.
        logged = LOGGED * (24 + 4 + 16 + 100);
        let started = Instant::now();
        let db = Db::open_with(&place, unflushed())?;
        killed.push(started.elapsed());
        println!("open after a kill: {:?}", killed[round]);
        db.close()?;
        std::fs::remove_dir_all(&place).ok();
    }
    let (clean, killed) = (median(clean), median(killed));
    let rate = logged as f64 / killed.as_secs_f64() / 1e6;
    println!("median: clean {clean:?}; after a kill {killed:?} for {logged} bytes, {rate:.0} MB/s");
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
