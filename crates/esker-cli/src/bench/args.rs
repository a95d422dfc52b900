//! The options of `esker bench`, and how they become settings.

use clap::ValueEnum;
use esker_bench::engines::Tuning;
use esker_bench::experiments::compare;
use esker_bench::harness::dist::Distribution;
use esker_bench::harness::keys::KeyStyle;
use esker_bench::{Durability, EngineSpec, Error, Result, Settings, Workload};
use std::path::PathBuf;
use std::time::Duration;

/// The longest time for a workload of the standard list by default: all nine end in under two
/// minutes on any machine.
const STANDARD_LIMIT: Duration = Duration::from_secs(12);
/// Bytes of a record of YCSB.
const YCSB_RECORD: usize = 1_000;

/// Compare engines under fixed rules: rounds interleave, results are checked, every run has its own
/// process
#[derive(Debug, Clone, clap::Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub flags: BenchFlags,
    /// Open every engine with its defaults, or as its documentation recommends for speed (default:
    /// as the engine's name says)
    #[arg(long, value_enum, value_name = "HOW")]
    pub tuning: Option<TuningFlag>,
    /// Bytes of memory that the process of a run may use, including the system's cache of its files
    /// (needs administrator rights)
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub memory_limit: Option<u64>,
    /// Empty the system's cache of files before each workload (needs administrator rights)
    #[arg(long)]
    pub drop_caches: bool,
    /// Operations of a batch for engines whose single writes are not cheap; their rows say so
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub batch_instead: usize,
    /// Keep the databases, also those of an interrupted comparison
    #[arg(long)]
    pub keep: bool,
}

/// How much is set by hand.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[allow(missing_docs, reason = "names that mean themselves")]
pub enum TuningFlag {
    Default,
    Tuned,
}

impl CompareArgs {
    /// The settings of these options.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = self.flags.settings()?;
        if let Some(tuning) = self.tuning {
            let tuning = match tuning {
                TuningFlag::Default => Tuning::Default,
                TuningFlag::Tuned => Tuning::Tuned,
            };
            settings.engines = compare::tuned(settings.engines, tuning)?;
        }
        settings.memory_limit = self.memory_limit;
        settings.drop_caches = self.drop_caches;
        settings.batch_instead = self.batch_instead;
        settings.keep = self.keep;
        compare::prepare(settings)
    }
}

/// The options of all runs of workloads.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchFlags {
    /// Workloads to run in order on one database, separated by commas; `readrandom:16` uses 16
    /// threads (--list explains them; default: a standard list of nine)
    #[arg(long, alias = "benchmarks", value_name = "LIST")]
    pub workloads: Option<String>,
    /// Explain the workloads and the engines, and end
    #[arg(long)]
    pub list: bool,
    /// Engines to run, separated by commas (--list explains them): esker, mem (a locked map), null
    /// (measures the cost of the harness), and the peers that are built in
    #[arg(long, default_value = "esker", value_name = "LIST")]
    pub engine: String,
    /// How often each engine runs the list; several rounds interleave, and medians are compared
    #[arg(long, visible_alias = "repeat", default_value_t = 1, value_name = "N")]
    pub rounds: usize,
    /// Number of keys, and of operations of a workload that writes, over all its threads
    #[arg(long, default_value = "1M", value_parser = count, value_name = "N")]
    pub num: u64,
    /// Operations of a workload that reads, over all its threads (default: --num)
    #[arg(long, value_parser = count, value_name = "N")]
    pub reads: Option<u64>,
    /// Seconds that a workload without a natural end runs, and the limit for the others; loads of a
    /// comparison run to their end
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<f64>,
    /// Threads of a workload that does not name its own
    #[arg(long, default_value_t = 1, value_name = "T")]
    pub threads: usize,
    /// Bytes of a key
    #[arg(long, default_value_t = 16, value_name = "BYTES")]
    pub key_size: usize,
    /// How numbers become keys: decimal digits (LevelDB's db_bench) or big-endian bytes (RocksDB's)
    #[arg(long, value_enum, default_value_t = Style::Decimal)]
    pub key_style: Style,
    /// Bytes of a value (default: 100; 1000 if the list names workloads of YCSB, whose records have
    /// ten fields of 100 bytes)
    #[arg(long, value_name = "BYTES")]
    pub value_size: Option<usize>,
    /// The compressed size of a value as a fraction of its size
    #[arg(long, default_value_t = 0.5, value_name = "0..1")]
    pub compression_ratio: f64,
    /// The distribution of the keys that operations use
    #[arg(long, value_enum, default_value_t = Shape::Uniform)]
    pub distribution: Shape,
    /// The distribution of records in workloads of YCSB (default: as YCSB defines each workload)
    #[arg(long, value_enum, value_name = "SHAPE")]
    pub ycsb_distribution: Option<Shape>,
    /// Open loop: operations are due at this rate per second, whether or not earlier ones are done,
    /// and latencies count from the due time (for workloads that a time limit can end)
    #[arg(long, value_name = "RATE", conflicts_with = "rate_percent")]
    pub rate: Option<f64>,
    /// Open loop at these percentages of the rate that the workload sustains, which is measured
    /// just before; for instance 50,80,95
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub rate_percent: Vec<f64>,
    /// The exponent of the zipfian and latest distributions
    #[arg(long, default_value_t = 0.99, value_name = "X")]
    pub theta: f64,
    /// Operations of a write batch, or keys of a multi-read
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub batch_size: usize,
    /// Entries that a seek reads
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub scan_length: usize,
    /// Writes per second during readwhilewriting and seekrandomwhilewriting; 0 for no limit
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub write_rate: u64,
    /// The seed of all random streams
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// What a finished write survives
    #[arg(long, value_enum, default_value_t = Class::Process)]
    pub durability: Class,
    /// Memory budget of the engine, for instance 512M (default: a quarter of the machine's memory)
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// Bytes that the engine gathers in memory before a flush, for instance 1M; what has to be in
    /// proportion follows (default: the engine's own; refused by engines without the setting)
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub write_buffer: Option<u64>,
    /// Where to make the databases, which are kept (default: a new directory, removed at the end)
    #[arg(long, alias = "db", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Use the database that an earlier run left in --dir
    #[arg(long)]
    pub use_existing_db: bool,
    /// Write a time series (CSV) with one line for every N operations
    #[arg(long, value_parser = count, value_name = "N")]
    pub sample_ops: Option<u64>,
    /// Where to write the time series
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub sample_dir: PathBuf,
    /// Draw the rates over time as an SVG image
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the report as one JSON object to a file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the report as a page for a browser, as `esker bench report` makes it
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[allow(missing_docs, reason = "names that mean themselves")]
pub enum Style {
    Decimal,
    Binary,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[allow(missing_docs, reason = "names that mean themselves")]
pub enum Shape {
    Uniform,
    Zipfian,
    Latest,
}

impl From<Shape> for Distribution {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Uniform => Self::Uniform,
            Shape::Zipfian => Self::Zipfian,
            Shape::Latest => Self::Latest,
        }
    }
}

/// What a finished write survives.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Class {
    /// Nothing
    Buffered,
    /// The death of the process
    Process,
    /// Power loss
    Disk,
}

impl BenchFlags {
    /// The settings of these options.
    pub fn settings(&self) -> Result<Settings> {
        let defaults = Settings::default();
        let duration = self.duration.map(seconds).transpose()?;
        let standard = self.workloads.is_none() && duration.is_none();
        let workloads = match &self.workloads {
            Some(list) => Workload::parse_list(list)?,
            None => defaults.workloads.clone(),
        };
        let records = workloads.iter().any(|workload| workload.kind.is_ycsb());
        let value_size = if records { YCSB_RECORD } else { defaults.value_size };
        Ok(Settings {
            engines: EngineSpec::parse_list(&self.engine)?,
            workloads,
            num: self.num,
            key_size: self.key_size,
            key_style: match self.key_style {
                Style::Decimal => KeyStyle::Decimal,
                Style::Binary => KeyStyle::Binary,
            },
            value_size: self.value_size.unwrap_or(value_size),
            compression_ratio: self.compression_ratio,
            threads: self.threads,
            duration,
            limit: standard.then_some(STANDARD_LIMIT),
            reads: self.reads,
            batch_size: self.batch_size,
            scan_length: self.scan_length,
            write_rate: self.write_rate,
            seed: self.seed,
            distribution: self.distribution.into(),
            ycsb_distribution: self.ycsb_distribution.map(Distribution::from),
            rate: self.rate,
            rate_percent: self.rate_percent.clone(),
            theta: self.theta,
            durability: class(self.durability),
            memory: self.memory,
            write_buffer_bytes: self.write_buffer,
            dir: self.dir.clone(),
            use_existing_db: self.use_existing_db,
            rounds: self.rounds,
            sample_ops: self.sample_ops,
            ..defaults
        })
    }
}

/// The class as the harness has it.
pub(super) fn class(flag: Class) -> Durability {
    match flag {
        Class::Buffered => Durability::Buffered,
        Class::Process => Durability::Process,
        Class::Disk => Durability::Disk,
    }
}

pub(super) fn seconds(value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Error::usage("--duration must be a number of seconds above 0"))
}

/// `10M` is ten million.
pub(super) fn count(text: &str) -> Result<u64, String> {
    scaled(text, 1_000)
}

/// `512M` is 512 MiB.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    scaled(text.strip_suffix(['B', 'b']).map_or(text, |t| t.trim_end_matches(['i', 'I'])), 1_024)
}

fn scaled(text: &str, unit: u64) -> Result<u64, String> {
    let letters = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[letters.len()..].to_ascii_uppercase().as_str() {
        "" => Some(1),
        "K" => Some(unit),
        "M" => Some(unit.pow(2)),
        "G" => Some(unit.pow(3)),
        "T" => Some(unit.pow(4)),
        _ => None,
    };
    let number: Option<u64> = letters.replace('_', "").parse().ok();
    let value = number.zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    value.ok_or_else(|| "give a whole number, with K, M, G or T behind it if you like".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_a_unit() {
        let cases = [("12", 12), ("10M", 10_000_000), ("3k", 3_000), ("1_000", 1_000)];
        for (text, expected) in cases {
            assert_eq!(count(text), Ok(expected), "{text}");
        }
        let cases = [("512M", 512 << 20), ("1G", 1 << 30), ("64MiB", 64 << 20), ("4KB", 4_096)];
        for (text, expected) in cases {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "3X", "99999999999T", "B"] {
            assert!(count(text).is_err() && bytes(text).is_err(), "{text}");
        }
    }
}
