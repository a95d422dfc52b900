//! Measures how fast sorted entries are ingested, beside how fast the device takes a plain file.
//!
//! ```text
//! cargo bench -p esker --bench ingestion -- [ENTRIES] [VALUE] [DIR] [THREADS]
//! ```
//! In each of five rounds a file of about as many bytes as the entries become is written and synced, in
//! pieces of 512 KiB, and then the entries are ingested and committed, with default options. The keys have 16
//! bytes and ascend; the values have `VALUE` bytes (84 if it is missing, so that an entry has 100), half of which
//! are random. With several threads each fills an ingestion of its own share, and one joins them.

use esker::{Db, Ingestion, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const PIECE: usize = 512 << 10;

fn main() -> Result<()> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |at: usize, otherwise: u64| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (entries, value, threads) = (number(0, 5_000_000), number(1, 84) as usize, number(3, 1));
    let scratch = std::env::temp_dir().join(format!("esker-ingestion-{}", std::process::id()));
    let dir = arguments.get(2).map_or(scratch, PathBuf::from);
    std::fs::create_dir_all(&dir).map_err(failed)?;
    println!("{entries} entries of {} bytes, {threads} threads, in {}", 16 + value, dir.display());
    println!(
        "| round | file MB/s | entries/s | MB/s of entries | MB/s of files | share of the file's |"
    );
    println!("|---|---|---|---|---|---|");
    let mut bytes = entries * (16 + value as u64) * 6 / 10;
    for round in 1..=ROUNDS {
        let plain = write_file(&dir.join("plain"), bytes).map_err(failed)?;
        let plain = bytes as f64 / plain.as_secs_f64();
        let took = ingest(&dir.join("db"), entries, value, threads.max(1), &mut bytes)?;
        let rate = |bytes: u64| bytes as f64 / took.as_secs_f64();
        println!(
            "| {round} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} |",
            plain / 1e6,
            rate(entries),
            rate(entries * (16 + value as u64)) / 1e6,
            rate(bytes) / 1e6,
            rate(bytes) / plain,
        );
    }
    std::fs::remove_dir_all(&dir).map_err(failed)
}

fn failed(error: std::io::Error) -> esker::Error {
    esker::Error::InvalidArgument { what: error.to_string() }
}

/// Random numbers, cheaply.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Writes a file in pieces and syncs it; how long that took.
fn write_file(path: &Path, bytes: u64) -> std::io::Result<Duration> {
    let mut noise = Noise(7);
    let piece: Vec<u8> = (0..PIECE / 8).flat_map(|_| noise.next().to_le_bytes()).collect();
    let start = Instant::now();
    let mut file = File::create(path)?;
    for _ in 0..bytes.div_ceil(PIECE as u64) {
        file.write_all(&piece)?;
    }
    file.sync_data()?;
    let took = start.elapsed();
    drop(file);
    std::fs::remove_file(path)?;
    Ok(took)
}

/// Adds the entries from `first` to before `end`.
fn fill(db: &Db, (first, end): (u64, u64), value: usize) -> Result<Ingestion> {
    let keyspace = db.default_keyspace();
    let mut ingestion = db.ingest()?;
    let (mut noise, mut bytes) = (Noise(first + 1), vec![b'v'; value]);
    for n in first..end {
        for part in bytes[..value / 2].chunks_exact_mut(8) {
            part.copy_from_slice(&noise.next().to_le_bytes());
        }
        let mut key = *b"key_____________";
        key[8..].copy_from_slice(&n.to_be_bytes());
        ingestion.insert(&keyspace, key, &bytes)?;
    }
    Ok(ingestion)
}

/// Ingests to a new database; how long that took with the commit. `bytes` gets the bytes of run files.
fn ingest(
    path: &Path,
    entries: u64,
    value: usize,
    threads: u64,
    bytes: &mut u64,
) -> Result<Duration> {
    let db = Db::open(path)?;
    let start = Instant::now();
    let share = entries.div_ceil(threads);
    let parts: Vec<Result<Ingestion>> = std::thread::scope(|scope| {
        let part = |number: u64| {
            let (db, first) = (&db, number * share);
            scope.spawn(move || {
                let mut part = fill(db, (first, entries.min(first + share)), value)?;
                part.sync()?;
                Ok(part)
            })
        };
        let running: Vec<_> = (1..threads).map(part).collect();
        let own = fill(&db, (0, entries.min(share)), value);
        let others = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(own).chain(others).collect()
    });
    let mut parts = parts.into_iter();
    if let Some(first) = parts.next() {
        let mut all = first?;
        for part in parts {
            all.join(part?)?;
        }
        all.commit()?;
    }
    let took = start.elapsed();
    *bytes = db.stats().written.ingestion;
    db.close()?;
    std::fs::remove_dir_all(path).map_err(failed)?;
    Ok(took)
}
