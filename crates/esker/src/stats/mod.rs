//! Statistics: what is counted while the database works, and what a program sees of it.
//!
//! [`counters`] is written by the threads that call the database and by its workers. [`report`] holds
//! the plain data that `Db::stats` returns. `table.rs` names every counter once: both follow from it,
//! and so do all outputs.

pub mod counters;
pub mod report;
mod table;

pub use report::{
    BytesWritten, HeldUse, Latency, LevelShape, MemoryUse, SegmentShape, Stalls, Stats, TreeShape,
};
