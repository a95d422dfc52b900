//! The part of the catalog that knows the branches and the keyspaces of each.

use super::{Catalog, Change, DEFAULT_KEYSPACE_ID, KeyspaceState};
use crate::base::{FileId, KeyspaceId, Seq};
use crate::error::{Error, Result};
use crate::manifest::{BranchKind, BranchRecord, Edit, Home, KeyspaceRecord, Traits, Version};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A branch or named snapshot of an open database.
#[derive(Debug)]
pub struct BranchState {
    /// Its number; 0: the database itself.
    pub id: KeyspaceId,
    /// Its name; empty for the database itself.
    pub name: String,
    /// Whether it is a branch or a named snapshot.
    pub kind: BranchKind,
    /// When it was created: milliseconds since 1970.
    pub made_at: u64,
    /// The position at which it was copied from its parent.
    pub point: Seq,
    dropped: AtomicBool,
}

impl BranchState {
    /// The database itself, described as a branch.
    pub fn main() -> Arc<Self> {
        Arc::new(Self::new(&BranchRecord {
            id: DEFAULT_KEYSPACE_ID,
            name: String::new(),
            kind: BranchKind::Branch,
            made_at: 0,
            point: 0,
            copies: Vec::new(),
        }))
    }

    fn new(record: &BranchRecord) -> Self {
        Self {
            id: record.id,
            name: record.name.clone(),
            kind: record.kind,
            made_at: record.made_at,
            point: record.point,
            dropped: AtomicBool::new(false),
        }
    }

    /// An error if it was dropped.
    pub fn check(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            return Err(Error::BranchMissing { branch: self.name.clone() });
        }
        Ok(())
    }

    /// An error if it was dropped or is a named snapshot.
    pub fn check_writable(&self) -> Result<()> {
        self.check()?;
        if self.kind == BranchKind::Snapshot {
            return Err(Error::ReadOnly);
        }
        Ok(())
    }

    fn record(&self) -> BranchRecord {
        BranchRecord {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            made_at: self.made_at,
            point: self.point,
            copies: Vec::new(),
        }
    }
}

impl Catalog {
    /// The whole state as one edit. `moment`: without the branches that were created since
    /// `log_start`.
    pub fn whole_state(
        &self,
        version: &Version,
        log_start: Seq,
        next_file: FileId,
        moment: bool,
    ) -> Edit {
        let edit = self.description(log_start, moment);
        let mut told: HashSet<KeyspaceId> = edit.created.iter().map(|record| record.id).collect();
        told.insert(DEFAULT_KEYSPACE_ID);
        let trees = version.tree_edits_of(|id| !moment || told.contains(&id));
        Edit { log_start: Some(log_start), next_file: Some(next_file), trees, ..edit }
    }

    /// Applies what an edit says about branches and about created and dropped keyspaces. The error
    /// says what is inconsistent.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), &'static str> {
        self.raise_next_id(edit.next_keyspace.unwrap_or_default());
        for record in &edit.branches {
            self.branches.insert(record.id, Arc::new(BranchState::new(record)));
            self.raise_next_id(record.id.saturating_add(1));
            for (copy, original) in &record.copies {
                let home = self.homes.get(original).cloned().unwrap_or_default();
                self.homes.insert(*copy, home.of_copy(*original, record.id, record.point));
            }
        }
        self.homes.extend(edit.homes.iter().cloned());
        edit.created.iter().for_each(|record| self.load(record));
        for (copy, original) in edit.branches.iter().flat_map(|record| &record.copies) {
            // An original that the manifest does not record yet is described together with its
            // copies.
            if self.by_id.contains_key(copy) {
                continue;
            }
            let Some(original) = self.by_id.get(original).map(|state| state.record()) else {
                return Err("it copies a keyspace that is not there");
            };
            self.load(&KeyspaceRecord { id: *copy, ..original });
        }
        for (id, traits) in &edit.traits {
            if !self.load_traits(*id, traits) {
                return Err("traits belong to no keyspace");
            }
        }
        edit.dropped.iter().for_each(|id| self.unload(*id));
        edit.branches_dropped.iter().for_each(|id| self.remove_branch(*id));
        Ok(())
    }

    /// Whether the branch of a keyspace exists: a log may still mention keyspaces of branches that
    /// were dropped since.
    pub fn has_home(&self, id: KeyspaceId) -> bool {
        let branch = self.homes.get(&id).map_or(DEFAULT_KEYSPACE_ID, |home| home.branch);
        branch == DEFAULT_KEYSPACE_ID || self.branches.contains_key(&branch)
    }

    /// Records that keyspace `id`, which is about to be created, belongs to a branch.
    pub fn place(&mut self, id: KeyspaceId, branch: KeyspaceId) {
        if branch != DEFAULT_KEYSPACE_ID {
            self.homes.insert(id, Home { branch, ..Home::default() });
        }
    }

    /// Adds a branch with the copied keyspaces that its record names.
    pub fn add_branch(&mut self, record: &BranchRecord) -> Arc<BranchState> {
        let branch = Arc::new(BranchState::new(record));
        self.branches.insert(record.id, branch.clone());
        for (copy, original) in &record.copies {
            let Some(original) = self.by_id.get(original).cloned() else { continue };
            let home = original.home.of_copy(original.id, record.id, record.point);
            self.homes.insert(*copy, home);
            let comparator = original.comparator_name().unwrap_or_default().to_owned();
            self.insert(*copy, &original.name, &comparator);
            let traits = original.traits().names.clone();
            if traits != Traits::default() {
                self.load_traits(*copy, &traits);
            }
        }
        branch
    }

    /// The keyspaces of a branch.
    pub fn of_branch(&self, branch: KeyspaceId) -> Vec<Arc<KeyspaceState>> {
        self.by_id.values().filter(|state| state.home.branch == branch).cloned().collect()
    }

    /// Removes a branch and its keyspaces, including those that the manifest does not record yet.
    pub fn remove_branch(&mut self, id: KeyspaceId) {
        if let Some(branch) = self.branches.remove(&id) {
            branch.dropped.store(true, Ordering::Release);
        }
        self.by_name.remove(&id);
        let gone: HashSet<KeyspaceId> = self.of_branch(id).iter().map(|state| state.id).collect();
        self.by_id.retain(|id, _| !gone.contains(id));
        self.homes.retain(|id, _| !gone.contains(id));
        self.durable_traits.retain(|id, _| !gone.contains(id));
        self.heirs.values_mut().for_each(|heirs| heirs.retain(|id| !gone.contains(id)));
        self.heirs.retain(|_, heirs| !heirs.is_empty());
        self.pending.retain(|(_, change)| match change {
            Change::Created(state) => !gone.contains(&state.id),
            Change::Dropped(id) | Change::Traits(id, _) => !gone.contains(id),
        });
    }

    /// The branch or named snapshot of this name.
    pub fn branch_named(&self, name: &str) -> Option<&Arc<BranchState>> {
        self.branches.values().find(|branch| branch.name == name)
    }

    /// Every branch and named snapshot, by number.
    pub fn branches(&self) -> impl Iterator<Item = &Arc<BranchState>> {
        self.branches.values()
    }

    /// Whether there are branches or named snapshots, which may share what they refer to with the database.
    pub fn is_branched(&self) -> bool {
        self.branches.keys().any(|id| *id != DEFAULT_KEYSPACE_ID)
    }

    /// Every keyspace that may read the entries under number `id` in memtables that begin at
    /// `start`: the keyspace itself, if it exists, and its copies.
    pub fn readers_of(&self, id: KeyspaceId, start: Seq) -> Vec<Arc<KeyspaceState>> {
        let heirs = self.heirs.get(&id).into_iter().flatten();
        let states = std::iter::once(&id).chain(heirs).filter_map(|id| self.by_id.get(id));
        states.filter(|state| state.id_in(start) == id).cloned().collect()
    }

    /// The keyspace of this number, unless it belongs to a named snapshot, whose trees keep what they
    /// have.
    pub fn thawed(&self, id: KeyspaceId) -> Option<Arc<KeyspaceState>> {
        self.by_id(id).filter(|owner| owner.frozen_at.is_none()).cloned()
    }

    /// The keyspaces of other branches that have the same name and code as this one: work on the
    /// tree of one is as good for the tree of another where both are the same (S12). `traits` are
    /// those that it had when the work began. Named snapshots keep what they have.
    pub fn twins_of(&self, of: &KeyspaceState, traits: &Traits) -> Vec<Arc<KeyspaceState>> {
        // Seeded: what branches share is pushed and compacted once for each of them.
        bug!("catalog_branches_have_no_twins", return Vec::new());
        let in_others = self.by_name.iter().filter(|(branch, _)| **branch != of.home.branch);
        let states = in_others.filter_map(|(_, names)| names.get(&of.name));
        let is_twin = |state: &&Arc<KeyspaceState>| {
            // Seeded: what a named snapshot sees expires and is filtered as in its parent.
            let frozen = state.frozen_at.is_some() && !bug!("catalog_snapshots_are_twins");
            // Seeded: a branch gets what another merge operator or filter has made.
            let same = state.traits().names == *traits || bug!("catalog_twins_of_other_traits");
            same && !frozen
                && !state.is_dropped()
                && state.comparator_name() == of.comparator_name()
                && state.missing_comparator().is_none()
        };
        states.filter(is_twin).cloned().collect()
    }

    /// The points at which branches were copied from their parents, ascending. This includes the
    /// points of dropped branches as long as other branches were copied from them.
    pub fn branch_points(&self) -> Vec<Seq> {
        let of = |home: &Home| {
            let older: Vec<Seq> = home.older.iter().map(|(born, _)| *born).collect();
            older.into_iter().chain([home.born])
        };
        let mut points: Vec<Seq> = self.homes.values().flat_map(of).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Lowers points beyond the end of a log that was cut to that end (R30): what is written there
    /// from now on belongs to one keyspace alone.
    pub fn cut_points(&mut self, end: Seq) {
        let cut = |home: &mut Home| {
            home.born > end && {
                home.cut(end);
                true
            }
        };
        let moved: Vec<KeyspaceId> =
            self.homes.iter_mut().filter_map(|(id, home)| cut(home).then_some(*id)).collect();
        for id in moved {
            let Some(state) = self.by_id.get(&id).cloned() else { continue };
            let comparator = state.comparator_name().unwrap_or_default().to_owned();
            self.insert(id, &state.name, &comparator);
        }
    }

    /// What a new manifest must say about keyspaces and branches, if the log begins at `log_start`.
    /// `moment`: branches that were created after `log_start` are left out.
    pub fn description(&self, log_start: Seq, moment: bool) -> Edit {
        let told = |branch: KeyspaceId| {
            let point = self.branches.get(&branch).map_or(0, |branch| branch.point);
            !moment || point <= log_start
        };
        let home = |id: &KeyspaceId| self.homes.get(id).cloned().unwrap_or_default();
        let mut created = self.durable_records(log_start);
        created.retain(|record| told(home(&record.id).branch));
        let homes = self.homes_of(&created, log_start);
        let traits = self.durable_traits(log_start, &created);
        let branches = self.branches.values().filter(|branch| told(branch.id));
        let branches = branches.map(|branch| branch.record()).collect();
        let next_keyspace = Some(self.next_id);
        Edit { next_keyspace, created, homes, branches, traits, ..Edit::default() }
    }

    /// The homes of those among these keyspaces that belong to branches.
    pub fn homes_of(&self, records: &[KeyspaceRecord], log_start: Seq) -> Vec<(KeyspaceId, Home)> {
        let home = |record: &KeyspaceRecord| {
            self.homes.get(&record.id).map(|home| (record.id, home.from(log_start)))
        };
        records.iter().filter_map(home).collect()
    }

    /// Whether the manifest does not record yet that this keyspace was created.
    pub fn is_new(&self, id: KeyspaceId) -> bool {
        let new = |change: &Change| matches!(change, Change::Created(state) if state.id == id);
        self.pending.iter().any(|(_, change)| new(change))
    }
}
