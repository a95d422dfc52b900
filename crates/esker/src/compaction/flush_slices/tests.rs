use super::*;
use crate::base::Bytewise;
use crate::compaction::partitioning::tests::{partition, run, segment, segment_of, settings};
use crate::manifest::{Tree, Version};
use crate::run::{Segment, SegmentKind};

/// Partitions of one small segment each, with bounds `00`, `01` and so on.
fn tree(count: usize) -> Tree {
    let bound = |number: usize| format!("{number:04}");
    let one = |number: usize| {
        let (lower, upper) = (bound(number), bound(number + 1));
        let keys = (format!("{lower}a"), format!("{lower}b"));
        let lower = (number > 0).then_some(&lower[..]);
        let upper = (number + 1 < count).then_some(&upper[..]);
        partition(lower, upper, &[(&keys.0, &keys.1)])
    };
    Tree::new((0..count).map(one).collect())
}

fn key(text: &str) -> Option<Vec<u8>> {
    (!text.is_empty()).then(|| text.as_bytes().to_vec())
}

fn removal(lower: &str, upper: &str, hides_below: Seq) -> Slice {
    let list = segment_of(lower, upper, 100, 0, SegmentKind::Tombstones);
    let run = Arc::new(Run::new(Role::Delta, Vec::new(), vec![list]));
    Slice { lower: key(lower), upper: key(upper), run, hides_below, bottom: false }
}

fn data(lower: &str, upper: &str, spans: &[(&str, &str)]) -> Slice {
    let run = run(Role::Delta, spans);
    Slice { lower: key(lower), upper: key(upper), run, hides_below: 0, bottom: false }
}

/// The tree that `with_slices` makes, after a check that the edits say the same.
fn place(tree: &Tree, slices: &[Slice], busy: &[&str]) -> (Tree, Vec<TreeEdit>) {
    let is_busy = |p: &Partition| busy.iter().any(|lower| p.lower == key(lower));
    let settings = settings();
    let place =
        Place { row: &tree.rows()[0], tier: 0, above: None, busy: &is_busy, settings: &settings };
    let (new, edits) = with_slices(&Bytewise, place, slices);
    let new = Tree::new(new);
    let before = Version::default()
        .with_trees(vec![(0, Some(Arc::new(Tree::new(tree.partitions().to_vec()))))]);
    let edit = crate::manifest::Edit {
        trees: edits.iter().map(|edit| (0, edit.clone())).collect(),
        ..Default::default()
    };
    let file =
        crate::run::RunFile::new(&crate::fs::os(), std::path::Path::new("nowhere"), 1, None, None);
    let replayed = before.apply(&edit, &mut |meta| Segment::new(meta.clone(), file.clone()));
    let records = |tree: &Tree| tree.partitions().iter().map(|p| p.record()).collect::<Vec<_>>();
    assert_eq!(records(replayed.unwrap().tree(0).unwrap()), records(&new));
    assert!(crate::manifest::check_tree(&Bytewise, &new).is_ok());
    (new, edits)
}

fn deltas(tree: &Tree) -> Vec<usize> {
    tree.partitions().iter().map(|p| p.deltas.len()).collect()
}

#[test]
fn partitions_that_a_range_wholly_removes_become_one_empty_one() {
    let (new, edits) = place(&tree(2000), &[removal("0001", "1999", 3)], &[]);
    assert_eq!((new.partitions().len(), edits.len()), (3, 1));
    let empty = &new.partitions()[1];
    assert!(empty.runs().all(|run| run.is_empty()));
    assert_eq!((empty.lower.clone(), empty.upper.clone()), (key("0001"), key("1999")));
    let (all, edits) = place(&tree(2000), &[removal("", "", 3)], &[]);
    assert_eq!((all.partitions().len(), edits.len()), (1, 1));
    let (again, edits) = place(&all, &[removal("", "", 5)], &[]);
    assert_eq!((again.partitions().len(), edits.len()), (1, 0), "nothing is left to say");
}

#[test]
fn what_some_reader_still_sees_stays_under_one_delta_that_the_edit_names_once() {
    let (new, edits) = place(&tree(2000), &[removal("0001", "1999", 0)], &[]);
    assert_eq!(new.partitions().len(), 2000);
    assert_eq!(deltas(&new).iter().sum::<usize>(), 1998, "one for each that it covers");
    assert!(matches!(edits.as_slice(), [TreeEdit::AddDelta { count: 1998, .. }]), "{edits:?}");
}

#[test]
fn a_partition_is_emptied_only_if_all_of_it_is_older_and_nobody_works_on_it() {
    // The segments of these tests have sequence numbers up to 2.
    let (new, _) = place(&tree(4), &[removal("", "", 2)], &[]);
    assert_eq!(deltas(&new), [1, 1, 1, 1], "number 2 itself is not older");
    let (new, edits) = place(&tree(4), &[removal("", "", 3)], &["0001"]);
    assert_eq!(deltas(&new), [0, 1, 0], "the busy one gets a delta");
    assert!(!new.partitions()[1].base.is_empty());
    assert_eq!(edits.len(), 3);
    // A slice that was written for a part of what is now one partition.
    let (new, _) = place(&tree(2), &[removal("0001", "0001x", 3)], &[]);
    assert_eq!(deltas(&new), [0, 1]);
}

#[test]
fn what_was_written_after_a_removal_takes_the_place_of_what_it_removed() {
    let list = segment_of("0001", "0002", 100, 0, SegmentKind::Tombstones);
    let entries = vec![segment("0001a", "0001c")];
    let slice = Slice {
        lower: key("0001"),
        upper: key("0002"),
        run: Arc::new(Run::new(Role::Delta, entries, vec![list])),
        hides_below: 3,
        bottom: false,
    };
    let (new, edits) = place(&tree(3), &[slice], &[]);
    let partition = &new.partitions()[1];
    assert_eq!(partition.base.segments()[0].meta().max_key, b"0001c");
    assert!(partition.deltas.is_empty() && partition.base.tombstones().is_empty());
    assert!(matches!(edits.as_slice(), [TreeEdit::Replace { count: 1, .. }]));
}

#[test]
fn slices_that_meet_in_one_partition_become_one_delta() {
    let joined = Tree::new(vec![partition(None, Some("0100"), &[("0000a", "0099b")])]);
    let slices: Vec<Slice> = (0..100)
        .map(|number| {
            let (lower, upper) = (format!("{number:04}"), format!("{:04}", number + 1));
            let key = format!("{lower}a");
            data(if number == 0 { "" } else { &lower }, &upper, &[(&key, &key)])
        })
        .collect();
    let joined = Tree::new(vec![
        joined.partitions()[0].clone(),
        partition(Some("0100"), None, &[("0100a", "0100b")]),
    ]);
    let (new, edits) = place(&joined, &slices, &[]);
    assert_eq!((deltas(&new), edits.len()), (vec![1, 0], 1));
    assert_eq!(new.partitions()[0].deltas[0].segments().len(), 100);
}

#[test]
fn a_slice_over_a_bound_that_moved_goes_to_both_sides() {
    let slice = data("0001", "0003", &[("0001a", "0001c"), ("0001x", "0002c")]);
    let (new, edits) = place(&tree(4), &[slice], &[]);
    assert_eq!((deltas(&new), edits.len()), (vec![0, 1, 1, 0], 2));
    let parts: Vec<usize> =
        new.partitions()[1..3].iter().map(|p| p.deltas[0].segments().len()).collect();
    assert_eq!(parts, [2, 1]);
}

#[test]
fn what_a_flush_does_not_touch_is_shared() {
    let old = tree(100);
    let (new, edits) = place(&old, &[removal("0050", "0050b", 3)], &[]);
    assert_eq!(edits.len(), 1);
    let shared = old.partitions().iter().zip(new.partitions()).filter(|(a, b)| Arc::ptr_eq(a, b));
    assert_eq!(shared.count(), 99);
}
