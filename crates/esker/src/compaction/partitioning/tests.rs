use super::*;
use crate::base::Bytewise;
use crate::manifest::Tree;
use crate::options::Options;
use crate::run::{RunFile, SegmentKind, SegmentMeta};
use std::path::Path;

const SEGMENT: u64 = 4 << 10;

pub(crate) fn settings() -> Settings {
    let mut options = Options::default();
    options.partition_bytes = Some(16 << 10);
    options.segment_bytes = SEGMENT as u32;
    Settings::new(&options).unwrap()
}

pub(crate) fn segment_of(
    min: &str,
    max: &str,
    len: u64,
    deletes: u64,
    kind: SegmentKind,
) -> Arc<Segment> {
    let file = RunFile::new(&crate::fs::os(), Path::new("nowhere"), 1, None, None);
    let meta = SegmentMeta {
        file: 1,
        offset: 64,
        len,
        tail_len: 0,
        kind,
        bytewise: true,
        shadowed: false,
        entries: 10,
        deletes,
        raw_bytes: len,
        min_key: min.into(),
        max_key: max.into(),
        min_seq: 1,
        max_seq: 2,
        ingested: false,
        specials: Default::default(),
        values: Box::default(),
        checksum: 0,
    };
    Segment::new(meta, file)
}

pub(crate) fn segment(min: &str, max: &str) -> Arc<Segment> {
    segment_of(min, max, SEGMENT, 0, SegmentKind::Data)
}

pub(crate) fn run(role: Role, spans: &[(&str, &str)]) -> Arc<Run> {
    let segments = spans.iter().map(|(min, max)| segment(min, max)).collect();
    Arc::new(Run::new(role, segments, Vec::new()))
}

/// Like [`run`], for another file.
pub(crate) fn run_of_file(file: u64, spans: &[(&str, &str)]) -> Arc<Run> {
    let of_file = |(min, max): &(&str, &str)| {
        let from = segment(min, max);
        Segment::new(SegmentMeta { file, ..from.meta().clone() }, from.file().clone())
    };
    Arc::new(Run::new(Role::Delta, spans.iter().map(of_file).collect(), Vec::new()))
}

fn tombstones() -> Arc<Run> {
    let list = segment_of("c", "d", 100, 0, SegmentKind::Tombstones);
    Arc::new(Run::new(Role::Delta, Vec::new(), vec![list]))
}

pub(crate) fn partition(
    lower: Option<&str>,
    upper: Option<&str>,
    base: &[(&str, &str)],
) -> Arc<Partition> {
    let bound = |key: Option<&str>| key.map(|key| key.as_bytes().to_vec());
    let base = run(Role::Base, base);
    Arc::new(Partition { lower: bound(lower), upper: bound(upper), base, deltas: Vec::new() })
}

fn is_adopted(old: &Arc<Partition>, new: Arc<Run>, busy: bool) -> bool {
    let (partition, edit) = with_delta(&Bytewise, old, new, busy, &settings());
    let adopted = partition.deltas.is_empty();
    assert_eq!(adopted, matches!(edit, TreeEdit::Replace { .. }));
    adopted
}

#[test]
fn a_run_that_overlaps_nothing_joins_the_base() {
    let old = partition(None, None, &[("a", "b"), ("m", "n")]);
    assert!(is_adopted(&old, run(Role::Delta, &[("c", "d"), ("p", "q")]), false));
    let (new, _) = with_delta(&Bytewise, &old, run(Role::Delta, &[("c", "d")]), false, &settings());
    let mins: Vec<_> = new.base.segments().iter().map(|s| s.meta().min_key.clone()).collect();
    assert_eq!(mins, [b"a", b"c", b"m"], "in key order");
}

#[test]
fn whatever_could_hide_or_be_hidden_stays_a_delta() {
    let old = partition(None, None, &[("c", "f")]);
    assert!(!is_adopted(&old, run(Role::Delta, &[("e", "h")]), false), "it overlaps");
    assert!(!is_adopted(&old, run(Role::Delta, &[("f", "h")]), false), "it shares one key");
    assert!(!is_adopted(&old, run(Role::Delta, &[("m", "n")]), true), "a compaction is under way");
    assert!(!is_adopted(&old, tombstones(), false), "tombstones");
    let deletes = segment_of("m", "n", SEGMENT, 1, SegmentKind::Data);
    let deletes = Arc::new(Run::new(Role::Delta, vec![deletes], Vec::new()));
    assert!(!is_adopted(&old, deletes, false), "deletes have to vanish");
    let crumb = segment_of("m", "n", SEGMENT / 8, 0, SegmentKind::Data);
    let crumb = Arc::new(Run::new(Role::Delta, vec![crumb], Vec::new()));
    assert!(!is_adopted(&old, crumb, false), "crumbs would pile up");
    let (over_delta, _) =
        with_delta(&Bytewise, &old, run(Role::Delta, &[("d", "e")]), false, &settings());
    assert!(!is_adopted(&over_delta, run(Role::Delta, &[("m", "n")]), false), "a delta is below");
    let bounded = partition(Some("c"), Some("m"), &[]);
    assert!(!is_adopted(&bounded, run(Role::Delta, &[("k", "n")]), false), "it reaches beyond");
}

#[test]
fn a_newer_delta_lies_on_top() {
    let old = partition(None, None, &[("a", "z")]);
    let (one, _) = with_delta(&Bytewise, &old, run(Role::Delta, &[("b", "c")]), false, &settings());
    let (two, _) = with_delta(&Bytewise, &one, run(Role::Delta, &[("d", "e")]), false, &settings());
    assert_eq!(two.deltas[0].segments()[0].meta().min_key, b"d");
    assert_eq!(two.deltas.len(), 2);
}

const MANY: [(&str, &str); 7] =
    [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j"), ("k", "l"), ("m", "n")];

#[test]
fn a_base_that_is_too_big_is_split_at_segment_bounds() {
    let old = partition(Some("A"), Some("z"), &MANY);
    let parts = split_base(&Bytewise, &old.base, &old, &settings());
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0].lower.as_deref(), Some(&b"A"[..]));
    assert_eq!(parts[0].upper, parts[1].lower);
    assert_eq!(parts[1].upper.as_deref(), Some(&b"z"[..]));
    let kept: usize = parts.iter().map(|part| part.base.segments().len()).sum();
    assert_eq!(kept, MANY.len());
    for part in &parts {
        assert!(lies_within(&Bytewise, &part.base, part));
    }
}

#[test]
fn a_base_within_half_more_than_its_size_is_left_whole() {
    let old = partition(None, None, &MANY[..6]);
    assert_eq!(split_base(&Bytewise, &old.base, &old, &settings()).len(), 1);
}

#[test]
fn only_partitions_without_deltas_are_split_at_once() {
    let full = partition(None, Some("o"), &MANY);
    let delta = vec![run(Role::Delta, &[("p", "q")])];
    let (lower, base) = (Some(b"o".to_vec()), run(Role::Base, &MANY));
    let with_deltas = Arc::new(Partition { lower, upper: None, base, deltas: delta });
    let row = vec![full, with_deltas.clone()];
    let (row, edits) = split_full(&Bytewise, row, &settings(), |_| false);
    assert_eq!((row.len(), edits.len()), (3, 1));
    assert!(Arc::ptr_eq(&row[2], &with_deltas));
}

#[test]
fn a_delta_that_came_during_a_compaction_is_seen_by_every_part_it_reaches() {
    let old = partition(None, None, &[]);
    let base = Run::new(Role::Base, MANY.iter().map(|(a, b)| segment(a, b)).collect(), Vec::new());
    let newer = [run(Role::Delta, &[("a", "b"), ("f", "i"), ("m", "n")]), tombstones()];
    let parts = after_compaction(&Bytewise, &old, base, &newer, &settings());
    assert_eq!(parts.len(), 2);
    let mins = |part: &Partition| -> Vec<Vec<u8>> {
        part.deltas[0].segments().iter().map(|s| s.meta().min_key.clone()).collect()
    };
    assert_eq!(mins(&parts[0]), [b"a", b"f"]);
    assert_eq!(mins(&parts[1]), [b"f", b"m"], "the segment over the bound is shared");
    let deltas: Vec<usize> = parts.iter().map(|part| part.deltas.len()).collect();
    assert_eq!(deltas, [2, 1], "range tombstones go where they cover something");
}

#[test]
fn a_run_is_seen_where_it_reaches_and_nowhere_else() {
    let bounds = |text: &'static str| Some(text.as_bytes()).filter(|key| !key.is_empty());
    let of = |start: &str, end: &str, lower, upper| {
        let list = segment_of(start, end, 100, 0, SegmentKind::Tombstones);
        let run = Arc::new(Run::new(Role::Delta, Vec::new(), vec![list]));
        part_of(&Bytewise, &run, bounds(lower), bounds(upper)).is_some()
    };
    assert!(of("c", "f", "", "") && of("c", "f", "e", "m") && of("c", "f", "a", "d"));
    assert!(!of("c", "f", "f", "") && !of("c", "f", "", "c"), "an end is not in its range");
    assert!(of("", "f", "", "c") && of("c", "", "m", "") && of("", "", "m", "n"), "no bound");
    assert!(!of("", "f", "f", "g") && !of("c", "", "", "c"));
}

#[test]
fn small_neighbours_join_unless_something_reaches_across() {
    let left = partition(None, Some("m"), &[("a", "b")]);
    let right = partition(Some("m"), None, &[("p", "q")]);
    let whole = joined(&Bytewise, &left, &right, &settings()).unwrap();
    assert_eq!((whole.lower, whole.upper), (None, None));
    assert_eq!(whole.base.segments().len(), 2);
    let across = partition(None, Some("m"), &[("k", "n")]);
    assert!(joined(&Bytewise, &across, &right, &settings()).is_none());
    let big = partition(None, Some("m"), &[("a", "b"), ("c", "d"), ("e", "f")]);
    assert!(joined(&Bytewise, &big, &right, &settings()).is_none());
    let (over, _) = with_delta(&Bytewise, &right, tombstones(), false, &settings());
    assert!(joined(&Bytewise, &left, &over, &settings()).is_none());
}

#[test]
fn joined_deltas_keep_their_age() {
    let delta = |old: &Arc<Partition>, span| {
        with_delta(&Bytewise, old, run(Role::Delta, &[span]), true, &settings()).0
    };
    let left = delta(&delta(&partition(None, Some("m"), &[]), ("a", "b")), ("a", "c"));
    let right = delta(&partition(Some("m"), None, &[]), ("n", "o"));
    let roomy = Settings { partition_bytes: Some(64 << 10), ..settings() };
    let whole = joined(&Bytewise, &left, &right, &roomy).unwrap();
    let spans: Vec<Vec<Vec<u8>>> = whole
        .deltas
        .iter()
        .map(|run| run.segments().iter().map(|s| s.meta().max_key.clone()).collect())
        .collect();
    assert_eq!(spans, [vec![b"c".to_vec(), b"o".to_vec()], vec![b"b".to_vec()]]);
}

/// The partitions of a compaction of the second one, and the result of taking it over in `other`,
/// whose edits are the same if it is taken over.
fn taken_over(other: &[Arc<Partition>]) -> Option<Vec<Arc<Partition>>> {
    let delta = run(Role::Delta, &[("n", "o")]);
    let right = partition(Some("m"), None, &[("m", "p")]);
    let right = Arc::new(right.with_delta(delta));
    let parts = [partition(None, Some("m"), &[("a", "b")]), right.clone()];
    let mut tree = Draft::of(&Tree::new(parts.to_vec()));
    let base = Run::new(Role::Base, vec![segment("m", "p")], Vec::new());
    let never = |_: Option<&[u8]>| true;
    let placed = put_in_place(&Bytewise, &mut tree, (&right, base), &settings(), never);
    let (replaced, edits) = placed.unwrap();
    // An object of its own, with the same runs.
    let copy = |p: &Arc<Partition>| {
        let (lower, upper) = (p.lower.clone(), p.upper.clone());
        Arc::new(Partition { lower, upper, base: p.base.clone(), deltas: p.deltas.clone() })
    };
    let other = if other.is_empty() { parts.iter().map(copy).collect() } else { other.to_vec() };
    let mut draft = Draft::of(&Tree::new(other.clone()));
    let taken = take_over(&Bytewise, &mut draft, &replaced, &settings(), never);
    assert_eq!(taken.is_some(), replaced.is_in(&Bytewise, &other));
    let taken = taken?;
    assert_eq!(taken, edits);
    assert!(Arc::ptr_eq(&draft.partitions()[1], &tree.partitions()[1]), "they share it");
    Some(draft.partitions().to_vec())
}

#[test]
fn a_compaction_is_taken_over_by_a_tree_with_the_same_partition_and_no_other() {
    let left = partition(None, Some("m"), &[]);
    let taken = taken_over(&[]).unwrap();
    assert!(taken[1].deltas.is_empty());
    let right = partition(Some("m"), None, &[("m", "p")]);
    assert!(taken_over(&[left.clone(), right.clone()]).is_none(), "a delta less, another base");
    let delta = run(Role::Delta, &[("n", "o")]);
    let other = Arc::new(right.with_delta(delta));
    assert!(taken_over(&[left, other]).is_none(), "another delta, of the same keys");
    assert!(taken_over(&[partition(None, None, &[])]).is_none(), "other bounds");
}
