//! What statistics say about waits, the log, and who keeps memory and space from being freed.
//!
//! Each test makes one number rise on purpose and fall again.

use super::{Place, fill, fresh, key, small};
use esker::{Batch, Cause, Db, Durability, Error, LogHolder, Stats, TransactionOptions};
use std::time::Duration;

/// The causes that calls waited for.
fn waited(stats: &Stats) -> Vec<&'static str> {
    let causes = Cause::ALL.into_iter();
    let waited = causes.filter(|cause| stats.waits.of(*cause).count > 0);
    waited.map(Cause::as_str).collect()
}

#[test]
fn a_write_that_survives_a_power_cut_waits_for_a_sync() {
    let (_place, db) = fresh();
    db.insert("process", "1").unwrap();
    assert!(!waited(&db.stats()).contains(&"sync"));
    let mut batch = Batch::new();
    batch.insert(&db.default_keyspace(), "disk", "1");
    db.write_with(batch, Durability::Disk).unwrap();
    let stats = db.stats();
    assert_eq!((stats.waits.sync.count, stats.waits.sync.total), (1, stats.stalls.sync));
    assert!(stats.stalls.sync > Duration::ZERO);
}

#[test]
fn a_write_beyond_the_prepared_log_waits_for_log_space() {
    let (_place, db) = fresh();
    db.insert("large", vec![1; 400 << 10]).unwrap();
    let stats = db.stats();
    assert!(waited(&stats).contains(&"log_space"), "{:?}", stats.waits);
    assert!(stats.log_files_prepared >= 2);
}

#[test]
fn a_transaction_that_waits_for_a_lock_is_counted() {
    let (_place, db) = fresh();
    let mut options = TransactionOptions::default();
    options.pessimistic = true;
    options.lock_timeout = Duration::from_millis(1);
    let space = db.default_keyspace();
    let first = db.begin_with(options).unwrap();
    first.insert(&space, "k", "1").unwrap();
    assert!(waited(&db.stats()).is_empty());
    let second = db.begin_with(options).unwrap();
    let refused = second.insert(&space, "k", "2").unwrap_err();
    assert!(matches!(refused, Error::LockTimeout { .. }), "{refused}");
    let stats = db.stats();
    assert_eq!((waited(&stats), stats.waits.lock.count), (vec!["lock"], 1));
    assert!(stats.waits.lock.total >= Duration::from_millis(1));
    assert_eq!(stats.held.transactions, 2);
    drop((first, second));
    assert_eq!(db.stats().held.transactions, 0);
    assert_eq!(db.stats().held.oldest_transaction, Duration::ZERO);
}

#[test]
fn snapshots_are_listed_with_age_and_label() {
    let (_place, db) = fresh();
    fill(&db, 0..10, 1);
    let plain = db.snapshot().unwrap();
    let labelled = db.snapshot_with_label("backup").unwrap();
    db.insert("later", "1").unwrap();
    let other = db.snapshot_with_label("report").unwrap();
    let listed = db.stats().snapshots;
    let shown: Vec<_> = listed.iter().map(|s| (s.position, s.label.as_str(), s.count)).collect();
    assert_eq!(plain.position(), labelled.position());
    assert_eq!(shown, [(plain.position(), "backup", 2), (other.position(), "report", 1)]);
    assert!(listed[0].age >= listed[1].age);
    drop(labelled);
    assert_eq!((&db.stats().snapshots[0].label[..], db.stats().snapshots[0].count), ("", 1));
    drop((plain, other));
    assert_eq!(db.stats().snapshots, []);
}

#[test]
fn iterators_are_counted_with_what_they_hold() {
    let (_place, db) = fresh();
    fill(&db, 0..1000, 1);
    let mut iter = db.iter().unwrap();
    iter.next().unwrap().unwrap();
    let cursor = db.default_keyspace().cursor().unwrap();
    assert_eq!(db.stats().held.iterators, 2);
    db.flush().unwrap();
    let later = db.stats();
    assert_eq!(later.held.iterators, 2);
    assert!(later.held.states > 0 && later.held.oldest_state > Duration::ZERO);
    assert!(later.memory.held > 0, "{:?}", later.memory);
    drop((iter, cursor));
    db.wait_until_idle().unwrap();
    let last = db.stats();
    assert_eq!((last.held.iterators, last.held.states, last.memory.held), (0, 0, 0));
}

#[test]
fn a_named_snapshot_has_the_bytes_that_only_it_holds() {
    let (_place, db) = fresh();
    fill(&db, 0..1000, 1);
    db.compact().unwrap();
    db.snapshot_named("monday").unwrap();
    assert_eq!(db.stats().branches, []);
    fill(&db, 0..1000, 2);
    db.compact().unwrap();
    let branches = db.stats().branches;
    assert_eq!((branches.len(), &branches[0].name[..]), (1, "monday"));
    assert!(branches[0].data > 10_000, "{branches:?}");
}

#[test]
fn a_transaction_keeps_the_memtables_that_it_needs() {
    let (_place, db) = fresh();
    fill(&db, 0..1000, 1);
    let open = db.begin().unwrap();
    db.insert("later", "1").unwrap();
    db.flush().unwrap();
    let held = db.stats().held;
    assert!(held.transactions == 1 && held.transactions_memory > 0, "{held:?}");
    assert!(held.oldest_transaction > Duration::ZERO);
    drop(open);
    assert_eq!(db.stats().held.transactions_memory, 0);
}

/// The fields of `log` that rise.
fn positions(db: &Db) -> [u64; 4] {
    let log = db.stats().log;
    [log.start, log.synced, log.visible, log.reserved]
}

#[test]
fn positions_of_the_log_say_what_is_flushed_synced_and_visible() {
    let (_place, db) = fresh();
    let [start, synced, visible, reserved] = positions(&db);
    assert_eq!(db.stats().log.holder, LogHolder::Nothing);
    db.insert("k", "v").unwrap();
    let written = positions(&db);
    assert_eq!(written[0], start);
    assert!(written[1] >= synced && written[2] > visible && written[3] > reserved);
    assert_eq!(db.stats().log.holder, LogHolder::Memtable);
    db.sync().unwrap();
    assert_eq!(positions(&db)[1], written[2]);
    db.flush().unwrap();
    assert_eq!(positions(&db)[0], written[2]);
    assert_eq!(db.stats().log.holder, LogHolder::Nothing);
}

#[test]
fn open_run_files_are_counted_against_their_limit() {
    let (place, db) = fresh();
    fill(&db, 0..1000, 1);
    db.close().unwrap();
    // What a flush wrote is read from the cache. A new opening finds nothing there.
    let db = place.open();
    db.get(key(1)).unwrap();
    let stats = db.stats();
    assert!(stats.run_files_open > 0 && stats.run_files_open <= stats.run_files_open_max);
    assert!(stats.uptime > Duration::ZERO);
    let later = db.stats();
    assert!(later.uptime >= stats.uptime);
}

#[test]
fn a_keyspace_has_its_part_of_the_compaction_debt() {
    let (_place, db) = fresh();
    fill(&db, 0..1000, 1);
    let stats = db.stats();
    let sum: u64 = stats.trees.iter().map(|tree| tree.compaction_debt).sum();
    assert_eq!(sum, stats.compaction_debt);
}

#[test]
fn decoded_statistics_are_those_of_the_database() {
    let (_place, db) = fresh();
    fill(&db, 0..1000, 1);
    db.flush().unwrap();
    let _snapshot = db.snapshot_with_label("a \"label\"\n").unwrap();
    let mut stats = db.stats();
    // They are no numbers.
    stats.slowest.clear();
    assert_eq!(Stats::decode(&stats.encode()), Some(stats.clone()));
    let text = stats.openmetrics();
    assert!(text.contains(",label=\"a \\\"label\\\"\\n\"} "), "{text}");
    assert!(text.contains(&format!("\nesker_puts_total {}\n", stats.puts)), "{text}");
}

#[test]
fn blocks_that_are_evicted_while_they_are_read_are_counted() {
    // The compaction writes the values, so that all that are in the cache came there in the same way.
    let mut options = small();
    options.separate_values_from = None;
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    let space = db.default_keyspace();
    for number in 0..200 {
        db.insert(key(number), vec![number as u8; 60 << 10]).unwrap();
    }
    db.compact().unwrap();
    let read_all = || {
        // More than the cache holds, and so often that they displace even what it had before. The first are
        // not read again: the cache would keep them.
        for number in (10..200).cycle().take(3 * 190) {
            db.get(key(number)).unwrap().unwrap();
        }
        db.stats()
    };
    let three = |take: &dyn Fn() -> Stats| {
        let inner = |_: &[u8]| space.get_with(key(2), |_| take()).unwrap().unwrap();
        let middle = |_: &[u8]| space.get_with(key(1), inner).unwrap().unwrap();
        space.get_with(key(0), middle).unwrap().unwrap()
    };
    let stats = three(&read_all);
    assert!(stats.held.evicted >= 3 * (60 << 10), "{:?} {:?}", stats.held, stats.memory);
    assert!(stats.held.evicted <= stats.memory.cache);
}
