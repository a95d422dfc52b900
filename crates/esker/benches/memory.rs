//! Measures the memory of a process beside its memory budget, load by load.
//!
//! ```text
//! cargo bench -p esker --bench memory -- [KEYS] [DIR] [MIB]...
//! ```
//! For each budget in MiB (16, 64, 256 and 1024 if none is given) a child process runs all loads one after
//! the other on one database of so many keys (2M), with values of 100 bytes. After each load the table has
//! the most that was resident during it (`VmHWM`, which is reset before each), and what of it was anonymous
//! and what mapped from files at its end, beside what the database has in its own account then
//! (`Stats::memory`). 16 MiB on top of 1.1 times the budget are the aim: the program itself, stacks and what
//! describes the tree. If ESKER_MEMORY_PARTS is set, a thread looks each millisecond at what is resident, and each
//! load has also the account part by part: at its end, and at the moment at which most was seen to be resident.

use esker::{Db, Keyspace, Options, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const BUDGETS: [&str; 4] = ["16", "64", "256", "1024"];

fn main() -> Result<()> {
    // Cargo gives `--bench` to what it runs, behind what it was told itself.
    let arguments: Vec<String> =
        std::env::args().filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    if let ["child", load, budget, keys, dir] = arguments.as_slice() {
        return child(load, number(budget) << 20, number(keys), Path::new(dir));
    }
    let keys = arguments.first().copied().unwrap_or("2000000");
    let scratch = std::env::temp_dir().join(format!("esker-memory-{}", std::process::id()));
    let dir = arguments.get(1).map_or(scratch, PathBuf::from);
    let asked = arguments.get(2..).filter(|asked| !asked.is_empty());
    println!(
        "{:>6} {:24} {:>9} {:>8} {:>9} {:>9} {:>8} {:>8}",
        "MiB", "load", "peak MiB", "÷ budget", "anonymous", "mapped", "account", "seconds"
    );
    for budget in asked.unwrap_or(&BUDGETS) {
        std::fs::create_dir_all(&dir).expect("the directory can be made");
        let database = dir.join(budget);
        // The second process replays what the first left in the log when it died.
        for load in ["write", "reopen"] {
            let program = std::env::current_exe().expect("the program has a path");
            let mut command = Command::new(program);
            command.args(["child", load, budget, keys]).arg(&database);
            assert!(command.status().expect("a child runs").success(), "{load} failed");
        }
        std::fs::remove_dir_all(&database).expect("the database can be removed");
    }
    Ok(())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(1_000_000)
}

fn options(budget: u64) -> Options {
    let mut options = Options::default();
    options.memory = Some(budget);
    options
}

/// Runs loads and prints the memory that each took.
struct Meter {
    budget: u64,
}

impl Meter {
    fn measure<T>(
        &self,
        (load, db): (&str, Option<&Db>),
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        // 5 resets the peak (proc(5), clear_refs); without it the peak is that of all loads so far.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let since = Instant::now();
        let (done, moment) = match db.filter(|_| with_parts()) {
            Some(db) => watched(db, run),
            None => (run(), None),
        };
        let done = done?;
        let account = db.map(|db| db.stats().memory).unwrap_or_default();
        let [peak, anonymous, file] = ["VmHWM:", "RssAnon:", "RssFile:"].map(resident);
        let mib = |bytes: u64| bytes >> 20;
        println!(
            "{:6} {load:24} {:9} {:8.2} {:9} {:9} {:8} {:8.1}",
            mib(self.budget),
            mib(peak),
            peak as f64 / self.budget as f64,
            mib(anonymous),
            mib(file),
            mib(account.total()),
            since.elapsed().as_secs_f64()
        );
        if with_parts() {
            println!("{:6} at the end {account:?}", "");
        }
        if let Some(moment) = moment {
            println!("{:6} {moment}", "");
        }
        Ok(done)
    }
}

fn with_parts() -> bool {
    std::env::var_os("ESKER_MEMORY_PARTS").is_some()
}

/// Runs a load while another thread looks at what is resident; also returns what that thread saw.
fn watched<T>(db: &Db, run: impl FnOnce() -> Result<T>) -> (Result<T>, Option<String>) {
    std::thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        let watcher = scope.spawn(|| watch(db, ended));
        let done = run();
        drop(end);
        (done, watcher.join().ok())
    })
}

/// Looks each millisecond, until the load ends. Each time that more is resident than before, it notes the account.
fn watch(db: &Db, ended: Receiver<()>) -> String {
    let (mut most, mut seen) = (0, String::new());
    while ended.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
        let now = resident("VmRSS:");
        if now > most + (256 << 10) {
            let account = db.stats().memory;
            let (after, total) = (resident("VmRSS:"), account.total());
            seen =
                format!("most seen {now} before, {after} after an account of {total}: {account:?}");
            most = now;
        }
    }
    seen
}

/// Bytes that the kernel counts for this process.
fn resident(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Keys in no order.
fn key(n: u64) -> [u8; 16] {
    let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(n)).to_be_bytes()
}

fn put_all(db: &Db, keys: u64, value: &[u8]) -> Result<()> {
    (0..keys).try_for_each(|n| db.insert(key(n), value))
}

fn scan(keyspace: &Keyspace, entries: u64) -> Result<()> {
    for entry in keyspace.iter()?.take(entries as usize) {
        std::hint::black_box(entry?);
    }
    Ok(())
}

fn child(load: &str, budget: u64, keys: u64, dir: &Path) -> Result<()> {
    let meter = Meter { budget };
    if load == "reopen" {
        let db = meter.measure(("replay at open", None), || Db::open_with(dir, options(budget)))?;
        return meter.measure(("compaction of everything", Some(&db)), || db.compact());
    }
    let db = Db::open_with(dir, options(budget))?;
    let main = db.keyspace("default")?;
    let measured =
        |load, run: &mut dyn FnMut() -> Result<()>| meter.measure((load, Some(&db)), run);
    measured("puts", &mut || put_all(&db, keys, &[7; 100]))?;
    measured("gets", &mut || {
        (0..keys / 4).try_for_each(|n| {
            db.get(key(n * 3 % keys)).map(|value| drop(std::hint::black_box(value)))
        })
    })?;
    measured("scan of everything", &mut || scan(&main, keys))?;
    let mut forgotten = Vec::new();
    measured("1,000 forgotten iterators", &mut || {
        for n in 0..1000 {
            let mut entries = main.range(key(n * 7)..)?;
            std::hint::black_box(entries.next().transpose()?);
            forgotten.push(entries);
        }
        put_all(&db, keys / 2, &[8; 100])
    })?;
    forgotten.truncate(1);
    measured("puts, a stalled reader", &mut || put_all(&db, keys / 2, &[9; 100]))?;
    drop(forgotten);
    measured("values of 64 KiB", &mut || put_all(&db, keys / 2000, &[1; 64 << 10]))?;
    measured("10,000 keyspaces", &mut || {
        for n in 0..10_000 {
            db.keyspace(&format!("keyspace {n}"))?.insert("key", "value")?;
        }
        Ok(())
    })?;
    // Dies without closing: the log stays.
    std::process::exit(0)
}
