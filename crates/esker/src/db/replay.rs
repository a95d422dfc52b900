//! Replay: the log's batches, from where the manifest says, into memtables.
//!
//! A replayed operation gets the sequence number that it had. Memtables are sealed as they fill,
//! at the same positions that a running database could have chosen, so their flush is the
//! ordinary one.

use crate::base::{Kind, Seq};
use crate::db::catalog::{Catalog, Order};
use crate::db::memset::{MemSet, apply_bytewise, tombstone};
use crate::db::open::unknown_order;
use crate::db::ops::{Op, Ops};
use crate::db::settings::Settings;
use crate::error::{Error, Result};
use crate::manifest::Traits;
use crate::memtable::ChunkPool;
use std::path::Path;
use std::sync::Arc;

/// Memtables under construction.
pub struct Replay<'c> {
    catalog: &'c mut Catalog,
    settings: &'c Settings,
    pool: &'c Arc<ChunkPool>,
    /// The newest first.
    sets: Vec<Arc<MemSet>>,
}

impl<'c> Replay<'c> {
    /// Nothing is replayed yet.
    pub fn new(
        start: Seq,
        settings: &'c Settings,
        pool: &'c Arc<ChunkPool>,
        catalog: &'c mut Catalog,
    ) -> Self {
        let first = Arc::new(MemSet::new(start, settings.memtable_bytes, pool));
        Self { catalog, settings, pool, sets: vec![first] }
    }

    /// Begins a set at `start`.
    fn begin(&mut self, start: Seq) {
        let set = MemSet::new(start, self.settings.memtable_bytes, self.pool);
        self.sets.insert(0, Arc::new(set));
    }

    /// Applies one batch.
    pub fn batch(
        &mut self,
        directory: &Path,
        position: Seq,
        operations: u32,
        payload: &[u8],
    ) -> Result<()> {
        if self.sets[0].bytes() >= self.settings.memtable_bytes {
            self.sets[0].seal(position);
            self.begin(position);
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
        // the log, go nowhere.
        let Some(keyspace) = self.catalog.by_id(op.keyspace()) else { return Ok(()) };
        if keyspace.dropped_at().is_some() {
            return Ok(());
        }
        if let Some(error) = unknown_order(keyspace) {
            return Err(error);
        }
        let set = &self.sets[0];
        let Order::Custom(order) = &keyspace.order else {
            apply_bytewise(set.bytewise(), op, seq);
            return Ok(());
        };
        let table = set.custom_or_new(keyspace.id, order);
        match op {
            Op::Put { key, value, .. } => table.insert(keyspace.id, key, seq, Kind::Put, value),
            Op::Delete { key, .. } => table.insert(keyspace.id, key, seq, Kind::Delete, &[]),
            Op::DeleteRange { start, end, .. } => {
                table.delete_range(keyspace.id, tombstone(start, end, seq));
            }
            Op::Special { kind, key, stored, .. } => {
                table.insert(keyspace.id, key, seq, kind, stored);
            }
            Op::CreateKeyspace { .. } | Op::DropKeyspace { .. } | Op::SetTraits { .. } => {}
        }
        Ok(())
    }

    /// The memtables, the newest first: one that is empty and takes writes from `end`, and those
    /// that were replayed, sealed.
    pub fn finish(mut self, end: Seq) -> Vec<Arc<MemSet>> {
        let changed = self.catalog.has_pending_before(end);
        if self.sets[0].start == end && !changed {
            return self.sets;
        }
        self.sets[0].seal(end);
        self.begin(end);
        self.sets
    }
}

#[cfg(test)]
mod tests;
