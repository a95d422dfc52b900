//! Shows what slows puts, second by second: at full speed, or at a rate.
//!
//! ```text
//! cargo bench -p esker --bench pace -- [SECONDS] [RATE] [DIR]
//! ```
//! A thread writes 1M values of 1,000 bytes, half of which compress, waits until the background has nothing to do, and
//! then overwrites them at random for so many seconds (60), at full speed, or with so many puts due per second. A line
//! for each second has the puts; how long the writer waited for the pacer; the time for which the writer, the flush and
//! the merges had a processor, and for which merges were ready to run and had none; how long some thread of the machine
//! waited for a device; how late the last put was; the least and the most of the pacer's limit; and the deltas over the
//! fullest partition, of how many. Times are in milliseconds. Then the slowest second follows in tenths. The times of
//! threads and devices come from `/proc`, and are 0 where there is none.

use esker::{Db, Options, Result, Stats};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 1000;
const TENTH: Duration = Duration::from_millis(100);
/// Pauses of the writer that are shorter than this are spent on the processor.
const NAP_MIN: Duration = Duration::from_micros(60);

fn main() -> Result<()> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |at: usize, default| {
        arguments.get(at).map_or(default, |text| text.parse().unwrap_or(default))
    };
    let scratch = std::env::temp_dir().join(format!("esker-pace-{}", std::process::id()));
    let dir = arguments.get(2).map_or(scratch, PathBuf::from);
    let db = Db::open_with(&dir, Options::default())?;
    let writer = Writer::new(&db);
    (0..KEYS).try_for_each(|n| writer.put(n, n))?;
    db.wait_until_idle()?;
    std::thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        let watcher = std::thread::Builder::new().name("watcher".into());
        let watcher = watcher.spawn_scoped(scope, || watch(&db, &writer, ended));
        let watcher = watcher.expect("a thread can be made");
        let done = writer.overwrite(Duration::from_secs(number(0, 60)), number(1, 0));
        drop(end);
        print(&watcher.join().unwrap_or_default());
        done
    })?;
    drop(db);
    std::fs::remove_dir_all(&dir).expect("the database can be removed");
    Ok(())
}

/// Puts, and what is seen of them from elsewhere.
struct Writer<'a> {
    db: &'a Db,
    noise: Vec<u8>,
    done: AtomicU64,
    late_ns: AtomicU64,
}

impl<'a> Writer<'a> {
    fn new(db: &'a Db) -> Self {
        let noise = (0..1 << 20).map(|n| mix(n) as u8).collect();
        Self { db, noise, done: AtomicU64::new(0), late_ns: AtomicU64::new(0) }
    }

    fn put(&self, key: u64, version: u64) -> Result<()> {
        let mut value = [7; VALUE_BYTES];
        let half = VALUE_BYTES / 2;
        let at = mix(version) as usize % (self.noise.len() - half);
        value[..half].copy_from_slice(&self.noise[at..at + half]);
        self.db.insert(format!("{:016x}", mix(key)), value)
    }

    fn overwrite(&self, time: Duration, rate: u64) -> Result<()> {
        let start = Instant::now();
        let mut n = 0_u64;
        while start.elapsed() < time {
            if let Some(due) = (n * 1_000_000_000).checked_div(rate) {
                self.wait_until(start + Duration::from_nanos(due));
            }
            self.put(mix(!n) % KEYS, !n)?;
            n += 1;
            self.done.store(n, Relaxed);
        }
        Ok(())
    }

    /// Waits until a put is due, or notes how late it is.
    fn wait_until(&self, due: Instant) {
        let late = Instant::now().saturating_duration_since(due);
        self.late_ns.store(late.as_nanos() as u64, Relaxed);
        if due > Instant::now() + NAP_MIN {
            std::thread::sleep(due - Instant::now());
        }
        while Instant::now() < due {}
    }
}

fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (n ^ n >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ n >> 32
}

/// What is summed since the start: puts, and milliseconds.
const COLUMNS: [&str; 7] = ["puts", "waited", "writer", "flush", "merges", "ready", "device"];
type Sums = [f64; COLUMNS.len()];

/// A moment; its sums are those since the moment before.
#[derive(Debug, Default, Clone)]
struct Moment {
    sums: Sums,
    late_ms: f64,
    limit: u64,
    deltas: usize,
    partitions: u64,
}

fn watch(db: &Db, writer: &Writer<'_>, ended: Receiver<()>) -> Vec<Moment> {
    let (start, mut before, mut moments) = (Instant::now(), sums(&db.stats(), writer), Vec::new());
    for n in 1.. {
        let due = (start + n * TENTH).saturating_duration_since(Instant::now());
        if ended.recv_timeout(due) != Err(RecvTimeoutError::Timeout) {
            break;
        }
        let stats = db.stats();
        let now = sums(&stats, writer);
        let fullest = stats.trees.iter().max_by_key(|tree| tree.deltas.len());
        moments.push(Moment {
            // What a thread took that has ended is no longer there.
            sums: std::array::from_fn(|column| (now[column] - before[column]).max(0.0)),
            late_ms: writer.late_ns.load(Relaxed) as f64 / 1e6,
            limit: stats.pace.limit,
            deltas: fullest.map_or(0, |tree| tree.deltas.len()),
            partitions: fullest.map_or(0, |tree| tree.partitions),
        });
        before = now;
    }
    moments
}

fn sums(stats: &Stats, writer: &Writer<'_>) -> Sums {
    let waits = stats.waits;
    let waited = waits.flush_debt.total + waits.compaction_debt.total + waits.memory.total;
    let threads = threads();
    // The times of all threads whose names begin so.
    let of = |name: &str| {
        let all = threads.iter().filter(|(other, _, _)| other.starts_with(name));
        all.fold((0.0, 0.0), |sum, (_, ran, ready)| (sum.0 + ran, sum.1 + ready))
    };
    // The writer is the main thread, which has the name of the program.
    let ((writes, _), (flush, _), (merges, ready)) =
        (of("pace"), of("esker-flush"), of("esker-merge"));
    let puts = writer.done.load(Relaxed) as f64;
    [puts, waited.as_secs_f64() * 1e3, writes, flush, merges, ready, waited_for_devices()]
}

/// What `/proc/pressure/io` says: the time for which some thread of the machine waited for a device.
fn waited_for_devices() -> f64 {
    let text = std::fs::read_to_string("/proc/pressure/io").unwrap_or_default();
    let total = text.lines().next().and_then(|line| line.rsplit_once('=')).map(|(_, total)| total);
    total.and_then(|total| total.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}

/// The names of all threads, and the milliseconds for which they had a processor, and were ready and had none.
fn threads() -> Vec<(String, f64, f64)> {
    let of = |thread: std::fs::DirEntry| {
        let read = |file| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let times = read("schedstat");
        let mut times =
            times.split_whitespace().map(|field| field.parse::<f64>().unwrap_or(0.0) / 1e6);
        let (ran, ready) = (times.next().unwrap_or(0.0), times.next().unwrap_or(0.0));
        (read("comm"), ran, ready)
    };
    std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten().map(of).collect()
}

fn print(moments: &[Moment]) {
    let columns = COLUMNS.map(|name| format!("{name:>10}")).join(" ");
    println!("{:>10} {columns} {:>10} {:>10} {:>10}", "second", "late", "limit MB/s", "deltas");
    let seconds: Vec<&[Moment]> = moments.chunks_exact(10).collect();
    seconds.iter().enumerate().for_each(|(n, second)| line(n as f64, second));
    let puts = |second: &[Moment]| second.iter().map(|moment| moment.sums[0]).sum::<f64>();
    let slowest = seconds.iter().enumerate().min_by(|a, b| puts(a.1).total_cmp(&puts(b.1)));
    if let Some((n, second)) = slowest {
        println!("the slowest:");
        let tenths = second.chunks(1).enumerate();
        tenths.for_each(|(tenth, moment)| line(n as f64 + tenth as f64 / 10.0, moment));
    }
}

fn line(time: f64, moments: &[Moment]) {
    let Some(last) = moments.last() else { return };
    let sum = |column: usize| moments.iter().map(|moment| moment.sums[column]).sum::<f64>();
    let sums: Vec<String> = (0..COLUMNS.len()).map(|n| format!("{:10.0}", sum(n))).collect();
    let limits = || moments.iter().map(|moment| moment.limit >> 20);
    let limits = format!("{}-{}", limits().min().unwrap_or(0), limits().max().unwrap_or(0));
    let deltas = format!("{} x {}", last.deltas, last.partitions);
    println!("{time:10.1} {} {:10.0} {limits:>10} {deltas:>10}", sums.join(" "), last.late_ms);
}
