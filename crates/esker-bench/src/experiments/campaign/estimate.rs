//! How long the rest of a campaign will take.
//!
//! A step that was measured, by any engine in any round, is expected to take as long again; a step that
//! a time limit ends takes that time. Steps that were not measured yet are counted, not guessed.

use super::journal::Known;
use super::wanted::Campaign;
use crate::experiments::published::Step;
use crate::harness::measure::median::median;
use std::time::Duration;

/// How long the rest of a campaign will take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The steps of which the length is known or has been measured.
    pub known: Duration,
    /// Steps that nobody has measured yet.
    pub unknown: usize,
}

/// What a campaign still has to do.
pub struct Estimate {
    /// For each step: how long it takes, if that is known, and how often it is still to be done.
    steps: Vec<(Option<f64>, usize)>,
}

impl Estimate {
    /// From what the runs have measured so far.
    pub fn of(campaign: &Campaign, steps: &[Step], runs: &[Known]) -> Self {
        let settings = &campaign.settings;
        let steps = steps.iter().enumerate().map(|(place, step)| {
            let reports = runs.iter().filter_map(|run| run.report.workloads.get(place));
            let measured = median(reports.map(|report| report.seconds).collect());
            let timed = campaign.experiment.timed(settings, step);
            let seconds = timed.map(|length| length.as_secs_f64()).or(measured);
            let open =
                |run: &&Known| run.report.workloads.len() <= place && run.report.failure.is_none();
            (seconds, runs.iter().filter(open).count())
        });
        Self { steps: steps.collect() }
    }

    /// How long that will take.
    pub fn left(&self) -> Left {
        let known =
            self.steps.iter().filter_map(|(seconds, runs)| Some((*seconds)? * *runs as f64));
        let unknown = self.steps.iter().filter(|(seconds, _)| seconds.is_none());
        Left {
            known: Duration::try_from_secs_f64(known.sum()).unwrap_or(Duration::MAX),
            unknown: unknown.map(|(_, runs)| runs).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_measured_is_counted_and_not_guessed() {
        let estimate =
            Estimate { steps: vec![(Some(1.5), 2), (None, 3), (Some(2.0), 0), (None, 1)] };
        assert_eq!(estimate.left(), Left { known: Duration::from_secs(3), unknown: 4 });
    }
}
