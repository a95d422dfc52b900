use super::{Place, fill, fresh, key};
use esker::{Batch, Db, Options, Stats};

#[test]
fn operations_are_counted_exactly() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    fill(&db, 0..10, 1);
    db.remove(key(0)).unwrap();
    db.remove_range(key(8)..).unwrap();
    let mut batch = Batch::new();
    batch.insert(&space, "a", "1");
    batch.insert(&space, "b", "1");
    batch.remove(&space, "b");
    db.write(batch).unwrap();
    db.get("a").unwrap();
    db.get("absent").unwrap();
    db.contains_key("a").unwrap();
    let stats = db.stats();
    assert_eq!((stats.puts, stats.deletes, stats.range_deletes), (12, 2, 1));
    assert_eq!(stats.commits, 13);
    assert_eq!((stats.gets, stats.gets_found), (3, 2));
}

#[test]
fn scans_and_the_entries_they_return_are_counted() {
    let (_place, db) = fresh();
    fill(&db, 0..100, 1);
    assert_eq!(db.iter().unwrap().count(), 100);
    drop(db.iter().unwrap().take(5).collect::<Vec<_>>());
    let stats = db.stats();
    assert_eq!((stats.scans, stats.scanned), (2, 105));
}

/// Where a thread asks for many keys that are not there, filters of bases answer before blocks are looked at, until keys
/// are found again.
#[test]
fn filters_of_bases_are_asked_while_most_keys_are_absent() {
    let (_place, db) = fresh();
    fill(&db, 0..1000, 1);
    db.compact().unwrap();
    // All blocks are in the cache.
    assert_eq!(db.iter().unwrap().count(), 1000);
    let answers = || {
        let stats = db.stats();
        (stats.filter_absent, stats.filter_found)
    };
    let ask = |end: &str, present| {
        for number in (0..1000).cycle().take(10_000) {
            let found = db.get(key(number) + end).unwrap();
            assert_eq!(found.is_some(), present, "{number}{end}");
        }
    };
    let before = answers();
    ask("", true);
    assert_eq!(answers(), before, "keys that are found need no filter");
    ask("x", false);
    let (absent, found) = answers();
    // Four reads were timed before, each after at most 256 others. A filter may err.
    assert!(absent - before.0 > 8_000, "filters answered {} times", absent - before.0);
    ask("", true);
    let asked = answers().1 - found;
    assert!(asked > 0 && asked <= 3 * 257, "filters let {asked} reads pass");
}

/// The share of absent keys that the filters of a compacted base let pass, with this memory budget.
fn let_pass(memory: u64) -> f64 {
    const KEYS: usize = 40_000;
    let place = Place::new();
    let mut options = Options::default();
    options.memory = Some(memory);
    let db = Db::open_with(place.path(), options).unwrap();
    fill(&db, 0..KEYS, 1);
    db.compact().unwrap();
    let before = db.stats();
    for round in 0..2 {
        for number in 0..KEYS {
            assert_eq!(db.get(format!("{}{round}", key(number))).unwrap(), None);
        }
    }
    let after = db.stats();
    let asked = after.filter_absent - before.filter_absent;
    let passed = after.filter_false_positives - before.filter_false_positives;
    assert!(asked > KEYS as u64, "the filters answered {asked} times");
    passed as f64 / (asked + passed) as f64
}

#[test]
fn filters_of_bases_let_fewer_absent_keys_pass_where_memory_is_not_short() {
    let (much, little) = (let_pass(64 << 20), let_pass(16 << 20));
    assert!(much > 0.001 && much < 0.007, "12 bits for each key let {much} pass");
    assert!(little > 0.012 && little < 0.035, "8 bits for each key let {little} pass");
}

#[test]
fn user_bytes_are_those_of_keys_and_values() {
    let (_place, db) = fresh();
    db.insert("four", "12345678").unwrap();
    db.remove("four").unwrap();
    assert_eq!(db.stats().written.user, 16);
}

#[test]
fn bytes_written_are_counted_by_cause() {
    let (_place, db) = fresh();
    for round in 0..3 {
        fill(&db, 0..1000, round);
    }
    db.compact().unwrap();
    let written = db.stats().written;
    assert!(written.user > 100_000);
    assert!(written.log > written.user, "records have headers");
    assert!(written.flush > written.user / 2, "{written:?}");
    assert!(written.compaction > 0 && written.manifest > 0, "{written:?}");
    let stats = db.stats();
    let expected = (written.flush + written.compaction) as f64 / written.user as f64;
    assert!((stats.write_amplification() - expected).abs() < 1e-9);
    assert!(Stats::default().write_amplification() == 0.0);
}

#[test]
fn latencies_are_sampled_for_every_kind_of_call() {
    let (_place, db) = fresh();
    fill(&db, 0..2000, 1);
    for number in 0..2000 {
        db.get(key(number)).unwrap();
        db.range(key(number)..).unwrap().next();
    }
    db.sync().unwrap();
    let stats = db.stats();
    for (name, latency) in [
        ("put", stats.put_latency),
        ("get", stats.get_latency),
        ("scan", stats.scan_latency),
        ("sync", stats.sync_latency),
    ] {
        assert!(latency.samples > 0, "{name}");
        assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.p999, "{name} {latency:?}");
        assert!(latency.max > std::time::Duration::ZERO, "{name} {latency:?}");
    }
    assert!(stats.put_latency.samples < 1000, "one in 128 is timed");
}

#[test]
fn the_shape_of_the_tree_adds_up() {
    let (_place, db) = fresh();
    db.keyspace("empty").unwrap();
    fill(&db, 0..2000, 1);
    db.compact().unwrap();
    fill(&db, 0..5, 2);
    db.flush().unwrap();
    let stats = db.stats();
    let names: Vec<_> = stats.trees.iter().map(|tree| tree.keyspace.as_str()).collect();
    assert_eq!(names, ["default", "empty"]);
    let tree = &stats.trees[0];
    assert_eq!(tree.base.entries, 2000);
    assert_eq!(tree.base.runs, tree.partitions);
    assert_eq!(tree.deltas.iter().map(|level| level.entries).sum::<u64>(), 5);
    assert!(stats.data_file_bytes >= tree.base.bytes, "{stats:?}");
    assert!(stats.log_file_bytes > 0);
}

#[test]
fn the_cache_counts_hits_and_misses() {
    let (place, db) = fresh();
    fill(&db, 0..1000, 1);
    db.close().unwrap();
    let db = place.open();
    for _ in 0..2 {
        for number in 0..1000 {
            db.get(key(number)).unwrap();
        }
    }
    let stats = db.stats();
    assert!(stats.cache_misses > 0, "{stats:?}");
    assert!(stats.cache_hits > stats.cache_misses, "{stats:?}");
    assert!(stats.bytes_read > 0 && stats.memory.cache > 0 && stats.memory.indexes > 0);
}

#[test]
fn memory_stays_within_its_number() {
    let (_place, db) = fresh();
    for round in 0..4 {
        fill(&db, 0..5000, round);
        assert_eq!(db.iter().unwrap().count(), 5000);
        let memory = db.stats().memory;
        assert_eq!(memory.limit, 4 << 20);
        let used = memory.total();
        assert!(used <= memory.limit, "{memory:?}");
    }
}
