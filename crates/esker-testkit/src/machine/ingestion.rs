//! Steps of the machine that ingest sorted entries.

use super::Machine;
use super::reads::Found;
use crate::harness::{self, keyspace};
use crate::model::{COUNTERS, Op, SLOTS, expires, merges};
use crate::ops::{LOGGED, count};
use crate::oracle::Entry;
use esker::{Durability, Error, Ingestion};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

/// Where an entry is written.
fn place(op: &Op) -> Option<(usize, &[u8])> {
    match op {
        Op::Put(slot, key, _)
        | Op::PutFor(slot, key, ..)
        | Op::Merge(slot, key, _)
        | Op::Delete(slot, key) => Some((*slot, key)),
        _ => None,
    }
}

impl Machine {
    /// A batch, or an ingestion.
    pub(super) fn write_several(&mut self) {
        if self.make.ingests && self.percent(15) { self.ingest() } else { self.write_batch() }
    }

    /// Sorted entries of some keyspaces, in one ingestion or two that are joined, which are committed,
    /// dropped, or overtake a transaction that read one of their keys.
    fn ingest(&mut self) {
        let mut ops = self.sorted();
        let read = (!ops.is_empty() && self.percent(30)).then(|| self.below(ops.len()));
        let read = read.and_then(|at| place(&ops[at]));
        let tx = read.map(|(slot, key)| {
            let tx = self.db().begin().unwrap_or_else(|e| panic!("begin: {e}"));
            let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
            let found = tx.get(&handle, key).map(Found::Value);
            let found = found.unwrap_or_else(|e| panic!("tx get: {e}"));
            found.check(&mut self.model, slot, key, format_args!("tx get"));
            harness::write_in(self.db(), &tx, &count(LOGGED, 0)).unwrap_or_else(|e| panic!("{e}"));
            tx
        });
        let begin =
            |machine: &Self| machine.db().ingest().unwrap_or_else(|e| panic!("ingest: {e}"));
        let mut ingestion = begin(self);
        if self.percent(30) {
            let cut = self.below(ops.len() + 1);
            let mut other = begin(self);
            let mut parts = [0..cut, cut..ops.len()];
            if self.percent(50) {
                parts.swap(0, 1);
            }
            ops[parts[0].clone()].iter().for_each(|op| self.add(&mut ingestion, op));
            ops[parts[1].clone()].iter().for_each(|op| self.add(&mut other, op));
            ingestion.join(other).unwrap_or_else(|e| panic!("join of ingestions: {e}"));
        } else {
            ops.iter().for_each(|op| self.add(&mut ingestion, op));
        }
        if self.percent(20) {
            let op = self.make.write(&self.model);
            self.one(&op, Durability::Process);
        }
        if self.percent(10) {
            return drop(ingestion);
        }
        if self.percent(40) {
            let counter = count(LOGGED, self.history.end() + 1);
            self.add(&mut ingestion, &counter);
            ops.push(counter);
        }
        ingestion.commit().unwrap_or_else(|e| panic!("commit of an ingestion: {e}"));
        self.model.apply_all(&ops);
        self.history.push(Entry { ops, logged: true });
        if let Some(tx) = tx {
            let outcome = tx.commit();
            assert!(matches!(outcome, Err(Error::Conflict { .. })), "{outcome:?}");
        }
    }

    /// For some keyspaces: ranges that are removed, and then entries in the order of their keys.
    fn sorted(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        for slot in (0..SLOTS).filter(|slot| *slot != COUNTERS) {
            if self.model.map(slot).is_none() || self.make.closed[slot] || self.percent(40) {
                continue;
            }
            let ranges = if self.percent(25) { 1 + self.below(3) } else { 0 };
            for _ in 0..ranges {
                let (start, end) = self.make.bounds(slot);
                ops.push(Op::DeleteRange(slot, start, end));
            }
            let mut entries = BTreeMap::new();
            for _ in 0..self.below(60) {
                let key = self.make.key(slot);
                let sort_key = self.model.map(slot).map(|map| map.sort_key(&key));
                let op = match self.below(100) {
                    0..=9 => Op::Delete(slot, key),
                    10..=19 if merges(slot) => Op::Merge(slot, key, self.make.value()),
                    20..=24 if expires(slot) => {
                        let ttl = 1 + self.make.rng.below(200);
                        Op::PutFor(slot, key, self.make.value(), ttl)
                    }
                    _ => Op::Put(slot, key, self.make.value()),
                };
                entries.insert(sort_key, op);
            }
            ops.extend(entries.into_values());
        }
        ops
    }

    /// Adds a write.
    fn add(&self, ingestion: &mut Ingestion, op: &Op) {
        let handle =
            |slot: &usize| keyspace(self.db(), *slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let added = match op {
            // Half of them come in pieces, if they are long enough.
            Op::Put(slot, key, value) if value.len().is_multiple_of(2) => {
                ingestion.insert_reader(&handle(slot), key, value.as_slice()).map(drop)
            }
            Op::Put(slot, key, value) => ingestion.insert(&handle(slot), key, value),
            Op::PutFor(slot, key, value, ttl) => {
                let ttl = Duration::from_millis(*ttl);
                ingestion.insert_with_ttl(&handle(slot), key, value, ttl)
            }
            Op::Merge(slot, key, operand) => ingestion.merge(&handle(slot), key, operand),
            Op::Delete(slot, key) => ingestion.remove(&handle(slot), key),
            Op::DeleteRange(slot, start, end) => {
                let low = start.as_ref().map_or(Bound::Unbounded, Bound::Included);
                let high = end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                ingestion.remove_range::<&Vec<u8>>(&handle(slot), (low, high))
            }
            _ => Ok(()),
        };
        added.unwrap_or_else(|e| panic!("ingest {op:?}: {e}"));
    }
}
