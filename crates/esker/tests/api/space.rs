//! Dead space is given back: by compactions that are taken for it though nothing is due, and while nobody
//! writes. Bytes are counted.

use super::{Place, entries, key, run_files, shrinks, small};
use esker::internals::options::SmallTiers;
use esker::{Compression, Db, Event, EventKind, EventListener, Iter, LevelShape, Options};
use esker_testkit::Rng;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const KEYS: usize = 10_000;
const RESERVE: u64 = 32 << 10;

/// The causes of the compactions and pushes that have ended, and how many bytes they wrote.
type Ends = Receiver<(&'static str, u64)>;

/// Tells when a compaction or push has ended.
struct Ended(Mutex<Sender<(&'static str, u64)>>);

impl EventListener for Ended {
    fn event(&self, event: &Event) {
        if let EventKind::CompactionEnd { cause, output_bytes, .. } = event.kind {
            let _ = self.0.lock().unwrap().send((cause, output_bytes));
        }
    }
}

/// What those wrote that have ended since the last call, of the ones that were done for space.
fn for_space(ended: &Ends) -> Vec<u64> {
    ended.try_iter().filter(|(cause, _)| *cause == "space").map(|(_, bytes)| bytes).collect()
}

fn options() -> (Options, Ends) {
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

/// The same with separated values, in value segments of whole pages, so that all that is dead can be given back.
fn separated() -> (Options, Ends) {
    let (mut options, ended) = options();
    (options.separate_values_from, options.segment_bytes) = (Some(64), 64 << 10);
    options.partition_bytes = Some(1 << 20);
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
    live_with(db, options().0)
}

fn live_with(db: &Db, options: Options) -> u64 {
    let place = Place::new();
    let other = Db::open_with(place.path(), options).unwrap();
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
    // Nobody waits for it: workers find it. If the machine is slow, it is a pause before they do.
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
    for_space(&ended);
    (0..20).for_each(|number| db.remove(key(number)).unwrap());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert!(for_space(&ended).is_empty(), "so little is not worth it");
    // Keys behind all others. All data count, also what was written since.
    for _ in 0..4 {
        load(&db, KEYS..2 * KEYS);
        db.flush().unwrap();
    }
    db.wait_until_idle().unwrap();
    assert!(!for_space(&ended).is_empty());
    let segments = db.default_keyspace().segments().unwrap();
    let first = segments.iter().map(|segment| segment.smallest.clone()).min();
    assert_eq!(first, Some(key(20).into_bytes()), "the deletes are gone, and what they hid");
    assert_eq!(entries(db.iter().unwrap()).len(), 2 * KEYS - 20);
}

#[test]
fn branches_hold_what_they_share() {
    let place = Place::new();
    let (options, ended) = options();
    let db = loaded(&place, options);
    db.snapshot_named("before").unwrap();
    for_space(&ended);
    (0..KEYS).step_by(4).for_each(|number| db.remove(key(number)).unwrap());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert!(stats.reclaimable_bytes <= stats.reclaimable_bytes_max);
    assert!(for_space(&ended).is_empty(), "a compaction would write what stays a second time");
    db.drop_named_snapshot("before").unwrap();
    db.wait_until_idle().unwrap();
    let (after, live) = (bytes(&db), live(&db));
    assert!(after <= live * 105 / 100 + RESERVE, "{after} bytes, {live} live");
}

/// Overwrites a fifth of the values until compactions come for it, which see too little die to move the others.
fn compact_overwritten(db: &Db, part: usize) {
    let before = db.stats().compactions;
    while db.stats().compactions < before + 2 {
        (part..KEYS).step_by(5).for_each(|number| db.insert(key(number), "small").unwrap());
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
    }
}

#[test]
fn values_that_a_branch_kept_come_back_when_it_is_dropped() {
    let place = Place::new();
    let db = loaded(&place, separated().0);
    drop(db.branch("kept").unwrap());
    // What died before is alive in the branch.
    (0..2).for_each(|part| compact_overwritten(&db, part));
    let values = (KEYS * 2 / 5 * value(0).len()) as u64;
    let all = run_files(&place.path()).0;
    db.drop_branch("kept").unwrap();
    db.wait_until_idle().unwrap();
    shrinks(&db, &place, |taken| taken < all - values * 3 / 4);
    assert!(db.stats().reclaimable_bytes <= db.stats().reclaimable_bytes_max);
    assert_eq!(entries(db.iter().unwrap()).len(), KEYS);
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}

/// Drops the branch `kept` while it is read, and waits until the database has looked.
fn drop_while_read(db: &Db, branch: Db) -> Iter {
    let mut reader = branch.iter().unwrap();
    assert!(reader.next().is_some());
    drop(branch);
    db.drop_branch("kept").unwrap();
    db.wait_until_idle().unwrap();
    reader
}

/// What a branch kept is known to be dead when its last reader has gone, which may be after the database has looked.
#[test]
fn values_that_a_reader_of_a_dropped_branch_kept_come_back_when_it_ends() {
    let place = Place::new();
    let db = loaded(&place, separated().0);
    let branch = db.branch("kept").unwrap();
    compact_overwritten(&db, 0);
    // The keys of the branch come back too, when its reader ends.
    let (all, keys) = (run_files(&place.path()).0, db.stats().trees[0].base.raw_bytes);
    let reader = drop_while_read(&db, branch);
    let values = (KEYS / 5 * value(0).len()) as u64;
    assert!(db.stats().reclaimable_bytes < values / 2, "a reader needs what is dead");
    drop(reader);
    shrinks(&db, &place, |taken| taken < all - keys - values * 3 / 4);
    assert_eq!(entries(db.iter().unwrap()).len(), KEYS);
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}

/// Also if nobody waits, and nothing was written since the database was opened: a worker finds it.
#[test]
fn values_that_a_reader_kept_come_back_in_a_database_that_was_only_opened() {
    let place = Place::new();
    let tight = || {
        let (mut options, ended) = separated();
        options.max_space_amplification = 1.1;
        (options, ended)
    };
    let db = loaded(&place, tight().0);
    drop(db.branch("kept").unwrap());
    (0..2).for_each(|part| compact_overwritten(&db, part));
    db.close().unwrap();
    drop(db);
    let (options, ended) = tight();
    let db = Db::open_with(place.path(), options).unwrap();
    let reader = drop_while_read(&db, db.open_branch("kept").unwrap());
    let causes = || ended.try_iter().map(|(cause, _)| cause).collect::<Vec<_>>();
    assert_eq!(causes(), [""; 0], "a reader needs what is dead");
    drop(reader);
    assert_eq!(ended.recv().unwrap().0, "space");
    assert_eq!(entries(db.iter().unwrap()).len(), KEYS);
}

/// The same for what is dead in value segments: less than a quarter of each, so no compaction that is due moves what
/// is left of them.
#[test]
fn a_quiet_database_has_no_dead_values_left_to_give_back() {
    const VALUES: usize = 2_000;
    let place = Place::new();
    let (options, ended) = separated();
    let db = Db::open_with(place.path(), options).unwrap();
    let mut rng = Rng::new(3);
    let mut value = || (0..1000).map(|_| rng.below(256) as u8).collect::<Vec<_>>();
    (0..VALUES).for_each(|number| db.insert(key(number), value()).unwrap());
    db.compact().unwrap();
    let all = run_files(&place.path()).0;
    // So often that compactions come for it.
    for _ in 0..8 {
        (0..VALUES).step_by(6).for_each(|number| db.insert(key(number), "small").unwrap());
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
    }
    let dead = (VALUES / 6 * 1000) as u64;
    shrinks(&db, &place, |taken| taken < all - dead + dead / 2);
    let written = db.stats().written.compaction;
    for_space(&ended);
    db.wait_until_idle().unwrap();
    assert_eq!(db.stats().written.compaction, written, "nothing is done twice");
    // Nor when somebody has written a little and looks come as they do beside writes.
    db.insert(key(VALUES), "little").unwrap();
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    assert!(for_space(&ended).is_empty());
    assert_eq!(entries(db.iter().unwrap()).len(), VALUES + 1);
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}

/// Has everything done that is not due, and returns what was written for a byte of the user: in all compactions, and
/// in those for space.
fn costs(db: Db, ended: &Ends) -> (f64, f64) {
    db.wait_until_idle().unwrap();
    let written = db.stats().written;
    // The listener has heard everything when the database is closed.
    db.close().unwrap();
    drop(db);
    let of_user = |bytes: u64| bytes as f64 / written.user as f64;
    let found = (of_user(written.compaction), of_user(for_space(ended).iter().sum()));
    println!("bytes for a byte, in all and for space: {found:?}");
    found
}

/// After every step the dead space that can be freed is within the bound, and all steps together rewrite a byte a
/// bounded number of times, whatever readers and branches hold meanwhile.
#[test]
fn a_long_history_keeps_the_bound_and_rewrites_a_byte_a_few_times() {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("ESKER_SEED={seed}");
    let (place, mut rng) = (Place::new(), Rng::new(seed));
    let (mut options, ended) = options();
    if rng.percent(50) {
        options.small_tiers =
            Some(SmallTiers { count: 2, fan_out: 3, runs: 4, direct: 1, tightens: true });
    }
    let db = loaded(&place, options);
    let mut number = |below: usize| rng.below(below as u64) as usize;
    let (mut readers, mut named, mut branch) = (Vec::new(), false, None);
    for _ in 0..60 {
        match number(10) {
            0 | 1 if readers.len() < 3 => readers.push(db.snapshot().unwrap()),
            0..=2 => readers.clear(),
            3 if named => assert!(db.drop_named_snapshot("kept").unwrap()),
            3 => db.snapshot_named("kept").unwrap(),
            4 if branch.take().is_some() => assert!(db.drop_branch("other").unwrap()),
            4 => branch = Some(db.branch("other").unwrap()),
            5 => {
                let low = number(KEYS);
                db.remove_range(key(low)..key(low + 1 + number(KEYS / 4))).unwrap();
            }
            6 => (0..400).for_each(|_| db.remove(key(number(KEYS))).unwrap()),
            _ => {}
        }
        named = db.named_snapshots().unwrap().iter().any(|name| name == "kept");
        let target = branch.as_ref().filter(|_| number(4) == 0).unwrap_or(&db);
        load(target, (0..400).map(|_| number(KEYS)));
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
        let stats = db.stats();
        let (found, most) = (stats.reclaimable_bytes, stats.reclaimable_bytes_max);
        assert!(found <= most, "{found} bytes are left, {most} may be");
        if readers.is_empty() && !named && branch.is_none() {
            let (after, live) = (bytes(&db), live(&db));
            assert!(after <= live * 145 / 100 + RESERVE, "{after} bytes, {live} live");
        }
    }
    drop((readers, branch));
    let (all, for_space) = costs(db, &ended);
    assert!(all < 12.0 && for_space < 8.0, "{all} bytes for a byte, {for_space} for space");
}

/// The database never becomes quiet without having something to give back, and still it is not rewritten
/// for little (S25).
#[test]
fn pauses_give_space_back_at_a_bounded_price() {
    pauses_are_cheap(|_| {});
}

#[test]
fn pauses_give_dead_values_back_at_a_bounded_price() {
    pauses_are_cheap(|options| {
        (options.separate_values_from, options.segment_bytes) = (Some(64), 64 << 10);
        options.partition_bytes = Some(1 << 20);
    });
}

fn pauses_are_cheap(change: impl Fn(&mut Options)) {
    let place = Place::new();
    let (mut options, ended) = options();
    change(&mut options);
    let mut other = self::options().0;
    change(&mut other);
    options.small_space = Some(0);
    // Otherwise tightening would come first.
    lazy_tiers(&mut options);
    let db = loaded(&place, options);
    let mut rng = Rng::new(5);
    let mut most = 0;
    for _ in 0..150 {
        load(&db, (0..KEYS / 100).map(|_| rng.below(KEYS as u64) as usize));
        db.flush().unwrap();
        db.wait_until_idle().unwrap();
        most = most.max(bytes(&db));
    }
    let live = live_with(&db, other);
    assert!(most <= live * 125 / 100, "{most} bytes, {live} live");
    let (all, for_space) = costs(db, &ended);
    // A byte of the user is more than one on the device.
    let on_disk = live as f64 / (KEYS * (key(0).len() + value(0).len())) as f64;
    let (most, most_for_space) = (10.0 * on_disk, 8.2 * on_disk);
    println!("at most {most} and {most_for_space}");
    assert!(
        all < most && for_space < most_for_space,
        "{all} bytes for a byte, {for_space} for space"
    );
}
