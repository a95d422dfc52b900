//! Exact counters without a shared read-modify-write (R29).
//!
//! Each thread has a small number and, in every [`Stripes`], the stripe of that number to itself:
//! it adds with a plain load and store. Threads beyond the number of stripes share one and pay
//! atomic additions. When a thread ends, a new one takes its number from the free list. The lock of
//! the list orders their stores, so no count is lost.
//!
//! A counter of calls also says which calls to time ([`Stripes::tick`]): its low eight bits say how
//! many calls are left before the next one to time, the bits above them are the count. One addition
//! changes both. A timed call draws the next distance, between 1 and 256 calls and 128.5 on average,
//! pseudo-randomly: with regular distances, a program that alternates between two kinds of calls
//! would have only one kind timed.
//!
//! The last stripe is nobody's and stays zero. A thread that has no stripe of its own, or does not
//! know its number yet, finds that one, so its calls look as if they were to be timed. Only the slow
//! way of timed calls ([`Stripes::tick_apart`]) then tells such threads from others, and the quick
//! way has one branch. Once a call has its stripe, each further addition is one instruction.

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Stripes, with that of nobody; few in models, whose threads have small stacks. A power of two, so
/// that a number is made an index without a branch.
pub(super) const STRIPES: usize = if cfg!(loom) { 4 } else { 64 };

/// The number of a thread that has no stripe of its own, or does not know its number yet.
pub(super) const NOBODY: usize = STRIPES - 1;

/// Bits of a counter of calls that say how many calls are left before the next one to time.
const LEFT_BITS: u32 = 8;
/// One call more in a counter of calls.
const CALL: u64 = 1 << LEFT_BITS;

/// What the number of a thread is multiplied by where it is kept. With stripes of this size, the
/// place of a thread's stripe takes one instruction.
const SCALE: usize = 128;

/// Numbers of threads that ended, to be used again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The number of a thread, given back when it ends.
struct Number(usize);

impl Drop for Number {
    fn drop(&mut self) {
        // Counts during the rest of the tear-down go to the shared stripe.
        let _ = QUICK.try_with(|quick| quick.set(NOBODY * SCALE));
        FREE.lock().push(self.0);
    }
}

thread_local! {
    /// A copy of the number, times [`SCALE`], which is read without checking whether the
    /// thread-local value is still alive.
    static QUICK: Cell<usize> = const { Cell::new(NOBODY * SCALE) };
    static NUMBER: Number = Number({
        let freed = FREE.lock().pop();
        freed.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed))
    });
}

#[cold]
#[inline(never)]
fn learn_number() -> usize {
    let number = NUMBER.try_with(|number| number.0.min(NOBODY)).unwrap_or(NOBODY);
    QUICK.with(|quick| quick.set(number * SCALE));
    number
}

/// The number of the calling thread; [`NOBODY`]: it has no stripe of its own.
#[inline]
pub(super) fn own_number() -> usize {
    let known = QUICK.with(Cell::get) / SCALE;
    if known < NOBODY { known } else { learn_number() }
}

/// Whether the calling thread has a stripe of its own.
#[cfg(all(test, not(loom)))]
pub fn has_stripe() -> bool {
    own_number() < NOBODY
}

/// How many stripes threads have had so far. Models give numbers themselves.
#[inline]
pub(super) fn numbers() -> usize {
    if cfg!(loom) { NOBODY } else { NEXT.load(Ordering::Relaxed).min(NOBODY) }
}

/// Whether the next call of a counter of calls is timed.
#[inline]
fn is_due(now: u64) -> bool {
    now.is_multiple_of(CALL)
}

/// A counter of calls after one more call. Two rounds of multiplication draw the distance: with one
/// round, distances of eight bits are 108 on average instead of 127.5.
fn ticked(now: u64) -> u64 {
    if !is_due(now) {
        return now + CALL - 1;
    }
    let once = now.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let twice = (once ^ (once >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    now + CALL + (twice >> (64 - LEFT_BITS))
}

#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Stripe<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// `N` counters, one stripe of them per thread.
#[derive(Debug)]
pub struct Stripes<const N: usize> {
    stripes: [Stripe<N>; STRIPES],
    /// Of all threads that have none of their own.
    shared: Stripe<N>,
}

/// A stripe to which only the calling thread adds. It is one word, because calls keep it until they
/// end.
#[derive(Debug)]
pub struct Lane<'a, const N: usize>(&'a Stripe<N>);

impl<const N: usize> Clone for Lane<'_, N> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize> Copy for Lane<'_, N> {}

impl<const N: usize> Lane<'_, N> {
    /// Adds to a counter.
    #[inline]
    pub fn add(self, counter: usize, n: u64) {
        let counter = &self.0.0[counter];
        counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }
}

/// The counters of a call that takes the slow way.
#[derive(Debug)]
pub struct Apart<'a, const N: usize> {
    stripe: Either<'a, N>,
    timed: bool,
}

#[derive(Debug)]
enum Either<'a, const N: usize> {
    /// The thread's own stripe.
    Own(&'a Stripe<N>),
    /// What the call of a thread without one has counted. It is added to the stripe that such
    /// threads share when the call ends.
    Shared { counted: Stripe<N>, shared: &'a Stripe<N> },
}

impl<const N: usize> Apart<'_, N> {
    /// The stripe that the call adds to.
    pub fn lane(&self) -> Lane<'_, N> {
        match &self.stripe {
            Either::Own(own) => Lane(own),
            Either::Shared { counted, .. } => Lane(counted),
        }
    }

    /// Whether the call is to be timed.
    pub fn is_timed(&self) -> bool {
        self.timed
    }
}

impl<const N: usize> Drop for Apart<'_, N> {
    fn drop(&mut self) {
        let Either::Shared { counted, shared } = &mut self.stripe else { return };
        for (shared, counted) in shared.0.iter().zip(&mut counted.0) {
            let n = *counted.get_mut();
            if n > 0 {
                shared.fetch_add(n, Ordering::Relaxed);
            }
        }
    }
}

impl<const N: usize> Default for Stripes<N> {
    fn default() -> Self {
        Self { stripes: std::array::from_fn(|_| Stripe::default()), shared: Stripe::default() }
    }
}

impl<const N: usize> Stripes<N> {
    /// The calling thread's stripe, or that of nobody.
    #[inline]
    fn quick(&self) -> &Stripe<N> {
        &self.stripes[QUICK.with(Cell::get) / SCALE % STRIPES]
    }

    /// The calling thread's stripe; `None`: it shares one.
    #[cold]
    #[inline(never)]
    fn own(&self) -> Option<&Stripe<N>> {
        self.stripes[..NOBODY].get(own_number())
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

    /// The calling thread's stripe, if it is known without a search for one.
    #[inline]
    pub fn lane(&self) -> Option<Lane<'_, N>> {
        let stripe = self.quick();
        let nobody = std::ptr::eq(stripe, &raw const self.stripes[NOBODY]);
        (!nobody).then_some(Lane(stripe))
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(&self, counter: usize, n: u64) {
        match self.lane() {
            Some(lane) => lane.add(counter, n),
            None => self.add_slowly(counter, n),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_slowly(&self, counter: usize, n: u64) {
        match self.own() {
            Some(own) => Lane(own).add(counter, n),
            None => {
                self.shared.0[counter].fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    /// The calling thread's stripe, unless the next call of a counter of calls goes the slow way: then [`Self::tick`]
    /// adds the call once it is known that it counts.
    #[inline]
    pub fn untimed(&self, counter: usize) -> Option<Lane<'_, N>> {
        let stripe = self.quick();
        let due = is_due(stripe.0[counter].load(Ordering::Relaxed));
        (!due || cfg!(feature = "bench-no-stats")).then_some(Lane(stripe))
    }

    /// Adds one to a counter of calls, unless the call goes the slow way: it then adds nothing, and
    /// the caller goes on with [`Self::tick_apart`].
    #[inline]
    pub fn tick(&self, counter: usize) -> Option<Lane<'_, N>> {
        let stripe = self.quick();
        if cfg!(feature = "bench-no-stats") {
            return Some(Lane(stripe));
        }
        let counter = &stripe.0[counter];
        if is_due(counter.load(Ordering::Relaxed)) {
            return None;
        }
        counter.store(counter.load(Ordering::Relaxed) + (CALL - 1), Ordering::Relaxed);
        Some(Lane(stripe))
    }

    /// Adds one to a counter of calls for which [`Self::tick`] did not.
    #[inline(never)]
    pub fn tick_apart(&self, counter: usize) -> Apart<'_, N> {
        let Some(own) = self.own() else {
            let (shared, counted) = (&self.shared, Stripe::default());
            let timed = shared_tick(&shared.0[counter]);
            return Apart { stripe: Either::Shared { counted, shared }, timed };
        };
        let counter = &own.0[counter];
        let now = counter.load(Ordering::Relaxed);
        counter.store(ticked(now), Ordering::Relaxed);
        Apart { stripe: Either::Own(own), timed: is_due(now) }
    }
}

/// [`Stripes::tick_apart`] on a stripe that threads share.
fn shared_tick(counter: &AtomicU64) -> bool {
    let next = |now| Some(ticked(now));
    let before = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    is_due(before.unwrap_or_else(|now| now))
}
