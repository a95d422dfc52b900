//! A full disk is a state, not a failure (C7): what frees space works on it, it can be opened for
//! writing, and writing goes on when space returns.
//!
//! The disk is simulated. The database itself fills it, or "somebody else" does at any one
//! operation (`ESKER_FULL_POINTS`: at how many operations, 100 by default). Real disks with ext4
//! are filled too where root runs this and the kernel permits it.

use super::ingested::Scene;
use super::{Tried, options as small};
use esker::fs::OpenMode;
use esker::{Db, Durability, Error, ErrorKind, Event, EventKind, Keyspace, Options};
use esker_testkit::faultfs::{Effect, Op as Call, Rule};
use esker_testkit::harness::{self, read_all};
use esker_testkit::model::{COUNTERS, Op};
use esker_testkit::ops::Generator;
use esker_testkit::{CrashFs, FaultFs};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

const PATH: &str = "/db";
const RESERVE: &str = "/db/wal/reserve";
const MIB: u64 = 1 << 20;
/// Bytes of the device that a value of 1,000 bytes may take, with its key and all that belongs to it.
const VALUE_BYTES_MAX: u64 = 1300;
/// How often the background is asked to finish before what it holds counts as forgotten, each time
/// after twice the pause.
const ATTEMPTS: u32 = 12;

fn on(disk: &CrashFs) -> Options {
    let mut options = Options::default();
    options.fs = disk.as_fs();
    options.memory = Some(32 << 20);
    options.workers = Some(1);
    options
}

fn value(number: u64) -> Vec<u8> {
    value_of(number, 1000)
}

fn value_of(number: u64, len: usize) -> Vec<u8> {
    // Not compressible, so that space is what it seems.
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

fn key(number: u64) -> Vec<u8> {
    // Neither ascending nor random: every flush reaches into all that is there.
    format!("{:08}", number.wrapping_mul(7_919) % 1_000_000).into_bytes()
}

fn is_full(error: &Error) -> bool {
    error.kind() == ErrorKind::DiskFull
}

/// Inserts until the disk is full; how many there are.
fn fill(keyspace: &Keyspace) -> u64 {
    fill_with(keyspace, 1000)
}

fn fill_with(keyspace: &Keyspace, len: usize) -> u64 {
    fill_from(keyspace, 0, len)
}

/// Inserts from a number on until the disk is full; how many there are.
fn fill_from(keyspace: &Keyspace, first: u64, len: usize) -> u64 {
    for number in first..1_000_000 {
        if let Err(error) = keyspace.insert(key(number), value_of(number, len)) {
            assert!(is_full(&error), "{error}");
            return number;
        }
    }
    panic!("the disk does not fill up");
}

/// Bytes of the device that hold no values, however many there are: the log, the reserve, and the
/// files that tell about the database, which have a bound of their own.
fn kept(disk: &CrashFs, db: &Db) -> u64 {
    let fs = disk.as_fs();
    let allocated = |path: &str| fs.open(path.as_ref(), OpenMode::Read)?.allocated();
    let told = ["/db/EVENTS", "/db/EVENTS.1", "/db/STATISTICS"];
    let told: u64 = told.into_iter().filter_map(|path| allocated(path).ok()).sum();
    db.stats().log_file_bytes + allocated(RESERVE).unwrap() + told
}

/// Fills a disk of so many bytes; how many values there are. Without the log, the reserve and what
/// returns when the work under way has ended, they must not take more than `VALUE_BYTES_MAX` each.
fn fill_disk(disk: &CrashFs, db: &Db, bytes: u64, what: &str) -> u64 {
    let keyspace = db.keyspace("a").unwrap();
    let mut count = fill(&keyspace);
    let mut attempt = 0;
    while count * VALUE_BYTES_MAX <= bytes - kept(disk, db) {
        assert!(attempt < ATTEMPTS, "{what}: full after {count}, with {} kept", kept(disk, db));
        // A compaction that has ended keeps its inputs as long as any call of this process that is
        // under way may read them.
        std::thread::sleep(Duration::from_millis(1 << attempt));
        if let Err(error) = db.wait_until_idle() {
            assert!(is_full(&error), "{what}: {error}");
        }
        let more = fill_from(&keyspace, count, 1000);
        attempt = if more > count { 0 } else { attempt + 1 };
        count = more;
    }
    count
}

/// What gives space back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Deletes,
    RangeDelete,
    Drop,
}

/// Frees most of the space on the full disk; nothing may be refused.
fn empty(db: &Db, keyspace: &Keyspace, count: u64, way: Way) {
    match way {
        Way::Deletes => {
            for number in 0..count - 100 {
                keyspace
                    .remove(key(number))
                    .unwrap_or_else(|error| panic!("delete {number} of {count}: {error}"));
            }
        }
        Way::RangeDelete => {
            keyspace
                .remove_range::<&[u8]>(..)
                .unwrap_or_else(|error| panic!("range delete: {error}"));
        }
        Way::Drop => {
            assert!(db.drop_keyspace("a").unwrap_or_else(|error| panic!("drop: {error}")));
        }
    }
}

/// Puts half of what there was into another keyspace, and reads it back.
fn refill(db: &Db, count: u64, what: &str) {
    let b = db.keyspace("b").unwrap_or_else(|error| panic!("{what}: {error}"));
    for number in 0..count / 2 {
        b.insert(key(number), value(number))
            .unwrap_or_else(|error| panic!("{what}: put {number} of {count}: {error}"));
    }
    db.flush().unwrap_or_else(|error| panic!("{what}: flush: {error}"));
    for number in 0..count / 2 {
        assert_eq!(b.get(key(number)).unwrap(), Some(value(number)), "{what}");
    }
    assert!(db.verify().unwrap().problems.is_empty(), "{what}");
    db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
}

/// What ends the life in which the disk became full.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    None,
    Close,
    Kill,
}

fn fill_and_empty(mut disk: CrashFs, bytes: u64, way: Way, end: End) {
    let what = format!("{bytes} bytes, {way:?}, {end:?}");
    disk.set_capacity(Some(bytes));
    let on = |disk: &CrashFs| {
        let mut options = on(disk);
        // The files that tell about the database may take neither the space nor the writes (C12).
        options.monitor = Some(end == End::Close);
        options
    };
    let mut db = Db::open_with(PATH, on(&disk)).unwrap();
    let count = fill_disk(&disk, &db, bytes, &what);
    if end != End::None {
        let killed = disk.kill_clone();
        if end == End::Close {
            db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
        }
        drop(db);
        if end == End::Kill {
            disk = killed;
        }
        db = Db::open_with(PATH, on(&disk)).unwrap_or_else(|error| panic!("{what}: open: {error}"));
    }
    let a = db.keyspace("a").unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(a.get(key(0)).unwrap(), Some(value(0)), "{what}");
    empty(&db, &a, count, way);
    refill(&db, count, &what);
}

/// The case as it was found: 1 kB values until the disk is full; what frees space was refused, and
/// so was opening.
#[test]
fn a_full_disk_is_opened_and_emptied() {
    fill_and_empty(CrashFs::new(), 32 * MIB, Way::Deletes, End::Kill);
    for way in [Way::Deletes, Way::RangeDelete, Way::Drop] {
        for end in [End::None, End::Close, End::Kill] {
            fill_and_empty(CrashFs::new(), 8 * MIB, way, end);
        }
    }
}

/// Proves that filling a disk would notice space that does not return.
#[test]
#[should_panic(expected = "full after")]
fn a_disk_with_files_that_are_never_removed_is_full_too_early() {
    let disk = CrashFs::new();
    disk.set_capacity(Some(8 * MIB));
    let faults = FaultFs::over(&disk);
    for call in [Call::Remove, Call::Punch] {
        faults.add(Rule::new(call, Effect::Skip).path("data").persistent());
    }
    let mut options = on(&disk);
    options.fs = faults.as_fs();
    let db = Db::open_with(PATH, options).unwrap();
    let gone = db.keyspace("gone").unwrap();
    for number in 0..2000 {
        gone.insert(key(number), value(number)).unwrap();
    }
    // What background work leaves behind may be too much for it already.
    if let Err(error) = db.compact() {
        assert!(is_full(&error), "{error}");
    }
    assert!(db.drop_keyspace("gone").unwrap());
    let count = fill_disk(&disk, &db, 8 * MIB, "nothing is removed");
    println!("{count} values, {} bytes kept", kept(&disk, &db));
}

/// Where blocks are copied when they are written to, allocated space is no promise: nothing is
/// mapped or used again, and a full disk ends nothing either.
#[test]
fn a_full_disk_that_copies_on_write_is_opened_and_emptied() {
    for (way, end) in [(Way::RangeDelete, End::Kill), (Way::Drop, End::Close)] {
        let disk = CrashFs::new();
        disk.set_copies_on_write(true);
        fill_and_empty(disk, 8 * MIB, way, end);
    }
}

#[test]
fn a_refusal_names_what_holds_the_space() {
    let disk = CrashFs::new();
    disk.set_capacity(Some(8 * MIB));
    let db = Db::open_with(PATH, on(&disk)).unwrap();
    let a = db.keyspace("a").unwrap();
    for number in 0..1500 {
        a.insert(key(number), value(number)).unwrap();
    }
    drop(db.branch("kept").unwrap());
    // What the branch shares is compacted with it, and the checkpoint shares the result.
    db.compact().unwrap();
    db.checkpoint("/copy").unwrap();
    a.remove_range::<&[u8]>(..).unwrap();
    db.compact().unwrap();
    let snapshot = db.snapshot().unwrap();
    let error = (0..20_000).find_map(|n| a.insert(key(n), value(n)).err()).unwrap();
    let Error::DiskFull { held: Some(held), .. } = &error else { panic!("{error}") };
    assert!(held.data > MIB && held.log > 0, "{held:?}");
    let stats = db.stats();
    assert!(stats.waits.disk_full.count > 0, "{:?}", stats.waits);
    // The background may make the reserve whole again after a refusal; further writes use it up.
    let mut tries = 0;
    while db.stats().pace.mode != esker::PaceMode::DiskFull {
        tries += 1;
        assert!(tries < 20_000, "writes are not refused again");
        let _ = a.insert(key(20_000 + tries), value(tries));
    }
    assert_eq!(
        (&stats.branches[0].name, stats.branches[0].data),
        (&held.branches[0].0, held.branches[0].1)
    );
    assert_eq!(held.snapshots, 1, "{held:?}");
    assert_eq!(held.branches.len(), 1, "{held:?}");
    assert!(held.branches[0].0 == "kept" && held.branches[0].1 > MIB, "{held:?}");
    assert!(held.checkpoints > MIB, "{held:?}");
    let text = error.to_string();
    for word in ["data holds", "the log", "1 open snapshots", "\"kept\"", "checkpoints share"] {
        assert!(text.contains(word), "{text}");
    }
    drop(snapshot);
}

/// What was removed is read by a call whose thread is not scheduled for two seconds: a write waits for its space.
#[test]
fn a_write_waits_for_a_call_that_reads_what_was_removed() {
    let disk = CrashFs::new();
    disk.set_capacity(Some(8 * MIB));
    let db = Db::open_with(PATH, on(&disk)).unwrap();
    let count = fill_disk(&disk, &db, 8 * MIB, "before the call");
    let (inside, is_inside) = std::sync::mpsc::channel();
    let call = std::thread::spawn(move || {
        let _guard = esker::internals::sync::pin();
        inside.send(()).unwrap();
        std::thread::sleep(Duration::from_secs(2));
    });
    is_inside.recv().unwrap();
    assert!(db.drop_keyspace("a").unwrap());
    refill(&db, count, "beside the call");
    call.join().unwrap();
}

#[test]
fn a_refusal_names_what_iterators_read() {
    let disk = CrashFs::new();
    disk.set_capacity(Some(8 * MIB));
    let db = Db::open_with(PATH, on(&disk)).unwrap();
    let a = db.keyspace("a").unwrap();
    fill(&a);
    db.flush().unwrap();
    let mut reader = a.iter().unwrap();
    reader.next().unwrap().unwrap();
    assert!(db.drop_keyspace("a").unwrap());
    let b = db.keyspace("b").unwrap();
    let error = (0..20_000).find_map(|n| b.insert(key(n), value(n)).err()).unwrap();
    let Error::DiskFull { held: Some(held), .. } = &error else { panic!("{error}") };
    assert!(held.replaced > MIB && held.data < MIB, "{held:?}");
    assert!(error.to_string().contains("calls and iterators under way read"), "{error}");
    drop(reader);
    refill(&db, 1000, "without the iterator");
}

/// A partition that does not fit a second time is cut up, and its parts are compacted one by one.
#[test]
fn a_partition_larger_than_what_is_free_is_compacted_in_parts() {
    let disk = CrashFs::new();
    disk.set_capacity(Some(16 * MIB));
    let (mut options, cuts) = (on(&disk), Arc::<AtomicU64>::default());
    let told = cuts.clone();
    options.on_event = Some(Arc::new(move |event: &Event| {
        if let EventKind::PartitionCut { parts } = event.kind {
            told.fetch_add(parts, Ordering::Relaxed);
        }
    }));
    let db = Db::open_with(PATH, options).unwrap();
    let a = db.keyspace("a").unwrap();
    let ordered = |number: u64| format!("{number:08}");
    for number in 0..9000 {
        a.insert(ordered(number), value(number)).unwrap();
    }
    db.flush().unwrap();
    for number in (0..9000).step_by(10) {
        a.insert(ordered(number), value(number + 1)).unwrap();
    }
    db.flush().unwrap();
    let held = |db: &Db| disk.used() - db.stats().log_file_bytes;
    let free = 16 * MIB - disk.used();
    assert!(free < held(&db) / 2, "{free} bytes are free, of {}", held(&db));
    db.compact().unwrap();
    let stats = db.stats();
    let tree = stats.trees.iter().find(|tree| tree.keyspace == "a").unwrap();
    // Compacted parts are joined again.
    assert!(tree.deltas.is_empty(), "{tree:?}");
    for number in 0..9000 {
        let expected = value(number + u64::from(number % 10 == 0));
        assert_eq!(a.get(ordered(number)).unwrap(), Some(expected), "{number}");
    }
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    assert!(cuts.load(Ordering::Relaxed) >= 2, "no event says that the partition was cut");
}

/// An edit of the manifest that finds no space, though space was allocated for it, is taken back
/// and written later: the database need not be reopened.
#[test]
fn a_manifest_that_finds_no_space_ends_nothing() {
    let disk = CrashFs::new();
    disk.set_copies_on_write(true);
    let faults = FaultFs::over(&disk);
    let mut options = on(&disk);
    options.fs = faults.as_fs();
    let db = Db::open_with(PATH, options).unwrap();
    db.insert("first", "1").unwrap();
    db.flush().unwrap();
    for written in [0, 9, 40] {
        let full = Effect::ShortWrite(written, io::ErrorKind::StorageFull);
        faults.add(Rule::new(Call::Write, full).path("MANIFEST").persistent());
        db.insert(format!("after {written}"), "2").unwrap();
        let error = db.flush().unwrap_err();
        assert!(is_full(&error), "{error}");
        faults.clear();
        let killed = disk.kill_clone();
        db.insert("last", "3").unwrap();
        db.flush().unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
        let other = Db::open_with(PATH, on(&killed)).unwrap();
        assert!(other.contains_key(format!("after {written}")).unwrap());
    }
    db.close().unwrap();
    let db = Db::open_with(PATH, on(&disk)).unwrap();
    assert_eq!(db.iter().unwrap().count(), 5);
}

/// The space that a write waits for does not come once writing has ended.
#[test]
fn a_write_on_a_full_disk_returns_when_writing_has_ended() {
    let disk = CrashFs::new();
    disk.set_capacity(Some(8 * MIB));
    let faults = FaultFs::over(&disk);
    let mut options = on(&disk);
    options.fs = faults.as_fs();
    let db = Db::open_with(PATH, options).unwrap();
    let count = fill(&db.default_keyspace());
    db.remove(key(0)).unwrap();
    faults.add(Rule::new(Call::SyncData, Effect::Error(io::ErrorKind::Other)).persistent());
    db.sync().unwrap_err();
    for number in count..count + 3 {
        let error = db.insert(key(number), value(number)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    }
    faults.clear();
    let _ = db.close();
}

/// A write that does not wait for space asks for it all the same: a program that tries again is either
/// told that there is none, or gets it.
#[test]
fn a_write_that_does_not_wait_comes_to_an_end_on_a_full_disk() {
    let disk = CrashFs::new();
    disk.set_capacity(Some(8 * MIB));
    let db = Db::open_with(PATH, on(&disk)).unwrap();
    let space = db.default_keyspace();
    let until_told = |write: &dyn Fn() -> esker::Result<()>| loop {
        match write() {
            Err(Error::WouldBlock { .. }) => std::thread::yield_now(),
            told => break told,
        }
    };
    let mut count = 0;
    let error = loop {
        let written = until_told(&|| space.try_insert(key(count), value(count)));
        if let Err(error) = written {
            break error;
        }
        count += 1;
    };
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
    assert!(count > 10, "{count} writes");
    assert_eq!(db.stats().waits.disk_full.count, 0, "it waited");
    (0..count).for_each(|number| until_told(&|| space.try_remove(key(number))).unwrap());
    until_told(&|| space.try_insert(key(0), value(1))).unwrap();
    assert_eq!(db.stats().waits.disk_full.count, 0, "it waited");
    assert_eq!(space.get(key(0)).unwrap(), Some(value(1)));
    db.close().unwrap();
}

/// What of space ends at the n-th operation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shortage {
    Device,
    Quota,
    /// Files may not become longer than this.
    FileSize(u64),
}

const NOT_FULL: u8 = 0;
const FULL: u8 = 1;
const FULL_WITH_RESERVE: u8 = 2;

/// Takes all space at an operation; the result says whether that happened, and whether the reserve
/// was there.
fn end_space_at(disk: &CrashFs, nth: u64, shortage: Shortage) -> Arc<AtomicU8> {
    let happened = Arc::new(AtomicU8::new(NOT_FULL));
    let (full, tell) = (disk.clone(), happened.clone());
    disk.set_hook(Some(Arc::new(move |number, _| {
        if number != nth {
            return;
        }
        // An open makes its own; what it has allocated counts.
        let reserve = full.as_fs().open(RESERVE.as_ref(), OpenMode::Read);
        let reserve = reserve.is_ok_and(|file| file.allocated().unwrap() >= 128 << 10);
        tell.store(if reserve { FULL_WITH_RESERVE } else { FULL }, Ordering::SeqCst);
        match shortage {
            Shortage::Device => full.fill_up(),
            Shortage::Quota => {
                full.set_shortage(io::ErrorKind::QuotaExceeded);
                full.fill_up();
            }
            Shortage::FileSize(bytes) => full.set_file_bytes_max(bytes),
        }
    })));
    happened
}

/// Writes, flushes, compacts, and goes on whatever is refused.
fn live(db: &Db, tried: &mut Tried, make: &mut Generator) {
    let model = esker_testkit::model::Model::new();
    for slot in [1, COUNTERS] {
        tried.write(db, vec![Op::Create(slot)], Durability::Process);
    }
    for step in 0..32 {
        tried.write_somehow(db, (make, &model), 12);
        match step % 16 {
            6 => tried.note(db.flush()),
            11 => tried.note(db.compact()),
            15 => tried.note(db.sync()),
            _ => {}
        }
    }
}

/// One point of the sweep. False: there were fewer operations.
fn fill_up_at(nth: u64, shortage: Shortage, seed: u64) -> bool {
    let what = format!("operation {nth}, {shortage:?}, seed {seed}");
    let disk = CrashFs::new();
    let fs = FaultFs::over(&disk);
    let happened = end_space_at(&disk, nth, shortage);
    let mut tried = Tried::default();
    let mut make = Generator::new(seed, 300);
    let mut last = None;
    for life in 0..2 {
        match Db::open_with(PATH, small(&fs, seed + life)) {
            Ok(db) => {
                live(&db, &mut tried, &mut make);
                if life == 0 {
                    tried.note(db.close());
                } else {
                    last = Some(db);
                }
            }
            Err(error) => tried.errors.push(error),
        }
    }
    disk.set_hook(None);
    let happened = happened.load(Ordering::SeqCst);
    for error in &tried.errors {
        assert!(is_full(error), "{what}: {error:?}");
    }
    assert_eq!(fs.violations(), Vec::<String>::new(), "{what}");
    // Killed, and opened while the disk is still full.
    let killed = FaultFs::over(&disk.kill_clone());
    drop(last);
    let opened = Db::open_with(PATH, small(&killed, seed));
    match &opened {
        Ok(db) => frees_space(db, &tried, &what, happened == FULL_WITH_RESERVE),
        Err(error) => {
            assert!(is_full(error), "{what}: {error:?}");
            assert!(happened != FULL_WITH_RESERVE, "{what}: open: {error}");
        }
    }
    drop(opened);
    // The one that was closed, or whose first open was cut off: a block comes free, then all.
    let free = disk.as_fs().free_bytes("/".as_ref()).unwrap();
    disk.set_capacity(Some(disk.used() + free + 4096));
    match Db::open_with(PATH, small(&fs, seed)) {
        Ok(db) => {
            if let Err(error) = db.insert("a little", [7; 100]) {
                assert!(is_full(&error), "{what}: {error:?}");
            }
            space_returns(&disk, shortage);
            db.insert("well", "again").unwrap_or_else(|error| panic!("{what}: write: {error}"));
            db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
        }
        Err(error) => {
            assert!(is_full(&error), "{what}: {error:?}");
            assert!(happened != FULL_WITH_RESERVE, "{what}: open: {error}");
            space_returns(&disk, shortage);
        }
    }
    let db = Db::open_with(PATH, small(&fs, seed))
        .unwrap_or_else(|error| panic!("{what}: open at last: {error}"));
    for key in ["a little", "well"] {
        db.remove(key).unwrap();
    }
    let found = read_all(&db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
    tried.check(&found).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    assert!(db.verify().unwrap().problems.is_empty(), "{what}");
    happened != NOT_FULL
}

fn space_returns(disk: &CrashFs, shortage: Shortage) {
    disk.set_capacity(None);
    if let Shortage::FileSize(_) = shortage {
        disk.set_file_bytes_max(u64::MAX);
    }
}

/// Everything that was acknowledged is there, and what frees space is not refused if it `must` be
/// taken.
fn frees_space(db: &Db, tried: &Tried, what: &str, must: bool) {
    let mut model = read_all(db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
    tried.check(&model).unwrap_or_else(|wrong| panic!("{what}, after a kill: {wrong}"));
    let mut ops: Vec<Op> = (0..12_u8).map(|n| Op::Delete(0, vec![b'a' + n])).collect();
    ops.push(Op::DeleteRange(0, Some(b"b".to_vec()), Some(b"y".to_vec())));
    ops.extend(model.map(1).map(|_| Op::Drop(1)));
    for op in ops {
        match harness::write_one(db, &op, Durability::Process) {
            Ok(()) => model.apply(&op),
            Err(error) => assert!(is_full(&error) && !must, "{what}: {op:?}: {error}"),
        }
    }
    if let Err(error) = db.compact() {
        assert!(is_full(&error), "{what}: compact: {error}");
    }
    let found = read_all(db).unwrap_or_else(|error| panic!("{what}: read: {error}"));
    assert_eq!(model.difference(&found), None, "{what}");
    assert!(db.verify().unwrap().problems.is_empty(), "{what}");
}

#[test]
fn the_disk_fills_up_at_the_nth_operation() {
    let points: u64 =
        std::env::var("ESKER_FULL_POINTS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let shortages = [Shortage::Device, Shortage::Quota, Shortage::FileSize(40 << 10)];
    let (mut done, mut seed) = (0, 1);
    while done < points {
        // Five seeds share the points unless those are more than the operations.
        let operations = (0..).find(|n| !fill_up_at(n << 8, Shortage::Device, seed)).unwrap() << 8;
        let step = (operations * 5 / points).max(1);
        for nth in (seed % step..operations).step_by(step as usize) {
            let shortage = shortages[(nth / step % 3) as usize];
            done += u64::from(fill_up_at(nth, shortage, seed));
        }
        seed += 1;
    }
    eprintln!("{done} full disks, seeds 1 to {}, 0 differences", seed - 1);
}

/// An ingestion that finds the disk full at any of its operations fails with that, is invisible, gives its files
/// back, and works when there is space again.
#[test]
fn an_ingestion_finds_the_disk_full_at_any_operation() {
    let (mut refused, mut done) = (0, 0);
    for shortage in [Shortage::Device, Shortage::Quota, Shortage::FileSize(40 << 10)] {
        for (seed, nth) in (0..).map(|nth| (1 + nth % 5, nth)) {
            let what = format!("operation {nth}, {shortage:?}, seed {seed}");
            let (scene, db) = Scene::new(seed);
            let happened = end_space_at(&scene.disk, scene.disk.ops() + nth, shortage);
            let result = scene.ingest(&db);
            if let Err(error) = &result {
                assert!(is_full(error), "{what}: {error:?}");
            }
            scene.disk.set_hook(None);
            space_returns(&scene.disk, shortage);
            done += u64::from(result.is_ok());
            refused += u64::from(scene.check(db, result, &what));
            if happened.load(Ordering::SeqCst) == NOT_FULL {
                break;
            }
        }
    }
    eprintln!("{refused} ingestions found no space, {done} needed none");
    assert!(refused > 15, "only {refused} ingestions found no space");
}

/// Calls that need space without asking for bytes: a directory may be what cannot grow.
#[test]
fn calls_find_no_space() {
    for call in [Call::Create, Call::CreateDir, Call::Allocate, Call::SetLen, Call::Rename] {
        for (round, kind) in
            [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge]
                .into_iter()
                .enumerate()
        {
            let (mut nth, effect) = (round as u64, Effect::Error(kind));
            let fails = |nth: u64| {
                super::try_one(call, nth, nth.is_multiple_of(2), &effect, 1 + nth % 7).fired
            };
            while fails(nth) {
                nth += 3 + nth / 2;
            }
        }
    }
}

/// An image of ext4 in a file, mounted; unmounted at the end.
struct Mounted<'d>(&'d Path);

impl<'d> Mounted<'d> {
    fn new(dir: &'d Path, megabytes: u64) -> Option<Self> {
        let image = dir.join("image");
        std::fs::File::create(&image).unwrap().set_len(megabytes * MIB).unwrap();
        let at = dir.join("mount");
        std::fs::create_dir(&at).unwrap();
        let run = |command: &mut Command| command.output().is_ok_and(|done| done.status.success());
        let made = run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at));
        made.then_some(Self(dir))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Lazily: old states, with their open files, go when the epoch scheme comes to them.
        let _ = Command::new("umount").arg("-l").arg(self.0.join("mount")).status();
    }
}

#[test]
fn a_real_full_disk_is_opened_and_emptied() {
    for (megabytes, len, way) in
        [(32, 1000, Way::Deletes), (32, 5000, Way::Drop), (256, 50_000, Way::RangeDelete)]
    {
        let dir = tempfile::tempdir().unwrap();
        let Some(mounted) = Mounted::new(dir.path(), megabytes) else {
            eprintln!("skipped: no image of ext4 can be mounted here");
            return;
        };
        let what = format!("ext4 of {megabytes} MiB, {way:?}");
        let mut options = Options::default();
        options.memory = Some(megabytes * MIB);
        let path = dir.path().join("mount/db");
        let db = Db::open_with(&path, options.clone()).unwrap();
        let count = fill_with(&db.keyspace("a").unwrap(), len);
        drop(db);
        let db =
            Db::open_with(&path, options).unwrap_or_else(|error| panic!("{what}: open: {error}"));
        let a = db.keyspace("a").unwrap();
        empty(&db, &a, count, way);
        refill(&db, count, &what);
        drop((db, a));
        drop(mounted);
    }
}
