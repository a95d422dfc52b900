//! Esker: an embedded, ordered key-value store.
//!
//! It takes writes like an LSM tree and answers reads like a B-tree, with no options to tune.
//!
//! Modules are layers; each imports only modules above it in this list (a test checks that).

// The models use only a part of the code that is compiled for them.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

mod error;

#[macro_use]
mod base;

pub mod fs;
mod sync;

mod block;
mod filter;
mod options;

mod wal;

mod memtable;

mod cache;
mod run;

mod manifest;

#[cfg(not(loom))]
mod catalog;
#[cfg(not(loom))]
mod directory;
mod state;

mod compaction;
mod iter;
#[cfg(not(loom))]
mod txn;

mod commit;

#[cfg(not(loom))]
mod admission;
#[cfg(not(loom))]
mod recovery;
#[cfg(not(loom))]
mod stats;

// Under the model checker only the protocols are compiled, not what is built on them.
#[cfg(not(loom))]
mod db;
#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(not(loom))]
pub mod repair;

#[cfg(not(loom))]
mod inspect;

#[cfg(not(loom))]
mod api;

#[doc(hidden)]
pub mod internals;

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
