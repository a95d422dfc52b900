//! Tests of the whole engine that need no process of their own, and are no campaign.
//!
//! One program, because each that is linked by itself takes longer to link than to run.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod background_events;
mod branches;
mod causes;
mod checkpoint;
mod cuts;
mod events;
mod front_page;
mod golden;
mod ingestion;
mod interrupted_open;
mod longest_bounds;
mod operations;
mod points;
mod push_faults;
mod readme;
mod replay;
mod rest;
mod rules;
mod serializable;
mod settling;
mod shared_work;
mod temperature;
mod tiers;
mod try_write;

use esker::Options;
use esker::fs::Fs;
use esker_testkit::harness::tiny_options;
use std::sync::Arc;

/// Sizes so small that little data makes many runs and partitions.
fn options(fs: Arc<dyn Fs>) -> Options {
    let mut options = tiny_options();
    options.sync_interval = None;
    options.fs = fs;
    options
}

/// The same, with values of a few dozen bytes separated from their keys.
fn separating(fs: Arc<dyn Fs>) -> Options {
    let mut options = options(fs);
    options.separate_values_from = Some(40);
    options
}
