//! RocksDB against LevelDB, April 2015.
//!
//! Fills, overwrites, reads beside a writer and random reads, with 1 and 16 threads. All steps are
//! workloads of `esker bench`.

use super::step::workload;
use crate::Kind;
use crate::engines::Durability;
use crate::experiments::published::experiment::{Experiment, Step};
use crate::experiments::published::figure::{Published, nearest};
use crate::harness::settings::Settings;

pub const LEVELDB_VS_ROCKSDB: Experiment = Experiment {
    name: "leveldb-vs-rocksdb",
    about: "fill in order, overwrite, read beside a writer, read at random, with 1 and 16 threads",
    source: "Mark Callaghan, April 2015; 40 hardware threads, 144 GB of memory",
    unit: "keys",
    scale: 1_000_000,
    durability: Durability::Process,
    value_size: 800,
    differs: &[
        "There, every step was a process of its own that ran for a fixed time; here one process runs \
         all steps, and each does as many operations as there are keys unless --duration is given.",
        "There, RocksDB ran with and without statistics; here an engine's statistics are as the \
         adapter sets them, which the engine's settings say.",
    ],
    settings: |settings| {
        (settings.key_size, settings.value_size, settings.compression_ratio) = (16, 800, 0.5);
        settings.write_rate = 1_000;
    },
    steps,
    published,
};

const OVERWRITE: &str = "overwrite, 1 thread";
const BESIDE_1: &str = "readwhilewriting, 1 reader";
const BESIDE_16: &str = "readwhilewriting, 16 readers";
const READ_1: &str = "readrandom, 1 thread";
const READ_16: &str = "readrandom, 16 threads";
const AGAIN: &str = "overwrite again, 1 thread";
const OVERWRITE_16: &str = "overwrite, 16 threads";

fn steps(_: &Settings) -> Vec<Step> {
    let random = "write random keys over present ones";
    let beside = "read random keys beside a writer of 1,000 puts a second";
    vec![
        workload("fillseq", "write all keys in order", Kind::FillSeq, 1),
        workload(OVERWRITE, random, Kind::Overwrite, 1),
        workload(BESIDE_1, beside, Kind::ReadWhileWriting, 1),
        workload(BESIDE_16, beside, Kind::ReadWhileWriting, 16),
        workload(READ_1, "read random keys", Kind::ReadRandom, 1),
        workload(READ_16, "read random keys", Kind::ReadRandom, 16),
        workload(AGAIN, random, Kind::Overwrite, 1),
        workload(OVERWRITE_16, random, Kind::Overwrite, 16),
    ]
}

/// What was measured: a step at a scale; with RocksDB's statistics on, off, and LevelDB.
type Row = (&'static str, [f64; 3]);

const AT_1M: [Row; 8] = [
    ("fillseq", [231_641.0, 243_161.0, 156_299.0]),
    (OVERWRITE, [145_352.0, 157_914.0, 21_344.0]),
    (BESIDE_1, [113_814.0, 116_339.0, 73_062.0]),
    (BESIDE_16, [850_609.0, 891_225.0, 535_906.0]),
    (READ_1, [186_651.0, 192_948.0, 117_716.0]),
    (READ_16, [771_182.0, 803_999.0, 686_341.0]),
    (AGAIN, [148_254.0, 152_709.0, 24_396.0]),
    (OVERWRITE_16, [109_678.0, 110_883.0, 18_517.0]),
];
const AT_10M: [Row; 8] = [
    ("fillseq", [226_324.0, 242_528.0, 140_095.0]),
    (OVERWRITE, [86_170.0, 86_120.0, 12_281.0]),
    (BESIDE_1, [102_422.0, 95_775.0, 54_696.0]),
    (BESIDE_16, [687_739.0, 727_981.0, 513_395.0]),
    (READ_1, [143_811.0, 143_809.0, 95_057.0]),
    (READ_16, [604_278.0, 676_858.0, 646_517.0]),
    (AGAIN, [83_208.0, 85_342.0, 13_220.0]),
    (OVERWRITE_16, [82_685.0, 83_576.0, 11_421.0]),
];
const AT_100M: [Row; 8] = [
    ("fillseq", [227_738.0, 238_645.0, 64_599.0]),
    (OVERWRITE, [72_139.0, 73_602.0, 6_235.0]),
    (BESIDE_1, [45_467.0, 47_663.0, 12_981.0]),
    (BESIDE_16, [501_563.0, 509_846.0, 173_531.0]),
    (READ_1, [54_345.0, 57_677.0, 21_743.0]),
    (READ_16, [572_986.0, 585_050.0, 339_314.0]),
    (AGAIN, [74_292.0, 72_860.0, 7_026.0]),
    (OVERWRITE_16, [74_382.0, 75_865.0, 5_603.0]),
];

fn published(settings: &Settings) -> Vec<Published> {
    const M: u64 = 1_000_000;
    let scale = nearest(&[M, 10 * M, 100 * M, 1_000 * M], settings.num);
    let rows: &[Row] = match scale {
        M => &AT_1M,
        scale if scale == 10 * M => &AT_10M,
        scale if scale == 100 * M => &AT_100M,
        _ => {
            let rate = |step, engine, rate| Published::rate(step, engine, scale, rate);
            return vec![
                rate("fillseq", "RocksDB", 233_126.0),
                rate("fillseq", "LevelDB", 7_054.0),
                rate(OVERWRITE, "RocksDB", 65_169.0),
                rate(BESIDE_1, "RocksDB", 6_790.0),
                rate(BESIDE_16, "RocksDB", 72_670.0),
            ];
        }
    };
    let systems = ["RocksDB, statistics on", "RocksDB, statistics off", "LevelDB"];
    let row = |(step, rates): &Row| {
        let rates = systems.iter().zip(*rates);
        rates.map(|(system, rate)| Published::rate(step, system, scale, rate)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(row).collect()
}
