//! Branches and named snapshots: sets of keyspaces that begin as copies of others (R24).
//!
//! 1. A branch is made at one position of the log, its *point*. The memtables are sealed there, so
//!    every set of memtables lies completely before the point, and is shared, or completely after
//!    it. The branch finds entries of a shared set under the number of the original
//!    (`Home::id_at`), and the set's flush adds the same run to the trees of original and copies.
//! 2. The log is made durable up to the point first, then the manifest's edit for the branch; the
//!    edit names the point. So after a crash the log reaches the point of every existing branch: no
//!    later write gets a sequence number below the point, and a branch has all entries that it
//!    shared. Replay seals its memtables at the points too. The log itself needs no record of the
//!    branch.
//! 3. Trees are shared as they are, partition by partition; the edit names the copied keyspaces
//!    and no segment. A compaction is installed where trees have not diverged, and leaves named
//!    snapshots as they were (`compaction::install`).
//! 4. Space is freed when no branch refers to it (R22): `store` counts references.
//! 5. A named snapshot is a branch that is neither written nor compacted.

use crate::base::{KeyspaceId, Seq};
use crate::catalog::{BranchState, Catalog, KeyspaceState, check_name};
use crate::commit::Pipeline;
use crate::db::change::Change;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::manifest::{BranchKind, BranchRecord, Edit, KeyspaceRecord, Traits};
use crate::state::memtables::MemtableSet;
use std::sync::Arc;

/// A branch is made without a wait while at most this many sets of memtables wait for their flush.
const SETS_MAX: usize = 16;

impl Core {
    /// Makes a branch or named snapshot of `parent` as it is now.
    pub fn make_branch(
        &self,
        parent: &BranchState,
        name: &str,
        kind: BranchKind,
    ) -> Result<Arc<BranchState>> {
        let pipeline = self.writable()?;
        check_name("name of the branch", name)?;
        // Writes that are not logged would be lost to the branch in a crash (C3).
        self.flush_buffered()?;
        self.wait_for_sets()?;
        let placing = self.placing.lock();
        let mut store = self.store.lock();
        let mut catalog = self.catalog.lock();
        // Close waits for the store, so nothing is written after it.
        self.check_open()?;
        self.latch.check()?;
        parent.check()?;
        if catalog.branch_named(name).is_some() {
            return Err(Error::BranchExists { branch: name.to_owned() });
        }
        let originals: Vec<_> = catalog.live(parent.id).cloned().collect();
        catalog.check_room(originals.len())?;
        let point = self.seal_here(pipeline);
        drop(placing);
        // Seeded: a branch is durable before what it shares with its parent.
        pipeline.sync(if bug!("db_branch_point_not_synced") { 0 } else { point })?;
        // The clock is read after the point is fixed, so all entries of the branch were written at
        // this time or before.
        let made_at = self.now();
        let record = BranchRecord {
            id: catalog.next_id(),
            name: name.to_owned(),
            kind,
            made_at,
            point,
            copies: copies(&originals, catalog.next_id()),
        };
        // Seeded: a branch sees writes to its parent that come after it was made.
        let record = BranchRecord {
            point: if bug!("db_branch_point_too_late") { point + 4096 } else { point },
            ..record
        };
        let change = self.branch_change(&catalog, &record);
        self.work.inherit(&record.copies);
        if kind == BranchKind::Snapshot {
            self.work.keep_still(record.copies.iter().map(|(copy, _)| *copy));
        }
        if let Err(error) = self.make_change(&mut store, change, ()) {
            // The numbers are free again, and later keyspaces with these numbers may be compacted.
            let copies = record.copies.iter();
            copies.for_each(|(copy, _)| self.rescore(*copy, None));
            return Err(error);
        }
        let branch = catalog.add_branch(&record);
        drop((catalog, store));
        self.work.notify();
        Ok(branch)
    }

    /// The edit and the trees of a new branch.
    fn branch_change(&self, catalog: &Catalog, record: &BranchRecord) -> Change {
        let version = self.state_now().version.clone();
        let last = record.copies.iter().map(|(copy, _)| *copy).max().unwrap_or(record.id);
        let mut created = Vec::new();
        let (mut traits, mut trees) = (Vec::new(), Vec::new());
        for (copy, original) in &record.copies {
            let Some(state) = catalog.by_id(*original) else { continue };
            let stored = state.traits().names.clone();
            if stored != Traits::default() {
                traits.push((*copy, stored));
            }
            if catalog.is_new(*original) {
                // The manifest cannot copy a keyspace that it does not record yet.
                let comparator = state.comparator_name().map(str::to_owned);
                let name = state.name.clone();
                created.push(KeyspaceRecord { id: *copy, name, comparator });
            }
            if let Some(tree) = version.tree(*original) {
                trees.push((*copy, Some(tree.clone())));
            }
        }
        let edit = Edit {
            branches: vec![record.clone()],
            created,
            traits,
            next_keyspace: Some(last.saturating_add(1)),
            ..Edit::default()
        };
        Change { edit, trees, ..Change::default() }
    }

    /// Seals the active memtables at a position that separates earlier from later writes, over all
    /// keyspaces. The caller holds `placing`.
    fn seal_here(&self, pipeline: &Pipeline) -> Seq {
        pipeline.seal(|position| {
            // Seals come one at a time, and only seals replace the active set.
            if self.state.load_arc().active().start < position {
                self.state.seal(MemtableSet::new(
                    position,
                    self.settings.memtable_sizes(),
                    &self.pool,
                ));
            }
            position
        })
    }

    /// Waits while too many sets of memtables wait for their flush.
    fn wait_for_sets(&self) -> Result<()> {
        loop {
            let seen = self.work.done().epoch();
            if self.state_now().memtable_sets.len() <= SETS_MAX {
                return Ok(());
            }
            self.wait_for_work(seen, crate::sync::Interruption::NEVER)?;
        }
    }

    /// Drops a branch or named snapshot; returns whether there was one.
    pub fn drop_branch(&self, name: &str, kind: BranchKind) -> Result<bool> {
        let pipeline = self.writable()?;
        let mut store = self.store.lock();
        let mut catalog = self.catalog.lock();
        self.check_open()?;
        self.latch.check()?;
        let found = catalog.branch_named(name).filter(|branch| branch.kind == kind).cloned();
        let Some(branch) = found else { return Ok(false) };
        let keyspaces = catalog.of_branch(branch.id);
        let live: Vec<_> = catalog.live(branch.id).cloned().collect();
        // A write that reserves after this position sees the marks and fails (R16).
        let position = pipeline.seal(|position| {
            live.iter().for_each(|keyspace| keyspace.mark_dropped(position));
            position
        });
        let known = keyspaces.iter().filter(|keyspace| !catalog.is_new(keyspace.id));
        let edit = Edit {
            dropped: known.map(|keyspace| keyspace.id).collect(),
            branches_dropped: vec![branch.id],
            next_keyspace: Some(catalog.next_id()),
            ..Edit::default()
        };
        let trees = keyspaces.iter().map(|keyspace| (keyspace.id, None)).collect();
        // What was written before the drop does not come back without the drop being undone too.
        let dropped = pipeline.sync(position).and_then(|()| {
            let change = Change { edit, trees, ..Change::default() };
            self.make_change(&mut store, change, ())
        });
        if let Err(error) = dropped {
            live.iter().for_each(|keyspace| keyspace.unmark_dropped());
            return Err(error);
        }
        catalog.remove_branch(branch.id);
        drop((catalog, store));
        self.work.notify();
        Ok(true)
    }

    /// The branch or named snapshot of this name.
    pub fn find_branch(&self, name: &str, kind: BranchKind) -> Result<Arc<BranchState>> {
        self.check_open()?;
        let catalog = self.catalog.lock();
        let found = catalog.branch_named(name).filter(|branch| branch.kind == kind);
        found.cloned().ok_or_else(|| Error::BranchMissing { branch: name.to_owned() })
    }

    /// Every branch, or every named snapshot, by name.
    pub fn branches(&self, kind: BranchKind) -> Result<Vec<Arc<BranchState>>> {
        self.check_open()?;
        let catalog = self.catalog.lock();
        let mut found: Vec<_> =
            catalog.branches().filter(|branch| branch.kind == kind).cloned().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Tells the background, at open, which trees must not be compacted.
    pub(super) fn keep_snapshots_still(&self) {
        let catalog = self.catalog.lock();
        for branch in catalog.branches().filter(|branch| branch.kind == BranchKind::Snapshot) {
            let keyspaces = catalog.of_branch(branch.id);
            self.work.keep_still(keyspaces.iter().map(|keyspace| keyspace.id));
        }
    }
}

/// The copies of a branch's keyspaces, numbered from `first`. The one called `default` comes first,
/// since the branch has its number.
fn copies(originals: &[Arc<KeyspaceState>], first: KeyspaceId) -> Vec<(KeyspaceId, KeyspaceId)> {
    let mut ids: Vec<(bool, KeyspaceId)> = originals
        .iter()
        .map(|original| (original.name != crate::catalog::DEFAULT_KEYSPACE, original.id))
        .collect();
    ids.sort_unstable();
    (first..).zip(ids.into_iter().map(|(_, id)| id)).collect()
}
