//! The loops of the plain workloads, one for each shape of work.
//!
//! Writes (one by one or in batches), updates, point reads, several reads in a call, seeks, and whole
//! iterations. A loop ends when its operations are done or its meter says that the time is over.

use super::job::Hand;
use super::plan::STEPS;
use crate::Result;
use crate::engines::Direction;
use crate::harness::check::Scan;
use crate::harness::measure::meter::{Meter, Totals};
use std::hint::black_box;

impl Hand<'_> {
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

    pub(super) fn write(
        &mut self,
        meter: &mut Meter<'_>,
        mut left: u64,
        delete: bool,
    ) -> Result<()> {
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

    pub(super) fn read(&mut self, meter: &mut Meter<'_>, left: u64, missing: bool) -> Result<()> {
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

    pub(super) fn update(&mut self, meter: &mut Meter<'_>, left: u64) -> Result<()> {
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

    pub(super) fn multi_read(&mut self, meter: &mut Meter<'_>, mut left: u64) -> Result<()> {
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

    pub(super) fn seek(&mut self, meter: &mut Meter<'_>, left: u64) -> Result<()> {
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

    pub(super) fn iterate(
        &mut self,
        meter: &mut Meter<'_>,
        left: u64,
        direction: Direction,
    ) -> Result<()> {
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
