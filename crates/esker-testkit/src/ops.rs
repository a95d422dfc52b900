//! Generates writes: few keys, so that they meet, and values that name their writer.
//!
//! Keys are short and from a small set; in folded keyspaces their case varies, so that the same
//! key is written with different bytes. Values begin with a number that never comes twice, so that
//! a stale value is never mistaken for the right one.

use crate::model::{COUNTERS, FLEETING, Model, Op, SLOTS, expires, is_folded, merges};
use crate::rng::Rng;
use std::collections::BTreeMap;

/// What a batch leaves in the keyspace of counters when it is logged.
pub const LOGGED: &[u8] = b"logged";
/// What a batch leaves in the keyspace of counters when it is not logged.
pub const BUFFERED: &[u8] = b"buffered";

/// A source of random writes.
#[derive(Debug, Clone)]
pub struct Generator {
    /// Where chance comes from.
    pub rng: Rng,
    keys: u64,
    serial: u64,
    /// Whether its machine ingests too.
    pub ingests: bool,
    /// Slots that cannot be used at the moment.
    pub closed: [bool; SLOTS],
}

impl Generator {
    /// Writes to about this many keys per keyspace.
    pub fn new(seed: u64, keys: u64) -> Self {
        // None of the runs that are kept because they found something once does.
        let ingests = seed % 3 == 2;
        Self { rng: Rng::new(seed), keys: keys.max(1), serial: 0, ingests, closed: [false; SLOTS] }
    }

    /// A key of a slot.
    pub fn key(&mut self, slot: usize) -> Vec<u8> {
        let number = self.rng.below(self.keys);
        // Lengths and common prefixes vary, and the empty key is one of them.
        let mut key = match number % 7 {
            0 if number == 0 => Vec::new(),
            0 => format!("k{number:04}").into_bytes(),
            1 => format!("key/{number:06}/tail").into_bytes(),
            2 => format!("k{}", number / 7 % 10).repeat(1 + number as usize % 5).into_bytes(),
            3 => [&b"k\xff"[..], &(number as u16).to_be_bytes()].concat(),
            4 => [&b"\xff\xff"[..], &(number as u16).to_le_bytes()].concat(),
            _ => format!("key/{number:06}").into_bytes(),
        };
        if is_folded(slot) && self.rng.percent(50) {
            key.make_ascii_uppercase();
        }
        key
    }

    /// A value that was not there before.
    pub fn value(&mut self) -> Vec<u8> {
        self.serial += 1;
        let mut value = format!("v{}", self.serial).into_bytes();
        let len = match self.rng.below(1000) {
            0..=599 => self.rng.below(24),
            600..=899 => self.rng.below(120),
            900..=996 => self.rng.below(900),
            997 => 4_000 + self.rng.below(3_000),
            998 => 20_000 + self.rng.below(20_000),
            _ => return Vec::new(),
        };
        let random = self.rng.next();
        // Half of them compress well.
        let byte = |at: u64| if random & 1 == 0 { b'x' } else { (random >> (at % 57)) as u8 };
        value.extend((0..len).map(byte));
        value
    }

    /// Bounds of a range; at times it is empty, inverted or open.
    pub fn bounds(&mut self, slot: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let (mut start, mut end) = (self.key(slot), self.key(slot));
        if start > end && self.rng.percent(90) {
            std::mem::swap(&mut start, &mut end);
        }
        let open = self.rng.below(100);
        ((open >= 3).then_some(start), (!(2..6).contains(&open)).then_some(end))
    }

    /// A slot of the model that has a keyspace and holds more than counters.
    pub fn slot(&mut self, model: &Model) -> usize {
        let open = |slot: &usize| *slot != COUNTERS && !self.closed[*slot];
        let live: Vec<_> = model.live().filter(open).collect();
        live[self.rng.below(live.len() as u64) as usize]
    }

    /// One write to a key or, rarely, a range.
    pub fn write(&mut self, model: &Model) -> Op {
        let slot = self.slot(model);
        match self.rng.below(100) {
            0..=14 if merges(slot) => Op::Merge(slot, self.key(slot), self.value()),
            15..=24 if expires(slot) => {
                let ttl = 1 + self.rng.below(200);
                Op::PutFor(slot, self.key(slot), self.value(), ttl)
            }
            0..=68 => Op::Put(slot, self.key(slot), self.value()),
            69..=95 => Op::Delete(slot, self.key(slot)),
            _ => {
                let (start, end) = self.bounds(slot);
                Op::DeleteRange(slot, start, end)
            }
        }
    }

    /// Several writes that belong together.
    pub fn batch(&mut self, model: &Model, most: u64) -> Vec<Op> {
        let count = 1 + self.rng.below(most);
        (0..count).map(|_| self.write(model)).collect()
    }

    /// What an ingestion may write: for some keyspaces ranges that are removed, and then entries in the order of
    /// their keys.
    pub fn sorted(&mut self, model: &Model) -> Vec<Op> {
        let mut ops = Vec::new();
        for slot in (0..SLOTS).filter(|slot| *slot != COUNTERS) {
            if model.map(slot).is_none() || self.closed[slot] || self.rng.percent(40) {
                continue;
            }
            let ranges = if self.rng.percent(25) { 1 + self.rng.below(3) } else { 0 };
            for _ in 0..ranges {
                let (start, end) = self.bounds(slot);
                ops.push(Op::DeleteRange(slot, start, end));
            }
            let mut entries = BTreeMap::new();
            for _ in 0..self.rng.below(60) {
                let key = self.key(slot);
                let sort_key = model.map(slot).map(|map| map.sort_key(&key));
                let op = match self.rng.below(100) {
                    0..=9 => Op::Delete(slot, key),
                    10..=19 if merges(slot) => Op::Merge(slot, key, self.value()),
                    20..=24 if expires(slot) => {
                        let ttl = 1 + self.rng.below(200);
                        Op::PutFor(slot, key, self.value(), ttl)
                    }
                    _ => Op::Put(slot, key, self.value()),
                };
                entries.insert(sort_key, op);
            }
            ops.extend(entries.into_values());
        }
        ops
    }

    /// Sets the time to live of a keyspace, or ends it.
    pub fn change_of_ttl(&mut self, model: &Model) -> Op {
        let open = |slot: &usize| expires(*slot) && !self.closed[*slot];
        let live: Vec<_> = model.live().filter(open).collect();
        let slot = live[self.rng.below(live.len() as u64) as usize];
        let ttl = if self.rng.percent(60) { 0 } else { 1 + self.rng.below(300) };
        Op::SetTtl(slot, ttl)
    }

    /// Makes or drops a keyspace.
    pub fn change_of_keyspaces(&mut self, model: &Model) -> Op {
        let slot = FLEETING[self.rng.below(FLEETING.len() as u64) as usize];
        if model.map(slot).is_some() { Op::Drop(slot) } else { Op::Create(slot) }
    }
}

/// The write that leaves a number under a counter.
pub fn count(counter: &[u8], number: u64) -> Op {
    Op::Put(COUNTERS, counter.to_vec(), number.to_string().into_bytes())
}

/// The number under a counter; 0 if there is none.
pub fn counted(model: &Model, counter: &[u8]) -> u64 {
    let value = model.map(COUNTERS).and_then(|map| map.get(counter));
    value.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok()).unwrap_or(0)
}
