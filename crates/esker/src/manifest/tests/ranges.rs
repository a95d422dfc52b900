//! What the descriptions of segments tell about a range of keys.

use super::*;
use crate::base::rangedel::{Fragments, RangeTombstone};

fn tree(partitions: Vec<PartitionRecord>) -> Arc<Tree> {
    let version = apply(&Version::default(), &one(0, replace(None, 1, partitions))).unwrap();
    version.tree(0).unwrap().clone()
}

/// Two partitions that share the segment `k` to `p`.
fn shared() -> Arc<Tree> {
    let left = partition(None, run(&[(1, "a", "c"), (2, "k", "p")]), vec![]);
    let right = partition(Some("m"), run(&[(2, "k", "p"), (3, "q", "z")]), vec![]);
    tree(vec![left, right])
}

/// The bounds of the counts of all groups.
fn bounds(tree: &Tree, range: KeyRange<'_>, tombstones: &Fragments) -> Vec<(u64, u64)> {
    let extents = extents(&Bytewise, tree, range);
    let groups = groups(&Bytewise, &extents, tombstones).map(|group| group.bounds(100));
    groups.map(|bounds| (bounds.least, bounds.most)).collect()
}

#[test]
fn a_segment_that_neighbours_share_counts_once() {
    let (tree, none) = (shared(), Fragments::build(&Bytewise, Vec::new()));
    // Each has seven entries, of which two are deletes.
    assert_eq!(bounds(&tree, (None, None), &none), [(5, 5), (5, 5), (5, 5)]);
    assert_eq!(bounds(&tree, (Some(b"a"), Some(b"q")), &none), [(5, 5), (5, 5)]);
    // The ends of the range cut them.
    assert_eq!(bounds(&tree, (Some(b"b"), Some(b"p")), &none), [(0, 5), (0, 5)]);
    assert!(bounds(&tree, (Some(b"d"), Some(b"k")), &none).is_empty());
    // A reader to whom the newest entries are not visible.
    let extents = extents(&Bytewise, &tree, (None, None));
    let mut old = groups(&Bytewise, &extents, &none).map(|group| group.bounds(99));
    assert!(old.all(|bounds| (bounds.least, bounds.most) == (0, 5)));
}

#[test]
fn a_segment_counts_once_if_neighbours_have_it_above_different_runs() {
    let none = Fragments::build(&Bytewise, Vec::new());
    let left = partition(None, run(&[(1, "a", "c")]), vec![run(&[(9, "b", "t")])]);
    let newer = vec![run(&[(9, "b", "t")]), run(&[(4, "n", "o")])];
    let right = partition(Some("m"), run(&[(2, "p", "q")]), newer);
    // Ten in the base, of which the deletes of the two deltas may hide four.
    assert_eq!(bounds(&tree(vec![left, right]), (None, None), &none), [(6, 20)]);
}

#[test]
fn what_lies_below_range_tombstones_or_overlaps_is_not_sure() {
    let range = RangeTombstone { start: Some(b"o".to_vec()), end: Some(b"r".to_vec()), seq: 1 };
    let tombstones = Fragments::build(&Bytewise, vec![range]);
    assert_eq!(bounds(&shared(), (None, None), &tombstones), [(5, 5), (0, 5), (0, 5)]);
    let base = run(&[(1, "a", "c"), (2, "d", "f"), (3, "g", "i")]);
    let tree = tree(vec![partition(None, base, vec![run(&[(4, "b", "e")])])]);
    let none = Fragments::build(&Bytewise, Vec::new());
    // Ten in the base, of which the two deletes of the delta may hide two.
    assert_eq!(bounds(&tree, (None, None), &none), [(8, 15), (5, 5)]);
}

#[test]
fn a_range_is_cut_nearest_to_equal_shares() {
    let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    let base: Vec<_> = names.iter().map(|name| (1, name.as_str(), name.as_str())).collect();
    let tree = tree(vec![partition(None, run(&base), vec![])]);
    let cut = |range: KeyRange<'_>, parts| {
        let points = cuts(&Bytewise, &extents(&Bytewise, &tree, range), parts);
        points.into_iter().map(|key| String::from_utf8(key).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(cut((None, None), 4), ["3", "5", "8"]);
    assert_eq!(cut((None, None), 2), ["5"]);
    assert_eq!(cut((None, None), usize::MAX), names[1..]);
    assert_eq!(cut((Some(b"4"), Some(b"7")), 2), ["6"]);
    assert!(cut((None, None), 1).is_empty() && cut((None, None), 0).is_empty());
    assert!(cut((Some(b"7"), Some(b"7")), 5).is_empty());
}
