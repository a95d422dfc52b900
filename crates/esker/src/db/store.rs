//! The durable description of the tree, and the one way to change it.
//!
//! 1. A change is an edit and the trees that result. The edit is appended and synced first; only
//!    then readers see the new version, and only then what it dropped may be given back (R22).
//! 2. The store counts how many trees have each partition, and how many partitions refer to each
//!    segment. A segment with no reference left is marked, and goes when its last reader does. The
//!    same holds for files.
//! 3. A failed manifest write poisons the database: nobody knows what the manifest holds (C2).
//!    Running out of space does not (C7): room for the next edit, and for the name of a successor,
//!    is allocated before. Where allocation guarantees nothing, a partly written edit is cut off
//!    again.

use crate::base::{FileId, KeyspaceId, Seq};
use crate::db::Core;
use crate::db::catalog::{Catalog, DEFAULT_KEYSPACE_ID};
use crate::db::headroom::Use;
use crate::db::memset::MemSet;
use crate::db::state::State;
use crate::error::{Error, Result};
use crate::manifest::{Edit, Manifest, Partition, Reach, Tree, Version};
use crate::run::{RunFile, Segment};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The durable description.
#[derive(Debug)]
pub struct Store {
    manifest: Manifest,
    log_start: Seq,
    /// How many trees have each partition, by its address: branches share them (R24).
    partitions: HashMap<usize, u32>,
    segments: HashMap<(FileId, u64), u32>,
    files: HashMap<FileId, (u32, Arc<RunFile>)>,
    totals: Totals,
}

/// Sums over all partitions, each once.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    /// Bytes of bases.
    pub base_bytes: u64,
    /// Bytes of deltas.
    pub delta_bytes: u64,
}

/// A change of the description.
#[derive(Debug, Default)]
pub struct Change {
    /// The edit to write; numbers that always move are filled in.
    pub edit: Edit,
    /// The trees that result; `None`: the tree goes.
    pub trees: Vec<(KeyspaceId, Option<Arc<Tree>>)>,
    /// The memtables whose content the change made durable.
    pub flushed: Option<Arc<MemSet>>,
    /// The snapshots that the change respects, if it removes what other snapshots would see: it is
    /// not made while there are others (R21).
    pub respects: Option<Vec<Seq>>,
}

impl Store {
    /// The description that `version` and the log from `log_start` make up.
    pub fn new(manifest: Manifest, log_start: Seq, version: &Version) -> Self {
        let mut store = Self {
            manifest,
            log_start,
            partitions: HashMap::new(),
            segments: HashMap::new(),
            files: HashMap::new(),
            totals: Totals::default(),
        };
        for (_, tree) in version.trees() {
            tree.partitions().iter().for_each(|partition| store.add(partition));
        }
        store
    }

    /// Where the log must begin.
    pub fn log_start(&self) -> Seq {
        self.log_start
    }

    /// The number of the present manifest.
    pub fn manifest_number(&self) -> u64 {
        self.manifest.number()
    }

    /// Bytes of the present manifest.
    pub fn manifest_bytes(&self) -> u64 {
        self.manifest.bytes()
    }

    /// How far the present manifest reaches.
    pub fn manifest_reach(&self) -> Reach {
        self.manifest.reach()
    }

    /// Sums over all partitions.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether some tree refers to a segment.
    fn refers_to(&self, segment: &Segment) -> bool {
        self.segments.contains_key(&(segment.meta().file, segment.meta().offset))
    }

    /// Whether these partitions are all that refer to a segment, and each is in one tree.
    pub fn is_referred_by(&self, segment: &Segment, partitions: &[Arc<Partition>]) -> bool {
        // Seeded: what a branch shares is written again for its parent, and no space returns.
        bug!("db_shared_segment_is_thinned", return true);
        let count = self.segments.get(&(segment.meta().file, segment.meta().offset));
        let trees =
            |partition: &Arc<Partition>| self.partitions.get(&Arc::as_ptr(partition).addr());
        count.is_some_and(|count| *count as usize == partitions.len())
            && partitions.iter().all(|partition| trees(partition) == Some(&1))
    }

    fn add(&mut self, partition: &Partition) {
        // No other partition has this address as long as some tree has this one.
        let trees = self.partitions.entry(std::ptr::from_ref(partition).addr()).or_default();
        *trees += 1;
        if *trees > 1 {
            return;
        }
        self.totals.base_bytes += partition.base.bytes();
        self.totals.delta_bytes += partition.delta_bytes();
        for segment in partition.segments() {
            let count =
                self.segments.entry((segment.meta().file, segment.meta().offset)).or_default();
            *count += 1;
            if *count == 1 {
                let new = || (0, segment.file().clone());
                self.files.entry(segment.meta().file).or_insert_with(new).0 += 1;
            }
        }
    }

    /// Takes the references of a partition away and collects what has no reference left.
    fn remove(&mut self, partition: &Partition, dead: &mut Dead) {
        // Seeded: dropping a branch gives back what its parent still refers to.
        bug!(
            "db_shared_partitions_not_counted",
            self.partitions.insert(std::ptr::from_ref(partition).addr(), 1)
        );
        let address = std::ptr::from_ref(partition).addr();
        if let Some(trees) = self.partitions.get_mut(&address) {
            *trees -= 1;
            if *trees > 0 {
                return;
            }
            self.partitions.remove(&address);
        }
        self.totals.base_bytes -= partition.base.bytes();
        self.totals.delta_bytes -= partition.delta_bytes();
        for segment in partition.segments() {
            let key = (segment.meta().file, segment.meta().offset);
            let Some(count) = self.segments.get_mut(&key) else { continue };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            self.segments.remove(&key);
            dead.segments.push(segment.clone());
            if let Some((live, _)) = self.files.get_mut(&segment.meta().file) {
                *live -= 1;
                if *live == 0 {
                    let gone = self.files.remove(&segment.meta().file);
                    dead.files.extend(gone.map(|(_, file)| file));
                }
            }
        }
    }
}

/// What a change left without references.
#[derive(Debug, Default)]
struct Dead {
    segments: Vec<Arc<Segment>>,
    files: Vec<Arc<RunFile>>,
}

impl Core {
    /// Makes the change that `build` derives from the present state; `None`: there is nothing to
    /// do. Changes are made one at a time.
    pub(super) fn change(
        &self,
        build: impl FnOnce(&State, &Store) -> Result<Option<Change>>,
    ) -> Result<()> {
        self.try_change(build).map(|_| ())
    }

    /// Like [`Self::change`]; false: the change does not respect an existing snapshot.
    pub(super) fn try_change(
        &self,
        build: impl FnOnce(&State, &Store) -> Result<Option<Change>>,
    ) -> Result<bool> {
        let mut store = self.store.lock();
        self.latch.check()?;
        let before = self.state.load_arc();
        let Some(mut change) = build(&before, &store)? else { return Ok(true) };
        // A caller who takes a snapshot waits until the new state is published, and sees that one.
        let respects = change.respects.take();
        // Seeded: a snapshot that is made during a compaction loses what a filter removed.
        let respects = respects.filter(|_| !bug!("db_filter_races_with_snapshots"));
        let held = match &respects {
            Some(known) => match self.snapshots.hold(known) {
                Some(held) => Some(held),
                None => return Ok(false),
            },
            None => None,
        };
        self.make_change(&mut store, change, held)?;
        if store.manifest.wants_rewrite() {
            self.rewrite_manifest(&mut store)?;
        }
        Ok(true)
    }

    /// Makes a change of the present state: durable first, then visible, then space may return.
    /// While `held` lives, until the change is visible, no snapshot is taken.
    pub(super) fn make_change(
        &self,
        store: &mut Store,
        mut change: Change,
        held: impl Sized,
    ) -> Result<()> {
        let before = self.state.load_arc();
        change.edit.next_file = Some(self.files.peek_next_id());
        // Seeded: after a crash a file number is given out twice.
        bug!("db_next_file_not_recorded", change.edit.next_file = None);
        self.with_space(Use::All, || store.manifest.reserve(&change.edit))?;
        let appended = self.append_with_space(|make_room| {
            store.manifest.append_making_room(&change.edit, make_room)
        });
        if let Err(error) = appended {
            // Seeded: an edit that found no space ends writing.
            if !store.manifest.is_in_doubt() && !bug!("db_full_manifest_ends_writing") {
                // The manifest is as it was.
                return Err(error);
            }
            self.latch.fail(error.clone());
            return Err(error.poisoning());
        }
        // Before anything that the edit dropped is given back.
        self.record_edit(store.manifest.reach())?;
        if let Some(log_start) = change.edit.log_start {
            store.log_start = log_start;
        }
        let (dead, moved) = store.account(&before.version, &change);
        *self.totals.lock() = store.totals();
        self.publish(&change);
        // Judging asks for the snapshots' times.
        drop(held);
        for (id, moved) in moved {
            match moved {
                Some(moved) => self.judge_moved(id, &moved),
                None => self.judge(id, None),
            }
        }
        // The edit is synced and no new reader can find these any more (R22).
        dead.segments.iter().for_each(|segment| segment.mark_obsolete());
        dead.files.iter().for_each(|file| file.mark_obsolete());
        let written = store.manifest.bytes();
        self.counters.background.manifest_bytes.store(written, Ordering::Relaxed);
        Ok(())
    }

    /// Marks what was written to `file` and is in no tree. What was in a tree and left it is marked
    /// already.
    pub(super) fn release_unused(&self, file: &RunFile, made: &[Arc<Segment>]) {
        let store = self.store.lock();
        if !store.files.contains_key(&file.id()) {
            file.mark_obsolete();
            return;
        }
        let unused = made.iter().filter(|segment| !store.refers_to(segment));
        unused.for_each(|segment| segment.mark_obsolete());
    }

    /// Lets readers see the new version, without the memtables that it took over.
    fn publish(&self, change: &Change) {
        self.state.change(|now| {
            if let Some(set) = &change.flushed {
                // Before the set leaves the state, so that no commit misses it.
                self.transactions.flushed(set);
            }
            let version = now.version.with_trees(change.trees.clone());
            now.with_version(version, change.flushed.as_ref())
        });
    }

    /// Starts a new manifest in place of one that has grown (R12).
    fn rewrite_manifest(&self, store: &mut Store) -> Result<()> {
        let version = self.state.load_arc().version.clone();
        let state = self.whole_state(&version, store.log_start, false);
        let fs = self.fs.as_ref();
        let next = match Manifest::create_next(fs, &self.path, store.manifest.number(), &state) {
            Ok(next) => next,
            Err(error) => {
                // The old manifest is whole and goes on; the new one is named nowhere.
                log::warn!("the manifest is not rewritten yet: {error}");
                return Ok(());
            }
        };
        // The old one names its successor first (R12).
        let named = self.append_with_space(|make_room| {
            store.manifest.append_successor(next.number(), make_room)
        });
        if let (Err(error), false) = (&named, store.manifest.is_in_doubt()) {
            log::warn!("the manifest is not rewritten yet: {error}");
            let _ = fs.remove_file(next.path());
            return Ok(());
        }
        let old = store.manifest.number();
        let switched =
            named.and_then(|()| self.with_space(Use::All, || self.record_switch(old, &next)));
        switched.inspect_err(|error| self.latch.fail(error.clone()))?;
        store.manifest = next;
        Ok(())
    }

    /// Everything a new manifest has to say. `moment`: without the branches that were made since
    /// `log_start`.
    pub(super) fn whole_state(&self, version: &Version, log_start: Seq, moment: bool) -> Edit {
        let next_file = self.files.peek_next_id();
        describe_all(&self.catalog.lock(), version, log_start, next_file, moment)
    }
}

/// The whole state as one edit.
pub(super) fn describe_all(
    catalog: &Catalog,
    version: &Version,
    log_start: Seq,
    next_file: FileId,
    moment: bool,
) -> Edit {
    let edit = catalog.description(log_start, moment);
    let mut told: HashSet<KeyspaceId> = edit.created.iter().map(|record| record.id).collect();
    told.insert(DEFAULT_KEYSPACE_ID);
    let trees = version.tree_edits_of(|id| !moment || told.contains(&id));
    Edit { log_start: Some(log_start), next_file: Some(next_file), trees, ..edit }
}

impl Store {
    /// Moves references from the old trees to the new ones. Returns what nothing refers to any
    /// more, and which partitions moved; `None`: the tree is gone.
    fn account(
        &mut self,
        before: &Version,
        change: &Change,
    ) -> (Dead, Vec<(KeyspaceId, Option<Moved>)>) {
        let mut dead = Dead::default();
        let mut all = Vec::new();
        for (id, tree) in &change.trees {
            let old = before.tree(*id).map_or(&[][..], |tree| tree.partitions());
            let new = tree.as_ref().map_or(&[][..], |tree| tree.partitions());
            let moved = Moved::between(old, new);
            moved.come.iter().for_each(|partition| self.add(partition));
            moved.gone.iter().for_each(|partition| self.remove(partition, &mut dead));
            all.push((*id, tree.as_ref().map(|_| moved)));
        }
        (dead, all)
    }
}

/// How the partitions of a tree differ from those of another.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Those that the first has alone.
    pub gone: Vec<Arc<Partition>>,
    /// Those that the second has alone.
    pub come: Vec<Arc<Partition>>,
}

impl Moved {
    /// The difference from `old` to `new`. Their common beginning and end are only compared.
    pub fn between(old: &[Arc<Partition>], new: &[Arc<Partition>]) -> Self {
        let same = |(a, b): &(&Arc<Partition>, &Arc<Partition>)| Arc::ptr_eq(a, b);
        let before = old.iter().zip(new).take_while(same).count();
        let (old, new) = (&old[before..], &new[before..]);
        let behind = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
        let (old, new) = (&old[..old.len() - behind], &new[..new.len() - behind]);
        let alone = |one: &[Arc<Partition>], other: &[Arc<Partition>]| {
            let known: HashSet<_> = other.iter().map(Arc::as_ptr).collect();
            one.iter().filter(|p| !known.contains(&Arc::as_ptr(p))).cloned().collect()
        };
        Self { gone: alone(old, new), come: alone(new, old) }
    }
}

/// The error of an edit that cannot be made because the keyspace's comparator is missing.
pub(super) fn missing_order(name: &str, comparator: &str) -> Error {
    Error::ComparatorMissing { keyspace: name.to_owned(), comparator: comparator.to_owned() }
}
