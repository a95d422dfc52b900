use super::*;
use crate::base::rangedel::RangeTombstone;
use crate::base::{Bytewise, Kind, Moment, SEQ_MAX, join};
use crate::compaction::gc::tests::surviving_tombstones;
use crate::compaction::{CompactionRule, Depth};
use crate::iter::testing::*;

type TestStream<O> = CompactionStream<VecCursor<O>, O, Vec<RangeTombstone>>;

fn stream<O: TestOrder>(levels: &[Level], gc: VersionGc, fuse: &Fuse) -> TestStream<O> {
    let cursor = |level: &Level| VecCursor::new(O::make(), level.entries.clone(), fuse);
    let tombstones = levels.iter().map(|level| level.tombstones.clone()).collect();
    CompactionStream::new(O::make(), levels.iter().map(cursor).collect(), tombstones, gc)
        .with_operator(concat())
}

/// Runs the stream to its end in steps of random length.
fn run<O: TestOrder>(random: &mut Random, stream: &mut TestStream<O>) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut more = true;
    while more {
        let mut out = |key: &[u8], seq, kind, value: &[u8]| {
            entries.push(Entry { key: key.to_vec(), seq, kind, value: value.to_vec() });
            Ok(())
        };
        more = stream.step(&mut out, 1 + random.below(9) as usize)?;
    }
    Ok(entries)
}

fn surviving<O: TestOrder>(gc: &VersionGc, levels: &[Level]) -> Vec<RangeTombstone> {
    let all: Vec<_> = levels.iter().flat_map(|level| level.tombstones.clone()).collect();
    surviving_tombstones(gc, fragments(&O::make(), &all))
}

/// A rule in which time advances with the snapshots, and the positions that can be read, each with
/// the earliest time.
pub(in crate::compaction) fn rule(
    random: &mut Random,
    snapshots: &[Seq],
    operations: u64,
    depth: Depth,
) -> (VersionGc, Vec<(Seq, u64)>) {
    let mut seqs = snapshots.to_vec();
    seqs.sort_unstable();
    seqs.dedup();
    let mut time = 0;
    let mut later = || {
        time += random.below(operations);
        time
    };
    let snapshots: Vec<_> = seqs.iter().map(|seq| Moment { seq: *seq, time: later() }).collect();
    let now = later();
    let read = snapshots.iter().map(|moment| (moment.seq, moment.time));
    let read = read.chain([(SEQ_MAX, now)]).collect();
    (CompactionRule { snapshots, now }.at(depth), read)
}

fn compact_and_compare<O: TestOrder>() {
    let mut random = Random::from_env();
    let order = O::make();
    for round in 0..400 {
        let operations = 1 + random.below(200);
        let keys = 1 + random.below(30);
        let count = 1 + round % 5;
        let levels = random_levels(&mut random, &order, count, operations, keys, round % 3 > 0);
        let snapshots: Vec<_> =
            (0..random.below(4)).map(|_| 1 + random.below(operations + 1)).collect();
        // The oldest levels are compacted to the bottom, or some in the middle to a delta.
        let (from, depth) = match random.below(2) {
            0 => (0, Depth::Bottom),
            _ => (random.below(count as u64) as usize, Depth::Upper),
        };
        let to = from + 1 + random.below((count - from) as u64) as usize;
        let (gc, times) = rule(&mut random, &snapshots, operations, depth);
        let mut stream = stream::<O>(&levels[from..to], gc, &long_fuse());
        let entries = run(&mut random, &mut stream).expect("no fuse");

        assert!(entries.is_sorted_by(|a, b| cursor_order(&order, a, b).is_lt()));
        let counts = stream.counts();
        assert_eq!(counts.entries_out, entries.len() as u64);
        assert_eq!(counts.entries_in, counts.entries_out + counts.dropped());
        let read: usize = levels[from..to].iter().map(|level| level.entries.len()).sum();
        assert_eq!(counts.entries_in, read as u64);

        let tombstones = surviving::<O>(stream.gc(), &levels[from..to]);
        let mut after = levels.clone();
        after.splice(from..to, [Level { entries, tombstones }]);
        for (at, earliest) in times {
            // A position may be read at the time of its snapshot, and at any later one.
            for time in earliest..=earliest + 9 {
                let expected = visible_at(&order, &levels, at, time);
                assert_eq!(visible_at(&order, &after, at, time), expected, "at {at}, time {time}");
            }
        }
    }
}

#[test]
fn readers_see_the_same_after_a_compaction_bytewise() {
    compact_and_compare::<Bytewise>();
}

#[test]
fn readers_see_the_same_after_a_compaction_in_a_custom_order() {
    compact_and_compare::<Descending>();
}

#[test]
fn operands_are_not_applied_to_a_value_that_has_expired() {
    let entry =
        |seq, kind, value: &[u8]| Entry { key: b"k".to_vec(), seq, kind, value: value.into() };
    let mut expired = Vec::new();
    join(7, b"old", &mut expired);
    let entries = vec![
        entry(5, Kind::Merge, b"b"),
        entry(4, Kind::Merge, b"a"),
        entry(3, Kind::ExpiringPut, &expired),
    ];
    let levels = [Level { entries, tombstones: Vec::new() }];
    let gc = CompactionRule { snapshots: Vec::new(), now: 8 }.at(Depth::Bottom);
    let mut stream = stream::<Bytewise>(&levels, gc, &long_fuse());
    let compacted = run(&mut Random::from_env(), &mut stream).expect("no fuse");
    let applied = concat().full_merge(b"k", None, &[b"a", b"b"]).unwrap().unwrap();
    let found: Vec<_> = compacted.iter().map(|entry| (entry.kind, &entry.value)).collect();
    assert_eq!(found, [(Kind::Put, &applied)]);
    assert_eq!(stream.counts().expired, 1);
}

#[test]
fn stays_within_its_range() {
    let level = |seq| Level {
        entries: ["a", "b", "c", "d"].map(|key| Entry::put(key.as_bytes(), seq, b"")).to_vec(),
        tombstones: Vec::new(),
    };
    let gc = VersionGc::new(Vec::new(), Depth::Bottom);
    let keys = |start: Option<&str>, end: Option<&str>| {
        let owned = |bound: Option<&str>| bound.map(|bound| bound.as_bytes().to_vec());
        let mut stream = stream::<Bytewise>(&[level(1), level(2)], gc.clone(), &long_fuse())
            .within(owned(start), owned(end));
        let entries = run(&mut Random::from_env(), &mut stream).expect("no fuse");
        entries.into_iter().map(|entry| entry.key[0] as char).collect::<String>()
    };
    assert_eq!(keys(None, None), "abcd");
    assert_eq!(keys(Some("b"), Some("d")), "bc");
    assert_eq!(keys(Some("bb"), None), "cd");
    assert_eq!(keys(None, Some("cc")), "abc");
    assert_eq!(keys(Some("e"), None), "");
}

#[test]
fn never_ends_early_without_an_error() {
    let mut random = Random::from_env();
    let levels = random_levels(&mut random, &Bytewise, 3, 120, 20, true);
    let gc = || VersionGc::new(vec![40, 80], Depth::Bottom);
    let whole = run(&mut random, &mut stream::<Bytewise>(&levels, gc(), &long_fuse()));
    let whole = whole.expect("no fuse");
    let mut fired = 0;
    for burn in 0..200 {
        let fuse = long_fuse();
        fuse.set(burn);
        let mut stream = stream::<Bytewise>(&levels, gc(), &fuse);
        match run(&mut random, &mut stream) {
            Ok(entries) => assert_eq!(entries, whole),
            Err(_) => {
                fired += 1;
                fuse.set(u64::MAX);
                let mut out = |_: &[u8], _, _, _: &[u8]| Ok(());
                // A failed first seek may be repeated; any later failure stays.
                assert!(stream.counts().entries_in == 0 || stream.step(&mut out, 5).is_err());
            }
        }
    }
    assert!(fired > 50, "only {fired} faults fired");
}

#[test]
fn an_error_of_the_taker_ends_the_step() {
    let level = Level { entries: vec![Entry::put(b"a", 1, b"")], tombstones: Vec::new() };
    let gc = VersionGc::new(Vec::new(), Depth::Upper);
    let mut stream = stream::<Bytewise>(&[level], gc, &long_fuse());
    let mut refuse = |_: &[u8], _, _, _: &[u8]| Err(crate::error::Error::invalid("no room"));
    assert!(stream.step(&mut refuse, 10).is_err());
}
