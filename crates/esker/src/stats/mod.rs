//! Statistics: what the database counts, and what a program sees of it.
//!
//! The threads that call the database and its workers write [`counters`]. [`report`] holds the
//! plain data that `Db::stats` returns. `table.rs` names every metric once; both modules,
//! [`metrics`] and all outputs are derived from it. `encoding.rs` is for other processes.

pub mod branches;
pub mod clients;
pub mod counters;
mod encoding;
pub mod gather;
pub mod held;
pub mod kinds;
mod lists;
pub mod measured;
pub mod metrics;
mod openmetrics;
pub mod report;
mod resident;
pub mod shapes;
mod table;
mod values;

pub use held::{BranchUse, HeldUse, SnapshotUse};
pub use kinds::{MetricKind, MetricUnit, SamplePart};
pub use metrics::{Metric, Sample};
pub use report::{
    BytesWritten, Latency, LevelShape, LogHolder, LogUse, MemoryUse, Pace, SegmentShape, Stalls,
    Stats, TreeShape, WaitTimes,
};
