//! What a change of the tree costs by the number of its partitions: the time of a flush of one entry.
//!
//! `cargo bench -p esker --bench changes -- DIR` fills databases under DIR (which must not exist) with
//! partitions of 4 KiB, so that many are cheap to make, and prints a line for each number of them. The
//! time includes the file of the flush and its syncs, so the difference between lines is what
//! counts; DIR is best in memory.

use esker::internals::options::SmallTiers;
use esker::{Compression, Db, Options};
use esker_testkit::mix;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Flushes that are measured.
const ROUNDS: u64 = 201;
/// Bytes of a value: with its key, about 36 entries fill a partition.
const VALUE_BYTES: usize = 100;

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn measure(directory: &Path, entries: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 4 << 10;
    options.compression = Compression::None;
    // Without tiers a flush goes to the partitions.
    let none = SmallTiers { count: 0, fan_out: 12, runs: 8, direct: 8, tightens: false };
    options.small_tiers = Some(none);
    let db = Db::open_with(directory, options)?;
    for number in 0..entries {
        db.insert(key(number), [b'v'; VALUE_BYTES])?;
    }
    db.flush()?;
    db.wait_until_idle()?;
    let partitions = db.stats().trees[0].partitions;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        db.insert(key(mix(round) % entries), [b'w'; VALUE_BYTES])?;
        let begun = Instant::now();
        db.flush()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e6;
    println!("{partitions} partitions: {:.0} us (from {:.0} to {:.0})", at(50), at(10), at(90));
    db.close()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let directory = PathBuf::from(arguments.next().ok_or("usage: changes DIR")?);
    std::fs::create_dir(&directory)?;
    for entries in [40_000, 160_000, 640_000] {
        measure(&directory.join(entries.to_string()), entries)?;
    }
    Ok(())
}
