//! What follows a write through its phases.

use super::explanation::{BlockCounts, Explanation, Outcome, Step, StepSource, WaitTime};
use crate::waits::{Cause, take_tally};
use std::time::{Duration, Instant};

/// Follows one write through its phases: those of [`StepSource`] from `Admission` on, in that order.
pub trait Phases {
    /// Whether it does anything.
    const FOLLOWS: bool;
    /// A phase has ended.
    #[inline]
    fn ended(&mut self, _phase: StepSource) {}
}

/// Follows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Untimed;

impl Phases for Untimed {
    const FOLLOWS: bool = false;
}

/// Keeps a step for each phase. A phase that runs again (after a wait for space) has one step with
/// the sum of its times.
#[derive(Debug)]
pub struct WriteRecording {
    began: Instant,
    phase_began: Instant,
    steps: Vec<Step>,
}

impl Default for WriteRecording {
    fn default() -> Self {
        take_waits();
        let now = Instant::now();
        Self { began: now, phase_began: now, steps: Vec::with_capacity(6) }
    }
}

impl Phases for WriteRecording {
    const FOLLOWS: bool = true;

    fn ended(&mut self, source: StepSource) {
        let now = Instant::now();
        let time = now - self.phase_began;
        self.phase_began = now;
        if let Some(step) = self.steps.iter_mut().find(|step| step.source == source) {
            step.time += time;
            return;
        }
        let (outcome, blocks) = (Outcome::Done, BlockCounts::default());
        self.steps.push(Step { source, outcome, blocks, bytes_read: 0, entries: 0, time });
    }
}

impl WriteRecording {
    /// What the write did; `keyspace` is the name of the keyspace that it wrote to.
    pub fn explain(self, keyspace: &str) -> Explanation {
        let explanation = Explanation::of("put", keyspace, self.began.elapsed());
        Explanation { found: true, waits: take_waits(), ..explanation.with_steps(self.steps) }
    }
}

/// What the calling thread waited for since the last call.
pub fn take_waits() -> Vec<WaitTime> {
    let tally = take_tally();
    let waited = Cause::ALL.into_iter().zip(tally).filter(|(_, nanos)| *nanos > 0);
    let wait = |(cause, nanos)| WaitTime { cause, time: Duration::from_nanos(nanos) };
    waited.map(wait).collect()
}
