//! From settings and a workload's name to threads, operations and time.
//!
//! Operations are counted for the whole workload and divided among its threads, so sixteen threads do
//! as much work as one. A workload that can go on for ever runs for `--duration` if that is given and,
//! for reads, `--reads` is not. In all other cases it has a number of operations, and the duration can
//! only end it early. A load of a comparison always runs to its end.

use crate::harness::measure::meter::Turns;
use crate::harness::settings::{EXPENSIVE_SHARE, Settings};
use crate::{Kind, Workload};
use std::ops::Range;
use std::time::Duration;

/// Keys of one call of `multireadrandom` where no batch size is given.
const MULTIREAD: usize = 10;
/// Steps of an iterator that are timed together: one step is cheaper than a clock read.
pub const STEPS: u64 = 64;

/// What one step will do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The workload.
    pub workload: Workload,
    /// Measured threads.
    pub threads: usize,
    /// Operations of all threads; none where only time ends it.
    pub operations: Option<u64>,
    /// The longest it may take.
    pub length: Option<Duration>,
    /// Operations of one call.
    pub batch: usize,
    /// Whether it writes in batches only because the engine's single writes are not cheap.
    pub batched_instead: bool,
    /// Operations that one latency spans.
    pub per_latency: u64,
    /// Operations of one thread between two samples.
    pub sample_every: Option<u64>,
    /// When operations are due, in an open loop.
    pub pace: Option<Pace>,
    /// Its name, where that is not the workload's.
    pub label: Option<String>,
}

/// How often operations are due, whether or not those before are done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Operations a second, of all threads together.
    pub rate: f64,
    /// The sustained rate that it is a share of, and the share in hundredths.
    pub share: Option<(f64, f64)>,
}

impl Pace {
    /// The turns of one thread: threads take turns evenly.
    pub fn turns(&self, thread: usize, plan: &Plan) -> Turns {
        let one = 1e9 * plan.batch as f64 / self.rate.max(1e-3);
        Turns { first_ns: one * thread as f64, every_ns: one * plan.threads as f64 }
    }
}

impl Plan {
    /// Plans a step.
    pub fn new(settings: &Settings, workload: Workload, cheap_single_writes: bool) -> Self {
        let kind = workload.kind;
        let single = kind.is_maintenance() || matches!(kind, Kind::ReadSeq | Kind::ReadReverse);
        let threads = if single { 1 } else { workload.threads.unwrap_or(settings.threads) };
        let batch = match kind {
            Kind::MultiReadRandom if settings.batch_size == 1 => MULTIREAD,
            Kind::MultiReadRandom => settings.batch_size,
            // One by one: durable each, or read and written each.
            _ if kind.can_batch() => settings.batch_size,
            _ => 1,
        };
        let batched_instead = !cheap_single_writes && batch == 1 && kind.can_batch();
        let batch = if batched_instead { settings.batch_instead } else { batch };
        let counted = match kind {
            _ if kind.is_maintenance() => 1,
            Kind::FillSync | Kind::Fill100K => (settings.num / EXPENSIVE_SHARE).max(1),
            _ if kind.writes() && !kind.is_mix() => settings.num,
            _ => settings.reads.unwrap_or(settings.num),
        };
        let explicit = settings.reads.is_some() && (!kind.writes() || kind.is_mix());
        let by_time = settings.duration.is_some() && kind.can_repeat() && !explicit;
        let length = match (settings.duration, settings.limit) {
            _ if kind.is_maintenance() => None,
            _ if settings.whole_loads && kind.writes() && !kind.can_repeat() => None,
            (Some(duration), Some(limit)) => Some(duration.min(limit)),
            (duration, limit) => duration.or(limit),
        };
        Self {
            workload,
            threads,
            operations: (!by_time).then_some(counted),
            length,
            batch,
            batched_instead: batched_instead && batch > 1,
            per_latency: if single && !kind.is_maintenance() { STEPS } else { batch as u64 },
            sample_every: settings.sample_ops.map(|ops| (ops / threads as u64).max(1)),
            pace: None,
            label: None,
        }
    }

    /// The same in an open loop.
    pub fn paced(self, pace: Pace) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// The name of the step in reports.
    pub fn name(&self) -> String {
        match self.pace {
            None => self.label.clone().unwrap_or_else(|| self.workload.to_string()),
            Some(Pace { share: Some((_, percent)), .. }) => format!("{}@{percent}%", self.workload),
            Some(Pace { rate, .. }) => format!("{}@{rate}/s", self.workload),
        }
    }

    /// Which of the operations are thread `thread`'s; endless where only time ends the step.
    pub fn share(&self, thread: usize) -> Range<u64> {
        let Some(operations) = self.operations else { return 0..u64::MAX };
        let part =
            |thread: usize| (u128::from(operations) * thread as u128 / self.threads as u128) as u64;
        part(thread)..part(thread + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str, change: impl FnOnce(&mut Settings)) -> Plan {
        let mut settings = Settings { num: 10_000, ..Settings::default() };
        change(&mut settings);
        Plan::new(&settings, Workload::parse(text).unwrap(), true)
    }

    #[test]
    fn shares_cover_all_operations_once() {
        let plan = plan("readrandom:7", |_| ());
        assert_eq!(plan.threads, 7);
        let shares: Vec<_> = (0..7).map(|thread| plan.share(thread)).collect();
        assert_eq!(shares[0].start, 0);
        assert_eq!(shares[6].end, 10_000);
        assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn duration_reads_and_limits() {
        let ten = Some(Duration::from_secs(10));
        let timed = plan("readrandom", |s| s.duration = ten);
        assert_eq!((timed.operations, timed.length), (None, ten));
        let both = plan("readrandom", |s| (s.duration, s.reads) = (ten, Some(50)));
        assert_eq!((both.operations, both.length), (Some(50), ten));
        let fill = plan("fillseq", |s| s.duration = ten);
        assert_eq!((fill.operations, fill.length), (Some(10_000), ten));
        let whole = plan("fillseq", |s| (s.duration, s.whole_loads) = (ten, true));
        assert_eq!((whole.operations, whole.length), (Some(10_000), None));
        let limited = plan("readrandom", |s| s.limit = ten);
        assert_eq!((limited.operations, limited.length), (Some(10_000), ten));
        let flush = plan("flush", |s| s.duration = ten);
        assert_eq!((flush.operations, flush.length), (Some(1), None));
        assert_eq!(plan("fillsync", |_| ()).operations, Some(10));
    }

    #[test]
    fn engines_without_cheap_single_writes_get_batches_that_are_called_so() {
        let settings = Settings { num: 10_000, ..Settings::default() };
        let plan = |text: &str, settings: &Settings| {
            let plan = Plan::new(settings, Workload::parse(text).unwrap(), false);
            (plan.batch, plan.batched_instead)
        };
        assert_eq!(plan("fillrandom", &settings), (1_000, true));
        assert_eq!(plan("overwrite:4", &settings), (1_000, true));
        assert_eq!(plan("fillsync", &settings), (1, false));
        assert_eq!(plan("readrandom", &settings), (1, false));
        let asked = Settings { batch_size: 7, ..settings.clone() };
        assert_eq!(plan("fillrandom", &asked), (7, false));
        let none = Settings { batch_instead: 1, ..settings };
        assert_eq!(plan("fillrandom", &none), (1, false));
    }

    #[test]
    fn threads_take_turns_in_an_open_loop() {
        let plan = plan("readrandom:4", |_| ()).paced(Pace { rate: 1_000.0, share: None });
        assert_eq!(plan.name(), "readrandom:4@1000/s");
        let pace = plan.pace.unwrap();
        let turns = pace.turns(3, &plan);
        assert_eq!((turns.first_ns, turns.every_ns), (3e6, 4e6));
        let share = Pace { share: Some((2_000.0, 50.0)), ..pace };
        assert_eq!(plan.paced(share).name(), "readrandom:4@50%");
    }

    #[test]
    fn batches() {
        assert_eq!(plan("fillrandom", |s| s.batch_size = 7).batch, 7);
        assert_eq!(plan("fillsync", |s| s.batch_size = 7).batch, 1);
        assert_eq!(plan("readrandom", |s| s.batch_size = 7).batch, 1);
        assert_eq!(plan("multireadrandom", |_| ()).batch, MULTIREAD);
        assert_eq!(plan("multireadrandom", |s| s.batch_size = 7).per_latency, 7);
        assert_eq!(plan("readseq", |s| s.threads = 4).per_latency, STEPS);
        assert_eq!(plan("readseq", |s| s.threads = 4).threads, 1);
    }
}
