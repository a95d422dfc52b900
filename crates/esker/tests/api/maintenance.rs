use super::{Place, fill, fresh, key, run_files, settled, small, text};
use esker::internals::sync::Point;
use esker_testkit::barriers::Barriers;

#[test]
fn flush_moves_memory_into_runs() {
    let (place, db) = fresh();
    fill(&db, 0..50, 1);
    assert_eq!(run_files(&place.path()).1, 0);
    db.flush().unwrap();
    assert_eq!(run_files(&place.path()).1, 1);
    assert_eq!(db.stats().flushes, 1);
    db.flush().unwrap();
    assert_eq!(db.stats().flushes, 1, "there is nothing more to flush");
    assert_eq!(db.iter().unwrap().count(), 50);
}

#[test]
fn compact_leaves_one_version_of_everything() {
    let (_place, db) = fresh();
    for round in 0..5 {
        fill(&db, 0..500, round);
    }
    for number in 0..250 {
        db.remove(key(number)).unwrap();
    }
    db.compact().unwrap();
    let tree = &db.stats().trees[0];
    assert_eq!(tree.base.entries, 250);
    assert!(tree.deltas.is_empty(), "{tree:?}");
    assert_eq!(db.iter().unwrap().count(), 250);
}

#[test]
fn compact_gives_the_space_of_removed_keys_back() {
    let (place, db) = fresh();
    fill(&db, 0..4000, 1);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let (before, _) = run_files(&place.path());
    db.remove_range(key(100)..).unwrap();
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let after = settled(&db, &place.path(), |after| after < before / 5);
    assert!(after < before / 5, "{before} bytes became {after}");
    assert_eq!(db.iter().unwrap().count(), 100);
}

#[test]
fn compacting_a_range_or_one_keyspace_leaves_the_rest() {
    let (_place, db) = fresh();
    let other = db.keyspace("other").unwrap();
    for round in 0..2 {
        fill(&db, 0..20, round);
        other.insert("k", round.to_string()).unwrap();
        db.flush().unwrap();
    }
    other.compact().unwrap();
    let shape =
        |name: &str| db.stats().trees.into_iter().find(|tree| tree.keyspace == name).unwrap();
    assert!(shape("other").deltas.is_empty());
    assert_eq!(shape("default").deltas.len(), 1);
    db.default_keyspace().compact_range(key(0)..key(1)).unwrap();
    assert!(shape("default").deltas.is_empty());
    assert_eq!(text(other.get("k").unwrap()).as_deref(), Some("1"));
}

/// All of its parts get what was flushed meanwhile, and the caller knew only the first one.
#[test]
fn compact_compacts_what_a_compaction_under_way_splits() {
    let (place, mut options) = (Place::new(), small());
    options.workers = Some(2);
    let (db, barriers) = Barriers::open(place.path(), options).unwrap();
    // As much as fits in a partition, and then more.
    let numbers = 0..6400;
    fill(&db, numbers.clone().step_by(20), 0);
    db.compact().unwrap();
    fill(&db, numbers.clone().step_by(2), 0);
    db.compact().unwrap();
    assert_eq!(db.stats().trees[0].partitions, 1);
    barriers.close(&[Point::CompactionInstalls]);
    let mut left = numbers.clone().skip(1).step_by(2).peekable();
    // No flush is made for which a compaction would have to end: that one is held.
    while db.stats().compaction_debt == 0 {
        assert!(left.peek().is_some(), "no compaction is ever due");
        fill(&db, left.by_ref().take(100), 1);
        db.flush().unwrap();
    }
    barriers.wait_for(Point::CompactionInstalls);
    fill(&db, numbers.step_by(50), 2);
    db.flush().unwrap();
    let tree = &db.stats().trees[0];
    assert!(tree.partitions == 1 && !tree.deltas.is_empty(), "{tree:?}");
    barriers.open_for_callers();
    db.compact().unwrap();
    let tree = &db.stats().trees[0];
    assert!(tree.partitions > 1 && tree.deltas.is_empty(), "{tree:?}");
}

#[test]
fn a_load_in_key_order_is_written_once() {
    let (_place, db) = fresh();
    fill(&db, 0..8000, 1);
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert!(stats.flushes > 5);
    // Crumbs at the cuts are compacted now and then; the data is not.
    assert!(
        stats.written.compaction < stats.written.flush / 3,
        "flushes wrote {}, compactions {}",
        stats.written.flush,
        stats.written.compaction
    );
}

#[test]
fn waiting_for_idleness_leaves_no_compaction_due() {
    let (_place, db) = fresh();
    for round in 0..6 {
        fill(&db, 0..1500, round);
    }
    db.wait_until_idle().unwrap();
    let stats = db.stats();
    assert_eq!(stats.compaction_debt, 0);
    assert!(stats.compactions > 0);
}

#[test]
fn partitions_split_as_they_grow_and_join_as_they_shrink() {
    let (_place, db) = fresh();
    fill(&db, 0..8000, 1);
    db.compact().unwrap();
    let grown = db.stats().trees[0].partitions;
    assert!(grown >= 4, "{grown} partitions");
    for number in (0..8000).filter(|number| number % 40 != 0) {
        db.remove(key(number)).unwrap();
    }
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let shrunk = db.stats().trees[0].partitions;
    assert!(shrunk < grown, "{grown} partitions became {shrunk}");
    assert_eq!(db.iter().unwrap().count(), 200);
}

#[test]
fn verify_reads_everything_and_finds_nothing_wrong() {
    let (_place, db) = fresh();
    fill(&db, 0..3000, 1);
    db.compact().unwrap();
    fill(&db, 0..10, 2);
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.entries >= 3010, "{report:?}");
    assert!(report.blocks > 100 && report.files >= 4 && report.bytes > 75_000, "{report:?}");
}

#[test]
fn verify_names_the_damaged_file_and_the_rest_stays_readable() {
    let (place, db) = fresh();
    fill(&db, 0..3000, 1);
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    db.close().unwrap();
    let files = std::fs::read_dir(place.path().join("data")).unwrap();
    let largest = files
        .map(|entry| entry.unwrap().path())
        .max_by_key(|path| std::fs::metadata(path).unwrap().len())
        .unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    bytes[200] ^= 0x20;
    std::fs::write(&largest, bytes).unwrap();
    let db = place.open();
    let report = db.verify().unwrap();
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(report.problems[0].path, largest);
    assert_eq!(report.problems[0].error.kind(), esker::ErrorKind::Corruption);
    let (mut right, mut refused) = (0, 0);
    for number in 0..3000 {
        match db.get(key(number)) {
            Ok(found) => {
                assert_eq!(text(found), Some(super::value(number, 1)));
                right += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), esker::ErrorKind::Corruption);
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && right > 2900, "{right} right, {refused} refused");
    let walked: Result<Vec<_>, _> = db.iter().unwrap().collect();
    assert!(walked.is_err(), "an iterator does not pass over damage in silence");
    db.insert("still", "writable").unwrap();
}

/// A lone worker always has a flush that is due here, and still comes to compactions and to giving
/// back what they replaced.
#[test]
fn compactions_and_space_keep_up_with_a_writer_that_never_rests() {
    let (place, db) = fresh();
    let mut most_deltas = 0;
    for round in 0..150 {
        fill(&db, 0..2000, round);
        most_deltas = most_deltas.max(db.stats().trees[0].deltas.len());
    }
    let stats = db.stats();
    let (bytes, files) = run_files(&place.path());
    println!("{bytes} bytes in {files} files, at most {most_deltas} deltas, {stats:?}");
    let flushed = stats.written.flush;
    assert!(stats.flushes > 500, "the writer rested: {}", stats.flushes);
    assert!(bytes < flushed / 4, "{bytes} of {flushed} bytes are still there");
    assert!(most_deltas < 40, "{most_deltas} deltas");
}
