//! Statistics: what the database counts, and what a program sees of it.
//!
//! The threads that call the database and its workers write [`counters`]. [`report`] holds the
//! plain data that `Db::stats` returns. `table.rs` names every metric once; both modules,
//! [`metrics`] and all outputs are derived from it. `encoding.rs` is for other processes.

pub mod counters;
mod encoding;
mod lists;
pub mod metrics;
pub mod report;
pub mod shapes;
mod table;
mod values;

pub use metrics::{Metric, MetricKind, MetricUnit, Sample, SamplePart};
pub use report::{
    BytesWritten, HeldUse, Latency, LevelShape, MemoryUse, SegmentShape, Stalls, Stats, TreeShape,
};
