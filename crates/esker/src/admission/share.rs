//! How many threads of background work run at the same time.
//!
//! Flushes and compactions take processors from the program's own threads. Low priority alone does not prevent
//! it: a thread that wakes up may be put on a processor on which a flush runs while a merge has the other one to itself,
//! and moves only at the next tick. So while nothing is late, background work leaves one processor to the
//! program:
//!
//! 1. A flush never waits, but counts: writers wait for its memory.
//! 2. A compaction begins only while fewer threads than the limit run. Between its steps it waits until so many
//!    are left, so a flush that comes meanwhile has its processor within a step.
//! 3. Who pauses goes on before another begins: otherwise the limit would make one half of a compaction, and others
//!    beside it. The time of a pause is not the compaction's: writers are paced by how long these take.
//! 4. The limit is one less than there are processors, at least one. There is none as soon as runs are late or
//!    writers are slowed, where somebody waits for background work, and in tests that hold threads at points.
//!
//! So the share follows the debt, as predicted by what slows writers: it takes what it needs before they are.

use crate::sync::Signal;
use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// How long this thread has paused since somebody asked.
    static PAUSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// How long the calling thread has paused since the last call.
pub fn take_paused() -> Duration {
    PAUSED.take()
}

/// Counts the threads of background work and limits them.
///
/// What decides is changed under the lock, and read without it where nothing has to be done: callers on the path of
/// writes must not wait for a thread of low priority that holds the lock (S23).
#[derive(Debug)]
pub struct Share {
    /// Threads that run.
    running: AtomicUsize,
    /// Whether nothing is late.
    calm: AtomicBool,
    /// How many callers wait for background work.
    waited_for: AtomicUsize,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// The limit while nothing is late.
    limit: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Compactions that pause.
    paused: usize,
    /// Whom to wake that may begin now.
    refused: Option<Arc<Signal>>,
}

impl Share {
    /// For so many processors.
    pub fn new(processors: usize) -> Self {
        Self {
            running: AtomicUsize::new(0),
            calm: AtomicBool::new(false),
            waited_for: AtomicUsize::new(0),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            limit: processors.saturating_sub(1).max(1),
        }
    }

    /// Says whether nothing is late.
    pub fn follow(&self, calm: bool) {
        if self.calm.load(Ordering::Relaxed) == calm {
            return;
        }
        let mut waiting = self.waiting.lock();
        self.calm.store(calm, Ordering::Relaxed);
        if !calm {
            self.wake(&mut waiting);
        }
    }

    /// A flush begins.
    pub fn flush(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running { share: self, worked: true }
    }

    /// A compaction begins, if it may; otherwise `signal` is notified when it might.
    pub fn compaction(&self, signal: &Arc<Signal>) -> Option<Running<'_>> {
        let mut waiting = self.waiting.lock();
        // Seeded: compactions that pause are overtaken by others that begin.
        let paused = if bug!("admission_paused_are_overtaken") { 0 } else { waiting.paused };
        if self.running.load(Ordering::Relaxed).saturating_add(paused) >= self.limit() {
            waiting.refused = Some(signal.clone());
            return None;
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        Some(Running { share: self, worked: true })
    }

    /// A compaction pauses between two steps.
    pub fn pause(&self) {
        // Seeded: a flush shares its processor with a compaction that began before it.
        bug!("admission_compactions_do_not_pause", return);
        if self.running.load(Ordering::Relaxed) <= self.limit() {
            return;
        }
        let since = Instant::now();
        let mut waiting = self.waiting.lock();
        self.running.fetch_sub(1, Ordering::Relaxed);
        waiting.paused += 1;
        while self.running.load(Ordering::Relaxed) >= self.limit() {
            self.changed.wait(&mut waiting);
        }
        waiting.paused -= 1;
        self.running.fetch_add(1, Ordering::Relaxed);
        drop(waiting);
        PAUSED.set(PAUSED.get() + since.elapsed());
    }

    /// Somebody waits for background work, which has no limit until this is dropped.
    pub fn hurry(&self) -> Hurry<'_> {
        let mut waiting = self.waiting.lock();
        self.waited_for.fetch_add(1, Ordering::Relaxed);
        self.wake(&mut waiting);
        Hurry { share: self }
    }

    fn limit(&self) -> usize {
        // Seeded: compactions keep to their share also when runs are late.
        let calm = self.calm.load(Ordering::Relaxed) || bug!("admission_share_ignores_debt");
        let waited_for = self.waited_for.load(Ordering::Relaxed) > 0;
        if calm && !waited_for { self.limit } else { usize::MAX }
    }

    fn wake(&self, waiting: &mut Waiting) {
        self.changed.notify_all();
        // Seeded: a compaction that was refused its share is never begun.
        bug!("admission_refused_are_forgotten", return);
        if let Some(signal) = waiting.refused.take() {
            signal.notify();
        }
    }
}

/// A thread of background work that runs.
#[derive(Debug)]
pub struct Running<'s> {
    share: &'s Share,
    worked: bool,
}

impl Running<'_> {
    /// Ends what found no compaction that is due; returns `false`. Who was refused meanwhile would find none
    /// either: two workers that woke each other for nothing would do so for ever.
    pub fn found_nothing(mut self) -> bool {
        self.worked = false;
        false
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Under the lock, so that nobody decides to wait between this and the notification.
        let mut waiting = self.share.waiting.lock();
        self.share.running.fetch_sub(1, Ordering::Relaxed);
        if self.worked {
            self.share.wake(&mut waiting);
        } else {
            self.share.changed.notify_all();
        }
    }
}

/// Somebody waits for background work.
#[derive(Debug)]
pub struct Hurry<'s> {
    share: &'s Share,
}

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.share.waited_for.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
