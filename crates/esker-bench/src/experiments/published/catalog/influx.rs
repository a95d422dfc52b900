//! InfluxDB's choice of a storage engine, 2014.
//!
//! Time series are written and read, half of the points are deleted, and the tree is compacted. No
//! figures of single steps are kept from the publication; `differs` has its findings in words.

use crate::engines::Durability;
use crate::experiments::published::experiment::{Action, Experiment, Step};
use crate::experiments::published::influx::Phase;
use crate::harness::settings::Settings;

pub const INFLUXDB: Experiment = Experiment {
    name: "influxdb",
    about: "time series: write, query, delete half, compact, query, write again; time and disk size",
    source: "InfluxDB, 2014; RocksDB, LevelDB, HyperLevelDB and LMDB with defaults",
    unit: "points",
    scale: 1_000_000,
    durability: Durability::Process,
    value_size: 11,
    differs: &[
        "Half of the points are deleted by one range delete for each series where the engine has \
         such a call, else key by key; there, keys were deleted one by one.",
        "Half of the points is what lies before the middle of the time, in every series.",
        "No figures of single steps are kept from the publication: LevelDB was smallest on disk, \
         RocksDB best at reads and deletes, HyperLevelDB best at writes; LMDB, best at most below \
         30M points, never gave space back.",
    ],
    settings: |settings| {
        (settings.key_size, settings.value_size, settings.duration) = (24, 11, None);
        settings.batch_size = 1_000;
    },
    steps,
    published: |_| Vec::new(),
};

fn steps(_: &Settings) -> Vec<Step> {
    let step =
        |name: &str, about, phase| Step { name: name.into(), about, action: Action::Influx(phase) };
    vec![
        step("write", "write all points, 1,000 a batch, each of another series", Phase::Write),
        step("query", "scan every series and compare each key with its end", Phase::Query),
        step("delete half", "delete the older half of every series", Phase::Delete),
        step("compact", "bring the whole tree into its final shape", Phase::Compact),
        step("query half", "scan every series again", Phase::QueryHalf),
        step("write half", "write half as many new points", Phase::WriteHalf),
    ]
}
