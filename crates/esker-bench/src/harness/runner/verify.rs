//! Checks whether the engine returned what was written.
//!
//! There are two checks. The *results* of a step have a checksum (`check`). It must be the same for
//! every engine of a round if the step and all steps before it were the same work for all: a fixed
//! number of operations, and no writer whose progress depends on speed. After all other steps, and
//! after those that return nothing, a *sample* is read, which is not timed: some keys one by one and a
//! range, the same for all engines. Each result of the sample is compared with what the harness wrote.
//! Which keys are present is known exactly ([`crate::harness::live`]); the value of a key is one of
//! those that the steps so far would have written under it.

use super::plan::Plan;
use super::state::State;
use crate::Result;
use crate::engines::{Direction, Session};
use crate::harness::check::{Checksum, ReadBack, Scan};
use crate::harness::dist::Stream;
use crate::harness::measure::meter::Totals;
use crate::harness::step_report::StepCheck;
use rand::Rng;
use rand::rngs::SmallRng;

/// At most so many keys are read one by one.
const READS_MAX: u64 = 20_000;
/// At most so many entries are scanned.
const SCANNED_MAX: u64 = 100_000;
/// At least so many of each, or all there are.
const LEAST: u64 = 1_000;

impl State<'_> {
    /// Notes what the step wrote, and checks what it returned or what can be read after it.
    pub(super) fn check(
        &mut self,
        plan: &Plan,
        stream: &Stream,
        threads: &[Totals],
        beside: bool,
    ) -> Result<Option<StepCheck>> {
        let kind = plan.workload.kind;
        if kind.is_maintenance() {
            return Ok(None);
        }
        let done: u64 = threads.iter().map(|thread| thread.operations).sum();
        let cut = threads.iter().any(|thread| thread.cut);
        let whole = !cut || plan.operations == Some(done);
        let settled_before = !self.truth.unsettled;
        if kind.writes() || beside {
            self.truth.wrote(stream.shared_seed(), beside || !whole);
        }
        if !self.settings.verify {
            return Ok(None);
        }
        let turns_count = beside || kind.writes() && plan.threads > 1;
        if kind.reads() && whole && !turns_count && settled_before {
            let mut checksum = Checksum::default();
            threads.iter().for_each(|thread| checksum.merge(thread.checksum));
            return Ok(Some(StepCheck::of_results(checksum)));
        }
        let sample = self.sample(stream)?;
        let comparable = !self.truth.unsettled;
        Ok(Some(StepCheck { comparable, ..StepCheck::of_sample(sample) }))
    }

    fn sample(&self, stream: &Stream) -> Result<ReadBack> {
        let num = self.settings.capacity();
        let mut rng = Stream { thread: u64::MAX - 1, ..*stream }.rng();
        let mut sample = ReadBack::default();
        let mut session = self.engine.session()?;
        let reads = (num / 100).clamp(LEAST.min(num), READS_MAX);
        self.sample_reads(&mut *session, &mut rng, reads, &mut sample)?;
        let scanned = (num / 10).clamp(LEAST.min(num), SCANNED_MAX);
        let first = rng.random_range(0..=num - scanned);
        self.sample_scan(&mut *session, first..first + scanned, &mut sample)?;
        Ok(sample)
    }

    fn sample_reads(
        &self,
        session: &mut dyn Session,
        rng: &mut SmallRng,
        reads: u64,
        sample: &mut ReadBack,
    ) -> Result<()> {
        let mut key = self.keys.buffer();
        let mut value = Vec::new();
        for _ in 0..reads {
            let number = rng.random_range(0..self.settings.capacity());
            self.keys.write(number, &mut key);
            let found = session.get(&key, &mut |bytes| {
                value.clear();
                value.extend_from_slice(bytes);
            })?;
            if found {
                sample.checksum.found(&key, &value);
            } else {
                sample.checksum.missing(&key);
            }
            self.compare(number, &key, found.then_some(&value[..]), sample);
        }
        Ok(())
    }

    fn sample_scan(
        &self,
        session: &mut dyn Session,
        numbers: std::ops::Range<u64>,
        sample: &mut ReadBack,
    ) -> Result<()> {
        let mut key = self.keys.buffer();
        let mut scan = Scan::default();
        self.keys.write(numbers.start, &mut key);
        let mut cursor = session.cursor(Some(&key), Direction::Forward)?;
        let mut next = cursor.next()?;
        for number in numbers {
            self.keys.write(number, &mut key);
            // An entry before this key stands where no entry was written.
            while let Some((found, value)) = next.filter(|(found, _)| *found < &key[..]) {
                scan.entry(found, value);
                if !self.truth.unknown {
                    sample
                        .wrong(|| format!("a scan returned {found:02x?}, which was never written"));
                }
                next = cursor.next()?;
            }
            let Some((found, value)) = next.filter(|(found, _)| *found == &key[..]) else {
                self.compare(number, &key, None, sample);
                continue;
            };
            scan.entry(found, value);
            self.compare(number, &key, Some(value), sample);
            next = cursor.next()?;
        }
        sample.checksum.scan(scan);
        Ok(())
    }

    /// Compares a result with what was written.
    fn compare(&self, number: u64, key: &[u8], found: Option<&[u8]>, sample: &mut ReadBack) {
        if self.truth.unknown {
            return;
        }
        sample.compared += 1;
        let shown = || String::from_utf8_lossy(key).into_owned();
        match (self.live.contains(number), found) {
            (true, None) => sample.wrong(|| format!("key {} is missing", shown())),
            (false, Some(_)) => sample
                .wrong(|| format!("key {} is there and was never written or was deleted", shown())),
            (false, None) => (),
            (true, Some(value)) => {
                let size = self.settings.value_size;
                let mut writers = self.truth.writers.iter().rev();
                if !writers.any(|seed| self.pool.value(*seed, number, size) == value) {
                    sample.wrong(|| format!("key {} has a value that was never written", shown()));
                }
            }
        }
    }
}
