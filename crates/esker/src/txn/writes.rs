//! What a transaction wrote to one keyspace, before it commits.
//!
//! Only the outcome is kept: the last operation on each key, and the deleted ranges. A range delete
//! removes the keys in its range from the map, so every key left in the range was written later.
//! Reads look at the keys first and the ranges second; the commit writes the ranges first and the
//! keys second.
//!
//! Invariants:
//! 1. `removed` holds disjoint stretches in key order, none of which is empty.
//! 2. A key in `map` was written after every range delete over it.

#![allow(
    clippy::mutable_key_type,
    reason = "an order changes only when its comparator panics, and is not trusted from then on"
)]

use crate::base::{Bytewise, CustomOrder, KeyOrder};
use crate::catalog::Order;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// A key that knows its order, owned or borrowed for a search.
#[derive(Debug, Clone)]
pub struct OwnKey<'k> {
    order: OwnOrder,
    bytes: Bytes<'k>,
}

#[derive(Debug, Clone)]
enum Bytes<'k> {
    Owned(Arc<[u8]>),
    Borrowed(&'k [u8]),
}

/// The order of a keyspace whose comparator is known.
#[derive(Debug, Clone)]
pub enum OwnOrder {
    /// Byte order.
    Bytewise,
    /// A custom comparator.
    Custom(CustomOrder),
}

impl OwnOrder {
    /// The order of a keyspace; `None`: its comparator is missing.
    pub fn of(order: &Order) -> Option<Self> {
        match order {
            Order::Bytewise => Some(Self::Bytewise),
            Order::Custom(order) => Some(Self::Custom(order.clone())),
            Order::Missing(_) => None,
        }
    }

    /// Compares two keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytewise => Bytewise.compare(a, b),
            Self::Custom(order) => order.compare(a, b),
        }
    }

    /// The custom comparator, if there is one.
    pub fn custom(&self) -> Option<&CustomOrder> {
        match self {
            Self::Bytewise => None,
            Self::Custom(order) => Some(order),
        }
    }

    /// An owned copy of a key.
    pub fn owned(&self, key: &[u8]) -> OwnKey<'static> {
        OwnKey { order: self.clone(), bytes: Bytes::Owned(key.into()) }
    }

    fn borrowed<'k>(&self, key: &'k [u8]) -> OwnKey<'k> {
        OwnKey { order: self.clone(), bytes: Bytes::Borrowed(key) }
    }
}

impl OwnKey<'_> {
    /// The bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Owned(bytes) => bytes,
            Bytes::Borrowed(bytes) => bytes,
        }
    }
}

impl Ord for OwnKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.compare(self.bytes(), other.bytes())
    }
}

impl PartialOrd for OwnKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OwnKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OwnKey<'_> {}

/// What the last operation on a key was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnValue {
    /// It was deleted.
    Deleted,
    /// It was given this value.
    Put(Arc<[u8]>),
    /// It was given this value, which expires so long after the commit.
    PutFor(Arc<[u8]>, Duration),
    /// It was given these operands, from old to new, on top of what the transaction had written
    /// before; `None`: it had written nothing, so they apply to what the database holds.
    Merged(Option<Box<OwnValue>>, Arc<Vec<Arc<[u8]>>>),
}

impl OwnValue {
    /// The value of a put.
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Put(value) | Self::PutFor(value, _) => Some(value),
            Self::Deleted | Self::Merged(..) => None,
        }
    }
}

/// A deleted range: its first key, and the first key after it; `None`: unbounded.
pub type Stretch = (Option<Vec<u8>>, Option<Vec<u8>>);

/// See the head of this module. Cloning copies the map of the keys, not their bytes.
#[derive(Debug, Clone)]
pub struct OwnWrites {
    order: OwnOrder,
    map: BTreeMap<OwnKey<'static>, OwnValue>,
    removed: Arc<Vec<Stretch>>,
    bytes: u64,
}

/// How to take one operation back.
#[derive(Debug)]
pub enum Undo {
    /// Restores the earlier operation on a key; `None`: there was none.
    Key(OwnKey<'static>, Option<(OwnKey<'static>, OwnValue)>),
    /// Removes the last operand of a key.
    Operand(OwnKey<'static>),
    /// Restores the deleted ranges and the keys in them.
    Range(Arc<Vec<Stretch>>, Vec<(OwnKey<'static>, OwnValue)>),
}

impl Undo {
    /// About the bytes that it takes.
    pub fn memory_bytes(&self) -> u64 {
        let one =
            |key: &OwnKey<'_>, value: &OwnValue| OPERATION_MEMORY_BYTES + cost(key.bytes(), value);
        match self {
            Self::Key(key, None) | Self::Operand(key) => one(key, &OwnValue::Deleted),
            Self::Key(_, Some((key, value))) => one(key, value),
            Self::Range(removed, keys) => {
                let stretches =
                    removed.iter().map(|removed| OPERATION_MEMORY_BYTES + stretch_cost(removed));
                stretches.chain(keys.iter().map(|(key, value)| one(key, value))).sum()
            }
        }
    }
}

/// The most bytes that an operation takes in the log beyond its key and value.
const OPERATION_BYTES: u64 = 24;

/// About what an operation takes in memory beyond what it takes in the log: its place in the map, and the heads of
/// its key and value.
const OPERATION_MEMORY_BYTES: u64 = 128;

fn cost(key: &[u8], value: &OwnValue) -> u64 {
    let one = |bytes: &[u8]| OPERATION_BYTES + (key.len() + bytes.len()) as u64;
    match value {
        OwnValue::Deleted => one(&[]),
        OwnValue::Put(value) | OwnValue::PutFor(value, _) => one(value),
        OwnValue::Merged(base, operands) => {
            let base = base.as_ref().map_or(0, |base| cost(key, base));
            base + operands.iter().map(|operand| one(operand)).sum::<u64>()
        }
    }
}

fn stretch_cost((start, end): &Stretch) -> u64 {
    let len = |bound: &Option<Vec<u8>>| bound.as_ref().map_or(0, |key| key.len() as u64);
    OPERATION_BYTES + len(start) + len(end)
}

impl OwnWrites {
    /// Nothing is written yet.
    pub fn new(order: OwnOrder) -> Self {
        Self { order, map: BTreeMap::new(), removed: Arc::default(), bytes: 0 }
    }

    /// The order of the keys.
    pub fn order(&self) -> &OwnOrder {
        &self.order
    }

    /// An upper bound of what the commit takes in the log.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// About the bytes that it takes in memory.
    pub fn memory_bytes(&self) -> u64 {
        let operations = (self.map.len() + self.removed.len()) as u64;
        self.bytes + operations * OPERATION_MEMORY_BYTES
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty() && self.removed.is_empty()
    }

    /// The transaction's own operation on a key; `None`: none, look in the database.
    pub fn get(&self, key: &[u8]) -> Option<OwnValue> {
        if let Some(value) = self.map.get(&self.order.borrowed(key)) {
            return Some(value.clone());
        }
        self.stretch_over(key).map(|_| OwnValue::Deleted)
    }

    /// The deleted range that holds `key`.
    pub fn stretch_over(&self, key: &[u8]) -> Option<&Stretch> {
        let behind = |end: &Option<Vec<u8>>| {
            end.as_ref().is_some_and(|end| self.order.compare(end, key).is_le())
        };
        let at = self.removed.partition_point(|(_, end)| behind(end));
        self.removed.get(at).filter(|(start, _)| {
            start.as_ref().is_none_or(|start| self.order.compare(start, key).is_le())
        })
    }

    /// The first written key within the bounds, or the last.
    pub fn find<'a>(
        &'a self,
        low: Bound<&'a [u8]>,
        high: Bound<&'a [u8]>,
        first: bool,
    ) -> Option<(&'a [u8], &'a OwnValue)> {
        // The map checks one bound, and this code the other: a map panics if the bounds contradict
        // each other, which a comparator that is no total order may cause.
        let key = |bound: Bound<_>| bound.map(|key| self.order.borrowed(key));
        let (found, inside) = if first {
            let found = self.map.range((key(low), Bound::Unbounded)).next()?;
            (found, self.is_below(found.0.bytes(), high))
        } else {
            let found = self.map.range((Bound::Unbounded, key(high))).next_back()?;
            (found, self.is_above(found.0.bytes(), low))
        };
        inside.then(|| (found.0.bytes(), found.1))
    }

    /// Whether a key lies below an upper bound.
    pub fn is_below(&self, key: &[u8], high: Bound<&[u8]>) -> bool {
        match high {
            Bound::Included(high) => self.order.compare(key, high).is_le(),
            Bound::Excluded(high) => self.order.compare(key, high).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// Whether a key lies above a lower bound.
    pub fn is_above(&self, key: &[u8], low: Bound<&[u8]>) -> bool {
        match low {
            Bound::Included(low) => self.order.compare(low, key).is_le(),
            Bound::Excluded(low) => self.order.compare(low, key).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// Notes the last operation on a key; the result undoes it.
    pub fn put(&mut self, key: &[u8], value: OwnValue) -> Undo {
        self.bytes += cost(key, &value);
        let key = self.order.owned(key);
        // Keys that an order calls equal may differ in their bytes; the newer bytes count.
        let old = self.map.remove_entry(&key);
        if let Some((key, old)) = &old {
            self.bytes -= cost(key.bytes(), old);
        }
        self.map.insert(key.clone(), value);
        Undo::Key(key, old)
    }

    /// Notes an operand of a key; the result undoes it.
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Undo {
        let owned = self.order.owned(key);
        let known = self.map.get_key_value(&owned).map(|(known, value)| (known.bytes(), value));
        if let Some((bytes, OwnValue::Merged(base, operands))) = known
            && bytes != key
        {
            // As in `put`: the newer bytes count, for all operands.
            let operands = operands.iter().cloned().chain([operand.into()]).collect();
            let value = OwnValue::Merged(base.clone(), Arc::new(operands));
            return self.put(key, value);
        }
        if let Some(OwnValue::Merged(_, operands)) = self.map.get_mut(&owned) {
            self.bytes += OPERATION_BYTES + (key.len() + operand.len()) as u64;
            // An iterator may still show the earlier list of operands.
            Arc::make_mut(operands).push(operand.into());
            return Undo::Operand(owned);
        }
        let base = self.get(key).map(Box::new);
        self.put(key, OwnValue::Merged(base, Arc::new(vec![operand.into()])))
    }

    /// Notes the removal of a stretch; the result undoes it. A stretch that holds no key changes
    /// nothing.
    pub fn remove_range(&mut self, start: Option<&[u8]>, end: Option<&[u8]>) -> Undo {
        let old = self.removed.clone();
        if let (Some(start), Some(end)) = (start, end)
            && self.order.compare(start, end).is_ge()
        {
            return Undo::Range(old, Vec::new());
        }
        let low = start.map_or(Bound::Unbounded, Bound::Included);
        let high = end.map_or(Bound::Unbounded, Bound::Excluded);
        let mut taken = Vec::new();
        let from = (low.map(|key| self.order.owned(key)), Bound::Unbounded);
        let behind = self.map.range(from).map(|(key, _)| key);
        let inside = behind.take_while(|key| self.is_below(key.bytes(), high));
        for key in inside.cloned().collect::<Vec<_>>() {
            if let Some((key, value)) = self.map.remove_entry(&key) {
                self.bytes -= cost(key.bytes(), &value);
                taken.push((key, value));
            }
        }
        let merged = self.merged(start, end);
        self.replace_removed(merged);
        Undo::Range(old, taken)
    }

    /// The removed stretches with one more; those that touch it are joined with it.
    fn merged(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Vec<Stretch> {
        let order = &self.order;
        let (mut low, mut high) = (start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
        let mut before = Vec::new();
        let mut behind = Vec::new();
        for stretch in self.removed.iter() {
            let ends_before = match (&stretch.1, &low) {
                (Some(end), Some(low)) => order.compare(end, low).is_lt(),
                _ => false,
            };
            let starts_behind = match (&stretch.0, &high) {
                (Some(start), Some(high)) => order.compare(high, start).is_lt(),
                _ => false,
            };
            if ends_before {
                before.push(stretch.clone());
            } else if starts_behind {
                behind.push(stretch.clone());
            } else {
                low = least(order, low, stretch.0.clone());
                high = greatest(order, high, stretch.1.clone());
            }
        }
        before.push((low, high));
        before.extend(behind);
        before
    }

    fn replace_removed(&mut self, removed: Vec<Stretch>) {
        self.bytes -= self.removed.iter().map(stretch_cost).sum::<u64>();
        self.bytes += removed.iter().map(stretch_cost).sum::<u64>();
        self.removed = Arc::new(removed);
    }

    /// Undoes the newest operation that was not undone yet.
    pub fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Key(key, old) => {
                if let Some((key, value)) = self.map.remove_entry(&key) {
                    self.bytes -= cost(key.bytes(), &value);
                }
                if let Some((key, old)) = old {
                    self.bytes += cost(key.bytes(), &old);
                    self.map.insert(key, old);
                }
            }
            Undo::Operand(key) => {
                if let Some(OwnValue::Merged(_, operands)) = self.map.get_mut(&key)
                    && let Some(operand) = Arc::make_mut(operands).pop()
                {
                    self.bytes -= OPERATION_BYTES + (key.bytes().len() + operand.len()) as u64;
                }
            }
            Undo::Range(removed, taken) => {
                self.replace_removed(Arc::unwrap_or_clone(removed));
                for (key, value) in taken {
                    self.bytes += cost(key.bytes(), &value);
                    self.map.insert(key, value);
                }
            }
        }
    }

    /// The deleted ranges, to be written first.
    pub fn removed(&self) -> &[Stretch] {
        &self.removed
    }

    /// The last operation on each key, in key order.
    pub fn keys(&self) -> impl Iterator<Item = (&[u8], &OwnValue)> {
        self.map.iter().map(|(key, value)| (key.bytes(), value))
    }
}

/// The lower of two lower bounds; `None` is below every key.
fn least(order: &OwnOrder, a: Option<Vec<u8>>, b: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let (a, b) = (a?, b?);
    Some(if order.compare(&a, &b).is_le() { a } else { b })
}

/// The higher of two upper bounds; `None` is above every key.
fn greatest(order: &OwnOrder, a: Option<Vec<u8>>, b: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let (a, b) = (a?, b?);
    Some(if order.compare(&a, &b).is_ge() { a } else { b })
}

#[cfg(test)]
mod tests;
