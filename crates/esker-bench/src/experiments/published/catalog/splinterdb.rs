//! RocksDB against SplinterDB, 2022.
//!
//! Inserts, point queries and range queries, on data that fit into memory and on data that do not.

use super::step::workload;
use crate::Kind;
use crate::engines::Durability;
use crate::experiments::published::experiment::{Experiment, Step};
use crate::experiments::published::figure::{Published, nearest};
use crate::harness::settings::Settings;
use std::time::Duration;

pub const ROCKSDB_VS_SPLINTERDB: Experiment = Experiment {
    name: "rocksdb-vs-splinterdb",
    about: "insert a random permutation, wait for the debt, then point and range queries, one thread",
    source: "Mark Callaghan, 2022; 16 GB of memory, no log, no sync",
    unit: "keys",
    scale: 50_000_000,
    durability: Durability::Buffered,
    value_size: 100,
    differs: &[
        "Each query step lasts 1,200 s at 50M keys and above, and in proportion below, but at least \
         10 s, unless --duration is given.",
        "Larger than memory: give --memory-limit; there, the machine had 16 GB for 2,000M keys.",
        "Keys have 16 bytes. Requests to the device are those of the whole device.",
    ],
    settings: |settings| {
        (settings.key_size, settings.compression_ratio, settings.scan_length) = (16, 0.5, 10);
        settings.threads = 1;
        let share = settings.num as f64 / FULL as f64 * FULL_SECONDS;
        let length = Duration::from_secs_f64(share.clamp(LEAST_SECONDS, FULL_SECONDS));
        settings.duration = settings.duration.or(Some(length));
    },
    steps,
    published,
};

/// The scale from which on a query step lasts as long as published.
const FULL: u64 = 50_000_000;
const FULL_SECONDS: f64 = 1_200.0;
const LEAST_SECONDS: f64 = 10.0;

fn steps(_: &Settings) -> Vec<Step> {
    vec![
        workload("insert", "write every key once, in random order", Kind::FillUniqueRandom, 1),
        workload("wait", "wait until background work is done", Kind::WaitForIdle, 1),
        workload("flush", "write memory out to files", Kind::Flush, 1),
        workload("point queries", "read random keys", Kind::ReadRandom, 1),
        workload("range queries", "seek random keys and read 10 entries", Kind::SeekRandom, 1),
        workload("shape", "the engine's own statistics: its tree by level", Kind::Stats, 1),
    ]
}

/// A system: inserts, point queries and range queries a second, write amplification.
type Row = (&'static str, [f64; 3], f64);

const CACHED_100: [Row; 3] = [
    ("SplinterDB", [533_584.0, 246_964.0, 31_236.0], 1.3),
    ("RocksDB leveled", [483_519.0, 191_592.0, 76_600.0], 4.5),
    ("RocksDB universal", [488_971.0, 180_769.0, 57_394.0], 2.9),
];
const CACHED_200: [Row; 3] = [
    ("SplinterDB", [474_446.0, 261_444.0, 33_538.0], 1.1),
    ("RocksDB leveled", [495_325.0, 188_851.0, 75_122.0], 3.7),
    ("RocksDB universal", [500_862.0, 201_667.0, 83_686.0], 2.8),
];
const LARGE_100: [Row; 3] = [
    ("SplinterDB", [308_740.0, 6_110.0, 1_060.0], 3.7),
    ("RocksDB leveled", [181_556.0, 8_428.0, 3_056.0], 14.1),
    ("RocksDB universal, 1500M", [393_873.0, 8_144.0, 1_889.0], 6.0),
];
const LARGE_200: [Row; 3] = [
    ("SplinterDB", [221_007.0, 7_175.0, 908.0], 3.7),
    ("RocksDB leveled", [107_692.0, 8_393.0, 2_436.0], 13.0),
    ("RocksDB universal, 750M", [324_555.0, 8_621.0, 2_763.0], 5.3),
];
/// Reads of the device for a point and a range query, of the same systems at 2,000M keys.
const LARGE_100_READS: [[f64; 2]; 3] = [[1.29, 7.42], [0.98, 2.34], [1.00, 3.24]];

/// Larger than memory if a limit is set that the data do not fit in.
fn published(settings: &Settings) -> Vec<Published> {
    let bytes = settings.num * (settings.key_size + settings.value_size) as u64;
    let large = settings.memory_limit.is_some_and(|limit| limit < bytes);
    let wide = nearest(&[100, 200], settings.value_size as u64) == 200;
    let (scale, rows) = match (large, wide) {
        (false, false) => (50_000_000, &CACHED_100),
        (false, true) => (25_000_000, &CACHED_200),
        (true, false) => (2_000_000_000, &LARGE_100),
        (true, true) => (1_000_000_000, &LARGE_200),
    };
    let steps = ["insert", "point queries", "range queries"];
    let mut figures = Vec::new();
    for (place, step) in steps.into_iter().enumerate() {
        for (row, (system, rates, amplification)) in rows.iter().enumerate() {
            let mut figure = Published::rate(step, system, scale, rates[place]);
            figure.write_amplification = (place == 0).then_some(*amplification);
            if large && !wide && place > 0 {
                figure.device_reads_per_op = Some(LARGE_100_READS[row][place - 1]);
            }
            figures.push(figure);
        }
    }
    figures
}
