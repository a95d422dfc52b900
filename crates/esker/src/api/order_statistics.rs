//! Order statistics: where to cut a range into parts, how many entries it has, and which is at which place.

use super::handle::Registration;
use super::range::{Pair, half_open};
use crate::base::{Bytewise, Seq};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::db::Core;
use crate::iter::Bounds;
use crate::manifest::{CountBounds, KeyRange, cuts, extents};
use crate::state::State;
use crate::state::counts::{Part, Piece, Within};
use crate::state::memtables::DbOrder;
use crate::{Iter, Keyspace, Result};
use std::ops::RangeBounds;

/// A question about a range of keys that needs their order.
pub(super) trait Question {
    type Answer;

    /// The answer in a state.
    fn ask<O: DbOrder>(self, order: &O, state: &State, within: Within<'_>) -> Result<Self::Answer>;
}

impl Core {
    /// Asks about a range of a keyspace in the order of its keys.
    pub(super) fn ask<Q: Question>(
        &self,
        state: &State,
        keyspace: &KeyspaceState,
        range: KeyRange<'_>,
        question: Q,
    ) -> Result<Q::Answer> {
        let within = Within { keyspace: keyspace.id, home: &keyspace.home, range };
        let answer = match &keyspace.order {
            Order::Bytewise => question.ask(&Bytewise, state, within),
            Order::Custom(order) => {
                let answer = question.ask(order, state, within);
                self.trust(order).and(answer)
            }
            Order::Missing(name) => Err(missing_order(&keyspace.name, name)),
        };
        answer.map_err(|error| error.in_keyspace(&keyspace.name, None))
    }
}

/// At which keys to cut a range into so many parts.
struct Cuts(usize);

impl Question for Cuts {
    type Answer = Vec<Vec<u8>>;

    fn ask<O: DbOrder>(self, order: &O, state: &State, within: Within<'_>) -> Result<Self::Answer> {
        let Some(tree) = state.version.tree(within.keyspace) else { return Ok(Vec::new()) };
        Ok(cuts(order, &extents(order, tree, within.range), self.0))
    }
}

/// Where a reader at this position sees entries, and how many, as far as it is known.
struct PiecesAt(Seq);

impl Question for PiecesAt {
    type Answer = Vec<Piece>;

    fn ask<O: DbOrder>(self, order: &O, state: &State, within: Within<'_>) -> Result<Vec<Piece>> {
        state.count_pieces(order, within, self.0)
    }
}

/// Between which numbers the number of entries lies that a reader at this position sees.
struct BoundsAt(Seq);

impl Question for BoundsAt {
    type Answer = CountBounds;

    fn ask<O: DbOrder>(self, order: &O, state: &State, within: Within<'_>) -> Result<CountBounds> {
        state.count_bounds(order, within, self.0)
    }
}

/// About how many entries a range has: [`Keyspace::approximate_count`].
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// let estimate = db.default_keyspace().approximate_count::<&str>(..)?;
/// assert!((estimate.entries - estimate.error..=estimate.entries + estimate.error).contains(&1));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CountEstimate {
    /// The middle of what is possible.
    pub entries: u64,
    /// By how many entries it may be wrong, up or down; 0: it is exact.
    pub error: u64,
}

impl CountEstimate {
    fn between(bounds: CountBounds) -> Self {
        let error = bounds.most.saturating_sub(bounds.least).div_ceil(2);
        Self { entries: bounds.least.saturating_add(error), error }
    }
}

impl Keyspace {
    /// At most `parts - 1` keys that cut a range into parts of about equal bytes, for scans by several
    /// threads. They ascend in the order of the keyspace, and lie strictly within the range. A range of
    /// few run segments gives fewer keys, and one of which nothing is in files gives none.
    ///
    /// It reads nothing: it knows the first keys and the bytes of run segments (about 1 MiB each), with
    /// the separated values to which they refer. Where a single run holds everything, as after
    /// [`Keyspace::compact`], a part has at most an equal share and one run segment more, beside what
    /// the ends of the range cut off. Where runs overlap, it may have two more of each run. Entries that
    /// wait in memory for their flush do not count. It takes time for each run segment of the range.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use std::iter::once;
    /// use std::ops::Bound::{Excluded, Included, Unbounded};
    ///
    /// # let fruit = db.keyspace("fruit")?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.insert(name, "")?; }
    /// // Four threads count what one snapshot sees.
    /// let points = fruit.split_points::<&[u8]>(.., 4)?;
    /// let starts = once(Unbounded).chain(points.iter().map(Included));
    /// let ends = points.iter().map(Excluded).chain(once(Unbounded));
    /// let snapshot = db.snapshot()?;
    /// let count = |part| snapshot.range::<Vec<u8>>(&fruit, part).map(|entries| entries.count());
    /// let counts: Result<Vec<usize>, esker::Error> = std::thread::scope(|scope| {
    ///     let threads: Vec<_> = starts.zip(ends).map(|part| scope.spawn(move || count(part))).collect();
    ///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    /// });
    /// assert_eq!(counts?.iter().sum::<usize>(), 3);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn split_points<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        parts: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let (low, high) = half_open(&self.state.order, &range)?;
        let core = &self.handle.core;
        core.check_there(&self.state)?;
        let range = (low.as_deref(), high.as_deref());
        core.ask(&core.state_now(), &self.state, range, Cuts(parts))
    }

    /// How many entries a range has: exactly as many as [`Keyspace::range`] shows.
    ///
    /// It counts run segments by their descriptions, without reading them, where these tell the number:
    /// nothing else has keys among theirs, and they have neither deletes, operands, entries that expire nor
    /// several versions of a key. So in data that were compacted, and where nothing was written since, it
    /// reads the segments at the ends of the range only. All else it reads, as a scan would.
    ///
    /// # Errors
    /// As [`Keyspace::range`], and what moving the iterator fails with, also for a single entry.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.insert(name, "")?; }
    /// fruit.remove("banana")?;
    /// assert_eq!(fruit.count::<&str>(..)?, 2);
    /// assert_eq!(fruit.count("b"..)?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn count<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<u64> {
        let (now, pieces) = self.pieces(range)?;
        let mut count = 0_u64;
        for Piece { bounds, entries } in pieces {
            if let Some(entries) = entries {
                count = count.saturating_add(entries);
                continue;
            }
            count = count.saturating_add(self.count_read(bounds, &now)?);
        }
        Ok(count)
    }

    /// The entry of a range before which there are `n` others of it, in the order of the keyspace; `None`:
    /// there are not so many. The last entry of a range with `count` entries has the number `count - 1`.
    ///
    /// It passes by run segments as [`Keyspace::count`] does, reads what a count would read before the
    /// entry, and the segment of the entry.
    ///
    /// # Errors
    /// As [`Keyspace::count`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let times = db.keyspace("times")?;
    /// for (millis, page) in [(12_u32, "a"), (3, "b"), (250, "c")] {
    ///     times.insert(millis.to_be_bytes(), page)?;
    /// }
    /// let median = times.nth::<&[u8]>(.., times.count::<&[u8]>(..)? / 2)?;
    /// assert_eq!(median, Some((12_u32.to_be_bytes().to_vec(), b"a".to_vec())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn nth<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        n: u64,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let (now, pieces) = self.pieces(range)?;
        // Seeded: the number of an entry counts the entry itself.
        let mut before =
            if bug!("api_nth_counts_the_entry_itself") { n.saturating_sub(1) } else { n };
        for Piece { bounds, entries } in pieces {
            if let Some(entries) = entries.filter(|entries| *entries <= before) {
                before -= entries;
                continue;
            }
            let mut found = Vec::new();
            let passed = self.take_numbers(bounds, [before], &now, &mut found)?;
            if let Some(entry) = found.pop() {
                return Ok(Some(entry));
            }
            before -= passed;
        }
        Ok(None)
    }

    /// Adds the entries of a part of a range that have these numbers, which ascend, as far as there are so many; the first
    /// entry of the part has the number 0. Returns how many entries it has come through.
    pub(super) fn take_numbers(
        &self,
        part: Part,
        numbers: impl IntoIterator<Item = u64>,
        now: &Registration,
        taken: &mut Vec<Pair>,
    ) -> Result<u64> {
        let (mut iter, mut at) = (self.iter_of(part, now)?, 0);
        for number in numbers {
            while at < number && iter.next_entry()?.is_some() {
                at += 1;
            }
            let Some((key, value)) = iter.next_entry()? else { break };
            let found = (key.to_vec(), value.to_vec());
            taken.push(self.whole(found, iter.is_in_pieces(), now)?);
            at += 1;
        }
        Ok(at)
    }

    /// An iterator over a part of a range, as of a moment, that leaves values in pieces.
    fn iter_of(&self, (low, high): Part, now: &Registration) -> Result<Iter> {
        let iter = self.iter_within(Bounds { low, high }, Some(now.moment))?;
        Ok(iter.leaving_pieces())
    }

    /// How many entries a part of a range has, by reading it.
    pub(super) fn count_read(&self, part: Part, now: &Registration) -> Result<u64> {
        let (mut iter, mut count) = (self.iter_of(part, now)?, 0);
        while iter.next_entry()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// An entry with its value, which was left in pieces or not.
    fn whole(&self, (key, value): Pair, in_pieces: bool, now: &Registration) -> Result<Pair> {
        if !in_pieces {
            return Ok((key, value));
        }
        let core = &self.handle.core;
        let value =
            core.get(&self.state, &key, Some(now.moment), |value| value.bytes().to_vec())?;
        Ok((key, value.unwrap_or_default()))
    }

    /// Where entries of a range are, as of a moment, and how many, as far as it is known.
    pub(super) fn pieces<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<(Registration, Vec<Piece>)> {
        let (low, high) = half_open(&self.state.order, &range)?;
        let core = &self.handle.core;
        core.check_there(&self.state)?;
        // What is read later must be of the same moment.
        let now = Registration::new(&self.handle, None)?;
        let (state, at) = core.view(self.state.moment(Some(now.moment)));
        let range = (low.as_deref(), high.as_deref());
        let pieces = core.ask(&state, &self.state, range, PiecesAt(at.seq))?;
        Ok((now, pieces))
    }

    /// About how many entries a range has, without reading a file: [`Keyspace::count`] at that moment differs
    /// from the estimate by at most its `error`.
    ///
    /// It counts entries in memory one by one, and takes time for each run segment of the range. Segments add to
    /// the error that hang over an end of the range, have keys among those of others, or lie below a range
    /// delete. So do deletes, operands, entries that expire, and what is in memory. After a compaction, without
    /// anything of that, the error is at most the entries of the two segments that hang over the ends.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// for name in ["apple", "banana", "cherry"] {
    ///     fruit.insert(name, "")?;
    /// }
    /// db.flush()?;
    /// let estimate = fruit.approximate_count::<&str>(..)?;
    /// assert_eq!((estimate.entries, estimate.error), (3, 0));
    /// fruit.remove("apple")?;
    /// let estimate = fruit.approximate_count::<&str>(..)?;
    /// assert!(estimate.entries.abs_diff(fruit.count::<&str>(..)?) <= estimate.error);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn approximate_count<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<CountEstimate> {
        let (low, high) = half_open(&self.state.order, &range)?;
        let core = &self.handle.core;
        core.check_there(&self.state)?;
        let (state, at) = core.view(self.state.moment(None));
        let range = (low.as_deref(), high.as_deref());
        core.ask(&state, &self.state, range, BoundsAt(at.seq)).map(CountEstimate::between)
    }
}
