//! Replay: puts the log's batches into memtables, from the position that the manifest gives.
//!
//! A replayed operation gets the sequence number that it had. Memtables are sealed as they fill, at
//! positions that a running database could also have chosen, so the ordinary flush works on them.

use crate::base::rangedel::RangeTombstone;
use crate::base::{CustomOrder, KeyspaceId, Kind, Seq};
use crate::catalog::{Catalog, Order};
use crate::error::{Error, Result};
use crate::manifest::Traits;
use crate::memtable::{ChunkPool, Memtable, MemtableBuilder};
use crate::options::settings::Settings;
use crate::state::memtables::{MemtableSet, tombstone};
use crate::wal::ops::{Op, Ops};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Memtables under construction.
pub struct Replay<'c> {
    catalog: &'c mut Catalog,
    settings: &'c Settings,
    pool: &'c Arc<ChunkPool>,
    /// Full sets, the newest first.
    sealed: Vec<Arc<MemtableSet>>,
    building: Building,
    /// The points of branches, ascending: no set contains a point in its interior (R24).
    points: Vec<Seq>,
}

/// The set that is being filled.
struct Building {
    start: Seq,
    bytewise: MemtableBuilder,
    custom: BTreeMap<KeyspaceId, Arc<Memtable<CustomOrder>>>,
}

/// The memtable of one keyspace.
enum Table<'t> {
    /// Entries are sorted once, when all are present.
    Bytewise(&'t mut MemtableBuilder),
    /// Comparing runs user code; entries are inserted one by one.
    Custom(&'t Memtable<CustomOrder>),
}

impl Table<'_> {
    fn insert(&mut self, keyspace: KeyspaceId, key: &[u8], seq: Seq, kind: Kind, value: &[u8]) {
        match self {
            Self::Bytewise(table) => table.insert(keyspace, key, seq, kind, value),
            Self::Custom(table) => table.insert(keyspace, key, seq, kind, value),
        }
    }

    fn delete_range(&mut self, keyspace: KeyspaceId, tombstone: RangeTombstone) {
        match self {
            Self::Bytewise(table) => table.delete_range(keyspace, tombstone),
            Self::Custom(table) => table.delete_range(keyspace, tombstone),
        }
    }
}

impl Building {
    fn new(start: Seq, settings: &Settings, pool: &Arc<ChunkPool>) -> Self {
        let bytewise = MemtableBuilder::new(settings.memtable_bytes as usize, pool.clone());
        Self { start, bytewise, custom: BTreeMap::new() }
    }

    fn bytes(&self) -> u64 {
        let custom: usize = self.custom.values().map(|table| table.bytes()).sum();
        (self.bytewise.bytes() + custom) as u64
    }
}

impl<'c> Replay<'c> {
    /// Nothing is replayed yet.
    pub fn new(
        start: Seq,
        settings: &'c Settings,
        pool: &'c Arc<ChunkPool>,
        catalog: &'c mut Catalog,
    ) -> Self {
        let building = Building::new(start, settings, pool);
        let points = catalog.branch_points();
        Self { catalog, settings, pool, sealed: Vec::new(), building, points }
    }

    /// Seals the set under construction at `position`, and begins the next set there.
    fn seal(&mut self, position: Seq) {
        let next = Building::new(position, self.settings, self.pool);
        let set = std::mem::replace(&mut self.building, next);
        let (sizes, bytewise) = (self.settings.memtable_sizes(), set.bytewise.finish());
        let set = MemtableSet::from_tables(set.start, sizes, self.pool, bytewise, set.custom);
        set.seal(position);
        self.sealed.insert(0, Arc::new(set));
    }

    /// Applies one batch.
    pub fn batch(
        &mut self,
        directory: &Path,
        position: Seq,
        operations: u32,
        payload: &[u8],
    ) -> Result<()> {
        let start = self.building.start;
        let crossed = self.points.iter().filter(|point| (start + 1..=position).contains(point));
        // Seeded: after a crash, what was written to the parent after a branch was made appears in
        // the branch.
        let mut crossed = crossed.filter(|_| !bug!("recovery_replay_ignores_branch_points"));
        if let Some(first) = crossed.next().copied() {
            let last = crossed.next_back().copied().unwrap_or(first);
            // No record lies between the points; otherwise it would have come earlier.
            self.seal(first);
            self.building.start = last;
        } else if self.building.bytes() >= self.settings.memtable_bytes {
            self.seal(position);
        }
        let mut count = 0;
        for op in Ops::new(payload) {
            let damaged = |detail: &'static str| {
                Error::corruption(directory, position, "log operation", detail)
            };
            let op = op.map_err(|error| damaged(error.0))?;
            self.apply(op, position + u64::from(count))?;
            count += 1;
            if count > operations {
                return Err(damaged("there are more operations than the record says"));
            }
        }
        Ok(())
    }

    fn apply(&mut self, op: Op<'_>, seq: Seq) -> Result<()> {
        match op {
            Op::InBranch { keyspace, branch } => {
                self.catalog.place(keyspace, branch);
                return Ok(());
            }
            // Its branch was dropped since; only the manifest records that.
            Op::CreateKeyspace { keyspace, .. } if !self.catalog.has_home(keyspace) => {
                self.catalog.raise_next_id(keyspace.saturating_add(1));
                return Ok(());
            }
            Op::CreateKeyspace { keyspace, name, comparator } => {
                self.catalog.create(keyspace, name, comparator, seq);
                return Ok(());
            }
            Op::DropKeyspace { keyspace } => {
                self.catalog.drop_keyspace(keyspace, seq);
                return Ok(());
            }
            Op::SetTraits { keyspace, operator, filter, ttl } => {
                let (operator, filter) = (operator.to_owned(), filter.to_owned());
                self.catalog.set_traits(keyspace, Traits { operator, filter, ttl }, seq);
                return Ok(());
            }
            _ => {}
        }
        // Operations of a keyspace that the manifest already dropped, or that precede its drop in
        // the log, are discarded, unless a copy of the keyspace shares them.
        let id = op.keyspace();
        let start = self.building.start;
        let shared = |catalog: &Catalog| {
            let readers = catalog.readers_of(id, start);
            readers.into_iter().find(|reader| reader.dropped_at().is_none())
        };
        let own = self.catalog.by_id(id).filter(|own| own.dropped_at().is_none()).cloned();
        let Some(keyspace) = own.or_else(|| shared(self.catalog)) else { return Ok(()) };
        if let Some(error) = keyspace.missing_comparator() {
            return Err(error);
        }
        let mut table = match &keyspace.order {
            Order::Custom(order) => {
                let (capacity, pool) = (self.settings.memtable_bytes as usize, self.pool.clone());
                let make = || Arc::new(Memtable::with_pool(order.clone(), capacity, pool));
                Table::Custom(self.building.custom.entry(id).or_insert_with(make))
            }
            _ => Table::Bytewise(&mut self.building.bytewise),
        };
        match op {
            Op::Put { key, value, .. } => table.insert(id, key, seq, Kind::Put, value),
            Op::Delete { key, .. } => table.insert(id, key, seq, Kind::Delete, &[]),
            Op::DeleteRange { start, end, .. } => {
                table.delete_range(id, tombstone(start, end, seq));
            }
            Op::Special { kind, key, stored, .. } => {
                table.insert(id, key, seq, kind, stored);
            }
            Op::CreateKeyspace { .. }
            | Op::InBranch { .. }
            | Op::DropKeyspace { .. }
            | Op::SetTraits { .. } => {}
        }
        Ok(())
    }

    /// The memtables, the newest first: an empty one that takes writes from `end`, and then the
    /// sealed ones that were replayed.
    pub fn finish(mut self, end: Seq) -> Vec<Arc<MemtableSet>> {
        let changed = self.catalog.has_pending_before(end);
        if self.building.start != end || changed {
            self.seal(end);
        }
        let active = MemtableSet::new(end, self.settings.memtable_sizes(), self.pool);
        self.sealed.insert(0, Arc::new(active));
        self.sealed
    }
}

#[cfg(test)]
mod tests;
