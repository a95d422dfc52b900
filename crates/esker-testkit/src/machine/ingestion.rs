//! Steps of the machine that ingest sorted entries.

use super::Machine;
use crate::harness::{self, keyspace};
use crate::model::{Op, is_folded};
use crate::ops::{LOGGED, count};
use crate::oracle::Entry;
use esker::{Durability, Error, Ingestion};
use std::collections::BTreeMap;

impl Machine {
    /// A batch, or an ingestion.
    pub(super) fn write_several(&mut self) {
        if self.make.ingests && self.percent(15) { self.ingest() } else { self.write_batch() }
    }

    /// Sorted entries of some keyspaces, which are committed, dropped, or overtake a transaction that
    /// read one of their keys.
    fn ingest(&mut self) {
        let mut ops = self.sorted();
        let read = (!ops.is_empty() && self.percent(30)).then(|| self.below(ops.len()));
        let tx = read.map(|_| self.db().begin().unwrap_or_else(|e| panic!("begin: {e}")));
        if let (Some(Op::Put(slot, key, _)), Some(tx)) = (read.map(|at| &ops[at]), &tx) {
            let handle = keyspace(self.db(), *slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
            let found = tx.get(&handle, key).unwrap_or_else(|e| panic!("tx get: {e}"));
            assert_eq!(found.as_ref(), self.model.map(*slot).and_then(|map| map.get(key)));
            harness::write_in(self.db(), tx, &count(LOGGED, 0)).unwrap_or_else(|e| panic!("{e}"));
        }
        let mut ingestion = self.db().ingest().unwrap_or_else(|e| panic!("ingest: {e}"));
        ops.retain(|op| self.insert(&mut ingestion, op));
        if self.percent(20) {
            let op = self.make.write(&self.model);
            self.one(&op, Durability::Process);
        }
        if self.percent(10) {
            return drop(ingestion);
        }
        if self.percent(40) {
            let counter = count(LOGGED, self.history.end() + 1);
            assert!(self.insert(&mut ingestion, &counter));
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

    /// Puts to keyspaces in byte order, sorted in each.
    fn sorted(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        for slot in [0, 2, 3] {
            let usable = self.model.map(slot).is_some() && !self.make.closed[slot];
            if is_folded(slot) || !usable || self.percent(40) {
                continue;
            }
            let mut entries = BTreeMap::new();
            for _ in 0..self.below(60) {
                entries.insert(self.make.key(slot), self.make.value());
            }
            ops.extend(entries.into_iter().map(|(key, value)| Op::Put(slot, key, value)));
        }
        ops
    }

    /// Adds a put; false: its value is too large.
    fn insert(&self, ingestion: &mut Ingestion, op: &Op) -> bool {
        let Op::Put(slot, key, value) = op else { return false };
        let handle = keyspace(self.db(), *slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        match ingestion.insert(&handle, key, value) {
            Ok(()) => true,
            Err(Error::ValueTooLarge { .. }) => false,
            Err(error) => panic!("ingest: {error}"),
        }
    }
}
