//! The public interface: a database, its keyspaces, batches, snapshots, iterators.
//!
//! This is a thin layer over `db`: it checks arguments, encodes operations and turns ranges into
//! bounds. Handles are reference-counted and share one core, so the database closes when the last
//! of them is dropped. No code here holds a lock while it calls `db`.

mod batch;
mod batch_operations;
mod branch;
pub mod cached;
mod conditional;
mod contents;
mod cursor;
mod database;
mod explain;
mod handle;
mod in_place;
mod ingestion;
mod iterator;
pub mod kept;
mod keyspace;
mod maintenance;
mod offline;
mod options;
mod order_statistics;
mod pinned;
mod range;
mod reads;
mod sampling;
mod shorthands;
mod sizes;
mod snapshot;
mod stats;
mod streamed;
mod together;
mod traits;
mod transaction;
mod transaction_iter;
mod typed;
mod value;
mod value_reader;

pub use crate::base::{
    Append, Associative, AssociativeOperator, Clock, CompactionFilter, Comparator, CounterI64,
    CounterU64, Decision, Max, MergeOperator, OperatorResult, SystemClock,
};
pub use crate::error::{Problem, VerifyReport};
pub use crate::events::{Event, EventKind, EventListener};
pub use crate::monitor::statistics::{Observed, ObservedState};
pub use crate::trace::{
    BlockCounts, Explanation, Outcome, SlowOperation, Step, StepSource, WaitTime,
};
pub use batch::{Batch, reserve};
pub use batch_operations::{BatchIter, BatchOperation};
pub use contents::IntoIter;
pub use cursor::Cursor;
pub use database::Db;
pub use ingestion::Ingestion;
pub use iterator::Iter;
pub use keyspace::Keyspace;
pub use options::{Compression, Durability, LogKind, Options, Recovery};
pub use order_statistics::CountEstimate;
pub use pinned::PinnedValue;
pub use snapshot::Snapshot;
pub use stats::{
    BranchUse, BytesWritten, HeldUse, Latency, LevelShape, LogHolder, LogUse, MemoryUse, Metric,
    MetricKind, MetricUnit, Pace, PaceMode, Sample, SamplePart, SegmentShape, SnapshotUse, Stalls,
    Stats, TreeShape, WaitTimes,
};
pub use traits::KeyspaceOptions;
pub use transaction::{Savepoint, Transaction, TransactionOptions};
pub use transaction_iter::TransactionIter;
pub use typed::{KeyCodec, KeyFor, Typed, TypedIter, ValueCodec, ValueFor};
pub use value_reader::ValueReader;
