//! How many entries of a range a reader sees, as far as that follows from the descriptions of run segments and from
//! what is in memory.
//!
//! A segment of which the description tells the number counts if no memtable has an entry among its keys. What lies
//! between two of them is left to the caller, who reads it, unless nothing is there.

use super::State;
use super::memtables::{DbOrder, TableRef};
use crate::base::rangedel::{Fragments, RangeTombstone};
use crate::base::{Cursor, KeyBuf, KeyspaceId, Kind, Seq};
use crate::error::Result;
use crate::manifest::{CountBounds, Home, KeyRange, Tree, extents, groups, hulls, in_both};
use crate::memtable::MemCursor;
use std::ops::Bound;

/// A range of keys of a keyspace.
#[derive(Debug, Clone, Copy)]
pub struct Within<'a> {
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// The numbers under which its entries are in memtables.
    pub home: &'a Home,
    /// The range.
    pub range: KeyRange<'a>,
}

/// The bounds of a part of a range.
pub type Part = (Bound<KeyBuf>, Bound<KeyBuf>);

/// A part of a range, and how many entries it has.
#[derive(Debug)]
pub struct Piece {
    /// The part.
    pub bounds: Part,
    /// Its entries; `None`: they have to be read.
    pub entries: Option<u64>,
}

impl State {
    /// The parts of a range in which a reader at `at` sees entries, in key order, each with their number or without
    /// it.
    pub fn count_pieces<O: DbOrder>(
        &self,
        order: &O,
        within: Within<'_>,
        at: Seq,
    ) -> Result<Vec<Piece>> {
        let (low, high) = within.range;
        let mut pieces = Vec::new();
        if in_both(order, within.range, (None, None)).is_none() {
            return Ok(pieces);
        }
        let nothing = Tree::default();
        let tree = self.version.tree(within.keyspace).map_or(&nothing, |tree| tree.as_ref());
        let extents = extents(order, tree, within.range);
        let tombstones = self.tombstones_over(order, tree, within);
        let mut memory = Occupied::new(order, self, within);
        let mut from = low.map_or(Bound::Unbounded, Bound::Included);
        // Whether something is there from `from` on.
        let mut unread = false;
        for group in groups(order, &extents, &tombstones) {
            let Some(counted) = group.counted(at) else {
                unread = true;
                continue;
            };
            let before = |key: &[u8]| order.compare(key, counted.first).is_lt();
            unread |= memory.next(from)?.is_some_and(before);
            let inside = |key: &[u8]| order.compare(key, counted.last).is_le();
            if memory.next(Bound::Included(counted.first))?.is_some_and(inside) {
                unread = true;
                continue;
            }
            if unread {
                let bounds = (from.map(KeyBuf::from), Bound::Excluded(counted.first.into()));
                pieces.push(Piece { bounds, entries: None });
            }
            let [first, last] = [counted.first, counted.last].map(KeyBuf::from);
            let bounds = (Bound::Included(first), Bound::Included(last));
            pieces.push(Piece { bounds, entries: Some(counted.entries) });
            (from, unread) = (Bound::Excluded(counted.last), false);
        }
        let inside = |key: &[u8]| high.is_none_or(|high| order.compare(key, high).is_lt());
        if unread || memory.next(from)?.is_some_and(inside) {
            let high = high.map_or(Bound::Unbounded, |high| Bound::Excluded(high.into()));
            pieces.push(Piece { bounds: (from.map(KeyBuf::from), high), entries: None });
        }
        Ok(pieces)
    }

    /// Between which numbers the number of entries lies that a reader at `at` sees in a range.
    pub fn count_bounds<O: DbOrder>(
        &self,
        order: &O,
        within: Within<'_>,
        at: Seq,
    ) -> Result<CountBounds> {
        let mut sum = CountBounds::default();
        if in_both(order, within.range, (None, None)).is_none() {
            return Ok(sum);
        }
        if let Some(tree) = self.version.tree(within.keyspace) {
            let extents = extents(order, tree, within.range);
            let tombstones = self.tombstones_over(order, tree, within);
            for bounds in groups(order, &extents, &tombstones).map(|group| group.bounds(at)) {
                sum.least = sum.least.saturating_add(bounds.least);
                sum.most = sum.most.saturating_add(bounds.most);
            }
        }
        let (values, hiders) = self.memory_entries(order, within)?;
        // Seeded: the estimate of a count does not know what is removed in memory.
        let hiders = if bug!("state_estimate_forgets_memory") { 0 } else { hiders };
        let least = sum.least.saturating_sub(hiders);
        Ok(CountBounds { least, most: sum.most.saturating_add(values) })
    }

    /// Range tombstones that cover what those in memory and in files may cover in a range.
    fn tombstones_over<O: DbOrder>(&self, order: &O, tree: &Tree, within: Within<'_>) -> Fragments {
        let in_memory = tables::<O>(self, within).flat_map(|(id, table)| table.tombstones(id));
        let mut all: Vec<RangeTombstone> = in_memory.collect();
        all.extend(hulls(order, tree, within.range));
        Fragments::build(order, all)
    }

    /// How many entries of a range in memtables are no deletes, and how many may hide a key.
    fn memory_entries<O: DbOrder>(&self, order: &O, within: Within<'_>) -> Result<(u64, u64)> {
        let (mut values, mut hiders) = (0, 0);
        walk_memory(order, self, within, |entry| {
            values += u64::from(entry.kind() != Kind::Delete);
            hiders += u64::from(entry.kind() != Kind::Put);
        })?;
        Ok((values, hiders))
    }
}

/// Shows each entry of a range in memtables to `visit`. There are only a few memtables, of at most 256 MiB.
pub(super) fn walk_memory<O: DbOrder>(
    order: &O,
    state: &State,
    within: Within<'_>,
    mut visit: impl FnMut(&MemCursor<O>),
) -> Result<()> {
    let (low, high) = within.range;
    let inside = |key: &[u8]| high.is_none_or(|high| order.compare(key, high).is_lt());
    for (id, table) in tables::<O>(state, within) {
        let mut cursor = table.cursor(id);
        cursor.seek_start(low)?;
        while cursor.valid() && inside(cursor.key()) {
            visit(&cursor);
            cursor.next()?;
        }
    }
    Ok(())
}

/// The memtables of a keyspace, each with the number under which the entries are there.
fn tables<'a, O: DbOrder>(
    state: &'a State,
    within: Within<'a>,
) -> impl Iterator<Item = (KeyspaceId, TableRef<'a, O>)> {
    state.memtable_sets.iter().flat_map(move |set| {
        // Seeded: a branch counts as if its parent had had nothing in memory.
        let own = bug!("state_branches_have_no_memory");
        let id = if own { within.keyspace } else { within.home.id_at(within.keyspace, set.start) };
        O::tables(set, id).map(move |table| (id, table))
    })
}

/// The keys in memtables, asked for in ascending order.
struct Occupied<'o, O: DbOrder> {
    order: &'o O,
    cursors: Vec<MemCursor<O>>,
    next: Next,
}

/// The first key from where it was last searched.
enum Next {
    Unknown,
    Key(Vec<u8>),
    End,
}

impl<'o, O: DbOrder> Occupied<'o, O> {
    fn new(order: &'o O, state: &State, within: Within<'_>) -> Self {
        let cursors = tables::<O>(state, within).map(|(id, table)| table.cursor(id)).collect();
        Self { order, cursors, next: Next::Unknown }
    }

    /// The first key from `from` on, which is not before the last `from`.
    fn next(&mut self, from: Bound<&[u8]>) -> Result<Option<&[u8]>> {
        let is_passed = match (&self.next, from) {
            (Next::Unknown, _) => true,
            (Next::End, _) | (_, Bound::Unbounded) => false,
            (Next::Key(key), Bound::Included(from)) => self.order.compare(key, from).is_lt(),
            (Next::Key(key), Bound::Excluded(from)) => self.order.compare(key, from).is_le(),
        };
        if is_passed {
            self.next = self.search(from)?.map_or(Next::End, Next::Key);
        }
        Ok(match &self.next {
            // Seeded: a count does not see what is written over a segment.
            Next::Key(key) if !bug!("state_count_forgets_memory") => Some(key.as_slice()),
            _ => None,
        })
    }

    fn search(&mut self, from: Bound<&[u8]>) -> Result<Option<Vec<u8>>> {
        let mut first: Option<Vec<u8>> = None;
        for cursor in &mut self.cursors {
            match from {
                Bound::Unbounded => cursor.seek_to_first()?,
                Bound::Included(key) => cursor.seek_start(Some(key))?,
                // No version of the key is less than that.
                Bound::Excluded(key) => cursor.seek(key, 0)?,
            }
            let is_first = |first: &Vec<u8>| self.order.compare(cursor.key(), first).is_lt();
            if cursor.valid() && first.as_ref().is_none_or(is_first) {
                first = Some(cursor.key().to_vec());
            }
        }
        Ok(first)
    }
}
