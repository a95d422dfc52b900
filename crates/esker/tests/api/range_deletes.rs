//! What range deletes cost does not depend on the number of partitions, nor on range deletes elsewhere:
//! counted in bytes of edits and runs, in runs, comparisons and entries.

use super::scale::Counting;
use super::{Place, flush_costs, key, small};
use esker::internals::options::SmallTiers;
use esker::{Compression, Db, Keyspace, Options};
use std::sync::Arc;
use std::sync::atomic::Ordering as Memory;

/// Partitions of five entries, under so many tiers.
fn tiny_partitions(tiers: usize) -> Options {
    let mut options = small();
    options.memory = Some(32 << 20);
    options.memtable_bytes = Some(2 << 20);
    options.partition_bytes = Some(4 << 10);
    options.segment_bytes = 1 << 10;
    options.workers = Some(1);
    options.compression = Compression::None;
    let shape = SmallTiers { count: tiers, fan_out: 10, runs: 1000, direct: 2, tightens: false };
    options.small_tiers = Some(shape);
    options
}

/// A database of about so many partitions with nothing to do; with tiers, something lies over every
/// partition, so that no path is clear. Also returns how many entries it has.
fn of_partitions(count: usize, tiers: usize) -> (Place, Db, usize) {
    let place = Place::new();
    let db = Db::open_with(place.path(), tiny_partitions(tiers)).unwrap();
    let entries = count * 9 / 2;
    for number in 0..entries {
        db.insert(key(number), vec![number as u8; 1000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    if tiers > 0 {
        (0..entries).step_by(2).for_each(|number| db.insert(key(number), "new").unwrap());
        db.flush().unwrap();
    }
    let found = db.stats().trees[0].partitions;
    assert!((count..=count * 2).contains(&(found as usize)), "{found} partitions");
    (place, db, entries)
}

/// Deltas and pending runs.
fn runs(db: &Db) -> u64 {
    let tree = &db.stats().trees[0];
    tree.deltas.iter().chain(&tree.tiers).map(|level| level.runs).sum()
}

/// The bytes of edits and of runs, and the runs, that a range delete makes.
#[derive(Debug)]
struct Costs {
    edit: u64,
    written: u64,
    runs: u64,
}

fn costs(db: &Db, low: usize, high: usize) -> Costs {
    let before = runs(db);
    db.remove_range(key(low)..key(high)).unwrap();
    let (edit, written) = flush_costs(db);
    Costs { edit, written, runs: runs(db).saturating_sub(before) }
}

/// `cargo test -p esker --test api range_deletes -- --nocapture` prints the figures.
#[test]
fn a_range_delete_costs_as_much_in_two_thousand_partitions_as_in_two_hundred() {
    println!("tiers, snapshot, range: partitions; bytes of edit; bytes of runs; runs");
    for (tiers, snapshot) in [(0, false), (0, true), (1, false), (1, true), (2, false)] {
        let mut known: Vec<[Costs; 2]> = Vec::new();
        for count in [200, 2000] {
            let (_place, db, entries) = of_partitions(count, tiers);
            let partitions = db.stats().trees[0].partitions;
            let held = snapshot.then(|| db.snapshot().unwrap());
            let found =
                [("narrow", 500, 505), ("wide", 1, entries - 1)].map(|(name, low, high)| {
                    let costs = costs(&db, low, high);
                    println!(
                        "{tiers}, {snapshot}, {name}: {partitions}; {}; {}; {}",
                        costs.edit, costs.written, costs.runs
                    );
                    costs
                });
            assert_eq!(db.iter().unwrap().count(), 2);
            if let Some(held) = held {
                assert_eq!(held.iter(&db.default_keyspace()).unwrap().count(), entries);
            }
            known.push(found);
        }
        for (range, (few, many)) in known[0].iter().zip(&known[1]).enumerate() {
            let what = format!("{tiers} tiers, snapshot {snapshot}: {few:?}, {many:?}");
            assert!(few.edit < 1500 && few.written < 4096, "{what}");
            assert!(many.edit <= few.edit + 300 && many.written <= few.written + 300, "{what}");
            // A wide one under a snapshot is a reference in each partition, or in each span.
            assert!(range > 0 || many.runs <= few.runs.max(2), "{what}");
        }
    }
}

/// What a scan of ten entries costs: comparisons, entries stepped over and bytes read, the second time.
fn scan(space: &Keyspace, order: &Counting, from: &str) -> (u64, u64, u64) {
    let range = || from.to_owned()..;
    assert_eq!(space.range(range()).unwrap().take(10).count(), 10);
    let before = order.0.load(Memory::Relaxed);
    assert_eq!(space.range(range()).unwrap().take(10).count(), 10);
    let comparisons = order.0.load(Memory::Relaxed) - before;
    let explanation = space.explain_scan(range(), 10).unwrap();
    (comparisons, explanation.stepped_over, explanation.bytes_read)
}

#[test]
fn ten_thousand_range_deletes_in_a_partition_cost_scans_elsewhere_nothing() {
    println!("tiers, range deletes, place: comparisons; entries stepped over; bytes read");
    for tiers in [0, 1, 2] {
        let mut all = Vec::new();
        for deletes in [0, 100, 10_000] {
            let place = Place::new();
            let mut options = tiny_partitions(tiers);
            // All of them are in memory first.
            options.memtable_bytes = Some(3 << 20);
            let order = Arc::new(Counting::default());
            let db = Db::open_with(place.path(), options).unwrap();
            let space = db.keyspace_ordered("space", order.clone()).unwrap();
            (0..900).for_each(|number| space.insert(key(number), [1; 1000]).unwrap());
            db.flush().unwrap();
            db.wait_until_idle().unwrap();
            let flushes = db.stats().flushes;
            for number in 0..deletes {
                let name = key(300);
                space
                    .remove_range(format!("{name}a{number:05}")..format!("{name}a{number:05}x"))
                    .unwrap();
            }
            assert_eq!(db.stats().flushes, flushes, "they are in memory");
            let in_memory = scan(&space, &order, &key(700));
            db.flush().unwrap();
            // In another partition of the same span, and far away.
            let (near, in_runs) =
                (scan(&space, &order, &key(310)), scan(&space, &order, &key(700)));
            for (place, costs) in [("memory", in_memory), ("near", near), ("runs", in_runs)] {
                println!("{tiers}, {deletes}, {place}: {}; {}; {}", costs.0, costs.1, costs.2);
            }
            // A range delete elsewhere does not write them again.
            space.remove_range(key(700)..key(705)).unwrap();
            let (edit, written) = flush_costs(&db);
            println!(
                "{tiers}, {deletes}, one more elsewhere: {edit} bytes of edit, {written} of runs"
            );
            assert!(edit < 300 && written < 1024, "{edit} bytes of edit, {written} of runs");
            all.push([in_memory, near, in_runs]);
        }
        for costs in &all[1..] {
            for (found, none) in costs.iter().zip(&all[0]) {
                let what = format!("{tiers} tiers: {found:?}, {none:?} without");
                // In memory they are searched: ten thousand of them in some steps more than a hundred.
                assert!(found.0 <= none.0 + 150 && found.1 <= none.1, "{what}");
                assert!(found.2 <= none.2, "{what}");
            }
        }
    }
}
