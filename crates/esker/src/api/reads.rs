//! Reads of a keyspace as of now: single keys, iterators, cursors.
//!
//! [`crate::Snapshot`] reads as of an earlier moment, through the same functions.

use super::handle::Registration;
use super::pinned::lend;
use super::range::{Pair, bounds, half_open, of_prefix};
use super::together::get_together;
use crate::base::Moment;
use crate::db::Seen;
use crate::iter::Bounds;
use crate::{Cursor, Iter, Keyspace, PinnedValue, Result};
use std::ops::RangeBounds;

impl Keyspace {
    /// The value under a key.
    ///
    /// # Errors
    /// [`crate::Error::Corruption`] and [`crate::Error::Io`] if the data cannot be read,
    /// [`crate::Error::KeyspaceDropped`], [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(fruit.get("kiwi")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.handle.core.get(&self.state, key.as_ref(), None, |value| value.bytes().to_vec())
    }

    /// Replaces the content of a buffer by the value under a key, and returns whether there is a
    /// value. Reusing a buffer saves allocations.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut value = Vec::new();
    /// let mut letters = 0;
    /// for name in ["apple", "kiwi", "pear"] {
    ///     if fruit.get_into(name, &mut value)? {
    ///         letters += value.len();
    ///     }
    /// }
    /// assert_eq!(letters, "red".len() + "green".len());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool> {
        let copy = |found: Seen<'_>| {
            value.clear();
            value.extend_from_slice(found.bytes());
        };
        Ok(self.handle.core.get(&self.state, key.as_ref(), None, copy)?.is_some())
    }

    /// Calls `take` with the value under a key and returns the result of `take`; `None` if there is no
    /// value. The caller needs no memory for the value.
    ///
    /// `take` may run for any time and may call the database: it only keeps the block with the
    /// value in memory. A value of up to 256 bytes is copied to the stack first, and a longer one that has
    /// not been flushed yet to memory of its own.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.get_with("apple", |value| value.len())?, Some(3));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        lend(&self.handle.core, &self.state, key.as_ref(), None, take)
    }

    /// The value under a key where it lies, without a copy: in its block in the cache, which stays in memory for as long as
    /// the [`PinnedValue`] lives. A value that has not been flushed yet is copied.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.insert("pear", "green")?;
    /// let (apple, pear) = (fruit.get_pinned("apple")?, fruit.get_pinned("pear")?);
    /// let colours: Vec<&[u8]> = [&apple, &pear].into_iter().flatten().map(|value| &value[..]).collect();
    /// assert_eq!(colours, [&b"red"[..], b"green"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<PinnedValue<'_>>> {
        PinnedValue::find(&self.handle.core, &self.state, key.as_ref(), None)
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "")?;
    /// assert!(fruit.contains_key("apple")?);
    /// assert!(!fruit.contains_key("kiwi")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.handle.core.get_as((&self.state, key.as_ref(), None), true, |_| ())?.is_some())
    }

    /// The values under several keys, in the order of the keys, all as of one moment. What is cached is looked for 32 keys
    /// at a time, whose waits for memory overlap; with a custom comparator one key after the other.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(fruit.multi_get(["apple", "kiwi"])?, [Some(b"red".to_vec()), None]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let now = Registration::new(&self.handle, None)?;
        get_together(&self.handle.core, &self.state, keys, now.moment)
    }

    /// Every entry, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; moving the iterator can fail for the same reasons.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("pear", "green")?; fruit.insert("apple", "red")?;
    /// let names: Vec<Vec<u8>> =
    ///     fruit.iter()?.map(|entry| entry.map(|(key, _)| key)).collect::<Result<_, _>>()?;
    /// assert_eq!(names, [&b"apple"[..], b"pear"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self) -> Result<Iter> {
        self.range::<&[u8]>(..)
    }

    /// The entries within a range of keys, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::iter`], and [`crate::Error::InvalidArgument`] as [`crate::Batch::remove_range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # for name in ["apple", "banana", "cherry", "date"] { fruit.insert(name, "")?; }
    /// assert_eq!(fruit.range("banana".."date")?.count(), 2);
    /// assert_eq!(fruit.range("banana"..="date")?.count(), 3);
    /// assert_eq!(fruit.range(.."banana")?.count(), 1);
    /// // Keys that are not text: any bytes.
    /// assert_eq!(fruit.range([0x63]..)?.count(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        self.range_at(range, None)
    }

    pub(super) fn range_at<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        at: Option<Moment>,
    ) -> Result<Iter> {
        self.iter_within(bounds(half_open(&self.state.order, &range)?), at)
    }

    pub(super) fn iter_within(&self, bounds: Bounds, at: Option<Moment>) -> Result<Iter> {
        Iter::new(&self.handle, &self.state, bounds, at)
    }

    /// The entries whose keys begin with `prefix`, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::iter`], and [`crate::Error::InvalidArgument`] if the keyspace has a custom
    /// comparator, which need not keep keys with a common prefix together.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("user:1", "ann")?;
    /// db.insert("user:2", "bob")?;
    /// db.insert("zone:1", "north")?;
    /// assert_eq!(db.prefix("user:")?.count(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.prefix_at(prefix.as_ref(), None)
    }

    pub(super) fn prefix_at(&self, prefix: &[u8], at: Option<Moment>) -> Result<Iter> {
        let bounds = bounds(of_prefix(&self.state.order, prefix)?);
        Iter::new(&self.handle, &self.state, bounds, at)
    }

    /// A cursor over every entry as of now. It does not stand on an entry yet.
    ///
    /// # Errors
    /// As [`Keyspace::iter`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut cursor = fruit.cursor()?;
    /// cursor.seek_to_first()?;
    /// while cursor.valid() {
    ///     assert!(fruit.contains_key(cursor.key())?);
    ///     cursor.next()?;
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn cursor(&self) -> Result<Cursor> {
        self.cursor_in::<&[u8]>(..)
    }

    /// A cursor over a range of keys as of now. It does not stand on an entry yet.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # for name in ["apple", "banana", "cherry"] { fruit.insert(name, "")?; }
    /// let mut cursor = fruit.cursor_in(.."cherry")?;
    /// cursor.seek_to_last()?;
    /// assert_eq!(cursor.key(), b"banana");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn cursor_in<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Cursor> {
        self.cursor_at(range, None)
    }

    pub(super) fn cursor_at<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
        at: Option<Moment>,
    ) -> Result<Cursor> {
        let bounds = bounds(half_open(&self.state.order, &range)?);
        Cursor::new(&self.handle, &self.state, bounds, at)
    }

    /// The entry with the smallest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let jobs = db.keyspace("jobs")?;
    /// jobs.insert("2", "wash")?;
    /// jobs.insert("1", "cook")?;
    /// // A queue: take the first, and remove it.
    /// while let Some((number, _job)) = jobs.first_key_value()? {
    ///     jobs.remove(number)?;
    /// }
    /// assert_eq!(jobs.iter()?.count(), 0);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first_key_value(&self) -> Result<Option<Pair>> {
        self.iter()?.next().transpose()
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let log = db.keyspace("log")?;
    /// for line in ["begun", "done"] {
    ///     let last = log.last_key_value()?.map_or(0, |(key, _)| key[0]);
    ///     log.insert([last + 1], line)?;
    /// }
    /// assert_eq!(log.last_key_value()?, Some((vec![2], b"done".to_vec())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last_key_value(&self) -> Result<Option<Pair>> {
        self.iter()?.next_back().transpose()
    }
}
