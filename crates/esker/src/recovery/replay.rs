//! Replay: puts the log's batches into memtables, from the position that the manifest gives.
//!
//! A replayed operation gets the sequence number that it had. Memtables are sealed as they fill, at
//! positions that a running database could also have chosen, so the ordinary flush works on them.

use crate::base::rangedel::RangeTombstone;
use crate::base::{CustomOrder, KeyspaceId, Kind, Seq};
use crate::budget::ChunkPool;
use crate::catalog::{Catalog, Order};
use crate::error::{Error, Result};
use crate::manifest::Traits;
use crate::memtable::{Memtable, MemtableBuilder};
use crate::options::settings::MemtableSizes;
use crate::recovery::relay::Applies;
use crate::state::group::Group;
use crate::state::memtables::{MemtableSet, tombstone};
use crate::wal::ops::{Op, Ops};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Memtables under construction.
pub struct Replay<'c> {
    /// That of the log, for errors.
    directory: &'c Path,
    catalog: &'c mut Catalog,
    sizes: MemtableSizes,
    pool: &'c Arc<ChunkPool>,
    /// Full sets, the newest first.
    sealed: Vec<Arc<MemtableSet>>,
    building: Building,
    /// The points of branches, ascending: no set contains a point in its interior (R24).
    points: Vec<Seq>,
    /// Whether memtables get filters: nothing is flushed before it is read.
    filtered: bool,
    /// The keyspace of the last operation, and what becomes of its operations as long as neither the
    /// catalog nor the set under construction changes.
    last: Option<(KeyspaceId, Fate)>,
}

/// What becomes of the operations of a keyspace.
#[derive(Clone)]
enum Fate {
    /// They go to the memtable of the bytewise keyspaces.
    Bytewise,
    /// They go to a memtable of this order.
    Custom(CustomOrder),
    /// They are discarded: nobody reads the keyspace any more.
    Nothing,
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
    fn new(start: Seq, sizes: MemtableSizes, pool: &Arc<ChunkPool>, filtered: bool) -> Self {
        let bytewise = MemtableBuilder::new(sizes.set_bytes as usize, pool.clone(), filtered);
        Self { start, bytewise, custom: BTreeMap::new() }
    }

    fn bytes(&self) -> u64 {
        let custom: usize = self.custom.values().map(|table| table.bytes()).sum();
        (self.bytewise.bytes() + custom) as u64
    }
}

impl Applies for Replay<'_> {
    fn apply(&mut self, position: Seq, operations: u32, payload: &[u8]) -> Result<()> {
        self.seal_before(position);
        self.apply_all(position, operations, payload)
    }
}

impl<'c> Replay<'c> {
    /// Nothing of the log in `directory` is replayed yet. `filtered`: the memtables are not about to be
    /// flushed, so they get filters for their readers.
    pub fn new(
        (directory, start): (&'c Path, Seq),
        sizes: MemtableSizes,
        pool: &'c Arc<ChunkPool>,
        catalog: &'c mut Catalog,
        filtered: bool,
    ) -> Self {
        let building = Building::new(start, sizes, pool, filtered);
        let points = catalog.branch_points();
        let (sealed, last) = (Vec::new(), None);
        Self { directory, catalog, sizes, pool, sealed, building, points, filtered, last }
    }

    /// Seals the set under construction at `position`, and begins the next set there.
    fn seal(&mut self, position: Seq) {
        let next = Building::new(position, self.sizes, self.pool, self.filtered);
        let set = std::mem::replace(&mut self.building, next);
        self.last = None;
        let (sizes, (table, list)) = (self.sizes, set.bytewise.finish());
        let bytewise = Group::of_sorted(table, list, sizes.table_bytes);
        let set = MemtableSet::from_tables(set.start, sizes, self.pool, bytewise, set.custom);
        set.seal(position);
        self.sealed.insert(0, Arc::new(set));
    }

    /// Seals the set under construction where the batch at `position` may not belong to it.
    fn seal_before(&mut self, position: Seq) {
        let start = self.building.start;
        let upto = |bound: Seq| self.points.partition_point(|point| *point <= bound);
        // Seeded: after a crash, what was written to the parent after a branch was made appears in
        // the branch.
        let crossed = match bug!("recovery_replay_ignores_branch_points") {
            true => None,
            false => self.points.get(upto(start)..upto(position)),
        };
        if let Some([first, .., last] | [first @ last]) = crossed {
            let (first, last) = (*first, *last);
            // No record lies between the points; otherwise it would have come earlier.
            self.seal(first);
            self.building.start = last;
        } else if self.building.bytes() >= self.sizes.set_bytes {
            self.seal(position);
        }
    }

    fn apply_all(&mut self, position: Seq, operations: u32, payload: &[u8]) -> Result<()> {
        let directory = self.directory;
        let mut count = 0;
        for op in Ops::new(payload) {
            let damaged = |detail: &'static str| {
                Error::corruption(directory, position, "log operation", detail)
            };
            let op = op.map_err(|error| damaged(error.0))?;
            self.operation(op, position + u64::from(count))?;
            count += 1;
            if count > operations {
                return Err(damaged("there are more operations than the record says"));
            }
        }
        Ok(())
    }

    fn operation(&mut self, op: Op<'_>, seq: Seq) -> Result<()> {
        let id = op.keyspace();
        if is_change(&op) {
            self.last = None;
            self.change_catalog(op, seq);
            return Ok(());
        }
        if self.last.as_ref().is_none_or(|(last, _)| *last != id) {
            self.last = Some((id, self.fate_of(id)?));
        }
        let mut table = match &self.last {
            Some((_, Fate::Bytewise)) => Table::Bytewise(&mut self.building.bytewise),
            Some((_, Fate::Custom(order))) => {
                let (capacity, pool) = (self.sizes.set_bytes as usize, self.pool.clone());
                let make = || Arc::new(Memtable::with_pool(order.clone(), capacity, pool));
                Table::Custom(self.building.custom.entry(id).or_insert_with(make))
            }
            Some((_, Fate::Nothing)) | None => return Ok(()),
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

    /// Applies an operation that changes keyspaces.
    fn change_catalog(&mut self, op: Op<'_>, seq: Seq) {
        match op {
            Op::InBranch { keyspace, branch } => self.catalog.place(keyspace, branch),
            // Its branch was dropped since; only the manifest records that.
            Op::CreateKeyspace { keyspace, .. } if !self.catalog.has_home(keyspace) => {
                self.catalog.raise_next_id(keyspace.saturating_add(1));
            }
            Op::CreateKeyspace { keyspace, name, comparator } => {
                self.catalog.create(keyspace, name, comparator, seq);
            }
            Op::DropKeyspace { keyspace } => self.catalog.drop_keyspace(keyspace, seq),
            Op::SetTraits { keyspace, operator, filter, ttl } => {
                let (operator, filter) = (operator.to_owned(), filter.to_owned());
                self.catalog.set_traits(keyspace, Traits { operator, filter, ttl }, seq);
            }
            Op::Put { .. } | Op::Delete { .. } | Op::DeleteRange { .. } | Op::Special { .. } => {}
        }
    }

    /// Operations of a keyspace that the manifest already dropped, or that precede its drop in the
    /// log, are discarded, unless a copy of the keyspace shares them.
    fn fate_of(&self, id: KeyspaceId) -> Result<Fate> {
        let start = self.building.start;
        let shared = |catalog: &Catalog| {
            let readers = catalog.readers_of(id, start);
            readers.into_iter().find(|reader| reader.dropped_at().is_none())
        };
        let own = self.catalog.by_id(id).filter(|own| own.dropped_at().is_none()).cloned();
        let Some(keyspace) = own.or_else(|| shared(self.catalog)) else {
            return Ok(Fate::Nothing);
        };
        if let Some(error) = keyspace.missing_comparator() {
            return Err(error);
        }
        Ok(match &keyspace.order {
            Order::Custom(order) => Fate::Custom(order.clone()),
            _ => Fate::Bytewise,
        })
    }

    /// The memtables, the newest first: an empty one that takes writes from `end`, and then the
    /// sealed ones that were replayed.
    pub fn finish(mut self, end: Seq) -> Vec<Arc<MemtableSet>> {
        let changed = self.catalog.has_pending_before(end);
        if self.building.start != end || changed {
            self.seal(end);
        }
        let active = MemtableSet::new(end, self.sizes, self.pool);
        self.sealed.insert(0, Arc::new(active));
        self.sealed
    }
}

/// Whether an operation changes keyspaces.
fn is_change(op: &Op<'_>) -> bool {
    match op {
        Op::Put { .. } | Op::Delete { .. } | Op::DeleteRange { .. } | Op::Special { .. } => false,
        Op::CreateKeyspace { .. }
        | Op::InBranch { .. }
        | Op::DropKeyspace { .. }
        | Op::SetTraits { .. } => true,
    }
}

#[cfg(test)]
mod tests;
