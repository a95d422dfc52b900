use super::super::tests::{data, finished, key, never, rules, tree, with_run};
use super::*;
use crate::base::Bytewise;
use crate::compaction::flush_slices::Slice;
use crate::compaction::partitioning::tests::{partition, run, settings};
use crate::manifest::Tree;
use crate::run::Role;

/// A tree whose first span holds runs, over two children of which the second holds something.
fn parent() -> Tree {
    let empty = tree(&[&["", "f", "m"], &["", "m"], &[""]]);
    let old = data(&[("a", "b"), ("g", "h")]);
    let tree = with_run(&empty, 1, 0, old.clone());
    with_run(&with_run(&tree, 1, 0, data(&[("a", "h")])), 0, 1, data(&[("i", "k")]))
}

/// A tree with the same runs, each partition an object of its own.
fn copy(of: &Tree) -> Tree {
    let one = |p: &Arc<Partition>| {
        let runs = p.deltas.iter().map(|run| {
            let (segments, tombstones) = (run.segments().to_vec(), run.tombstones().to_vec());
            Arc::new(crate::run::Run::new(Role::Delta, segments, tombstones))
        });
        Arc::new(Partition {
            lower: p.lower.clone(),
            upper: p.upper.clone(),
            base: p.base.clone(),
            deltas: runs.collect(),
        })
    };
    let row = |row: &Row| Row::new(row.partitions().iter().map(one).collect());
    Tree::of_rows(of.rows().iter().map(row).collect())
}

fn slices() -> Vec<Slice> {
    let slice = |lower: &str, upper: &str, first: &str, last: &str| Slice {
        lower: key(lower),
        upper: key(upper),
        run: data(&[(first, last)]),
        hides_below: 0,
        bottom: false,
    };
    vec![slice("", "f", "a", "b"), slice("f", "m", "g", "h")]
}

/// The rows after a push of the first span of tier 1, and what the push did.
fn pushed(parent: &Tree) -> (Rows, Push) {
    let settings = settings();
    let span = parent.tiers()[0].partitions()[0].clone();
    let mut rows = Rows::of(parent);
    let push = rows.push(&Bytewise, (1, &span, &slices()), rules(&settings)).unwrap();
    (rows, push)
}

/// Whether a tree takes a push over; if not, it is left as it is.
fn takes_over(tree: &Tree, push: &Push, busy: Busy<'_>) -> bool {
    let mut rows = Rows::of(tree);
    let taken = rows.take_over(&Bytewise, push, busy);
    assert_eq!(taken, push.place_in(&Bytewise, tree.rows(), busy).is_some());
    assert_eq!(rows.edits.is_empty(), !taken);
    let after = finished(tree, rows);
    let same = |(a, b): (&Arc<Partition>, &Arc<Partition>)| Arc::ptr_eq(a, b);
    assert!(taken || after.all().zip(tree.all()).all(same), "it changed");
    taken
}

#[test]
fn a_tree_that_has_not_diverged_gets_the_same_partitions() {
    let parent = parent();
    let (rows, push) = pushed(&parent);
    let after = finished(&parent, rows);
    assert!(after.tiers()[0].partitions()[0].deltas.is_empty());
    for twin in [copy(&parent), Tree::of_rows(parent.rows().to_vec())] {
        let mut rows = Rows::of(&twin);
        assert!(rows.take_over(&Bytewise, &push, &never));
        let twin = finished(&twin, rows);
        for (a, b) in twin.partitions()[..2].iter().zip(after.partitions()) {
            assert!(Arc::ptr_eq(a, b));
        }
        assert!(Arc::ptr_eq(&twin.tiers()[0].partitions()[0], &after.tiers()[0].partitions()[0]));
        // What lies elsewhere stays as it was.
        assert!(twin.partitions()[2].is_empty() && twin.tiers()[1].partitions().len() == 1);
        assert!(!takes_over(&twin, &push, &never), "a second time");
    }
}

#[test]
fn what_differs_elsewhere_does_not_matter() {
    let parent = parent();
    let (_, push) = pushed(&parent);
    for (tier, at) in [(0, 2), (1, 1), (2, 0)] {
        let other = with_run(&copy(&parent), tier, at, data(&[("n", "o")]));
        assert!(takes_over(&other, &push, &never), "tier {tier}");
    }
}

#[test]
fn a_tree_with_another_span_is_left_alone() {
    let parent = parent();
    let (_, push) = pushed(&parent);
    let newer = with_run(&copy(&parent), 1, 0, data(&[("a", "b")]));
    assert!(!takes_over(&newer, &push, &never), "a run more");
    let empty = tree(&[&["", "f", "m"], &["", "m"], &[""]]);
    assert!(!takes_over(&empty, &push, &never), "none of the runs");
    let wider = Rows::of(&parent).rows[0].clone();
    let wider = Tree::of_rows(vec![wider, Row::new(vec![partition(None, None, &[])])]);
    assert!(!takes_over(&wider, &push, &never), "other bounds");
    let flat = Tree::of_rows(parent.rows()[..1].to_vec());
    assert!(!takes_over(&flat, &push, &never), "no tier");
}

#[test]
fn a_tree_with_other_children_is_left_alone() {
    let parent = parent();
    let (_, push) = pushed(&parent);
    for at in [0, 1] {
        let other = with_run(&copy(&parent), 0, at, data(&[("c", "d")]));
        assert!(!takes_over(&other, &push, &never), "child {at}");
    }
    let mut split = copy(&parent).rows().to_vec();
    let mut children = split[0].partitions().to_vec();
    children.splice(..1, [partition(None, Some("c"), &[]), partition(Some("c"), Some("f"), &[])]);
    split[0] = Row::new(children);
    assert!(!takes_over(&Tree::of_rows(split), &push, &never), "a child more");
    let mut compacted = copy(&parent).rows().to_vec();
    let mut children = compacted[0].partitions().to_vec();
    let (lower, upper) = (children[1].lower.clone(), children[1].upper.clone());
    let base = run(Role::Base, &[("i", "k")]);
    children[1] = Arc::new(Partition { lower, upper, base, deltas: Vec::new() });
    compacted[0] = Row::new(children);
    assert!(!takes_over(&Tree::of_rows(compacted), &push, &never), "a child was compacted");
}

#[test]
fn a_tree_in_which_work_is_under_way_there_is_left_alone() {
    let parent = parent();
    let (_, push) = pushed(&parent);
    let twin = copy(&parent);
    let span = |tier: usize, p: &Partition| tier == 1 && p.lower.is_none();
    assert!(!takes_over(&twin, &push, &span), "its span is being pushed");
    let child = |tier: usize, p: &Partition| tier == 0 && p.lower == key("f");
    assert!(!takes_over(&twin, &push, &child), "a child is being compacted");
    let other = |tier: usize, p: &Partition| tier == 0 && p.lower == key("m");
    assert!(takes_over(&twin, &push, &other), "work elsewhere");
}

/// A push of a tier, then one of a span that it has pushed into, in one change.
#[test]
fn pushes_of_several_tiers_are_taken_over_in_their_order() {
    let parent = with_run(&parent(), 2, 0, data(&[("c", "d")]));
    let settings = settings();
    let (top, span) =
        (parent.tiers()[1].partitions()[0].clone(), parent.tiers()[0].partitions()[0].clone());
    let slice = Slice {
        lower: None,
        upper: key("m"),
        run: data(&[("c", "d")]),
        hides_below: 0,
        bottom: false,
    };
    let mut rows = Rows::of(&parent);
    let first = rows.push(&Bytewise, (2, &top, &[slice]), rules(&settings)).unwrap();
    let second = rows.push(&Bytewise, (1, &span, &slices()), rules(&settings)).unwrap();
    let after = finished(&parent, rows);
    let twin = copy(&parent);
    let mut rows = Rows::of(&twin);
    assert!(!rows.take_over(&Bytewise, &second, &never), "what the first one adds is missing");
    assert!(rows.take_over(&Bytewise, &first, &never));
    assert!(rows.take_over(&Bytewise, &second, &never));
    let twin = finished(&twin, rows);
    assert_eq!(twin.tiers()[0].partitions()[0].deltas.len(), 1);
    assert!(Arc::ptr_eq(&twin.tiers()[0].partitions()[0], &after.tiers()[0].partitions()[0]));
}
