//! Named points at which a test may hold the background.
//!
//! Between two points the threads of a database run as usual. At a point they call the [`Gates`] of
//! the options, if there are any, and go on when these return. So a test can make a flush wait
//! between its choice of what to write and the writing, while snapshots, keyspaces and branches
//! come and go. Without gates a point costs one look at an option that is `None`; puts and gets
//! pass no points.
//!
//! At a point, no lock that callers of the database take is held, unless the point says so.

use super::Signal;
use std::sync::Arc;

/// Where a thread of a database, or a caller, has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Point {
    /// A flush has the right to run and has chosen nothing yet.
    FlushBegins,
    /// A flush knows who reads what it is about to write for one keyspace.
    FlushKnowsReaders,
    /// The file of a flush is written and synced; no manifest names it.
    FlushInstalls,
    /// The manifest records a flush; the catalogue and the log do not know of it yet.
    FlushInstalled,
    /// Compactions were chosen, and nothing was read for them.
    CompactionBegins,
    /// A compaction knows what it has to preserve, and begins to read one partition.
    CompactionReads,
    /// A compaction pauses between its steps.
    CompactionSteps,
    /// The file of a compaction is written and synced; no manifest names it.
    CompactionInstalls,
    /// A worker is about to give space back.
    SpaceReturns,
    /// The log is about to be synced because it has waited for long.
    LogPushes,
    /// A checkpoint has flushed and has not chosen its moment.
    CheckpointFlushed,
    /// A checkpoint has chosen what to take over.
    CheckpointChose,
    /// A checkpoint is about to link a file. No space is given back meanwhile.
    CheckpointLinks,
    /// A caller is about to wait for the background. Gates that hold it must let it go on.
    CallerWaits,
}

/// Decides when threads go on.
pub trait Gates: Send + Sync {
    /// The database starts this many workers; `wake` wakes those that rest.
    fn begin(&self, workers: usize, wake: Arc<Signal>);

    /// The calling thread has come to a point; it goes on when this returns.
    fn pass(&self, point: Point);

    /// The calling worker found nothing to do. True: it looks again at once; false: it sleeps until
    /// there is something.
    fn rest(&self) -> bool;
}
