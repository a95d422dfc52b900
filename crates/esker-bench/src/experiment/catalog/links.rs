//! The load phase of LinkBench, 2016.

use super::super::{Action, Experiment, Step};
use crate::settings::{Durability, Settings};

pub const LINKBENCH_LOAD: Experiment = Experiment {
    name: "linkbench-load",
    about: "LinkBench's load of links, their index and counts, by one loader",
    settings: |settings| fixed(settings, 1),
    ..LOAD
};

pub const LINKBENCH_LOAD_8: Experiment = Experiment {
    name: "linkbench-load-8",
    about: "LinkBench's load of links, their index and counts, by eight loaders",
    scale: 4_000_000,
    settings: |settings| fixed(settings, 8),
    ..LOAD
};

const LOAD: Experiment = Experiment {
    name: "",
    about: "",
    source: "Mark Callaghan, February 2016; MySQL and MongoDB with several engines, all data cached",
    unit: "ids",
    scale: 1_000_000,
    durability: Durability::Process,
    value_size: 255,
    differs: &[
        "There, MySQL and MongoDB; here their tables in one ordered map of the engine itself.",
        "Loading alone: 1,024 links in one atomic batch, with their index entries, and 1,024 counts \
         in another, as LinkBench loads in bulk; no transaction reads what it changes.",
        "The number of links of an id follows LinkBench's measured distribution, thinned out to 43 \
         points with straight lines between them; two link types share them.",
        "Published as CPU time and context switches for an insert: compare CPU/op.",
    ],
    settings: |_| (),
    steps,
    published: |_| Vec::new(),
};

/// Class `process` is the nearest to "no sync on commit" that keeps a log.
fn fixed(settings: &mut Settings, loaders: usize) {
    (settings.threads, settings.duration) = (loaders, None);
    (settings.value_size, settings.compression_ratio) = (255, 0.3);
}

fn steps(_: &Settings) -> Vec<Step> {
    vec![Step {
        name: "load".into(),
        about: "write every link with its index entry, and every count",
        action: Action::Links,
    }]
}
