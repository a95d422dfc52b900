//! Exact counters without a shared read-modify-write (R29).
//!
//! Each thread has a small number and, in every [`Stripes`], the stripe of that number to itself:
//! it adds with a plain load and store. Threads beyond the number of stripes share the last one and
//! pay an atomic addition. When a thread ends, a new one takes its number from the free list. The
//! lock of the list orders their stores, so no count is lost.

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads with a stripe of their own.
const OWNED: usize = 64;
/// A power of two above `OWNED`, so that no index needs a check.
const STRIPES: usize = 128;

/// Not given out yet.
const UNKNOWN: usize = usize::MAX;

/// Numbers of threads that ended, to be used again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The number of a thread, given back when it ends.
struct Number(usize);

impl Drop for Number {
    fn drop(&mut self) {
        // Counts during the rest of the tear-down go to the shared stripe.
        let _ = QUICK.try_with(|quick| quick.set(OWNED));
        FREE.lock().push(self.0);
    }
}

thread_local! {
    /// A copy of the number, which is read without checking whether the thread-local value is still
    /// alive.
    static QUICK: Cell<usize> = const { Cell::new(UNKNOWN) };
    static NUMBER: Number = Number({
        let freed = FREE.lock().pop();
        freed.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed))
    });
}

#[inline]
fn stripe_of_thread() -> usize {
    let quick = QUICK.with(Cell::get);
    if quick == UNKNOWN { learn_number() } else { quick }
}

#[cold]
fn learn_number() -> usize {
    let number = NUMBER.try_with(|number| number.0.min(OWNED)).unwrap_or(OWNED);
    QUICK.with(|quick| quick.set(number));
    number
}

#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

/// `N` counters, one stripe of them per thread.
#[derive(Debug)]
pub struct Stripes<const N: usize> {
    stripes: Box<[Stripe<N>; STRIPES]>,
}

/// The stripe of the calling thread.
#[derive(Debug, Clone, Copy)]
pub struct Lane<'a, const N: usize> {
    counters: &'a [AtomicU64; N],
    owned: bool,
}

impl<const N: usize> Default for Stripes<N> {
    fn default() -> Self {
        let stripe = |_| Stripe(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { stripes: Box::new(std::array::from_fn(stripe)) }
    }
}

impl<const N: usize> Stripes<N> {
    /// The calling thread's stripe.
    #[inline]
    pub fn lane(&self) -> Lane<'_, N> {
        let number = stripe_of_thread();
        Lane { counters: &self.stripes[number % STRIPES].0, owned: number < OWNED }
    }

    /// The sum of a counter over all threads.
    pub fn sum(&self, counter: usize) -> u64 {
        self.stripes.iter().map(|stripe| stripe.0[counter].load(Ordering::Relaxed)).sum()
    }
}

impl<const N: usize> Lane<'_, N> {
    /// Adds to a counter and returns its earlier value in this stripe.
    #[inline]
    pub fn add(self, counter: usize, n: u64) -> u64 {
        let counter = &self.counters[counter];
        if self.owned {
            let before = counter.load(Ordering::Relaxed);
            counter.store(before + n, Ordering::Relaxed);
            before
        } else {
            counter.fetch_add(n, Ordering::Relaxed)
        }
    }
}
