//! Comparisons of two engines, as the page and the tables in Markdown show them.
//!
//! For each workload and each other engine there is one outcome: the measure that compares speed, the
//! ratio, and the mark (win, loss, tie). The page counts these outcomes in its summary. [`judged`] is
//! the rule for any two sets of rounds, also for those of a baseline.

use super::figure::{Mark, Measure, Spread, Verdict, batched, compare};
use super::group::{Group, Workload};
use super::input::Step;
use super::words;

/// The workloads that have figures to show; statistics are text.
pub fn shown(group: &Group) -> impl Iterator<Item = (usize, &Workload)> {
    group.workloads.iter().enumerate().filter(|(_, workload)| !workload.is_text())
}

/// How ours compares with the engine of `column`, if both have the measure.
pub fn verdict(measure: Measure, workload: &Workload, column: usize) -> Option<Verdict> {
    judged(measure, workload.rounds.first()?, workload.rounds.get(column)?)
}

/// How some rounds compare with others, if both have the measure.
pub fn judged(measure: Measure, ours: &[Step], theirs: &[Step]) -> Option<Verdict> {
    let spread = |rounds| Spread::of(measure, rounds);
    let mut verdict = compare(measure, &spread(ours)?, &spread(theirs)?);
    if batched(ours) != batched(theirs) {
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

/// How many comparisons ended in each way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    pub wins: usize,
    pub losses: usize,
    pub ties: usize,
    pub once: usize,
    pub unlike: usize,
}

impl Score {
    /// Of comparisons that ended like this.
    pub fn of(marks: impl Iterator<Item = Mark>) -> Self {
        let mut score = Self::default();
        for mark in marks {
            match mark {
                Mark::Win => score.wins += 1,
                Mark::Loss => score.losses += 1,
                Mark::Tie => score.ties += 1,
                Mark::Once => score.once += 1,
                Mark::Unlike => score.unlike += 1,
            }
        }
        score
    }

    /// All of them.
    pub fn total(&self) -> usize {
        self.wins + self.losses + self.ties + self.once + self.unlike
    }

    /// In words.
    pub fn words(&self) -> String {
        let mut parts = vec![
            words::count(self.wins, "win", "wins"),
            words::count(self.losses, "loss", "losses"),
            words::count(self.ties, "tie", "ties"),
        ];
        if self.once > 0 {
            parts.push(format!("{} measured in one round only", self.once));
        }
        if self.unlike > 0 {
            parts.push(format!("{} of other work", self.unlike));
        }
        words::listed(&parts)
    }
}

/// The stores that lead a workload: the best, and those that tie with it. The flag says whether
/// one of those compared ran only once, so that nobody knows the spread. Engines that did other work
/// than ours do not take part.
pub fn leaders(group: &Group, workload: &Workload) -> (Vec<usize>, bool) {
    let measure = speed(workload);
    let ours = batched(&workload.rounds[0]);
    let rounds = |column: usize| workload.rounds[column].as_slice();
    let median = |column| Spread::of(measure, rounds(column)).map(|spread| spread.median);
    let takes_part = |column: &usize| {
        let like = batched(rounds(*column)) == ours;
        like && !group.columns[*column].is_yardstick() && median(*column).is_some()
    };
    let columns: Vec<usize> = (0..group.columns.len()).filter(takes_part).collect();
    let by_median = |a: &&usize, b: &&usize| {
        let order = median(**a).unwrap_or(0.0).total_cmp(&median(**b).unwrap_or(0.0));
        if measure.more_is_better() { order } else { order.reverse() }
    };
    let Some(best) = columns.iter().max_by(by_median).copied().filter(|_| columns.len() > 1) else {
        return (Vec::new(), false);
    };
    let mark =
        |column: &usize| judged(measure, rounds(best), rounds(*column)).map(|verdict| verdict.mark);
    let others = || columns.iter().filter(|column| **column != best);
    let once = others().any(|column| mark(column) == Some(Mark::Once));
    let tied = others().filter(|column| mark(column) == Some(Mark::Tie));
    (std::iter::once(best).chain(tied.copied()).collect(), once)
}
