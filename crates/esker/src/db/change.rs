//! The durable description of the tree, and the one way to change it.
//!
//! 1. A change is an edit and the resulting trees. The edit is appended and synced first. Only then
//!    do readers see the new version, and only then may what the edit dropped be freed (R22).
//! 2. The store counts how many trees contain each partition, and how many partitions refer to each
//!    segment. A segment without references is marked, and is freed when its last reader is done.
//!    The same holds for files.
//! 3. A failed manifest write poisons the database, since the content of the manifest is then
//!    unknown (C2). Lack of space does not (C7): space for the next edit, and for the name of a
//!    successor, is allocated before. If allocation guarantees nothing, a partly written edit is
//!    cut off again.

use crate::base::{KeyspaceId, Seq};
use crate::compaction::install::Installed;
use crate::compaction::queue::PartitionKey;
use crate::compaction::tiers::Rows;
use crate::db::core::Core;
use crate::directory::reserve::Use;
use crate::error::Result;
use crate::manifest::{Edit, Manifest, Store, Tree, Version};
use crate::run::{RunFile, Segment};
use crate::state::State;
use crate::state::memtables::MemtableSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A change of the description.
#[derive(Debug, Default)]
pub struct Change {
    /// The edit to write; the numbers that change with every edit are filled in.
    pub edit: Edit,
    /// The resulting trees; `None`: the tree is removed.
    pub trees: Vec<(KeyspaceId, Option<Arc<Tree>>)>,
    /// The memtables whose content the change made durable.
    pub flushed: Option<Arc<MemtableSet>>,
    /// The snapshots that the change respects, if it removes entries that other snapshots would
    /// see. If there are other snapshots, the change is not made (R21).
    pub respects: Option<Vec<Seq>>,
}

impl Change {
    /// The change that puts rows in place, if there are any. `surplus` gets the spans of tiers that are
    /// not wanted any more.
    pub fn of_rows(installed: Installed, surplus: &mut Vec<PartitionKey>) -> Option<Self> {
        let mut change = Self::default();
        for (id, (_, rows)) in installed {
            surplus.extend(rows.surplus(id));
            change.put_rows(id, rows);
        }
        (!change.trees.is_empty()).then_some(change)
    }

    /// Puts the rows of a tree in place.
    pub fn put_rows(&mut self, id: KeyspaceId, rows: Rows) {
        let (tree, edits) = rows.finish();
        self.edit.trees.extend(edits.into_iter().map(|edit| (id, edit)));
        self.trees.push((id, Some(Arc::new(tree))));
    }
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
        // A caller that takes a snapshot waits until the new state is published, and sees that
        // state.
        let respects = change.respects.take();
        // Seeded: a snapshot that is taken during a compaction loses entries that a filter removed.
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

    /// Makes a change of the present state: first durable, then visible; then space may be freed.
    /// While `held` lives, until the change is visible, no snapshot is taken.
    pub(crate) fn make_change(
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
                // The manifest is unchanged.
                return Err(error);
            }
            self.latch.fail(error.clone());
            return Err(error.poisoning());
        }
        // The edit is recorded before anything that it dropped is freed.
        self.record_edit(store.manifest.reach())?;
        if let Some(log_start) = change.edit.log_start {
            store.log_start = log_start;
        }
        let (dead, moved) = store.account(&before.version, &change.trees);
        *self.totals.lock() = store.totals();
        self.settings.follow(store.totals().base_bytes);
        self.publish(&change);
        // Scoring reads the snapshots' times, so the guard is dropped before.
        drop(held);
        for ((id, moved), (_, tree)) in moved.iter().zip(&change.trees) {
            match tree.as_deref().zip(moved.as_ref()) {
                Some((tree, moved)) => self.rescore_moved(*id, tree, moved),
                None => self.rescore(*id, None),
            }
        }
        // The edit is synced, and no new reader can reach these segments (R22).
        dead.segments.iter().for_each(|segment| segment.mark_obsolete());
        dead.files.iter().for_each(|file| file.mark_obsolete());
        let written = store.manifest.bytes();
        self.counters.background.manifest_bytes.store(written, Ordering::Relaxed);
        Ok(())
    }

    /// Marks the segments in `file` that were written but are in no tree. Segments that were in a
    /// tree and left it are marked already.
    pub(super) fn release_unused(&self, file: &RunFile, made: &[Arc<Segment>]) {
        let store = self.store.lock();
        if !store.refers_to_file(file) {
            file.mark_obsolete();
            return;
        }
        let made = made.iter().flat_map(|segment| segment.with_its_values());
        let written = made.filter(|segment| segment.meta().file == file.id());
        let unused = written.filter(|segment| !store.refers_to(segment));
        unused.for_each(|segment| segment.mark_obsolete());
    }

    /// Publishes the new version, without the memtables whose entries it contains.
    fn publish(&self, change: &Change) {
        self.state.change(|now| {
            if let Some(set) = &change.flushed {
                // The set is handed over before it leaves the state, so that no commit misses it.
                self.transactions.flushed(set);
            }
            let version = now.version.with_trees(change.trees.clone());
            now.with_version(version, change.flushed.as_ref())
        });
    }

    /// Starts a new manifest to replace one that has grown (R12).
    fn rewrite_manifest(&self, store: &mut Store) -> Result<()> {
        let version = self.state.load_arc().version.clone();
        let state = self.whole_state(&version, store.log_start, false);
        let fs = self.fs.as_ref();
        let next = match Manifest::create_next(fs, &self.path, store.manifest.number(), &state) {
            Ok(next) => next,
            Err(error) => {
                // The old manifest is whole and stays in use; nothing names the new one.
                self.monitor.manifest_not_rewritten(&error);
                return Ok(());
            }
        };
        // The old manifest names its successor first (R12).
        let named = self.append_with_space(|make_room| {
            store.manifest.append_successor(next.number(), make_room)
        });
        if let (Err(error), false) = (&named, store.manifest.is_in_doubt()) {
            self.monitor.manifest_not_rewritten(error);
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

    /// The whole content of a new manifest. `moment`: without the branches that were made since
    /// `log_start`.
    pub(super) fn whole_state(&self, version: &Version, log_start: Seq, moment: bool) -> Edit {
        let next_file = self.files.peek_next_id();
        self.catalog.lock().whole_state(version, log_start, next_file, moment)
    }
}
