//! Counting what a thread has allocated.
//!
//! The allocator of this binary is the system's. While a thread counts, what it allocates and
//! frees is summed up beside; other threads are not disturbed.
#![allow(unsafe_code, reason = "the interface of an allocator is unsafe")]
#![allow(dead_code, reason = "each program uses a part of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

thread_local! {
    /// Bytes that are allocated, and the most that were; `None`: nothing is counted.
    static COUNT: Cell<Option<(i64, i64)>> = const { Cell::new(None) };
    /// How often this thread has allocated since it began.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn note(bytes: i64) {
    // A thread that ends has no count any more.
    let _ = COUNT.try_with(|count| {
        if let Some((now, peak)) = count.get() {
            let now = now + bytes;
            count.set(Some((now, peak.max(now))));
        }
    });
}

// SAFETY: every call is passed on to the system's allocator with the same arguments; what is
// counted beside allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: the caller's contract is the system's.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The most bytes that this thread had allocated at once during a call, beyond what it had before.
pub fn peak_of<T>(call: impl FnOnce() -> T) -> (u64, T) {
    COUNT.with(|count| count.set(Some((0, 0))));
    let result = call();
    let (_, peak) = COUNT.with(|count| count.replace(None)).unwrap();
    (peak as u64, result)
}

/// How often this thread allocated during a call.
pub fn allocations_of<T>(call: impl FnOnce() -> T) -> (u64, T) {
    let before = CALLS.get();
    let result = call();
    (CALLS.get() - before, result)
}
