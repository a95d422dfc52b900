//! Re-exports of the statistics, which the layer below gathers.

pub use crate::stats::report::{
    BytesWritten, HeldUse, Latency, LevelShape, MemoryUse, SegmentShape, Stalls, Stats, TreeShape,
};
