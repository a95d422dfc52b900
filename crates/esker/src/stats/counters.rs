//! Statistics that are always on (R29).
//!
//! Counters are exact. Each thread adds to its own stripe, so nothing is shared on the hot path; a
//! query sums the stripes. Only about one call in 64 is timed ([`Stripes::tick`]), because two clock
//! reads would cost a tenth of a fast get.

use super::report::{Latency, Stats};
use crate::sync::{Histogram, Lane, Stripes, nanos_of};
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
            /// Bytes of keys and values that were written.
            UserBytes,
            /// Point reads that found nothing.
            GetsMissing,
            /// Point reads that no cached block answered.
            GetsElsewhere,
            /// Positionings of iterators.
            Seeks,
            /// Batches of one put, which `Puts` and `Commits` do not count again.
            SinglePuts,
        }

        /// Counters of the background work; they change rarely enough to be shared by all threads.
        #[derive(Debug, Default)]
        pub struct Background {
            $($(#[doc = $background_doc])* pub $background: AtomicU64,)*
            /// Bytes that flushes wrote.
            pub flush_bytes: AtomicU64,
            /// Bytes that compactions and pushes wrote.
            pub compaction_bytes: AtomicU64,
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

impl AddAssign for WriteCounts {
    fn add_assign(&mut self, other: Self) {
        self.puts += other.puts;
        self.deletes += other.deletes;
        self.range_deletes += other.range_deletes;
        self.user_bytes += other.user_bytes;
    }
}

/// How many counters there are.
pub const COUNTERS: usize = Counter::SinglePuts as usize + 1;

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
    /// The calling thread's counters, which a call takes once.
    #[inline]
    pub fn lane(&self) -> CallLane<'_> {
        self.calls.lane()
    }

    /// Adds to one counter of the calling thread, whose lane is known.
    #[inline]
    pub fn add_in(&self, lane: CallLane<'_>, counter: Counter, n: u64) {
        if !cfg!(feature = "bench-no-stats") {
            self.calls.add(lane, counter as usize, n);
        }
    }

    /// Counts a call and returns whether it is to be timed.
    #[inline]
    pub fn count(&self, lane: CallLane<'_>, call: Counter) -> bool {
        !cfg!(feature = "bench-no-stats") && self.calls.tick(lane, call as usize)
    }

    /// Counts a call and returns when it began, if it is timed.
    #[inline]
    pub fn begin(&self, lane: CallLane<'_>, call: Counter) -> Started {
        if self.count(lane, call) { self.start() } else { Started::UNTIMED }
    }

    /// Reads the clock for a call that is timed.
    #[cold]
    #[inline(never)]
    pub fn start(&self) -> Started {
        Started(nanos_of(self.origin.elapsed()) | 1)
    }

    /// Counts a committed batch and returns when it began, if it is timed.
    #[inline(always)]
    pub fn begin_commit(&self, counts: &WriteCounts) -> Started {
        if cfg!(feature = "bench-no-stats") {
            return Started::UNTIMED;
        }
        let lane = self.lane();
        self.add_in(lane, Counter::UserBytes, counts.user_bytes);
        if counts.puts == 1 && counts.deletes | counts.range_deletes == 0 {
            self.begin(lane, Counter::SinglePuts)
        } else {
            self.begin_batch(lane, counts)
        }
    }

    #[inline(never)]
    fn begin_batch(&self, lane: CallLane<'_>, counts: &WriteCounts) -> Started {
        self.add_in(lane, Counter::Puts, counts.puts);
        self.add_in(lane, Counter::Deletes, counts.deletes);
        self.add_in(lane, Counter::RangeDeletes, counts.range_deletes);
        self.begin(lane, Counter::Commits)
    }

    /// Adds to one counter of the calling thread.
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        if !cfg!(feature = "bench-no-stats") {
            self.add_in(self.lane(), counter, n);
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
        let sum = |counter| self.calls.sum(counter as usize);
        let calls = |counter| self.calls.calls(counter as usize);
        match counter {
            Counter::Puts => sum(counter) + calls(Counter::SinglePuts),
            Counter::Commits => calls(counter) + calls(Counter::SinglePuts),
            Counter::Gets | Counter::Seeks => calls(counter),
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
