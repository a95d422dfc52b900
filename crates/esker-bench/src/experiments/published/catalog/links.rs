//! LinkBench, whose load phase was measured in 2016.
//!
//! The load is run with one loader or with eight, and the request phase follows. Only the load was
//! published.

use crate::engines::Durability;
use crate::experiments::published::experiment::{Action, Experiment, Step};
use crate::experiments::published::links::Phase;
use crate::harness::settings::Settings;

pub const LINKBENCH_LOAD: Experiment = Experiment {
    name: "linkbench-load",
    about: "LinkBench: load links, their index and counts by one loader, then answer requests",
    settings: |settings| fixed(settings, 1),
    ..LOAD
};

pub const LINKBENCH_LOAD_8: Experiment = Experiment {
    name: "linkbench-load-8",
    about: "LinkBench: load links, their index and counts by eight loaders, then answer requests",
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
        "There, MySQL and MongoDB; here engines answer for the same tables, embedded ones in one ordered \
         map.",
        "The load is LinkBench's in bulk: 1,024 links in one transaction, with their index entries, and \
         1,024 counts in another.",
        "The number of links of an id follows LinkBench's measured distribution, thinned out to 43 \
         points with straight lines between them; two link types share them.",
        "Published was the load alone, with CPU time and context switches for an insert: compare its \
         figures of these names. The requests behind it are LinkBench's default mix without those for \
         nodes, which were 24 of 100; the others are as frequent among themselves.",
        "As many requests as ids are made, unless --duration is given. Links that are added or updated \
         are a millisecond apart instead of having the time of the clock.",
    ],
    settings: |_| (),
    steps,
    published: |_| Vec::new(),
};

/// Class `process` is the nearest to "no sync on commit" that keeps a log.
fn fixed(settings: &mut Settings, loaders: usize) {
    settings.threads = loaders;
    (settings.value_size, settings.compression_ratio) = (255, 0.3);
}

fn steps(_: &Settings) -> Vec<Step> {
    let step =
        |name: &str, about, phase| Step { name: name.into(), about, action: Action::Links(phase) };
    vec![
        step("load", "write every link with its index entry, and every count", Phase::Load),
        step("requests", "add, delete and update links, count, get and list them", Phase::Requests),
    ]
}
