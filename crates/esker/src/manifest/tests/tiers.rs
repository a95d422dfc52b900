//! Trees with tiers: their edits, what refuses crafted ones, sharing, and accounting.

use super::*;

fn bound(key: &str) -> Option<Vec<u8>> {
    (!key.is_empty()).then(|| key.as_bytes().to_vec())
}

fn file(path: &str) -> Arc<RunFile> {
    RunFile::new(&crate::fs::os(), Path::new(path), 1, None, None)
}

/// Applies edits with one segment object for each place, as an open does.
fn apply_all(edits: &[Edit]) -> std::result::Result<Version, &'static str> {
    let mut known = std::collections::HashMap::new();
    let mut segment = |meta: &SegmentMeta| -> Arc<Segment> {
        let new = || Segment::new(meta.clone(), file("nowhere"));
        known.entry(meta.place()).or_insert_with(new).clone()
    };
    let mut trees = Trees::default();
    edits.iter().try_for_each(|edit| trees.apply(edit, &mut segment))?;
    Ok(trees.version())
}

/// An empty partition, or a span with these runs.
fn span(lower: &str, runs: &[u64]) -> PartitionRecord {
    let deltas = runs.iter().map(|file| run(&[(*file, "a", "z")])).collect();
    PartitionRecord { lower: bound(lower), base: RunRecord::default(), deltas }
}

fn tier(tier: usize, spans: Vec<PartitionRecord>) -> TreeEdit {
    TreeEdit::Tier { tier, spans }
}

fn add(tier: usize, lower: &str, count: usize, file: u64) -> TreeEdit {
    TreeEdit::AddDelta { tier, lower: bound(lower), count, run: run(&[(file, "a", "z")]) }
}

fn spans(tier: usize, lower: &str, count: usize, partitions: Vec<PartitionRecord>) -> TreeEdit {
    TreeEdit::Replace { tier, lower: bound(lower), count, partitions }
}

/// The life of a tree: partitions, two tiers, a flush, a push, a split, a branch, a drop.
fn life() -> Vec<Edit> {
    let row = ["", "c", "f", "m", "t"].map(|lower| span(lower, &[]));
    let mut branch = one(0, add(2, "", 2, 13));
    branch.branches.push(BranchRecord {
        id: 7,
        name: "copy".to_owned(),
        kind: BranchKind::Branch,
        made_at: 0,
        point: 64,
        copies: vec![(7, 0)],
    });
    let mut push = one(0, spans(2, "", 1, vec![span("", &[13])]));
    push.trees.push((0, add(1, "", 2, 20)));
    vec![
        one(0, spans(0, "", 1, row.to_vec())),
        one(0, tier(1, vec![span("", &[]), span("f", &[]), span("t", &[])])),
        one(0, tier(2, vec![span("", &[]), span("t", &[])])),
        one(0, add(2, "", 2, 11)),
        one(0, add(2, "", 1, 12)),
        branch,
        push,
        one(7, add(1, "t", 1, 30)),
        one(0, spans(1, "f", 1, vec![span("f", &[20]), span("m", &[20])])),
        one(0, tier(2, vec![])),
        one(0, add(1, "m", 2, 40)),
        Edit { dropped: vec![0], ..Edit::default() },
    ]
}

/// The rows of a tree: the tier, the lower bounds, and the files of the deltas.
fn rows(version: &Version, id: KeyspaceId) -> Vec<Vec<(String, Vec<u64>)>> {
    let Some(tree) = version.tree(id) else { return Vec::new() };
    let show = |p: &Arc<Partition>| {
        let lower = p.lower.clone().unwrap_or_default();
        let files = p.deltas.iter().map(|run| run.segments()[0].meta().file).collect();
        (String::from_utf8(lower).unwrap(), files)
    };
    tree.rows().iter().map(|row| row.partitions().iter().map(show).collect()).collect()
}

#[test]
fn a_tree_with_tiers_is_what_its_edits_say() {
    let version = apply_all(&life()[..11]).unwrap();
    let found = rows(&version, 0);
    let expected = |row: &[(&str, &[u64])]| -> Vec<(String, Vec<u64>)> {
        row.iter().map(|(lower, files)| ((*lower).to_owned(), files.to_vec())).collect()
    };
    assert_eq!(found.len(), 2);
    assert_eq!(found[1], expected(&[("", &[20]), ("f", &[20]), ("m", &[40, 20]), ("t", &[40])]));
    // A copy has the tree that its original had before the edit.
    let copy = rows(&version, 7);
    assert_eq!(copy[1], expected(&[("", &[]), ("f", &[]), ("t", &[30])]));
    assert_eq!(copy[2], expected(&[("", &[12, 11]), ("t", &[11])]));
    let tree = version.tree(7).unwrap();
    check_tree(&Bytewise, tree).unwrap();
    let path = |key: &[u8]| -> Vec<(usize, usize, u64)> {
        let file = |run: &crate::run::Run| run.segments().first().map_or(0, |s| s.meta().file);
        tree.path(&Bytewise, key).map(|(tier, at, run)| (tier, at, file(run))).collect()
    };
    assert_eq!(path(b"d"), [(2, 0, 12), (2, 0, 11), (0, 1, 0)]);
    assert_eq!(path(b"x"), [(2, 1, 11), (1, 2, 30), (0, 4, 0)]);
}

#[test]
fn every_prefix_of_the_edits_comes_back_from_a_new_manifest() {
    let edits = life();
    for count in 1..=edits.len() {
        let version = apply_all(&edits[..count]).unwrap();
        for id in [0, 7] {
            version.tree(id).map_or(Ok(()), |tree| check_tree(&Bytewise, tree)).unwrap();
        }
        let state = Edit { trees: version.tree_edits(), ..Edit::default() };
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        let state = Edit::decode(&bytes).unwrap();
        let again = apply_all(std::slice::from_ref(&state)).unwrap();
        for id in [0, 7] {
            assert_eq!(rows(&again, id), rows(&version, id), "{count} edits, tree {id}");
        }
        assert_eq!(again.tree_edits(), version.tree_edits(), "{count} edits");
        // What the trees share is shared again.
        let shared = |version: &Version| {
            let all = |id| version.tree(id).into_iter().flat_map(|tree| tree.all());
            let known: std::collections::HashSet<_> = all(0).map(Arc::as_ptr).collect();
            all(7).filter(|p| known.contains(&Arc::as_ptr(p))).count()
        };
        assert_eq!(shared(&again), shared(&version), "{count} edits");
        assert_eq!(shared(&version) > 0, (6..12).contains(&count), "{count} edits");
        // Each edit alone, too.
        let mut bytes = Vec::new();
        edits[count - 1].encode(&mut bytes);
        assert_eq!(Edit::decode(&bytes).unwrap(), edits[count - 1]);
    }
}

/// An edit with each tag that is about tiers.
fn all_tags() -> Edit {
    let piece = TreePiece::Of { keyspace: 1, first: 2, count: 3 };
    let pieces = vec![piece, TreePiece::Own(vec![span("q", &[9])])];
    let trees = vec![
        tier(1, vec![span("", &[3]), span("f", &[])]),
        add(2, "f", 1, 5),
        add(4, "", 300, 6),
        spans(1, "f", 2, vec![span("f", &[7, 8])]),
        TreeEdit::Share { tier: 3, pieces },
        tier(4, vec![]),
    ];
    Edit { trees: trees.into_iter().map(|change| (0, change)).collect(), ..Edit::default() }
}

#[test]
fn damaged_edits_of_tiers_are_refused_or_others() {
    let edit = all_tags();
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    assert_eq!(Edit::decode(&bytes).unwrap(), edit);
    let canonical = |bytes: &[u8], what: &str| {
        let Ok(found) = Edit::decode(bytes) else { return };
        let mut again = Vec::new();
        found.encode(&mut again);
        // What is read is what was written, so no two encodings mean the same; and whatever it
        // says, it is applied or refused.
        assert!(again == bytes || Edit::decode(&again).unwrap() == found, "{what}");
        let _ = apply_all(&[found]);
    };
    for len in 0..bytes.len() {
        canonical(&bytes[..len], &format!("cut at {len}"));
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            canonical(&bytes, &format!("byte {at}, bit {bit}"));
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn tiers_beyond_the_limits_are_refused_when_they_are_read() {
    for number in [0, TIERS_MAX + 1, usize::MAX >> 1] {
        for change in [tier(number, vec![span("", &[])]), add(number, "", 1, 3)] {
            // The row of partitions has tags of its own.
            if number == 0 && matches!(change, TreeEdit::AddDelta { .. }) {
                continue;
            }
            let mut bytes = Vec::new();
            one(0, change).encode(&mut bytes);
            assert!(Edit::decode(&bytes).is_err(), "tier {number}");
        }
    }
    for tag in [9, 10, 11, 12] {
        assert!(Edit::decode(&[tag, 0, 0]).is_err(), "tag {tag} with row 0");
        assert!(Edit::decode(&[tag, 0, 5]).is_err(), "tag {tag} with a fifth tier");
    }
}

#[test]
fn crafted_tiers_are_refused() {
    let row = || vec![span("", &[]), span("c", &[]), span("f", &[])];
    let base = |change: TreeEdit| {
        let mut edit = one(0, spans(0, "", 1, row()));
        edit.trees.push((0, change));
        edit
    };
    let based = PartitionRecord { base: run(&[(3, "a", "b")]), ..span("", &[]) };
    for (what, change) in [
        ("a tier in the air", tier(2, vec![span("", &[])])),
        ("a tier that is not there", tier(1, vec![])),
        ("the row of partitions is no tier", tier(0, vec![span("", &[])])),
        ("a run for a tier that is not there", add(1, "", 1, 3)),
        ("a span with a base", tier(1, vec![based.clone()])),
        ("a tier that begins with a bound", tier(1, vec![span("c", &[])])),
        ("a share of nothing", TreeEdit::Share { tier: 1, pieces: vec![] }),
        (
            "a share of a tier in the air",
            TreeEdit::Share { tier: 2, pieces: vec![TreePiece::Own(vec![span("", &[])])] },
        ),
        (
            "a share of a span with a base",
            TreeEdit::Share { tier: 1, pieces: vec![TreePiece::Own(vec![based.clone()])] },
        ),
        (
            "a share of a row that is not there",
            TreeEdit::Share {
                tier: 1,
                pieces: vec![TreePiece::Of { keyspace: 0, first: 0, count: 1 }],
            },
        ),
    ] {
        assert!(apply_all(&[base(change)]).is_err(), "{what}");
    }
    let mut two = base(tier(1, vec![span("", &[]), span("c", &[])]));
    two.trees.push((0, tier(2, vec![span("", &[])])));
    for (what, change) in [
        ("a tier under another goes", tier(1, vec![])),
        ("a base in a span", spans(1, "", 1, vec![based])),
        ("a run for more spans than there are", add(1, "c", 2, 3)),
        ("no span begins there", add(2, "c", 1, 3)),
    ] {
        assert!(apply_all(&[two.clone(), one(0, change)]).is_err(), "{what}");
    }
    let check = |edit: Edit| {
        let version = apply_all(&[edit]).unwrap();
        check_tree(&Bytewise, version.tree(0).unwrap())
    };
    check(two).unwrap();
    for (what, lowers) in [
        ("a span begins within a partition", &["", "d"][..]),
        ("spans are not in order", &["", "f", "c"]),
        ("spans are empty", &["", "c", "c"]),
        ("a span inside has no bound", &["", "", "c"]),
    ] {
        let row = lowers.iter().map(|lower| span(lower, &[])).collect();
        assert!(check(base(tier(1, row))).is_err(), "{what}");
    }
    let mut lower = base(tier(1, vec![span("", &[]), span("c", &[])]));
    lower.trees.push((0, tier(2, vec![span("", &[]), span("f", &[])])));
    assert!(check(lower).is_err(), "a bound that tier 1 does not have");
}

/// The references of all rows are counted, by the rows, and all of them go.
#[test]
fn what_spans_refer_to_is_counted_and_returns() {
    let place = Place::new();
    let edits = life();
    let mut version = apply_all(&edits[..1]).unwrap();
    let mut store = Store::new(place.create(1), 64, &version);
    let mut dead = Vec::new();
    for count in 2..=edits.len() {
        let next = {
            let mut segment = |meta: &SegmentMeta| -> Arc<Segment> {
                let same = |s: &&Arc<Segment>| s.meta() == meta;
                let known = version.segments().find(same).cloned();
                known.unwrap_or_else(|| Segment::new(meta.clone(), file("nowhere")))
            };
            version.apply(&edits[count - 1], &mut segment).unwrap()
        };
        let trees: Vec<_> = [0, 7].map(|id| (id, next.tree(id).cloned())).to_vec();
        let (gone, _) = store.account(&version, &trees);
        dead.extend(gone.segments.iter().map(|segment| segment.meta().file));
        for segment in next.segments() {
            assert!(store.refers_to(segment), "{count} edits, file {}", segment.meta().file);
        }
        for segment in &gone.segments {
            let there = next.segments().any(|other| other.meta().file == segment.meta().file);
            assert!(!there, "{count} edits: file {} is used", segment.meta().file);
        }
        // Each span counts once, however many trees have it.
        let mut seen = std::collections::HashSet::new();
        let (mut pending, mut deltas) = (0, 0);
        for (_, tree) in next.trees() {
            for (tier, row) in tree.rows().iter().enumerate() {
                for part in row.partitions().iter().filter(|p| seen.insert(Arc::as_ptr(p))) {
                    *if tier > 0 { &mut pending } else { &mut deltas } += part.delta_bytes();
                }
            }
        }
        let totals = store.totals();
        assert_eq!((totals.pending_bytes, totals.delta_bytes), (pending, deltas), "{count} edits");
        version = next;
    }
    let (gone, _) = store.account(&version, &[(7, None)]);
    dead.extend(gone.segments.iter().map(|segment| segment.meta().file));
    dead.sort_unstable();
    assert_eq!(dead, [11, 12, 13, 20, 30, 40], "each goes once");
    let totals = store.totals();
    assert_eq!((totals.base_bytes, totals.delta_bytes, totals.pending_bytes), (0, 0, 0));
}

#[test]
fn a_change_moves_only_the_spans_that_it_changes() {
    let edits = life();
    let [before, after] = [4, 5].map(|count| apply_all(&edits[..count]).unwrap());
    let next = before.apply(&edits[4], &mut |meta| Segment::new(meta.clone(), file("x"))).unwrap();
    assert_eq!(rows(&next, 0), rows(&after, 0));
    let [old, new] = [&before, &next].map(|version| version.tree(0).map(AsRef::as_ref));
    let moved = Moved::between_trees(old, new);
    let shown = |moved: &[(usize, Arc<Partition>)]| -> Vec<(usize, usize)> {
        moved.iter().map(|(tier, p)| (*tier, p.deltas.len())).collect()
    };
    assert_eq!((shown(&moved.gone), shown(&moved.come)), (vec![(2, 1)], vec![(2, 2)]));
    assert_eq!(Moved::between_trees(new, None).gone.len(), 5 + 3 + 2);
    assert_eq!(Moved::between_trees(None, new).come.len(), 5 + 3 + 2);
}
