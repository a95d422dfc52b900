//! Statistics that are always on (R29).
//!
//! Counters are exact. Each thread adds to its own stripe, so nothing is shared on the hot path; a
//! query sums the stripes. Only about one call in 128 is timed ([`Stripes::tick`]), because two clock
//! reads would cost a tenth of a fast get.
//!
//! What a call counts is chosen so that frequent calls count little: a read that finds nothing adds
//! to no counter but that of all reads, and one that finds its value adds to one more.

use super::report::{Latency, Stats};
use crate::compaction::{CompactionCounts, Recoding};
use crate::run::MovedBytes;
use crate::sync::{Apart, Histogram, Lane, Stripes, nanos_of};
use crate::waits::{note_start, take_start};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

macro_rules! define_counters {
    (
        calls { $($(#[doc = $call_doc:literal])* $call:ident = $variant:ident:
            $call_kind:ident $call_unit:ident $call_name:literal in $call_place:literal;)* }
        background { $($(#[doc = $background_doc:literal])* $background:ident:
            $background_kind:ident $background_unit:ident $background_name:literal
            in $background_place:literal;)* }
        computed { $($(#[doc = $computed_doc:literal])* $computed:ident:
            $computed_kind:ident $computed_unit:ident $computed_name:literal
            in $computed_place:literal;)* }
        $($rest:tt)*
    ) => {
        /// What is counted by the threads that call the database.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter {
            $($(#[doc = $call_doc])* $variant,)*
            /// Commits of one put and nothing else; [`Counter::Commits`] and [`Counter::Puts`] are
            /// kept without them.
            OnePuts,
            /// Bytes of keys and values that were written.
            UserBytes,
            /// Point reads that found their value in a cached block.
            GetsCached,
            /// Point reads that found their value elsewhere.
            GetsElsewhere,
            /// Positionings of iterators.
            Seeks,
        }

        /// Counters of the background work; they change rarely enough to be shared by all threads.
        #[derive(Debug, Default)]
        pub struct Background {
            $($(#[doc = $background_doc])* pub $background: AtomicU64,)*
            /// Bytes that flushes wrote.
            pub flush_bytes: AtomicU64,
            /// Bytes that compactions and pushes wrote.
            pub compaction_bytes: AtomicU64,
            /// Bytes of run files that ingestions wrote.
            pub ingestion_bytes: AtomicU64,
            /// Bytes of the manifest.
            pub manifest_bytes: AtomicU64,
        }

        impl Counters {
            /// Copies the counters that are kept here into `stats`.
            pub fn read_into(&self, stats: &mut Stats) {
                $(stats.$call = self.total(Counter::$variant);)*
                $(stats.$background = self.background.$background.load(Ordering::Relaxed);)*
            }
        }
    };
}
super::table::metrics!(define_counters);

impl Background {
    /// Counts what a flush or compaction did with operands and with entries that expire.
    pub fn note_compaction(&self, counts: &CompactionCounts) {
        for (counter, count) in [
            (&self.operands_folded, counts.folded),
            (&self.entries_expired, counts.expired),
            (&self.entries_filtered, counts.filtered + counts.filtered_changed),
        ] {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Counts bytes that a compaction wrote, if it only wrote them in another form; `moved`: those of them that are
    /// separated values, each with a reason of its own.
    pub fn note_recoded(&self, why: Option<Recoding>, (bytes, moved): (u64, MovedBytes)) {
        let MovedBytes { cooled, warmed, emptied } = moved;
        let keys = bytes.saturating_sub(cooled + warmed + emptied);
        let (cools, warms) = match why {
            None | Some(Recoding::Settles) => (0, 0),
            Some(Recoding::Cools) => (keys, 0),
            Some(Recoding::Warms) => (0, keys),
        };
        self.bytes_cooled.fetch_add(cooled + cools, Ordering::Relaxed);
        self.bytes_warmed.fetch_add(warmed + warms, Ordering::Relaxed);
    }

    /// How many flushes there were, and how many pushes and compactions.
    pub fn changes(&self) -> (u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.flushes), load(&self.pushes) + load(&self.compactions))
    }
}

/// What a batch writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Entries put, operands included.
    pub puts: u64,
    /// Point deletes.
    pub deletes: u64,
    /// Range deletes.
    pub range_deletes: u64,
    /// Bytes of keys and values.
    pub user_bytes: u64,
}

/// What a write is counted as.
#[derive(Debug, Clone, Copy)]
pub enum Written<'a> {
    /// One put, as most writes are, with so many bytes of key and value.
    Put(u64),
    /// Anything else.
    Batch(&'a WriteCounts),
}

impl Written<'_> {
    /// Whether nothing is put.
    #[inline]
    pub fn only_deletes(&self) -> bool {
        matches!(self, Self::Batch(WriteCounts { puts: 0, .. }))
    }

    /// How many range deletes there are.
    pub fn range_deletes(&self) -> u64 {
        match self {
            Self::Put(_) => 0,
            Self::Batch(counts) => counts.range_deletes,
        }
    }
}

impl AddAssign for WriteCounts {
    fn add_assign(&mut self, other: Self) {
        self.puts += other.puts;
        self.deletes += other.deletes;
        self.range_deletes += other.range_deletes;
        self.user_bytes += other.user_bytes;
    }
}

/// How many counters there are.
pub const COUNTERS: usize = Counter::Seeks as usize + 1;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Each is named like the field of `Stats` that shows it.
pub enum Timed {
    Put,
    Get,
    Scan,
    Sync,
}

const TIMED: usize = Timed::Sync as usize + 1;

/// All counters of a database.
#[derive(Debug)]
pub struct Counters {
    calls: Stripes<COUNTERS>,
    /// What [`Started`] counts from.
    origin: Instant,
    histograms: [Histogram; TIMED],
    /// Counters of the background.
    pub background: Background,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            calls: Stripes::default(),
            origin: Instant::now(),
            histograms: Default::default(),
            background: Background::default(),
        }
    }
}

/// The counters of one thread.
pub type CallLane<'a> = Lane<'a, COUNTERS>;

/// The counters of a call that is perhaps timed.
pub type CallApart<'a> = Apart<'a, COUNTERS>;

/// When a call began, in nanoseconds since the counters were made; 0 if the call is not timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started(u64);

impl Started {
    const UNTIMED: Self = Self(0);

    /// Whether the call is timed.
    #[inline]
    pub fn is_timed(self) -> bool {
        self.0 != 0
    }
}

impl Counters {
    /// Counts a call. `None`: the call goes the slow way, and [`Self::count_apart`] counts it.
    #[inline]
    pub fn count(&self, call: Counter) -> Option<CallLane<'_>> {
        self.calls.tick(call as usize)
    }

    /// The calling thread's counters, for calls that are counted when they end. `None`: they go another way.
    #[inline]
    pub fn lane(&self) -> Option<CallLane<'_>> {
        self.calls.lane()
    }

    /// The calling thread's counters, if a call that is counted now would not go the slow way.
    #[inline]
    pub fn untimed(&self, call: Counter) -> Option<CallLane<'_>> {
        self.calls.untimed(call as usize)
    }

    /// Counts a call for which [`Self::count`] gave nothing, and says whether it is to be timed.
    pub fn count_apart(&self, call: Counter) -> CallApart<'_> {
        self.calls.tick_apart(call as usize)
    }

    /// Counts a call and returns when it began, if it is timed.
    #[inline]
    pub fn begin(&self, call: Counter) -> Started {
        if cfg!(feature = "bench-no-stats") || self.count(call).is_some() {
            return Started::UNTIMED;
        }
        self.begin_apart(call)
    }

    /// [`Self::begin`] for a call that goes the slow way.
    #[cold]
    #[inline(never)]
    fn begin_apart(&self, call: Counter) -> Started {
        let apart = self.count_apart(call);
        if apart.is_timed() { self.start() } else { Started::UNTIMED }
    }

    /// The present time, for a call that is timed.
    #[inline(never)]
    pub fn start(&self) -> Started {
        Started(nanos_of(self.origin.elapsed()) | 1)
    }

    /// Counts a commit. If it is timed, the thread's notes say when it began
    /// ([`Self::end_commit`]).
    #[inline(always)]
    pub fn begin_commit(&self, written: &Written<'_>) {
        if cfg!(feature = "bench-no-stats") {
            return;
        }
        let Written::Put(bytes) = written else { return self.begin_commit_apart(written) };
        let Some(lane) = self.count(Counter::OnePuts) else {
            return self.begin_commit_apart(written);
        };
        lane.add(Counter::UserBytes as usize, *bytes);
    }

    /// [`Self::begin_commit`] for batches, and for puts that go the slow way.
    #[cold]
    #[inline(never)]
    fn begin_commit_apart(&self, written: &Written<'_>) {
        let call = match written {
            Written::Put(_) => Counter::OnePuts,
            Written::Batch(_) => Counter::Commits,
        };
        let apart = self.count_apart(call);
        let lane = apart.lane();
        match written {
            Written::Put(bytes) => lane.add(Counter::UserBytes as usize, *bytes),
            Written::Batch(counts) => {
                lane.add(Counter::UserBytes as usize, counts.user_bytes);
                lane.add(Counter::Puts as usize, counts.puts);
                lane.add(Counter::Deletes as usize, counts.deletes);
                lane.add(Counter::RangeDeletes as usize, counts.range_deletes);
            }
        }
        if apart.is_timed() {
            note_start(self.start().0);
        }
    }

    /// Records the duration of the calling thread's commit, if it is timed.
    #[cold]
    #[inline(never)]
    pub fn end_commit(&self) {
        if let Some(started) = take_start() {
            self.end_timed(Timed::Put, Started(started));
        }
    }

    /// Adds to one counter of the calling thread.
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        if !cfg!(feature = "bench-no-stats") {
            self.calls.add(counter as usize, n);
        }
    }

    /// Records and returns the duration of a call that began at `started`, if it is timed.
    #[inline]
    pub fn end(&self, timed: Timed, started: Started) -> Option<Duration> {
        if started.is_timed() { Some(self.end_timed(timed, started)) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn end_timed(&self, timed: Timed, started: Started) -> Duration {
        let took = self.since(started);
        self.record(timed, took);
        took
    }

    /// The time since a timed call began.
    pub fn since(&self, started: Started) -> Duration {
        self.origin.elapsed().saturating_sub(Duration::from_nanos(started.0))
    }

    /// Records the duration of a call.
    pub fn record(&self, timed: Timed, took: Duration) {
        self.histograms[timed as usize].record(took);
    }

    /// The sum of a counter over all threads.
    pub fn total(&self, counter: Counter) -> u64 {
        let (calls, sum) = (|c| self.calls.calls(c as usize), |c| self.calls.sum(c as usize));
        match counter {
            Counter::Commits => calls(Counter::OnePuts) + calls(Counter::Commits),
            Counter::Puts => calls(Counter::OnePuts) + sum(Counter::Puts),
            Counter::OnePuts | Counter::Gets | Counter::Seeks => calls(counter),
            _ => sum(counter),
        }
    }

    /// A summary of what was timed.
    pub fn latency(&self, timed: Timed) -> Latency {
        self.histograms[timed as usize].summary()
    }
}

#[cfg(test)]
mod tests;
