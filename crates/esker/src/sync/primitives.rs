//! Atomics, locks and counted references: the real ones, or the model checker's.
//!
//! Code that synchronises threads uses these items, so that the same code runs under loom
//! (`docs/testing.md`). Counters on which nothing depends, and data that is not shared, do not need
//! them.

#[cfg(loom)]
pub use loom::sync::{
    Arc,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
};
#[cfg(not(loom))]
pub use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub use super::checked::{
    Condvar, Life, Mutex, MutexGuard, OnceLock, RwLock, fence_of_seqcst, owned, unset,
};
#[cfg(not(loom))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

/// Follows a sequentially consistent operation that orders other operations: loom treats such an
/// operation only as acquire and release.
#[cfg(not(loom))]
#[inline(always)]
pub fn fence_of_seqcst() {}

/// Cells that are not set yet.
#[cfg(not(loom))]
#[inline(always)]
pub fn unset<T, const N: usize>() -> [OnceLock<T>; N] {
    [const { OnceLock::new() }; N]
}

/// What a pointer holds that nobody else can reach any more.
#[cfg(not(loom))]
#[inline(always)]
pub fn owned<T>(pointer: &AtomicPtr<T>, order: Ordering) -> *mut T {
    pointer.load(order)
}

/// Tells the model checker when a value is complete, when it is used, and when its memory is freed.
/// Without loom it is empty.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct Life(());

#[cfg(not(loom))]
impl Life {
    /// The value that contains this is complete and will be shared.
    #[inline(always)]
    pub fn begins(&self) {}

    /// The value that contains this is used.
    #[inline(always)]
    pub fn used(&self) {}

    /// The value that contains this is about to be freed.
    #[inline(always)]
    pub fn ends(&self) {}
}

/// A place where threads sleep until a condition holds.
pub struct Parking {
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Parking {
    /// A place where no thread sleeps yet.
    pub fn new() -> Self {
        Self { lock: Mutex::new(()), condvar: Condvar::new() }
    }

    /// The bare lock, to use as a gate.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    /// Sleeps until `ready`, which is called under the lock: a notifier that makes it true and then
    /// calls [`Parking::notify_all`] is never missed.
    pub fn wait_until(&self, mut ready: impl FnMut() -> bool) {
        let mut guard = self.lock();
        while !ready() {
            self.condvar.wait(&mut guard);
        }
    }

    /// Wakes all sleepers to check again.
    pub fn notify_all(&self) {
        drop(self.lock());
        self.condvar.notify_all();
    }
}
