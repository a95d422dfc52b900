//! Sums that threads raise and lower without a shared read-modify-write, and that are compared with a bound.
//!
//! Each thread has a stripe to itself, as in [`Stripes`](super::Stripes), and adds to it with a plain load and store.
//! The sum of all stripes is exact, but reading it touches a cache line of each thread. So there is also a total that
//! all threads share. A thread tells it what it has added whenever that has come to a *step*. The total is then wrong
//! by less than a step for each thread, and who compares it with a bound reads the stripes only if it is nearer to
//! the bound than that (Linux calls this a `percpu_counter`). So nobody writes to a shared line for what comes and goes
//! in less than a step, and a comparison has the same result as with an exact sum.
//!
//! 1. Only the thread whose number a stripe has writes to it. Threads without a number share the last stripe, add
//!    atomically, and tell the total at once.
//! 2. A thread may lower what another one has raised, so a stripe may be below zero. All arithmetic is modulo 2^64.
//! 3. Of two threads that raise a sum at the same time and then compare it, at least one sees what both have added: a
//!    sequentially consistent fence stands between the additions and the comparison.

use super::primitives::{AtomicU64, Ordering, fence};
use super::stripes::{NOBODY, STRIPES, numbers, own_number};

/// What one thread has added.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<const N: usize> {
    added: [AtomicU64; N],
    /// The part of it that the total does not have yet, less than a step.
    untold: [AtomicU64; N],
}

/// What all threads read and seldom write.
#[derive(Debug)]
#[repr(align(128))]
struct Totals<const N: usize>([AtomicU64; N]);

/// `N` sums; see the head of this module.
#[derive(Debug)]
pub struct Sums<const N: usize> {
    stripes: [Stripe<N>; STRIPES],
    totals: Totals<N>,
    step: u64,
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

impl<const N: usize> Sums<N> {
    /// Sums that are zero, of which a thread keeps less than a step, of at least 1, to itself.
    pub fn new(step: u64) -> Self {
        Self {
            stripes: std::array::from_fn(|_| Stripe { added: zeros(), untold: zeros() }),
            totals: Totals(zeros()),
            step: step.max(1),
        }
    }

    /// Adds to a sum, modulo 2^64: so an addition also subtracts.
    #[inline]
    pub fn add(&self, sum: usize, more: u64) {
        self.add_as(own_number(), sum, more);
    }

    /// Adds for the thread of this number, which must be the calling thread.
    #[inline]
    pub(crate) fn add_as(&self, number: usize, sum: usize, more: u64) {
        let Stripe { added, untold } = &self.stripes[number % STRIPES];
        let total = &self.totals.0[sum];
        if number >= NOBODY {
            added[sum].fetch_add(more, Ordering::Relaxed);
            total.fetch_add(more, Ordering::Relaxed);
            return;
        }
        let own = added[sum].load(Ordering::Relaxed).wrapping_add(more);
        added[sum].store(own, Ordering::Relaxed);
        let mut rest = untold[sum].load(Ordering::Relaxed).wrapping_add(more);
        // Seeded: all threads write to one line for whatever one of them adds.
        if (rest as i64).unsigned_abs() >= self.step || bug!("sync_sums_tell_at_once") {
            total.fetch_add(rest, Ordering::Relaxed);
            rest = 0;
        }
        untold[sum].store(rest, Ordering::Relaxed);
    }

    /// The sum. Exact, except for what other threads add meanwhile.
    pub fn get(&self, sum: usize) -> u64 {
        let added = self.stripes.iter().map(|stripe| stripe.added[sum].load(Ordering::Relaxed));
        // What one thread raises and another lowers meanwhile may be seen lowered only.
        (added.fold(0, u64::wrapping_add) as i64).max(0) as u64
    }

    /// Whether the sum is more than a limit.
    #[inline]
    pub fn exceeds(&self, sum: usize, limit: u64) -> bool {
        self.exceeds_among(numbers(), sum, limit)
    }

    /// Whether it is, if so many threads have had stripes.
    fn exceeds_among(&self, threads: usize, sum: usize, limit: u64) -> bool {
        fence(Ordering::SeqCst);
        let total = self.totals.0[sum].load(Ordering::Relaxed) as i64;
        let over = i128::from(total) - i128::from(limit);
        // Seeded: what threads have not told yet is beyond the bound.
        let unsure = if bug!("sync_sums_compared_untold") { 0 } else { self.step };
        if over.unsigned_abs() >= u128::from(unsure) * threads as u128 {
            return over > 0;
        }
        self.get(sum) > limit
    }

    /// What the threads have told of the sum.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn told(&self, sum: usize) -> u64 {
        self.totals.0[sum].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
