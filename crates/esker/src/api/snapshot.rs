//! Snapshots.

use super::handle::{Handle, Registration};
use super::pinned::lend;
use super::range::Pair;
use super::together::get_together;
use crate::base::Moment;
use crate::{Cursor, Error, Iter, Keyspace, PinnedValue, Result, ValueReader};
use std::ops::RangeBounds;
use std::sync::Arc;

/// A read-only view of all keyspaces of a database at one moment.
///
/// Making one costs nothing. While it lives, compactions keep the versions that it sees.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// let stock = db.keyspace("stock")?;
/// stock.insert("nails", "100")?;
/// let monday = db.snapshot()?;
/// stock.insert("nails", "40")?;
/// assert_eq!(monday.get(&stock, "nails")?, Some(b"100".to_vec()));
/// assert_eq!(stock.get("nails")?, Some(b"40".to_vec()));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    registration: Arc<Registration>,
}

impl Snapshot {
    pub(super) fn new(handle: &Arc<Handle>, label: Option<&str>) -> Result<Self> {
        Ok(Self { registration: Arc::new(Registration::new(handle, label)?) })
    }

    /// The snapshot's sequence number.
    pub(super) fn seq(&self) -> crate::base::Seq {
        self.registration.moment.seq
    }

    /// The snapshot's moment, for a keyspace of the same database: positions in another database
    /// mean nothing.
    pub(super) fn at(&self, keyspace: &Keyspace) -> Result<Option<Moment>> {
        if !Arc::ptr_eq(&keyspace.handle.core, &self.registration.handle.core) {
            let what = "the keyspace belongs to another database: take its snapshot";
            return Err(Error::invalid(what));
        }
        Ok(Some(self.registration.moment))
    }

    /// The snapshot's log position: the snapshot sees exactly the writes before it. Two snapshots
    /// of one database at the same position see the same.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let before = db.snapshot()?.position();
    /// db.insert("k", "v")?;
    /// assert!(before < db.snapshot()?.position());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn position(&self) -> u64 {
        self.registration.moment.seq
    }

    /// The value under a key in the snapshot.
    ///
    /// # Errors
    /// As [`Keyspace::get`], and [`Error::InvalidArgument`] for a keyspace of another database.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// let before = db.snapshot()?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(before.get(&fruit, "apple")?, Some(b"green".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let core = &self.registration.handle.core;
        core.get(keyspace.state(), key.as_ref(), self.at(keyspace)?, |value| value.bytes().to_vec())
    }

    /// Calls `take` with the value under a key, as [`Keyspace::get_with`] does.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "green")?;
    /// let snapshot = db.snapshot()?;
    /// assert_eq!(snapshot.get_with(&fruit, "apple", |value| value.len())?, Some(5));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_with<R>(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let core = &self.registration.handle.core;
        lend(core, keyspace.state(), key.as_ref(), self.at(keyspace)?, take)
    }

    /// The value under a key in the snapshot, without a copy, as [`Keyspace::get_pinned`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "green")?;
    /// let snapshot = db.snapshot()?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(snapshot.get_pinned(&fruit, "apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_pinned(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<PinnedValue<'_>>> {
        let core = &self.registration.handle.core;
        PinnedValue::find(core, keyspace.state(), key.as_ref(), self.at(keyspace)?)
    }

    /// A reader of the value under a key in the snapshot, as [`Keyspace::get_reader`]. It outlives the snapshot.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "green")?;
    /// let snapshot = db.snapshot()?;
    /// fruit.remove("apple")?;
    /// let reader = snapshot.get_reader(&fruit, "apple")?.unwrap();
    /// assert_eq!(std::io::read_to_string(reader).unwrap(), "green");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_reader(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<ValueReader>> {
        ValueReader::find(keyspace, key.as_ref(), self.at(keyspace)?)
    }

    /// Whether a key has a value in the snapshot.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// let before = db.snapshot()?;
    /// fruit.insert("apple", "red")?;
    /// assert!(!before.contains_key(&fruit, "apple")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        let core = &self.registration.handle.core;
        let place = (keyspace.state(), key.as_ref(), self.at(keyspace)?);
        Ok(core.get_as(place, true, |_| ())?.is_some())
    }

    /// The values under several keys, in the order of the keys.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let before = db.snapshot()?;
    /// fruit.remove("pear")?;
    /// let colours = before.multi_get(&fruit, ["apple", "pear"])?;
    /// assert_eq!(colours, [Some(b"red".to_vec()), Some(b"green".to_vec())]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.at(keyspace)?;
        let Registration { handle, moment, .. } = &*self.registration;
        get_together(&handle.core, keyspace.state(), keys, *moment)
    }

    /// Every entry of the snapshot, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::iter`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?;
    /// let before = db.snapshot()?;
    /// fruit.remove_range::<&str>(..)?;
    /// assert_eq!(before.iter(&fruit)?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self, keyspace: &Keyspace) -> Result<Iter> {
        self.range::<&[u8]>(keyspace, ..)
    }

    /// The snapshot's entries within a range of keys, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let snapshot = db.snapshot()?;
    /// assert_eq!(snapshot.range(&fruit, "b"..)?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<Iter> {
        keyspace.range_at(range, self.at(keyspace)?)
    }

    /// The snapshot's entries whose keys begin with `prefix`, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::prefix`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # for name in ["apple", "apricot", "pear"] { fruit.insert(name, "")?; }
    /// let snapshot = db.snapshot()?;
    /// assert_eq!(snapshot.prefix(&fruit, "ap")?.count(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        keyspace.prefix_at(prefix.as_ref(), self.at(keyspace)?)
    }

    /// A cursor over every entry of the snapshot. It does not stand on an entry yet.
    ///
    /// # Errors
    /// As [`Keyspace::iter`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "green")?;
    /// let before = db.snapshot()?;
    /// fruit.insert("apple", "red")?;
    /// let mut cursor = before.cursor(&fruit)?;
    /// cursor.seek("apple")?;
    /// assert_eq!(cursor.value(), b"green");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn cursor(&self, keyspace: &Keyspace) -> Result<Cursor> {
        self.cursor_in::<&[u8]>(keyspace, ..)
    }

    /// A cursor over the snapshot's entries in a range. It does not stand on an entry yet.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?; fruit.insert("pear", "green")?;
    /// let mut cursor = db.snapshot()?.cursor_in(&fruit, .."b")?;
    /// cursor.seek_to_last()?;
    /// assert_eq!(cursor.key(), b"apple");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn cursor_in<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<Cursor> {
        keyspace.cursor_at(range, self.at(keyspace)?)
    }

    /// The snapshot's entry with the smallest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("pear", "green")?;
    /// let before = db.snapshot()?;
    /// fruit.insert("apple", "red")?;
    /// assert_eq!(before.first_key_value(&fruit)?.unwrap().0, b"pear");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first_key_value(&self, keyspace: &Keyspace) -> Result<Option<Pair>> {
        self.iter(keyspace)?.next().transpose()
    }

    /// The snapshot's entry with the greatest key.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?;
    /// let before = db.snapshot()?;
    /// fruit.insert("pear", "green")?;
    /// assert_eq!(before.last_key_value(&fruit)?.unwrap().0, b"apple");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last_key_value(&self, keyspace: &Keyspace) -> Result<Option<Pair>> {
        self.iter(keyspace)?.next_back().transpose()
    }
}
