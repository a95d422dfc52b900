//! Esker: an embedded, ordered key-value store.
//!
//! Esker keeps named, sorted maps of bytes in a directory, for one process at a time. It takes
//! writes like an LSM tree and answers reads like a B-tree, with no options to tune.
//!
//! ```
//! use esker::{Batch, Db};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let my_database = dir.path();
//! let db = Db::open(my_database)?;
//! db.insert("hello", "world")?;
//! assert_eq!(db.get("hello")?, Some(b"world".to_vec()));
//!
//! // Keyspaces are maps of their own; a batch over several is atomic.
//! let (users, log) = (db.keyspace("users")?, db.keyspace("log")?);
//! let mut batch = Batch::new();
//! batch.insert(&users, "ann", "engineer");
//! batch.insert(&log, "1", "ann came");
//! db.write(batch)?;
//!
//! for entry in users.range("a"..)? {
//!     let (key, value) = entry?;
//!     println!("{} is a {}", key.escape_ascii(), value.escape_ascii());
//! }
//! db.close()?;
//! # Ok::<(), esker::Error>(())
//! ```
//!
//! # Where to go from here
//!
//! The [`guide`] goes through all of this with examples.
//!
//! - Writing: [`Db::insert`], [`Batch`], [`Durability`], [`Keyspace::update`].
//! - Loading sorted data: [`Db::ingest`], [`Ingestion`].
//! - Reading: [`Db::get`], [`Db::range`] and [`Iter`], [`Cursor`], [`Snapshot`].
//! - Keyspaces: [`Db::keyspace`], [`Keyspace`], [`KeyspaceOptions`], [`Comparator`].
//! - Keys and values with types: [`Typed`], [`KeyCodec`], [`ValueCodec`].
//! - Transactions: [`Db::transact`], [`Transaction`], [`TransactionOptions`].
//! - Merge operators: [`Keyspace::merge`], [`CounterU64`], [`Append`], [`MergeOperator`].
//! - Entries that expire or are filtered: [`Keyspace::insert_with_ttl`], [`CompactionFilter`].
//! - Branches and named snapshots: [`Db::branch`], [`Db::snapshot_named`].
//! - Copies of an open database: [`Db::checkpoint`].
//! - Statistics: [`Db::stats`], [`Stats`], [`Db::verify`]; of another process: [`Observed`].
//! - What one operation did: [`Db::explain_get`], [`Db::explain_scan`], [`Db::explain_put`],
//!   [`Explanation`].
//! - Events: [`Options::on_event`], [`Event`], [`EventKind`], [`EventListener`].
//! - Errors: [`Error`], [`ErrorKind`], [`Corruption`].
//! - Options: [`Options`]; most programs set none.
//! - Damage and removal: [`Db::repair`], [`repair`], [`Db::destroy`].
//!
//! # For readers of the source
//!
//! Modules are layers; each imports only modules above it in this list (a test checks that).

// The models use only a part of the code that is compiled for them.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

mod error;

#[macro_use]
mod base;

mod budget;
pub mod fs;
mod sync;

mod events;
mod trace;
mod waits;

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

#[cfg(not(loom))]
mod lookup;
#[cfg(not(loom))]
mod monitor;

// Under the model checker only the protocols are compiled, not what is built on them.
#[cfg(not(loom))]
mod db;
#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(not(loom))]
mod ingest;
#[cfg(not(loom))]
pub mod repair;

#[cfg(not(loom))]
mod inspect;

#[cfg(not(loom))]
mod api;

#[doc(hidden)]
pub mod internals;

#[cfg(not(loom))]
#[doc = include_str!("guide.md")]
pub mod guide {}

#[cfg(not(loom))]
pub use api::{
    Append, Associative, AssociativeOperator, Batch, BatchIter, BatchOperation, BlockCounts,
    BranchUse, BytesWritten, Clock, CompactionFilter, Comparator, Compression, CountEstimate,
    CounterI64, CounterU64, Cursor, Db, Decision, Durability, Event, EventKind, EventListener,
    Explanation, HeldUse, Ingestion, IntoIter, Iter, KeyCodec, KeyFor, Keyspace, KeyspaceOptions,
    Latency, LevelShape, LogHolder, LogKind, LogUse, Max, MemoryUse, MergeOperator, Metric,
    MetricKind, MetricUnit, Observed, ObservedState, OperatorResult, Options, Outcome, Pace,
    PaceMode, PinnedValue, Problem, Recovery, Sample, SamplePart, Savepoint, SegmentShape,
    SlowOperation, Snapshot, SnapshotUse, Stalls, Stats, Step, StepSource, SystemClock,
    Transaction, TransactionIter, TransactionOptions, TreeShape, Typed, TypedIter, ValueCodec,
    ValueFor, ValueReader, VerifyReport, WaitTime, WaitTimes,
};
pub use error::{ConflictCause, Corruption, Error, ErrorKind, Result, Shortage, SpaceHeld};
#[cfg(not(loom))]
pub use repair::Repaired;
pub use waits::{Cause, Waited};
