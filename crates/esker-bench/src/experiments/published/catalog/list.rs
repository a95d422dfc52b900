//! The list of experiments, and how one is found by its name.
//!
//! Lists show the experiments in this order. A name is not sensitive to case.

use super::{influx, inserts, leveldb, links, splinterdb};
use crate::experiments::published::experiment::Experiment;
use crate::{Error, Result};

/// All of them, in the order in which they are listed.
pub static ALL: &[Experiment] = &[
    leveldb::LEVELDB_VS_ROCKSDB,
    splinterdb::ROCKSDB_VS_SPLINTERDB,
    influx::INFLUXDB,
    inserts::BILLION_INSERTS,
    links::LINKBENCH_LOAD,
    links::LINKBENCH_LOAD_8,
];

/// The experiment of this name.
pub fn find(name: &str) -> Result<&'static Experiment> {
    let known = |experiment: &&Experiment| experiment.name.eq_ignore_ascii_case(name);
    ALL.iter().find(known).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|experiment| experiment.name).collect();
        Error::usage(format!("there is no experiment `{name}`: choose from {}", names.join(", ")))
    })
}
