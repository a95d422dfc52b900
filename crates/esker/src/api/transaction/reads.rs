//! The reads of a transaction.
//!
//! Everything that a transaction reads is noted, so that its commit can check whether it has
//! changed. A read under a lock sees the present value.

use super::{Transaction, order_of};
use crate::api::range::{Pair, bounds, half_open, of_prefix};
use crate::api::transaction_iter::TransactionIter;
use crate::iter::Bounds;
use crate::txn::locks::Mode;
use crate::txn::writes::{OwnValue, OwnWrites};
use crate::{Keyspace, Result};
use std::ops::RangeBounds;
use std::sync::Arc;

impl Transaction {
    /// The value under a key that the transaction is about to write. A pessimistic transaction
    /// first takes an exclusive lock and then reads the present value. In others this is
    /// [`Transaction::get`].
    ///
    /// # Errors
    /// As [`Transaction::get`]; [`crate::Error::LockTimeout`] if another transaction keeps its lock for
    /// too long, and [`crate::Error::Deadlock`] if that one waits for this one.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let stock = db.keyspace("stock")?;
    /// stock.insert("nails", [100])?;
    /// let mut options = esker::TransactionOptions::default();
    /// options.pessimistic = true;
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| {
    ///             let tx = db.begin_with(options)?;
    ///             let nails = tx.get_for_update(&stock, "nails")?.map_or(0, |value| value[0]);
    ///             tx.insert(&stock, "nails", [nails - 10])?;
    ///             tx.commit()
    ///         });
    ///     }
    /// });
    /// assert_eq!(stock.get("nails")?, Some(vec![60]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_for_update(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.check(keyspace)?;
        self.lock(keyspace, key.as_ref(), Mode::Exclusive)?;
        self.get(keyspace, key)
    }

    /// Like [`Transaction::get_for_update`], with a shared lock: other transactions may hold shared
    /// locks too, but no exclusive one.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// # stock.insert("nails", "100")?;
    /// # let mut options = esker::TransactionOptions::default();
    /// # options.pessimistic = true;
    /// // Both hold the lock at the same time; nobody can write the key meanwhile.
    /// let (one, other) = (db.begin_with(options)?, db.begin_with(options)?);
    /// assert!(one.get_for_share(&stock, "nails")?.is_some());
    /// assert!(other.get_for_share(&stock, "nails")?.is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_for_share(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.check(keyspace)?;
        self.lock(keyspace, key.as_ref(), Mode::Shared)?;
        self.get(keyspace, key)
    }

    /// The value under a key, as the transaction sees it.
    ///
    /// # Errors
    /// As [`Keyspace::get`], and [`crate::Error::InvalidArgument`] for a keyspace of another database.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// stock.insert("nails", "100")?;
    /// let tx = db.begin()?;
    /// stock.insert("nails", "40")?; // After the transaction began.
    /// assert_eq!(tx.get(&stock, "nails")?, Some(b"100".to_vec()));
    /// tx.insert(&stock, "nails", "90")?;
    /// assert_eq!(tx.get(&stock, "nails")?, Some(b"90".to_vec()));
    /// assert!(tx.commit().is_err()); // It read what is out of date.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.check(keyspace)?;
        let own = self.inner.lock().own(keyspace).and_then(|own| own.get(key));
        match own {
            Some(OwnValue::Merged(base, operands)) => {
                let existing = match base {
                    Some(base) => base.value().map(<[u8]>::to_vec),
                    None => self.get_below(keyspace, key)?,
                };
                keyspace.fold(key, existing.as_deref(), &operands)
            }
            Some(own) => Ok(own.value().map(<[u8]>::to_vec)),
            None => self.get_below(keyspace, key),
        }
    }

    /// The value that the database holds under a key. The key counts as read.
    fn get_below(&self, keyspace: &Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.has_locked(keyspace, key)? {
            // No other locking transaction changes a locked key, so the present value is also the
            // value at the commit.
            let now = self.open.handle.core.visible();
            let mut inner = self.inner.lock();
            inner.mixed = true;
            inner.reads.key(&keyspace.state, key, now);
            inner.count();
            drop(inner);
            return keyspace.get(key);
        }
        let snapshot = self.snapshot()?;
        let mut inner = self.inner.lock();
        inner.reads.key(&keyspace.state, key, snapshot.seq());
        inner.count();
        drop(inner);
        snapshot.get(keyspace, key)
    }

    /// Whether a key has a value, as the transaction sees it.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "nails", "100")?;
    /// assert!(tx.contains_key(&stock, "nails")?);
    /// assert!(!stock.contains_key("nails")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(keyspace, key)?.is_some())
    }

    /// The values under several keys, in the order of the keys.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// # stock.insert("nails", "100")?;
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "screws", "50")?;
    /// let found = tx.multi_get(&stock, ["nails", "screws", "glue"])?;
    /// assert_eq!(found, [Some(b"100".to_vec()), Some(b"50".to_vec()), None]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        keys.into_iter().map(|key| self.get(keyspace, key)).collect()
    }

    /// Every entry that the transaction sees, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::iter`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// # stock.insert("nails", "100")?;
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "screws", "50")?;
    /// assert_eq!(tx.iter(&stock)?.count(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self, keyspace: &Keyspace) -> Result<TransactionIter> {
        self.range::<&[u8]>(keyspace, ..)
    }

    /// The entries within a range of keys that the transaction sees, in key order. The iterator
    /// shows the transaction's writes as they are now; later ones do not change it.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// let tx = db.begin()?;
    /// assert_eq!(tx.range(&stock, "a".."n")?.count(), 0);
    /// tx.insert(&stock, "total", "0")?;
    /// // A new key in a range that the transaction read is a conflict.
    /// stock.insert("glue", "7")?;
    /// assert!(matches!(tx.commit(), Err(esker::Error::Conflict { .. })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<TransactionIter> {
        let bounds = bounds(half_open(&keyspace.state.order, &range)?);
        self.iter_within(keyspace, bounds)
    }

    /// The entries that the transaction sees whose keys begin with `prefix`, in key order.
    ///
    /// # Errors
    /// As [`Keyspace::prefix`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let users = db.keyspace("users")?;
    /// let count = db.transact(|tx| {
    ///     tx.insert(&users, "user:1", "ann")?;
    ///     Ok(tx.prefix(&users, "user:")?.count())
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<TransactionIter> {
        let bounds = bounds(of_prefix(&keyspace.state.order, prefix.as_ref())?);
        self.iter_within(keyspace, bounds)
    }

    fn iter_within(&self, keyspace: &Keyspace, bounds: Bounds) -> Result<TransactionIter> {
        self.check(keyspace)?;
        let snapshot = self.snapshot()?.clone();
        let mut inner = self.inner.lock();
        let own = match inner.own(keyspace) {
            Some(own) => own.clone(),
            None => Arc::new(OwnWrites::new(order_of(keyspace)?)),
        };
        let read = inner.reads.range(&keyspace.state, bounds.clone(), snapshot.seq());
        inner.count();
        drop(inner);
        Ok(TransactionIter::new(snapshot, keyspace.clone(), bounds, own, read))
    }

    /// The entry with the smallest key that the transaction sees.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let jobs = db.keyspace("jobs")?;
    /// jobs.insert("1", "cook")?;
    /// // However many threads do this, each job is taken once.
    /// let job = db.transact(|tx| {
    ///     let Some((number, job)) = tx.first_key_value(&jobs)? else { return Ok(None) };
    ///     tx.remove(&jobs, number)?;
    ///     Ok(Some(job))
    /// })?;
    /// assert_eq!(job, Some(b"cook".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first_key_value(&self, keyspace: &Keyspace) -> Result<Option<Pair>> {
        self.iter(keyspace)?.next().transpose()
    }

    /// The entry with the greatest key that the transaction sees.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let log = db.keyspace("log")?;
    /// db.transact(|tx| {
    ///     let last = tx.last_key_value(&log)?.map_or(0, |(key, _)| key[0]);
    ///     tx.insert(&log, [last + 1], "a line")
    /// })?;
    /// assert!(log.contains_key([1])?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last_key_value(&self, keyspace: &Keyspace) -> Result<Option<Pair>> {
        self.iter(keyspace)?.next_back().transpose()
    }
}
