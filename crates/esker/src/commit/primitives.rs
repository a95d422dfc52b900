//! Atomics and parking, as loom's or as the real ones.
//!
//! The protocol in `ring` is written against these few items, so that the very same code runs
//! under the model checker.

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use parking_lot::{Condvar, Mutex, MutexGuard};

/// A place where threads sleep until a condition holds.
pub(super) struct Parking {
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Parking {
    pub(super) fn new() -> Self {
        Self { lock: Mutex::new(()), condvar: Condvar::new() }
    }

    /// The bare lock, for those who use it as a gate.
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        #[cfg(loom)]
        return self.lock.lock().unwrap_or_else(|error| error.into_inner());
        #[cfg(not(loom))]
        return self.lock.lock();
    }

    /// Sleeps until `ready`, which is asked under the lock: a notifier that makes it true and then
    /// calls [`Parking::notify_all`] is never missed.
    pub(super) fn wait_until(&self, mut ready: impl FnMut() -> bool) {
        let mut guard = self.lock();
        while !ready() {
            #[cfg(loom)]
            {
                guard = self.condvar.wait(guard).unwrap_or_else(|error| error.into_inner());
            }
            #[cfg(not(loom))]
            self.condvar.wait(&mut guard);
        }
        drop(guard);
    }

    /// Wakes all sleepers to ask again.
    pub(super) fn notify_all(&self) {
        drop(self.lock());
        self.condvar.notify_all();
    }
}
