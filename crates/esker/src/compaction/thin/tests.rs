use super::*;
use crate::base::rangedel::RangeTombstone;
use crate::base::{Bytewise, Kind};
use crate::compaction::Depth;
use crate::compaction::stream::tests::rule;
use crate::iter::testing::*;

/// The entries of level `own` that stay.
fn thin<O: TestOrder>(
    random: &mut Random,
    levels: &[Level],
    own: usize,
    gc: VersionGc,
) -> Vec<Entry> {
    let fuse = long_fuse();
    let cursor = |level: &Level| VecCursor::new(O::make(), level.entries.clone(), &fuse);
    let tombstones: Vec<Vec<RangeTombstone>> =
        levels.iter().map(|level| level.tombstones.clone()).collect();
    let cursors = levels.iter().map(cursor).collect();
    let mut stream = ThinStream::new(O::make(), cursors, own, tombstones, gc, Stretch::default());
    let (mut entries, mut more) = (Vec::new(), true);
    while more {
        let mut out = |key: &[u8], seq, kind, value: &[u8]| {
            entries.push(Entry { key: key.to_vec(), seq, kind, value: value.to_vec() });
            Ok(())
        };
        more = stream.step(&mut out, 1 + random.below(9) as usize).unwrap();
    }
    entries
}

fn thin_and_compare<O: TestOrder>() {
    let mut random = Random::from_env();
    let order = O::make();
    let (mut read, mut kept) = (0, 0);
    for round in 0..400 {
        let operations = 1 + random.below(200);
        let keys = 1 + random.below(30);
        let count = 1 + round % 5;
        let mut levels = random_levels(&mut random, &order, count, operations, keys, round % 3 > 0);
        let snapshots: Vec<_> =
            (0..random.below(4)).map(|_| 1 + random.below(operations + 1)).collect();
        let before = levels.clone();
        // One after the other, in any order, some of them twice.
        for _ in 0..=count {
            let own = random.below(count as u64) as usize;
            let (gc, times) = rule(&mut random, &snapshots, operations, Depth::Upper);
            let entries = thin::<O>(&mut random, &levels, own, gc);
            assert!(entries.is_sorted_by(|a, b| cursor_order(&order, a, b).is_lt()));
            read += levels[own].entries.len();
            kept += entries.len();
            levels[own].entries = entries;
            for (at, earliest) in times {
                for time in earliest..=earliest + 9 {
                    let expected = visible_at(&order, &before, at, time);
                    assert_eq!(visible_at(&order, &levels, at, time), expected, "{at}, {time}");
                }
            }
        }
    }
    assert!(kept < read, "nothing ever went");
}

#[test]
fn readers_see_the_same_when_a_source_was_thinned_bytewise() {
    thin_and_compare::<Bytewise>();
}

#[test]
fn readers_see_the_same_when_a_source_was_thinned_in_a_custom_order() {
    thin_and_compare::<Descending>();
}

fn level(entries: &[(&str, Seq, Kind)]) -> Level {
    let entry = |(key, seq, kind): &(&str, Seq, Kind)| Entry {
        key: key.as_bytes().to_vec(),
        seq: *seq,
        kind: *kind,
        value: Vec::new(),
    };
    Level { entries: entries.iter().map(entry).collect(), tombstones: Vec::new() }
}

#[test]
fn deletes_go_behind_what_they_hide() {
    let gc = || VersionGc::new(Vec::new(), Depth::Upper);
    let random = &mut Random::from_env();
    let mut levels = [
        level(&[("a", 9, Kind::Delete), ("b", 8, Kind::Delete), ("c", 7, Kind::Put)]),
        level(&[("a", 1, Kind::Put), ("c", 2, Kind::Put), ("d", 3, Kind::Put)]),
    ];
    let deltas = thin::<Bytewise>(random, &levels, 0, gc());
    let keys = |entries: &[Entry]| entries.iter().map(|e| e.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&deltas), [b"a", b"c"], "one of them hides nothing");
    levels[1].entries = thin::<Bytewise>(random, &levels, 1, gc());
    assert_eq!(keys(&levels[1].entries), [b"d"]);
    levels[0].entries = thin::<Bytewise>(random, &levels, 0, gc());
    assert_eq!(keys(&levels[0].entries), [b"c"]);
}

#[test]
fn it_stays_within_its_stretch() {
    let levels = level(&["a", "b", "c", "d"].map(|key| (key, 1, Kind::Put)));
    let found = |start: Option<&str>, end: Option<&str>, last: Option<&str>| {
        let owned = |bound: Option<&str>| bound.map(|bound| bound.as_bytes().to_vec());
        let cursors = vec![VecCursor::new(Bytewise, levels.entries.clone(), &long_fuse())];
        let stretch = Stretch { start: owned(start), end: owned(end), last: owned(last) };
        let gc = VersionGc::new(Vec::new(), Depth::Upper);
        let none: Vec<Vec<RangeTombstone>> = Vec::new();
        let mut stream = ThinStream::new(Bytewise, cursors, 0, none, gc, stretch);
        let mut keys = String::new();
        let mut out = |key: &[u8], _, _, _: &[u8]| {
            keys.push_str(std::str::from_utf8(key).unwrap());
            Ok(())
        };
        while stream.step(&mut out, 1).unwrap() {}
        keys
    };
    assert_eq!(found(None, None, None), "abcd");
    assert_eq!(found(Some("b"), Some("d"), None), "bc");
    assert_eq!(found(None, Some("d"), Some("b")), "ab");
}
