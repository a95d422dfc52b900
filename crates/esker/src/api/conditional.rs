//! Writes to one key that depend on its present value.
//!
//! Each is a transaction of one read and one write. It reads the key and writes only if no other
//! write has changed the key since (R20); otherwise it reads the key again. It takes no lock, and a
//! call retries only after another writer succeeded.

use crate::txn::reads::ReadSet;
use crate::{Batch, Error, Keyspace, Result};

impl Keyspace {
    /// Sets a key to `new` if its value is `expected`, and returns whether it was. In both, `None`
    /// stands for an absent key. The comparison and the write are atomic with respect to all other
    /// writes.
    ///
    /// # Errors
    /// As [`Keyspace::insert`] and [`Keyspace::get`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let locks = db.keyspace("locks")?;
    /// assert!(locks.compare_and_set("printer", None, Some(b"ann"))?);
    /// assert!(!locks.compare_and_set("printer", None, Some(b"bob"))?);
    /// assert!(locks.compare_and_set("printer", Some(b"ann"), None)?);
    /// assert_eq!(locks.get("printer")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn compare_and_set(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let mut matched = false;
        self.change(key.as_ref(), |found| {
            matched = found == expected;
            matched.then(|| new.map(<[u8]>::to_vec))
        })?;
        Ok(matched)
    }

    /// Inserts a value under a key if the key is absent, and returns whether it was.
    ///
    /// # Errors
    /// As [`Keyspace::compare_and_set`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let users = db.keyspace("users")?;
    /// assert!(users.insert_if_absent("ann", "1")?);
    /// assert!(!users.insert_if_absent("ann", "2")?);
    /// assert_eq!(users.get("ann")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.compare_and_set(key, None, Some(value.as_ref()))
    }

    /// Calls `f` with the value of a key, writes the result, and returns it. `None` stands for an
    /// absent key in both. `f` runs again if another write changed the key meanwhile.
    ///
    /// # Errors
    /// As [`Keyspace::compare_and_set`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let counts = db.keyspace("counts")?;
    /// for _ in 0..3 {
    ///     counts.update("visits", |old| Some(vec![old.map_or(0, |value| value[0]) + 1]))?;
    /// }
    /// assert_eq!(counts.get("visits")?, Some(vec![3]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let changed = self.change(key.as_ref(), |found| Some(f(found)))?;
        Ok(changed.flatten())
    }

    /// Inserts a value under a key and returns the value that it replaces, if there was one. No other write comes
    /// between. [`Keyspace::insert`], which reads nothing, is faster.
    ///
    /// # Errors
    /// As [`Keyspace::compare_and_set`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let colours = db.keyspace("colours")?;
    /// assert_eq!(colours.replace("apple", "green")?, None);
    /// assert_eq!(colours.replace("apple", "red")?.as_deref(), Some(&b"green"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn replace(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let (value, mut old) = (value.as_ref(), None);
        self.change(key.as_ref(), |found| {
            old = found.map(<[u8]>::to_vec);
            Some(Some(value.to_vec()))
        })?;
        Ok(old)
    }

    /// Removes a key and returns the value that it had, if there was one. No other write comes between.
    /// [`Keyspace::remove`], which reads nothing, is faster.
    ///
    /// # Errors
    /// As [`Keyspace::compare_and_set`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let jobs = db.keyspace("jobs")?;
    /// jobs.insert("1", "print")?;
    /// // Of several threads, one gets the job.
    /// assert_eq!(jobs.take("1")?.as_deref(), Some(&b"print"[..]));
    /// assert_eq!(jobs.take("1")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let mut old = None;
        self.change(key.as_ref(), |found| {
            old = found.map(<[u8]>::to_vec);
            Some(None)
        })?;
        Ok(old)
    }

    /// Writes what `decide` returns for the present value, if no other write comes in between, and
    /// returns it; `None`: nothing is written.
    fn change(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Option<Option<Vec<u8>>>,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let core = &self.handle.core;
        loop {
            // A write between this line and the read counts as one after the read, which is
            // harmless.
            let since = core.visible();
            let found = self.get(key)?;
            let Some(new) = decide(found.as_deref()) else { return Ok(None) };
            if found.is_none() && new.is_none() {
                return Ok(Some(new));
            }
            let mut batch = Batch::new();
            match &new {
                Some(value) => batch.insert(self, key, value),
                None => batch.remove(self, key),
            }
            let mut reads = ReadSet::new(core.settings.batch_bytes_max);
            reads.key(&self.state, key, since);
            match batch.write_if_unchanged(core, core.durability().into(), Some(&reads)) {
                Ok(_) => return Ok(Some(new)),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
