//! The path of a point read (`docs/read-path.md`): memtables, then the partition's runs from new
//! to old, until one of them has the key.
//!
//! 1. The first attempt runs inside an epoch and touches only what is in memory: no lock, no
//!    reference count, no I/O. If a block or index is missing, the attempt is repeated with owned
//!    references and may read (no I/O ever happens inside an epoch).
//! 2. The read goes through the sources from newest to oldest, so the first entry found is the
//!    newest. A range tombstone on the way hides everything older than itself. The read carries the
//!    newest tombstone so far along, and every later source is older (R18).
//! 3. Whether a value has expired depends on the time that belongs to the position; the clock is
//!    read only when such a value is found. An operand needs older entries too: a scan of this one
//!    key, over all sources, then replaces the search.
//! 4. The state is loaded before `visible` is read; see `state`.
//! 5. Only the engine's own code runs inside the epoch: it copies a value or pins its block. The
//!    caller's code runs after the epoch, since memory that is retired during a long epoch cannot
//!    be reused until the epoch ends (R25).

#[cfg(test)]
mod tests;

use crate::base::codec::hash_key;
use crate::base::{Bytewise, KeyOrder, Kind, Moment, Seq, expired, split};
use crate::cache::FramePin;
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::db::core::Core;
use crate::db::scan::Scan;
use crate::error::Result;
use crate::iter::Bounds;
use crate::run::{Access, BlockRef, Probe};
use crate::state::State;
use crate::state::memtables::DbOrder;
use crate::stats::counters::{Counter, Counters, Timed};
use crate::sync::pin;
use std::ops::Bound;
use std::sync::Arc;

/// The result of an attempt.
enum Answer<R> {
    NeedsIo,
    Absent,
    /// The newest version is an operand.
    Operand,
    Present(R),
}

/// A point read in progress.
struct Search<'a, O> {
    order: &'a O,
    keyspace: &'a KeyspaceState,
    key: &'a [u8],
    below: Seq,
    /// A registered snapshot's moment.
    at: Option<Moment>,
}

/// A value at the place where it was found; it stays there while `take` of [`Core::get`] runs.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    bytes: &'a [u8],
    /// The block that holds it; `None`: it is in memory that only the search protects.
    block: Option<&'a BlockRef<'a>>,
}

impl<'a> Seen<'a> {
    /// The value.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Keeps the value for longer, by pinning its block or by a copy.
    pub fn hold(self) -> Held {
        let Some(block) = self.block else { return Held::Copy(self.bytes.to_vec()) };
        let pin = block.pin();
        let start = self.bytes.as_ptr() as usize - pin.bytes().as_ptr() as usize;
        Held::Block { pin, range: (start, start + self.bytes.len()) }
    }
}

/// A value that stays readable while this lives, without an epoch.
#[derive(Debug)]
pub enum Held {
    /// In a cached block.
    Block {
        /// Keeps the block.
        pin: FramePin,
        /// Where the value stands in it.
        range: (usize, usize),
    },
    /// Taken from a memtable, or folded from operands.
    Copy(Vec<u8>),
}

impl Held {
    /// The value.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Block { pin, range } => &pin.bytes()[range.0..range.1],
            Self::Copy(bytes) => bytes,
        }
    }
}

impl Core {
    /// Looks a key up and hands its value to `take`, which must be the engine's own code and end
    /// soon (rule 5). `at`: a registered snapshot's moment.
    pub fn get<R>(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        key: &[u8],
        at: Option<Moment>,
        take: impl FnOnce(Seen<'_>) -> R,
    ) -> Result<Option<R>> {
        self.check_open()?;
        let at = keyspace.moment(at);
        let lane = self.counters.lane();
        let started = Counters::begin_in(lane, Counter::Gets);
        let found = match &keyspace.order {
            Order::Bytewise => self.get_ordered(&Bytewise, keyspace, key, at, take),
            Order::Custom(order) => {
                let found = self.get_ordered(order, keyspace, key, at, take);
                self.trust(order).and(found)
            }
            Order::Missing(name) => Err(missing_order(&keyspace.name, name)),
        };
        if !matches!(found, Ok(Some(_))) && !cfg!(feature = "bench-no-stats") {
            lane.add(Counter::GetsMissing as usize, 1);
        }
        self.counters.end(Timed::Get, started);
        found
    }

    /// Fails, and ends all writing, if a custom comparator has panicked (R15).
    pub(crate) fn trust(&self, order: &impl KeyOrder) -> Result<()> {
        order.check().inspect_err(|error| self.latch.fail(error.clone()))
    }

    #[inline]
    fn get_ordered<O: DbOrder, R>(
        self: &Arc<Self>,
        order: &O,
        keyspace: &Arc<KeyspaceState>,
        key: &[u8],
        at: Option<Moment>,
        take: impl FnOnce(Seen<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut take = Some(take);
        'cached: {
            let guard = pin();
            let state = self.state.load(&guard);
            let below = at.map_or_else(|| self.visible(), |at| at.seq);
            let search = Search { order, keyspace, key, below, at };
            match self.search(&search, state, Access::Cached(&guard), &mut take)? {
                Answer::NeedsIo => break 'cached,
                Answer::Operand => {}
                Answer::Absent => return self.checked(keyspace, None),
                Answer::Present(value) => return self.checked(keyspace, Some(value)),
            }
            drop(guard);
            return self.get_folded(order, keyspace, key, at, take);
        }
        let state = self.state.load_arc();
        let below = at.map_or_else(|| self.visible(), |at| at.seq);
        let search = Search { order, keyspace, key, below, at };
        let answer = self.search(&search, &state, Access::Read, &mut take);
        let answer = answer.map_err(|error| error.in_keyspace(&keyspace.name, None));
        match answer.inspect_err(|error| self.monitor.damage(error))? {
            Answer::Present(value) => {
                self.counters.add(Counter::GetsElsewhere, 1);
                self.checked(keyspace, Some(value))
            }
            Answer::Operand => self.get_folded(order, keyspace, key, at, take),
            Answer::Absent | Answer::NeedsIo => self.checked(keyspace, None),
        }
    }

    /// Looks up a key whose newest version is an operand.
    #[cold]
    fn get_folded<O: DbOrder, R>(
        self: &Arc<Self>,
        order: &O,
        keyspace: &Arc<KeyspaceState>,
        key: &[u8],
        at: Option<Moment>,
        take: Option<impl FnOnce(Seen<'_>) -> R>,
    ) -> Result<Option<R>> {
        let (state, moment) = self.view(at);
        let low = Bound::Included(key.to_vec());
        let bounds = Bounds { high: low.clone(), low };
        let (core, order) = (self.clone(), order.clone());
        let mut scan = Scan::new(core, keyspace.clone(), order, state, moment, bounds);
        scan.find(key)?;
        let found = if scan.valid() {
            take.map(|take| take(Seen { bytes: scan.value(), block: None }))
        } else {
            None
        };
        if found.is_some() {
            self.counters.add(Counter::GetsElsewhere, 1);
        }
        self.checked(keyspace, found)
    }

    /// Decides whether a value has expired.
    #[cold]
    fn take_expiring<R, F: FnOnce(Seen<'_>) -> R>(
        &self,
        stored: Seen<'_>,
        at: Option<Moment>,
        take: &mut Option<F>,
    ) -> Answer<R> {
        let (expiry, bytes) = split(Kind::ExpiringPut, stored.bytes);
        if expired(expiry, at.map_or_else(|| self.now(), |at| at.time)) {
            return Answer::Absent;
        }
        let value = Seen { bytes, ..stored };
        take.take().map_or(Answer::Absent, |take| Answer::Present(take(value)))
    }

    /// Fails a read that came after the drop of its keyspace, whatever the read found.
    #[inline]
    fn checked<R>(&self, keyspace: &KeyspaceState, found: Option<R>) -> Result<Option<R>> {
        if keyspace.dropped_at().is_some() {
            return Err(keyspace.dropped_error());
        }
        Ok(found)
    }

    #[inline]
    fn search<O: DbOrder, R, F: FnOnce(Seen<'_>) -> R>(
        &self,
        search: &Search<'_, O>,
        state: &State,
        access: Access<'_>,
        take: &mut Option<F>,
    ) -> Result<Answer<R>> {
        let Search { order, keyspace, key, below, at } = *search;
        // Hands a found entry over, unless it is a delete or a range tombstone hides it.
        let mut settle = |seq: Seq, kind: Kind, cover: Seq, value: Seen<'_>| {
            if seq < cover {
                return Answer::Absent;
            }
            match kind {
                Kind::Put => {}
                Kind::Delete => return Answer::Absent,
                Kind::Merge | Kind::ExpiringMerge => return Answer::Operand,
                Kind::ExpiringPut => return self.take_expiring(value, at, take),
            }
            take.take().map_or(Answer::Absent, |take| Answer::Present(take(value)))
        };
        let hash = hash_key(key);
        for set in &state.memtable_sets {
            let id = keyspace.id_in(set.start);
            let Some(table) = O::table(set, id) else { continue };
            let cover = table.tombstone_seq(id, key, below);
            if let Some(found) = table.get_hashed(id, key, hash, below) {
                let value = Seen { bytes: found.value, block: None };
                let answer = settle(found.seq, found.kind, cover, value);
                if matches!((&answer, access), (Answer::Present(_), Access::Cached(_))) {
                    self.counters.add(Counter::GetsElsewhere, 1);
                }
                return Ok(answer);
            }
            // Seeded: a get finds an entry in a run that a range delete in memory hides.
            bug!("db_range_delete_in_memory_not_carried", continue);
            if cover > 0 {
                return Ok(Answer::Absent);
            }
        }
        let Some(tree) = state.version.tree(keyspace.id) else { return Ok(Answer::Absent) };
        let partition = &tree.partitions()[tree.find(order, key)];
        for run in partition.runs() {
            let Some(cover) = run.tombstone_seq(order, key, below, access)? else {
                return Ok(Answer::NeedsIo);
            };
            match run.get(order, key, hash, below, access, &self.cache)? {
                Probe::NeedsIo => return Ok(Answer::NeedsIo),
                Probe::Found(found) => {
                    let value = Seen { bytes: found.value(), block: Some(&found.block) };
                    return Ok(settle(found.seq, found.kind, cover, value));
                }
                Probe::Absent if cover > 0 => return Ok(Answer::Absent),
                Probe::Absent => {}
            }
        }
        Ok(Answer::Absent)
    }
}
