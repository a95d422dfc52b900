//! Tests of the whole engine that need no process of their own, and are no campaign.
//!
//! One program, because each that is linked by itself takes longer to link than to run.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod branches;
mod checkpoint;
mod front_page;
mod golden;
mod interrupted_open;
mod longest_bounds;
mod readme;
mod rules;
mod serializable;

use esker::Options;
use esker::fs::Fs;
use std::sync::Arc;

/// Sizes so small that little data makes many runs and partitions.
fn options(fs: Arc<dyn Fs>) -> Options {
    let mut options = Options::default();
    options.memory = Some(2 << 20);
    options.memtable_bytes = Some(16 << 10);
    options.partition_bytes = 16 << 10;
    options.segment_bytes = 4 << 10;
    options.block_bytes = 512;
    options.log_segment_bytes = 32 << 10;
    options.workers = Some(1);
    options.sync_interval = None;
    options.fs = fs;
    options
}
