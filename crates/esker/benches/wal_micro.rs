//! What one record costs: 132-byte payloads through the commit pipeline, without a memtable.
//!
//! `cargo bench -p esker --bench wal_micro -- [DIRECTORY] [RECORDS]`
//!
//! A helper thread prepares log files and gives them back, as the database does.

use esker::LogKind;
use esker::internals::commit::{Class, LogConfig, Pipeline};
use esker::internals::sync::{Latch, Signal};
use esker::internals::waits::Cause;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const PAYLOAD: usize = 132;

fn main() -> esker::Result<()> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let base = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let records = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2_000_000u64);
    for (kind, count) in [(LogKind::Mapped, records), (LogKind::Plain, records / 8)] {
        for threads in [1, 4] {
            let dir = base.join(format!("esker-wal-micro-{}", std::process::id()));
            let outcome = run(&dir, kind, threads, count);
            let _ = std::fs::remove_dir_all(&dir);
            outcome?;
        }
    }
    let dir = base.join(format!("esker-wal-micro-{}", std::process::id()));
    let outcome = replay(&dir, records);
    let _ = std::fs::remove_dir_all(&dir);
    outcome
}

/// Times recovery of a log that is in the page cache.
fn replay(dir: &Path, records: u64) -> esker::Result<()> {
    let log = Pipeline::create(
        LogConfig::new(esker::fs::os(), dir.to_owned()),
        8,
        Arc::new(Latch::new()),
    )?;
    write(&log, records);
    drop(log);
    let begun = Instant::now();
    let mut bytes = 0;
    let recovered = esker::internals::wal::recover(
        &*esker::fs::os(),
        dir,
        8,
        esker::internals::wal::Policy::Refuse,
        |_, _, payload| {
            bytes += payload.len();
            Ok(())
        },
    )?;
    let rate = recovered.bytes as f64 / begun.elapsed().as_secs_f64() / 1e6;
    println!("replay: {} records, {bytes} payload bytes, {rate:.0} MB/s", recovered.batches);
    Ok(())
}

fn run(dir: &Path, kind: LogKind, threads: u64, records: u64) -> esker::Result<()> {
    let wake = Arc::new(Signal::new());
    let mut config = LogConfig::new(esker::fs::os(), dir.to_owned());
    config.kind = kind;
    let waits = Arc::clone(&config.waits);
    let signal = Arc::clone(&wake);
    config.on_prepare_needed = Some(Box::new(move || signal.notify()));
    let log = Pipeline::create(config, 8, Arc::new(Latch::new()))?;
    let done = AtomicBool::new(false);
    // The first pass makes and sizes the log files, the second is timed.
    for pass in 0..2 {
        done.store(false, Ordering::Relaxed);
        let begun = Instant::now();
        let mut slowest = 0;
        let mut took = begun.elapsed();
        std::thread::scope(|scope| {
            let (log, done, wake) = (&log, &done, &wake);
            scope.spawn(move || housekeeping(log, done, wake));
            let writers: Vec<_> =
                (0..threads).map(|_| scope.spawn(move || write(log, records / threads))).collect();
            for writer in writers {
                slowest = slowest.max(writer.join().unwrap_or_default());
            }
            took = begun.elapsed();
            done.store(true, Ordering::Relaxed);
            wake.notify();
        });
        if pass == 1 {
            let nanos = took.as_nanos() as u64 / records;
            println!(
                "{kind:?}, {threads} threads: {nanos} ns per record, slowest {} us, waited {:?}",
                slowest / 1000,
                waits.of(Cause::LogSpace).total
            );
        }
    }
    log.close(&[]).map(|_| ())
}

/// Writes, and returns the slowest of a sample, in nanoseconds.
fn write(log: &Pipeline, count: u64) -> u64 {
    let payload = [7; PAYLOAD];
    let mut slowest = 0;
    let mut last = Instant::now();
    for number in 0..count {
        let written = log.write(&payload, 1, Class::Process, |_| Ok(()), |(), _| Ok(()));
        if let Err(error) = written {
            eprintln!("{error}");
            return 0;
        }
        if number % 64 == 0 {
            slowest = slowest.max(last.elapsed().as_nanos() as u64);
            last = Instant::now();
        }
    }
    slowest
}

fn housekeeping(log: &Pipeline, done: &AtomicBool, wake: &Signal) {
    let mut released = log.visible();
    while !done.load(Ordering::Relaxed) {
        let epoch = wake.epoch();
        if let Err(error) = log.prepare_ahead() {
            eprintln!("{error}");
        }
        // As after a flush of 32 MiB.
        if log.visible() - released > 32 << 20 {
            released = log.visible();
            if let Err(error) = log.release_before(released) {
                eprintln!("{error}");
            }
        }
        if !done.load(Ordering::Relaxed) {
            wake.wait_past(epoch);
        }
    }
}
