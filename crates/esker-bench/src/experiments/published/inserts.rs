//! A long run of random inserts with a sample for every ten thousand: Acunu's experiment.
//!
//! Samples are written to a file while the run goes on, so a run that is stopped after hours leaves its
//! rates behind. Each sample also says what the device did in that time, for all processes together.

use super::figures::Figures;
use crate::engines::Engine;
use crate::harness::check::ReadBack;
use crate::harness::dist::{Distribution, Sampler, Stream};
use crate::harness::measure::disk_use::{Device, DeviceUse};
use crate::harness::measure::meter::Meter;
use crate::harness::runner::{Runner, Stage};
use crate::harness::settings::Settings;
use crate::harness::step_report::{Sample, StepCheck, WorkloadReport};
use crate::harness::values::ValuePool;
use crate::{EngineSpec, Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Inserts from one sample to the next.
pub const EVERY: u64 = 10_000;
/// At most so many inserted keys are read back.
const READ_BACK: u64 = 20_000;
/// The first line of the file of samples.
pub const HEAD: &str = "seconds,operations,seconds_since_last,ops_per_second,device_busy_percent,\
                        device_write_mb_per_second,device_read_mb_per_second";

/// The inserts of a run.
struct Inserts<'a> {
    settings: &'a Settings,
    pool: ValuePool,
    stream: Stream,
}

/// Runs the inserts, and reads some of them back.
pub fn run(
    runner: &mut Runner<'_>,
    engine: &dyn Engine,
    spec: &EngineSpec,
    settings: &Settings,
    (name, round): (&str, usize),
    (file, device): (Option<&Path>, Option<Device>),
) -> Result<(WorkloadReport, Figures)> {
    let inserts = Inserts {
        settings,
        pool: ValuePool::new(settings.value_size, settings.compression_ratio, settings.seed),
        stream: Stream { seed: settings.seed, round: round as u64, step: 0, thread: 0 },
    };
    let batched_instead = !spec.cheap_single_writes() && settings.batch_size == 1;
    let batch = if batched_instead { settings.batch_instead } else { settings.batch_size };
    let stage = Stage {
        name: name.into(),
        threads: 1,
        operations: settings.num,
        batch,
        batched_instead: batched_instead && batch > 1,
        per_latency: batch as u64,
        ..Stage::default()
    };
    let course = Mutex::new(Course::new(file, device)?);
    let (mut report, _) = runner.stage(&stage, &|_, meter| {
        let mut course = course.lock().unwrap_or_else(PoisonError::into_inner);
        inserts.write(engine, meter, batch as u64, &mut course)
    })?;
    let course = course.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.samples = course.samples;
    if spec.answers() {
        report.check = Some(inserts.read_back(engine)?);
    }
    let figures = verdict(&report.samples, settings.num, report.longest_pause_ms);
    Ok((report, figures))
}

impl Inserts<'_> {
    /// The numbers of the keys, in order.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let sampler = Sampler::new(Distribution::Uniform, self.settings.num, 0.0);
        let mut rng = self.stream.rng();
        std::iter::repeat_with(move || sampler.sample(&mut rng)).take(self.settings.num as usize)
    }

    fn value(&self, number: u64) -> &[u8] {
        self.pool.value(self.stream.shared_seed(), number, self.settings.value_size)
    }

    fn write(
        &self,
        engine: &dyn Engine,
        meter: &mut Meter<'_>,
        batch: u64,
        course: &mut Course,
    ) -> Result<()> {
        let keys = self.settings.key_format()?;
        let (mut key, class) = (keys.buffer(), self.settings.durability);
        let mut session = engine.session()?;
        let mut numbers = self.numbers();
        let bytes = (self.settings.key_size + self.settings.value_size) as u64;
        course.begin();
        loop {
            let mut count = 0;
            for number in numbers.by_ref().take(batch as usize) {
                keys.write(number, &mut key);
                if batch == 1 {
                    session.put(&key, self.value(number), class)?;
                } else {
                    session.batch_put(&key, self.value(number));
                }
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            if batch > 1 {
                session.batch_commit(class)?;
            }
            meter.totals.bytes += count * bytes;
            meter.totals.bytes_written += count * bytes;
            let go_on = meter.lap(count);
            course.reached(meter.totals.operations)?;
            if !go_on {
                return Ok(());
            }
        }
    }

    /// Draws the same keys again, and reads every so many of them.
    fn read_back(&self, engine: &dyn Engine) -> Result<StepCheck> {
        let keys = self.settings.key_format()?;
        let (mut key, mut session) = (keys.buffer(), engine.session()?);
        let mut sample = ReadBack::default();
        let every = (self.settings.num / READ_BACK).max(1);
        for number in self.numbers().step_by(every as usize) {
            keys.write(number, &mut key);
            let expected = self.value(number);
            let mut right = false;
            let found = session.get(&key, &mut |value| {
                sample.checksum.found(&key, value);
                right = value == expected;
            })?;
            if !found {
                sample.checksum.missing(&key);
            }
            sample.compared += 1;
            if !right {
                let key = String::from_utf8_lossy(&key);
                let what = if found { "has a value that was never written" } else { "is missing" };
                sample.wrong(|| format!("key {key} {what}"));
            }
        }
        Ok(StepCheck::of_sample(sample))
    }
}

/// The samples of a run, in memory and on file.
struct Course {
    file: Option<File>,
    device: Option<Device>,
    start: Instant,
    used: Option<DeviceUse>,
    next: u64,
    samples: Vec<Sample>,
}

impl Course {
    fn new(path: Option<&Path>, device: Option<Device>) -> Result<Self> {
        let file = path.map(|path| {
            let mut file = File::create(path).map_err(|error| Error::io("make", path, &error))?;
            writeln!(file, "{HEAD}").map_err(|error| Error::io("write", path, &error))?;
            Ok(file)
        });
        let (file, start) = (file.transpose()?, Instant::now());
        Ok(Self { file, device, start, used: None, next: EVERY, samples: Vec::new() })
    }

    fn begin(&mut self) {
        self.used = self.device.and_then(|device| device.now());
        self.start = Instant::now();
    }

    /// Takes a sample if it is time.
    fn reached(&mut self, operations: u64) -> Result<()> {
        if operations < self.next {
            return Ok(());
        }
        self.next = (operations / EVERY + 1) * EVERY;
        let sample = Sample { seconds: self.start.elapsed().as_secs_f64(), operations };
        let last = self.samples.last().copied().unwrap_or_default();
        self.samples.push(sample);
        let used = self.device.and_then(|device| device.now());
        let change = used.zip(self.used).map(|(now, then)| now.since(&then));
        self.used = used;
        let Some(file) = &mut self.file else { return Ok(()) };
        let seconds = (sample.seconds - last.seconds).max(1e-9);
        let rate = (operations - last.operations) as f64 / seconds;
        // Empty where the system does not tell.
        let device = |of: fn(&DeviceUse) -> f64| {
            change.as_ref().map_or(String::new(), |used| format!("{:.3}", of(used) / seconds))
        };
        let line = format!(
            "{:.6},{operations},{seconds:.6},{rate:.1},{},{},{}\n",
            sample.seconds,
            device(|used| used.busy_ms as f64 / 10.0),
            device(|used| used.written_bytes as f64 / 1e6),
            device(|used| used.read_bytes as f64 / 1e6),
        );
        let written = file.write_all(line.as_bytes());
        written.map_err(|error| Error::Failed(format!("cannot write a sample: {error}")))
    }
}

/// How the rate at the end stands to that at one hundredth of the run, each over a hundredth of it, and
/// the longest pause. Of a run that is too short for that, the pause alone.
fn verdict(samples: &[Sample], num: u64, pause: f64) -> Figures {
    let mut figures = Figures::from([("longest_pause_ms".to_owned(), pause)]);
    let at = |operations: u64| samples.iter().find(|sample| sample.operations >= operations);
    let rate = |from: u64, to: u64| {
        let (from, to) = (at(from)?, at(to)?);
        let seconds = to.seconds - from.seconds;
        (seconds > 0.0).then(|| (to.operations - from.operations) as f64 / seconds)
    };
    let part = num / 100;
    let last = samples.last().map_or(0, |sample| sample.operations);
    let early = rate(part / 2, part / 2 + part);
    let late = rate(last.saturating_sub(part), last);
    if let Some((early, late)) = early.zip(late).filter(|_| part >= EVERY) {
        figures.insert("rate_at_1_percent".into(), early);
        figures.insert("rate_at_end".into(), late);
        figures.insert("end_to_1_percent".into(), late / early);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_compares_the_last_hundredth_with_the_first() {
        // A million a second for the first half, a tenth of that for the second.
        let samples: Vec<Sample> = (1..=1_000_u64)
            .map(|i| {
                let slow = i.saturating_sub(500);
                let seconds = 0.01 * ((i - slow) + 10 * slow) as f64;
                Sample { seconds, operations: i * EVERY }
            })
            .collect();
        let figures = verdict(&samples, 10_000_000, 7.0);
        assert!((figures["end_to_1_percent"] - 0.1).abs() < 1e-6, "{figures:?}");
        assert!((figures["rate_at_1_percent"] - 1e6).abs() < 1.0);
        assert_eq!(figures["longest_pause_ms"], 7.0);
        assert_eq!(verdict(&samples[..3], 30_000, 7.0).len(), 1, "too short to tell");
    }

    #[test]
    fn samples_are_on_file_as_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        let mut course = Course::new(Some(&path), None).unwrap();
        course.begin();
        for operations in [9_999, 10_000, 10_001, 19_500, 31_000, 39_999] {
            course.reached(operations).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], HEAD);
        let operations: Vec<&str> = lines[1..].iter().filter_map(|l| l.split(',').nth(1)).collect();
        assert_eq!(operations, ["10000", "31000"]);
        assert!(lines.iter().all(|line| line.matches(',').count() == 6), "{text}");
    }
}
