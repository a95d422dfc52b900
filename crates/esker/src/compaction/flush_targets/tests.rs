use super::*;
use crate::base::rangedel::{Fragments, RangeTombstone};
use crate::base::testing::Counting;
use crate::base::{Kind, Seq};
use crate::memtable::{MemCursor, Memtable};
use std::sync::Arc;

/// `count` partitions; the lower bound of number `i` is `i` in four digits.
fn tree(count: usize) -> Row {
    let bound =
        |number: usize| (number > 0 && number < count).then(|| format!("{number:04}").into_bytes());
    let one = |number: usize| Partition {
        lower: bound(number),
        upper: bound(number + 1),
        ..Partition::default()
    };
    Row::new((0..count).map(|number| Arc::new(one(number))).collect())
}

fn removed(ranges: &[(&str, &str)]) -> Vec<RangeTombstone> {
    let bound = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
    let one = |(number, (start, end)): (usize, &(&str, &str))| RangeTombstone {
        start: bound(start),
        end: bound(end),
        seq: number as Seq + 1,
    };
    ranges.iter().enumerate().map(one).collect()
}

fn cursor(order: &Counting, keys: &[&str]) -> MemCursor<Counting> {
    let table = Arc::new(Memtable::new(order.clone(), 1 << 10));
    for (number, key) in keys.iter().enumerate() {
        table.insert(0, key.as_bytes(), number as Seq + 1, Kind::Put, b"");
    }
    table.cursor(0)
}

fn found(count: usize, keys: &[&str], ranges: &[(&str, &str)]) -> Vec<(Range<usize>, bool)> {
    let order = Counting::default();
    let fragments = Fragments::build(&order, removed(ranges));
    let cutter = Cutter::new(&fragments);
    let found =
        flush_targets(&order, &tree(count), 0..count, &mut cursor(&order, keys), cutter).unwrap();
    found.into_iter().map(|stretch| (stretch.partitions, stretch.has_entries)).collect()
}

#[test]
fn partitions_with_entries_stand_alone() {
    assert_eq!(found(9, &[], &[]), []);
    let expected = [(0..1, true), (3..4, true), (8..9, true)];
    assert_eq!(found(9, &["", "0003", "0003x", "0099"], &[]), expected);
}

#[test]
fn a_removed_range_is_one_stretch_between_its_borders() {
    let expected = [(2..3, false), (3..7, false), (7..8, false)];
    assert_eq!(found(9, &[], &[("0002x", "0007a")]), expected);
    assert_eq!(found(9, &[], &[("0002", "0007")]), [(2..7, false)], "at bounds");
    assert_eq!(found(9, &[], &[("", "")]), [(0..9, false)]);
    assert_eq!(found(9, &[], &[("", "0004"), ("0008", "")]), [(0..4, false), (8..9, false)]);
}

#[test]
fn entries_and_the_ends_of_other_ranges_interrupt_a_stretch() {
    let expected = [(0..4, false), (4..5, true), (5..9, false)];
    assert_eq!(found(9, &["0004k"], &[("", "")]), expected);
    let expected = [(0..3, false), (3..4, false), (4..9, false)];
    assert_eq!(found(9, &[], &[("", ""), ("0003a", "0003b")]), expected);
    assert_eq!(found(9, &[], &[("", ""), ("", "0005")]), [(0..5, false), (5..9, false)]);
}

/// The work of a flush grows with what it touches, not with the tree.
#[test]
fn the_search_for_what_is_touched_costs_little_in_a_wide_tree() {
    let order = Counting::default();
    let wide = removed(&[("0001", "9999")]);
    let fragments = Fragments::build(&order, wide);
    let mut counts = Vec::new();
    for count in [1000, 8000] {
        let tree = tree(count);
        let mut cursor = cursor(&order, &["0500", "0700x"]);
        let before = order.count();
        let found =
            flush_targets(&order, &tree, 0..count, &mut cursor, Cutter::new(&fragments)).unwrap();
        assert!(found.len() <= 6, "{found:?}");
        counts.push(order.count() - before);
    }
    assert!(counts[1] < 300 && counts[1] < counts[0] * 2, "comparisons: {counts:?}");
}

/// Ten thousand range deletes in partitions of growing number: cutting costs a search for each
/// partition and nothing for the ranges elsewhere.
#[test]
fn cutting_many_ranges_costs_in_proportion_to_partitions_and_ranges() {
    let order = Counting::default();
    let ranges = (0..10_000u64).map(|number| RangeTombstone {
        start: Some(format!("{:04}{:04}", number / 5, number % 5 * 2).into_bytes()),
        end: Some(format!("{:04}{:04}", number / 5, number % 5 * 2 + 1).into_bytes()),
        seq: number + 1,
    });
    let fragments = Fragments::build(&order, ranges.collect());
    for count in [500, 1000, 2000] {
        let tree = tree(count);
        let before = order.count();
        let cutter = Cutter::new(&fragments);
        let found =
            flush_targets(&order, &tree, 0..count, &mut cursor(&order, &[]), cutter).unwrap();
        assert_eq!(found.len(), count);
        let mut cutter = Cutter::new(&fragments);
        let mut pieces = 0;
        for stretch in &found {
            let partition = &tree.partitions()[stretch.partitions.start];
            let (lower, upper) = (partition.lower.as_deref(), partition.upper.as_deref());
            pieces += cutter.cut(&order, lower, upper).len();
        }
        assert_eq!(pieces, 10_000);
        let compared = order.count() - before;
        assert!(compared < 150 * count, "{compared} comparisons for {count} partitions");
    }
}
