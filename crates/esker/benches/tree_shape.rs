//! How often a byte is written, over how many runs a key lies, and how much space a database takes,
//! when the data are many times as large as a flush.
//!
//! `cargo bench -p esker --bench tree_shape -- --ratio 300 --data-mib 256 --load overwrite --rate 0`
//! makes a database whose data are `ratio` flushes large, with partitions and run segments scaled
//! along, brings it into a steady state, and prints one line of JSON. The rate is in writes per
//! second; 0 is as fast as they go. `--space` is `Options::max_space_amplification`. `by_tier` has what
//! compactions of partitions wrote, and then what pushes out of each tier wrote, the lowest first.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a measurement")]
#![allow(missing_docs)]

use esker::{Compression, Db, Durability, Event, EventKind, EventListener, Options, StepSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const VALUE_BYTES: usize = 100;
const KEY_BYTES: usize = 16;
const ENTRY_BYTES: u64 = (VALUE_BYTES + KEY_BYTES) as u64;

/// A generator of pseudo-random numbers (xorshift64*), the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)) * u128::from(end)) >> 64) as u64
    }
}

/// Keys in key order are numbers; neighbouring numbers are neighbouring keys.
fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"0000000000000000";
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Load {
    /// Uniform overwrites of keys that are there.
    Overwrite,
    /// New keys at random places.
    Insert,
    /// New keys in key order.
    Ascending,
    /// Overwrites, of which 80 % go to a fifth of the keys.
    Skewed,
    /// As many overwrites as new keys at random places.
    Mixed,
    /// As many deletes of keys drawn at random as new keys at random places.
    Delete,
}

struct Plan {
    ratio: u64,
    data_bytes: u64,
    load: Load,
    rate: u64,
    space: f64,
    dir: Option<String>,
}

fn plan() -> Plan {
    let (load, space) = (Load::Overwrite, Options::default().max_space_amplification);
    let mut plan = Plan { ratio: 300, data_bytes: 256 << 20, load, rate: 0, space, dir: None };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let mut value = || args.next().unwrap();
        match name.as_str() {
            "--ratio" => plan.ratio = value().parse().unwrap(),
            "--data-mib" => plan.data_bytes = value().parse::<u64>().unwrap() << 20,
            "--rate" => plan.rate = value().parse().unwrap(),
            "--space" => plan.space = value().parse().unwrap(),
            "--dir" => plan.dir = Some(value()),
            "--load" => {
                plan.load = match value().as_str() {
                    "insert" => Load::Insert,
                    "ascending" => Load::Ascending,
                    "skewed" => Load::Skewed,
                    "mixed" => Load::Mixed,
                    "delete" => Load::Delete,
                    _ => Load::Overwrite,
                }
            }
            _ => {}
        }
    }
    plan
}

/// What was seen while writes ran.
#[derive(Default)]
struct Seen {
    runs: u64,
    runs_max: u64,
    looks: u64,
    space: f64,
    space_max: f64,
    spaces: u64,
    longest: Duration,
}

impl Seen {
    fn look(&mut self, db: &Db, key: &[u8]) {
        let steps = db.explain_get(key).unwrap().steps;
        let runs = steps.iter().filter(|step| matches!(step.source, StepSource::Run { .. }));
        let runs = runs.count() as u64;
        self.runs += runs;
        self.runs_max = self.runs_max.max(runs);
        self.looks += 1;
    }

    fn weigh(&mut self, db: &Db, live: u64) {
        let space = tree_bytes(db) as f64 / live as f64;
        self.space += space;
        self.space_max = self.space_max.max(space);
        self.spaces += 1;
    }
}

fn tree_bytes(db: &Db) -> u64 {
    let trees = db.stats().trees;
    let of = |tree: &esker::TreeShape| {
        tree.base.bytes + tree.deltas.iter().map(|level| level.bytes).sum::<u64>()
    };
    trees.iter().map(of).sum()
}

/// Bytes that flushes and compactions of all kinds wrote.
fn rewritten(db: &Db) -> u64 {
    let written = db.stats().written;
    written.flush + written.compaction
}

/// Counts the bytes that compactions and pushes wrote.
#[derive(Default)]
struct Rewritten {
    /// To give space back.
    for_space: AtomicU64,
    /// Compactions of partitions, and pushes out of each tier.
    by_tier: [AtomicU64; 8],
    /// Bytes that these read.
    read_by_tier: [AtomicU64; 8],
}

impl EventListener for Rewritten {
    fn event(&self, event: &Event) {
        if let EventKind::CompactionEnd { cause, tier, input_bytes, output_bytes, .. } = event.kind
        {
            let tier = tier.min(7) as usize;
            self.by_tier[tier].fetch_add(output_bytes, Ordering::Relaxed);
            self.read_by_tier[tier].fetch_add(input_bytes, Ordering::Relaxed);
            if cause == "space" {
                self.for_space.fetch_add(output_bytes, Ordering::Relaxed);
            }
        }
    }
}

/// What was counted, for each user byte.
fn each(counts: &[AtomicU64; 8], of: impl Fn(u64) -> f64) -> String {
    let end = counts.iter().rposition(|count| count.load(Ordering::Relaxed) > 0);
    let shown = counts.iter().take(end.map_or(0, |end| end + 1));
    let shown: Vec<_> =
        shown.map(|count| format!("{:.2}", of(count.load(Ordering::Relaxed)))).collect();
    format!("[{}]", shown.join(","))
}

struct Writer {
    random: Random,
    load: Load,
    keys: u64,
    next: u64,
    rate: u64,
    begun: Instant,
    written: u64,
    bytes: u64,
    /// For deletes: the keys that are there.
    live: Vec<u64>,
}

impl Writer {
    fn number(&mut self) -> u64 {
        match self.load {
            Load::Overwrite => self.random.below(self.keys) << 20,
            Load::Insert | Load::Delete => self.fresh(),
            Load::Ascending => {
                self.next += 1;
                (self.keys + self.next) << 20
            }
            Load::Skewed if self.random.below(10) < 8 => self.random.below(self.keys / 5) << 20,
            Load::Skewed => self.random.below(self.keys) << 20,
            Load::Mixed if self.written.is_multiple_of(2) => self.fresh(),
            Load::Mixed => self.random.below(self.keys) << 20,
        }
    }

    /// A new key. Twelve low bits make room for such keys between those of the load.
    fn fresh(&mut self) -> u64 {
        (self.random.below(self.keys) << 20) + 1 + self.random.below(1 << 19)
    }

    fn write(&mut self, db: &Db, value: &[u8], seen: &mut Seen) {
        let deletes = self.load == Load::Delete && !self.written.is_multiple_of(2);
        let number = if deletes {
            let at = self.random.below(self.live.len() as u64) as usize;
            self.live.swap_remove(at)
        } else {
            let number = self.number();
            if self.load == Load::Delete {
                self.live.push(number);
            }
            number
        };
        let key = key(number);
        let before = Instant::now();
        if deletes {
            db.remove(key).unwrap();
        } else {
            db.insert(key, value).unwrap();
        }
        self.bytes += if deletes { KEY_BYTES as u64 } else { ENTRY_BYTES };
        seen.longest = seen.longest.max(before.elapsed());
        self.written += 1;
        if self.rate > 0 && self.written.is_multiple_of(16) {
            // An open loop: the time of a write does not depend on those before it.
            let due = Duration::from_secs_f64(self.written as f64 / self.rate as f64);
            std::thread::sleep(due.saturating_sub(self.begun.elapsed()));
        }
    }
}

fn main() {
    let plan = plan();
    let temporary = tempfile::tempdir().unwrap();
    let dir = plan.dir.as_ref().map_or_else(|| temporary.path().join("db"), Into::into);
    let _ = std::fs::remove_dir_all(&dir);
    let flush_bytes = (plan.data_bytes / plan.ratio).max(16 << 10);
    let mut options = Options::default();
    options.memory = Some(256 << 20);
    // A memtable's entries take about twice their size in a run.
    options.memtable_bytes = Some(flush_bytes);
    options.compression = Compression::None;
    options.durability = Durability::Buffered;
    options.log_file_bytes = 4 << 20;
    // From 512 KiB on the engine's own choice is in proportion.
    options.partition_bytes = (flush_bytes < 512 << 10).then(|| (8 * flush_bytes).max(32 << 10));
    options.segment_bytes = (flush_bytes / 8).clamp(4 << 10, 1 << 20) as u32;
    options.max_space_amplification = plan.space;
    options.small_space = Some(flush_bytes / 4);
    let counted = Arc::new(Rewritten::default());
    options.on_event = Some(counted.clone());
    let db = Db::open_with(&dir, options).unwrap();
    let keys = plan.data_bytes / ENTRY_BYTES;
    let value = {
        let mut random = Random(7);
        (0..VALUE_BYTES).map(|_| random.below(256) as u8).collect::<Vec<_>>()
    };
    for number in 0..keys {
        db.insert(key(number << 20), &value).unwrap();
    }
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let live = tree_bytes(&db);
    let mut writer = Writer {
        random: Random(88_172_645_463_325_252),
        load: plan.load,
        keys,
        next: 0,
        rate: 0,
        begun: Instant::now(),
        written: 0,
        bytes: 0,
        live: (0..keys).map(|number| number << 20).collect(),
    };
    let mut warming = Seen::default();
    for _ in 0..keys {
        writer.write(&db, &value, &mut warming);
    }
    let mut seen = Seen::default();
    (writer.rate, writer.written, writer.begun) = (plan.rate, 0, Instant::now());
    writer.bytes = 0;
    let (before, flushed) = (rewritten(&db), db.stats().written.flush);
    for count in counted.by_tier.iter().chain(&counted.read_by_tier).chain([&counted.for_space]) {
        count.store(0, Ordering::Relaxed);
    }
    // Several rounds of the compactions of every partition, which are in step after the load.
    let count = 2 * keys;
    let every = (count / 2_000).max(1);
    for number in 0..count {
        writer.write(&db, &value, &mut seen);
        if number % every == 0 {
            let key = key(writer.random.below(keys) << 20);
            seen.look(&db, &key);
        }
        if number % (every * 20) == 0 {
            // What the warming wrote is there too.
            let new = (keys + number) * ENTRY_BYTES;
            let grown = match plan.load {
                Load::Overwrite | Load::Skewed | Load::Delete => 0,
                Load::Insert | Load::Ascending => new,
                Load::Mixed => new / 2,
            };
            seen.weigh(&db, live + grown);
        }
    }
    let took = writer.begun.elapsed();
    let (after, flushed) = (rewritten(&db), db.stats().written.flush - flushed);
    let for_space = counted.for_space.load(Ordering::Relaxed);
    let of = |bytes: u64| bytes as f64 / writer.bytes as f64;
    let (by_tier, read) = (each(&counted.by_tier, of), each(&counted.read_by_tier, of));
    db.wait_until_idle().unwrap();
    let quiet = rewritten(&db);
    let stats = db.stats();
    println!(
        "{{\"ratio\":{},\"load\":\"{:?}\",\"rate\":{},\"data_bytes\":{},\"flush_bytes\":{},\
         \"amplification\":{:.2},\"of_flushes\":{:.2},\"left\":{:.2},\"runs_mean\":{:.1},\"runs_max\":{},\
         \"space_mean\":{:.2},\"space_max\":{:.2},\"writes_per_second\":{:.0},\"longest_ms\":{:.1},\
         \"partitions\":{},\"flushes\":{},\"for_space\":{:.2},\"by_tier\":{},\"read_by_tier\":{}}}",
        plan.ratio,
        plan.load,
        plan.rate,
        plan.data_bytes,
        flush_bytes,
        of(after - before),
        of(flushed),
        of(quiet - after),
        seen.runs as f64 / seen.looks as f64,
        seen.runs_max,
        seen.space / seen.spaces as f64,
        seen.space_max,
        count as f64 / took.as_secs_f64(),
        seen.longest.as_secs_f64() * 1e3,
        stats.trees.iter().map(|tree| tree.partitions).sum::<u64>(),
        stats.flushes,
        of(for_space),
        by_tier,
        read,
    );
}
