//! What the entries of a range are like without reading them: where to cut it into parts.

use super::range::half_open;
use crate::base::Bytewise;
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::db::Core;
use crate::manifest::{KeyRange, cuts, extents};
use crate::state::State;
use crate::state::memtables::DbOrder;
use crate::{Keyspace, Result};
use std::ops::RangeBounds;

/// A question about a range of keys that needs their order.
trait Question {
    type Answer;

    /// The answer in a state.
    fn ask<O: DbOrder>(
        self,
        order: &O,
        state: &State,
        keyspace: &KeyspaceState,
        range: KeyRange<'_>,
    ) -> Result<Self::Answer>;
}

impl Core {
    /// Asks about a range of a keyspace in the order of its keys.
    fn ask<Q: Question>(
        &self,
        state: &State,
        keyspace: &KeyspaceState,
        range: KeyRange<'_>,
        question: Q,
    ) -> Result<Q::Answer> {
        let answer = match &keyspace.order {
            Order::Bytewise => question.ask(&Bytewise, state, keyspace, range),
            Order::Custom(order) => {
                let answer = question.ask(order, state, keyspace, range);
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

    fn ask<O: DbOrder>(
        self,
        order: &O,
        state: &State,
        keyspace: &KeyspaceState,
        range: KeyRange<'_>,
    ) -> Result<Self::Answer> {
        let Some(tree) = state.version.tree(keyspace.id) else { return Ok(Vec::new()) };
        Ok(cuts(order, &extents(order, tree, range), self.0))
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
}
