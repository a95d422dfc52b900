//! The recorder of plain reads.
//!
//! It counts each answer of a filter when it comes, with one instruction: to sum them up first costs
//! more, because most reads ask few filters. A search that lacks something in memory is repeated by
//! a recorder of steps. This one remembers what it has counted, so that the repetition does not
//! count it again.

use crate::stats::counters::{CallLane, Counter};
use crate::trace::{FilterAnswer, FilterCounts, Recorder};

/// Counts the answers of filters, and records nothing else.
#[derive(Debug)]
pub struct Counting<'a> {
    lane: CallLane<'a>,
    counted: FilterCounts,
}

impl<'a> Counting<'a> {
    /// Adds to these counters.
    #[inline]
    pub fn new(lane: CallLane<'a>) -> Self {
        Self { lane, counted: FilterCounts::default() }
    }
}

/// The counter of an answer.
#[inline]
pub fn counter_of(answer: FilterAnswer) -> Counter {
    match answer {
        FilterAnswer::Absent => Counter::FilterAbsent,
        FilterAnswer::FalsePositive => Counter::FilterFalsePositives,
        FilterAnswer::Found => Counter::FilterFound,
    }
}

impl Recorder for Counting<'_> {
    const RECORDS: bool = false;

    #[inline]
    fn filter(&mut self, answer: FilterAnswer) {
        if cfg!(feature = "bench-no-stats") {
            return;
        }
        self.lane.add(counter_of(answer) as usize, 1);
        // No search is repeated that found its key.
        if answer != FilterAnswer::Found {
            self.counted.add(answer);
        }
    }

    fn counted(&self) -> FilterCounts {
        self.counted
    }
}
