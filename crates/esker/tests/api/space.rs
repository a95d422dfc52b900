//! Dead space is given back: by compactions that are taken for it though nothing is due, and while nobody
//! writes. Bytes are counted.

use super::{Place, entries, key, small};
use esker::internals::options::SmallTiers;
use esker::{Compression, Db, Event, EventKind, EventListener, LevelShape, Options};
use esker_testkit::Rng;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const KEYS: usize = 10_000;
const RESERVE: u64 = 32 << 10;

/// Tells when a compaction or push for space has ended.
struct Ended(Mutex<Sender<()>>);

impl EventListener for Ended {
    fn event(&self, event: &Event) {
        if matches!(event.kind, EventKind::CompactionEnd { cause: "space", .. }) {
            let _ = self.0.lock().unwrap().send(());
        }
    }
}

fn options() -> (Options, Receiver<()>) {
    let (send, ended) = channel();
    let mut options = small();
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(128 << 10);
    options.partition_bytes = Some(128 << 10);
    options.segment_bytes = 16 << 10;
    options.compression = Compression::None;
    options.small_space = Some(RESERVE);
    options.on_event = Some(Arc::new(Ended(Mutex::new(send))));
    (options, ended)
}

/// A tier whose spans do not come due.
fn lazy_tiers(options: &mut Options) {
    options.small_tiers =
        Some(SmallTiers { count: 2, fan_out: 3, runs: 1000, direct: 0, tightens: false });
}

fn value(number: usize) -> Vec<u8> {
    let mut rng = Rng::new(number as u64 + 1);
    (0..100).map(|_| rng.below(256) as u8).collect()
}

fn load(db: &Db, numbers: impl Iterator<Item = usize>) {
    numbers.for_each(|number| db.insert(key(number), value(number)).unwrap());
}

/// Bytes of all runs of the tree.
fn bytes(db: &Db) -> u64 {
    let stats = db.stats();
    let sum = |levels: &[LevelShape]| levels.iter().map(|level| level.bytes).sum::<u64>();
    let tree = &stats.trees[0];
    tree.base.bytes + sum(&tree.deltas) + sum(&tree.tiers)
}

/// What the present entries take in a database in which there never was anything else.
fn live(db: &Db) -> u64 {
    let place = Place::new();
    let other = Db::open_with(place.path(), options().0).unwrap();
    for (key, value) in entries(db.iter().unwrap()) {
        other.insert(key, value).unwrap();
    }
    other.compact().unwrap();
    bytes(&other)
}

fn loaded(place: &Place, options: Options) -> Db {
    let db = Db::open_with(place.path(), options).unwrap();
    load(&db, 0..KEYS);
    db.compact().unwrap();
    db
}

#[test]
fn deletes_that_wait_in_a_tier_do_not_keep_more_than_the_bound() {
    let place = Place::new();
    let (mut options, ended) = options();
    lazy_tiers(&mut options);
    let db = loaded(&place, options);
    let before = bytes(&db);
    for number in (0..KEYS).filter(|number| number % 3 > 0) {
        db.remove(key(number)).unwrap();
    }
    db.flush().unwrap();
    let live = live(&db);
    let most = live * 145 / 100 + RESERVE;
    assert!(before > 2 * most, "{before} bytes, at most {most} should stay");
    // Nobody waits for it: workers find it.
    while bytes(&db) > most {
        ended.recv().unwrap();
    }
    db.wait_until_idle().unwrap();
    let after = bytes(&db);
    assert!(after <= live * 105 / 100 + RESERVE, "{after} bytes, {live} live");
    let stats = db.stats();
    assert!(stats.reclaimable_bytes <= stats.reclaimable_bytes_max);
    assert_eq!(stats.unreclaimable_bytes, 0);
}

#[test]
fn a_quiet_database_has_nothing_left_to_give_back() {
    let place = Place::new();
    let db = loaded(&place, options().0);
    let before = bytes(&db);
    // Less than an eighth, for which nothing else is compacted: a few overwrites and deletes, and ranges that
    // are narrower than a segment, or as wide as some.
    load(&db, (0..KEYS).step_by(20));
    (3..KEYS).step_by(25).for_each(|number| db.remove(key(number)).unwrap());
    for low in (0..KEYS).step_by(1000) {
        db.remove_range(key(low + 10)..key(low + 90)).unwrap();
        db.remove_range(key(low + 500)..key(low + 900)).unwrap();
    }
    db.flush().unwrap();
    let live = live(&db);
    assert!(before > live * 3 / 2);
    db.wait_until_idle().unwrap();
    let after = bytes(&db);
    assert!(after <= live * 105 / 100 + RESERVE, "{after} bytes, {live} live");
    let written = db.stats().written.compaction;
    db.wait_until_idle().unwrap();
    assert_eq!(db.stats().written.compaction, written, "nothing is done twice");
}

#[test]
fn what_a_snapshot_reads_is_held_and_not_compacted_for() {
    let place = Place::new();
    let db = loaded(&place, options().0);
    let (before, snapshot) = (bytes(&db), db.snapshot().unwrap());
    (0..KEYS).filter(|number| number % 3 > 0).for_each(|n| db.remove(key(n)).unwrap());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let written = db.stats().written.compaction;
    for round in 0..5 {
        db.insert(key(KEYS + round), "little").unwrap();
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
    }
    let stats = db.stats();
    let more = stats.written.compaction - written;
    assert!(more < before / 4, "{more} bytes were written, and none could be freed");
    assert!(stats.reclaimable_bytes <= stats.reclaimable_bytes_max, "{}", stats.reclaimable_bytes);
    assert!(bytes(&db) >= before);
    drop(snapshot);
    db.wait_until_idle().unwrap();
    let (after, live) = (bytes(&db), live(&db));
    assert!(after <= live * 105 / 100 + RESERVE, "{after} bytes, {live} live");
    assert!(db.stats().unreclaimable_bytes < RESERVE);
}

#[test]
fn a_tombstone_goes_when_as_much_was_written_as_there_is() {
    let place = Place::new();
    let (mut options, ended) = options();
    lazy_tiers(&mut options);
    let db = loaded(&place, options);
    while ended.try_recv().is_ok() {}
    (0..20).for_each(|number| db.remove(key(number)).unwrap());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert!(ended.try_recv().is_err(), "so little is not worth it");
    let before = bytes(&db);
    // New keys behind all others.
    load(&db, KEYS..2 * KEYS + KEYS / 2);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert!(ended.try_recv().is_ok(), "{before} bytes, {} now", bytes(&db));
    assert_eq!(entries(db.iter().unwrap()).len(), 2 * KEYS + KEYS / 2 - 20);
}

#[test]
fn branches_hold_what_they_share() {
    let place = Place::new();
    let (options, ended) = options();
    let db = loaded(&place, options);
    db.snapshot_named("before").unwrap();
    while ended.try_recv().is_ok() {}
    (0..KEYS).step_by(4).for_each(|number| db.remove(key(number)).unwrap());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert!(stats.reclaimable_bytes <= stats.reclaimable_bytes_max);
    assert!(ended.try_recv().is_err(), "a compaction would write what stays a second time");
    db.drop_named_snapshot("before").unwrap();
    db.wait_until_idle().unwrap();
    let (after, live) = (bytes(&db), live(&db));
    assert!(after <= live * 105 / 100 + RESERVE, "{after} bytes, {live} live");
}
