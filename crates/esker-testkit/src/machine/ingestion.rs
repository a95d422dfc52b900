//! Steps of the machine that ingest sorted entries.

use super::Machine;
use super::reads::Found;
use crate::harness::{self, keyspace};
use crate::model::Op;
use crate::ops::{LOGGED, count};
use crate::oracle::Entry;
use esker::{Durability, Error, Ingestion};

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
        let mut ops = self.make.sorted(&self.model);
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
            self.add_all(&mut ingestion, &ops[parts[0].clone()]);
            self.add_all(&mut other, &ops[parts[1].clone()]);
            ingestion.join(other).unwrap_or_else(|e| panic!("join of ingestions: {e}"));
        } else {
            self.add_all(&mut ingestion, &ops);
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
            self.add_all(&mut ingestion, std::slice::from_ref(&counter));
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

    fn add_all(&self, ingestion: &mut Ingestion, ops: &[Op]) {
        let added = harness::add_all(self.db(), ingestion, ops);
        added.unwrap_or_else(|e| panic!("ingest {ops:?}: {e}"));
    }
}
