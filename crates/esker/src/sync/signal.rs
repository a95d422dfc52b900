//! Waiting for an event, without polling.

#[cfg(not(loom))]
use std::time::{Duration, Instant};

use super::primitives::{AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, fence_of_seqcst};

/// A counter of events that threads can wait on.
///
/// The user reads [`epoch`](Self::epoch) and checks its condition. If the condition does not hold,
/// it waits until the counter exceeds the value it read. An event between the check and the wait
/// has already moved the counter, so no wake-up is lost. Notifying costs one atomic add and one
/// load while nobody waits.
///
/// The counter and the number of waiters are both accessed sequentially consistently: either the
/// notifier sees the waiter, or the waiter sees the new count.
#[derive(Debug, Default)]
pub struct Signal {
    epoch: AtomicU64,
    waiters: AtomicUsize,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// A signal without events so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one event and wakes all who wait.
    pub fn notify(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        fence_of_seqcst();
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // A waiter holds the mutex from its check of the counter until it sleeps. Taking the
            // mutex once ensures that the wake-up does not fall in between.
            drop(self.mutex.lock());
            self.changed.notify_all();
        }
    }

    /// The number of events so far.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Returns once there were more than `epoch` events, with their number.
    pub fn wait_past(&self, epoch: u64) -> u64 {
        let now = self.epoch();
        if now > epoch {
            return now;
        }
        let mut held = self.mutex.lock();
        self.waiters.fetch_add(1, Ordering::SeqCst);
        fence_of_seqcst();
        let now = loop {
            let now = self.epoch();
            if now > epoch {
                break now;
            }
            self.changed.wait(&mut held);
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        now
    }

    /// Like [`wait_past`](Self::wait_past), for at most `timeout`; returns whether there were more
    /// than `epoch` events.
    #[cfg(not(loom))]
    pub fn wait_past_timeout(&self, epoch: u64, timeout: Duration) -> bool {
        if self.epoch() > epoch {
            return true;
        }
        // If the clock cannot express the timeout, there is none.
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            self.wait_past(epoch);
            return true;
        };
        let mut held = self.mutex.lock();
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let past = loop {
            if self.epoch() > epoch {
                break true;
            }
            if self.changed.wait_until(&mut held, deadline).timed_out() {
                break self.epoch() > epoch;
            }
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        past
    }

    /// Like [`wait_past_timeout`](Self::wait_past_timeout); `None`: there is no timeout.
    #[cfg(not(loom))]
    pub fn wait_past_within(&self, epoch: u64, timeout: Option<Duration>) -> bool {
        let Some(timeout) = timeout else {
            self.wait_past(epoch);
            return true;
        };
        self.wait_past_timeout(epoch, timeout)
    }
}
