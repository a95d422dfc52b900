//! Re-exports of the statistics, which lower layers gather.

pub use crate::stats::metrics::{Metric, MetricKind, MetricUnit, Sample, SamplePart};
pub use crate::stats::report::{
    BytesWritten, HeldUse, Latency, LevelShape, MemoryUse, SegmentShape, Stalls, Stats, TreeShape,
};
