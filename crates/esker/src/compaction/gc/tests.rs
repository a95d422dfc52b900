use super::*;
use crate::base::rangedel::RangeTombstone;
use crate::iter::testing::Fragment;

/// The range tombstones that the output of a compaction needs, given the fragments of its inputs.
pub(in crate::compaction) fn surviving_tombstones(
    gc: &VersionGc,
    fragments: Vec<Fragment>,
) -> Vec<RangeTombstone> {
    let mut out = Vec::new();
    for (start, end, fragment) in fragments {
        let mut seqs = Vec::new();
        gc.surviving_seqs(&fragment, &mut seqs);
        out.extend(seqs.into_iter().map(|seq| RangeTombstone {
            start: start.clone(),
            end: end.clone(),
            seq,
        }));
    }
    out
}

/// What happens to the one key of these histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Put,
    Delete,
    DeleteRange,
}

/// A memtable or run, as far as one key is concerned.
#[derive(Debug, Clone, Default)]
struct Level {
    /// From new to old: sequence number, kind, and the number of the operation as the value.
    entries: Vec<(Seq, Kind, u64)>,
    /// From new to old.
    tombstones: Vec<Seq>,
}

/// The level that holds the operations `from..to`; operation `i` has sequence number `i + 1`.
fn level(history: &[Operation], from: usize, to: usize) -> Level {
    let mut level = Level::default();
    for index in (from..to).rev() {
        let seq = index as Seq + 1;
        match history[index] {
            Operation::Put => level.entries.push((seq, Kind::Put, seq)),
            Operation::Delete => level.entries.push((seq, Kind::Delete, seq)),
            Operation::DeleteRange => level.tombstones.push(seq),
        }
    }
    level
}

/// What a reader at `at` finds in `levels`.
fn read(levels: &[&Level], at: Seq) -> Option<u64> {
    let entries = levels.iter().flat_map(|level| &level.entries);
    let newest = entries.filter(|entry| entry.0 < at).max_by_key(|entry| entry.0)?;
    let tombstones = levels.iter().flat_map(|level| &level.tombstones);
    let tombstone = tombstones.copied().filter(|seq| *seq < at).max().unwrap_or(0);
    (newest.1 == Kind::Put && tombstone <= newest.0).then_some(newest.2)
}

fn compact(levels: &[&Level], snapshots: &[Seq], depth: Depth) -> Level {
    let mut gc = VersionGc::new(snapshots.to_vec(), depth);
    let mut input = Level::default();
    for level in levels {
        input.entries.extend(&level.entries);
        input.tombstones.extend(&level.tombstones);
    }
    input.entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.0));
    input.tombstones.sort_unstable_by(|a, b| b.cmp(a));
    let covering =
        |below: Seq| input.tombstones.iter().copied().find(|seq| *seq < below).unwrap_or(0);
    let mut output = Level::default();
    gc.start_key();
    for (seq, kind, value) in &input.entries {
        if let Verdict::Keep(seq) = gc.decide(*seq, *kind, covering) {
            output.entries.push((seq, *kind, *value));
        }
    }
    gc.surviving_seqs(&input.tombstones, &mut output.tombstones);
    assert!(output.entries.is_sorted_by(|a, b| a.0 > b.0), "numbers stay distinct and ordered");
    assert!(output.entries.len() <= snapshots.len() + 1 || levels.is_empty());
    assert!(output.tombstones.len() <= snapshots.len() + 1);
    output
}

fn histories(len: usize) -> impl Iterator<Item = Vec<Operation>> {
    const ALL: [Operation; 3] = [Operation::Put, Operation::Delete, Operation::DeleteRange];
    (0..3usize.pow(len as u32)).map(move |mut number| {
        (0..len)
            .map(|_| {
                let operation = ALL[number % 3];
                number /= 3;
                operation
            })
            .collect()
    })
}

/// The positions in `mask`: bit `i` is a snapshot at `i + 1`.
fn positions(mask: u32) -> Vec<Seq> {
    (0..32).filter(|bit| mask & (1 << bit) != 0).map(|bit| bit + 1).collect()
}

/// Checks what every snapshot and the latest reader find in `levels` against the history.
fn check(history: &[Operation], raw: &Level, levels: &[&Level], snapshots: &[Seq], stage: &str) {
    for at in snapshots.iter().copied().chain([SEQ_MAX]) {
        let expected = read(&[raw], at);
        let found = read(levels, at);
        assert_eq!(found, expected, "{stage}: {history:?} at {at} of {snapshots:?}: {levels:?}");
    }
}

/// One history, split into base, delta and memtable, through the life of such a partition. The base
/// was compacted when the snapshots were `early`; everything later happens under `late`.
fn live(history: &[Operation], cuts: (usize, usize), early: &[Seq], late: &[Seq]) {
    let raw = level(history, 0, history.len());
    let base = compact(&[&level(history, 0, cuts.0)], early, Depth::Bottom);
    let delta = compact(&[&level(history, cuts.0, cuts.1)], late, Depth::Upper);
    let memtable = level(history, cuts.1, history.len());
    check(history, &raw, &[&memtable, &delta, &base], late, "flushed");

    let rewritten = compact(&[&delta, &base], late, Depth::Bottom);
    check(history, &raw, &[&memtable, &rewritten], late, "compacted");

    let pushed = compact(&[&memtable, &delta], late, Depth::Upper);
    check(history, &raw, &[&pushed, &base], late, "pushed");

    for (levels, stage) in
        [(vec![&memtable, &rewritten], "twice"), (vec![&pushed, &base], "pushed and compacted")]
    {
        let all = compact(&levels, late, Depth::Bottom);
        check(history, &raw, &[&all], late, stage);
        // What no snapshot needs must be dropped, even if it stayed at first because a snapshot
        // needed it.
        let last = compact(&[&all], &[], Depth::Bottom);
        check(history, &raw, &[&last], &[], "without snapshots");
        assert!(last.tombstones.is_empty());
        assert!(last.entries.iter().all(|(seq, kind, _)| *seq == 0 && *kind == Kind::Put));
    }
}

/// Every history of at most five operations, every split over base, delta and memtable, every set
/// of snapshots, and every larger set at the time of the base's compaction.
#[test]
fn every_short_history_reads_the_same_before_and_after() {
    let mut lives = 0u64;
    for len in 0..=5usize {
        let all: u32 = (1 << (len + 1)) - 1;
        for history in histories(len) {
            for first in 0..=len {
                // Later snapshots may be new; those up to the base's end existed already.
                let old: u32 = (1 << first) - 1;
                for late in 0..=all {
                    let late_positions = positions(late);
                    // Walk over the supersets of `late & old` within `old`.
                    let mut extra = old & !late;
                    loop {
                        let early = positions((late & old) | extra);
                        for second in first..=len {
                            live(&history, (first, second), &early, &late_positions);
                            lives += 1;
                        }
                        if extra == 0 {
                            break;
                        }
                        extra = (extra - 1) & old & !late;
                    }
                }
            }
        }
    }
    assert!(lives > 500_000, "only {lives} lives");
}

#[test]
fn a_delete_stays_where_something_older_may_lie_below() {
    for (depth, expected) in [(Depth::Upper, Verdict::Keep(7)), (Depth::Bottom, Verdict::Spent)] {
        let mut gc = VersionGc::new(Vec::new(), depth);
        gc.start_key();
        assert_eq!(gc.decide(7, Kind::Delete, |_| 0), expected);
        assert_eq!(gc.decide(6, Kind::Put, |_| 0), Verdict::Shadowed);
    }
}

#[test]
fn a_snapshot_separates_an_entry_from_its_tombstone() {
    let mut gc = VersionGc::new(vec![5], Depth::Bottom);
    gc.start_key();
    // Tombstones at 8 and 3 cover the key.
    let covering = |below: Seq| [8, 3].into_iter().find(|seq| *seq < below).unwrap_or(0);
    assert_eq!(gc.decide(7, Kind::Put, covering), Verdict::Covered);
    assert_eq!(gc.decide(4, Kind::Put, covering), Verdict::Keep(0));
    let mut seqs = Vec::new();
    gc.surviving_seqs(&[8, 6, 3], &mut seqs);
    assert_eq!(seqs, [8]);
    seqs.clear();
    VersionGc::new(vec![5], Depth::Upper).surviving_seqs(&[8, 6, 3], &mut seqs);
    assert_eq!(seqs, [8, 3]);
}

#[test]
fn stripes_end_at_the_first_snapshot_that_sees_the_number() {
    let gc = VersionGc::new(vec![9, 4, 4], Depth::Upper);
    let ends: Vec<_> = [0, 3, 4, 8, 9, 100].into_iter().map(|seq| gc.stripe_end(seq)).collect();
    assert_eq!(ends, [4, 4, 9, 9, SEQ_MAX, SEQ_MAX]);
    assert!(gc.same_stripe(4, 8) && !gc.same_stripe(3, 4));
    assert!(gc.is_seen_by_all(3) && !gc.is_seen_by_all(4));
    assert!(VersionGc::new(Vec::new(), Depth::Upper).is_seen_by_all(77));
}

#[test]
fn fragments_survive_like_their_sequence_numbers() {
    use crate::base::Bytewise;
    use crate::base::rangedel::Fragments;
    use crate::iter::Tombstones;
    use crate::iter::testing::{Random, fragments, random_levels};
    let mut random = Random::from_env();
    for round in 0..200 {
        let levels = random_levels(&mut random, &Bytewise, 1, 60, 20, true);
        let mut all = levels[0].tombstones.clone();
        // Empty ranges cut nothing in fragments.
        all.retain(|t| t.start.is_none() || t.end.is_none() || t.start < t.end);
        let snapshots = (0..random.below(4)).map(|_| 1 + random.below(61)).collect();
        let depth = if round % 2 == 0 { Depth::Bottom } else { Depth::Upper };
        let gc = VersionGc::new(snapshots, depth);
        let built = Fragments::build(&Bytewise, all.clone());
        let survivors = gc.surviving(&Bytewise, &built);
        let expected = surviving_tombstones(&gc, fragments(&Bytewise, &all));
        for _ in 0..60 {
            let (key, below) = (random.key(22), random.below(64));
            let found = Tombstones::covering_seq(&survivors, &Bytewise, &key, below);
            assert_eq!(found, expected.covering_seq(&Bytewise, &key, below));
            let list = all.covering_seq(&Bytewise, &key, below);
            assert_eq!(Tombstones::covering_seq(&built, &Bytewise, &key, below), list);
            let (start, end) = Tombstones::span(&built, &Bytewise, &key);
            assert_eq!((start, end), all.span(&Bytewise, &key));
        }
    }
}
