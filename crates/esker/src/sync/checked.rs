//! Replacements for `parking_lot` and `crossbeam-epoch` under the model checker.
//!
//! The locks are those of loom, with the names and types of `parking_lot`. The cell that is set once is that of
//! the standard library, with an atomic of loom that says when a thread sees it set. The epoch guarantees
//! only what the real one guarantees: a deferred function runs as soon as every guard that lived
//! when it was deferred is gone, on the thread that drops the last of them. The real epoch runs it
//! later, and its internal orderings would multiply the executions to explore.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool as LoomBool, AtomicPtr, AtomicUsize, Ordering, fence};
use loom::sync::{RwLockReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering as StdOrdering};

/// A lock without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

/// A held [`Mutex`]; empty only while a condition variable has the inner guard.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Takes the lock if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("a guard is empty only inside of a wait")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("a guard is empty only inside of a wait")
    }
}

/// A lock for many readers or one writer, without poisoning.
#[derive(Debug)]
pub struct RwLock<T>(loom::sync::RwLock<T>);

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    /// Waits until nobody writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cell that is set once. A thread that nothing orders behind the one that set it may find it empty.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    is_set: LoomBool,
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self { value: std::sync::OnceLock::new(), is_set: LoomBool::new(false) }
    }
}

impl<T> OnceLock<T> {
    /// Sets the value, or gives it back if there is one.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    /// The value, if this thread sees it.
    pub fn get(&self) -> Option<&T> {
        // Read in any case, so that loom knows of those who find nothing.
        self.is_set.load(Ordering::Acquire).then(|| self.value.get()).flatten()
    }

    /// The value; set by `make` if there is none.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let value = self.value.get_or_init(make);
        self.is_set.store(true, Ordering::Release);
        value
    }
}

/// See [`super::primitives`]: cells that are not set yet.
pub fn unset<T, const N: usize>() -> [OnceLock<T>; N] {
    std::array::from_fn(|_| OnceLock::default())
}

/// See [`super::primitives`]. Loom does not follow the counts of `std::sync::Arc`, which order whoever is left behind all
/// others. So this takes the last value, which loom finds only in an exchange.
pub fn owned<T>(pointer: &AtomicPtr<T>, _: Ordering) -> *mut T {
    let null = std::ptr::null_mut();
    match pointer.compare_exchange(null, null, Ordering::AcqRel, Ordering::Acquire) {
        Ok(pointer) | Err(pointer) => pointer,
    }
}

/// A condition variable.
#[derive(Debug)]
pub struct Condvar(loom::sync::Condvar);

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// A condition variable on which no thread waits.
    pub fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    /// Releases the lock, waits for a notification, and takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(inner) = guard.0.take() {
            guard.0 = Some(self.0.wait(inner).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// See [`super::primitives`]: here it is the fence that the operation stands for.
pub fn fence_of_seqcst() {
    fence(Ordering::SeqCst);
}

/// See [`super::primitives`]: here each use must happen after the beginning and before the end.
#[derive(Debug)]
pub struct Life {
    ended: AtomicBool,
    uses: UnsafeCell<()>,
}

impl Default for Life {
    fn default() -> Self {
        Self { ended: AtomicBool::new(false), uses: UnsafeCell::new(()) }
    }
}

impl Life {
    /// Marks the beginning: a use that is not ordered after it fails.
    pub fn begins(&self) {
        self.uses.with_mut(|_| ());
    }

    /// Marks a use: fails if the end came before it.
    pub fn used(&self) {
        assert!(!self.ended.load(StdOrdering::Relaxed), "used after it was freed");
        self.uses.with(|_| ());
    }

    /// Marks the end: fails after another end, or if a use is not ordered before it.
    pub fn ends(&self) {
        assert!(!self.ended.swap(true, StdOrdering::Relaxed), "freed twice");
        self.uses.with_mut(|_| ());
    }
}

/// A deferred function that waits for guards to be dropped.
struct Deferred {
    guards: Vec<u64>,
    run: Box<dyn FnOnce() + Send>,
}

#[derive(Default)]
struct Guards {
    last: u64,
    alive: Vec<u64>,
    deferred: Vec<Deferred>,
}

/// The epoch of one execution. Loom switches threads only at its own operations, so the list needs
/// no lock of loom. The atomic word makes entering and leaving an epoch such an operation.
#[derive(Default)]
struct Epoch {
    word: AtomicUsize,
    guards: std::sync::Mutex<Guards>,
}

loom::lazy_static! {
    static ref EPOCH: Epoch = Epoch::default();
}

impl Epoch {
    fn guards(&self) -> std::sync::MutexGuard<'_, Guards> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps alive what was loaded under it.
#[derive(Debug)]
pub struct Guard {
    number: u64,
}

/// Enters an epoch.
pub fn pin() -> Guard {
    EPOCH.word.fetch_add(0, Ordering::Relaxed);
    let number = {
        let mut guards = EPOCH.guards();
        guards.last += 1;
        let number = guards.last;
        guards.alive.push(number);
        number
    };
    // As in the real one: a thread that comes after a collection sees what was unlinked before it.
    fence(Ordering::SeqCst);
    Guard { number }
}

impl Guard {
    /// Runs `f` when all guards that are alive now are gone.
    pub fn defer<F, R>(&self, f: F)
    where
        F: FnOnce() -> R + Send + 'static,
    {
        EPOCH.word.fetch_add(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut guards = EPOCH.guards();
        let run = Box::new(|| drop(f()));
        let alive = guards.alive.clone();
        guards.deferred.push(Deferred { guards: alive, run });
    }

    /// Does nothing: deferred functions run as soon as they can.
    pub fn flush(&self) {}
}

impl Drop for Guard {
    fn drop(&mut self) {
        EPOCH.word.fetch_add(0, Ordering::Release);
        let ready: Vec<_> = {
            let mut guards = EPOCH.guards();
            guards.alive.retain(|number| *number != self.number);
            for deferred in &mut guards.deferred {
                deferred.guards.retain(|number| *number != self.number);
            }
            guards.deferred.extract_if(.., |deferred| deferred.guards.is_empty()).collect()
        };
        if !ready.is_empty() {
            // Runs after everything that was done under the dropped guards.
            fence(Ordering::Acquire);
        }
        ready.into_iter().for_each(|deferred| (deferred.run)());
    }
}
