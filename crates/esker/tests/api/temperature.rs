//! What is not read is compressed with Zstandard, and with LZ4 again when it is read often: bytes are
//! counted, and time is set by hand.

use super::causes::{Causes, Ended};
use super::{Place, base, entries, key, run_files, shrinks, small};
use esker::{Append, Compression, Db, KeyspaceOptions, Options};
use esker_testkit::Rng;
use esker_testkit::harness::HandClock;
use std::sync::Arc;
use std::time::Duration;

const KEYS: usize = 20_000;
/// The time after which data is cold, in milliseconds.
const COLD: u64 = 1000;

/// A value that has much in common with others, as records have.
fn record(number: usize) -> Vec<u8> {
    let mut rng = Rng::new(number as u64 + 1);
    let names = ["anna", "bert", "carla", "dieter", "emil", "frieda", "gustav", "heidi"];
    let name = |rng: &mut Rng| names[rng.below(8) as usize];
    let (first, second) = (name(&mut rng), name(&mut rng));
    let (score, day) = (rng.below(100_000), rng.below(28));
    format!("{{\"id\":{number},\"name\":\"{first}\",\"friend\":\"{second}\",\"score\":{score},\"day\":{day}}}")
        .into_bytes()
}

/// The number of keys with separated values, and the length from which on values are separated there.
const VALUES: usize = 1200;
const FROM: u32 = 512;

/// A value of about 2 KiB, which is separated.
fn records(number: usize) -> Vec<u8> {
    (0..20).flat_map(|at| record(20 * number + at)).collect()
}

struct Scene {
    place: Place,
    clock: Arc<HandClock>,
    causes: Arc<Causes>,
    db: Option<Db>,
    time: u64,
}

impl Scene {
    fn options(&self, compression: Compression) -> Options {
        let mut options = small();
        // So little memory that reads of everything come from files.
        options.memory = Some(1 << 20);
        options.memtable_bytes = Some(128 << 10);
        options.partition_bytes = Some(256 << 10);
        options.segment_bytes = 64 << 10;
        options.compression = compression;
        options.separate_values_from = Some(FROM);
        options.cold_after = Some(Duration::from_millis(COLD));
        options.clock = self.clock.clone();
        options.on_event = Some(self.causes.clone());
        options
    }

    fn open(&mut self, compression: Compression) -> Db {
        self.db = None;
        let db = Db::open_with(self.place.path(), self.options(compression)).unwrap();
        self.db = Some(db.clone());
        db
    }

    fn new() -> Self {
        let (clock, causes) = (Arc::new(HandClock::default()), Arc::default());
        let scene = Self { place: Place::new(), clock, causes, db: None, time: 1_000_000 };
        scene.clock.set(scene.time);
        scene
    }

    /// A database of separated values that have settled.
    fn with_values() -> (Self, Db) {
        let mut scene = Self::new();
        let db = scene.open(Compression::Auto);
        for number in 0..VALUES {
            db.insert(key(number), records(number)).unwrap();
        }
        db.compact().unwrap();
        db.wait_until_idle().unwrap();
        let base = base(&db);
        assert!(base.value_bytes > 600 << 10 && base.value_bytes * 10 > base.bytes * 9, "{base:?}");
        assert_eq!(base.value_zstd_bytes, 0);
        (scene, db)
    }

    /// A database of records that have settled.
    fn loaded() -> (Self, Db) {
        let mut scene = Self::new();
        let db = scene.open(Compression::Auto);
        for number in 0..KEYS {
            db.insert(key(number), record(number)).unwrap();
        }
        db.compact().unwrap();
        db.wait_until_idle().unwrap();
        assert_eq!(base(&db).zstd_bytes, 0);
        assert!(base(&db).lz4_bytes > 200 << 10, "{:?}", base(&db));
        (scene, db)
    }

    /// Lets time pass in which nobody writes.
    fn rest(&mut self, millis: u64) {
        self.time += millis;
        self.clock.set(self.time);
        self.db.as_ref().unwrap().wait_until_idle().unwrap();
    }
}

/// What all compactions wrote, and what they wrote because something turned cold or warm.
fn written(db: &Db) -> (u64, u64, u64) {
    let stats = db.stats();
    (stats.written.compaction, stats.bytes_cooled, stats.bytes_warmed)
}

fn read_all(db: &Db) {
    assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), KEYS);
}

#[test]
fn what_nobody_reads_is_compressed_strongly_once() {
    let (mut scene, db) = Scene::loaded();
    let expected = entries(db.iter().unwrap());
    let (warm, (before, ..)) = (base(&db), written(&db));
    // The look at this time finds that it was read, and the next ones that it is not for long enough.
    for _ in 0..COLD / 250 {
        scene.rest(250);
    }
    assert_eq!(written(&db), (before, 0, 0), "too early");
    scene.rest(250);
    let cold = base(&db);
    assert_eq!((cold.lz4_bytes, cold.unread_bytes), (0, 0), "{cold:?}");
    assert!(cold.bytes * 3 < warm.bytes * 2, "{} bytes became {}", warm.bytes, cold.bytes);
    let (all, cooled, warmed) = written(&db);
    // Besides segments there are headers and what aligns them.
    assert!(cooled >= cold.bytes && cooled < cold.bytes * 11 / 10, "{cooled}, {cold:?}");
    assert!(all - before < cooled * 11 / 10 && warmed == 0, "{all}, {before}");
    assert!(scene.causes.of("temperature") > 0);
    for _ in 0..10 {
        scene.rest(COLD);
    }
    db.insert(key(0), record(0)).unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(written(&db), (all, cooled, 0), "nothing is written twice");
    assert!(entries(db.iter().unwrap()) == expected);
    assert!(db.verify().unwrap().problems.is_empty());
    // Also when it was closed and nothing is known of it.
    db.close().unwrap();
    let db = scene.open(Compression::Auto);
    (0..5).for_each(|_| scene.rest(COLD));
    assert_eq!(written(&db), (0, 0, 0));
    assert!(entries(db.iter().unwrap()) == expected);
}

#[test]
fn what_is_read_often_is_compressed_lightly_again() {
    let (mut scene, db) = Scene::loaded();
    let lz4 = base(&db);
    (0..6).for_each(|_| scene.rest(250));
    let (all, cooled, _) = written(&db);
    let cold = base(&db);
    assert_eq!(cold.lz4_bytes, 0);
    // A backup now and then is no reason.
    for _ in 0..20 {
        read_all(&db);
        scene.rest(COLD + 1);
    }
    assert_eq!(written(&db), (all, cooled, 0));
    let before = db.stats().scan_bytes_read;
    let mut times = 0;
    while base(&db).zstd_bytes > 0 {
        (0..10).for_each(|_| read_all(&db));
        scene.rest(250);
        times += 10;
        let read = db.stats().scan_bytes_read - before;
        let enough = read > 10 * cold.bytes || written(&db).2 == 0;
        assert!(enough, "{read} bytes of {} were read in {times} scans", cold.bytes);
        assert!(times < 120, "{read} bytes were read, {:?}", base(&db));
    }
    let (_, same, warmed) = written(&db);
    assert_eq!(same, cooled);
    assert!(warmed < lz4.bytes * 11 / 10, "{warmed} bytes for {}", lz4.bytes);
    read_all(&db);
    // And the other way again, which is bounded by what was read.
    scene.rest(250);
    (0..5).for_each(|_| scene.rest(250));
    let (_, twice, warmed) = written(&db);
    assert!(twice <= 2 * cooled + (64 << 10) && twice > cooled, "{twice} after {cooled}");
    let read = db.stats().scan_bytes_read;
    assert!(
        twice + warmed <= cold.bytes + lz4.bytes + read / 8,
        "{twice} and {warmed}, {read} read"
    );
}

/// Half of the data is read now and then, by single reads, from the cache or not.
#[test]
fn what_is_read_now_and_then_stays_as_it_is() {
    let (mut scene, db) = Scene::loaded();
    let warm = base(&db);
    for round in 0..12 {
        for number in (0..KEYS / 2).step_by(100) {
            assert_eq!(db.get(key(number)).unwrap(), Some(record(number)), "{round}");
        }
        scene.rest(250);
    }
    let half = base(&db);
    let share = half.lz4_bytes as f64 / warm.lz4_bytes as f64;
    assert!(share > 0.4 && share < 0.65, "{share}: {half:?}");
    assert!(half.zstd_bytes > 0);
}

#[test]
fn what_does_not_get_smaller_is_judged_once_and_left_alone() {
    let (mut scene, db) = Scene::loaded();
    let mut rng = Rng::new(5);
    let other = db.keyspace("noise").unwrap();
    for number in 0..KEYS / 4 {
        let value: Vec<u8> = (0..100).map(|_| rng.below(256) as u8).collect();
        other.insert(key(number), value).unwrap();
    }
    db.drop_keyspace("default").ok();
    other.compact().unwrap();
    db.wait_until_idle().unwrap();
    (0..6).for_each(|_| scene.rest(250));
    let shape = db.stats().trees.iter().find(|tree| tree.keyspace == "noise").unwrap().base;
    assert_eq!(shape.zstd_bytes, 0, "{shape:?}");
    let (before, read) = (written(&db), db.stats().bytes_read);
    for _ in 0..5 {
        scene.rest(COLD);
        assert_eq!((written(&db), db.stats().bytes_read), (before, read), "it was judged again");
    }
}

#[test]
fn other_ways_to_compress_leave_no_choice() {
    let (mut scene, db) = Scene::loaded();
    db.close().unwrap();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let db = scene.open(compression);
        (0..5).for_each(|_| scene.rest(COLD));
        assert_eq!(written(&db), (0, 0, 0), "{compression:?}");
        db.close().unwrap();
    }
    let mut options = scene.options(Compression::Auto);
    options.cold_after = None;
    let db = Db::open_with(scene.place.path(), options).unwrap();
    scene.db = Some(db.clone());
    (0..5).for_each(|_| scene.rest(COLD));
    assert_eq!(written(&db), (0, 0, 0));
}

/// Where data is written to, its next compaction writes it as it does others.
#[test]
fn what_is_written_to_is_warm() {
    let (mut scene, db) = Scene::loaded();
    (0..6).for_each(|_| scene.rest(250));
    assert_eq!(base(&db).lz4_bytes, 0);
    for number in (0..KEYS / 4).step_by(10) {
        db.insert(key(number), record(number)).unwrap();
    }
    db.compact().unwrap();
    let shape = base(&db);
    assert!(shape.lz4_bytes > 0 && shape.zstd_bytes > 0, "{shape:?}");
    assert_eq!(entries(db.iter().unwrap()).len(), KEYS);
}

/// Nothing is done beside writes, however much is cold.
#[test]
fn nothing_turns_cold_under_load() {
    let (mut scene, db) = Scene::loaded();
    scene.rest(250);
    // From now on nobody waits until it is idle.
    scene.clock.set(scene.time + 10 * COLD);
    let other = db.keyspace("other").unwrap();
    for number in 0..KEYS / 4 {
        other.insert(key(number), record(number)).unwrap();
        if number % 1000 == 0 {
            db.insert(key(number), record(number)).unwrap();
            db.compact().unwrap();
        }
    }
    other.compact().unwrap();
    assert_eq!(written(&db).1, 0);
}

/// Branches that share what turns cold go on sharing it; what a named snapshot holds stays.
#[test]
fn what_trees_share_is_written_once() {
    let written_with = |branches: usize| {
        let (mut scene, db) = Scene::loaded();
        let expected = entries(db.iter().unwrap());
        (0..branches).for_each(|number| drop(db.branch(&format!("branch {number}")).unwrap()));
        (0..6).for_each(|_| scene.rest(250));
        for name in db.branches().unwrap() {
            let branch = db.open_branch(&name).unwrap();
            assert!(entries(branch.iter().unwrap()) == expected, "{name}");
        }
        assert_eq!(base(&db).lz4_bytes, 0, "with {branches} branches");
        assert!(db.verify().unwrap().problems.is_empty());
        written(&db).1
    };
    let (alone, shared) = (written_with(0), written_with(4));
    assert!(shared * 20 < alone * 21, "{shared} bytes with branches, {alone} without");

    let (mut scene, db) = Scene::loaded();
    db.snapshot_named("moment").unwrap();
    (0..6).for_each(|_| scene.rest(250));
    assert_eq!(written(&db).1, 0, "the named snapshot would keep what is there");
    db.drop_named_snapshot("moment").unwrap();
    (0..6).for_each(|_| scene.rest(250));
    assert_eq!(base(&db).lz4_bytes, 0);
}

/// Snapshots, iterators, checkpoints, operands, entries that expire and range deletes.
#[test]
fn every_reader_sees_what_it_saw() {
    let (mut scene, db) = Scene::loaded();
    let merging = KeyspaceOptions::merging(Append::new(",").name());
    let merging = db.keyspace_with("merging", merging).unwrap();
    for number in 0..KEYS / 4 {
        merging.merge(key(number), record(number)).unwrap();
        let name = format!("passing {number:06}");
        let hour = Duration::from_secs(3600);
        db.default_keyspace().insert_with_ttl(name, record(number), hour).unwrap();
    }
    let early = db.snapshot().unwrap();
    let seen = entries(early.iter(&db.default_keyspace()).unwrap());
    for number in (0..KEYS / 4).step_by(3) {
        db.remove(key(number)).unwrap();
        merging.merge(key(number), "more").unwrap();
    }
    db.remove_range(key(1000)..key(1500)).unwrap();
    db.compact().unwrap();
    let now = |db: &Db| -> Vec<_> {
        ["default", "merging"]
            .map(|name| entries(db.keyspace(name).unwrap().iter().unwrap()))
            .into()
    };
    let before = now(&db);
    let copy = scene.place.path().with_file_name("copy");
    db.checkpoint(&copy).unwrap();
    let mut held = db.iter().unwrap();
    let first = held.next().unwrap().unwrap();
    (0..6).for_each(|_| scene.rest(250));
    assert!(written(&db).1 > 0 && base(&db).zstd_bytes > base(&db).lz4_bytes, "{:?}", base(&db));
    assert!(now(&db) == before);
    assert!(entries(early.iter(&db.default_keyspace()).unwrap()) == seen);
    let rest: Vec<_> = std::iter::once(first).chain(held.map(Result::unwrap)).collect();
    assert!(rest == before[0]);
    assert!(db.verify().unwrap().problems.is_empty());
    let second = scene.place.path().with_file_name("second");
    db.checkpoint(&second).unwrap();
    for path in [copy, second] {
        let copy = Db::open_with(&path, scene.options(Compression::Auto)).unwrap();
        assert!(copy.verify().unwrap().problems.is_empty());
        assert!(now(&copy) == before);
    }
    // A repair saves everything.
    drop(early);
    db.close().unwrap();
    let saved = scene.place.path().with_file_name("saved");
    let options = scene.options(Compression::Auto);
    let salvaged = esker::repair::salvage(scene.place.path(), &saved, &options).unwrap();
    assert!(salvaged.plan.is_whole(), "{salvaged}");
    assert!(now(&Db::open_with(&saved, options).unwrap()) == before);
}

#[test]
fn nobody_has_to_wait_for_it() {
    let (mut scene, db) = Scene::loaded();
    db.close().unwrap();
    scene.db = None;
    let (listener, ended) = Ended::of("temperature");
    let mut options = scene.options(Compression::Auto);
    options.clock = Options::default().clock;
    options.cold_after = Some(Duration::from_millis(20));
    options.on_event = Some(listener);
    let db = Db::open_with(scene.place.path(), options).unwrap();
    ended.recv().unwrap();
    db.close().unwrap();
}

/// All separated values, in the order of the keys.
fn all_values() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..VALUES).map(|number| (key(number).into(), records(number))).collect()
}

#[test]
fn values_that_nobody_reads_are_compressed_strongly_once() {
    let (mut scene, db) = Scene::with_values();
    assert!(entries(db.iter().unwrap()) == all_values());
    let (warm, files, before) = (base(&db), run_files(&scene.place.path()).0, written(&db).0);
    for _ in 0..COLD / 250 {
        scene.rest(250);
    }
    assert_eq!(written(&db), (before, 0, 0), "too early");
    scene.rest(250);
    let cold = base(&db);
    assert_eq!(cold.value_zstd_bytes, cold.value_bytes, "{cold:?}");
    assert!(cold.value_bytes * 8 < warm.value_bytes * 7, "{warm:?} became {cold:?}");
    let (all, cooled, warmed) = written(&db);
    // Keys and references are written with their values.
    // Indexes are not counted.
    let counted = cooled > cold.value_bytes * 9 / 10 && cooled < cold.bytes * 11 / 10;
    assert!(counted, "{cooled}, {cold:?}");
    assert!(all - before < cooled * 5 / 4 && warmed == 0, "{all}, {before}");
    // The device has it back.
    let saved = warm.value_bytes - cold.value_bytes;
    shrinks(&db, &scene.place, |taken| taken < files - saved * 3 / 4);
    for _ in 0..10 {
        scene.rest(COLD);
    }
    assert_eq!(written(&db), (all, cooled, 0), "nothing is written twice");
    assert!(entries(db.iter().unwrap()) == all_values());
    assert_eq!(db.get(key(17)).unwrap(), Some(records(17)));
    assert!(db.verify().unwrap().problems.is_empty());
    // Also when it was closed and nothing is known of it.
    db.close().unwrap();
    let db = scene.open(Compression::Auto);
    (0..5).for_each(|_| scene.rest(COLD));
    assert_eq!(written(&db), (0, 0, 0));
    assert!(entries(db.iter().unwrap()) == all_values());
    let known = base(&db);
    assert_eq!(known.value_zstd_bytes, known.value_bytes);
}

#[test]
fn values_that_are_read_often_are_compressed_lightly_again() {
    let (mut scene, db) = Scene::with_values();
    let lz4 = base(&db);
    (0..6).for_each(|_| scene.rest(250));
    let (all, cooled, _) = written(&db);
    let cold = base(&db);
    assert_eq!(cold.value_zstd_bytes, cold.value_bytes);
    let read_all = || assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), VALUES);
    // A backup now and then is no reason.
    for _ in 0..20 {
        read_all();
        scene.rest(COLD + 1);
    }
    assert_eq!(written(&db), (all, cooled, 0));
    let before = db.stats().scan_bytes_read;
    while base(&db).value_zstd_bytes > 0 {
        (0..10).for_each(|_| read_all());
        scene.rest(250);
        let read = db.stats().scan_bytes_read - before;
        assert!(read > 10 * cold.value_bytes || written(&db).2 == 0, "{read}, {cold:?}");
        assert!(read < 100 * cold.value_bytes, "{read} bytes were read, {:?}", base(&db));
    }
    let (_, same, warmed) = written(&db);
    assert_eq!(same, cooled);
    assert!(warmed > cold.value_bytes && warmed < lz4.bytes * 11 / 10, "{warmed}, {lz4:?}");
    assert!(entries(db.iter().unwrap()) == all_values());
}

/// Half of the values are read now and then, and their keys are in the cache.
#[test]
fn values_that_are_read_now_and_then_stay_as_they_are() {
    let (mut scene, db) = Scene::with_values();
    for round in 0..12 {
        for number in (0..VALUES / 2).step_by(10) {
            assert_eq!(db.get(key(number)).unwrap(), Some(records(number)), "{round}");
        }
        scene.rest(250);
    }
    let half = base(&db);
    let share = half.value_zstd_bytes as f64 / half.value_bytes as f64;
    assert!(share > 0.2 && share < 0.55, "{share}: {half:?}");
}

/// What trees share is written once, and values that a branch goes on referring to stay where they are.
#[test]
fn values_to_which_another_tree_refers_stay_as_they_are() {
    let (mut scene, db) = Scene::with_values();
    let branch = db.branch("other").unwrap();
    (0..6).for_each(|_| scene.rest(250));
    let (_, shared, _) = written(&db);
    let cold = base(&db);
    assert!(shared < cold.bytes * 11 / 10, "{shared} bytes, {cold:?}");
    assert_eq!(cold.value_zstd_bytes, cold.value_bytes);
    assert!(entries(branch.iter().unwrap()) == all_values());

    // Here the branch has come apart before, by so little that the call moves no values.
    let (mut scene, db) = Scene::with_values();
    drop(db.branch("other").unwrap());
    let mut expected = all_values();
    for number in (0..VALUES).step_by(60) {
        db.insert(key(number), "small").unwrap();
        expected[number].1 = b"small".to_vec();
    }
    db.compact().unwrap();
    let all = base(&db).value_bytes;
    (0..6).for_each(|_| scene.rest(250));
    let (_, cooled, _) = written(&db);
    assert!(cooled < all / 10, "{cooled} bytes of {all} were written beside those of the branch");
    assert!(entries(db.open_branch("other").unwrap().iter().unwrap()) == all_values());
    assert!(db.drop_branch("other").unwrap());
    (0..6).for_each(|_| scene.rest(250));
    let cold = base(&db);
    assert_eq!(cold.value_zstd_bytes, cold.value_bytes);
    assert!(entries(db.iter().unwrap()) == expected);
    assert!(db.verify().unwrap().problems.is_empty());
}

/// Values in pieces never move, and values that Zstandard does not make smaller stay where they are.
#[test]
fn values_that_stay_where_they_are_are_judged_once() {
    let mut scene = Scene::new();
    let db = scene.open(Compression::Auto);
    let pieces = records(0).repeat(300);
    assert!(pieces.len() > 256 << 10);
    for number in 0..10 {
        db.insert_reader(key(number), &pieces[..]).unwrap();
    }
    let mut rng = Rng::new(5);
    for number in 10..300 {
        let noise: Vec<u8> = (0..2000).map(|_| rng.below(256) as u8).collect();
        db.insert(key(number), noise).unwrap();
    }
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    (0..6).for_each(|_| scene.rest(250));
    let shape = base(&db);
    assert_eq!(shape.value_zstd_bytes, 0, "{shape:?}");
    let (before, read) = (written(&db), db.stats().bytes_read);
    for _ in 0..5 {
        scene.rest(COLD);
        assert_eq!((written(&db), db.stats().bytes_read), (before, read), "it was judged again");
    }
    assert_eq!(db.get(key(3)).unwrap(), Some(pieces));
}

/// Cold values stay cold where what is dead beside them is given back, and their keys keep them apart.
#[test]
fn cold_values_stay_apart_and_cold_when_their_neighbours_die() {
    let (mut scene, db) = Scene::with_values();
    (0..6).for_each(|_| scene.rest(250));
    let mut expected = all_values();
    for number in (0..VALUES).step_by(2) {
        db.insert(key(number), "small").unwrap();
        expected[number].1 = b"small".to_vec();
    }
    let (_, cooled, _) = written(&db);
    db.compact().unwrap();
    let half = base(&db);
    assert_eq!(half.value_zstd_bytes, half.value_bytes, "{half:?}");
    (0..6).for_each(|_| scene.rest(250));
    let (_, more, _) = written(&db);
    assert!(more - cooled < half.value_bytes / 8, "{more} after {cooled}, {half:?}");
    assert!(base(&db).value_bytes > half.value_bytes * 7 / 8, "values stay apart from their keys");
    assert!(entries(db.iter().unwrap()) == expected);
    assert!(db.verify().unwrap().problems.is_empty());
}

/// Keys get a dictionary, their values do not, and both find each other.
#[test]
fn keys_and_values_that_turn_cold_together_stay_apart() {
    let mut scene = Scene::new();
    let db = scene.open(Compression::Auto);
    let mut expected = Vec::new();
    for number in 0..VALUES {
        expected.push((key(number).into_bytes(), records(number)));
        let beside = |at| format!("{}-{at}", key(number)).into_bytes();
        expected.extend((0..9).map(|at| (beside(at), record(10 * number + at))));
    }
    for (key, value) in &expected {
        db.insert(key, value).unwrap();
    }
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    assert!(entries(db.iter().unwrap()) == expected);
    let warm = base(&db);
    (0..6).for_each(|_| scene.rest(250));
    let cold = base(&db);
    // Not all keys turn with their values: those that do not are written as before.
    assert!(cold.zstd_bytes > 0, "{cold:?}");
    assert_eq!(cold.value_zstd_bytes, cold.value_bytes, "{cold:?}");
    // What becomes smaller does so by compression, not because values stand beside their keys.
    let left = cold.value_bytes as f64 / warm.value_bytes as f64;
    assert!(left > 0.6 && left < 0.75, "{left}: {warm:?} became {cold:?}");
    assert!(entries(db.iter().unwrap()) == expected);
    assert_eq!(db.get(key(17)).unwrap(), Some(records(17)));
    assert!(db.verify().unwrap().problems.is_empty());
}
