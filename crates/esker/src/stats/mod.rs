//! Statistics: what the database counts, and what a program sees of it.
//!
//! The threads that call the database and its workers write [`counters`]. [`report`] holds the
//! plain data that `Db::stats` returns. `table.rs` names every counter once; both modules and all
//! outputs are derived from it.

pub mod counters;
pub mod report;
pub mod shapes;
mod table;

pub use report::{
    BytesWritten, HeldUse, Latency, LevelShape, MemoryUse, SegmentShape, Stalls, Stats, TreeShape,
};
