//! Iterators of transactions: the entries of the snapshot with the transaction's writes over them.

use super::range::Pair;
use crate::base::KeyBuf;
use crate::iter::Bounds;
use crate::txn::reads::RangeRead;
use crate::txn::writes::{OwnValue, OwnWrites};
use crate::{Error, Iter, Keyspace, Result, Snapshot};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// An iterator over what a transaction sees of a keyspace, from both ends.
///
/// It shows the transaction's writes as they were when the iterator was made. The range that it
/// passed, gaps included, counts as read when the transaction commits. It returns errors as
/// [`Iter`] does: once, and after the error of a single entry it goes on.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// let days = db.keyspace("days")?;
/// days.insert("mon", "1")?;
/// days.insert("tue", "2")?;
/// let tx = db.begin()?;
/// for day in tx.iter(&days)?.rev() {
///     let (key, _) = day?;
///     tx.remove(&days, key)?;
/// }
/// tx.insert(&days, "sun", "7")?;
/// assert_eq!(tx.iter(&days)?.count(), 1);
/// # Ok::<(), esker::Error>(())
/// ```
pub struct TransactionIter {
    snapshot: Snapshot,
    keyspace: Keyspace,
    bounds: Bounds,
    own: Arc<OwnWrites>,
    read: Arc<RangeRead>,
    front: End,
    back: End,
}

/// One end: its own iterator over the database, and how far the end came.
#[derive(Default)]
struct End {
    base: Option<Iter>,
    /// The next entry of the database, if it is known.
    ahead: Ahead,
    /// The position of this end: it has shown everything before.
    place: Option<Bound<KeyBuf>>,
    /// Whether an error, already returned, ended it.
    failed: bool,
}

/// Why an end shows no entry.
enum Failure {
    /// One entry cannot be shown; the end goes on after it.
    Entry(Error),
    /// The end can show nothing more.
    End(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::End(error)
    }
}

#[derive(Default)]
enum Ahead {
    #[default]
    Unknown,
    Entry(Pair),
    Nothing,
}

impl fmt::Debug for TransactionIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionIter").finish_non_exhaustive()
    }
}

fn key_of(bound: &Bound<KeyBuf>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl TransactionIter {
    pub(super) fn new(
        snapshot: Snapshot,
        keyspace: Keyspace,
        bounds: Bounds,
        own: Arc<OwnWrites>,
        read: Arc<RangeRead>,
    ) -> Self {
        let (front, back) = (End::default(), End::default());
        Self { snapshot, keyspace, bounds, own, read, front, back }
    }

    /// The lower bound of what is left: after what the front showed.
    fn low(&self) -> Bound<&[u8]> {
        key_of(self.front.place.as_ref().unwrap_or(&self.bounds.low))
    }

    /// The upper bound of what is left: before what the back showed.
    fn high(&self) -> Bound<&[u8]> {
        key_of(self.back.place.as_ref().unwrap_or(&self.bounds.high))
    }

    /// Moves the front, forward or back, to the first key at or after `key` within the range of
    /// the iterator. `next` then returns that entry.
    ///
    /// # Errors
    /// As [`Iter::seek`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// # for key in ["glue", "nails"] { stock.insert(key, "")?; }
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "hooks", "")?;
    /// let mut iter = tx.iter(&stock)?;
    /// iter.seek("h")?;
    /// assert_eq!(iter.next_entry()?.unwrap().0, b"hooks");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        let inside = self.own.is_above(key, key_of(&self.bounds.low));
        let place = if inside { Bound::Included(key.into()) } else { self.bounds.low.clone() };
        self.read.seek(place.clone());
        self.front = End { place: Some(place), ..End::default() };
        self.trust()
    }

    /// The next entry from the front.
    ///
    /// # Errors
    /// As [`Iter::next_entry`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// # stock.insert("nails", "100")?;
    /// let tx = db.begin()?;
    /// let mut iter = tx.iter(&stock)?;
    /// while let Some((key, _)) = iter.next_entry()? {
    ///     tx.insert(&stock, key, "0")?; // The iterator goes on as it began.
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn next_entry(&mut self) -> Result<Option<Pair>> {
        self.step(true)
    }

    /// The next entry from the back.
    ///
    /// # Errors
    /// As [`Iter::next_entry`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// # for key in ["glue", "nails"] { stock.insert(key, "")?; }
    /// let tx = db.begin()?;
    /// assert_eq!(tx.iter(&stock)?.next_back_entry()?.unwrap().0, b"nails");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn next_back_entry(&mut self) -> Result<Option<Pair>> {
        self.step(false)
    }

    fn trust(&self) -> Result<()> {
        let order = self.own.order().custom();
        order.map_or(Ok(()), |order| self.keyspace.handle.core.trust(order))
    }

    fn end(&mut self, forward: bool) -> &mut End {
        if forward { &mut self.front } else { &mut self.back }
    }

    fn step(&mut self, forward: bool) -> Result<Option<Pair>> {
        if self.end(forward).failed {
            return Ok(None);
        }
        let found = self.find(forward).and_then(|found| Ok(self.trust().map(|()| found)?));
        match &found {
            Ok(Some((key, _))) => {
                self.end(forward).place = Some(Bound::Excluded(key[..].into()));
                if forward { self.read.front(key) } else { self.read.back(key) }
            }
            Ok(None) if forward => self.read.front_done(),
            Ok(None) => self.read.back_done(),
            Err(failure) => self.end(forward).failed = matches!(failure, Failure::End(_)),
        }
        found.map_err(|(Failure::Entry(error) | Failure::End(error))| error)
    }

    /// The next entry for an end: the nearer of the database's next entry and the transaction's
    /// next write. For equal keys the transaction's write wins.
    /// transaction's next write. For equal keys the transaction's write wins.
    fn find(&mut self, forward: bool) -> Result<Option<Pair>, Failure> {
        loop {
            self.look_ahead(forward)?;
            let (low, high) = (self.low(), self.high());
            let own = self.own.find(low, high, forward);
            let end = if forward { &self.front } else { &self.back };
            let base = match &end.ahead {
                Ahead::Entry((key, _)) => {
                    let left = self.own.is_above(key, low) && self.own.is_below(key, high);
                    left.then_some(key)
                }
                _ => None,
            };
            let order = match (own, base) {
                (None, None) => return Ok(None),
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(_), None) => std::cmp::Ordering::Less,
                (Some((own, _)), Some(base)) if forward => self.own.order().compare(own, base),
                (Some((own, _)), Some(base)) => self.own.order().compare(base, own),
            };
            let own = own.filter(|_| order.is_le());
            let own = own.map(|(key, value)| (key.to_vec(), value.clone()));
            let end = self.end(forward);
            // A write of the transaction replaces the database's entry.
            let ahead = if order.is_ge() { std::mem::take(&mut end.ahead) } else { Ahead::Unknown };
            let entry = if let Ahead::Entry(entry) = ahead { Some(entry) } else { None };
            let Some((key, own)) = own else { return Ok(entry) };
            let shown = match &own {
                OwnValue::Merged(base, operands) => {
                    let existing = match base {
                        Some(base) => base.value(),
                        None => entry.as_ref().map(|(_, value)| &value[..]),
                    };
                    match self.keyspace.fold(&key, existing, operands) {
                        Ok(value) => value,
                        Err(error) => {
                            if forward {
                                self.read.front(&key)
                            } else {
                                self.read.back(&key)
                            }
                            self.end(forward).place = Some(Bound::Excluded(key.into()));
                            return Err(Failure::Entry(error));
                        }
                    }
                }
                own => own.value().map(<[u8]>::to_vec),
            };
            match shown {
                Some(value) => return Ok(Some((key, value))),
                // The key has no value: go on to the next one.
                None => self.end(forward).place = Some(Bound::Excluded(key.into())),
            }
        }
    }

    /// Finds the next entry of the database that the transaction has not removed.
    fn look_ahead(&mut self, forward: bool) -> Result<(), Failure> {
        while matches!(self.end(forward).ahead, Ahead::Unknown) {
            let base = self.base(forward)?;
            let entry = if forward { base.next() } else { base.next_back() };
            let entry = match entry.transpose() {
                Ok(entry) => entry,
                Err(error) if base.goes_on(forward) => return Err(Failure::Entry(error)),
                Err(error) => return Err(Failure::End(error)),
            };
            let ahead = match entry {
                None => Ahead::Nothing,
                Some((key, value)) => match self.own.stretch_over(&key).cloned() {
                    None => Ahead::Entry((key, value)),
                    Some((start, end)) => {
                        self.leap(forward, if forward { end } else { start })?;
                        continue;
                    }
                },
            };
            self.end(forward).ahead = ahead;
        }
        Ok(())
    }

    /// The iterator over the database that an end uses.
    fn base(&mut self, forward: bool) -> Result<&mut Iter> {
        if self.end(forward).base.is_none() {
            let (low, high) = (self.bounds.low.clone(), self.bounds.high.clone());
            let bounds = if forward {
                let low = self.front.place.clone().unwrap_or(low);
                Bounds { low, high }
            } else {
                Bounds { low, high: self.back.place.clone().unwrap_or(high) }
            };
            let made = self.keyspace.iter_within(bounds, self.snapshot.at(&self.keyspace)?)?;
            self.end(forward).base = Some(made);
        }
        self.end(forward).base.as_mut().ok_or(Error::Closed)
    }

    /// Moves an end to the far side of a range that the transaction deleted; `None`: that range
    /// has no end.
    fn leap(&mut self, forward: bool, to: Option<Vec<u8>>) -> Result<()> {
        let Some(to) = to else {
            self.end(forward).ahead = Ahead::Nothing;
            return Ok(());
        };
        if forward {
            return self.base(true)?.seek(&to);
        }
        let bounds = Bounds { low: self.bounds.low.clone(), high: Bound::Excluded(to.into()) };
        self.back.base =
            Some(self.keyspace.iter_within(bounds, self.snapshot.at(&self.keyspace)?)?);
        Ok(())
    }
}

impl Iterator for TransactionIter {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true).transpose()
    }
}

impl DoubleEndedIterator for TransactionIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false).transpose()
    }
}
