//! Acunu's billion inserts, 2011.
//!
//! Random inserts go on until there are a billion keys; what matters is the course of the rate, not its
//! mean.

use crate::engines::Durability;
use crate::experiments::published::experiment::{Action, Experiment, Step};
use crate::harness::settings::Settings;

pub const BILLION_INSERTS: Experiment = Experiment {
    name: "billion-inserts",
    about: "random inserts with a sample for every 10,000: does the rate hold, are there pauses?",
    source: "Acunu, August 2011; LevelDB 1.2 on a solid-state disk",
    unit: "inserts",
    scale: 1_000_000_000,
    durability: Durability::Process,
    value_size: 100,
    differs: &[
        "Published as a course and not as figures: the rate fell from about 100,000 inserts a second \
         to under 10,000, between bursts near 300,000 and full pauses, while the device became busy \
         all the time and its writes fell from 40 to 10 MB/s.",
        "Utilisation and rates of the device are those of the whole device, from /proc/diskstats.",
    ],
    settings: |settings| {
        (settings.key_size, settings.compression_ratio) = (16, 0.5);
        (settings.value_size, settings.duration) = (100, None);
    },
    steps,
    published: |_| Vec::new(),
};

fn steps(_: &Settings) -> Vec<Step> {
    vec![Step {
        name: "inserts".into(),
        about: "write random keys, 100 bytes each; a sample for every 10,000",
        action: Action::Inserts,
    }]
}
