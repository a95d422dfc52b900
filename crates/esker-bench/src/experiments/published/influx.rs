//! Points of time series: InfluxDB's experiment.
//!
//! Point number `n` belongs to series `n % series` and has the time `n / series`, so a thousand
//! consecutive points belong to a thousand series. A key is the series, the time and the number of the
//! point, three big-endian integers of eight bytes. A value is a protobuf message with one field, an
//! `int64` whose magnitude is drawn so that all lengths, 2 to 11 bytes, are equally frequent.

use super::figures::Figures;
use crate::engines::Durability;
use crate::engines::{Direction, Engine, Session};
use crate::harness::check::{ReadBack, Scan};
use crate::harness::keys::mix;
use crate::harness::measure::meter::{Meter, Totals};
use crate::harness::runner::{Runner, Stage};
use crate::harness::settings::Settings;
use crate::harness::step_report::{StepCheck, WorkloadReport};
use crate::{EngineSpec, Result};
use std::ops::Range;

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Write all points.
    Write,
    /// Read every series.
    Query,
    /// Delete the older half of every series.
    Delete,
    /// Bring the tree into its final shape.
    Compact,
    /// Read every series again.
    QueryHalf,
    /// Write half as many new points.
    WriteHalf,
}

impl Phase {
    /// Whether it changes what is stored.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Delete | Self::WriteHalf)
    }
}

/// Points of one batch, each of another series.
const BATCH: u64 = 1_000;
/// Points of a series: 100M points in 500,000 series.
const POINTS_OF_A_SERIES: u64 = 200;
/// The first time, and the time from one point to the next: microseconds.
const FIRST: u64 = 1_400_000_000_000_000;
const INTERVAL: u64 = 1_000_000;
/// So many series are read back after a step that returns nothing.
const SAMPLED: u64 = 50;

/// Which points there are.
#[derive(Debug, Clone, Copy)]
pub struct Points {
    all: u64,
    series: u64,
    seed: u64,
}

type Key = [u8; 24];

fn key(series: u64, time: u64, number: u64) -> Key {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&series.to_be_bytes());
    key[8..16].copy_from_slice(&time.to_be_bytes());
    key[16..].copy_from_slice(&number.to_be_bytes());
    key
}

impl Points {
    /// As many as the settings ask for.
    pub fn new(settings: &Settings) -> Self {
        let most = (settings.num / 2).max(1);
        let series = (settings.num / POINTS_OF_A_SERIES).max(BATCH).min(most);
        Self { all: settings.num, series, seed: settings.seed }
    }

    /// Points of each series that are deleted.
    fn old(&self) -> u64 {
        self.all / 2 / self.series
    }

    /// The points that are stored once a phase has ended. Nothing is stored before the first.
    fn stored(&self, phase: Phase) -> Range<u64> {
        let young = self.old() * self.series;
        match phase {
            Phase::Write | Phase::Query => 0..self.all,
            Phase::Delete | Phase::Compact | Phase::QueryHalf => young..self.all,
            Phase::WriteHalf => young..self.all + self.all / 2,
        }
    }

    /// The points that a phase writes.
    fn written(&self, phase: Phase) -> Range<u64> {
        match phase {
            Phase::WriteHalf => self.all..self.all + self.all / 2,
            _ => 0..self.all,
        }
    }

    fn key(&self, number: u64) -> Key {
        key(number % self.series, FIRST + number / self.series * INTERVAL, number)
    }

    /// The value of a point: its length in bytes, and the bytes.
    fn value(&self, number: u64) -> (usize, [u8; 11]) {
        let random = mix(self.seed ^ mix(number));
        // One to ten bytes of seven bits; the tenth has room for one.
        let shift = 63_u64.saturating_sub(7 * (random % 10));
        let mut left = mix(random) >> shift | 1 << (63 - shift);
        let mut message = [0; 11];
        // Field 1, a variable-length integer.
        message[0] = 0x08;
        let mut len = 1;
        loop {
            let more = left > 0x7F;
            message[len] = (left & 0x7F) as u8 | u8::from(more) << 7;
            len += 1;
            left >>= 7;
            if !more {
                return (len, message);
            }
        }
    }

    fn bytes(&self, numbers: Range<u64>) -> u64 {
        numbers.map(|number| 24 + self.value(number).0 as u64).sum()
    }

    /// Points that a phase writes, deletes or reads.
    fn operations(&self, phase: Phase) -> u64 {
        let numbers = match phase {
            Phase::Compact => 0..1,
            Phase::Write | Phase::WriteHalf => self.written(phase),
            Phase::Delete => 0..self.old() * self.series,
            Phase::Query | Phase::QueryHalf => self.stored(phase),
        };
        numbers.end - numbers.start
    }

    /// Runs a phase, and checks what it returned or what can be read after it.
    pub fn run(
        &self,
        runner: &mut Runner<'_>,
        engine: &dyn Engine,
        spec: &EngineSpec,
        settings: &Settings,
        name: &str,
        phase: Phase,
    ) -> Result<(WorkloadReport, Figures)> {
        let class = settings.durability;
        let operations = self.operations(phase);
        let stage = Stage {
            name: name.into(),
            threads: 1,
            operations,
            batch: if matches!(phase, Phase::Write | Phase::WriteHalf) {
                BATCH as usize
            } else {
                1
            },
            per_latency: match phase {
                Phase::Write | Phase::WriteHalf => BATCH,
                Phase::Delete => self.old(),
                Phase::Compact => 1,
                Phase::Query | Phase::QueryHalf => operations / self.series,
            },
            maintenance: phase == Phase::Compact,
            ..Stage::default()
        };
        let (mut report, checksum) = runner.stage(&stage, &|_, meter| match phase {
            Phase::Write | Phase::WriteHalf => {
                self.write(engine, meter, self.written(phase), class)
            }
            Phase::Delete => self.delete(engine, meter, class),
            Phase::Query | Phase::QueryHalf => self.query(engine, meter),
            Phase::Compact => {
                engine.compact()?;
                meter.lap(1);
                Ok(())
            }
        })?;
        let live = self.bytes(self.stored(phase));
        report.space_amplification =
            report.disk_bytes.map(|bytes| bytes as f64 / live.max(1) as f64);
        if spec.answers() {
            report.check = Some(match phase {
                Phase::Query | Phase::QueryHalf => StepCheck::of_results(checksum),
                _ => self.sample(engine, self.stored(phase))?,
            });
        }
        let figures = [("series", self.series as f64), ("live_bytes", live as f64)];
        Ok((report, figures.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    fn write(
        &self,
        engine: &dyn Engine,
        meter: &mut Meter<'_>,
        mut left: Range<u64>,
        class: Durability,
    ) -> Result<()> {
        let mut session = engine.session()?;
        while !left.is_empty() {
            let batch = left.start..left.end.min(left.start + BATCH);
            for number in batch.clone() {
                let (len, message) = self.value(number);
                session.batch_put(&self.key(number), &message[..len]);
                note(&mut meter.totals, len as u64, true);
            }
            session.batch_commit(class)?;
            if !meter.lap(batch.end - batch.start) {
                break;
            }
            left.start = batch.end;
        }
        Ok(())
    }

    fn delete(&self, engine: &dyn Engine, meter: &mut Meter<'_>, class: Durability) -> Result<()> {
        let mut session = engine.session()?;
        let until = FIRST + self.old() * INTERVAL;
        for series in 0..self.series {
            session.delete_range(&key(series, 0, 0), &key(series, until, 0), class)?;
            if !meter.lap(self.old()) {
                break;
            }
        }
        Ok(())
    }

    fn query(&self, engine: &dyn Engine, meter: &mut Meter<'_>) -> Result<()> {
        let mut session = engine.session()?;
        for series in 0..self.series {
            let mut scan = Scan::default();
            let mut points = 0;
            self.scan(&mut *session, series, &mut |key, value| {
                scan.entry(key, value);
                points += 1;
                note(&mut meter.totals, value.len() as u64, false);
            })?;
            meter.totals.checksum.scan(scan);
            meter.totals.found += points;
            if points > 0 && !meter.lap(points) {
                break;
            }
        }
        Ok(())
    }

    /// Every point of a series: each key is compared with the end of the range, as in a store that
    /// knows nothing of series.
    fn scan(
        &self,
        session: &mut dyn Session,
        series: u64,
        found: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        let end = key(series, u64::MAX, u64::MAX);
        let mut cursor = session.cursor(Some(&key(series, 0, 0)), Direction::Forward)?;
        while let Some((key, value)) = cursor.next()? {
            if *key > end[..] {
                break;
            }
            found(key, value);
        }
        Ok(())
    }

    /// Reads some series, and compares every point of them with what has to be there.
    fn sample(&self, engine: &dyn Engine, stored: Range<u64>) -> Result<StepCheck> {
        let mut session = engine.session()?;
        let mut sample = ReadBack::default();
        let every = (self.series / SAMPLED).max(1);
        for series in (0..self.series).step_by(every as usize) {
            let numbers = stored.clone().skip(
                (series + self.series - stored.start % self.series) as usize % self.series as usize,
            );
            let mut expected = numbers.step_by(self.series as usize);
            let mut scan = Scan::default();
            self.scan(&mut *session, series, &mut |key, value| {
                scan.entry(key, value);
                sample.compared += 1;
                let right = expected.next().is_some_and(|number| {
                    let (len, message) = self.value(number);
                    *key == self.key(number)[..] && *value == message[..len]
                });
                if !right {
                    sample.wrong(|| {
                        format!("series {series} returned {key:02x?}, which does not belong there")
                    });
                }
            })?;
            let missing = expected.count();
            sample.compared += missing as u64;
            if missing > 0 {
                sample.wrong(|| format!("{missing} points of series {series} are missing"));
            }
            sample.checksum.scan(scan);
        }
        Ok(StepCheck::of_sample(sample))
    }
}

fn note(totals: &mut Totals, value: u64, written: bool) {
    totals.bytes += 24 + value;
    totals.bytes_written += if written { 24 + value } else { 0 };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn values_have_every_length_and_batches_every_series_once() {
        let points = Points::new(&Settings { num: 400_000, ..Settings::default() });
        assert_eq!(points.series, 2_000);
        let lengths: HashSet<usize> = (0..1_000).map(|number| points.value(number).0).collect();
        assert_eq!(lengths, (2..=11).collect());
        let series: HashSet<Vec<u8>> =
            (5_000..6_000).map(|number| points.key(number)[..8].to_vec()).collect();
        assert_eq!(series.len(), 1_000);
        let full = Points::new(&Settings { num: 100_000_000, ..Settings::default() });
        assert_eq!(full.series, 500_000);
    }
}
