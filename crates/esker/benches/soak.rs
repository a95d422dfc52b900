//! Runs a mixed load for long and shows whether memory, descriptors and disk stay as they are.
//!
//! ```text
//! cargo bench -p esker --bench soak -- [MINUTES] [DIR] [OPERATIONS PER SECOND] [KEYS] [MIB]
//! ```
//! 90 minutes, 5,000 operations per second, a million keys, and a budget of 64 MiB unless said otherwise. Half
//! of the operations are gets and half updates with skewed keys, as in YCSB A; of a hundred one is a short scan, one a
//! put that expires after a minute. Each second a range of keys is removed and put again; each minute a branch is
//! made, written to and read, and that of the minute before is dropped; each five minutes a snapshot ends that was
//! held since, and all that is old is scanned.
//!
//! It prints means of the thirds of the time: what is resident, descriptors, bytes of the directory that are
//! allocated, and how the last third differs from the second. A line of what it has so far comes each minute, if a
//! terminal is there.

use esker::{Db, Keyspace, Options, Result, Snapshot};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const VALUE_BYTES: usize = 200;
const TTL: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |at: usize, usual: u64| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (minutes, rate) = (number(0, 90), number(2, 5000).max(1));
    let (keys, budget) = (number(3, 1_000_000).max(1000), number(4, 64) << 20);
    let scratch = std::env::temp_dir().join(format!("esker-soak-{}", std::process::id()));
    let dir = arguments.get(1).map_or(scratch, PathBuf::from).join("db");
    let mut options = Options::default();
    options.memory = Some(budget);
    let mut load = Load::new(&dir, options, keys)?;
    load.db.flush()?;
    let mut samples = Vec::new();
    let (begin, length) = (Instant::now(), Duration::from_secs(minutes * 60));
    while begin.elapsed() < length {
        load.second(begin, samples.len() as u64, rate)?;
        samples.push(Sample::take(&dir));
        if samples.len().is_multiple_of(60) && std::io::stderr().is_terminal() {
            eprintln!("{} minutes: {:?}", samples.len() / 60, samples.last());
        }
    }
    report(&samples);
    println!("{} operations, {} problems", load.operations, load.db.verify()?.problems.len());
    drop(load);
    std::fs::remove_dir_all(&dir).expect("the database can be removed");
    Ok(())
}

/// What the process has at a moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    resident: u64,
    descriptors: u64,
    disk: u64,
}

impl Sample {
    fn take(dir: &Path) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
        Self { resident: kib.unwrap_or(0) << 10, descriptors, disk: allocated(dir) }
    }
}

/// Bytes that the files below a directory take.
fn allocated(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let of = |path: PathBuf| match std::fs::symlink_metadata(&path) {
        Ok(facts) if facts.is_dir() => allocated(&path),
        Ok(facts) => blocks(&facts),
        Err(_) => 0,
    };
    entries.flatten().map(|entry| of(entry.path())).sum()
}

#[cfg(unix)]
fn blocks(facts: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(facts) * 512
}

#[cfg(not(unix))]
fn blocks(facts: &std::fs::Metadata) -> u64 {
    facts.len()
}

/// Prints the means of each third.
fn report(samples: &[Sample]) {
    let third = samples.len() / 3;
    if third == 0 {
        return;
    }
    println!("{:12} {:>9} {:>9} {:>9} {:>14}", "mean", "first", "second", "last", "last ÷ second");
    let row = |name: &str, unit: f64, of: fn(&Sample) -> u64| {
        let mean = |part: usize| {
            let all: u64 = samples[part * third..(part + 1) * third].iter().map(of).sum();
            all as f64 / third as f64 / unit
        };
        let [first, second, last] = [0, 1, 2].map(mean);
        println!("{name:12} {first:9.1} {second:9.1} {last:9.1} {:14.3}", last / second);
    };
    let mib = f64::from(1 << 20);
    row("RSS MiB", mib, |sample| sample.resident);
    row("descriptors", 1.0, |sample| sample.descriptors);
    row("disk MiB", mib, |sample| sample.disk);
}

/// The database and what the load holds.
struct Load {
    db: Db,
    keyspace: Keyspace,
    keys: u64,
    random: u64,
    operations: u64,
    branches: u64,
    held: Option<Snapshot>,
}

impl Load {
    fn new(dir: &Path, options: Options, keys: u64) -> Result<Self> {
        let db = Db::open_with(dir, options)?;
        let keyspace = db.default_keyspace();
        let mut load =
            Self { db, keyspace, keys, random: 1, operations: 0, branches: 0, held: None };
        (0..keys).try_for_each(|key| load.put(key))?;
        Ok(load)
    }

    /// What belongs to this second since `begin`; returns when it is over.
    fn second(&mut self, begin: Instant, second: u64, rate: u64) -> Result<()> {
        let low = self.below(self.keys - 100);
        self.db.remove_range(key(low)..key(low + 100))?;
        (low..low + 100).try_for_each(|key| self.put(key))?;
        if second.is_multiple_of(60) {
            self.branch()?;
        }
        if second.is_multiple_of(300) {
            if let Some(snapshot) = self.held.take() {
                let all = snapshot.iter(&self.keyspace)?;
                all.take(self.keys as usize / 10).try_for_each(|entry| entry.map(drop))?;
            }
            self.held = Some(self.db.snapshot()?);
        }
        // Ten parts, so that the load is even.
        for part in 0..10 {
            for _ in 0..rate / 10 {
                self.operate()?;
            }
            let due = Duration::from_secs(second) + Duration::from_millis((part + 1) * 100);
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
        }
        Ok(())
    }

    fn operate(&mut self) -> Result<()> {
        self.operations += 1;
        let skewed = self.skewed();
        match self.below(200) {
            0 | 1 => {
                let rows = self.keyspace.range(key(skewed)..)?.take(20);
                rows.for_each(|row| drop(std::hint::black_box(row)));
                Ok(())
            }
            2 | 3 => {
                let (name, value) = (format!("expires {skewed}"), self.value());
                self.keyspace.insert_with_ttl(name, value, TTL)
            }
            4..102 => self.put(skewed),
            _ => self.keyspace.get(key(skewed)).map(|value| drop(std::hint::black_box(value))),
        }
    }

    fn branch(&mut self) -> Result<()> {
        if self.branches > 0 {
            self.db.drop_branch(&format!("branch {}", self.branches - 1))?;
        }
        let branch = self.db.branch(&format!("branch {}", self.branches))?;
        self.branches += 1;
        for _ in 0..1000 {
            let at = key(self.skewed());
            branch.get(at)?;
            branch.insert(at, self.value())?;
        }
        Ok(())
    }

    fn put(&mut self, at: u64) -> Result<()> {
        let value = self.value();
        self.keyspace.insert(key(at), value)
    }

    /// Half of it compresses.
    fn value(&mut self) -> [u8; VALUE_BYTES] {
        let mut value = [7; VALUE_BYTES];
        for part in value[..VALUE_BYTES / 2].chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            part.copy_from_slice(&bytes[..part.len()]);
        }
        value
    }

    /// xorshift64* (Vigna 2016).
    fn next(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A key of which a few are much more frequent than the others.
    fn skewed(&mut self) -> u64 {
        let bits = self.below(64 - u64::from(self.keys.leading_zeros())) + 1;
        let within = self.below(self.keys.min(1 << bits));
        within.wrapping_mul(0x9E37_79B9) % self.keys
    }
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}
