//! Exact counters without a shared read-modify-write (R29).
//!
//! Each thread has a small number and, in every [`Stripes`], the stripe of that number to itself:
//! it adds with a plain load and store. Threads beyond the number of stripes share the last one and
//! pay an atomic addition. When a thread ends, a new one takes its number from the free list. The
//! lock of the list orders their stores, so no count is lost.
//!
//! A counter of calls also says which calls to time ([`Stripes::tick`]): its low seven bits say how many
//! calls are left before the next one to time, the bits above them are the count. One addition
//! changes both. A timed call draws the next distance, between 1 and 128 calls and 64.5 on average,
//! pseudo-randomly: with regular distances, a program that alternates between two kinds of calls
//! would have only one kind timed.

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads with a stripe of their own; few in models, whose threads have small stacks.
const OWNED: usize = if cfg!(loom) { 4 } else { 64 };

/// Not given out yet.
const UNKNOWN: usize = usize::MAX;

/// Bits of a counter of calls that say how many calls are left before the next one to time.
const LEFT_BITS: u32 = 7;
/// One call more in a counter of calls.
const CALL: u64 = 1 << LEFT_BITS;

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

#[cold]
#[inline(never)]
fn learn_number() -> usize {
    let number = NUMBER.try_with(|number| number.0.min(OWNED)).unwrap_or(OWNED);
    QUICK.with(|quick| quick.set(number));
    number
}

/// A counter of calls after one more call, and whether this call is timed.
#[inline]
fn ticked(now: u64) -> (u64, bool) {
    if now.is_multiple_of(CALL) { (drawn(now), true) } else { (now + CALL - 1, false) }
}

/// A counter of calls after a timed call. The golden ratio spreads the distances (Fibonacci hashing,
/// Knuth).
#[cold]
fn drawn(now: u64) -> u64 {
    let distance = now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - LEFT_BITS);
    now + CALL + distance
}

#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

/// `N` counters, one stripe of them per thread.
#[derive(Debug)]
pub struct Stripes<const N: usize> {
    stripes: [Stripe<N>; OWNED],
    /// Of all other threads.
    shared: Stripe<N>,
}

/// The stripe of the calling thread. It is one word, because calls keep it until they end.
#[derive(Debug)]
pub struct Lane<'a, const N: usize> {
    /// `None`: the shared one.
    own: Option<&'a Stripe<N>>,
}

impl<const N: usize> Clone for Lane<'_, N> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize> Copy for Lane<'_, N> {}

impl<const N: usize> Default for Stripes<N> {
    fn default() -> Self {
        let stripe = || Stripe(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { stripes: std::array::from_fn(|_| stripe()), shared: stripe() }
    }
}

impl<const N: usize> Stripes<N> {
    /// The calling thread's stripe.
    #[inline]
    pub fn lane(&self) -> Lane<'_, N> {
        let number = QUICK.with(Cell::get);
        Lane { own: if number < OWNED { Some(&self.stripes[number]) } else { self.seek_lane() } }
    }

    /// The stripe of a thread that has none of its own, or does not know its number yet.
    #[cold]
    #[inline(never)]
    fn seek_lane(&self) -> Option<&Stripe<N>> {
        self.stripes.get(learn_number())
    }

    fn all(&self, counter: usize) -> impl Iterator<Item = u64> + '_ {
        let stripes = self.stripes.iter().chain([&self.shared]);
        stripes.map(move |stripe| stripe.0[counter].load(Ordering::Relaxed))
    }

    /// The sum of a counter over all threads.
    pub fn sum(&self, counter: usize) -> u64 {
        self.all(counter).sum()
    }

    /// The sum of a counter of calls ([`Self::tick`]) over all threads.
    pub fn calls(&self, counter: usize) -> u64 {
        self.all(counter).map(|calls| calls >> LEFT_BITS).sum()
    }

    /// Adds to a counter; `lane` is the calling thread's.
    #[inline]
    pub fn add(&self, lane: Lane<'_, N>, counter: usize, n: u64) {
        match lane.own {
            Some(stripe) => {
                let counter = &stripe.0[counter];
                counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
            }
            None => self.add_shared(counter, n),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_shared(&self, counter: usize, n: u64) {
        self.shared.0[counter].fetch_add(n, Ordering::Relaxed);
    }

    /// Adds one to a counter of calls, and returns whether the call is to be timed.
    #[inline]
    pub fn tick(&self, lane: Lane<'_, N>, counter: usize) -> bool {
        let Some(stripe) = lane.own else { return shared_tick(&self.shared.0[counter]) };
        let counter = &stripe.0[counter];
        let (next, timed) = ticked(counter.load(Ordering::Relaxed));
        counter.store(next, Ordering::Relaxed);
        timed
    }
}

/// [`Stripes::tick`] on a stripe that threads share.
#[cold]
#[inline(never)]
fn shared_tick(counter: &AtomicU64) -> bool {
    let next = |now| Some(ticked(now).0);
    let before = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    ticked(before.unwrap_or_else(|now| now)).1
}
