//! What the threads of a workload do.
//!
//! One loop for each shape of work: writes (one by one or in batches), updates, point reads, several
//! reads in a call, seeks, and whole iterations. Which key comes next is decided by [`Numbers`], so
//! the loops do not know whether they fill in order, at random or each key once. A thread that fails
//! tells the others to stop.

use super::plan::{Plan, STEPS};
use super::ycsb::scatter;
use crate::check::Scan;
use crate::dist::{Distribution, Sampler, Stream};
use crate::engine::{Direction, Engine, Session};
use crate::keys::{KeyFormat, Permutation};
use crate::live::LiveKeys;
use crate::measure::meter::{Meter, Shared, Totals};
use crate::measure::probe::Bell;
use crate::settings::{Durability, LARGE_VALUE, Settings};
use crate::values::ValuePool;
use crate::{Kind, Result};
use rand::rngs::SmallRng;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One step, as its threads see it.
pub struct Job<'a> {
    pub settings: &'a Settings,
    pub engine: &'a dyn Engine,
    pub keys: KeyFormat,
    pub pool: &'a ValuePool,
    pub live: &'a LiveKeys,
    /// Records of the mixed workloads that are written, and that are being written.
    pub records: &'a AtomicU64,
    pub inserted: &'a AtomicU64,
    pub live_large: &'a LiveKeys,
    pub shared: &'a Shared,
    pub plan: &'a Plan,
    /// The stream of thread 0.
    pub stream: Stream,
}

/// Which key number comes next.
enum Numbers {
    Ordered(Range<u64>),
    Shuffled(Range<u64>, Permutation),
    Drawn(Sampler),
}

/// What a thread holds: its session, its randomness and its buffers.
pub(super) struct Hand<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) session: Box<dyn Session + 'a>,
    pub(super) rng: SmallRng,
    /// The seed of the values that this step writes.
    values: u64,
    numbers: Numbers,
    pub(super) key: Vec<u8>,
    value_size: usize,
    durability: Durability,
    /// Added to every number: the keys of `fill100K` stand behind all others.
    base: u64,
}

impl<'a> Job<'a> {
    /// The whole life of measured thread `thread`.
    pub fn run(&'a self, thread: usize) -> Result<Totals> {
        let result = self.run_kind(thread);
        if result.is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        result
    }

    fn run_kind(&'a self, thread: usize) -> Result<Totals> {
        let mut hand = self.hand(thread)?;
        let share = self.plan.share(thread);
        let left = share.end - share.start;
        let mut meter = Meter::new(self.shared, Some(thread));
        if let Some(pace) = &self.plan.pace {
            meter.follow(pace.turns(thread, self.plan));
        }
        match self.plan.workload.kind {
            Kind::DeleteRandom | Kind::DeleteSeq => hand.write(&mut meter, left, true)?,
            Kind::UpdateRandom => hand.update(&mut meter, left)?,
            Kind::ReadMissing => hand.read(&mut meter, left, true)?,
            Kind::ReadRandom | Kind::ReadHot | Kind::ReadWhileWriting => {
                hand.read(&mut meter, left, false)?;
            }
            Kind::MultiReadRandom => hand.multi_read(&mut meter, left)?,
            Kind::SeekRandom | Kind::SeekRandomWhileWriting => hand.seek(&mut meter, left)?,
            Kind::ReadSeq => hand.iterate(&mut meter, left, Direction::Forward)?,
            Kind::ReadReverse => hand.iterate(&mut meter, left, Direction::Reverse)?,
            kind if kind.is_mix() => hand.mixed(&mut meter, left)?,
            _ => hand.write(&mut meter, left, false)?,
        }
        Ok(meter.finish())
    }

    /// The writer beside the measured threads: random puts at a fixed rate, until they are done.
    pub fn write_beside(&'a self, done: &Bell) -> Result<Totals> {
        let result = self.write_paced(done);
        if result.is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        result
    }

    fn write_paced(&'a self, done: &Bell) -> Result<Totals> {
        let mut hand = self.hand(self.plan.threads)?;
        let mut meter = Meter::new(self.shared, None);
        let rate = self.settings.write_rate;
        let turn = (rate > 0).then(|| Duration::from_secs_f64(1.0 / rate as f64));
        let mut next = meter.restart();
        loop {
            if let Some(turn) = turn {
                // A writer that fell behind catches up without waiting.
                next += turn;
                let wait = next.saturating_duration_since(meter.restart());
                if !wait.is_zero() && done.wait(wait) {
                    return Ok(meter.finish());
                }
                meter.restart();
            }
            let number = hand.next();
            hand.put(number, &mut meter.totals)?;
            if !meter.lap(1) {
                return Ok(meter.finish());
            }
        }
    }

    fn hand(&'a self, thread: usize) -> Result<Hand<'a>> {
        let kind = self.plan.workload.kind;
        let stream = Stream { thread: thread as u64, ..self.stream };
        let num = self.settings.num;
        let large = kind == Kind::Fill100K;
        let drawn = |distribution, num| {
            Numbers::Drawn(Sampler::new(distribution, num, self.settings.theta))
        };
        let numbers = match kind {
            Kind::FillSeq | Kind::DeleteSeq => Numbers::Ordered(self.plan.share(thread)),
            Kind::FillUniqueRandom => {
                let permutation = Permutation::new(num, self.stream.shared_seed());
                Numbers::Shuffled(self.plan.share(thread), permutation)
            }
            Kind::YcsbLoad => {
                Numbers::Shuffled(self.plan.share(thread), scatter(self.settings.capacity()))
            }
            Kind::FillRandom | Kind::DeleteRandom => drawn(Distribution::Uniform, num),
            Kind::Fill100K => drawn(Distribution::Uniform, self.settings.large_keys()),
            Kind::ReadHot => drawn(Distribution::Uniform, num.div_ceil(100)),
            _ => drawn(self.settings.distribution, num),
        };
        Ok(Hand {
            job: self,
            session: self.engine.session()?,
            rng: stream.rng(),
            values: stream.shared_seed(),
            numbers,
            key: self.keys.buffer(),
            value_size: if large { LARGE_VALUE } else { self.settings.value_size },
            durability: match kind {
                Kind::FillSync => Durability::Disk,
                _ => self.settings.durability,
            },
            base: if large { self.settings.capacity() } else { 0 },
        })
    }
}

impl Hand<'_> {
    #[inline]
    fn next(&mut self) -> u64 {
        match &mut self.numbers {
            // Both ranges have as many numbers as the thread has operations.
            Numbers::Ordered(range) => range.next().unwrap_or(0),
            Numbers::Shuffled(range, permutation) => permutation.at(range.next().unwrap_or(0)),
            Numbers::Drawn(sampler) => sampler.sample(&mut self.rng),
        }
    }

    fn note_put(&self, number: u64, totals: &mut Totals) {
        let live = if self.base == 0 { self.job.live } else { self.job.live_large };
        live.insert(number);
        let bytes = (self.key.len() + self.value_size) as u64;
        totals.bytes += bytes;
        totals.bytes_written += bytes;
    }

    fn note_delete(&self, number: u64, totals: &mut Totals) {
        self.job.live.remove(number);
        totals.bytes += self.key.len() as u64;
        totals.bytes_written += self.key.len() as u64;
    }

    #[inline]
    pub(super) fn put(&mut self, number: u64, totals: &mut Totals) -> Result<()> {
        self.job.keys.write(self.base + number, &mut self.key);
        let value = self.job.pool.value(self.values, self.base + number, self.value_size);
        self.session.put(&self.key, value, self.durability)?;
        self.note_put(number, totals);
        Ok(())
    }

    #[inline]
    fn delete(&mut self, number: u64, totals: &mut Totals) -> Result<()> {
        self.job.keys.write(number, &mut self.key);
        self.session.delete(&self.key, self.durability)?;
        self.note_delete(number, totals);
        Ok(())
    }

    fn batch(&mut self, count: u64, delete: bool, totals: &mut Totals) -> Result<()> {
        for _ in 0..count {
            let number = self.next();
            self.job.keys.write(self.base + number, &mut self.key);
            if delete {
                self.session.batch_delete(&self.key);
                self.note_delete(number, totals);
            } else {
                let value = self.job.pool.value(self.values, self.base + number, self.value_size);
                self.session.batch_put(&self.key, value);
                self.note_put(number, totals);
            }
        }
        self.session.batch_commit(self.durability)
    }

    fn write(&mut self, meter: &mut Meter<'_>, mut left: u64, delete: bool) -> Result<()> {
        let batch = self.job.plan.batch as u64;
        while left > 0 {
            let count = batch.min(left);
            if batch > 1 {
                self.batch(count, delete, &mut meter.totals)?;
            } else {
                let number = self.next();
                if delete {
                    self.delete(number, &mut meter.totals)?;
                } else {
                    self.put(number, &mut meter.totals)?;
                }
            }
            left -= count;
            if !meter.lap(count) {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn get(&mut self, totals: &mut Totals) -> Result<()> {
        let (key, verify) = (&self.key[..], self.job.settings.verify);
        let (mut length, sum) = (0, &mut totals.checksum);
        let found = self.session.get(key, &mut |value| {
            length = black_box(value).len();
            if verify {
                sum.found(key, value);
            }
        })?;
        if found {
            totals.found += 1;
            totals.bytes += (key.len() + length) as u64;
        } else {
            totals.missing += 1;
            if verify {
                totals.checksum.missing(key);
            }
        }
        Ok(())
    }

    fn read(&mut self, meter: &mut Meter<'_>, left: u64, missing: bool) -> Result<()> {
        for _ in 0..left {
            let number = self.next();
            if missing {
                self.job.keys.missing(number, &mut self.key);
            } else {
                self.job.keys.write(number, &mut self.key);
            }
            self.get(&mut meter.totals)?;
            if !meter.lap(1) {
                break;
            }
        }
        Ok(())
    }

    fn update(&mut self, meter: &mut Meter<'_>, left: u64) -> Result<()> {
        for _ in 0..left {
            let number = self.next();
            self.job.keys.write(number, &mut self.key);
            self.get(&mut meter.totals)?;
            self.put(number, &mut meter.totals)?;
            if !meter.lap(1) {
                break;
            }
        }
        Ok(())
    }

    fn multi_read(&mut self, meter: &mut Meter<'_>, mut left: u64) -> Result<()> {
        let mut keys = vec![self.job.keys.buffer(); self.job.plan.batch];
        while left > 0 {
            let count = (keys.len() as u64).min(left);
            let asked = &mut keys[..count as usize];
            for key in asked.iter_mut() {
                let number = self.next();
                self.job.keys.write(number, key);
            }
            let asked = &*asked;
            let totals = &mut meter.totals;
            let (mut found, verify) = (0, self.job.settings.verify);
            self.session.multi_get(asked, &mut |place, value| {
                found += 1;
                totals.bytes += (asked[place].len() + black_box(value).len()) as u64;
                if verify {
                    totals.checksum.found(&asked[place], value);
                }
            })?;
            totals.found += found;
            totals.missing += count - found;
            left -= count;
            if !meter.lap(count) {
                break;
            }
        }
        Ok(())
    }

    fn seek(&mut self, meter: &mut Meter<'_>, left: u64) -> Result<()> {
        for _ in 0..left {
            let number = self.next();
            self.job.keys.write(number, &mut self.key);
            let totals = &mut meter.totals;
            let mut cursor = self.session.cursor(Some(&self.key), Direction::Forward)?;
            let (mut seen, mut scan, verify) = (0, Scan::default(), self.job.settings.verify);
            // A scan of length 0 still positions the cursor on its entry.
            while seen < self.job.settings.scan_length.max(1) {
                let Some((key, value)) = cursor.next()? else { break };
                totals.bytes += (black_box(key).len() + black_box(value).len()) as u64;
                if verify {
                    scan.entry(key, value);
                }
                seen += 1;
            }
            drop(cursor);
            totals.checksum.scan(scan);
            if seen > 0 {
                totals.found += 1;
            } else {
                totals.missing += 1;
            }
            if !meter.lap(1) {
                break;
            }
        }
        Ok(())
    }

    fn iterate(&mut self, meter: &mut Meter<'_>, left: u64, direction: Direction) -> Result<()> {
        let mut cursor = self.session.cursor(None, direction)?;
        let (mut left, mut scan, verify) = (left, Scan::default(), self.job.settings.verify);
        while left > 0 {
            let mut steps = 0;
            while steps < STEPS.min(left) {
                let Some((key, value)) = cursor.next()? else { break };
                meter.totals.bytes += (black_box(key).len() + black_box(value).len()) as u64;
                if verify {
                    scan.entry(key, value);
                }
                steps += 1;
            }
            meter.totals.found += steps;
            let ended = steps < STEPS.min(left);
            left -= steps;
            // A group of no step would be a latency of nothing.
            if steps == 0 || !meter.lap(steps) || ended {
                break;
            }
        }
        meter.totals.checksum.scan(scan);
        Ok(())
    }
}
