//! What the tests of a running database share: options under which everything happens all the
//! time, and seeds.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use esker::Options;
use esker_testkit::harness::tiny_options;
use std::path::Path;

/// Buffers so small that flushes, compactions, splits and evictions never stop.
pub fn tiny() -> Options {
    let mut options = tiny_options();
    options.partition_bytes = Some(32 << 10);
    options.log_file_bytes = 64 << 10;
    options.workers = Some(2);
    options
}

/// The seed of this run: `ESKER_SEED` or one drawn from the clock; it is printed.
pub fn seed(test: &str) -> u64 {
    let drawn = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("the clock stands after 1970").as_nanos() as u64
    };
    let given = std::env::var("ESKER_SEED").ok();
    let seed = given.map_or_else(drawn, |seed| seed.parse().expect("ESKER_SEED is a number"));
    eprintln!("{test}: ESKER_SEED={seed}");
    seed
}

/// `count` times `ESKER_ROUNDS`, which makes campaigns of these tests.
pub fn rounds(count: u64) -> u64 {
    let rounds = std::env::var("ESKER_ROUNDS").ok();
    count * rounds.map_or(1, |rounds| rounds.parse().expect("ESKER_ROUNDS is a number"))
}

/// A number in front of so many bytes that say nothing.
pub fn padded(number: u64, padding: u64) -> Vec<u8> {
    let mut value = number.to_be_bytes().to_vec();
    value.extend((0..padding).map(|i| (number.wrapping_mul(i + 3) >> 7) as u8));
    value
}

/// The number in front.
pub fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(*value.first_chunk().expect("values begin with a number"))
}

/// How many threads this process has.
#[cfg(target_os = "linux")]
pub fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("/proc is mounted").count()
}

/// The descriptors of this process that lead to something under `path`.
#[cfg(target_os = "linux")]
pub fn descriptors_under(path: &Path) -> Vec<std::path::PathBuf> {
    let open = std::fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(path))
        .collect()
}
