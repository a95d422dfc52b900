//! What a database should hold: a plain map per keyspace.
//!
//! Keyspaces stand in a fixed number of slots, so that a write names a slot and not a string, and
//! a dropped keyspace is an empty slot. Some slots are bytewise and some have the order of
//! [`Folded`], in which keys with different bytes are the same key.
//!
//! 1. A clone costs one reference count per slot: the model as of each snapshot is kept whole.
//! 2. Entries are kept under a *sort key*, whose byte order is the keyspace's order; beside it
//!    stand the bytes of the key that was written last.
//! 3. `entries` is what shows at the model's time. Of keys to which something was written that
//!    expires, all writes since the last one that needs no others are kept beside, and replayed
//!    when the time changes.
//! 4. Of a keyspace with a compaction filter it is not known what shows (`filtered`). Whoever has read
//!    something asks whether that is possible ([`Model::see`]), which makes the model know more.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

mod expected;
mod filtered;
mod writes;

pub use expected::{Expected, To};
pub use filtered::Trimmed;
pub use writes::{Pair, SEPARATOR};

use expected::Line;
use filtered::States;
use writes::{Moment, Write, merged};

/// How many slots there are.
pub const SLOTS: usize = 6;
/// The slot that only counters are written to.
pub const COUNTERS: usize = 5;
/// The names of the keyspaces, by slot.
pub const NAMES: [&str; SLOTS] = ["default", "folded", "ant", "bee", "cat-folded", "counters"];
/// The slots that are dropped and made again.
pub const FLEETING: [usize; 3] = [2, 3, 4];

/// Whether the keyspace of a slot has a merge operator: one that appends.
pub fn merges(slot: usize) -> bool {
    slot != 0 && slot != COUNTERS
}

/// Whether writes to a slot may expire. In a folded order the bytes of a key could then be those
/// of a write that has expired, or not.
pub fn expires(slot: usize) -> bool {
    slot != COUNTERS && !is_folded(slot)
}

/// Whether a slot has the order of [`Folded`].
pub fn is_folded(slot: usize) -> bool {
    slot == 1 || slot == 4
}

/// An order in which letters of either case are the same and keys are read from their end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Folded;

impl Folded {
    /// Bytes whose order is the order of the keys.
    fn sort_key(key: &[u8]) -> Vec<u8> {
        key.iter().rev().map(u8::to_ascii_lowercase).collect()
    }
}

impl esker::Comparator for Folded {
    fn name(&self) -> &str {
        "folded-from-the-end"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let fold = u8::to_ascii_lowercase;
        a.iter().rev().map(fold).cmp(b.iter().rev().map(fold))
    }
}

/// Appends operands. It does not come with the engine, so that it can be withheld.
#[derive(Debug, Clone, Copy, Default)]
pub struct Joined;

impl esker::AssociativeOperator for Joined {
    fn name(&self) -> &str {
        "joined"
    }

    fn merge(&self, _: &[u8], existing: &[u8], operand: &[u8]) -> esker::OperatorResult<Vec<u8>> {
        Ok(merged(Some(existing), operand))
    }
}

/// A write to one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Puts a value under a key.
    Put(usize, Vec<u8>, Vec<u8>),
    /// Puts a value that lives for a number of milliseconds.
    PutFor(usize, Vec<u8>, Vec<u8>, u64),
    /// Writes an operand.
    Merge(usize, Vec<u8>, Vec<u8>),
    /// Sets how many milliseconds later writes live; 0: for ever.
    SetTtl(usize, u64),
    /// Time goes on to this; nothing is written.
    Tick(u64),
    /// Deletes a key.
    Delete(usize, Vec<u8>),
    /// Deletes from the first bound up to the second, which stays.
    DeleteRange(usize, Option<Vec<u8>>, Option<Vec<u8>>),
    /// Makes the keyspace of a slot, if there is none.
    Create(usize),
    /// Drops the keyspace of a slot.
    Drop(usize),
}

impl Op {
    /// The slot that it writes keys of; none of a change of keyspaces or of the time.
    pub fn writes_to(&self) -> Option<usize> {
        match self {
            Self::Put(slot, ..)
            | Self::PutFor(slot, ..)
            | Self::Merge(slot, ..)
            | Self::Delete(slot, _)
            | Self::DeleteRange(slot, ..) => Some(*slot),
            Self::SetTtl(..) | Self::Tick(_) | Self::Create(_) | Self::Drop(_) => None,
        }
    }
}

/// One keyspace. Equality looks at what shows.
#[derive(Debug, Clone)]
pub struct Map {
    folded: bool,
    entries: BTreeMap<Vec<u8>, Pair>,
    ttl: u64,
    writes: BTreeMap<Vec<u8>, Vec<Write>>,
    /// All keys, if the keyspace has a compaction filter; then the other maps are empty.
    states: Option<States>,
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        (self.folded, &self.entries, &self.states) == (other.folded, &other.entries, &other.states)
    }
}

impl Eq for Map {}

impl Map {
    fn new(folded: bool, filtered: bool) -> Self {
        let (entries, writes) = (BTreeMap::new(), BTreeMap::new());
        Self { folded, entries, ttl: 0, writes, states: filtered.then(States::default) }
    }

    fn write(&mut self, moment: Moment, pair: Pair, merge: bool, ttl: u64) {
        let now = moment.now;
        let key = self.sort_key(&pair.0);
        let expiry = (ttl > 0).then(|| now + ttl);
        if let Some(states) = &mut self.states {
            return states.write(moment, key, &Write { pair, merge, expiry });
        }
        let plain = expiry.is_none() && !self.writes.contains_key(&key);
        if !merge && expiry.is_none() {
            self.writes.remove(&key);
            self.entries.insert(key, pair);
        } else if plain {
            let existing = self.entries.get(&key).map(|(_, value)| &value[..]);
            let value = merged(existing, &pair.1);
            self.entries.insert(key, (pair.0, value));
        } else {
            let present = self.entries.get(&key).cloned();
            let base = present.map(|pair| Write { pair, merge: false, expiry: None });
            let writes = self.writes.entry(key.clone()).or_insert_with(|| Vec::from_iter(base));
            if !merge {
                writes.clear();
            }
            writes.push(Write { pair, merge, expiry });
            self.show(&key, now);
        }
    }

    /// Decides what shows of a key of which writes are kept.
    fn show(&mut self, key: &[u8], now: u64) {
        let mut shown: Option<Pair> = None;
        for write in self.writes.get(key).into_iter().flatten() {
            let gone = write.expiry.is_some_and(|expiry| expiry <= now);
            let existing = shown.as_ref().map(|(_, value)| &value[..]);
            match (write.merge, gone) {
                (false, false) => shown = Some(write.pair.clone()),
                (false, true) => shown = None,
                (true, false) => {
                    shown = Some((write.pair.0.clone(), merged(existing, &write.pair.1)));
                }
                (true, true) => {}
            }
        }
        match shown {
            Some(pair) => drop(self.entries.insert(key.to_vec(), pair)),
            None => drop(self.entries.remove(key)),
        }
    }

    fn tick(&mut self, moment: Moment) {
        let keys: Vec<_> = self.writes.keys().cloned().collect();
        keys.iter().for_each(|key| self.show(key, moment.now));
        if let Some(states) = &mut self.states {
            states.tick(moment);
        }
    }

    /// What the key with this sort key may show.
    fn shown(&self, key: &[u8]) -> Vec<Option<Pair>> {
        match &self.states {
            None => vec![self.entries.get(key).cloned()],
            Some(states) => states.shown(key),
        }
    }

    /// Whether the key with this sort key may show this.
    fn allows(&self, key: &[u8], found: Option<&Pair>) -> bool {
        match &self.states {
            None => self.entries.get(key) == found,
            Some(states) => states.shown(key).iter().any(|shown| shown.as_ref() == found),
        }
    }

    /// What an iterator within bounds must show.
    pub fn expected(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Expected {
        let bound = |bound: Bound<&[u8]>| bound.map(|key| self.sort_key(key));
        let (low, high) = (bound(low), bound(high));
        if is_inverted(&low, &high) {
            return Expected::default();
        }
        Expected::of(match &self.states {
            None => self.entries.range((low, high)).map(|(_, pair)| Line::certain(pair)).collect(),
            Some(states) => states.lines((low, high)),
        })
    }

    /// Bytes whose order is the order of this keyspace.
    pub fn sort_key(&self, key: &[u8]) -> Vec<u8> {
        if self.folded { Folded::sort_key(key) } else { key.to_vec() }
    }

    /// The value under a key of a keyspace without a filter.
    pub fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.entries.get(&self.sort_key(key)).map(|(_, value)| value)
    }

    /// How many entries there are in a keyspace without a filter.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries of a keyspace without a filter, in order.
    pub fn pairs(&self) -> impl DoubleEndedIterator<Item = &Pair> {
        self.entries.values()
    }

    fn remove_range(&mut self, start: Option<&[u8]>, end: Option<&[u8]>) {
        let (low, high) = (low_of(start, self), high_of(end, self));
        if is_inverted(&low, &high) {
            return;
        }
        let gone: Vec<_> = self.entries.range((low, high)).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| drop(self.entries.remove(key)));
        let bounds = (low_of(start, self), high_of(end, self));
        let gone: Vec<_> = self.writes.range(bounds).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| drop(self.writes.remove(key)));
        let bounds = (low_of(start, self), high_of(end, self));
        if let Some(states) = &mut self.states {
            states.remove_range(bounds);
        }
    }
}

fn low_of(start: Option<&[u8]>, map: &Map) -> Bound<Vec<u8>> {
    start.map_or(Bound::Unbounded, |key| Bound::Included(map.sort_key(key)))
}

fn high_of(end: Option<&[u8]>, map: &Map) -> Bound<Vec<u8>> {
    end.map_or(Bound::Unbounded, |key| Bound::Excluded(map.sort_key(key)))
}

/// Whether nothing can lie between the bounds, so that `BTreeMap::range` would panic.
fn is_inverted(low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
    }
}

/// What a database holds.
///
/// Equality looks at the entries only; see also [`Model::difference`].
#[derive(Debug, Clone)]
pub struct Model {
    slots: [Option<Arc<Map>>; SLOTS],
    now: u64,
    filters: [bool; SLOTS],
    frozen: bool,
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.slots == other.slots
    }
}

impl Eq for Model {}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Model {
    /// A new database: the default keyspace, empty.
    pub fn new() -> Self {
        Self::filtering([false; SLOTS])
    }

    /// A new database, in which the keyspaces of these slots have a compaction filter.
    pub fn filtering(filters: [bool; SLOTS]) -> Self {
        let mut slots = [const { None }; SLOTS];
        slots[0] = Some(Arc::new(Map::new(false, filters[0])));
        Self { slots, now: 0, filters, frozen: false }
    }

    /// The same as a moment that a snapshot sees, at which filters change nothing any more.
    pub fn frozen(&self) -> Self {
        Self { frozen: true, ..self.clone() }
    }

    /// The same as the beginning of a present, in which filters are asked.
    pub fn thawed(&self) -> Self {
        let mut model = Self { frozen: false, ..self.clone() };
        model.apply(&Op::Tick(self.now));
        model
    }

    /// Whether the keyspace of a slot has a compaction filter.
    pub fn filters(&self, slot: usize) -> bool {
        self.filters[slot]
    }

    /// Whether any keyspace has one.
    pub fn has_filters(&self) -> bool {
        self.filters.contains(&true)
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, frozen: self.frozen }
    }

    /// The time, in milliseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The keyspace in a slot.
    pub fn map(&self, slot: usize) -> Option<&Map> {
        self.slots[slot].as_deref()
    }

    /// The slots that have a keyspace.
    pub fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..SLOTS).filter(|slot| self.slots[*slot].is_some())
    }

    /// The names of the keyspaces, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.live().map(|slot| NAMES[slot].to_owned()).collect();
        names.sort();
        names
    }

    /// Applies one write. It changes nothing in a slot without a keyspace.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Create(slot) => {
                let filtered = self.filters[*slot];
                let new = || Arc::new(Map::new(is_folded(*slot), filtered));
                self.slots[*slot].get_or_insert_with(new);
            }
            Op::Drop(slot) => self.slots[*slot] = None,
            Op::Put(slot, key, value) => {
                let moment = self.moment();
                let Some(map) = self.map_mut(*slot) else { return };
                map.write(moment, (key.clone(), value.clone()), false, map.ttl);
            }
            Op::PutFor(slot, key, value, ttl) => {
                let moment = self.moment();
                let Some(map) = self.map_mut(*slot) else { return };
                map.write(moment, (key.clone(), value.clone()), false, *ttl);
            }
            Op::Merge(slot, key, operand) => {
                let moment = self.moment();
                let Some(map) = self.map_mut(*slot) else { return };
                map.write(moment, (key.clone(), operand.clone()), true, map.ttl);
            }
            Op::SetTtl(slot, ttl) => {
                let Some(map) = self.map_mut(*slot) else { return };
                map.ttl = *ttl;
            }
            Op::Tick(now) => {
                self.now = *now;
                let moment = self.moment();
                let timed = |map: &&mut Arc<Map>| !map.writes.is_empty() || map.states.is_some();
                for map in self.slots.iter_mut().flatten().filter(timed) {
                    Arc::make_mut(map).tick(moment);
                }
            }
            Op::Delete(slot, key) => {
                let Some(map) = self.map_mut(*slot) else { return };
                let key = map.sort_key(key);
                map.entries.remove(&key);
                map.writes.remove(&key);
                if let Some(states) = &mut map.states {
                    states.remove(&key);
                }
            }
            Op::DeleteRange(slot, start, end) => {
                let Some(map) = self.map_mut(*slot) else { return };
                map.remove_range(start.as_deref(), end.as_deref());
            }
        }
    }

    /// Applies several writes in order.
    pub fn apply_all(&mut self, ops: &[Op]) {
        ops.iter().for_each(|op| self.apply(op));
    }

    fn map_mut(&mut self, slot: usize) -> Option<&mut Map> {
        self.slots[slot].as_mut().map(Arc::make_mut)
    }

    /// Whether a key may show what was read, of which `fits` says whether it is that. From then on
    /// the model knows that the key has shown it.
    pub fn see(&mut self, slot: usize, key: &[u8], fits: impl Fn(Option<&Pair>) -> bool) -> bool {
        let moment = self.moment();
        let Some(map) = &mut self.slots[slot] else { return fits(None) };
        let key = map.sort_key(key);
        let shown = map.shown(&key);
        let right = shown.iter().any(|shown| fits(shown.as_ref()));
        // What is certain tells nothing, and the map need not be copied for it.
        if right
            && shown.len() > 1
            && let Some(states) = &mut Arc::make_mut(map).states
        {
            states.learn(moment, &key, fits);
        }
        right
    }

    /// As [`Model::see`] for all that there is in these slots. Where the two first differ, in words.
    pub fn see_all(&mut self, found: &Self, which: impl Fn(usize) -> bool) -> Option<String> {
        let difference = self.difference_of(found, &which);
        let moment = self.moment();
        for slot in (0..SLOTS).filter(|slot| which(*slot)) {
            let (Some(map), Some(found)) = (&mut self.slots[slot], found.map(slot)) else {
                continue;
            };
            let open = map.states.as_ref().map_or_else(Vec::new, States::open);
            if open.is_empty() {
                continue;
            }
            let Some(states) = &mut Arc::make_mut(map).states else { continue };
            for key in &open {
                states.learn(moment, key, |shown| shown == found.entries.get(key));
            }
        }
        difference
    }

    /// What a key may show, in words.
    pub fn told(&self, slot: usize, key: &[u8]) -> String {
        let shown = self.map(slot).map_or_else(Vec::new, |map| map.shown(&map.sort_key(key)));
        let shown: Vec<_> = shown.iter().map(|shown| shown.as_ref().map(show)).collect();
        format!("{shown:?}")
    }

    /// In these slots filters were asked about everything, and no snapshot saw any of it.
    pub fn filter_all(&mut self, which: impl Fn(usize) -> bool) {
        let filtered = self.filters;
        for slot in (0..SLOTS).filter(|slot| filtered[*slot] && which(*slot)) {
            if let Some(states) = self.map_mut(slot).and_then(|map| map.states.as_mut()) {
                states.filter_all();
            }
        }
    }

    /// Where contents first differ from what is possible, in words; `None`: nowhere.
    pub fn difference(&self, found: &Self) -> Option<String> {
        self.difference_in(found, |_| true)
    }

    /// Where contents first differ in these slots, or in which keyspaces there are.
    pub fn difference_in(&self, found: &Self, which: impl Fn(usize) -> bool) -> Option<String> {
        if self.names() != found.names() {
            return Some(format!("keyspaces {:?}, not {:?}", found.names(), self.names()));
        }
        self.difference_of(found, which)
    }

    fn difference_of(&self, found: &Self, which: impl Fn(usize) -> bool) -> Option<String> {
        for slot in self.live().filter(|slot| which(*slot)) {
            let (Some(want), Some(have)) = (self.map(slot), found.map(slot)) else { continue };
            if want == have {
                continue;
            }
            let filtered = want.states.iter().flat_map(|states| states.keys());
            let keys: BTreeSet<_> =
                want.entries.keys().chain(filtered).chain(have.entries.keys()).collect();
            for key in keys {
                let have = have.entries.get(key);
                if !want.allows(key, have) {
                    let want = want.shown(key);
                    let want: Vec<_> = want.iter().map(|want| want.as_ref().map(show)).collect();
                    let have = have.map(show);
                    return Some(format!("keyspace {}: {have:?}, not {want:?}", NAMES[slot]));
                }
            }
        }
        None
    }
}

/// An entry for people; large values are cut.
fn show((key, value): &Pair) -> String {
    let head = &value[..value.len().min(24)];
    format!("{} = {} ({} bytes)", key.escape_ascii(), head.escape_ascii(), value.len())
}
