//! Comparisons of two engines, as the page and the tables in Markdown show them.
//!
//! For each workload and each other engine there is one outcome: the measure that compares speed, the
//! ratio, and the mark (win, loss, tie). The page counts these outcomes in its summary.

use super::figure::{Mark, Measure, Spread, Verdict, batched, compare};
use super::group::{Group, Workload};

/// The workloads that have figures to show; statistics are text.
pub fn shown(group: &Group) -> impl Iterator<Item = (usize, &Workload)> {
    group.workloads.iter().enumerate().filter(|(_, workload)| !workload.is_text())
}

/// How ours compares with the engine of `column`, if both have the measure.
pub fn verdict(measure: Measure, workload: &Workload, column: usize) -> Option<Verdict> {
    let spread = |column: usize| Spread::of(measure, workload.rounds.get(column)?);
    let mut verdict = compare(measure, &spread(0)?, &spread(column)?);
    if batched(&workload.rounds[0]) != batched(&workload.rounds[column]) {
        verdict.mark = Mark::Unlike;
    }
    Some(verdict)
}

/// The measure of speed of a workload.
pub fn speed(workload: &Workload) -> Measure {
    workload.any().map_or(Measure::Rate, Measure::speed_of)
}

/// One comparison of two engines.
pub struct Outcome<'a> {
    /// In which workload.
    pub workload: &'a Workload,
    /// The other engine.
    pub column: usize,
    /// How it ended.
    pub verdict: Verdict,
}

impl Outcome<'_> {
    /// The ratio, the worst possible where there is none.
    pub fn share(&self) -> f64 {
        self.verdict.ratio.unwrap_or(0.0)
    }
}

/// The comparisons of one measure, with every engine that is a store.
pub fn outcomes(group: &Group, of: impl Fn(&Workload) -> Measure) -> Vec<Outcome<'_>> {
    let mut outcomes = Vec::new();
    for (_, workload) in shown(group) {
        for (column, engine) in group.columns.iter().enumerate().skip(1) {
            let found = verdict(of(workload), workload, column).filter(|_| !engine.is_yardstick());
            // Nothing is compared where neither engine has any of it.
            let nothing = |column: usize| {
                let spread = Spread::of(of(workload), &workload.rounds[column]);
                spread.is_none_or(|spread| spread.max == 0.0)
            };
            let found = found.filter(|_| !nothing(0) || !nothing(column));
            outcomes.extend(found.map(|verdict| Outcome { workload, column, verdict }));
        }
    }
    outcomes
}
