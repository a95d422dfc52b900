//! Named points at which a test may hold the background threads.
//!
//! At a point, a thread calls the [`Gates`] of the options, if there are any, and continues when
//! they return. So a test can make a flush wait between choosing what to write and writing it,
//! while the test creates and drops snapshots, keyspaces and branches. Without gates, a point costs
//! one check of an option that is `None`. Puts and gets pass no points.
//!
//! A thread at a point holds no lock that callers of the database take, unless the point says so.

use super::Signal;
use std::sync::Arc;

/// The point that a thread of the database, or a caller, has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Point {
    /// A flush has the right to run and has chosen nothing yet.
    FlushBegins,
    /// A flush knows the snapshots that read the entries it is about to write for one keyspace.
    FlushKnowsReaders,
    /// The file of a flush is written and synced; no manifest names it.
    FlushInstalls,
    /// The manifest records a flush; the catalogue and the log do not know of it yet.
    FlushInstalled,
    /// Compactions were chosen, and nothing was read for them.
    CompactionBegins,
    /// A compaction knows which versions it must keep, and begins to read one partition.
    CompactionReads,
    /// A compaction pauses between its steps.
    CompactionSteps,
    /// The file of a compaction is written and synced; no manifest names it.
    CompactionInstalls,
    /// A push knows its span, and reads nothing yet.
    PushReads,
    /// The file of a push is written and synced; no manifest names it.
    PushInstalls,
    /// The manifest records a push, and readers see it.
    PushInstalled,
    /// A worker is about to release space.
    SpaceReturns,
    /// The log is about to be synced because it has waited for long.
    LogPushes,
    /// A checkpoint has flushed and has not chosen its position yet.
    CheckpointFlushed,
    /// A checkpoint has chosen the files that it includes.
    CheckpointChose,
    /// A checkpoint is about to link a file. No space is released meanwhile.
    CheckpointLinks,
    /// A caller is about to wait for background work. Gates that hold this work must release it.
    CallerWaits,
}

/// Decides when threads go on.
pub trait Gates: Send + Sync {
    /// The database starts this many workers; `wake` wakes those that sleep.
    fn begin(&self, workers: usize, wake: Arc<Signal>);

    /// The calling thread has reached a point; it continues when this returns.
    fn pass(&self, point: Point);

    /// The calling worker found no work. True: it looks again at once; false: it sleeps until there
    /// is work.
    fn rest(&self) -> bool;
}
