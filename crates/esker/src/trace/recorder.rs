//! What follows a point read through its sources.

use super::explanation::{Outcome, Step, StepSource};
use super::tally::Tally;
use std::time::{Duration, Instant};

/// What a Bloom filter of a run segment was worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAnswer {
    /// It said that the key is absent.
    Absent,
    /// It let the read pass, which found nothing.
    FalsePositive,
    /// It let the read pass, which found the key.
    Found,
}

impl FilterAnswer {
    /// All answers.
    pub const ALL: [Self; 3] = [Self::Absent, Self::FalsePositive, Self::Found];
}

/// Follows one point read.
pub trait Recorder {
    /// Whether steps are recorded. Code that only describes steps asks this and is compiled out
    /// where they are not.
    const RECORDS: bool;
    /// A filter was consulted.
    fn filter(&mut self, answer: FilterAnswer);
    /// What filters answered so far, if nothing has counted it.
    fn uncounted(&self) -> FilterCounts {
        FilterCounts::default()
    }
    /// What filters answered so far, if it was counted when they answered.
    fn counted(&self) -> FilterCounts {
        FilterCounts::default()
    }
    /// The present source is searched in this file and run segment.
    fn segment(&mut self, _file: u64, _offset: u64) {}
    /// A block was found in the cache without a call that counts it in the thread's tally.
    fn cached_block(&mut self) {}
    /// This many entries were compared with the key.
    fn compared(&mut self, _entries: u64) {}
    /// Why the present source has nothing; [`Outcome::Absent`] if nobody says.
    fn reason(&mut self, _outcome: Outcome) {}
    /// The present source is done.
    fn step(&mut self, _source: StepSource, _outcome: Option<Outcome>) {}
    /// The recorder of steps, if this is one.
    fn recording(&mut self) -> Option<&mut Recording> {
        None
    }
}

const FIELD_BITS: u32 = 20;

/// The answers of filters during one read, three counts in one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterCounts(u64);

impl FilterCounts {
    /// Adds one.
    #[inline]
    pub fn add(&mut self, answer: FilterAnswer) {
        self.0 += 1 << (answer as u32 * FIELD_BITS);
    }

    /// Whether no filter was consulted.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These answers without the `others`, as far as they are among these.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        let mut rest = Self::default();
        for answer in FilterAnswer::ALL {
            let count = self.of(answer).saturating_sub(others.of(answer));
            rest.0 += count << (answer as u32 * FIELD_BITS);
        }
        rest
    }

    /// How often a filter gave this answer.
    pub fn of(self, answer: FilterAnswer) -> u64 {
        self.0 >> (answer as u32 * FIELD_BITS) & ((1 << FIELD_BITS) - 1)
    }
}

/// Records nothing.
#[derive(Debug, Default)]
pub struct Plain;

impl Recorder for Plain {
    const RECORDS: bool = false;

    fn filter(&mut self, _answer: FilterAnswer) {}
}

/// Records the steps of a read.
#[derive(Debug)]
pub struct Recording {
    /// The answers of filters.
    pub filters: FilterCounts,
    /// Those that were counted before the search began again.
    counted: FilterCounts,
    steps: Vec<Step>,
    began: Instant,
    /// When the present step began, and the tally of the thread then.
    step_began: (Instant, Tally),
    /// What is known of the present step.
    place: Option<(u64, u64)>,
    cached: u64,
    entries: u64,
    reason: Option<Outcome>,
}

impl Default for Recording {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            filters: FilterCounts::default(),
            counted: FilterCounts::default(),
            steps: Vec::with_capacity(8),
            began: now,
            step_began: (now, Tally::now()),
            place: None,
            cached: 0,
            entries: 0,
            reason: None,
        }
    }
}

impl Recording {
    /// Forgets the steps: the search begins again. The time runs on. `counted`: the answers of
    /// filters that the first attempt has counted.
    pub fn restart(&mut self, counted: FilterCounts) {
        (self.filters, self.counted) = (FilterCounts::default(), counted);
        self.steps.clear();
        self.begin_step(Instant::now());
    }

    fn begin_step(&mut self, now: Instant) {
        self.step_began = (now, Tally::now());
        (self.place, self.cached, self.entries, self.reason) = (None, 0, 0, None);
    }

    /// The time since the recording began, and its steps.
    pub fn finish(self) -> (Duration, Vec<Step>) {
        (self.began.elapsed(), self.steps)
    }
}

impl Recorder for Recording {
    const RECORDS: bool = true;

    fn filter(&mut self, answer: FilterAnswer) {
        self.filters.add(answer);
    }

    fn uncounted(&self) -> FilterCounts {
        self.filters.without(self.counted)
    }

    fn segment(&mut self, file: u64, offset: u64) {
        self.place = Some((file, offset));
    }

    fn cached_block(&mut self) {
        self.cached += 1;
    }

    fn compared(&mut self, entries: u64) {
        self.entries += entries;
    }

    fn reason(&mut self, outcome: Outcome) {
        self.reason = Some(outcome);
    }

    fn step(&mut self, source: StepSource, outcome: Option<Outcome>) {
        let (now, (began, tally)) = (Instant::now(), self.step_began);
        let read = Tally::now().since(tally);
        let mut blocks = read.blocks;
        blocks.cached += self.cached;
        let source = match (source, self.place) {
            (StepSource::Run { tier, partition, age, .. }, Some((file, segment))) => {
                let (file, segment) = (Some(file), Some(segment));
                StepSource::Run { tier, partition, age, file, segment }
            }
            (source, _) => source,
        };
        self.steps.push(Step {
            source,
            outcome: outcome.or(self.reason).unwrap_or(Outcome::Absent),
            blocks,
            bytes_read: read.bytes,
            entries: self.entries,
            time: now - began,
        });
        self.begin_step(now);
    }

    fn recording(&mut self) -> Option<&mut Recording> {
        Some(self)
    }
}
