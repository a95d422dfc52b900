//! Where to cut a range into parts, and how many entries it has.

use super::{Place, fill, fresh, key, open_roomy, small};
use esker::{Append, Batch, Clock, Db, ErrorKind, Keyspace, KeyspaceOptions, SegmentShape, Stats};
use esker_testkit::Rng;
use esker_testkit::harness::{HandClock, small_options, with_tiers};
use esker_testkit::orders::{Caseless, Reverse};
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Bytes that do not compress.
fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next() as u8).collect()
}

/// The segments, of which no two overlap, in key order.
fn settled_segments(space: &Keyspace) -> Vec<SegmentShape> {
    let mut segments = space.segments().unwrap();
    segments.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    let apart = segments.windows(2).all(|pair| pair[0].largest < pair[1].smallest);
    assert!(apart, "the keyspace is not settled");
    segments
}

/// The bytes of the segments that begin in each part.
fn part_bytes(segments: &[SegmentShape], points: &[Vec<u8>]) -> Vec<u64> {
    let mut sums = vec![0; points.len() + 1];
    for segment in segments {
        sums[points.partition_point(|point| *point <= segment.smallest)] += segment.bytes;
    }
    sums
}

/// How many reads of files there were.
fn file_reads(stats: &Stats) -> u64 {
    stats.page_cache_reads + stats.device_reads
}

#[test]
fn split_points_cut_a_settled_keyspace_into_parts_of_about_equal_bytes() {
    let place = Place::new();
    let mut options = small();
    options.separate_values_from = Some(200);
    let db = Db::open_with(place.path(), options).unwrap();
    // Most segments hold short values, and most bytes belong to the few others.
    let mut rng = Rng::new(7);
    fill(&db, 0..20_000, 1);
    (20_000..21_500).for_each(|number| db.insert(key(number), noise(&mut rng, 2000)).unwrap());
    db.compact().unwrap();
    db.wait_until_idle().unwrap();
    let space = db.default_keyspace();
    let segments = settled_segments(&space);
    let total: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let largest = segments.iter().map(|segment| segment.bytes).max().unwrap();
    assert!(total > 10 * largest, "{total} bytes, {largest} of them in one segment");
    for parts in [1, 2, 3, 4, 16, 40, 1000, usize::MAX] {
        let points = space.split_points::<&str>(.., parts).unwrap();
        assert!(points.len() < parts, "{} points for {parts} parts", points.len());
        assert!(points.is_sorted_by(|a, b| a < b));
        let sizes = part_bytes(&segments, &points);
        let share = total / parts as u64;
        let fits = |size: &u64| (1..=share + largest + 1).contains(size);
        assert!(sizes.iter().all(fits), "{sizes:?} of {total} in {parts}, at most {largest} each");
        if parts <= 4 {
            assert_eq!(points.len(), parts - 1);
        }
    }
}

/// Checks points that cut `low..high`, in the order that `below` gives.
fn check_points(
    space: &Keyspace,
    (low, high): (usize, usize),
    parts: usize,
    below: impl Fn(&[u8], &[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let (low, high) = (key(low), key(high));
    let points = space.split_points(low.as_str()..high.as_str(), parts).unwrap();
    let what = || format!("{low}..{high} in {parts} parts: {points:?}");
    assert!(points.len() <= parts.saturating_sub(1), "{}", what());
    assert!(points.is_sorted_by(|a, b| below(a, b)), "{}", what());
    let within = |point: &Vec<u8>| below(low.as_bytes(), point) && below(point, high.as_bytes());
    assert!(points.iter().all(within), "{}", what());
    points
}

/// Overwrites at random, so that many runs overlap.
fn overwritten(space: &Keyspace, rng: &mut Rng, keys: u64) {
    for _ in 0..2 * keys {
        space.insert(key(rng.below(keys) as usize), noise(rng, 40)).unwrap();
    }
}

#[test]
fn split_points_lie_within_their_range_while_runs_overlap() {
    let (_place, db) = fresh();
    let (plain, reverse) =
        (db.default_keyspace(), db.keyspace_ordered("r", Arc::new(Reverse)).unwrap());
    let mut rng = Rng::new(3);
    for _ in 0..4 {
        overwritten(&plain, &mut rng, 6000);
        overwritten(&reverse, &mut rng, 6000);
        for _ in 0..50 {
            let ends = [rng.below(6000) as usize, rng.below(6000) as usize];
            let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let parts = rng.below(20) as usize;
            check_points(&plain, (low, high), parts, |a, b| a < b);
            check_points(&reverse, (high, low), parts, |a, b| a > b);
            assert!(plain.split_points(key(high)..key(low), parts).unwrap().is_empty());
            assert!(reverse.split_points(key(low)..key(high), parts).unwrap().is_empty());
        }
        let points = check_points(&plain, (0, 6000), 4, |a, b| a < b);
        assert_eq!(points.len(), 3);
        let all = plain.iter().unwrap().count();
        let mut from = Vec::new();
        for to in points.into_iter().chain([key(6000).into_bytes()]) {
            let entries = plain.range(from.as_slice()..to.as_slice()).unwrap().count();
            assert!((all / 8..=all / 2).contains(&entries), "{entries} of {all} in a part of 4");
            from = to;
        }
    }
}

#[test]
fn split_points_need_a_keyspace_and_files_and_read_none() {
    let place = Place::new();
    let db = open_roomy(&place);
    let space = db.keyspace("s").unwrap();
    (0..100).for_each(|number| space.insert(key(number), "v").unwrap());
    assert!(space.split_points::<&str>(.., 4).unwrap().is_empty(), "all is in memory");
    db.flush().unwrap();
    assert!(space.split_points::<&str>(.., 4).unwrap().is_empty(), "there is one segment");
    let mut rng = Rng::new(5);
    (100..3000).for_each(|number| space.insert(key(number), noise(&mut rng, 3000)).unwrap());
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let points = space.split_points::<&str>(.., 4).unwrap();
    assert!(!points.is_empty());
    let branch = db.branch("b").unwrap();
    assert_eq!(branch.keyspace("s").unwrap().split_points::<&str>(.., 4).unwrap(), points);
    drop((space, branch));
    db.close().unwrap();
    drop(db);
    let db = open_roomy(&place);
    let space = db.keyspace("s").unwrap();
    let before = file_reads(&db.stats());
    assert_eq!(space.split_points::<&str>(.., 4).unwrap(), points);
    assert_eq!(file_reads(&db.stats()), before);
    db.drop_keyspace("s").unwrap();
    let gone = space.split_points::<&str>(.., 4).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::KeyspaceDropped);
    db.close().unwrap();
    let closed = db.default_keyspace().split_points::<&str>(.., 4).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Closed);
}

/// Keys, and when each expires, if ever.
type Model = BTreeMap<Vec<u8>, Option<u64>>;

/// Counts a range exactly and about, compares both with a model, entries by number with a scan, and samples with gets.
fn check_count(space: &Keyspace, model: &Model, now: u64, range: (Bound<Vec<u8>>, Bound<Vec<u8>>)) {
    let shows = |expiry: &Option<u64>| expiry.is_none_or(|expiry| expiry > now);
    let expected = model.range(range.clone()).filter(|(_, expiry)| shows(expiry)).count() as u64;
    let what = || format!("{:?}..{:?}", range.0, range.1);
    assert_eq!(space.count(range.clone()).unwrap(), expected, "in {}", what());
    // Behind the last one there is none.
    for n in [0, expected / 3, expected.saturating_sub(1), expected] {
        let scanned = space.range(range.clone()).unwrap().nth(n as usize).map(Result::unwrap);
        assert_eq!(space.nth(range.clone(), n).unwrap(), scanned, "{n} in {}", what());
    }
    for count in [1, 7, usize::MAX] {
        let sample = space.sample(range.clone(), count).unwrap();
        assert_eq!(sample.len() as u64, expected.min(count as u64), "{count} in {}", what());
        assert!(sample.is_sorted_by(|(a, _), (b, _)| a < b), "{sample:?}");
        for (key, value) in sample {
            assert!(model.range(range.clone()).any(|(inside, _)| *inside == key), "{key:?}");
            assert_eq!(space.get(&key).unwrap(), Some(value), "{key:?} in {}", what());
        }
    }
    let estimate = space.approximate_count(range.clone()).unwrap();
    let off = estimate.entries.abs_diff(expected);
    assert!(off <= estimate.error, "{estimate:?} for {expected} in {}", what());
}

/// Bounds of any kind over `keys` numbered keys; the first is less than the second.
fn any_range(rng: &mut Rng, keys: u64) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let low = rng.below(keys);
    let high = low + 1 + rng.below(keys - low);
    let mut bound = |number: u64| match rng.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key(number as usize).into_bytes()),
        _ => Bound::Excluded(key(number as usize).into_bytes()),
    };
    (bound(low), bound(high))
}

/// Writes at random and compares counts with those of a map.
fn count_at_random(seed: u64) {
    const KEYS: u64 = 600;
    let mut rng = Rng::new(seed);
    let place = Place::new();
    let mut options = small_options(&mut rng);
    if rng.percent(50) {
        with_tiers(&mut options, &mut rng);
    }
    let clock = Arc::new(HandClock::default());
    options.clock = clock.clone();
    let db = Db::open_with(place.path(), options).unwrap();
    let merging = KeyspaceOptions::merging(Append::new(",").name());
    let space = db.keyspace_with("s", merging).unwrap();
    let (mut model, mut snapshots) = (Model::new(), Vec::new());
    for _ in 0..1500 {
        let number = rng.below(KEYS);
        let name = key(number as usize).into_bytes();
        let value = noise(&mut rng, number as usize % 60);
        match rng.below(100) {
            0..55 => {
                space.insert(&name, value).unwrap();
                model.insert(name, None);
            }
            55..70 => {
                space.remove(&name).unwrap();
                model.remove(&name);
            }
            70..75 => {
                space.merge(&name, value).unwrap();
                model.insert(name, None);
            }
            75..82 => {
                let ttl = 1 + rng.below(200);
                space.insert_with_ttl(&name, value, Duration::from_millis(ttl)).unwrap();
                model.insert(name, Some(clock.now_millis() + ttl));
            }
            82..84 => {
                let end = key((number + rng.below(60)) as usize).into_bytes();
                space.remove_range(name.as_slice()..end.as_slice()).unwrap();
                model.retain(|key, _| *key < name || *key >= end);
            }
            84..87 => clock.advance(rng.below(40)),
            87..89 => snapshots.push(db.snapshot().unwrap()),
            89 => snapshots.clear(),
            90..93 => db.flush().unwrap(),
            93 => space.compact_range(name.as_slice()..).unwrap(),
            _ => {
                let range = any_range(&mut rng, KEYS);
                check_count(&space, &model, clock.now_millis(), range);
                let all = (Bound::Unbounded, Bound::Unbounded);
                check_count(&space, &model, clock.now_millis(), all);
            }
        }
    }
    snapshots.clear();
    db.compact().unwrap();
    for _ in 0..20 {
        check_count(&space, &model, clock.now_millis(), any_range(&mut rng, KEYS));
    }
}

#[test]
fn counts_are_those_of_a_map_whatever_was_written() {
    let given = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    let rounds = if given.is_some() { 1 } else { 12 };
    for seed in seed..seed + rounds {
        println!("ESKER_SEED={seed}");
        count_at_random(seed);
    }
}

#[test]
fn a_count_reads_only_the_segments_whose_descriptions_do_not_tell() {
    let (place, db) = fresh();
    fill(&db, 0..20_000, 1);
    db.compact().unwrap();
    db.close().unwrap();
    drop(db);
    let db = place.open();
    let space = db.default_keyspace();
    let misses = |count: &dyn Fn() -> u64| {
        let before = db.stats().cache_misses;
        (count(), db.stats().cache_misses - before)
    };
    let all = space.approximate_count::<&str>(..).unwrap();
    assert_eq!((all.entries, all.error), (20_000, 0));
    assert_eq!(misses(&|| space.count::<&str>(..).unwrap()), (20_000, 0));
    let (count, at_ends) = misses(&|| space.count(key(3333)..key(16_000)).unwrap());
    assert_eq!(count, 12_667);
    let part = space.approximate_count(key(3333)..key(16_000)).unwrap();
    let most = space.segments().unwrap().iter().map(|segment| segment.entries).max().unwrap();
    assert!(part.error <= 2 * most, "{part:?}, at most {most} in a segment");
    let (_, for_entry) = misses(&|| {
        let found = space.nth(key(1000).., 9876).unwrap().unwrap();
        assert_eq!(found.0, key(10_876).into_bytes());
        0
    });
    db.remove(key(9000)).unwrap();
    let (count, below_memory) = misses(&|| space.count::<&str>(..).unwrap());
    assert_eq!(count, 19_999);
    let (count, by_scan) = misses(&|| space.iter().unwrap().count() as u64);
    assert_eq!(count, 19_999);
    assert!(8 * at_ends < by_scan, "{at_ends} blocks for the ends of a range, {by_scan} for all");
    assert!(8 * for_entry < by_scan, "{for_entry} blocks for an entry, {by_scan} for all");
    assert!(8 * below_memory < by_scan, "{below_memory} blocks for a segment, {by_scan} for all");
}

#[test]
fn an_estimate_allows_for_what_may_hide_entries() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    fill(&db, 0..100, 1);
    db.flush().unwrap();
    let check = |count: u64| {
        let estimate = space.approximate_count::<&str>(..).unwrap();
        assert!(estimate.entries.abs_diff(count) <= estimate.error, "{estimate:?} for {count}");
        assert_eq!(space.count::<&str>(..).unwrap(), count);
    };
    check(100);
    (0..50).for_each(|number| db.remove(key(number)).unwrap());
    check(50);
    db.remove_range(key(60)..key(90)).unwrap();
    check(20);
    db.flush().unwrap();
    check(20);
    db.remove_range(..key(200)).unwrap();
    check(0);
    db.flush().unwrap();
    check(0);
    assert_eq!(space.count(key(5)..key(2)).unwrap(), 0);
    assert_eq!(space.approximate_count(key(5)..key(2)).unwrap().error, 0);
}

#[test]
fn counts_follow_a_custom_comparator() {
    let (_place, db) = fresh();
    let reverse = db.keyspace_ordered("r", Arc::new(Reverse)).unwrap();
    let caseless = db.keyspace_ordered("c", Arc::new(Caseless)).unwrap();
    (0..3000).for_each(|number| reverse.insert(key(number), "v").unwrap());
    for name in ["anna", "bob", "ANNA", "Bob", "carl"] {
        caseless.insert(name, "v").unwrap();
        db.flush().unwrap();
    }
    let check = || {
        assert_eq!(reverse.count(key(2000)..key(500)).unwrap(), 1500);
        assert_eq!(reverse.count(key(500)..key(2000)).unwrap(), 0);
        assert_eq!(caseless.count::<&str>(..).unwrap(), 3);
        assert_eq!(caseless.count("B"..).unwrap(), 2);
        let estimate = caseless.approximate_count::<&str>(..).unwrap();
        assert!(estimate.entries.abs_diff(3) <= estimate.error, "{estimate:?}");
    };
    check();
    db.compact().unwrap();
    check();
    assert_eq!(reverse.approximate_count::<&str>(..).unwrap().entries, 3000);
}

#[test]
fn an_entry_by_number_has_its_value_in_pieces_whole() {
    let (_place, db) = fresh();
    let space = db.default_keyspace();
    db.insert("a", "short").unwrap();
    space.insert_reader("film", std::io::repeat(7).take(300_000)).unwrap();
    let found = space.nth::<&str>(.., 1).unwrap();
    assert_eq!(found, Some((b"film".to_vec(), vec![7; 300_000])));
    assert_eq!(space.nth::<&str>(.., 2).unwrap(), None);
    let sample = space.sample::<&str>("b".., 5).unwrap();
    assert_eq!(sample, [(b"film".to_vec(), vec![7; 300_000])]);
}

/// Each entry is as likely as any other, whether segments count for it, runs overlap, or it is still in memory.
#[test]
fn samples_favour_no_entry() {
    const KEYS: usize = 1500;
    const SAMPLES: u64 = 400;
    const COUNT: u64 = 30;
    let place = Place::new();
    let db = Db::open_with(place.path(), small()).unwrap();
    fill(&db, 0..KEYS, 1);
    db.compact().unwrap();
    fill(&db, (0..KEYS).step_by(7), 2);
    db.flush().unwrap();
    fill(&db, 0..KEYS / 10, 3);
    let space = db.default_keyspace();
    // How often the entries of each tenth of the range were chosen.
    let mut tenths = [0_u64; 10];
    for _ in 0..SAMPLES {
        for (key, _) in space.sample::<&str>(.., COUNT as usize).unwrap() {
            let number: usize = std::str::from_utf8(&key[3..]).unwrap().parse().unwrap();
            tenths[number * 10 / KEYS] += 1;
        }
    }
    // Six standard deviations: it fails by chance once in 50 million runs.
    let each = SAMPLES * COUNT / 10;
    let off = 6 * each.isqrt();
    assert!(tenths.iter().all(|found| found.abs_diff(each) <= off), "{tenths:?}");
}

/// A sample of data that nothing overlaps reads the segments of what it chose only.
#[test]
fn a_sample_reads_only_the_segments_of_its_entries() {
    let place = Place::new();
    let db = open_roomy(&place);
    let mut rng = Rng::new(3);
    for number in 0..12_000 {
        db.insert(key(number), noise(&mut rng, 1000)).unwrap();
    }
    db.compact().unwrap();
    db.close().unwrap();
    let db = open_roomy(&place);
    let space = db.default_keyspace();
    let segments = settled_segments(&space).len();
    assert!(segments > 10, "{segments} segments");
    let before = file_reads(&db.stats());
    assert_eq!(space.sample::<&str>(.., 1).unwrap().len(), 1);
    let few = file_reads(&db.stats()) - before;
    assert_eq!(space.iter().unwrap().count(), 12_000);
    let all = file_reads(&db.stats()) - before - few;
    assert!(few <= all / 4, "{few} reads for one entry, {all} for all");
}

#[test]
fn a_branch_counts_what_its_parent_had_in_memory() {
    let place = Place::new();
    let db = open_roomy(&place);
    fill(&db, 0..100, 1);
    db.flush().unwrap();
    fill(&db, 50..200, 2);
    let branch = db.branch("b").unwrap();
    let (own, copy) = (db.default_keyspace(), branch.default_keyspace());
    let size = |space: &Keyspace| space.approximate_size::<&str>(..).unwrap();
    assert_eq!(size(&copy), size(&own));
    assert_eq!(copy.count::<&str>(..).unwrap(), 200);
    branch.remove(key(0)).unwrap();
    db.insert("zz", "v").unwrap();
    assert_eq!(copy.count::<&str>(..).unwrap(), 199);
    assert_eq!(own.count::<&str>(..).unwrap(), 201);
    let estimate = copy.approximate_count::<&str>(..).unwrap();
    assert!(estimate.entries.abs_diff(199) <= estimate.error, "{estimate:?}");
    drop((own, copy));
    assert_eq!(db.keyspace("k").unwrap().count::<&str>(..).unwrap(), 0);
}

#[test]
fn a_count_is_of_one_moment() {
    let (_place, db) = fresh();
    fill(&db, 0..500, 1);
    let space = db.default_keyspace();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut rng = Rng::new(1);
            let mut at: Vec<usize> = (0..500).collect();
            for free in 500..6000 {
                // An entry moves to another key.
                let moved = rng.below(500) as usize;
                let mut batch = Batch::new();
                batch.remove(&space, key(at[moved]));
                at[moved] = free;
                batch.insert(&space, key(free), "v");
                db.write(batch).unwrap();
            }
        });
        while !writer.is_finished() {
            assert_eq!(space.count::<&str>(..).unwrap(), 500);
        }
    });
}

#[test]
fn counts_need_a_keyspace_that_is_there() {
    let (_place, db) = fresh();
    let space = db.keyspace("s").unwrap();
    space.insert("k", "v").unwrap();
    db.drop_keyspace("s").unwrap();
    assert_eq!(space.count::<&str>(..).unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    let gone = space.approximate_count::<&str>(..).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::KeyspaceDropped);
    let space = db.default_keyspace();
    db.close().unwrap();
    assert_eq!(space.count::<&str>(..).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(space.approximate_count::<&str>(..).unwrap_err().kind(), ErrorKind::Closed);
}
