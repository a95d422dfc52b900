//! Re-exports of the statistics, which lower layers gather.

pub use crate::admission::PaceMode;
pub use crate::stats::held::{BranchUse, HeldUse, SnapshotUse};
pub use crate::stats::kinds::{MetricKind, MetricUnit, SamplePart};
pub use crate::stats::metrics::{Metric, Sample};
pub use crate::stats::report::{
    BytesWritten, Latency, LevelShape, LogHolder, LogUse, MemoryUse, Pace, SegmentShape, Stalls,
    Stats, TreeShape, WaitTimes,
};
