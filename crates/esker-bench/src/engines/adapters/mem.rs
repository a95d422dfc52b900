//! The reference engine: a sorted map under one lock, in memory, gone at close.
//!
//! It exists for two comparisons. Its operations with one thread are a tree descent and a copy, which
//! is the cost of a store without files, versions and concurrency. And its answers are easily seen to
//! be right, so the workloads themselves are tested on it.

use crate::Result;
use crate::engines::Durability;
use crate::engines::links::keyed::{Attempt, Body, KeyedLinks, Transaction, Transactions};
use crate::engines::links::{LinkSession, LinkStore};
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
/// A write, or a deletion where there is no value.
type Operation = (Vec<u8>, Option<Vec<u8>>);

/// A locked sorted map.
#[derive(Default)]
pub struct MemEngine {
    map: RwLock<Map>,
}

/// The registry's opener.
pub fn open(_: &EngineSpec, _: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    Ok(Box::new(MemEngine::default()))
}

/// A map in memory survives nothing.
pub fn offers(class: Durability) -> Result<(), &'static str> {
    match class {
        Durability::Buffered => Ok(()),
        _ => Err("it lives in memory and keeps nothing"),
    }
}

impl MemEngine {
    fn read(&self) -> RwLockReadGuard<'_, Map> {
        // No code that can panic runs under the lock.
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinkStore for MemEngine {
    fn links(&self) -> Result<Box<dyn LinkSession + '_>> {
        let session = MemSession { engine: self, batch: Vec::new() };
        Ok(Box::new(KeyedLinks::new(session, Durability::Buffered)))
    }
}

impl Engine for MemEngine {
    fn link_store(&self) -> Option<&dyn LinkStore> {
        Some(self)
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(MemSession { engine: self, batch: Vec::new() }))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn version(&self) -> String {
        "BTreeMap of Rust's standard library".into()
    }

    fn settings(&self) -> Vec<(String, String)> {
        vec![
            ("structure".into(), "BTreeMap under a reader-writer lock; no files".into()),
            ("transactions".into(), "one at a time, under the lock".into()),
        ]
    }

    fn stats(&self) -> String {
        format!("entries: {}", self.read().len())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct MemSession<'a> {
    engine: &'a MemEngine,
    batch: Vec<Operation>,
}

fn put(map: &mut Map, key: &[u8], value: &[u8]) {
    match map.get_mut(key) {
        Some(present) if present.len() == value.len() => present.copy_from_slice(value),
        Some(present) => *present = value.into(),
        None => {
            map.insert(key.into(), value.into());
        }
    }
}

/// A transaction on the locked map.
struct MemTransaction<'a> {
    map: &'a mut Map,
    /// What was there before each of its writes.
    undo: Vec<Operation>,
}

impl Transaction for MemTransaction<'_> {
    fn get_for_update(&mut self, key: &[u8]) -> Attempt<Option<Vec<u8>>> {
        Ok(self.map.get(key).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Attempt<()> {
        self.undo.push((key.into(), self.map.insert(key.into(), value.into())));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Attempt<()> {
        self.undo.push((key.into(), self.map.remove(key)));
        Ok(())
    }
}

impl Transactions for MemSession<'_> {
    fn attempt(&mut self, body: Body<'_>) -> Attempt<()> {
        let mut map = self.engine.write();
        let mut txn = MemTransaction { map: &mut map, undo: Vec::new() };
        let done = body(&mut txn);
        if done.is_err() {
            for (key, before) in txn.undo.into_iter().rev() {
                match before {
                    Some(value) => drop(txn.map.insert(key, value)),
                    None => drop(txn.map.remove(&key)),
                }
            }
        }
        done
    }
}

impl Session for MemSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], _: Durability) -> Result<()> {
        put(&mut self.engine.write(), key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8], _: Durability) -> Result<()> {
        self.engine.write().remove(key);
        Ok(())
    }

    fn delete_range(&mut self, start: &[u8], end: &[u8], _: Durability) -> Result<()> {
        let mut map = self.engine.write();
        let range = (Bound::Included(start), Bound::Excluded(end));
        // A map refuses a range that ends before it starts; it holds nothing.
        let keys: Vec<Vec<u8>> = if start < end {
            map.range::<[u8], _>(range).map(|(key, _)| key.clone()).collect()
        } else {
            Vec::new()
        };
        keys.iter().for_each(|key| drop(map.remove(key)));
        Ok(())
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.push((key.into(), Some(value.into())));
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.push((key.into(), None));
    }

    fn batch_commit(&mut self, _: Durability) -> Result<()> {
        let mut map = self.engine.write();
        for (key, value) in self.batch.drain(..) {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let map = self.engine.read();
        Ok(map.get(key).map(|value| found(value)).is_some())
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let from = from.map_or(Bound::Unbounded, |key| Bound::Included(key.to_vec()));
        Ok(Box::new(MemCursor { engine: self.engine, from, direction, chunk: Vec::new(), at: 0 }))
    }
}

/// Copies a few entries at a time, so that the lock is not held between calls.
struct MemCursor<'a> {
    engine: &'a MemEngine,
    /// Where the next chunk starts.
    from: Bound<Vec<u8>>,
    direction: Direction,
    chunk: Vec<(Vec<u8>, Vec<u8>)>,
    at: usize,
}

const CHUNK: usize = 16;

impl MemCursor<'_> {
    fn refill(&mut self) {
        let map = self.engine.read();
        let from = self.from.as_ref().map(Vec::as_slice);
        let copy = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        self.chunk.clear();
        self.at = 0;
        match self.direction {
            Direction::Forward => {
                let entries = map.range::<[u8], _>((from, Bound::Unbounded));
                self.chunk.extend(entries.take(CHUNK).map(copy));
            }
            Direction::Reverse => {
                let entries = map.range::<[u8], _>((Bound::Unbounded, from)).rev();
                self.chunk.extend(entries.take(CHUNK).map(copy));
            }
        }
        if let Some((last, _)) = self.chunk.last() {
            self.from = Bound::Excluded(last.clone());
        }
    }
}

impl Cursor for MemCursor<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.at == self.chunk.len() {
            self.refill();
        }
        self.at += 1;
        Ok(self.chunk.get(self.at - 1).map(|(key, value)| (&key[..], &value[..])))
    }
}
