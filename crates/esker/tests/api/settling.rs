//! Settled data is compressed: by flushes that foresee it, by `compact`, and while nobody writes. Files
//! and bytes are counted.

use super::causes::{Causes, Ended};
use super::{Place, base, entries, key, small};
use esker::{Append, CompactionFilter, Compression, Db, Decision, KeyspaceOptions, Options};
use esker_testkit::Rng;
use esker_testkit::harness::HandClock;
use std::sync::Arc;
use std::time::Duration;

const KEYS: usize = 20_000;

/// Sizes at which a base has several partitions of several segments.
fn sizes(compression: Compression) -> Options {
    let mut options = small();
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(256 << 10);
    options.partition_bytes = Some(512 << 10);
    options.segment_bytes = 64 << 10;
    options.compression = compression;
    options
}

fn open(place: &Place, compression: Compression) -> Db {
    Db::open_with(place.path(), sizes(compression)).unwrap()
}

/// A value that compresses to about half.
fn half(number: usize) -> Vec<u8> {
    let mut rng = Rng::new(number as u64 + 1);
    let mut value: Vec<u8> = (0..50).map(|_| rng.below(256) as u8).collect();
    value.extend_from_slice(&[b'v'; 50]);
    value
}

fn load(db: &Db, numbers: impl Iterator<Item = usize>) {
    numbers.for_each(|number| db.insert(key(number), half(number)).unwrap());
}

fn shuffled() -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..KEYS).collect();
    let mut rng = Rng::new(7);
    for at in (1..KEYS).rev() {
        numbers.swap(at, rng.below(at as u64 + 1) as usize);
    }
    numbers
}

/// Bytes of run files on the device, when the background rests and readers have let go of what was
/// replaced.
fn bytes(place: &Place, db: &Db) -> u64 {
    db.wait_until_idle().unwrap();
    let tree = &db.stats().trees[0];
    let levels = std::iter::once(&tree.base).chain(&tree.deltas).chain(&tree.tiers);
    let live: u64 = levels.map(|level| level.bytes).sum();
    super::settled(db, &place.path(), |bytes| bytes * 20 < live * 21)
}

/// The size of what was loaded in random order and compacted.
fn reference() -> u64 {
    let place = Place::new();
    let db = open(&place, Compression::Auto);
    load(&db, shuffled().into_iter());
    db.compact().unwrap();
    bytes(&place, &db)
}

/// Two sizes differ by less than a tenth: each may be a twentieth above what is alive.
fn is_near(bytes: u64, reference: u64) -> bool {
    bytes * 10 < reference * 11 && reference * 10 < bytes * 11
}

/// A database whose base is not compressed.
fn raw(place: &Place) -> u64 {
    let db = open(place, Compression::None);
    load(&db, 0..KEYS);
    db.compact().unwrap();
    let shape = base(&db);
    assert_eq!((shape.lz4_bytes, shape.zstd_bytes, shape.unread_bytes), (0, 0, 0));
    assert!(shape.raw_bytes * 10 > shape.bytes * 9, "{shape:?}");
    let bytes = bytes(place, &db);
    db.close().unwrap();
    bytes
}

#[test]
fn a_load_in_key_order_takes_as_much_as_one_in_random_order() {
    let reference = reference();
    let place = Place::new();
    let db = open(&place, Compression::Auto);
    load(&db, 0..KEYS);
    db.flush().unwrap();
    let loaded = bytes(&place, &db);
    assert!(is_near(loaded, reference), "{loaded} bytes, {reference} in random order");
    db.compact().unwrap();
    let compacted = bytes(&place, &db);
    assert!(is_near(compacted, reference), "{compacted} bytes, {reference} in random order");
    // The way through a dump, into an empty database.
    let other = Place::new();
    let copy = open(&other, Compression::Auto);
    for entry in db.iter().unwrap() {
        let (key, value) = entry.unwrap();
        copy.insert(key, value).unwrap();
    }
    copy.compact().unwrap();
    let copied = bytes(&other, &copy);
    assert!(is_near(copied, reference), "{copied} bytes were copied from {compacted}");
    assert!(entries(copy.iter().unwrap()) == entries(db.iter().unwrap()));
}

#[test]
fn compact_brings_uncompressed_data_to_the_same_size() {
    let (place, reference) = (Place::new(), reference());
    let before = raw(&place);
    assert!(before > reference * 4 / 3, "{before} and {reference} bytes");
    let db = open(&place, Compression::Auto);
    assert_eq!(base(&db).unread_bytes, base(&db).bytes, "nothing was read yet");
    db.compact().unwrap();
    let after = bytes(&place, &db);
    assert!(is_near(after, reference), "{before} bytes became {after}, not {reference}");
    let shape = base(&db);
    assert_eq!((shape.raw_bytes, shape.unread_bytes), (0, 0), "{shape:?}");
    assert!(shape.lz4_bytes * 10 > shape.bytes * 9, "{shape:?}");
}

#[test]
fn a_pause_compresses_what_settled_uncompressed_and_then_rests() {
    let (place, reference) = (Place::new(), reference());
    let before = raw(&place);
    let causes = Arc::new(Causes::default());
    let mut options = sizes(Compression::Zstd);
    options.on_event = Some(causes.clone());
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    db.wait_until_idle().unwrap();
    assert_eq!(db.stats().written.compaction, 0, "nothing was written since it was opened");
    load(&db, 0..1);
    let after = bytes(&place, &db);
    assert!(after * 20 < reference * 21, "{before} bytes became {after}, not {reference}");
    let shape = base(&db);
    assert_eq!((shape.raw_bytes, shape.lz4_bytes, shape.unread_bytes), (0, 0, 0), "{shape:?}");
    assert!(shape.zstd_bytes > 0, "{shape:?}");
    let (written, compactions) = (db.stats().written.compaction, db.stats().compactions);
    assert!(written < before, "{written} bytes for {before}");
    load(&db, 1..2);
    db.wait_until_idle().unwrap();
    assert_eq!(db.stats().written.compaction, written, "nothing is left to do");
    assert_eq!(entries(db.iter().unwrap()).len(), KEYS);
    db.close().unwrap();
    assert_eq!(causes.of("uncompressed") > 0, compactions > 0);
    assert_eq!((causes.of("calm"), causes.of("due"), causes.of("requested")), (0, 0, 0));
    let db = Db::open_with(place.path(), options).unwrap();
    load(&db, 2..3);
    db.wait_until_idle().unwrap();
    assert_eq!(db.stats().written.compaction, 0, "also after it was opened again");
}

#[test]
fn nobody_has_to_wait_for_it() {
    let place = Place::new();
    raw(&place);
    let (listener, ended) = Ended::of("uncompressed");
    let mut options = sizes(Compression::Auto);
    options.on_event = Some(listener);
    let db = Db::open_with(place.path(), options).unwrap();
    load(&db, 0..1);
    db.flush().unwrap();
    ended.recv().unwrap();
    db.close().unwrap();
}

#[test]
fn what_cannot_shrink_is_not_written_again() {
    let place = Place::new();
    let mut rng = Rng::new(3);
    let db = open(&place, Compression::None);
    for number in 0..KEYS / 4 {
        let value: Vec<u8> = (0..100).map(|_| rng.below(256) as u8).collect();
        db.insert(key(number), value).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    for compression in [Compression::Auto, Compression::Zstd] {
        let db = open(&place, compression);
        db.compact().unwrap();
        db.insert("a key", "a value").unwrap();
        db.wait_until_idle().unwrap();
        db.compact().unwrap();
        let written = db.stats().written.compaction;
        assert!(written < 128 << 10, "{written} bytes, though nothing shrinks");
        db.remove("a key").unwrap();
        db.close().unwrap();
    }
}

#[test]
fn without_compression_blocks_stay_as_they_are() {
    let place = Place::new();
    raw(&place);
    let db = open(&place, Compression::None);
    load(&db, 0..1);
    db.wait_until_idle().unwrap();
    db.compact().unwrap();
    let shape = base(&db);
    assert_eq!((shape.lz4_bytes, shape.zstd_bytes), (0, 0), "{shape:?}");
    db.close().unwrap();
    let db = open(&place, Compression::Auto);
    db.compact().unwrap();
    db.close().unwrap();
    // The next compaction of a segment leaves it raw.
    let db = open(&place, Compression::None);
    load(&db, (0..KEYS).step_by(50));
    db.compact().unwrap();
    let shape = base(&db);
    assert_eq!(shape.lz4_bytes, 0, "{shape:?}");
    assert!(shape.raw_bytes > 0, "{shape:?}");
}

/// Branches that share what is compressed go on sharing it.
#[test]
fn what_branches_share_is_compressed_once() {
    let written = |branches: usize| {
        let place = Place::new();
        raw(&place);
        let db = open(&place, Compression::None);
        (0..branches).for_each(|number| drop(db.branch(&format!("branch {number}")).unwrap()));
        db.close().unwrap();
        let db = open(&place, Compression::Auto);
        let expected = entries(db.iter().unwrap());
        db.insert(key(KEYS), "one more").unwrap();
        let bytes = bytes(&place, &db);
        for name in db.branches().unwrap() {
            let branch = db.open_branch(&name).unwrap();
            assert!(entries(branch.iter().unwrap()) == expected, "{name}");
        }
        assert_eq!(base(&db).raw_bytes, 0, "with {branches} branches");
        assert!(db.verify().unwrap().problems.is_empty());
        (db.stats().written.compaction, bytes)
    };
    let ((alone, size), (shared, all)) = (written(0), written(5));
    assert!(is_near(shared, alone), "{shared} bytes with five branches, {alone} with none");
    assert!(is_near(all, size), "{all} bytes with five branches, {size} with none");
}

/// Nothing is written a second time that must stay as it is.
#[test]
fn what_a_named_snapshot_holds_waits_for_compact() {
    let place = Place::new();
    let before = raw(&place);
    let db = open(&place, Compression::Auto);
    db.snapshot_named("moment").unwrap();
    load(&db, 0..1);
    assert!(bytes(&place, &db) <= before + (64 << 10), "{before}");
    assert_eq!(db.stats().written.compaction, 0);
    let moment = db.open_named_snapshot("moment").unwrap();
    assert_eq!(moment.iter().unwrap().count(), KEYS);
    drop(moment);
    db.drop_named_snapshot("moment").unwrap();
    load(&db, 1..2);
    let after = bytes(&place, &db);
    assert!(after * 3 < before * 2, "{before} bytes became {after}");
}

/// Hard links share files: a checkpoint keeps what it has.
#[test]
fn a_checkpoint_keeps_what_it_links() {
    let place = Place::new();
    raw(&place);
    let db = open(&place, Compression::Auto);
    let expected = entries(db.iter().unwrap());
    let copy = place.path().with_file_name("copy");
    db.checkpoint(&copy).unwrap();
    load(&db, 0..1);
    db.wait_until_idle().unwrap();
    assert_eq!(base(&db).raw_bytes, 0);
    assert!(entries(db.iter().unwrap()) == expected);
    let copy = Db::open_with(&copy, sizes(Compression::Auto)).unwrap();
    assert!(copy.verify().unwrap().problems.is_empty());
    assert!(entries(copy.iter().unwrap()) == expected);
}

/// A filter that removes every second entry.
struct Odd;

impl CompactionFilter for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn filter(&self, key: &[u8], _: &[u8]) -> Decision {
        if key.last().is_some_and(|last| last % 2 == 1) { Decision::Remove } else { Decision::Keep }
    }
}

/// Everything that a base may hold: old versions and range deletes that a snapshot has kept, operands,
/// entries that expire, entries that a filter removes.
#[test]
fn every_reader_sees_what_it_saw() {
    let (place, clock) = (Place::new(), Arc::new(HandClock::default()));
    let open = |compression| {
        let mut options = sizes(compression);
        options.clock = clock.clone();
        options.compaction_filters.push(Arc::new(Odd));
        let db = Db::open_with(place.path(), options).unwrap();
        let merging = KeyspaceOptions::merging(Append::new(",").name());
        let merging = db.keyspace_with("merging", merging).unwrap();
        let filtered = db.keyspace_with("filtered", KeyspaceOptions::filtered("odd")).unwrap();
        (db, merging, filtered)
    };
    let (db, merging, filtered) = open(Compression::None);
    load(&db, 0..KEYS / 4);
    for number in 0..KEYS / 8 {
        merging.merge(key(number), half(number)).unwrap();
        let name = format!("passing {number:06}");
        let minute = Duration::from_secs(60);
        db.default_keyspace().insert_with_ttl(name, half(number), minute).unwrap();
    }
    let early = db.snapshot().unwrap();
    db.compact().unwrap();
    for number in (0..KEYS / 4).step_by(3) {
        db.remove(key(number)).unwrap();
        merging.merge(key(number), "more").unwrap();
    }
    db.remove_range(key(1000)..key(1500)).unwrap();
    db.compact().unwrap();
    drop(early);
    // It was never compacted with the filter.
    for number in 0..KEYS / 4 {
        filtered.insert(key(number), half(number)).unwrap();
    }
    db.close().unwrap();

    let (db, merging, filtered) = open(Compression::Auto);
    let spaces = [db.default_keyspace(), merging, filtered];
    let now = |db: &Db| -> Vec<_> {
        let names = ["default", "merging", "filtered"];
        names.map(|name| entries(db.keyspace(name).unwrap().iter().unwrap())).into()
    };
    let before = now(&db);
    let snapshot = db.snapshot().unwrap();
    let mut held = spaces[0].iter().unwrap();
    let first = held.next().unwrap().unwrap();
    clock.set(120_000);
    db.remove(key(1)).unwrap();
    let raw = db.stats().trees.iter().map(|tree| tree.base.bytes).sum::<u64>();
    db.wait_until_idle().unwrap();
    let trees = db.stats().trees;
    let left = trees.iter().map(|tree| tree.base.bytes).sum::<u64>();
    assert!(left * 4 < raw * 3, "{raw} bytes became {left}");
    let seen: Vec<_> = spaces.iter().map(|space| entries(snapshot.iter(space).unwrap())).collect();
    assert!(seen == before, "the snapshot sees something else");
    let rest: Vec<_> = std::iter::once(first).chain(held.map(Result::unwrap)).collect();
    assert!(rest == before[0], "the iterator saw something else");
    let mut expected = before;
    expected[0].retain(|(name, _)| !name.starts_with(b"passing") && *name != key(1).into_bytes());
    assert!(now(&db) == expected, "something else is there");
    drop(snapshot);
    assert!(db.verify().unwrap().problems.is_empty());
}

/// What a flush adds between the entries of a base is there, whatever range deletes the base keeps.
#[test]
fn what_is_added_above_a_range_delete_is_there() {
    let place = Place::new();
    let db = open(&place, Compression::Auto);
    load(&db, 0..1000);
    db.flush().unwrap();
    let snapshot = db.snapshot().unwrap();
    db.remove_range(key(500)..key(9000)).unwrap();
    db.compact().unwrap();
    drop(snapshot);
    load(&db, 2000..4000);
    db.remove(key(3000)).unwrap();
    let check = |db: &Db| {
        let expected = (0..500).chain(2000..3000).chain(3001..4000).map(|n| (key(n), half(n)));
        let expected: Vec<_> = expected.map(|(key, value)| (key.into_bytes(), value)).collect();
        assert!(entries(db.iter().unwrap()) == expected);
    };
    check(&db);
    db.flush().unwrap();
    super::lasts(&place, &db, check);
}
