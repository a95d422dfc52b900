//! A shared pointer that readers follow without writing to shared memory.

use std::fmt;
use std::ptr::{self, NonNull};

use super::epoch::{Guard, collect, pin, protects};
use super::primitives::{Arc, AtomicPtr, Ordering, owned};

/// Holds one `Arc<T>` that can be replaced while others read it.
///
/// 1. The pointer always comes from [`Arc::into_raw`] and the cell owns one count of it.
/// 2. Only a deferred function of the epoch collector gives that count back, so a thread that
///    loaded the pointer under a guard may use it as long as that guard lives, even if the cell
///    itself is dropped meanwhile.
///
/// Guards must come from [`pin`](crate::sync::pin) (the default collector).
pub struct EpochCell<T: Send + Sync + 'static> {
    pointer: AtomicPtr<T>,
}

/// One count of an `Arc` on its way to the collector.
struct Retired<T>(NonNull<T>);

#[allow(unsafe_code, reason = "moves one count of an Arc between threads, as Arc itself may")]
// SAFETY: the value stands for an `Arc<T>`, which is `Send` when `T: Send + Sync`.
unsafe impl<T: Send + Sync> Send for Retired<T> {}

impl<T> Retired<T> {
    /// Takes `self` as a whole, so that a closure captures the wrapper and not its pointer.
    #[allow(unsafe_code, reason = "turns the cell's raw pointer back into the Arc it came from")]
    fn release(self) {
        // SAFETY: the pointer came from `Arc::into_raw` and this is the one count the cell owned
        // (invariant 1); the swap that retired it made it unreachable for new readers.
        drop(unsafe { Arc::from_raw(self.0.as_ptr().cast_const()) });
    }
}

/// One more owner of what a cell or slot holds.
///
/// # Safety
/// The pointer came from [`Arc::into_raw`], and another count keeps the value alive during the call.
#[allow(unsafe_code, reason = "adds a count to an Arc that is known by its pointer")]
unsafe fn counted<T>(pointer: *const T) -> Arc<T> {
    // SAFETY: as the caller promises; the `Arc` takes over the count that is added.
    unsafe {
        Arc::increment_strong_count(pointer);
        Arc::from_raw(pointer)
    }
}

/// Gives back a count of a cell or slot after a grace period.
fn retire<T: Send + Sync + 'static>(pointer: *mut T) {
    let Some(pointer) = NonNull::new(pointer) else { return };
    let retired = Retired(pointer);
    let guard = pin();
    guard.defer(move || retired.release());
    // The retired value may be a whole memtable. Flush it now, instead of keeping it in the
    // thread's bag until 63 more values are retired.
    guard.flush();
}

impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell that holds `value`.
    pub fn new(value: Arc<T>) -> Self {
        Self { pointer: AtomicPtr::new(Arc::into_raw(value).cast_mut()) }
    }

    /// The present value, for as long as the guard lives. A load writes no shared cache line.
    #[inline]
    #[allow(unsafe_code, reason = "follows a pointer that the epoch keeps alive")]
    pub fn load<'g>(&self, guard: &'g Guard) -> &'g T {
        debug_assert!(protects(guard), "the guard belongs to another collector");
        // Acquire pairs with the release of the swap: the pointee's contents are visible.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: the cell owned a count when the pointer was read, and a count taken from a cell
        // is released only after every guard that was alive then is gone (invariant 2).
        unsafe { &*pointer }
    }

    /// The present value, owned.
    #[allow(unsafe_code, reason = "adds a count to an Arc that the epoch keeps alive")]
    pub fn load_arc(&self) -> Arc<T> {
        let _guard = pin();
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: as in `load`, the count that the cell owned lasts at least as long as the guard.
        unsafe { counted(pointer) }
    }

    /// Replaces the value. The collector drops the old one when no reader can see it any more, on
    /// any thread; its destructor must not depend on the thread.
    pub fn swap(&self, value: Arc<T>) {
        let new = Arc::into_raw(value).cast_mut();
        retire(self.pointer.swap(new, Ordering::AcqRel));
    }
}

impl<T: Send + Sync + 'static> Drop for EpochCell<T> {
    fn drop(&mut self) {
        // References from `load` may outlive the cell, so this count is released after a grace
        // period too.
        retire(self.pointer.load(Ordering::Relaxed));
        // A cell goes with its database. Threads of another one would free this one's memory, one piece after the
        // other, in the middle of their own work; or nobody would, if there is no other one.
        // Seeded: what a database had goes when another one is used.
        if !bug!("sync_dropped_cells_wait_for_others") {
            collect();
        }
    }
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for EpochCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EpochCell").field(self.load(&pin())).finish()
    }
}

/// Holds an `Arc<T>` or nothing, and changes from one to the other while others read it.
///
/// 1. The pointer is null or as in [`EpochCell`].
/// 2. As in [`EpochCell`]; but what [`Self::load`] gives borrows the slot too, so the slot's own drop
///    gives its count back at once.
pub struct EpochSlot<T: Send + Sync + 'static> {
    pointer: AtomicPtr<T>,
}

impl<T: Send + Sync + 'static> EpochSlot<T> {
    /// A slot that holds nothing.
    pub fn empty() -> Self {
        Self { pointer: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Whether it holds something.
    #[inline]
    pub fn is_full(&self) -> bool {
        !self.pointer.load(Ordering::Relaxed).is_null()
    }

    /// What it holds, for as long as the guard lives. A load writes no shared cache line.
    #[inline]
    #[allow(unsafe_code, reason = "follows a pointer that the epoch keeps alive")]
    pub fn load<'g>(&'g self, guard: &'g Guard) -> Option<&'g T> {
        debug_assert!(protects(guard), "the guard belongs to another collector");
        // Acquire pairs with the release of `fill`: the pointee's contents are visible.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: null, or the slot owned a count when the pointer was read, and a count taken from
        // a slot is released only after every guard that was alive then is gone (invariant 2).
        unsafe { pointer.as_ref() }
    }

    /// What it holds, owned.
    #[allow(unsafe_code, reason = "adds a count to an Arc that the epoch keeps alive")]
    pub fn load_arc(&self) -> Option<Arc<T>> {
        let _guard = pin();
        let pointer = NonNull::new(self.pointer.load(Ordering::Acquire))?;
        // SAFETY: as in `load`, the count that the slot owned lasts at least as long as the guard.
        Some(unsafe { counted(pointer.as_ptr()) })
    }

    /// What it holds, while nobody else has the slot.
    #[allow(unsafe_code, reason = "follows a pointer of which the slot owns a count")]
    pub fn get_mut(&mut self) -> Option<&T> {
        // SAFETY: null, or the slot owns a count, and nobody can take it out while `self` is borrowed.
        unsafe { owned(&self.pointer, Ordering::Acquire).as_ref() }
    }

    /// Puts a value in; the collector drops an earlier one, as [`EpochCell::swap`] does.
    pub fn fill(&self, value: Arc<T>) {
        retire(self.pointer.swap(Arc::into_raw(value).cast_mut(), Ordering::AcqRel));
    }

    /// Takes out what it holds; the collector drops it.
    pub fn clear(&self) {
        retire(self.pointer.swap(ptr::null_mut(), Ordering::AcqRel));
    }
}

impl<T: Send + Sync + 'static> Drop for EpochSlot<T> {
    fn drop(&mut self) {
        if let Some(pointer) = NonNull::new(owned(&self.pointer, Ordering::Relaxed)) {
            // Nobody borrows the slot, so nobody has loaded the value without a count (invariant 2).
            Retired(pointer).release();
        }
    }
}

impl<T: Send + Sync + fmt::Debug + 'static> fmt::Debug for EpochSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EpochSlot").field(&self.load(&pin())).finish()
    }
}
