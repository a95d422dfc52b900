//! Named points at which a test may hold the background.
//!
//! What the threads of a database do between two points happens as it always does; at a point they
//! ask the [`Gates`] of the options, if there are any, and go on when these answer. So a test can
//! have a flush wait between its choice of what to write and the writing, while snapshots,
//! keyspaces and branches come and go. Without gates a point costs one look at an option that is
//! `None`, and there is none on the way of a put or a get.
//!
//! No lock that a caller of the database takes is held at a point, except where it says so.

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
    /// The manifest tells of a flush; the catalogue and the log do not know yet.
    FlushInstalled,
    /// Merges were chosen, and nothing was read for them.
    MergeBegins,
    /// A merge knows what it has to preserve, and begins to read one partition.
    MergeReads,
    /// A merge looks up between its steps.
    MergeSteps,
    /// The file of a merge is written and synced; no manifest names it.
    MergeInstalls,
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
    /// The database starts its workers, as many as this; `wake` wakes those that rest.
    fn begin(&self, workers: usize, wake: Arc<Signal>);

    /// The calling thread has come to a point; it goes on when this returns.
    fn pass(&self, point: Point);

    /// The calling worker found nothing to do. Whether it looks again at once; else it sleeps until
    /// there is something.
    fn rest(&self) -> bool;
}
