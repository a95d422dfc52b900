use super::*;
use crate::base::rangedel::RangeTombstone;
use crate::base::{Bytewise, Kind, Millis, expired, split};
use crate::compaction::gc::tests::surviving_tombstones;
use crate::compaction::stream::tests::rule;
use crate::compaction::{CompactionStream, Depth};
use crate::iter::testing::*;

const LIMITS: PlanLimits = PlanLimits { small_bytes: 10, segment_bytes: 40 };

/// A segment `name` over the keys `min..=max`.
fn interval(name: &'static str, range: &'static str) -> Interval<'static, &'static str> {
    let (min, max) = range.split_at(1);
    Interval {
        segment: name,
        min: min.as_bytes(),
        max: max.as_bytes(),
        bytes: 100,
        deletes: 0,
        forced: false,
        expired: false,
        expires: false,
        shadowed: false,
        min_seq: 0,
        max_seq: 0,
    }
}

fn source<'a>(
    kind: SourceKind,
    segments: &[Interval<'a, &'static str>],
) -> SourceRuns<'a, &'static str> {
    SourceRuns { kind, segments: segments.to_vec() }
}

fn tombstone(start: &str, end: &str, seq: Seq) -> RangeTombstone {
    let bound = |key: &str| Some(key.as_bytes().to_vec());
    RangeTombstone { start: bound(start), end: bound(end), seq }
}

/// The plan in short form: `a` reused, `[a+b]` rewritten, `-a` dropped.
fn short(
    sources: &[SourceRuns<'_, &'static str>],
    tombstones: Vec<RangeTombstone>,
    snapshots: &[Seq],
) -> String {
    let gc = VersionGc::new(snapshots.to_vec(), Depth::Bottom);
    let pieces = plan(&Bytewise, sources, &[tombstones], &gc, LIMITS);
    let words = pieces.into_iter().map(|piece| match piece {
        Piece::Reuse(name) => name.to_owned(),
        Piece::Rewrite(lists) => format!("[{}]", lists.concat().join("+")),
        Piece::Drop(name) => format!("-{name}"),
        Piece::Recode(..) => unreachable!("the plan recodes nothing"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_overlaps_nothing_is_reused() {
    let delta = source(SourceKind::Delta, &[interval("x", "dd"), interval("y", "uz")]);
    let base =
        source(SourceKind::Base, &[interval("a", "ac"), interval("b", "df"), interval("c", "gk")]);
    assert_eq!(short(&[delta, base], Vec::new(), &[]), "a [x+b] c y");
}

#[test]
fn ranges_that_share_one_key_overlap() {
    let delta = source(SourceKind::Delta, &[interval("x", "cd")]);
    let base = source(SourceKind::Base, &[interval("a", "ac"), interval("b", "df")]);
    assert_eq!(short(&[delta, base], Vec::new(), &[]), "[x+a+b]");
}

#[test]
fn deletes_and_shadowed_versions_are_rewritten_when_that_frees_them() {
    let with = |deletes, shadowed| Interval {
        deletes,
        shadowed,
        min_seq: 5,
        max_seq: 9,
        ..interval("x", "mp")
    };
    for (segment, snapshots, delta, base) in [
        (with(1, false), vec![], "[x]", "[x]"),
        (with(1, false), vec![7], "[x]", "x"),
        (with(0, true), vec![], "[x]", "[x]"),
        (with(0, true), vec![7], "x", "x"),
        (with(0, false), vec![], "x", "x"),
        (with(0, true), vec![30], "[x]", "[x]"),
    ] {
        let plan =
            |kind| short(&[source(kind, std::slice::from_ref(&segment))], Vec::new(), &snapshots);
        assert_eq!(plan(SourceKind::Delta), delta, "{segment:?} {snapshots:?}");
        assert_eq!(plan(SourceKind::Base), base, "{segment:?} {snapshots:?}");
    }
}

#[test]
fn a_segment_under_a_newer_tombstone_is_dropped_unless_a_snapshot_separates_them() {
    let segment = Interval { min_seq: 5, max_seq: 9, ..interval("x", "mp") };
    let plan = |tombstones, snapshots: &[Seq]| {
        short(&[source(SourceKind::Base, std::slice::from_ref(&segment))], tombstones, snapshots)
    };
    assert_eq!(plan(vec![tombstone("m", "q", 10)], &[]), "-x");
    assert_eq!(plan(vec![tombstone("m", "n", 10), tombstone("n", "q", 12)], &[]), "-x");
    assert_eq!(plan(vec![tombstone("m", "q", 10)], &[5, 11]), "-x");
    assert_eq!(plan(vec![tombstone("m", "q", 10)], &[6]), "[x]");
    assert_eq!(plan(vec![tombstone("m", "q", 10)], &[10]), "[x]");
    assert_eq!(plan(vec![tombstone("m", "p", 10)], &[]), "[x]", "the last key is not covered");
    assert_eq!(plan(vec![tombstone("n", "o", 10)], &[]), "[x]", "only the middle is covered");
    assert_eq!(plan(vec![tombstone("m", "q", 8)], &[]), "[x]", "entry 9 is newer");
    assert_eq!(plan(vec![tombstone("m", "q", 5)], &[]), "x", "all entries are newer");
    assert_eq!(plan(vec![tombstone("q", "r", 10)], &[]), "x", "it does not touch");
    assert_eq!(plan(vec![tombstone("p", "r", 10)], &[]), "[x]", "it touches the last key");
}

#[test]
fn a_dropped_segment_ties_nothing_together() {
    let delta =
        source(SourceKind::Delta, &[Interval { min_seq: 5, max_seq: 5, ..interval("x", "ce") }]);
    let base = source(
        SourceKind::Base,
        &[interval("a", "ac"), Interval { segment: "b", ..interval("b", "df") }],
    );
    let cover = vec![tombstone("c", "g", 9)];
    assert_eq!(short(&[delta, base], cover, &[]), "[a] -x -b");
}

#[test]
fn crumbs_are_joined() {
    let crumb = |name, range, bytes| Interval { bytes, ..interval(name, range) };
    let plan = |segments: &[Interval<'static, &'static str>]| {
        short(&[source(SourceKind::Base, segments)], Vec::new(), &[])
    };
    assert_eq!(plan(&[crumb("a", "ab", 5), crumb("b", "cd", 6), interval("c", "ef")]), "[a+b] c");
    assert_eq!(plan(&[crumb("a", "ab", 5), crumb("b", "cd", 10)]), "a b", "ten is not small");
    let row = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op"];
    let names = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let crumbs: Vec<_> = names.iter().zip(row).map(|(n, range)| crumb(n, range, 9)).collect();
    assert_eq!(plan(&crumbs), "[1+2+3+4] [5+6+7+8]", "each group holds at most one segment");
    let delta = source(SourceKind::Delta, &[interval("x", "dd")]);
    let base =
        source(SourceKind::Base, &[crumb("a", "ab", 5), interval("b", "cd"), crumb("c", "ef", 5)]);
    assert_eq!(short(&[delta, base], Vec::new(), &[]), "[x+a+b+c]");
}

/// Cuts the entries of a level into segments of random size.
fn cut<O: KeyOrder>(random: &mut Random, order: &O, level: &Level) -> Vec<Vec<Entry>> {
    let mut entries = level.entries.clone();
    entries.sort_by(|a, b| cursor_order(order, a, b));
    let mut segments: Vec<Vec<Entry>> = Vec::new();
    for entry in entries {
        match segments.last_mut() {
            // Versions of a key may also be torn apart: the plan must cope.
            Some(segment) if !random.one_in(4) => segment.push(entry),
            _ => segments.push(vec![entry]),
        }
    }
    segments
}

/// Whether an entry has expired.
fn gone(entry: &Entry, time: Millis) -> bool {
    expired(split(entry.kind, &entry.value).0, time)
}

fn describe<'a>(
    random: &mut Random,
    time: Millis,
    id: (usize, usize),
    entries: &'a [Entry],
) -> Interval<'a, (usize, usize)> {
    let seqs = || entries.iter().map(|entry| entry.seq);
    Interval {
        segment: id,
        min: &entries[0].key,
        max: &entries[entries.len() - 1].key,
        bytes: 1 + random.below(20),
        deletes: entries.iter().filter(|e| e.kind == Kind::Delete || e.kind.is_operand()).count()
            as u64,
        forced: random.one_in(9),
        expired: entries.iter().all(|entry| gone(entry, time)),
        expires: entries.iter().any(|entry| gone(entry, time)),
        shadowed: entries.windows(2).any(|pair| pair[0].key == pair[1].key),
        min_seq: seqs().min().unwrap_or(0),
        max_seq: seqs().max().unwrap_or(0),
    }
}

/// Executes a plan: the entries of the new base.
fn carry_out<O: TestOrder>(
    pieces: &[Piece<(usize, usize)>],
    segments: &[Vec<Vec<Entry>>],
    tombstones: &[Vec<RangeTombstone>],
    gc: &VersionGc,
) -> Vec<Entry> {
    let mut output = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Reuse((source, index)) => output.extend_from_slice(&segments[*source][*index]),
            Piece::Drop(_) => {}
            Piece::Recode(..) => unreachable!("the plan recodes nothing"),
            Piece::Rewrite(lists) => {
                let cursors = lists.iter().map(|list| {
                    let entries = list.iter().flat_map(|(s, i)| segments[*s][*i].clone());
                    VecCursor::new(O::make(), entries.collect(), &long_fuse())
                });
                let (order, cursors) = (O::make(), cursors.collect());
                let mut stream =
                    CompactionStream::new(order, cursors, tombstones.to_vec(), gc.clone())
                        .with_operator(concat());
                let mut out = |key: &[u8], seq, kind, value: &[u8]| {
                    output.push(Entry { key: key.to_vec(), seq, kind, value: value.to_vec() });
                    Ok(())
                };
                assert!(!stream.step(&mut out, usize::MAX).expect("no fuse"));
            }
        }
    }
    output
}

fn plan_and_compare<O: TestOrder>() {
    let mut random = Random::from_env();
    let order = O::make();
    let (mut reused, mut dropped) = (0, 0);
    for round in 0..600 {
        let operations = 1 + random.below(60);
        let keys = 2 + random.below(200);
        let count = 1 + round % 4;
        let levels = random_levels(&mut random, &order, count, operations, keys, round % 2 > 0);
        let snapshots: Vec<_> =
            (0..random.below(3)).map(|_| 1 + random.below(operations + 1)).collect();
        let (gc, times) = rule(&mut random, &snapshots, operations, Depth::Bottom);
        let earliest = gc.earliest_time();
        let segments: Vec<_> = levels.iter().map(|l| cut(&mut random, &order, l)).collect();
        let mut sources = Vec::new();
        for (number, list) in segments.iter().enumerate() {
            let kind = if number == 0 { SourceKind::Base } else { SourceKind::Delta };
            let described = list
                .iter()
                .enumerate()
                .map(|(i, s)| describe(&mut random, earliest, (number, i), s));
            sources.push(SourceRuns { kind, segments: described.collect() });
        }
        let tombstones: Vec<_> = levels.iter().map(|level| level.tombstones.clone()).collect();
        let pieces = plan(&order, &sources, &tombstones, &gc, LIMITS);

        let mut named = Vec::new();
        for piece in &pieces {
            match piece {
                Piece::Reuse(id) => {
                    reused += 1;
                    named.push(*id);
                }
                Piece::Drop(id) => {
                    dropped += 1;
                    named.push(*id);
                }
                Piece::Rewrite(lists) => named.extend(lists.concat()),
                Piece::Recode(..) => unreachable!("the plan recodes nothing"),
            }
        }
        named.sort_unstable();
        let all = segments.iter().enumerate().flat_map(|(s, l)| (0..l.len()).map(move |i| (s, i)));
        assert!(named.into_iter().eq(all), "each segment is in exactly one piece");

        let entries = carry_out::<O>(&pieces, &segments, &tombstones, &gc);
        assert!(
            entries.is_sorted_by(|a, b| cursor_order(&order, a, b).is_lt()),
            "pieces ascend and do not overlap"
        );
        let fragments = fragments(&order, &tombstones.concat());
        let tombstones = surviving_tombstones(&gc, fragments);
        let after = [Level { entries, tombstones }];
        for (at, time) in times.into_iter().flat_map(|(at, t)| [(at, t), (at, t + 5)]) {
            assert_eq!(
                visible_at(&order, &after, at, time),
                visible_at(&order, &levels, at, time),
                "at {at} of {snapshots:?}, time {time}: {pieces:?}"
            );
        }
    }
    assert!(reused > 100 && dropped > 20, "only {reused} reused, {dropped} dropped");
}

#[test]
fn readers_see_the_same_after_a_planned_compaction_bytewise() {
    plan_and_compare::<Bytewise>();
}

#[test]
fn readers_see_the_same_after_a_planned_compaction_in_a_custom_order() {
    plan_and_compare::<Descending>();
}
