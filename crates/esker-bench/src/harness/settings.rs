//! Everything that decides what a suite does; part of every report.
//!
//! Reports can be compared only if their settings agree, so all settings are written into the report.
//! [`Settings::check`] refuses what cannot work before a directory is made or an engine is opened.

use crate::engines::lookup::check_write_buffer;
use crate::harness::dist::Distribution;
use crate::harness::keys::{KeyFormat, KeyStyle};
use crate::harness::workload::{Kind, STANDARD};
use crate::{Durability, EngineSpec, Error, Result, Workload};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;
use std::time::Duration;

/// The settings of a suite.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The engines, in the order of a round.
    pub engines: Vec<EngineSpec>,
    /// The workloads, in the order of a run.
    pub workloads: Vec<Workload>,
    /// How many keys there are.
    pub num: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// How numbers become keys.
    pub key_style: KeyStyle,
    /// Bytes of a value.
    pub value_size: usize,
    /// The fraction of its size that a compressor leaves of a value.
    pub compression_ratio: f64,
    /// Threads of a workload that does not say otherwise.
    pub threads: usize,
    /// How long a workload runs that can go on for ever; the longest that any other runs.
    #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
    pub duration: Option<Duration>,
    /// The longest that any workload runs, if it is not done before.
    #[serde(serialize_with = "seconds", deserialize_with = "from_seconds")]
    pub limit: Option<Duration>,
    /// Whether a workload that writes a given number of keys runs to its end, however long that takes:
    /// what comes behind it would else find other keys in every engine.
    pub whole_loads: bool,
    /// Operations of a reading workload, over all its threads. Default: `num`.
    pub reads: Option<u64>,
    /// Operations a write batch or a multi-read holds.
    pub batch_size: usize,
    /// Entries that a seek reads.
    pub scan_length: usize,
    /// Writes a second of a background writer; 0 for as many as it can.
    pub write_rate: u64,
    /// The seed of all streams of random numbers.
    pub seed: u64,
    /// The distribution of the keys that operations use.
    pub distribution: Distribution,
    /// The exponent of the skewed distributions.
    pub theta: f64,
    /// What a write survives.
    pub durability: Durability,
    /// Bytes of memory for the engine. Default: a quarter of the machine's.
    pub memory: Option<u64>,
    /// Bytes of the engine's write buffer. Default: the engine's own. It is left out of reports where it
    /// was not given, so that they stand beside those of versions without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_buffer_bytes: Option<u64>,
    /// Where databases are made. Default: a fresh directory that is removed at the end.
    pub dir: Option<PathBuf>,
    /// Opens the database that an earlier run left in `dir`.
    pub use_existing_db: bool,
    /// Whether databases remain that would be removed.
    pub keep: bool,
    /// How often each engine runs the list.
    pub rounds: usize,
    /// A time series with one sample for so many operations.
    pub sample_ops: Option<u64>,
    /// Whether what reads and scans return is checked.
    pub verify: bool,
    /// Operations of a batch for engines whose single writes are not cheap, in workloads that write
    /// one by one. Their rows say so.
    pub batch_instead: usize,
    /// Whether the system's cache of files is emptied before each workload.
    pub drop_caches: bool,
    /// Operations that are due a second, in workloads that time can end: an open loop.
    pub rate: Option<f64>,
    /// The same as shares of the rate that a workload sustains, in hundredths.
    pub rate_percent: Vec<f64>,
    /// Which records the mixed workloads ask for, if not those that YCSB says.
    pub ycsb_distribution: Option<Distribution>,
    /// Bytes of memory that the process of a run may use, the system's cache of its files included.
    pub memory_limit: Option<u64>,
}

fn seconds<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

fn from_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(deserializer)?;
    seconds.map(Duration::try_from_secs_f64).transpose().map_err(serde::de::Error::custom)
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engines: vec![EngineSpec::default()],
            workloads: Workload::parse_list(STANDARD).unwrap_or_default(),
            num: 1_000_000,
            key_size: 16,
            key_style: KeyStyle::default(),
            value_size: 100,
            compression_ratio: 0.5,
            threads: 1,
            duration: None,
            limit: None,
            whole_loads: false,
            reads: None,
            batch_size: 1,
            scan_length: 10,
            write_rate: 1_000,
            seed: 42,
            distribution: Distribution::default(),
            theta: 0.99,
            durability: Durability::default(),
            memory: None,
            write_buffer_bytes: None,
            dir: None,
            use_existing_db: false,
            keep: false,
            rounds: 1,
            sample_ops: None,
            verify: false,
            batch_instead: 1_000,
            drop_caches: false,
            rate: None,
            rate_percent: Vec::new(),
            ycsb_distribution: None,
            memory_limit: None,
        }
    }
}

/// Bytes of a value of `fill100K`.
pub const LARGE_VALUE: usize = 100_000;
/// Keys for one operation of the expensive fills (`fillsync`, `fill100K`).
pub const EXPENSIVE_SHARE: u64 = 1_000;
/// Numbers for one record that is loaded, with mixed workloads.
const ROOM_FOR_INSERTS: u64 = 4;
/// The largest number of keys: the harness keeps a bit for each.
const MAX_NUM: u64 = 10_000_000_000;

impl Settings {
    /// The format of all keys. Those of `fill100K` sort behind the others.
    pub fn key_format(&self) -> Result<KeyFormat> {
        KeyFormat::new(self.key_style, self.key_size, self.capacity() + self.large_keys())
    }

    /// How many numbers there are for small keys: with mixed workloads more than are loaded, since they
    /// insert.
    pub fn capacity(&self) -> u64 {
        if self.workloads.iter().any(|workload| workload.kind.is_ycsb()) {
            self.num * ROOM_FOR_INSERTS
        } else {
            self.num
        }
    }

    /// How many keys `fill100K` writes.
    pub fn large_keys(&self) -> u64 {
        (self.num / EXPENSIVE_SHARE).max(1)
    }

    /// The largest value of the list.
    pub fn largest_value(&self) -> usize {
        let large = self.workloads.iter().any(|workload| workload.kind == Kind::Fill100K);
        if large { self.value_size.max(LARGE_VALUE) } else { self.value_size }
    }

    /// Refuses an engine whose writes cannot be of the class that was asked for.
    pub fn offered_by(&self, engine: &EngineSpec) -> Result<()> {
        let class = self.durability;
        engine.offers(class).map_err(|reason| {
            Error::usage(format!(
                "{engine} has no writes of class `{class}` ({reason}): leave it out, or choose \
                 another class with --durability"
            ))
        })
    }

    fn check_rates(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::usage(message));
        let rates = self.rate.iter().chain(&self.rate_percent);
        if rates.clone().any(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return wrong("--rate and --rate-percent must be above 0");
        }
        if self.rate.is_some() && !self.rate_percent.is_empty() {
            return wrong("--rate and --rate-percent are two ways to say one thing: give one");
        }
        if rates.count() > 0 && !self.workloads.iter().any(|w| w.kind.can_be_paced()) {
            return wrong(
                "--rate needs a workload that time can end, readrandom or overwrite for instance",
            );
        }
        Ok(())
    }

    /// Mixed workloads work on records that are there.
    fn check_records(&self) -> Result<()> {
        let mut kinds = self.workloads.iter().map(|workload| workload.kind);
        let mixed = kinds.clone().position(Kind::is_mix);
        let loaded = kinds.position(|kind| kind == Kind::YcsbLoad);
        let early = |mixed: &usize| loaded.is_none_or(|loaded| loaded > *mixed);
        if let Some(mixed) = mixed.filter(early).filter(|_| !self.use_existing_db) {
            let name = self.workloads[mixed];
            return Err(Error::usage(format!(
                "{name} works on the records of ycsb-load: put that before it"
            )));
        }
        Ok(())
    }

    /// Refuses what cannot be carried out.
    pub fn check(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::usage(message));
        if self.num == 0 || self.num > MAX_NUM {
            return wrong("--num must be 1 to 10000000000 (10G)");
        }
        if self.value_size > 1 << 30 {
            return wrong("--value-size must be at most 1073741824 (1 GiB)");
        }
        if !(0.0..=1.0).contains(&self.compression_ratio) {
            return wrong("--compression-ratio must be between 0 and 1");
        }
        if !(1..=1024).contains(&self.threads) {
            return wrong("--threads must be 1 to 1024");
        }
        if self.batch_instead == 0 {
            return wrong("--batch-instead must be at least 1");
        }
        if self.batch_size == 0 || self.rounds == 0 || self.reads == Some(0) {
            return wrong("--batch-size, --rounds and --reads must be at least 1");
        }
        if self.sample_ops == Some(0) {
            return wrong("--sample-ops must be at least 1");
        }
        if !(0.0..10.0).contains(&self.theta) {
            return wrong("--theta must be at least 0 and below 10");
        }
        self.check_rates()?;
        self.check_records()?;
        if self.duration.is_some_and(|duration| duration.is_zero()) {
            return wrong("--duration must be above 0 seconds");
        }
        if self.use_existing_db && self.dir.is_none() {
            return wrong("--use-existing-db needs --dir, the directory of the earlier run");
        }
        if self.engines.is_empty() {
            return wrong("--engine is empty: name at least one, esker for instance");
        }
        for (i, engine) in self.engines.iter().enumerate() {
            engine.available()?;
            if engine.has_files() {
                self.offered_by(engine)?;
            }
            if !self.workloads.is_empty() {
                engine.answers_keys()?;
            }
            if let Some(bytes) = self.write_buffer_bytes {
                check_write_buffer(engine, bytes)?;
            }
            if self.engines[..i].contains(engine) {
                return Err(Error::usage(format!("--engine names {engine} twice: once is enough")));
            }
        }
        let missing = self.workloads.iter().any(|workload| workload.kind == Kind::ReadMissing);
        if missing && !self.key_format()?.has_missing() {
            return wrong("readmissing needs binary keys of more than 8 bytes: raise --key-size");
        }
        self.key_format().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::lookup::spec;

    #[test]
    fn the_defaults_are_in_order() {
        Settings::default().check().unwrap();
    }

    #[test]
    fn settings_survive_their_own_json() {
        let settings = Settings {
            duration: Some(Duration::from_millis(1_500)),
            key_style: KeyStyle::Binary,
            memory: Some(1 << 30),
            ..Settings::default()
        };
        let json = serde_json::to_value(&settings).unwrap();
        let back: Settings = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), json);
        assert_eq!(back.duration, settings.duration);
        assert!(json.get("write_buffer_bytes").is_none(), "{json}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_option_named() {
        type Change = fn(&mut Settings);
        let cases: &[(Change, &str)] = &[
            (|s| s.num = 0, "--num"),
            (|s| s.key_size = 3, "--key-size"),
            (|s| s.compression_ratio = 1.5, "--compression-ratio"),
            (|s| s.threads = 0, "--threads"),
            (|s| s.batch_size = 0, "--batch-size"),
            (|s| s.theta = f64::NAN, "--theta"),
            (|s| s.use_existing_db = true, "--dir"),
            (|s| s.engines.clear(), "--engine"),
            (|s| s.engines = vec![spec("mem"), spec("mem")], "twice"),
            (|s| (s.engines, s.write_buffer_bytes) = (vec![spec("mem")], Some(1 << 20)), "mem"),
            (|s| s.write_buffer_bytes = Some(1), "--write-buffer of 1 bytes"),
            (|s| (s.key_style, s.key_size) = (KeyStyle::Binary, 8), "readmissing"),
        ];
        for (i, (change, named)) in cases.iter().enumerate() {
            let mut settings = Settings::default();
            change(&mut settings);
            let error = settings.check().unwrap_err();
            assert!(matches!(error, Error::Usage(_)), "case {i}: {error}");
            assert!(error.to_string().contains(named), "case {i}: {error}");
        }
    }
}
