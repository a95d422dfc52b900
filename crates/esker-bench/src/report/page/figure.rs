//! What is compared: measures, their spread over rounds, and who is ahead.
//!
//! A measure is either a rate, of which more is better, or a cost, of which less is better. Ratios are
//! always above 1 if the engine that the page is about is better. A difference of medians that is not
//! larger than the wider of both spreads is a tie, and so are rounds that overlap: one more round could
//! have reversed them. If either engine ran only once, nothing is known about the spread, and there is
//! no winner.

use super::input::{Figure, Step};
use crate::harness::measure::median::median;

/// What is measured of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Operations a second.
    Rate,
    /// How long one call on the database took.
    Seconds,
    /// Median latency.
    P50,
    /// 90th percentile of latencies.
    P90,
    /// 99th percentile of latencies.
    P99,
    /// 99.9th percentile of latencies.
    P999,
    /// 99.99th percentile of latencies.
    P9999,
    /// The longest latency.
    Longest,
    /// The longest time in which nothing was completed.
    Pause,
    /// The lowest of the rates of single seconds.
    LowestSecond,
    /// The median of the rates of single seconds.
    MedianSecond,
    /// CPU time for an operation.
    Cpu,
    /// Context switches for an operation.
    Switches,
    /// Bytes written to the device for a byte of the user.
    WriteAmplification,
    /// Bytes read from the device for a byte of the user.
    ReadAmplification,
    /// Bytes on disk for a byte of live data.
    SpaceAmplification,
    /// Bytes on disk.
    Disk,
    /// Peak memory.
    Memory,
}

use Measure::*;

/// The columns of a workload's table.
pub const COLUMNS: [Measure; 18] = [
    Rate,
    Seconds,
    P50,
    P90,
    P99,
    P999,
    P9999,
    Longest,
    Pause,
    LowestSecond,
    MedianSecond,
    Cpu,
    Switches,
    WriteAmplification,
    ReadAmplification,
    SpaceAmplification,
    Disk,
    Memory,
];

/// What is drawn as bars beside the rate.
pub const COSTS: [Measure; 5] =
    [WriteAmplification, SpaceAmplification, ReadAmplification, Cpu, Switches];

/// What is compared beside the rate.
pub const COMPARED: [Measure; 6] =
    [P99, Cpu, Switches, WriteAmplification, SpaceAmplification, ReadAmplification];

impl Measure {
    /// What compares speed: the rate; the time of a single call; where the same rate was due for all
    /// engines, how long operations took.
    pub fn speed_of(step: &Step) -> Self {
        match step.open_loop {
            _ if step.maintenance => Seconds,
            Some(due) if due.percent.is_none() => P99,
            _ => Rate,
        }
    }

    /// As a heading.
    pub fn name(self) -> &'static str {
        match self {
            Rate => "Operations a second",
            Seconds => "Time taken",
            P50 => "Median latency",
            P90 => "90th percentile of latency",
            P99 => "99th percentile of latency",
            P999 => "99.9th percentile of latency",
            P9999 => "99.99th percentile of latency",
            Longest => "Longest latency",
            Pause => "Longest pause",
            LowestSecond => "Lowest rate of a second",
            MedianSecond => "Median rate of a second",
            Cpu => "CPU time for an operation",
            Switches => "Context switches for an operation",
            WriteAmplification => "Write amplification",
            ReadAmplification => "Read amplification",
            SpaceAmplification => "Space amplification",
            Disk => "Size on disk",
            Memory => "Peak memory of the process",
        }
    }

    /// Behind every figure.
    pub fn unit(self) -> &'static str {
        match self {
            Rate | LowestSecond | MedianSecond => "ops/s",
            Seconds => "s",
            P50 | P90 | P99 | P999 | P9999 | Longest | Cpu => "µs",
            Pause => "ms",
            Switches | WriteAmplification | ReadAmplification | SpaceAmplification => "",
            Disk | Memory => "MB",
        }
    }

    /// In one sentence.
    pub fn about(self) -> &'static str {
        match self {
            Rate => "Operations completed in a second.",
            Seconds => "How long one call on the database took.",
            P50 => "Half of all operations took no longer.",
            P90 => "9 of 10 operations took no longer.",
            P99 => "99 of 100 operations took no longer.",
            P999 => "999 of 1,000 operations took no longer.",
            P9999 => "9,999 of 10,000 operations took no longer.",
            Longest => "The slowest operation.",
            Pause => "The longest time in which no thread completed an operation.",
            LowestSecond => "Operations completed in the slowest whole second.",
            MedianSecond => "In half of all seconds, no more operations were completed.",
            Cpu => "CPU time of the whole process, background work included.",
            Switches => "Context switches of the whole process.",
            WriteAmplification => {
                "Bytes written to the device for a byte of keys and values, since the database was \
                 opened."
            }
            ReadAmplification => {
                "Bytes read from the device for a byte of keys and values that went in or came out."
            }
            SpaceAmplification => "Bytes on disk for a byte of live keys and values, at the end.",
            Disk => "Allocated bytes of the database's directory at the end.",
            Memory => "The largest resident size of the process, the harness included.",
        }
    }

    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Rate | LowestSecond | MedianSecond)
    }

    /// The figure of one round.
    pub fn of(self, step: &Step) -> Option<f64> {
        let latency = step.latency.as_ref();
        let figure = match self {
            Rate => Some(step.ops_per_second),
            Seconds => Some(step.seconds),
            P50 => latency.map(|latency| latency.p50_us),
            P90 => latency.and_then(|latency| latency.p90_us),
            P99 => latency.map(|latency| latency.p99_us),
            P999 => latency.and_then(|latency| latency.p999_us),
            P9999 => latency.and_then(|latency| latency.p9999_us),
            Longest => latency.map(|latency| latency.max_us),
            Pause => step.longest_pause_ms,
            LowestSecond => step.rate_min,
            MedianSecond => step.rate_median,
            Cpu => step.cpu_us_per_op,
            Switches => step.context_switches_per_op,
            WriteAmplification => step.write_amplification_since_open,
            ReadAmplification => step.read_amplification.or_else(|| bytes_read(step)),
            SpaceAmplification => step.space_amplification,
            Disk => step.disk_bytes.map(|bytes| Figure(bytes.0 / 1e6)),
            Memory => step.peak_memory_bytes.map(|bytes| Figure(bytes.0 / 1e6)),
        };
        figure.map(|figure| figure.0)
    }
}

/// Device bytes read for a byte that went in or came out.
fn bytes_read(step: &Step) -> Option<Figure> {
    let bytes = step.mb_per_second?.0 * 1e6 * step.seconds.0;
    Some(Figure(step.device_bytes_read?.0 / bytes)).filter(|figure| figure.0.is_finite())
}

/// Whether rounds wrote in batches where others wrote one by one.
pub fn batched(rounds: &[Step]) -> bool {
    rounds.iter().any(|step| step.batched_instead)
}

/// A measure over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The lowest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The highest.
    pub max: f64,
    /// How many there were.
    pub rounds: usize,
}

impl Spread {
    /// Over the rounds that have the measure, if any has it.
    pub fn of(measure: Measure, rounds: &[Step]) -> Option<Self> {
        let values: Vec<f64> = rounds.iter().filter_map(|step| measure.of(step)).collect();
        Self::over(values)
    }

    /// Over these values, if there are any.
    pub fn over(values: Vec<f64>) -> Option<Self> {
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(0.0, f64::max);
        let rounds = values.len();
        Some(Self { min, median: median(values)?, max, rounds })
    }

    fn width(&self) -> f64 {
        self.max - self.min
    }
}

/// Who is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Our engine, by more than the spread.
    Win,
    /// The other, by more than the spread.
    Loss,
    /// Nobody by more than the spread.
    Tie,
    /// Nobody knows: too few rounds.
    Once,
    /// The two did not do the same work.
    Unlike,
}

impl Mark {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Win => "win",
            Self::Loss => "loss",
            Self::Tie => "tie",
            Self::Once => "one round",
            Self::Unlike => "other work",
        }
    }

    /// The sign for it, for the eye.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Win => "▲",
            Self::Loss => "▼",
            Self::Tie => "=",
            Self::Once => "?",
            Self::Unlike => "≠",
        }
    }
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// How many times as good as the other ours is; absent if one of both is zero.
    pub ratio: Option<f64>,
    /// The same of the worst round of ours and the best of the other, and of the best and the worst;
    /// the second is infinite if it divides by zero.
    pub range: (f64, f64),
    /// Who is ahead.
    pub mark: Mark,
}

/// Compares ours with theirs.
pub fn compare(measure: Measure, ours: &Spread, theirs: &Spread) -> Verdict {
    let (better, worse) = if measure.more_is_better() { (ours, theirs) } else { (theirs, ours) };
    let ratio = (better.median > 0.0 && worse.median > 0.0).then(|| better.median / worse.median);
    let range = (better.min / worse.max, better.max / worse.min);
    let difference = better.median - worse.median;
    let overlap = ours.min <= theirs.max && theirs.min <= ours.max;
    let mark = if ours.rounds < 2 || theirs.rounds < 2 {
        Mark::Once
    } else if overlap || difference.abs() <= ours.width().max(theirs.width()) {
        Mark::Tie
    } else if difference > 0.0 {
        Mark::Win
    } else {
        Mark::Loss
    };
    Verdict { ratio, range, mark }
}
