use super::*;
use crate::base::Bytewise;
use crate::compaction::partitioning::begins_span;
use crate::compaction::partitioning::tests::{partition, run, segment_of, settings};
use crate::options::SmallTiers;
use crate::run::{Role, RunFile, Segment, SegmentKind};

pub(super) fn key(text: &str) -> Option<Vec<u8>> {
    (!text.is_empty()).then(|| text.as_bytes().to_vec())
}

fn bound(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A row with these lower bounds; its members are empty.
fn row(lowers: &[&str]) -> Row {
    let upper = |at: usize| lowers.get(at + 1).copied().and_then(bound);
    let one = |(at, lower): (usize, &&str)| partition(bound(lower), upper(at), &[]);
    Row::new(lowers.iter().enumerate().map(one).collect())
}

/// A tree of rows with these lower bounds, row 0 first.
pub(super) fn tree(rows: &[&[&str]]) -> Tree {
    Tree::of_rows(rows.iter().map(|lowers| row(lowers)).collect())
}

/// The tree with one more run in a span.
pub(super) fn with_run(tree: &Tree, tier: usize, at: usize, run: Arc<Run>) -> Tree {
    let mut rows = tree.rows().to_vec();
    let mut spans = rows[tier].partitions().to_vec();
    spans[at] = Arc::new(spans[at].with_delta(run));
    rows[tier] = Row::new(spans);
    Tree::of_rows(rows)
}

pub(super) fn data(spans: &[(&str, &str)]) -> Arc<Run> {
    run(Role::Delta, spans)
}

fn removal(start: &str, end: &str) -> Arc<Run> {
    let list = segment_of(start, end, 100, 0, SegmentKind::Tombstones);
    Arc::new(Run::new(Role::Delta, Vec::new(), vec![list]))
}

fn small(count: usize, fan_out: usize) -> Settings {
    Settings {
        small_tiers: Some(SmallTiers { count, fan_out, runs: 2, direct: 1, tightens: true }),
        ..settings()
    }
}

pub(super) fn never(_: usize, _: &Partition) -> bool {
    false
}

pub(super) fn rules(settings: &Settings) -> Rules<'_> {
    Rules { busy: &never, grows: true, settings }
}

fn lowers(row: &Row) -> Vec<Option<Vec<u8>>> {
    row.partitions().iter().map(|p| p.lower.clone()).collect()
}

/// The tree that rows make, after a check that the edits say the same of `before`.
pub(super) fn finished(before: &Tree, rows: Rows) -> Tree {
    let (tree, edits) = rows.finish();
    let version = crate::manifest::Version::default()
        .with_trees(vec![(0, Some(Arc::new(Tree::of_rows(before.rows().to_vec()))))]);
    let edit = crate::manifest::Edit {
        trees: edits.into_iter().map(|edit| (0, edit)).collect(),
        ..Default::default()
    };
    let file = RunFile::new(&crate::fs::os(), std::path::Path::new("nowhere"), 1, None, None);
    let replayed = version.apply(&edit, &mut |meta| Segment::new(meta.clone(), file.clone()));
    let records = |tree: &Tree| tree.all().map(|p| p.record()).collect::<Vec<_>>();
    let replayed = replayed.unwrap();
    let replayed = replayed.tree(0).unwrap();
    assert_eq!(replayed.rows().len(), tree.rows().len());
    assert_eq!(records(replayed), records(&tree), "the edits make another tree");
    assert!(crate::manifest::check_tree(&Bytewise, &tree).is_ok());
    tree
}

#[test]
fn a_span_has_the_partitions_between_its_bounds() {
    let tree = tree(&[&["", "b", "c", "d", "e"], &["", "c", "e"]]);
    let found = |at: usize| children(&Bytewise, &tree.rows()[0], &tree.tiers()[0].partitions()[at]);
    assert_eq!((found(0), found(1), found(2)), (0..2, 2..4, 4..5));
}

#[test]
fn a_path_is_clear_where_no_tier_holds_anything() {
    let empty = tree(&[&["", "m"], &["", "m"], &[""]]);
    let clear = |tree: &Tree, low: &str, high: &str| {
        let (low, high) = (key(low), key(high));
        is_clear(&Bytewise, tree, Extent { low: low.as_deref(), high: high.as_deref() })
    };
    assert!(clear(&empty, "", ""));
    // A run that reaches beyond its span counts only there.
    let held = with_run(&empty, 1, 0, data(&[("c", "e"), ("k", "t")]));
    assert!(clear(&held, "", "b") && clear(&held, "f", "j") && clear(&held, "m", ""));
    assert!(!clear(&held, "", "c") && !clear(&held, "e", "f") && !clear(&held, "l", "x"));
    assert!(!clear(&held, "", "") && clear(&held, "a", "b"));
    // Range tombstones count as entries do, and the upper tiers as the lower ones.
    let removed = with_run(&empty, 2, 0, removal("p", "q"));
    assert!(!clear(&removed, "p", "p") && !clear(&removed, "a", "z") && !clear(&removed, "", ""));
    assert!(clear(&removed, "q", "") && clear(&removed, "", "o"));
    assert!(!clear(&with_run(&empty, 2, 0, removal("", "")), "x", "x"));
}

#[test]
fn a_slice_goes_past_the_tiers_only_where_the_path_is_clear() {
    let settings = settings();
    let held = with_run(&tree(&[&["", "m"], &["", "m"]]), 1, 0, data(&[("c", "e")]));
    let slice = |low: &str, high: &str, bottom: bool| Slice {
        lower: None,
        upper: key("m"),
        run: data(&[(low, high)]),
        hides_below: 0,
        bottom,
    };
    let place = |slice: Slice, tier: usize| {
        let rules = Rules { grows: false, ..rules(&settings) };
        let rows = with_flush(&Bytewise, &held, (tier, &[slice]), rules)?;
        let tree = finished(&held, rows);
        let runs = |tier: usize| {
            let parts = tree.rows()[tier].partitions().iter();
            parts.map(|p| p.deltas.len() + p.base.segments().len()).sum::<usize>()
        };
        Some((runs(0), runs(1)))
    };
    assert_eq!(place(slice("a", "b", false), 0), Some((1, 1)), "to the partition");
    assert_eq!(place(slice("a", "d", false), 0), Some((0, 2)), "to the top");
    assert_eq!(place(slice("a", "b", false), 1), Some((0, 2)), "it was cut for the top");
    // What was written for the bottom cannot go anywhere else.
    assert_eq!(place(slice("a", "b", true), 0), Some((1, 1)));
    assert_eq!(place(slice("a", "d", true), 0), None);
}

#[test]
fn a_flush_for_tiers_fits_a_tree_without_them() {
    let settings = settings();
    let flat = tree(&[&["", "m"]]);
    let slice = Slice {
        lower: None,
        upper: None,
        run: data(&[("c", "e"), ("x", "y")]),
        hides_below: 0,
        bottom: false,
    };
    let rules = Rules { grows: false, ..rules(&settings) };
    let rows = with_flush(&Bytewise, &flat, (2, &[slice]), rules).unwrap();
    let new = finished(&flat, rows);
    let segments: Vec<usize> =
        new.partitions().iter().map(|p| p.runs().map(|run| run.segments().len()).sum()).collect();
    assert_eq!(segments, [1, 1]);
}

#[test]
fn neighbours_that_get_the_same_run_share_one_edit() {
    let settings = settings();
    let names: Vec<String> = (0..2000).map(|number| format!("{number:04}")).collect();
    let mut bounds: Vec<&str> = names.iter().map(String::as_str).collect();
    bounds[0] = "";
    let spans: Vec<&str> = bounds.iter().copied().step_by(10).collect();
    let wide = tree(&[&bounds, &spans]);
    let slice = Slice {
        lower: key("0005"),
        upper: key("1995"),
        run: removal("0005", "1995"),
        hides_below: 0,
        bottom: false,
    };
    let rows = with_flush(&Bytewise, &wide, (1, &[slice]), rules(&settings)).unwrap();
    let count = |edit: &TreeEdit| match edit {
        TreeEdit::AddDelta { tier: 1, count, .. } => *count,
        other => panic!("{other:?}"),
    };
    assert_eq!(rows.edits.iter().map(count).collect::<Vec<_>>(), [200]);
    finished(&wide, rows);
}

#[test]
fn a_push_takes_the_oldest_runs_and_leaves_what_arrived_meanwhile() {
    let settings = settings();
    let (old, new) = (data(&[("a", "b")]), data(&[("a", "c")]));
    let begun = with_run(&tree(&[&["", "m"], &[""]]), 1, 0, old.clone());
    let span = begun.tiers()[0].partitions()[0].clone();
    let now = with_run(&begun, 1, 0, new.clone());
    let mut rows = Rows::of(&now);
    assert!(rows.take_pushed(&Bytewise, 1, &span));
    let slice = Slice {
        lower: None,
        upper: key("m"),
        run: data(&[("a", "b")]),
        hides_below: 0,
        bottom: false,
    };
    rows.add(&Bytewise, 0, &[slice], rules(&settings));
    let pushed = finished(&now, rows);
    let left = &pushed.tiers()[0].partitions()[0].deltas;
    assert!(left.len() == 1 && Arc::ptr_eq(&left[0], &new));
    assert_eq!(pushed.partitions()[0].runs().map(|run| run.segments().len()).sum::<usize>(), 1);
    // Its runs are gone, or newer ones would have to be taken: nothing is done.
    assert!(!Rows::of(&pushed).take_pushed(&Bytewise, 1, &span));
    let other = with_run(&tree(&[&["", "m"], &[""]]), 1, 0, data(&[("a", "b")]));
    assert!(!Rows::of(&other).take_pushed(&Bytewise, 1, &span));
}

#[test]
fn tiers_are_made_from_the_bottom_and_removed_from_the_top() {
    let flat = tree(&[&["", "b", "c", "d", "e"]]);
    let grow = |before: &Tree, count: usize| {
        let settings = small(count, 2);
        let mut rows = Rows::of(before);
        rows.reshape(&Bytewise, rules(&settings));
        let surplus = rows.surplus(7);
        (finished(before, rows), surplus)
    };
    let (one, _) = grow(&flat, 3);
    assert_eq!(one.tiers().iter().map(lowers).collect::<Vec<_>>(), [[None, key("c"), key("e")]]);
    let (two, _) = grow(&one, 3);
    assert_eq!(lowers(&two.tiers()[1]), [None, key("e")]);
    let (three, _) = grow(&two, 3);
    assert_eq!(lowers(&three.tiers()[2]), [None]);
    assert_eq!(grow(&three, 3).0.tiers().len(), 3, "nothing more is wanted");
    // A tier that holds something is pushed first.
    let held = with_run(&three, 3, 0, data(&[("a", "b")]));
    let (same, surplus) = grow(&held, 0);
    assert_eq!(same.tiers().len(), 3);
    assert_eq!(surplus, [PartitionKey { keyspace: 7, tier: 3, lower: None }]);
    let (fewer, surplus) = grow(&three, 0);
    assert!(fewer.tiers().len() == 2 && surplus.is_empty());
    let settings = small(0, 2);
    let mut frozen = Rows::of(&three);
    frozen.reshape(&Bytewise, Rules { grows: false, ..rules(&settings) });
    assert_eq!(finished(&three, frozen).tiers().len(), 3);
}

#[test]
fn a_span_with_too_many_children_is_split_and_keeps_its_runs() {
    let wide = tree(&[&["", "b", "c", "d", "e", "f", "g"], &["", "g"]]);
    let wide = with_run(&wide, 1, 0, data(&[("a", "d"), ("e", "f")]));
    let settings = small(1, 2);
    // Nothing is looked at where no row below has grown.
    let mut rows = Rows::of(&wide);
    rows.reshape(&Bytewise, rules(&settings));
    assert_eq!(lowers(&finished(&wide, rows).tiers()[0]), [None, key("g")]);
    let grown = || {
        let mut rows = Rows::of(&wide);
        rows.lens = vec![6, 2];
        rows
    };
    let mut rows = grown();
    rows.reshape(&Bytewise, rules(&settings));
    let split = finished(&wide, rows);
    assert_eq!(lowers(&split.tiers()[0]), [None, key("c"), key("e"), key("g")]);
    let runs: Vec<usize> =
        split.tiers()[0].partitions().iter().map(|span| span.deltas.len()).collect();
    assert_eq!(runs, [1, 1, 1, 0]);
    // A span that is being pushed stays as it is.
    let busy = |tier: usize, span: &Partition| tier == 1 && span.lower.is_none();
    let mut rows = grown();
    rows.reshape(&Bytewise, Rules { busy: &busy, ..rules(&settings) });
    assert_eq!(lowers(&finished(&wide, rows).tiers()[0]), [None, key("g")]);
}

#[test]
fn a_span_without_room_is_cut_up_between_its_children() {
    let settings = settings();
    let before = with_run(&tree(&[&["", "b", "c"], &[""]]), 1, 0, data(&[("a", "d")]));
    let mut rows = Rows::of(&before);
    assert_eq!(rows.cut_up(&Bytewise, 1, None, &settings), [None, key("b")]);
    let after = finished(&before, rows);
    assert_eq!(after.tiers()[0].partitions()[1].deltas.len(), 1);
    let mut rows = Rows::of(&after);
    assert!(rows.cut_up(&Bytewise, 1, None, &settings).is_empty(), "it has one child");
}

#[test]
fn partitions_that_become_empty_stay_apart_where_a_span_begins() {
    let settings = settings();
    let before = tree(&[&["", "b", "c", "d"], &["", "c"]]);
    let before = with_run(&before, 0, 1, data(&[("b", "b")]));
    let slice =
        Slice { lower: None, upper: None, run: removal("", ""), hides_below: 5, bottom: false };
    let mut rows = Rows::of(&before);
    rows.add(&Bytewise, 0, &[slice], rules(&settings));
    let after = finished(&before, rows);
    assert_eq!(lowers(&after.rows()[0]), [None, key("c")]);
    assert!(after.partitions().iter().all(|p| p.runs().all(|run| run.is_empty())));
    let spans = after.row(1).map(Row::partitions);
    assert!(begins_span(&Bytewise, spans, &after.partitions()[1]));
}

#[test]
fn a_tier_takes_tombstones_as_they_are() {
    let settings = settings();
    let before = with_run(&tree(&[&["", "b"], &["", "b"], &[""]]), 1, 0, data(&[("a", "a")]));
    let slice =
        Slice { lower: None, upper: None, run: removal("", ""), hides_below: 5, bottom: false };
    let mut rows = Rows::of(&before);
    rows.add(&Bytewise, 1, &[slice], rules(&settings));
    let after = finished(&before, rows);
    let runs: Vec<usize> =
        after.tiers()[0].partitions().iter().map(|span| span.deltas.len()).collect();
    assert_eq!(runs, [2, 1], "what they hide may lie further down");
}

#[test]
fn operands_above_a_partition_are_seen() {
    let plain = with_run(&tree(&[&["", "m"], &[""]]), 1, 0, data(&[("a", "z")]));
    let of = |tree: &Tree, at: usize| holds_operands(&Bytewise, tree, &tree.partitions()[at]);
    assert!(!of(&plain, 0) && !of(&plain, 1));
    let segment = segment_of("n", "p", 100, 0, SegmentKind::Data);
    let mut meta = segment.meta().clone();
    meta.specials.operands = 1;
    let operands = Segment::new(meta, segment.file().clone());
    let run = Arc::new(Run::new(Role::Delta, vec![operands], Vec::new()));
    let held = with_run(&plain, 1, 0, run);
    assert!(!of(&held, 0) && of(&held, 1));
}
