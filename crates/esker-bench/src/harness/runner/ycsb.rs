//! The mixed workloads of YCSB (Cooper and others, 2010), A to F.
//!
//! A record is one value of `--value-size` bytes (1,000 unless told, YCSB's ten fields of a hundred);
//! an update writes the whole record, as YCSB does with `writeallfields`, and F reads the record
//! before it writes it. Proportions, distributions and scan lengths are YCSB's own.
//!
//! Record `n` has the key number `scatter(n)`, by a permutation of four times as many numbers as are
//! loaded: records that are popular, or new, are not neighbours, and an insert lands anywhere, as with
//! YCSB's hashed order. *Latest* counts back from the newest record, and newer ones appear meanwhile.
//! Once all numbers are taken, an insert writes an old record anew.

use super::job::{Hand, Job, scatter};
use crate::engines::Direction;
use crate::harness::check::Scan;
use crate::harness::dist::{Distribution, Sampler};
use crate::harness::keys::Permutation;
use crate::harness::measure::meter::{Meter, Totals};
use crate::{Kind, Result};
use rand::Rng;
use std::hint::black_box;
use std::sync::atomic::Ordering;

/// The longest scan of E; lengths are uniform.
const SCAN_MAX: usize = 100;

/// What is done, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mix {
    reads: u32,
    updates: u32,
    inserts: u32,
    scans: u32,
    /// Reads followed by a write of the same record.
    modifications: u32,
    records: Distribution,
}

impl Mix {
    fn of(kind: Kind) -> Self {
        let none = Self {
            reads: 0,
            updates: 0,
            inserts: 0,
            scans: 0,
            modifications: 0,
            records: Distribution::Zipfian,
        };
        match kind {
            Kind::YcsbA => Self { reads: 50, updates: 50, ..none },
            Kind::YcsbB => Self { reads: 95, updates: 5, ..none },
            Kind::YcsbD => Self { reads: 95, inserts: 5, records: Distribution::Latest, ..none },
            Kind::YcsbE => Self { scans: 95, inserts: 5, ..none },
            Kind::YcsbF => Self { reads: 50, modifications: 50, ..none },
            _ => Self { reads: 100, ..none },
        }
    }
}

/// Which records a thread asks for.
struct Records {
    sampler: Sampler,
    /// Records when the step began.
    at_first: u64,
    /// Whether the newest are the favourites.
    latest: bool,
    scatter: Permutation,
    capacity: u64,
}

impl Records {
    fn new(job: &Job<'_>, mix: Mix) -> Self {
        let settings = job.settings;
        let at_first = job.records.load(Ordering::Relaxed).max(1);
        let distribution = settings.ycsb_distribution.unwrap_or(mix.records);
        Self {
            sampler: Sampler::new(distribution, at_first, settings.theta),
            at_first,
            latest: distribution == Distribution::Latest,
            scatter: scatter(settings.capacity()),
            capacity: settings.capacity(),
        }
    }

    /// The key number of record `n`.
    fn number(&self, n: u64) -> u64 {
        self.scatter.at(n % self.capacity)
    }
}

impl Hand<'_> {
    /// One of the mixed workloads.
    pub(super) fn mixed(&mut self, meter: &mut Meter<'_>, left: u64) -> Result<()> {
        let mix = Mix::of(self.job.plan.workload.kind);
        let records = Records::new(self.job, mix);
        for _ in 0..left {
            let mut draw = self.rng.random_range(0..100);
            let mut falls = |share: u32| {
                let hit = draw < share;
                draw = draw.wrapping_sub(share);
                hit
            };
            let totals = &mut meter.totals;
            if falls(mix.reads) {
                self.read_record(&records, totals)?;
            } else if falls(mix.updates) {
                let number = self.record(&records);
                self.put(number, totals)?;
            } else if falls(mix.scans) {
                self.scan_records(&records, totals)?;
            } else if falls(mix.modifications) {
                let number = self.read_record(&records, totals)?;
                self.put(number, totals)?;
            } else {
                self.insert(&records, totals)?;
            }
            if !meter.lap(1) {
                break;
            }
        }
        Ok(())
    }

    /// The key number of the next record that is asked for.
    fn record(&mut self, records: &Records) -> u64 {
        let mut n = records.sampler.sample(&mut self.rng);
        if records.latest {
            n += self.job.records.load(Ordering::Relaxed).saturating_sub(records.at_first);
        }
        records.number(n)
    }

    fn read_record(&mut self, records: &Records, totals: &mut Totals) -> Result<u64> {
        let number = self.record(records);
        self.job.keys.write(number, &mut self.key);
        self.get(totals)?;
        Ok(number)
    }

    fn insert(&mut self, records: &Records, totals: &mut Totals) -> Result<()> {
        let n = self.job.inserted.fetch_add(1, Ordering::Relaxed);
        self.put(records.number(n), totals)?;
        // Nobody asks for a record before it is written, save where threads overtake each other.
        self.job.records.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn scan_records(&mut self, records: &Records, totals: &mut Totals) -> Result<()> {
        let number = self.record(records);
        let length = self.rng.random_range(1..=SCAN_MAX);
        self.job.keys.write(number, &mut self.key);
        let (mut seen, mut scan, verify) = (0, Scan::default(), self.job.settings.verify);
        let mut cursor = self.session.cursor(Some(&self.key), Direction::Forward)?;
        while seen < length {
            let Some((key, value)) = cursor.next()? else { break };
            totals.bytes += (black_box(key).len() + black_box(value).len()) as u64;
            if verify {
                scan.entry(key, value);
            }
            seen += 1;
        }
        totals.checksum.scan(scan);
        if seen > 0 {
            totals.found += 1;
        } else {
            totals.missing += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_is_a_whole() {
        let kinds = [Kind::YcsbA, Kind::YcsbB, Kind::YcsbC, Kind::YcsbD, Kind::YcsbE, Kind::YcsbF];
        for kind in kinds {
            let mix = Mix::of(kind);
            let sum = mix.reads + mix.updates + mix.inserts + mix.scans + mix.modifications;
            assert_eq!(sum, 100, "{kind:?}");
            assert_eq!(kind.writes(), mix.reads + mix.scans < 100, "{kind:?}");
            assert_eq!(mix.records == Distribution::Latest, kind == Kind::YcsbD);
        }
    }
}
