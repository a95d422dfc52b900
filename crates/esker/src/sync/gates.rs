//! Named points at which a test may hold the background threads.
//!
//! At a point, a thread calls the [`Gates`] of the options, if there are any, and continues when
//! they return. So a test can make a flush wait between choosing what to write and writing it,
//! while the test creates and drops snapshots, keyspaces and branches. Without gates, a point costs
//! one check of an option that is `None`. Puts, and gets and steps of iterators that find in memory what they need,
//! pass no points; an iterator passes one each time that it lets go of what it holds, and a read those of the cache
//! where it misses an index or evicts something, as does whoever else loads an index or makes the cache smaller.
//!
//! A thread at a point holds no lock that callers of the database take, unless the point says so.

use super::Signal;
use std::fmt;
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
    /// A compaction knows which value segments it empties, and has moved nothing. One that empties none
    /// does not pass here.
    CompactionMoves,
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
    /// A look for dead space has made its estimate, and has chosen nothing. Calls that wait until nothing is
    /// left to do wait for the look.
    SpaceEstimated,
    /// The governor has decided on a limit of the cache, and the cache has the old one.
    CacheResizes,
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
    /// An ingestion has synced its files, and looks at the memtables next. After several attempts in vain,
    /// writers wait for it.
    IngestionSynced,
    /// An ingestion has found nothing in the memtables, and takes its position next. It holds the lock of
    /// changes of the tree, so only reads and writes without a custom comparator go on.
    IngestionLooked,
    /// The manifest records an ingestion, and readers do not see it yet. It holds the lock of changes of the
    /// tree, and later writes wait for its position, so only reads and new snapshots go on.
    IngestionRecorded,
    /// An iterator is about to let go of the blocks that it holds.
    IteratorLetsGo,
    /// A read has not found the index of a segment in memory, and is about to read it or to wait for another read
    /// that does.
    IndexLoads,
    /// A read has put an index into its segment, where others find it, and the cache does not know of it yet.
    IndexLoaded,
    /// An index has left the queues of the cache, and its segment still has it. Not only reads come here: so does whoever
    /// loads an index or makes the cache smaller, and may hold locks of its own.
    IndexLeaves,
    /// Blocks have left their slots and the queues of the cache, and nobody has begun to wait for their last readers.
    /// Those that leave for what a scan reads ahead do not pass here, because the scan keeps others from reading the
    /// same block meanwhile. Whoever comes here may hold locks of its own, as at [`Point::IndexLeaves`].
    BlocksLeave,
    /// A caller is about to wait for background work. Gates that hold this work must release it.
    CallerWaits,
}

/// Reports to the gates, if there are any, that the calling thread has reached a point.
#[inline]
pub fn pass(gates: Option<&dyn Gates>, point: Point) {
    if let Some(gates) = gates {
        gates.pass(point);
    }
}

/// The gates of a database, if it has any, for those who do not know the database.
#[derive(Clone, Default)]
pub struct KnownGates(Option<Arc<dyn Gates>>);

impl KnownGates {
    /// These, or none.
    pub fn new(gates: &Option<Arc<dyn Gates>>) -> Self {
        Self(gates.clone())
    }

    /// Reports that the calling thread has reached a point.
    #[inline]
    pub fn pass(&self, point: Point) {
        pass(self.0.as_deref(), point);
    }
}

impl fmt::Debug for KnownGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownGates").field(&self.0.is_some()).finish()
    }
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
