//! A thread that does nothing, which shows the machine's own pauses.
//!
//! It waits a millisecond at a time and reads the clock when it wakes. The time by which it wakes too
//! late was taken by the scheduler, the hypervisor or another process. A pause of the engine that is no
//! longer than this gap may not be the engine's. The probe counts its own context switches and CPU
//! time, so that they can be subtracted.

use super::process::{self, ThreadUse};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(1);

/// What the idle thread saw.
#[derive(Debug, Clone, Copy, Default)]
pub struct Idle {
    /// The longest time it lay beyond what it asked for.
    pub longest_gap: Duration,
    /// What it used itself.
    pub own: ThreadUse,
}

/// Tells the idle thread to end.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    condition: Condvar,
}

impl Bell {
    /// Wakes the waiter for good.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_all();
    }

    /// Waits for the bell; true once it rang, false after `timeout`.
    pub fn wait(&self, timeout: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.condition.wait_timeout_while(rung, timeout, |rung| !*rung);
        *wait.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Watches until the bell rings.
pub fn watch(bell: &Bell) -> Idle {
    let before = process::thread_use();
    let mut longest_gap = Duration::ZERO;
    let mut last = Instant::now();
    loop {
        let rung = bell.wait(NAP);
        let now = Instant::now();
        longest_gap = longest_gap.max((now - last).saturating_sub(NAP));
        last = now;
        if rung {
            return Idle { longest_gap, own: process::thread_use().since(&before) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_ends_with_the_bell() {
        let bell = Bell::default();
        let idle = std::thread::scope(|scope| {
            let probe = scope.spawn(|| watch(&bell));
            assert!(!bell.wait(Duration::from_millis(5)));
            bell.ring();
            probe.join().unwrap()
        });
        assert!(bell.wait(Duration::ZERO), "the bell stays rung");
        if cfg!(target_os = "linux") {
            assert!(idle.own.switches > 0, "a thread that naps gives up its core");
        }
    }
}
