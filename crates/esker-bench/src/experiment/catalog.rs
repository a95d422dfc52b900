//! The list of experiments.

mod influx;
mod inserts;
mod leveldb;
mod links;
mod splinterdb;

use super::{Action, Experiment, Step};
use crate::{Kind, Workload};

/// All of them, in the order in which they are listed.
pub static ALL: &[Experiment] = &[
    leveldb::LEVELDB_VS_ROCKSDB,
    splinterdb::ROCKSDB_VS_SPLINTERDB,
    influx::INFLUXDB,
    inserts::BILLION_INSERTS,
    links::LINKBENCH_LOAD,
    links::LINKBENCH_LOAD_8,
];

/// A step that is a workload.
fn workload(name: &str, about: &'static str, kind: Kind, threads: usize) -> Step {
    let threads = (!kind.is_maintenance()).then_some(threads);
    Step { name: name.into(), about, action: Action::Workload(Workload { kind, threads }) }
}
