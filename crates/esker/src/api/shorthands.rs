//! Reads and writes of the keyspace `default` without naming it.
//!
//! Each call is the call of the same name on [`Db::default_keyspace`].

use super::range::Pair;
use crate::{Db, Iter, Result};
use std::ops::RangeBounds;

impl Db {
    /// [`crate::Keyspace::insert`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "open")?;
    /// db.insert("door", "closed")?;
    /// assert_eq!(db.get("door")?, Some(b"closed".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.insert(key, value)
    }

    /// [`crate::Keyspace::try_insert`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.try_insert("door", "open")?; // Nobody is slowed here.
    /// assert_eq!(db.get("door")?, Some(b"open".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn try_insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.try_insert(key, value)
    }

    /// [`crate::Keyspace::get`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "open")?;
    /// assert_eq!(db.get("door")?, Some(b"open".to_vec()));
    /// assert_eq!(db.get("window")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.default.get(key)
    }

    /// [`crate::Keyspace::contains_key`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "")?;
    /// assert!(db.contains_key("door")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default.contains_key(key)
    }

    /// [`crate::Keyspace::multi_get`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("b", "2")?;
    /// assert_eq!(db.multi_get(["a", "b"])?, [None, Some(b"2".to_vec())]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.default.multi_get(keys)
    }

    /// [`crate::Keyspace::remove`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "open")?;
    /// db.remove("door")?;
    /// assert!(!db.contains_key("door")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.remove(key)
    }

    /// [`crate::Keyspace::try_remove`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "open")?;
    /// db.try_remove("door")?;
    /// assert!(!db.contains_key("door")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn try_remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.try_remove(key)
    }

    /// [`crate::Keyspace::remove_range`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["a", "b", "c"] { db.insert(key, "")?; }
    /// db.remove_range("a".."c")?; // Not "c".
    /// assert_eq!(db.iter()?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.default.remove_range(range)
    }

    /// [`crate::Keyspace::range`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["a", "b", "c"] { db.insert(key, "")?; }
    /// for entry in db.range("b"..)? {
    ///     let (key, _value) = entry?;
    ///     assert!(key == b"b" || key == b"c");
    /// }
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        self.default.range(range)
    }

    /// [`crate::Keyspace::prefix`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["user:1", "user:2", "zone:1"] { db.insert(key, "")?; }
    /// let users: Result<Vec<_>, _> = db.prefix("user:")?.collect();
    /// assert_eq!(users?.len(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.default.prefix(prefix)
    }

    /// [`crate::Keyspace::iter`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["b", "a"] { db.insert(key, "1")?; }
    /// let mut entries = db.iter()?;
    /// assert_eq!(entries.next().transpose()?, Some((b"a".to_vec(), b"1".to_vec())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self) -> Result<Iter> {
        self.default.iter()
    }

    /// [`crate::Keyspace::first_key_value`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["b", "a"] { db.insert(key, "1")?; }
    /// assert_eq!(db.first_key_value()?, Some((b"a".to_vec(), b"1".to_vec())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first_key_value(&self) -> Result<Option<Pair>> {
        self.default.first_key_value()
    }

    /// [`crate::Keyspace::last_key_value`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # for key in ["b", "a"] { db.insert(key, "1")?; }
    /// assert_eq!(db.last_key_value()?, Some((b"b".to_vec(), b"1".to_vec())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last_key_value(&self) -> Result<Option<Pair>> {
        self.default.last_key_value()
    }
}
