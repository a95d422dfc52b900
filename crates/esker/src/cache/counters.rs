//! Hit and miss counters without a shared read-modify-write (R29): each thread owns a stripe, and
//! only threads beyond the number of stripes share one.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 64;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Exact counters, one stripe per thread.
#[derive(Debug)]
pub(super) struct Counters {
    /// The last one is shared by the threads that found no stripe of their own.
    stripes: Box<[Stripe]>,
}

/// Numbers of threads that ended, to be used again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static NEXT: AtomicUsize = AtomicUsize::new(0);

struct Number(usize);

impl Number {
    fn new() -> Self {
        let freed = FREE.lock().pop();
        Self(freed.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        FREE.lock().push(self.0);
    }
}

thread_local! {
    static NUMBER: Number = Number::new();
}

#[inline]
fn thread_number() -> usize {
    // While a thread is being torn down it counts on the shared stripe.
    NUMBER.try_with(|number| number.0).unwrap_or(STRIPES)
}

impl Default for Counters {
    fn default() -> Self {
        Self { stripes: (0..=STRIPES).map(|_| Stripe::default()).collect() }
    }
}

impl Counters {
    #[inline]
    fn add(&self, counter: impl Fn(&Stripe) -> &AtomicU64) {
        let number = thread_number();
        if number < STRIPES {
            // Only this thread writes here. A number passes from thread to thread through the
            // lock of the free list, which orders their stores.
            let counter = counter(&self.stripes[number]);
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        } else {
            counter(&self.stripes[STRIPES]).fetch_add(1, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn hit(&self) {
        self.add(|stripe| &stripe.hits);
    }

    pub(super) fn miss(&self) {
        self.add(|stripe| &stripe.misses);
    }

    pub(super) fn sum(&self) -> (u64, u64) {
        self.stripes.iter().fold((0, 0), |(hits, misses), stripe| {
            let hits = hits + stripe.hits.load(Ordering::Relaxed);
            (hits, misses + stripe.misses.load(Ordering::Relaxed))
        })
    }
}
