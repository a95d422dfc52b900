//! Steps of the machine that are transactions.
//!
//! What a transaction sees is the model with the writes that it made and did not take back; its
//! end makes them part of the model, or not.
//!
//! It sees one moment, in which no compaction filter is asked. Only a read under a lock sees the
//! present: for a transaction that locks, filters go on.

use super::Machine;
use super::reads::{Found, lent};
use crate::harness::{self, keyspace};
use crate::model::{Model, Op};
use crate::ops::{LOGGED, count};
use crate::oracle::Entry;
use esker::{Durability, Error, Transaction, TransactionOptions};
use std::ops::Bound;

impl Machine {
    /// A transaction that writes, reads, goes back to savepoints, and commits, rolls back, or meets
    /// a conflict with a writer of what it read.
    pub(super) fn transaction(&mut self) {
        let mut options = TransactionOptions::default();
        let pessimistic = self.percent(30);
        options.pessimistic = pessimistic;
        let tx = self.db().begin_with(options).unwrap_or_else(|e| panic!("begin: {e}"));
        let mut seen = if pessimistic { self.model.clone() } else { self.model.frozen() };
        let mut ops: Vec<Op> = Vec::new();
        let mut saved = Vec::new();
        let mut read = None;
        for _ in 0..1 + self.below(12) {
            let slot = self.make.slot(&self.model);
            let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
            match self.below(9) {
                0..=3 => {
                    let op = self.make.write(&self.model);
                    match harness::write_in(self.db(), &tx, &op) {
                        Ok(()) => {}
                        Err(Error::BatchTooLarge { .. }) => continue,
                        Err(error) => panic!("tx: {error}"),
                    }
                    seen.apply(&op);
                    ops.push(op);
                }
                4 | 5 => {
                    let key = self.make.key(slot);
                    let found = tx.get(&handle, &key).map(Found::Value);
                    let found = found.unwrap_or_else(|e| panic!("tx get: {e}"));
                    found.check(&mut seen, slot, &key, format_args!("tx get"));
                    if ops.is_empty() {
                        read = Some((slot, key));
                    }
                }
                6 => saved.push((tx.savepoint(), seen.clone(), ops.len())),
                7 if !saved.is_empty() => {
                    let index = self.below(saved.len());
                    saved.truncate(index + 1);
                    let (point, then, len) = &saved[index];
                    tx.rollback_to(point).unwrap_or_else(|e| panic!("rollback_to: {e}"));
                    seen = then.clone();
                    ops.truncate(*len);
                }
                _ => self.scan_in(&tx, &mut seen, slot),
            }
        }
        self.end(tx, ops, read);
    }

    /// Ends a transaction that made `ops`, and read `read` before that.
    fn end(&mut self, tx: Transaction, mut ops: Vec<Op>, read: Option<(usize, Vec<u8>)>) {
        match (self.below(10), read) {
            (0, _) => tx.rollback(),
            (1 | 2, Some((slot, key))) if !ops.is_empty() => {
                // Removing an empty range writes nothing, so it meets no conflict.
                if harness::write_in(self.db(), &tx, &count(LOGGED, 0)).is_err() {
                    return;
                }
                self.one(&Op::Put(slot, key, b"overtaken".to_vec()), Durability::Process);
                let outcome = tx.commit();
                assert!(matches!(outcome, Err(Error::Conflict { .. })), "{outcome:?}");
            }
            _ if ops.is_empty() => drop(tx.commit().unwrap_or_else(|e| panic!("commit: {e}"))),
            _ => {
                let counter = count(LOGGED, self.history.end() + 1);
                if harness::write_in(self.db(), &tx, &counter).is_err() {
                    // There is no room for one more.
                    return;
                }
                ops.push(counter);
                tx.commit().unwrap_or_else(|e| panic!("commit: {e}"));
                self.model.apply_all(&ops);
                self.history.push(Entry { ops, logged: true });
            }
        }
    }

    /// Goes through a part of what a transaction sees, from both ends.
    fn scan_in(&mut self, tx: &Transaction, seen: &mut Model, slot: usize) {
        let handle = keyspace(self.db(), slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let (start, end) = self.make.bounds(slot);
        let low = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let expected = seen.map(slot).map(|map| map.expected(low, high));
        let mut expected = expected.unwrap_or_default();
        let iter = tx.range::<&[u8]>(&handle, (low, high));
        let mut iter = iter.unwrap_or_else(|e| panic!("tx range: {e}"));
        for _ in 0..self.below(60) {
            let forward = self.percent(50);
            let found = if forward { iter.next_entry() } else { iter.next_back_entry() };
            let found = found.unwrap_or_else(|e| panic!("tx iterator: {e}"));
            assert!(
                expected.take(forward, found.as_ref().map(lent)),
                "slot {slot}, forward {forward}: {found:?}, not at {}",
                expected.told(),
            );
            if let Some(pair) = &found {
                let right = seen.see(slot, &pair.0, |shown| shown == Some(pair));
                assert!(right, "slot {slot}: {pair:?}, not {}", seen.told(slot, &pair.0));
            }
        }
    }
}
