use super::*;
use crate::base::{Bytewise, KeyspaceId};
use crate::error::{Error, ErrorKind};
use crate::fs::{Fs, OpenMode};
use crate::run::{RunFile, Segment, SegmentKind, SegmentMeta};
use std::path::Path;
use std::sync::Arc;

mod ranges;
mod tiers;

fn meta(file: u64, min: &str, max: &str) -> SegmentMeta {
    SegmentMeta {
        file,
        offset: 64,
        len: 4096,
        tail_len: 100,
        kind: SegmentKind::Data,
        bytewise: true,
        entries: 7,
        deletes: 2,
        shadowed: false,
        raw_bytes: 900,
        min_key: min.into(),
        max_key: max.into(),
        min_seq: 10,
        max_seq: 99,
        ingested: false,
        specials: Default::default(),
        values: Box::default(),
        checksum: 0xfeed,
    }
}

fn run(metas: &[(u64, &str, &str)]) -> RunRecord {
    let segments = metas.iter().map(|(file, min, max)| meta(*file, min, max)).collect();
    RunRecord { segments, tombstones: Vec::new() }
}

fn partition(lower: Option<&str>, base: RunRecord, deltas: Vec<RunRecord>) -> PartitionRecord {
    PartitionRecord { lower: lower.map(|key| key.as_bytes().to_vec()), base, deltas }
}

fn replace(lower: Option<&str>, count: usize, partitions: Vec<PartitionRecord>) -> TreeEdit {
    TreeEdit::Replace {
        tier: 0,
        lower: lower.map(|key| key.as_bytes().to_vec()),
        count,
        partitions,
    }
}

fn one(keyspace: KeyspaceId, change: TreeEdit) -> Edit {
    Edit { trees: vec![(keyspace, change)], ..Edit::default() }
}

fn two_partitions() -> Edit {
    let left = partition(None, run(&[(1, "a", "c"), (2, "d", "f")]), vec![]);
    let right = partition(Some("m"), run(&[(3, "m", "z")]), vec![run(&[(4, "n", "o")])]);
    one(0, replace(None, 1, vec![left, right]))
}

fn apply(version: &Version, edit: &Edit) -> std::result::Result<Version, &'static str> {
    let fs = crate::fs::os();
    let file = RunFile::new(&fs, Path::new("nowhere"), 1, None, None);
    version.apply(edit, &mut |meta| Segment::new(meta.clone(), file.clone()))
}

fn whole_edit() -> Edit {
    let mut edit = two_partitions();
    edit.log_start = Some(1 << 40);
    edit.next_file = Some(77);
    edit.next_keyspace = Some(5);
    let named = |id, name: &str, comparator: Option<&str>| KeyspaceRecord {
        id,
        name: name.to_owned(),
        comparator: comparator.map(str::to_owned),
    };
    edit.created = vec![named(3, "plain", None), named(4, "ordered", Some("reverse"))];
    edit.dropped = vec![2];
    let tombstones = SegmentMeta { kind: SegmentKind::Tombstones, ..meta(9, "", "q") };
    let run = RunRecord { segments: Vec::new(), tombstones: vec![tombstones] };
    edit.trees.push((4, TreeEdit::AddDelta { tier: 0, lower: Some(b"m".to_vec()), count: 1, run }));
    let (lower, run) = (None, RunRecord::default());
    edit.trees.push((4, TreeEdit::AddDelta { tier: 0, lower, count: 2, run }));
    edit
}

// --- Edits

#[test]
fn an_edit_comes_back_as_it_was() {
    for edit in [Edit::default(), two_partitions(), whole_edit()] {
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        assert_eq!(Edit::decode(&bytes).unwrap(), edit);
    }
}

#[test]
fn a_cut_edit_is_an_error_or_a_whole_shorter_edit() {
    let edit = whole_edit();
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    for len in 0..bytes.len() {
        // A cut between two fields leaves fewer fields, never other ones.
        if let Ok(cut) = Edit::decode(&bytes[..len]) {
            let mut again = Vec::new();
            cut.encode(&mut again);
            assert_eq!(again, bytes[..len]);
        }
    }
}

#[test]
fn any_bytes_decode_without_a_panic() {
    let mut whole = Vec::new();
    whole_edit().encode(&mut whole);
    for at in 0..whole.len() {
        for byte in [0, 1, 7, 8, 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let _ = Edit::decode(&damaged);
        }
    }
}

#[test]
fn a_list_longer_than_its_bytes_is_refused_before_it_is_allocated() {
    // A replacement of 2^32 partitions in ten bytes.
    let mut bytes = vec![7, 0, 0, 1];
    crate::base::codec::put_varint(&mut bytes, 1 << 32);
    assert!(Edit::decode(&bytes).is_err());
}

// --- Versions

#[test]
fn a_key_is_found_in_the_partition_whose_bounds_hold_it() {
    let version = apply(&Version::default(), &two_partitions()).unwrap();
    let tree = version.tree(0).unwrap();
    for (key, at) in [("", 0), ("a", 0), ("lzzzzzzzzz", 0), ("m", 1), ("m\0", 1), ("z", 1)] {
        assert_eq!(tree.find(&Bytewise, key.as_bytes()), at, "{key:?}");
    }
    assert_eq!(tree.partitions()[0].upper.as_deref(), Some(&b"m"[..]));
    assert_eq!(tree.partitions()[1].upper, None);
}

#[test]
fn bounds_with_equal_first_bytes_are_told_apart() {
    let bounds = ["aaaaaaaa", "aaaaaaaab", "aaaaaaaabb", "aaaaaaaac"];
    let mut partitions = vec![partition(None, run(&[]), vec![])];
    partitions.extend(bounds.iter().map(|lower| partition(Some(lower), run(&[]), vec![])));
    let version = apply(&Version::default(), &one(0, replace(None, 1, partitions))).unwrap();
    let tree = version.tree(0).unwrap();
    for key in ["", "a", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaab", "aaaaaaaabba", "aaaaaaaad", "b"] {
        let expected = bounds.iter().filter(|lower| **lower <= key).count();
        assert_eq!(tree.find(&Bytewise, key.as_bytes()), expected, "{key:?}");
    }
}

#[test]
fn a_new_delta_lies_on_top_of_the_old_ones() {
    let version = apply(&Version::default(), &two_partitions()).unwrap();
    let (lower, run) = (Some(b"m".to_vec()), run(&[(8, "p", "q")]));
    let add = TreeEdit::AddDelta { tier: 0, lower, count: 1, run };
    let next = apply(&version, &one(0, add)).unwrap();
    let files = |version: &Version| -> Vec<u64> {
        let deltas = &version.tree(0).unwrap().partitions()[1].deltas;
        deltas.iter().map(|run| run.segments()[0].meta().file).collect()
    };
    assert_eq!(files(&next), [8, 4]);
    assert_eq!(files(&version), [4], "the version before stays as it was");
    let shared = |at: usize| {
        let (old, new) = (version.tree(0).unwrap(), next.tree(0).unwrap());
        Arc::ptr_eq(&old.partitions()[at], &new.partitions()[at])
    };
    assert!(shared(0), "what the edit does not touch is shared");
}

#[test]
fn a_delta_for_neighbours_is_one_run() {
    let parts = ["a", "b", "c"].map(|lower| partition(Some(lower), run(&[]), vec![]));
    let first = partition(None, run(&[]), vec![]);
    let parts = std::iter::once(first).chain(parts).collect();
    let version = apply(&Version::default(), &one(0, replace(None, 1, parts))).unwrap();
    let add = |lower: &str, count| {
        let lower = Some(lower.as_bytes().to_vec());
        apply(
            &version,
            &one(0, TreeEdit::AddDelta { tier: 0, lower, count, run: run(&[(8, "b", "c")]) }),
        )
    };
    let next = add("b", 2).unwrap();
    let deltas: Vec<_> =
        next.tree(0).unwrap().partitions().iter().map(|p| p.deltas.clone()).collect();
    assert_eq!(deltas.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert!(Arc::ptr_eq(&deltas[2][0], &deltas[3][0]));
    assert!(add("b", 3).is_err() && add("b", usize::MAX).is_err() && add("b", 0).is_err());
}

/// Replaying an edit passes each partition once, however many of them it changes.
#[test]
fn the_changes_of_an_edit_cost_in_proportion_to_the_tree() {
    for count in [100, 1000] {
        let lower = |number: usize| (number > 0).then(|| format!("{number:06}").into_bytes());
        let parts = (0..count)
            .map(|at| PartitionRecord { lower: lower(at), ..PartitionRecord::default() })
            .collect();
        let version = apply(&Version::default(), &one(0, replace(None, 1, parts))).unwrap();
        let mut draft = Draft::of(version.tree(0).unwrap());
        for at in 0..count {
            let change = if at % 3 == 0 {
                let part = PartitionRecord { lower: lower(at), ..PartitionRecord::default() };
                TreeEdit::Replace { tier: 0, lower: lower(at), count: 1, partitions: vec![part] }
            } else {
                TreeEdit::AddDelta {
                    tier: 0,
                    lower: lower(at),
                    count: 1,
                    run: RunRecord::default(),
                }
            };
            draft.apply(&change, &mut |_| unreachable!("the runs are empty")).unwrap();
        }
        assert!(draft.steps() <= count, "{} steps for {count} partitions", draft.steps());
        assert_eq!(draft.finish().partitions().len(), count);
    }
}

#[test]
fn a_replacement_keeps_the_bounds_around_it() {
    let version = apply(&Version::default(), &two_partitions()).unwrap();
    let parts = vec![partition(None, run(&[]), vec![]), partition(Some("c"), run(&[]), vec![])];
    let next = apply(&version, &one(0, replace(None, 1, parts))).unwrap();
    let bounds: Vec<_> = next
        .tree(0)
        .unwrap()
        .partitions()
        .iter()
        .map(|p| (p.lower.clone(), p.upper.clone()))
        .collect();
    let key = |key: &str| Some(key.as_bytes().to_vec());
    assert_eq!(bounds, [(None, key("c")), (key("c"), key("m")), (key("m"), None)]);
}

#[test]
fn edits_that_do_not_fit_are_refused() {
    let version = apply(&Version::default(), &two_partitions()).unwrap();
    let empty = || partition(Some("m"), run(&[]), vec![]);
    for (what, change) in [
        ("no such partition", replace(Some("k"), 1, vec![empty()])),
        ("more than there are", replace(Some("m"), 2, vec![empty()])),
        ("none replaced", replace(Some("m"), 0, vec![empty()])),
        ("nothing in its place", replace(Some("m"), 1, vec![])),
        ("begins elsewhere", replace(Some("m"), 1, vec![partition(Some("n"), run(&[]), vec![])])),
    ] {
        assert!(apply(&version, &one(0, change)).is_err(), "{what}");
    }
}

#[test]
fn dropping_a_keyspace_takes_its_tree_away() {
    let version = apply(&Version::default(), &two_partitions()).unwrap();
    let dropped = apply(&version, &Edit { dropped: vec![0], ..Edit::default() }).unwrap();
    assert!(dropped.tree(0).is_none());
    assert_eq!(version.segments().count(), 4);
    assert_eq!(dropped.segments().count(), 0);
}

#[test]
fn a_version_written_as_edits_reads_back_as_the_same_version() {
    let mut version = apply(&Version::default(), &two_partitions()).unwrap();
    let other = replace(None, 1, vec![partition(None, run(&[(5, "x", "y")]), vec![])]);
    version = apply(&version, &one(7, other)).unwrap();
    let edit = Edit { trees: version.tree_edits(), ..Edit::default() };
    let again = apply(&Version::default(), &edit).unwrap();
    assert_eq!(again.tree_edits(), version.tree_edits());
}

#[test]
fn crafted_trees_out_of_order_are_refused() {
    let check = |partitions| {
        let version = apply(&Version::default(), &one(0, replace(None, 1, partitions))).unwrap();
        check_tree(&Bytewise, version.tree(0).unwrap())
    };
    let plain = |lower| partition(lower, run(&[]), vec![]);
    let with = |metas: &[(u64, &str, &str)]| vec![partition(None, run(metas), vec![])];
    assert!(check(vec![plain(None), plain(Some("b")), plain(Some("c"))]).is_ok());
    assert!(check(vec![plain(None), plain(Some("c")), plain(Some("b"))]).is_err());
    assert!(check(vec![plain(None), plain(Some("b")), plain(Some("b"))]).is_err());
    assert!(check(vec![plain(None), plain(None)]).is_err());
    assert!(check(with(&[(1, "a", "c"), (2, "d", "e")])).is_ok());
    assert!(check(with(&[(1, "c", "a")])).is_err(), "a segment ends before it begins");
    assert!(check(with(&[(1, "a", "c"), (2, "c", "e")])).is_err(), "segments overlap");
}

// --- The manifest file

struct Place {
    fs: Arc<dyn Fs>,
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { fs: crate::fs::os(), dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn create(&self, number: u64) -> Manifest {
        let state = Edit { log_start: Some(64), ..Edit::default() };
        Manifest::create(self.fs.as_ref(), self.path(), number, &state).unwrap()
    }

    fn read(&self, number: u64) -> crate::error::Result<Recovered> {
        read(self.fs.as_ref(), self.path(), number, None)
    }

    fn file(&self, number: u64) -> std::path::PathBuf {
        self.path().join(manifest_name(number))
    }

    /// Changes the bytes of a file as a disk might.
    fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(path).unwrap();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_manifest_reads_back_what_was_appended() {
    let place = Place::new();
    let mut manifest = place.create(3);
    manifest.append(&whole_edit()).unwrap();
    manifest.append(&Edit { next_file: Some(9), ..Edit::default() }).unwrap();
    let found = place.read(3).unwrap();
    assert_eq!(found.edits.len(), 3);
    assert_eq!(found.edits[1], whole_edit());
    assert_eq!(found.edits[2].next_file, Some(9));
    assert_eq!(found.reach, manifest.reach());
    assert!(!found.torn);
}

#[test]
fn an_incomplete_last_record_is_a_torn_tail() {
    let place = Place::new();
    let mut manifest = place.create(1);
    let before = manifest.bytes() as usize;
    manifest.append(&whole_edit()).unwrap();
    let whole = std::fs::read(place.file(1)).unwrap();
    for len in before..manifest.bytes() as usize - 8 {
        std::fs::write(place.file(1), &whole[..len]).unwrap();
        let found = place.read(1).unwrap_or_else(|error| panic!("cut at {len}: {error}"));
        assert_eq!((found.edits.len(), found.reach.len as usize), (1, before), "cut at {len}");
    }
}

#[test]
fn damage_before_a_whole_record_is_corruption() {
    let place = Place::new();
    let mut manifest = place.create(1);
    let second = manifest.bytes() as usize;
    manifest.append(&whole_edit()).unwrap();
    let third = manifest.bytes() as usize;
    manifest.append(&Edit { next_file: Some(9), ..Edit::default() }).unwrap();
    for at in (second + 4..third - 8).step_by(3) {
        place.damage(&place.file(1), |bytes| bytes[at] ^= 0x10);
        let error = place.read(1).expect_err("damage is told from a torn end");
        let Error::Corruption(corruption) = &error else { panic!("byte {at}: {error}") };
        assert_eq!(corruption.offset as usize, second);
        place.damage(&place.file(1), |bytes| bytes[at] ^= 0x10);
    }
    assert!(place.read(1).is_ok());
}

#[test]
fn a_damaged_first_record_is_corruption() {
    let place = Place::new();
    place.create(1);
    place.damage(&place.file(1), |bytes| bytes[80] ^= 1);
    assert_eq!(place.read(1).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_record_does_not_pass_at_another_place_or_in_another_manifest() {
    let place = Place::new();
    let mut one = place.create(1);
    one.append(&whole_edit()).unwrap();
    let mut two = place.create(2);
    two.append(&whole_edit()).unwrap();
    // The same edit at the same offset of another file: only the nonce differs.
    let donor = std::fs::read(place.file(1)).unwrap();
    place.damage(&place.file(2), |bytes| {
        bytes.truncate(64);
        bytes.extend_from_slice(&donor[64..]);
    });
    assert_eq!(place.read(2).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_manifest_under_another_number_is_refused() {
    let place = Place::new();
    place.create(1);
    std::fs::rename(place.file(1), place.file(2)).unwrap();
    assert_eq!(place.read(2).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(place.read(1).unwrap_err().kind(), ErrorKind::Corruption, "and the gap is damage");
}

#[test]
fn a_manifest_of_an_unknown_version_is_refused_as_such() {
    let place = Place::new();
    place.create(1);
    place.damage(&place.file(1), |bytes| {
        bytes[8] = 4;
        let sum = crate::base::codec::checksum(0, 0, &bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    });
    let error = place.read(1).unwrap_err();
    assert!(matches!(error, Error::UnknownFormat { found: 4, supported: 3, .. }), "{error}");
}

#[test]
fn a_retired_manifest_leads_to_its_successor() {
    let place = Place::new();
    let mut old = place.create(1);
    place.create(2).append(&whole_edit()).unwrap();
    assert_eq!(place.read(1).unwrap().number, 1);
    old.append_successor(2, &mut || false).unwrap();
    let found = place.read(1).unwrap();
    assert_eq!((found.number, found.edits.len()), (2, 2));
}

#[test]
fn successors_cannot_run_in_a_circle() {
    let place = Place::new();
    let mut manifest = place.create(1);
    manifest.append_successor(1, &mut || false).unwrap();
    assert_eq!(place.read(1).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn space_reserved_ahead_is_no_tail() {
    let place = Place::new();
    let mut manifest = place.create(1);
    manifest.reserve(&whole_edit()).unwrap();
    assert!(!place.read(1).unwrap().torn);
    manifest.append(&whole_edit()).unwrap();
    assert_eq!(place.read(1).unwrap().edits.len(), 2);
}

#[test]
fn a_manifest_asks_for_a_fresh_one_when_it_has_grown() {
    let place = Place::new();
    let mut manifest = place.create(1);
    assert!(!manifest.wants_rewrite());
    let segments = (0..2000).map(|file| meta(file, "aaaaaaaaaaaaaaaaaaaa", "b")).collect();
    let base = RunRecord { segments, tombstones: Vec::new() };
    let big = one(0, replace(None, 1, vec![partition(None, base, vec![])]));
    while !manifest.wants_rewrite() {
        assert!(manifest.bytes() < 1 << 20);
        manifest.append(&big).unwrap();
    }
}

#[test]
fn names_of_manifests_are_read_strictly() {
    assert_eq!(parse_manifest_name("MANIFEST-000012"), Some(12));
    assert_eq!(parse_manifest_name(&manifest_name(12_345_678)), Some(12_345_678));
    for name in ["MANIFEST-12", "MANIFEST-00001x", "MANIFEST-+00012", "manifest-000012", ""] {
        assert_eq!(parse_manifest_name(name), None, "{name}");
    }
}

// --- What is known of a manifest

#[test]
fn a_manifest_that_lost_what_is_known_of_it_is_refused_by_name() {
    let place = Place::new();
    let mut manifest = place.create(1);
    let mut known = vec![manifest.reach()];
    for edit in [whole_edit(), Edit { next_file: Some(9), ..Edit::default() }] {
        manifest.append(&edit).unwrap();
        known.push(manifest.reach());
    }
    let read = |known| read(place.fs.as_ref(), place.path(), 1, Some(known));
    let whole = std::fs::read(place.file(1)).unwrap();
    // It may always be longer than is known.
    known.iter().for_each(|known| assert!(read(*known).is_ok()));
    let (before, after) = (known[1].len as usize, known[2].len as usize);
    for bit in before * 8..after * 8 {
        // The padding at its end belongs to no checksum; nothing is lost there.
        let padding = bit >= (after - 6) * 8;
        place.damage(&place.file(1), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        let found = read(known[2]);
        assert!(padding || matches!(found, Err(Error::Corruption(_))), "bit {bit}: {found:?}");
        assert_eq!(read(known[1]).unwrap().edits.len(), if found.is_ok() { 3 } else { 2 });
        std::fs::write(place.file(1), &whole).unwrap();
    }
    place.damage(&place.file(1), |bytes| bytes.truncate(before));
    let Err(Error::Corruption(found)) = read(known[2]) else { panic!("an older file passed") };
    assert_eq!(found.offset as usize, before);
    assert!(found.detail.contains("older"), "{}", found.detail);
}

#[test]
fn another_manifest_of_the_same_number_is_refused() {
    let (place, other) = (Place::new(), Place::new());
    let known = place.create(1).reach();
    other.create(1);
    std::fs::copy(other.file(1), place.file(1)).unwrap();
    let read = |known| read(place.fs.as_ref(), place.path(), 1, Some(known));
    assert_eq!(read(known).unwrap_err().kind(), ErrorKind::Corruption);
    let found = place.read(1).unwrap().reach;
    assert!(read(found).is_ok());
    let hash = found.hash ^ 1;
    assert_eq!(read(Reach { hash, ..found }).unwrap_err().kind(), ErrorKind::Corruption);
}

// --- Superblocks

fn superblock(manifest: u64) -> Superblock {
    let known = Known {
        manifest: Reach { nonce: 11, len: 4096, hash: 13 },
        log: crate::wal::Reach { position: 80_000, nonce: 17 },
        closed: true,
    };
    let version = FORMAT_VERSION;
    Superblock { version, generation: 0, manifest, database: [7; 16], known: Some(known) }
}

impl Place {
    fn superblocks(&self) -> crate::error::Result<Option<Superblocks>> {
        Superblocks::read(self.fs.as_ref(), self.path())
    }

    fn first_superblocks(&self, manifest: u64) -> Superblocks {
        Superblocks::create(self.fs.as_ref(), self.path(), superblock(manifest)).unwrap()
    }
}

#[test]
fn a_directory_without_superblocks_has_none() {
    let place = Place::new();
    assert!(place.superblocks().unwrap().is_none());
    for name in SUPERBLOCK_NAMES {
        place.fs.open(&place.path().join(name), OpenMode::CreateNew).unwrap();
    }
    assert!(place.superblocks().unwrap().is_none());
}

#[test]
fn both_superblocks_carry_the_new_state() {
    let place = Place::new();
    assert_eq!(place.first_superblocks(5).current().generation, 2);
    for (name, generation) in SUPERBLOCK_NAMES.iter().zip(1..) {
        let found = Superblock::read_file(place.fs.as_ref(), &place.path().join(name)).unwrap();
        assert_eq!(found, Some(Superblock { generation, ..superblock(5) }), "{name}");
    }
}

#[test]
fn either_superblock_is_enough() {
    let place = Place::new();
    place.first_superblocks(5);
    for name in SUPERBLOCK_NAMES {
        let path = place.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            place.damage(&path, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            let error = Superblock::read_file(place.fs.as_ref(), &path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{name}, bit {bit}");
            let found = place.superblocks().unwrap().unwrap();
            assert_eq!(found.current().known, superblock(5).known, "{name}, bit {bit}");
            std::fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn two_damaged_superblocks_are_corruption() {
    let place = Place::new();
    place.first_superblocks(5);
    for name in SUPERBLOCK_NAMES {
        place.damage(&place.path().join(name), |bytes| bytes[30] ^= 1);
    }
    assert_eq!(place.superblocks().unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn the_superblock_with_the_greater_generation_counts_and_the_other_is_written() {
    let place = Place::new();
    let mut written = place.first_superblocks(5);
    for manifest in 6..10 {
        let bytes = || SUPERBLOCK_NAMES.map(|name| std::fs::read(place.path().join(name)).unwrap());
        let before = bytes();
        written.write_one(place.fs.as_ref(), place.path(), superblock(manifest)).unwrap();
        let slot = (manifest % 2) as usize;
        assert_eq!(bytes()[1 - slot], before[1 - slot], "the one that counted was overwritten");
        let found = place.superblocks().unwrap().unwrap();
        assert_eq!(found.current(), written.current());
        assert_eq!(found.current().manifest, manifest);
        // Swapped files mean the same, and the one that counts is still not written first.
        let [a, b] = SUPERBLOCK_NAMES.map(|name| place.path().join(name));
        let after = bytes();
        std::fs::write(&a, &after[1]).unwrap();
        std::fs::write(&b, &after[0]).unwrap();
        let mut swapped = place.superblocks().unwrap().unwrap();
        swapped.write_one(place.fs.as_ref(), place.path(), superblock(99)).unwrap();
        assert_eq!(bytes()[1 - slot], after[slot]);
        std::fs::write(&a, &after[0]).unwrap();
        std::fs::write(&b, &after[1]).unwrap();
    }
}

/// The first 64 bytes of a superblock are one of version 1, up to the number of the version.
#[test]
fn superblocks_of_version_1_are_read_and_a_reader_of_version_1_refuses_ours_by_name() {
    let place = Place::new();
    place.first_superblocks(5);
    let path = place.path().join(SUPERBLOCK_NAMES[0]);
    let bytes = std::fs::read(&path).unwrap();
    let sum = |bytes: &[u8]| crate::base::codec::checksum(0, 0, &bytes[..56]).to_le_bytes();
    assert_eq!((bytes[8], &bytes[56..64]), (3, &sum(&bytes)[..]));
    place.damage(&path, |bytes| {
        bytes.truncate(64);
        bytes[8] = 1;
        let sum = sum(bytes);
        bytes[56..].copy_from_slice(&sum);
    });
    let found = Superblock::read_file(place.fs.as_ref(), &path).unwrap().unwrap();
    assert_eq!(found, Superblock { version: 1, generation: 1, known: None, ..superblock(5) });
}

/// A superblock of version 2 that is written again, to be durable, keeps every byte: a torn write
/// of other bytes could leave no superblock at all.
#[test]
fn a_superblock_of_version_2_is_read_and_written_again_as_it_was() {
    let place = Place::new();
    place.first_superblocks(5);
    for name in SUPERBLOCK_NAMES {
        place.damage(&place.path().join(name), |bytes| {
            bytes[8] = 2;
            let sum = crate::base::codec::checksum(0, 0, &bytes[..56]).to_le_bytes();
            bytes[56..64].copy_from_slice(&sum);
            let sum = crate::base::codec::checksum(1, 0, &bytes[..504]).to_le_bytes();
            bytes[504..].copy_from_slice(&sum);
        });
    }
    let bytes = || SUPERBLOCK_NAMES.map(|name| std::fs::read(place.path().join(name)).unwrap());
    let before = bytes();
    let mut found = place.superblocks().unwrap().unwrap();
    assert_eq!((found.current().version, found.current().generation), (2, 2));
    found.write_one(place.fs.as_ref(), place.path(), superblock(6)).unwrap();
    assert_eq!(bytes()[1], before[1], "the one that counts");
    assert_eq!((bytes()[0][8], found.current().version), (3, 3));
    let again = place.superblocks().unwrap().unwrap();
    assert_eq!((again.current().version, again.current().manifest), (3, 6));
}

#[test]
fn an_unknown_version_in_either_superblock_refuses() {
    for name in SUPERBLOCK_NAMES {
        let place = Place::new();
        place.first_superblocks(5);
        place.damage(&place.path().join(name), |bytes| {
            bytes[8] = 9;
            let sum = crate::base::codec::checksum(0, 0, &bytes[..56]);
            bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        });
        assert_eq!(place.superblocks().unwrap_err().kind(), ErrorKind::UnknownFormat, "{name}");
    }
}
