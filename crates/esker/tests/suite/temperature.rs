//! Compressing what is not read, and what is read again, is cut off at every step: every branch and named
//! snapshot holds what it held, what survives is whole, and the next process goes on. And what has turned warm
//! waits where there is no room for it, or where it would take space twice.

use super::cuts::{PATH, World, branch_thrice, cuts_of, key, world};
use super::options;
use esker::{Append, Db, Event, EventKind, KeyspaceOptions, Options};
use esker_testkit::CrashFs;
use esker_testkit::harness::HandClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEYS: usize = 600;
/// The time after which data is cold, in milliseconds.
pub const COLD: u64 = 1000;

fn sizes(disk: &CrashFs, clock: &Arc<HandClock>) -> Options {
    let mut options = options(disk.as_fs());
    options.memory = Some(1 << 20);
    options.memtable_bytes = Some(256 << 10);
    options.partition_bytes = Some(16 << 10);
    cools(&mut options, clock);
    options
}

/// Small segments and blocks, which turn cold after [`COLD`] whatever that saves.
pub fn cools(options: &mut Options, clock: &Arc<HandClock>) {
    options.segment_bytes = 8 << 10;
    options.block_bytes = 1 << 10;
    options.clock = clock.clone();
    options.cold_after = Some(Duration::from_millis(COLD));
    options.small_cold = true;
}

/// A value that has much in common with others.
pub fn record(number: usize) -> String {
    let (a, b) = (number * 7919 % 1009, number * 104_729 % 10_007);
    format!("{{\"id\":{number},\"of\":{a},\"name\":\"name {}\",\"more\":{b}}}", a % 13)
}

/// Bases with LZ4 blocks in three branches, one of which differs; a named snapshot has others.
fn build(disk: &CrashFs, clock: &Arc<HandClock>) -> World {
    let db = Db::open_with(PATH, sizes(disk, clock)).unwrap();
    let words = KeyspaceOptions::merging(Append::new(",").name());
    let words = db.keyspace_with("words", words).unwrap();
    for round in 0..2 {
        for number in 0..KEYS {
            db.insert(key(number), record(number + round)).unwrap();
            words.merge(key(number), record(number)).unwrap();
        }
        db.remove_range(key(100 * round)..key(100 * round + 60)).unwrap();
        db.compact().unwrap();
        if round == 0 {
            db.snapshot_named("moment").unwrap();
        }
    }
    let two = branch_thrice(&db);
    let world = world(&db);
    drop((two, words));
    db.close().unwrap();
    world
}

/// Bytes of settled blocks with LZ4 and with Zstandard.
pub fn stored(db: &Db) -> (u64, u64) {
    let bases = db.stats().trees;
    let bases = bases.iter().map(|tree| tree.base);
    bases.fold((0, 0), |sums, base| (sums.0 + base.lz4_bytes, sums.1 + base.zstd_bytes))
}

/// Lets time pass without reads; or has everything read from the files.
fn turn(db: &Db, clock: &Arc<HandClock>, colder: bool) -> esker::Result<()> {
    for _ in 0..8 {
        if !colder {
            for _ in 0..2 {
                let _ = world(db);
            }
        }
        clock.advance(COLD / 2);
        db.wait_until_idle()?;
    }
    Ok(())
}

#[test]
fn turning_cold_and_warm_can_be_cut_off_anywhere() {
    let disk = CrashFs::new();
    let clock = Arc::new(HandClock::default());
    clock.set(1_000_000);
    let expected = build(&disk, &clock);
    let db = Db::open_with(PATH, sizes(&disk, &clock)).unwrap();
    let mut seen = Vec::new();
    let cuts = cuts_of(&disk, || {
        turn(&db, &clock, true).unwrap();
        seen.push(stored(&db));
        assert!(db.stats().bytes_cooled > 0);
        assert!(world(&db) == expected, "it was not cut off");
        turn(&db, &clock, false).unwrap();
        seen.push(stored(&db));
        assert!(db.stats().bytes_warmed > 0);
        assert!(world(&db) == expected, "it was not cut off");
        db.close().unwrap();
    });
    drop(db);
    println!("LZ4 and Zstandard: {seen:?}");
    assert!(seen[0].1 > seen[0].0 && seen[1].1 < seen[0].1, "{seen:?}");
    assert!(cuts.len() > 40, "there are only {} cuts", cuts.len());
    for (number, (story, cut)) in cuts.into_iter().enumerate() {
        let db = Db::open_with(PATH, sizes(&cut, &clock))
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        assert!(world(&db) == expected, "{story}");
        if number % 4 == 0 {
            turn(&db, &clock, true).unwrap_or_else(|error| panic!("{story}: {error}"));
            assert!(stored(&db).1 >= seen[0].1 * 9 / 10, "{story}: {:?}", stored(&db));
            assert!(world(&db) == expected, "{story}, later");
        }
        let problems = db.verify().unwrap().problems;
        assert!(problems.is_empty(), "{story}: {problems:?}");
        db.close().unwrap_or_else(|error| panic!("{story}: {error}"));
    }
}

/// The number of keys, which all lie in one partition.
const VALUES: usize = 1200;

/// All entries, in the order of the keys.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A database that is cold.
struct Scene {
    disk: CrashFs,
    clock: Arc<HandClock>,
    db: Db,
    /// What it holds.
    all: Entries,
    /// Whether its values are separated.
    separated: bool,
    /// While this is set, a compaction for temperatures lets the disk have all the space that it wants: one that
    /// comes again and again, because it has no room, ends then.
    short: Arc<AtomicBool>,
}

impl Scene {
    fn new(separated: bool) -> Self {
        let (disk, clock) = (CrashFs::new(), Arc::new(HandClock::default()));
        clock.set(1_000_000);
        let mut options = sizes(&disk, &clock);
        options.memtable_bytes = Some(128 << 10);
        options.partition_bytes = Some(4 << 20);
        options.segment_bytes = 64 << 10;
        options.separate_values_from = separated.then_some(512);
        let short = Arc::new(AtomicBool::new(false));
        let (is_short, device) = (short.clone(), disk.clone());
        options.on_event = Some(Arc::new(move |event: &Event| {
            let turned =
                matches!(event.kind, EventKind::CompactionEnd { cause: "temperature", .. });
            if turned && is_short.load(Ordering::SeqCst) {
                device.set_capacity(None);
            }
        }));
        let db = Db::open_with(PATH, options).unwrap();
        let value = |number| (0..20).map(|at| record(20 * number + at)).collect::<String>();
        let all: Entries =
            (0..VALUES).map(|number| (key(number).into(), value(number).into())).collect();
        for (key, value) in &all {
            db.insert(key, value).unwrap();
        }
        db.compact().unwrap();
        turn(&db, &clock, true).unwrap();
        let scene = Self { disk, clock, db, all, separated, short };
        let (cold, all) = scene.stored();
        assert!(all > 200 << 10 && cold == all, "{cold} of {all} bytes are cold");
        assert_eq!(scene.db.stats().trees[0].partitions, 1);
        scene
    }

    /// The bytes that are cold of its values, or of all of it if they are not separated, and how many there are.
    fn stored(&self) -> (u64, u64) {
        let base = self.db.stats().trees[0].base;
        match self.separated {
            true => (base.value_zstd_bytes, base.value_bytes),
            false => (base.zstd_bytes, base.zstd_bytes + base.lz4_bytes + base.raw_bytes),
        }
    }

    /// Reads everything from the files, so that it turns warm, and then writes some of the first `among` keys so that a
    /// compaction is due, which has no other reason to write the rest.
    fn warm(&mut self, among: usize) {
        for _ in 0..3 {
            assert!(entries(&self.db) == self.all);
        }
        for (key, value) in self.all[..among].iter_mut().step_by(among / 20) {
            *value = b"small".to_vec();
            self.db.insert(&*key, &*value).unwrap();
        }
    }

    /// Lets so much time pass that somebody looks at temperatures.
    fn rest(&self) {
        self.clock.advance(COLD / 2);
        self.db.wait_until_idle().unwrap();
    }

    /// Leaves so many bytes free while a compaction is due and then while the database rests; at least `least` bytes
    /// must stay cold. With more room everything turns warm.
    fn rest_with(&self, free: u64, least: u64) {
        self.disk.set_capacity(Some(self.disk.used() + free));
        self.db.compact().unwrap();
        let (cold, all) = self.stored();
        assert!(cold >= least, "{cold} of {all} bytes are cold when it was due");
        let parts = self.db.stats().trees[0].partitions;
        assert_eq!(parts, 1, "the partition was cut up for want of room");
        assert!(entries(&self.db) == self.all);
        self.short.store(true, Ordering::SeqCst);
        self.rest();
        let (cold, all) = self.stored();
        assert!(cold >= least, "{cold} of {all} bytes are cold after a rest");
        self.short.store(false, Ordering::SeqCst);
        self.disk.set_capacity(None);
        self.rest();
        assert_eq!(self.stored().0, 0, "now there is room");
        assert!(entries(&self.db) == self.all);
        assert!(self.db.verify().unwrap().problems.is_empty());
    }
}

fn entries(db: &Db) -> Entries {
    db.iter().unwrap().map(Result::unwrap).collect()
}

/// A compaction that is due, and an idle one, leave values cold that have no room to turn warm (C7): there is room for
/// them as they are, but not for what they may take when they are warm.
#[test]
fn values_turn_warm_only_where_there_is_room_for_them() {
    let mut scene = Scene::new(true);
    scene.warm(VALUES);
    let (_, all) = scene.stored();
    scene.rest_with(all * 3 / 2, all * 9 / 10);
}

/// So do run segments that a compaction takes over: their partition is not cut up for want of room.
#[test]
fn run_segments_turn_warm_only_where_there_is_room_for_them() {
    let mut scene = Scene::new(false);
    scene.warm(VALUES / 20);
    let (_, all) = scene.stored();
    scene.rest_with(all * 3 / 2, all * 2 / 3);
}

/// A named snapshot keeps the values that it shares with the newest version, so warm ones would be there twice.
#[test]
fn values_that_a_named_snapshot_keeps_are_not_written_twice() {
    let mut scene = Scene::new(true);
    let kept = scene.all.clone();
    scene.db.snapshot_named("moment").unwrap();
    scene.warm(VALUES);
    let before = scene.db.stats().written.compaction;
    scene.db.compact().unwrap();
    scene.rest();
    let (cold, all) = scene.stored();
    assert_eq!(cold, all);
    let written = scene.db.stats().written.compaction - before;
    assert!(written < all / 4, "{written} bytes were written, and there are {all} of values");
    assert!(entries(&scene.db) == scene.all);
    let moment = scene.db.open_named_snapshot("moment").unwrap();
    assert!(entries(&moment) == kept);
    drop(moment);
    assert!(scene.db.drop_named_snapshot("moment").unwrap());
    scene.rest();
    assert_eq!(scene.stored().0, 0, "now nobody else keeps them");
    assert!(entries(&scene.db) == scene.all);
    assert!(scene.db.verify().unwrap().problems.is_empty());
}
