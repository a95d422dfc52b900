//! Esker: an embedded, ordered key-value store.
//!
//! It takes writes like an LSM tree and answers reads like a B-tree, with no options to tune.
//!
//! Modules are layers; each imports only modules above it in this list (a test checks that).

// The models use only a part of the code that is compiled for them.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

pub mod error;

#[macro_use]
pub mod base;

pub mod fs;
pub mod sync;

pub mod block;
pub mod filter;
pub mod memtable;
pub mod wal;

pub mod cache;
pub mod run;

pub mod manifest;

pub mod compaction;
pub mod iter;

pub mod commit;
// Under the model checker only the protocols are compiled, not what is built on them. Of the
// database it compiles what the threads share in memory.
#[cfg(not(loom))]
pub mod db;
#[cfg(loom)]
/// What the threads of a database share in memory.
pub mod db {
    pub mod current;
    pub mod memset;
    pub mod ops;
    pub mod retired;
    pub mod snapshots;
    pub mod state;
}
#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(not(loom))]
pub mod repair;

#[cfg(not(loom))]
pub mod inspect;

#[cfg(not(loom))]
mod api;

#[cfg(not(loom))]
pub use api::{
    Append, Associative, AssociativeOperator, Batch, BytesWritten, Clock, CompactionFilter,
    Comparator, Compression, CounterI64, CounterU64, Cursor, Db, Decision, Durability, HeldUse,
    Iter, Keyspace, KeyspaceOptions, Latency, LevelShape, LogKind, Max, MemoryUse, MergeOperator,
    OperatorResult, Options, Problem, Recovery, Savepoint, SegmentShape, Snapshot, Stalls, Stats,
    SystemClock, Transaction, TransactionIter, TransactionOptions, TreeShape, VerifyReport,
};
pub use error::{ConflictCause, Corruption, Error, ErrorKind, Result, Shortage, SpaceHeld};
#[cfg(not(loom))]
pub use repair::Repaired;
