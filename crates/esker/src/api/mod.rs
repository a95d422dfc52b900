//! The public interface.

mod batch;
mod database;
mod iterator;
mod keyspace;
mod options;
mod snapshot;
mod stats;

pub use crate::base::Comparator;
pub use crate::db::{Problem, VerifyReport};
pub use batch::Batch;
pub use database::Db;
pub use iterator::Iter;
pub use keyspace::Keyspace;
pub use options::{Compression, Durability, LogKind, Options, Recovery};
pub use snapshot::Snapshot;
pub use stats::{BytesWritten, Latency, LevelShape, MemoryUse, Stalls, Stats, TreeShape};
