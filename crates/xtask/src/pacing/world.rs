//! The world of the pacer: memtables, a flush thread, workers, one device, and writers, on a virtual
//! clock that ticks.
//!
//! 1. The engine's own pacer decides, and the engine's own policy says what is due and how full the
//!    paths are. Sizes stand for data.
//! 2. The device is shared: each job gets an equal part of it, up to what a thread can do.
//! 3. Writers do what those of the engine do: they ask while the pacer is not open, sleep as long as
//!    it says or until they are told, and ask again.
//! 4. Nothing is random but the load, which has a seed.

use super::load::{Load, Writer};
use esker::internals::admission::{Admission, Debts, PaceMode, Pacer, Pressure};
use esker::internals::compaction::policy;
use std::time::Duration;

/// A tick of the clock, in microseconds.
const TICK: u64 = 500;
/// Memtables in all: one active, and as many sealed as wait for their flush.
const SETS: usize = 4;
/// Bytes of a set of memtables.
pub(super) const SET_BYTES: u64 = 8 << 20;
/// Partitions, each with a span of the one tier above it.
const PARTS: usize = 16;
/// Bytes of the base of a partition.
const BASE_BYTES: u64 = 8 * SET_BYTES;
const TIERS: usize = 1;
const WORKERS: usize = 2;
/// Bytes per second of the device, and those that one thread can read and write.
const DEVICE: f64 = 300e6;
const THREAD: f64 = 150e6;
/// Deltas of a partition when it comes due, about.
const DELTAS_GOAL: usize = 5;
/// Debts are told after so many bytes.
const LOOK_EVERY: u64 = 64 << 10;
/// A stopped writer asks again after this time at the latest.
const STOP_NAP: Duration = Duration::from_secs(1);
/// A sample is taken this often, in ticks.
const SAMPLE_TICKS: u64 = 20;

/// How writers are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// As the engine does.
    Paced,
    /// Not before memory is full: what there was before pacing.
    StopsOnly,
}

/// What is known at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Seconds.
    pub(super) at: f64,
    /// Bytes per second since the sample before.
    pub(super) written: f64,
    /// Bytes per second that writers keep to; `None`: any.
    pub(super) limit: Option<f64>,
    pub(super) mode: PaceMode,
    /// Memtables over their budget.
    pub(super) memory: f64,
    /// How full the fullest path is.
    pub(super) path: f64,
    /// The longest wait of a put that ended since the sample before, in seconds.
    pub(super) wait: f64,
}

/// What a writer is doing.
#[derive(Debug, Clone, Copy)]
enum Doing {
    /// It has nothing to write before this time.
    Resting(Duration),
    /// It wants to write since then, and asks at the second time.
    Asking { bytes: u64, since: Duration, at: Duration },
}

#[derive(Debug)]
struct Seat {
    writer: Writer,
    doing: Doing,
    place: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Runs of the span.
    runs: usize,
    /// Deltas of the partition, and their bytes.
    deltas: usize,
    delta_bytes: u64,
    busy: bool,
}

impl Part {
    /// As it is in a tree that was written to for long: partitions come due one after the other.
    fn settled(index: usize) -> Self {
        let deltas = index * 7 % PARTS * DELTAS_GOAL / PARTS;
        Self {
            deltas,
            delta_bytes: deltas as u64 * BASE_BYTES / 3 / DELTAS_GOAL as u64,
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Flush { sealed: Duration },
    Push { part: usize, runs: usize },
    Compact { part: usize, deltas: usize, bytes: u64 },
}

#[derive(Debug, Clone, Copy)]
struct Job {
    work: Work,
    begun: Duration,
    /// Bytes that are left to read or write.
    left: f64,
}

/// Everything.
#[derive(Debug)]
pub(super) struct World {
    load: Load,
    rule: Rule,
    pacer: Pacer,
    now: Duration,
    seats: Vec<Seat>,
    /// Bytes in the active set, and when each sealed one was sealed.
    active: u64,
    sealed: Vec<Duration>,
    parts: [Part; PARTS],
    jobs: Vec<Job>,
    unseen: u64,
    pub(super) samples: Vec<Sample>,
    fresh: u64,
    worst: f64,
    /// The puts of each writer.
    pub(super) puts: Vec<u64>,
    pub(super) written: u64,
    /// How often writers asked the pacer.
    pub(super) asked: u64,
}

impl World {
    pub(super) fn new(load: Load, rule: Rule) -> Self {
        let writers = load.writers();
        let doing = Doing::Resting(Duration::ZERO);
        Self {
            load,
            rule,
            pacer: Pacer::default(),
            now: Duration::ZERO,
            puts: vec![0; writers.len()],
            seats: writers.into_iter().map(|writer| Seat { writer, doing, place: None }).collect(),
            active: 0,
            sealed: Vec::new(),
            parts: std::array::from_fn(Part::settled),
            jobs: Vec::new(),
            unseen: 0,
            samples: Vec::new(),
            fresh: 0,
            worst: 0.0,
            written: 0,
            asked: 0,
        }
    }

    /// Runs for so many seconds.
    pub(super) fn run(&mut self, seconds: u64) {
        let ticks = seconds * 1_000_000 / TICK;
        for tick in 1..=ticks {
            self.now += Duration::from_micros(TICK);
            self.begin_jobs();
            self.advance_jobs();
            for seat in 0..self.seats.len() {
                // Nobody is always the first.
                self.serve((seat + tick as usize) % self.seats.len());
            }
            if tick % SAMPLE_TICKS == 0 {
                self.sample();
            }
        }
    }

    fn sample(&mut self) {
        let (mode, limit) = self.pacer.pace();
        let oldest = self.seats.iter().map(|seat| match seat.doing {
            Doing::Asking { since, .. } => self.now.saturating_sub(since).as_secs_f64(),
            Doing::Resting(_) => 0.0,
        });
        let wait = oldest.fold(self.worst, f64::max);
        self.samples.push(Sample {
            at: self.now.as_secs_f64(),
            written: self.fresh as f64 * 1e6 / (TICK * SAMPLE_TICKS) as f64,
            limit: (limit > 0).then_some(limit as f64),
            mode,
            memory: self.memory() as f64 / (SETS as u64 * SET_BYTES) as f64,
            path: self.fill(),
            wait,
        });
        (self.fresh, self.worst) = (0, 0.0);
    }

    fn memory(&self) -> u64 {
        self.active + self.sealed.len() as u64 * SET_BYTES
    }

    fn runs_max() -> usize {
        policy::runs_max(PARTS as u64 * BASE_BYTES, SET_BYTES, TIERS)
    }

    fn scores(part: &Part, index: usize) -> (f64, f64) {
        let stagger = (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let push = policy::runs_due(part.runs, Self::runs_max(), stagger >> 8);
        let (bytes, size) = (part.delta_bytes, BASE_BYTES);
        (push, policy::partition_due(bytes, part.deltas, BASE_BYTES, size, stagger))
    }

    /// How full the fullest path is.
    fn fill(&self) -> f64 {
        let fills = self.parts.iter().enumerate().map(|(index, part)| {
            let (push, compact) = Self::scores(part, index);
            let late = policy::late(part.runs, push) + policy::late(part.deltas, compact);
            policy::fill(part.runs + part.deltas + 1, late, TIERS, Self::runs_max())
        });
        fills.fold(f64::NEG_INFINITY, f64::max)
    }

    fn begin_jobs(&mut self) {
        let compacting = self.jobs.iter().filter(|job| !matches!(job.work, Work::Flush { .. }));
        let mut free = WORKERS.saturating_sub(compacting.count());
        let flushing = self.jobs.iter().any(|job| matches!(job.work, Work::Flush { .. }));
        let full = self.fill() >= 1.0 && free < WORKERS;
        if !flushing
            && !full
            && let Some(sealed) = self.sealed.first().copied()
        {
            let work = Work::Flush { sealed };
            self.jobs.push(Job { work, begun: self.now, left: SET_BYTES as f64 });
        }
        while free > 0 {
            let Some((work, bytes)) = self.most_urgent() else { break };
            if let Work::Push { part, .. } | Work::Compact { part, .. } = work {
                self.parts[part].busy = true;
            }
            self.jobs.push(Job { work, begun: self.now, left: bytes as f64 });
            free -= 1;
        }
    }

    /// The most urgent push or compaction, and what it costs the device.
    fn most_urgent(&self) -> Option<(Work, u64)> {
        let slice = SET_BYTES / PARTS as u64;
        let due = self.parts.iter().enumerate().filter(|(_, part)| !part.busy);
        let due = due.flat_map(|(index, part)| {
            let (push, compact) = Self::scores(part, index);
            let (runs, deltas, bytes) = (part.runs, part.deltas, part.delta_bytes);
            let push_work = Work::Push { part: index, runs };
            let compact_work = Work::Compact { part: index, deltas, bytes };
            [
                (policy::rank(1, push), push, push_work, 2 * runs as u64 * slice),
                (policy::rank(0, compact), compact, compact_work, 2 * (BASE_BYTES + bytes)),
            ]
        });
        let due = due.filter(|(_, score, ..)| *score >= 1.0);
        let first = due.max_by(|a, b| a.0.total_cmp(&b.0));
        first.map(|(_, _, work, bytes)| (work, bytes))
    }

    fn advance_jobs(&mut self) {
        let factor = self.load.device(self.now.as_secs_f64());
        let each = (DEVICE / self.jobs.len().max(1) as f64).min(THREAD) * factor;
        let done = each * Duration::from_micros(TICK).as_secs_f64();
        let mut ended = Vec::new();
        self.jobs.retain_mut(|job| {
            job.left -= done;
            if job.left <= 0.0 {
                ended.push(*job);
            }
            job.left > 0.0
        });
        for job in &ended {
            self.end(job);
        }
        if !ended.is_empty() {
            let fill = self.fill();
            let allowed = policy::pace(fill).filter(|_| self.rule == Rule::Paced);
            let pressure =
                Pressure { allowed, full: fill >= 1.0, tiers: TIERS, workers: WORKERS, left: 0 };
            self.pacer.press(pressure);
            self.look();
        }
    }

    fn end(&mut self, job: &Job) {
        let took = self.now.saturating_sub(job.begun);
        let slice = SET_BYTES / PARTS as u64;
        match job.work {
            Work::Flush { sealed } => {
                self.sealed.remove(0);
                self.parts.iter_mut().for_each(|part| part.runs += 1);
                self.pacer.flushed_at(SET_BYTES, sealed, self.now);
                self.seal_if_full();
                self.wake_all();
            }
            Work::Push { part, runs } => {
                let bytes = runs as u64 * slice;
                let part = &mut self.parts[part];
                (part.runs, part.deltas) = (part.runs - runs, part.deltas + 1);
                (part.delta_bytes, part.busy) = (part.delta_bytes + bytes, false);
                self.pacer.compacted(1, bytes, took);
            }
            Work::Compact { part, deltas, bytes } => {
                let part = &mut self.parts[part];
                (part.deltas, part.busy) = (part.deltas - deltas, false);
                part.delta_bytes -= bytes;
                self.pacer.compacted(0, bytes, took);
            }
        }
    }

    fn wake_all(&mut self) {
        for seat in &mut self.seats {
            if let Doing::Asking { at, .. } = &mut seat.doing {
                *at = self.now;
            }
        }
    }

    /// Tells the pacer the debts.
    fn look(&mut self) {
        let budget = SETS as u64 * SET_BYTES;
        let memtables = match self.rule {
            Rule::Paced => self.memory(),
            Rule::StopsOnly if self.memory() >= budget => budget,
            Rule::StopsOnly => 0,
        };
        let deltas = self.parts.iter().map(|part| part.delta_bytes).sum();
        let bases = PARTS as u64 * BASE_BYTES;
        let flush_takes = self.sealed.first().map(|since| self.now.saturating_sub(*since));
        let debts = Debts {
            memtables,
            budget,
            deltas,
            bases,
            flush_takes,
            log_budget: 1,
            ..Debts::default()
        };
        if self.pacer.update_at(debts, self.now) {
            self.wake_all();
        }
    }

    fn seal_if_full(&mut self) {
        if self.active >= SET_BYTES && self.sealed.len() + 1 < SETS {
            self.sealed.push(self.now);
            self.active -= SET_BYTES;
        }
    }

    /// Lets a writer do what it does until it sleeps or the tick is over.
    fn serve(&mut self, seat: usize) {
        loop {
            match self.seats[seat].doing {
                Doing::Resting(until) if until > self.now => return,
                Doing::Resting(until) => {
                    let bytes = self.seats[seat].writer.bytes;
                    self.seats[seat].doing = Doing::Asking { bytes, since: until, at: until };
                }
                Doing::Asking { at, .. } if at > self.now => return,
                Doing::Asking { bytes, since, at } => match self.admission(seat, bytes) {
                    Admission::Go => self.put(seat, bytes, since, at > since),
                    Admission::Wait(nap, _) => self.sleep(seat, nap),
                    Admission::Stop(_) => self.sleep(seat, STOP_NAP),
                },
            }
        }
    }

    fn admission(&mut self, seat: usize, bytes: u64) -> Admission {
        if self.pacer.is_open() {
            self.seats[seat].place = None;
            return Admission::Go;
        }
        self.asked += 1;
        self.pacer.admit_at(bytes, &mut self.seats[seat].place, self.now)
    }

    fn sleep(&mut self, seat: usize, nap: Duration) {
        if let Doing::Asking { at, .. } = &mut self.seats[seat].doing {
            *at = self.now + nap;
        }
    }

    fn put(&mut self, seat: usize, bytes: u64, since: Duration, slept: bool) {
        // Who did not sleep wrote when it wanted to, within this tick.
        let ended = if slept { self.now } else { since };
        self.worst = self.worst.max((ended - since).as_secs_f64());
        self.seats[seat].doing = Doing::Resting(self.seats[seat].writer.again(ended, self.load));
        self.puts[seat] += 1;
        self.written += bytes;
        self.fresh += bytes;
        self.active += bytes;
        self.seal_if_full();
        self.unseen += bytes;
        if self.unseen >= LOOK_EVERY {
            self.unseen = 0;
            self.look();
        }
    }
}
