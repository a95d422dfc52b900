//! The writes of a transaction.
//!
//! In a pessimistic transaction every write locks its key first. A write that would make the
//! transaction too large is refused and left out, so that the rest can still be committed.

use super::Transaction;
use crate::api::range::half_open;
use crate::catalog::check_key;
use crate::txn::locks::Mode;
use crate::txn::writes::{OwnValue, OwnWrites, Undo};
use crate::{Error, Keyspace, Result};
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

impl Transaction {
    /// Inserts a value under a key and replaces the existing value, if any.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLarge`]; [`Error::BatchTooLarge`] if the
    /// transaction would become larger than a batch may be (this write is then left out); the
    /// errors of locks as [`Transaction::get_for_update`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "nails", "100")?;
    /// assert!(!stock.contains_key("nails")?); // Nobody else sees it yet.
    /// tx.commit()?;
    /// assert!(stock.contains_key("nails")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let value = value.as_ref();
        self.check_value(value, keyspace.ttl().is_some())?;
        self.put(keyspace, key.as_ref(), OwnValue::Put(value.into()))
    }

    /// Inserts a value that expires `ttl` after the commit; see [`Keyspace::insert_with_ttl`]. The
    /// transaction itself always sees it. In keyspaces with a time to live, that of other writes
    /// also counts from the commit.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use std::time::Duration;
    /// let sessions = db.keyspace("sessions")?;
    /// db.transact(|tx| tx.insert_with_ttl(&sessions, "ann", "token", Duration::from_secs(60)))?;
    /// assert!(sessions.contains_key("ann")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_with_ttl(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let value = value.as_ref();
        self.check_value(value, true)?;
        self.put(keyspace, key.as_ref(), OwnValue::PutFor(value.into(), ttl))
    }

    /// Writes an operand for the keyspace's merge operator; see [`Keyspace::merge`]. This reads
    /// nothing, so it causes no conflict unless the transaction also reads the key.
    ///
    /// # Errors
    /// As [`Transaction::insert`] and [`Keyspace::merge`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// use esker::{CounterU64, KeyspaceOptions};
    /// let visits = db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME))?;
    /// let tx = db.begin()?;
    /// tx.merge(&visits, "anna", CounterU64::encode(2))?;
    /// visits.merge("anna", CounterU64::encode(40))?; // No conflict.
    /// tx.commit()?;
    /// assert_eq!(visits.get("anna")?.as_deref().and_then(CounterU64::decode), Some(42));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.check_value(operand, keyspace.ttl().is_some())?;
        keyspace.check_merge(operand)?;
        self.prepare_write(keyspace, key)?;
        self.change(keyspace, |own| own.merge(key, operand))
    }

    fn check_value(&self, value: &[u8], expires: bool) -> Result<()> {
        let time = if expires { crate::base::EXPIRY_BYTES } else { 0 };
        self.open.handle.core.settings.check_value_len((value.len() + time) as u64)
    }

    /// Checks a key that is about to be written, and locks it.
    fn prepare_write(&self, keyspace: &Keyspace, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.check(keyspace)?;
        self.lock(keyspace, key, Mode::Exclusive)
    }

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// # stock.insert("nails", "100")?;
    /// db.transact(|tx| {
    ///     tx.remove(&stock, "nails")?;
    ///     assert!(!tx.contains_key(&stock, "nails")?);
    ///     Ok(())
    /// })?;
    /// assert!(!stock.contains_key("nails")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.put(keyspace, key.as_ref(), OwnValue::Deleted)
    }

    /// Removes every key that is in a range when the transaction commits.
    ///
    /// # Errors
    /// As [`Transaction::insert`] and [`Keyspace::remove_range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// let tx = db.begin()?;
    /// tx.remove_range::<&str>(&stock, ..)?;
    /// stock.insert("nails", "100")?; // No conflict: the transaction read nothing.
    /// tx.commit()?;
    /// assert!(!stock.contains_key("nails")?); // Removed: the commit comes after the insertion.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        let (start, end) = half_open(&keyspace.state.order, &range)?;
        self.change(keyspace, |own| own.remove_range(start.as_deref(), end.as_deref()))
    }

    fn put(&self, keyspace: &Keyspace, key: &[u8], value: OwnValue) -> Result<()> {
        self.prepare_write(keyspace, key)?;
        self.change(keyspace, |own| own.put(key, value))
    }

    fn change(
        &self,
        keyspace: &Keyspace,
        change: impl FnOnce(&mut OwnWrites) -> Undo,
    ) -> Result<()> {
        self.check(keyspace)?;
        let max = self.open.handle.core.settings.batch_bytes_max;
        let mut inner = self.inner.lock();
        let at = inner.space(keyspace)?;
        let others: u64 = inner.spaces.iter().map(|space| space.writes.bytes()).sum();
        // An iterator may still show the earlier writes.
        let own = Arc::make_mut(&mut inner.spaces[at].writes);
        let before = own.bytes();
        let undo = change(own);
        let len = others - before + own.bytes();
        let trusted = own.order().custom().map_or(Ok(()), |o| self.open.handle.core.trust(o));
        if len > max && own.bytes() > before {
            own.undo(undo);
            return trusted.and(Err(Error::BatchTooLarge { len, max }));
        }
        if !inner.savepoints.is_empty() {
            inner.undo_bytes += undo.memory_bytes();
            inner.undo.push((at, undo));
        }
        inner.count();
        trusted
    }
}
