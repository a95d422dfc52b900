//! Independent cases of a campaign, on all processors.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Calls `run` with 0, 1, 2 and so on, on as many threads as there are processors, until one of the
/// calls answers false. Those that are under way then come to their ends.
///
/// # Panics
/// With what a call panicked with; no other is begun after that.
pub fn for_each(run: impl Fn(u64) -> bool + Sync) {
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let ends = EndAll(&over);
            if run(next.fetch_add(1, Ordering::Relaxed)) {
                std::mem::forget(ends);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let others: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for other in others {
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

/// Ends everything when it goes, also by a panic.
struct EndAll<'a>(&'a AtomicBool);

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn each_number_comes_once_until_somebody_ends_it() {
        let seen = std::sync::Mutex::new(Vec::new());
        for_each(|number| {
            seen.lock().unwrap().push(number);
            number < 100
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert!(seen.len() > 100 && seen.iter().copied().eq(0..seen.len() as u64));
    }

    #[test]
    fn a_panic_comes_out() {
        let failed = catch_unwind(AssertUnwindSafe(|| {
            for_each(|number| {
                assert_ne!(number, 7);
                true
            })
        }));
        assert!(failed.is_err());
    }
}
