//! One step as its threads see it ([`Job`]), and what a thread holds ([`Hand`]).
//!
//! A hand makes single calls: it knows which key comes next, puts, deletes and gets. Which key comes next
//! is decided by [`Numbers`], so the loops do not know whether they fill in order, at random or each key
//! once.

use super::plan::Plan;
use crate::engines::{Durability, Engine, Session};
use crate::harness::dist::{Distribution, Sampler, Stream};
use crate::harness::keys::{KeyFormat, Permutation};
use crate::harness::live::LiveKeys;
use crate::harness::measure::meter::{Shared, Totals};
use crate::harness::settings::{LARGE_VALUE, Settings};
use crate::harness::values::ValuePool;
use crate::{Kind, Result};
use rand::rngs::SmallRng;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

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
pub(super) enum Numbers {
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
    pub(super) values: u64,
    pub(super) numbers: Numbers,
    pub(super) key: Vec<u8>,
    pub(super) value_size: usize,
    pub(super) durability: Durability,
    /// Added to every number: the keys of `fill100K` stand behind all others.
    pub(super) base: u64,
}

/// Which key number a record has, the same in all steps.
pub fn scatter(capacity: u64) -> Permutation {
    Permutation::new(capacity, capacity)
}

impl<'a> Job<'a> {
    /// What thread `thread` works with.
    pub(super) fn hand(&'a self, thread: usize) -> Result<Hand<'a>> {
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
    pub(super) fn next(&mut self) -> u64 {
        match &mut self.numbers {
            // Both ranges have as many numbers as the thread has operations.
            Numbers::Ordered(range) => range.next().unwrap_or(0),
            Numbers::Shuffled(range, permutation) => permutation.at(range.next().unwrap_or(0)),
            Numbers::Drawn(sampler) => sampler.sample(&mut self.rng),
        }
    }

    pub(super) fn note_put(&self, number: u64, totals: &mut Totals) {
        let live = if self.base == 0 { self.job.live } else { self.job.live_large };
        live.insert(number);
        let bytes = (self.key.len() + self.value_size) as u64;
        totals.bytes += bytes;
        totals.bytes_written += bytes;
    }

    pub(super) fn note_delete(&self, number: u64, totals: &mut Totals) {
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
    pub(super) fn delete(&mut self, number: u64, totals: &mut Totals) -> Result<()> {
        self.job.keys.write(number, &mut self.key);
        self.session.delete(&self.key, self.durability)?;
        self.note_delete(number, totals);
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
}
