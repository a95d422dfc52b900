//! Whether anything that a transaction read was written since (R20).
//!
//! The check looks only at the memtables, including those that were flushed since; it reads no
//! file. It calls custom comparators only before a position in the log is reserved, while no other
//! thread can write to their keyspaces, since no user code may run after the reservation (R15).

use super::Transactions;
use super::ingested::Ingested;
use super::reads::{KeyspaceReads, ReadSet};
use crate::base::{Bytewise, Cursor, CustomOrder, KeyOrder, KeyspaceId, SEQ_MAX, Seq};
use crate::catalog::{Order, missing_order};
use crate::error::{ConflictCause, Error, Result};
use crate::iter::Bounds;
use crate::memtable::Memtable;
use crate::state::current::Current;
use crate::state::memtables::{DbOrder, MemtableSet};
use std::ops::Bound;
use std::sync::Arc;

/// Which keyspaces are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// Those that are ordered bytewise.
    Bytewise,
    /// Those with a custom comparator.
    Custom,
}

/// A stretch of sequence numbers.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: Seq,
    upto: Seq,
}

impl Window {
    fn contains(self, seq: Seq) -> bool {
        self.from <= seq && seq < self.upto
    }
}

/// The key that was written, and how it was read.
type Changed = (Vec<u8>, ConflictCause);

impl Transactions {
    /// Fails if anything in `reads` was written in a window: from the position at which it was
    /// read, or `from` if that is later, to `upto`. Everything below `upto` must be applied.
    /// `current` is the present state; `trust` fails if the comparator of an order has failed.
    pub fn validate(
        &self,
        current: &Current,
        reads: &ReadSet,
        (from, upto): (Seq, Seq),
        which: Which,
        trust: impl Fn(&CustomOrder) -> Result<()>,
    ) -> Result<()> {
        // The order matters: a set that has left the state is in the history by then, or dropped
        // from it.
        let state = current.load_arc();
        let (kept, ingested, floor) = self.history();
        // Seeded: a transaction does not see conflicts with writes that were flushed since.
        let (kept, floor) =
            if bug!("txn_flushed_history_not_asked") { (Vec::new(), 0) } else { (kept, floor) };
        let sets: Vec<&Arc<MemtableSet>> = kept.iter().chain(&state.memtable_sets).collect();
        for space in reads.spaces() {
            // A dropped keyspace has no content to compare.
            if space.keyspace.dropped_before(upto) {
                return Err(space.keyspace.dropped_error());
            }
            let window = |since: Seq| Window { from: since.max(from), upto };
            let changed = match (&space.keyspace.order, which) {
                (Order::Bytewise, Which::All | Which::Bytewise) => {
                    changed(&Bytewise, space, &sets, floor, window)
                        .or_else(|| changed_by(&Bytewise, &ingested, space, window))
                }
                (Order::Custom(order), Which::All | Which::Custom) => {
                    let changed = changed(order, space, &sets, floor, window)
                        .or_else(|| changed_by(order, &ingested, space, window));
                    trust(order)?;
                    changed
                }
                (Order::Missing(name), _) => {
                    return Err(missing_order(&space.keyspace.name, name));
                }
                _ => None,
            };
            if let Some((key, cause)) = changed {
                return Err(Error::Conflict { keyspace: space.keyspace.name.clone(), key, cause });
            }
        }
        Ok(())
    }
}

/// The first change that is found.
fn changed<O: DbOrder>(
    order: &O,
    space: &KeyspaceReads,
    sets: &[&Arc<MemtableSet>],
    floor: Seq,
    window: impl Fn(Seq) -> Window,
) -> Option<Changed> {
    // A branch finds entries that it shares under the number of its original (R24).
    let id = |set: &Arc<MemtableSet>| space.keyspace.id_in(set.start);
    for (key, since) in &space.keys {
        let window = window(*since);
        if window.from < floor {
            return Some((Vec::new(), ConflictCause::HistoryTooOld));
        }
        if sets_of(sets, window).any(|set| key_changed::<O>(set, id(set), key, window)) {
            return Some((key.clone(), ConflictCause::KeyChanged));
        }
    }
    for range in &space.ranges {
        let window = window(range.since);
        let stretches = range.stretches();
        if !stretches.is_empty() && window.from < floor {
            return Some((Vec::new(), ConflictCause::HistoryTooOld));
        }
        for bounds in stretches {
            let find = |set: &Arc<MemtableSet>| range_changed(order, set, id(set), &bounds, window);
            if let Some(key) = sets_of(sets, window).find_map(find) {
                return Some((key, ConflictCause::RangeChanged));
            }
        }
    }
    None
}

/// The first change by an ingestion that is found.
fn changed_by<O: KeyOrder>(
    order: &O,
    ingested: &[Arc<Ingested>],
    space: &KeyspaceReads,
    window: impl Fn(Seq) -> Window,
) -> Option<Changed> {
    let own: Vec<_> = ingested.iter().filter(|one| one.keyspace == space.keyspace.id).collect();
    if own.is_empty() {
        return None;
    }
    let seen = |since: Seq| {
        let window = window(since);
        own.iter().filter(move |one| window.contains(one.seq))
    };
    for (key, since) in &space.keys {
        if seen(*since).any(|one| one.touches_key(order, key)) {
            return Some((key.clone(), ConflictCause::KeyChanged));
        }
    }
    for range in &space.ranges {
        for bounds in range.stretches() {
            if let Some(key) = seen(range.since).find_map(|one| one.within(order, &bounds)) {
                return Some((key.to_vec(), ConflictCause::RangeChanged));
            }
        }
    }
    None
}

/// Whether anything within `bounds` was written to a set before `upto`.
pub fn is_written<O: DbOrder>(
    order: &O,
    set: &MemtableSet,
    id: KeyspaceId,
    bounds: &Bounds,
    upto: Seq,
) -> bool {
    let window = Window { from: 0, upto };
    O::tables(set, id).any(|table| table_range_changed(order, &table, id, bounds, window).is_some())
}

/// The sets that may hold sequence numbers of the window.
fn sets_of<'s>(
    sets: &[&'s Arc<MemtableSet>],
    window: Window,
) -> impl Iterator<Item = &'s Arc<MemtableSet>> {
    sets.iter().copied().filter(move |set| {
        set.start < window.upto && set.sealed_at().is_none_or(|end| end > window.from)
    })
}

fn key_changed<O: DbOrder>(set: &MemtableSet, id: KeyspaceId, key: &[u8], window: Window) -> bool {
    // Seeded: a transaction commits over a key that was written since it was read.
    bug!("txn_changed_keys_not_seen", return false);
    O::tables(set, id).any(|table| {
        let newest = table.get(id, key, window.upto).map_or(0, |found| found.seq);
        newest.max(table.tombstone_seq(id, key, window.upto)) >= window.from
    })
}

/// A key within `bounds` that was written in the window, or the start of a range tombstone that
/// overlaps them.
fn range_changed<O: DbOrder>(
    order: &O,
    set: &MemtableSet,
    id: KeyspaceId,
    bounds: &Bounds,
    window: Window,
) -> Option<Vec<u8>> {
    // Seeded: a transaction commits although a key appeared in a range that it read.
    bug!("txn_phantoms_not_seen", return None);
    O::tables(set, id).find_map(|table| table_range_changed(order, &table, id, bounds, window))
}

fn table_range_changed<O: DbOrder>(
    order: &O,
    table: &Arc<Memtable<O>>,
    id: KeyspaceId,
    bounds: &Bounds,
    window: Window,
) -> Option<Vec<u8>> {
    let removed = table.tombstone_view(id);
    for tombstone in removed.since(window.from).filter(|tombstone| tombstone.seq < window.upto) {
        let (start, end) = (tombstone.start.as_deref(), tombstone.end.as_deref());
        if bounds.meet(order, (start, end)) {
            return Some(tombstone.start.unwrap_or_default());
        }
    }
    let mut cursor = table.cursor(id);
    // A cursor over a memtable reads no file and never fails.
    let placed = match &bounds.low {
        Bound::Included(low) => cursor.seek(low, SEQ_MAX),
        Bound::Excluded(low) => cursor.seek(low, 0),
        Bound::Unbounded => cursor.seek_to_first(),
    };
    debug_assert!(placed.is_ok());
    while cursor.valid() && bounds.end_behind(order, cursor.key()) {
        if window.contains(cursor.seq()) {
            return Some(cursor.key().to_vec());
        }
        cursor.next().ok()?;
    }
    None
}
