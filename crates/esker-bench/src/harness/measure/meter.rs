//! What one measured thread records: latencies, counts, silences and samples.
//!
//! The clock is read once per operation: the end of one operation is the start of the next. A latency
//! therefore includes the few dozen nanoseconds in which the harness makes the next key and value. The
//! thread publishes its progress with a plain store to a counter on a cache line of its own; the
//! monitor thread adds these counters up ten times a second.

use super::latency::Latencies;
use crate::harness::check::Checksum;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Operations longer than this are remembered one by one, as candidates for a pause of the whole
/// process.
pub const SILENCE_NS: u64 = 1_000_000;

/// A counter on a cache line of its own (two lines, since neighbours are prefetched in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    /// The value that its thread stored last.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A span of time in which one thread completed nothing, in nanoseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// When the operation before had ended.
    pub from: u64,
    /// When the next one ended.
    pub to: u64,
}

/// What all threads of a workload share.
#[derive(Debug)]
pub struct Shared {
    /// When the workload started.
    pub start: Instant,
    /// When it has to end at the latest.
    pub deadline: Option<Instant>,
    /// Set when a thread failed or the measured threads are done.
    pub stop: AtomicBool,
    /// One counter for each measured thread.
    pub counters: Vec<Counter>,
    /// A sample after so many operations of one thread.
    pub sample_every: Option<u64>,
}

impl Shared {
    /// For `threads` threads, starting now.
    pub fn new(threads: usize, length: Option<Duration>, sample_every: Option<u64>) -> Self {
        let start = Instant::now();
        Self {
            start,
            deadline: length.map(|length| start + length),
            stop: AtomicBool::new(false),
            counters: std::iter::repeat_with(Counter::default).take(threads).collect(),
            sample_every,
        }
    }

    /// Operations of all threads so far.
    pub fn operations(&self) -> u64 {
        self.counters.iter().map(Counter::get).sum()
    }
}

/// One thread's measurements.
#[derive(Debug)]
pub struct Meter<'a> {
    shared: &'a Shared,
    counter: Option<&'a Counter>,
    last: Instant,
    next_sample: u64,
    turns: Option<Due>,
    /// What it measured.
    pub totals: Totals,
}

/// When the operations of a thread are due, in nanoseconds since the start of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turns {
    /// The first.
    pub first_ns: f64,
    /// The time from one to the next.
    pub every_ns: f64,
}

/// A thread's way through its turns.
#[derive(Debug, Clone, Copy)]
struct Due {
    turns: Turns,
    /// How many are done.
    done: u64,
    /// When the one under way was due.
    at: Instant,
}

/// Waiting ends by spinning, since a sleeping thread wakes late by about so much.
const SPIN: Duration = Duration::from_micros(100);

/// What a thread measured, and what remains of it at the end.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Latencies of operations (or groups of them).
    pub latencies: Latencies,
    /// Operations completed.
    pub operations: u64,
    /// Reads or seeks that found an entry.
    pub found: u64,
    /// Reads or seeks that found none.
    pub missing: u64,
    /// Bytes of keys and values that went in or came out.
    pub bytes: u64,
    /// Those of them that were written.
    pub bytes_written: u64,
    /// Operations longer than [`SILENCE_NS`].
    pub silences: Vec<Silence>,
    /// When this thread had done its share of one sample each, in nanoseconds since the start.
    pub samples: Vec<u64>,
    /// The checksum of what its operations returned.
    pub checksum: Checksum,
    /// In an open loop, the longest time in which an operation was due and none was completed.
    pub longest_gap: Option<u64>,
    /// In an open loop, nanoseconds of CPU time spent on waiting for the next turn.
    pub spun: u64,
    /// In an open loop, how late the last operation began.
    pub behind: u64,
    /// Whether the time was up before its operations were done.
    pub cut: bool,
    /// When its last operation ended, in nanoseconds since the start.
    pub ended: u64,
}

impl<'a> Meter<'a> {
    /// Starts a meter for measured thread `thread`, or for a thread beside the measured ones.
    pub fn new(shared: &'a Shared, thread: Option<usize>) -> Self {
        Self {
            shared,
            counter: thread.and_then(|thread| shared.counters.get(thread)),
            last: Instant::now(),
            next_sample: shared.sample_every.unwrap_or(u64::MAX),
            turns: None,
            totals: Totals::default(),
        }
    }

    /// Says that `operations` more are done; false when it is time to end.
    #[inline]
    pub fn lap(&mut self, operations: u64) -> bool {
        let now = Instant::now();
        let since = match self.turns {
            Some(due) => self.note_turn(due, now),
            None => self.last,
        };
        let ns = now.saturating_duration_since(self.last).as_nanos() as u64;
        self.totals.operations += operations;
        self.totals.latencies.record(now.saturating_duration_since(since).as_nanos() as u64);
        if ns >= SILENCE_NS || self.totals.operations >= self.next_sample {
            self.remember(now, ns);
        }
        self.last = now;
        if let Some(counter) = self.counter {
            counter.0.store(self.totals.operations, Ordering::Relaxed);
        }
        let go_on = self.shared.deadline.is_none_or(|deadline| now < deadline)
            && !self.shared.stop.load(Ordering::Relaxed);
        self.totals.cut |= !go_on;
        if go_on && self.turns.is_some() { self.wait_for_turn() } else { go_on }
    }

    /// Makes this an open loop: operations start when they are due, and their latency counts from then.
    /// Waits for the first.
    pub fn follow(&mut self, turns: Turns) {
        self.turns = Some(Due { turns, done: 0, at: self.shared.start });
        self.totals.longest_gap = Some(0);
        self.wait_for_turn();
    }

    /// Notes that an operation that was due at `due.at` is done; when it was due.
    fn note_turn(&mut self, due: Due, now: Instant) -> Instant {
        // Waiting for a turn is no gap. A thread that is behind has been due ever since its last.
        self.last = self.last.max(due.at);
        let gap = now.saturating_duration_since(self.last).as_nanos() as u64;
        self.totals.longest_gap = self.totals.longest_gap.map(|longest| longest.max(gap));
        self.totals.behind = self.last.saturating_duration_since(due.at).as_nanos() as u64;
        due.at
    }

    /// Waits until the next operation is due; false if the time is up before.
    fn wait_for_turn(&mut self) -> bool {
        let Some(mut due) = self.turns else { return true };
        let since = due.turns.first_ns + due.turns.every_ns * due.done as f64;
        due.done += 1;
        due.at = self.shared.start + Duration::from_nanos(since as u64);
        self.turns = Some(due);
        let until = self.shared.deadline.map_or(due.at, |deadline| deadline.min(due.at));
        let wait = until.saturating_duration_since(Instant::now());
        if wait > 2 * SPIN {
            std::thread::sleep(wait - SPIN);
        }
        let spinning = Instant::now();
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.totals.spun += spinning.elapsed().as_nanos() as u64;
        let go_on = until == due.at && !self.shared.stop.load(Ordering::Relaxed);
        self.totals.cut |= !go_on;
        go_on
    }

    /// Starts the next operation now; what was between is nobody's latency. Returns the time.
    pub fn restart(&mut self) -> Instant {
        self.last = Instant::now();
        self.last
    }

    #[cold]
    fn remember(&mut self, now: Instant, ns: u64) {
        let to = (now - self.shared.start).as_nanos() as u64;
        if ns >= SILENCE_NS {
            self.totals.silences.push(Silence { from: to - ns, to });
        }
        while self.totals.operations >= self.next_sample {
            self.totals.samples.push(to);
            self.next_sample += self.shared.sample_every.unwrap_or(u64::MAX - self.next_sample);
        }
    }

    /// Ends the measurement.
    pub fn finish(mut self) -> Totals {
        self.totals.ended = (self.last - self.shared.start).as_nanos() as u64;
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_at_every_multiple_and_operations_are_published() {
        let shared = Shared::new(1, None, Some(10));
        let mut meter = Meter::new(&shared, Some(0));
        for _ in 0..7 {
            assert!(meter.lap(5));
        }
        assert_eq!(shared.operations(), 35);
        assert!(meter.lap(30));
        let totals = meter.finish();
        assert_eq!(totals.operations, 65);
        assert_eq!(totals.samples.len(), 6, "at 10, 20, 30, and 40, 50, 60 with the last lap");
        assert_eq!(totals.latencies.summary(1).samples, 8);
    }

    #[test]
    fn a_long_operation_is_a_silence() {
        let shared = Shared::new(1, None, None);
        let mut meter = Meter::new(&shared, Some(0));
        meter.lap(1);
        std::thread::sleep(Duration::from_nanos(2 * SILENCE_NS));
        meter.lap(1);
        let totals = meter.finish();
        let last = totals.silences.last().unwrap();
        assert!(last.to - last.from >= 2 * SILENCE_NS);
        assert!(last.to <= totals.ended);
    }

    #[test]
    fn in_an_open_loop_latency_counts_from_when_an_operation_was_due() {
        let shared = Shared::new(1, None, None);
        let mut meter = Meter::new(&shared, Some(0));
        meter.follow(Turns { first_ns: 1e6, every_ns: 2e6 });
        assert!(shared.start.elapsed() >= Duration::from_millis(1), "it waits for its turn");
        // Ten operations are due meanwhile; the first is done late, the others at once.
        std::thread::sleep(Duration::from_millis(20));
        for _ in 0..10 {
            assert!(meter.lap(1));
        }
        assert!(shared.start.elapsed() >= Duration::from_millis(21), "the eleventh is due then");
        let totals = meter.finish();
        assert_eq!(totals.latencies.summary(1).samples, 10);
        assert!(totals.latencies.max_ns() >= 19_000_000);
        // The fifth was due 8 ms after the first, so it is late by 12 ms although it took no time.
        assert!(totals.latencies.summary(1).p50_us >= 9_000.0);
        assert!(totals.longest_gap.unwrap() >= 19_000_000);
    }

    #[test]
    fn an_open_loop_that_is_ahead_has_no_gaps() {
        let shared = Shared::new(1, Some(Duration::from_millis(30)), None);
        let mut meter = Meter::new(&shared, Some(0));
        meter.follow(Turns { first_ns: 0.0, every_ns: 10e6 });
        let mut done = 1;
        while meter.lap(1) {
            done += 1;
        }
        assert!(done <= 4, "{done} operations in three turns");
        let totals = meter.finish();
        assert!(totals.cut && totals.operations == done);
    }

    #[test]
    fn deadline_and_stop_end_the_loop() {
        let shared = Shared::new(1, Some(Duration::ZERO), None);
        assert!(!Meter::new(&shared, None).lap(1));
        let shared = Shared::new(1, None, None);
        shared.stop.store(true, Ordering::Relaxed);
        assert!(!Meter::new(&shared, None).lap(1));
        assert_eq!(shared.operations(), 0, "an unmeasured thread has no counter");
    }
}
