//! Where to cut a range into parts.

use super::{Place, fill, fresh, key, open_roomy, small};
use esker::{Db, ErrorKind, Keyspace, SegmentShape, Stats};
use esker_testkit::Rng;
use esker_testkit::orders::Reverse;
use std::sync::Arc;

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
