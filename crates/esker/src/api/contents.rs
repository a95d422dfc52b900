//! What a keyspace holds as a whole: whether it holds anything, how much, all of it in a `for` loop, none of it any more.

use super::iterator::Iter;
use super::range::{Pair, of_prefix};
use crate::{Batch, Db, Error, Keyspace, Result};
use std::iter::FusedIterator;

impl Keyspace {
    /// Whether the keyspace holds no entry.
    ///
    /// # Errors
    /// As [`Keyspace::first_key_value`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// assert!(fruit.is_empty()?);
    /// fruit.insert("apple", "red")?;
    /// assert!(!fruit.is_empty()?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.iter()?.next_entry()?.is_none())
    }

    /// How many entries the keyspace holds, exactly: as [`Keyspace::count`] of everything, which reads what overlaps.
    ///
    /// # Errors
    /// As [`Keyspace::count`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// for name in ["apple", "apple", "pear"] {
    ///     fruit.insert(name, "")?;
    /// }
    /// assert_eq!(fruit.len()?, 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn len(&self) -> Result<u64> {
        self.count::<&[u8]>(..)
    }

    /// About how many entries the keyspace holds, without reading any: the middle of what is possible.
    /// [`Keyspace::approximate_count`] also tells by how many it may be wrong.
    ///
    /// # Errors
    /// As [`Keyspace::approximate_count`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// for name in ["apple", "pear"] {
    ///     fruit.insert(name, "")?;
    /// }
    /// db.flush()?;
    /// assert_eq!(fruit.approximate_len()?, 2); // Exact, since nothing overlaps.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn approximate_len(&self) -> Result<u64> {
        Ok(self.approximate_count::<&[u8]>(..)?.entries)
    }

    /// Removes every entry. The cost does not depend on how many there are. The keyspace and its options stay;
    /// [`Db::drop_keyspace`] removes these, too.
    ///
    /// # Errors
    /// As [`Keyspace::remove`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let cache = db.keyspace("cache")?;
    /// cache.insert("page:1", "...")?;
    /// cache.clear()?;
    /// assert!(cache.is_empty()?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn clear(&self) -> Result<()> {
        self.remove_range::<&[u8]>(..)
    }

    /// Removes every key that begins with `prefix`. The cost does not depend on how many there are.
    ///
    /// # Errors
    /// As [`Keyspace::remove`]; [`Error::InvalidArgument`] if the keyspace has a custom comparator, in whose order keys
    /// with the same prefix need not be neighbours.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let sessions = db.keyspace("sessions")?;
    /// for key in ["ann:1", "ann:2", "bob:1"] {
    ///     sessions.insert(key, "token")?;
    /// }
    /// sessions.remove_prefix("ann:")?;
    /// assert_eq!(sessions.len()?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.remove_prefix(self, prefix)?;
        batch.write(&self.handle.core, self.handle.core.durability().into()).map(|_| ())
    }

    /// Keeps the entries for which `keep` returns true and removes the others. Returns how many it removed.
    ///
    /// It looks at the entries that are there when it begins, in order. Each removal is a write of its own: one whose
    /// value another write has changed meanwhile stays, and so do those after an error. To remove a range, whatever
    /// it holds, [`Keyspace::remove_range`] is faster.
    ///
    /// # Errors
    /// As [`Keyspace::iter`] and [`Keyspace::compare_and_set`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let stock = db.keyspace("stock")?;
    /// for (article, left) in [("nails", 100), ("screws", 0), ("tacks", 0)] {
    ///     stock.insert(article, [left])?;
    /// }
    /// assert_eq!(stock.retain(|_article, left| left != [0])?, 2);
    /// assert_eq!(stock.len()?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
        let (mut entries, mut removed) = (self.iter()?, 0);
        while let Some((key, value)) = entries.next_entry()? {
            if !keep(key, value) && self.compare_and_set(key, Some(value), None)? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

impl Db {
    /// Removes every key of the default keyspace that begins with `prefix`; see [`Keyspace::remove_prefix`].
    ///
    /// # Errors
    /// As [`Keyspace::remove_prefix`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("a:1", "")?;
    /// db.remove_prefix("a:")?;
    /// assert_eq!(db.get("a:1")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.default_keyspace().remove_prefix(prefix)
    }
}

impl Batch {
    /// Adds the removal of every key that begins with `prefix`. The cost does not depend on how many there are.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the keyspace has a custom comparator.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let users = db.keyspace("users")?;
    /// users.insert("ann:mail", "ann@example.org")?;
    /// let mut batch = esker::Batch::new();
    /// batch.remove_prefix(&users, "ann:")?;
    /// batch.insert(&users, "ann:left", "2026");
    /// db.write(batch)?;
    /// assert_eq!(users.len()?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.remove_half_open(keyspace, of_prefix(&keyspace.state().order, prefix.as_ref())?);
        Ok(())
    }
}

/// The entries of a keyspace in order, from either end, as a `for` loop over `&keyspace` takes them. If the keyspace
/// cannot be read at all, the first item is the error.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let fruit = db.keyspace("fruit")?;
/// fruit.insert("apple", "red")?;
/// for entry in &fruit {
///     let (name, colour) = entry?;
///     assert_eq!((&name[..], &colour[..]), (&b"apple"[..], &b"red"[..]));
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
pub struct IntoIter(std::result::Result<Iter, Option<Error>>);

impl IntoIter {
    fn next_of(
        &mut self,
        next: impl FnOnce(&mut Iter) -> Option<Result<Pair>>,
    ) -> Option<Result<Pair>> {
        match &mut self.0 {
            Ok(iter) => next(iter),
            Err(error) => error.take().map(Err),
        }
    }
}

impl Iterator for IntoIter {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_of(Iter::next)
    }
}

impl DoubleEndedIterator for IntoIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_of(Iter::next_back)
    }
}

impl FusedIterator for IntoIter {}

impl IntoIterator for &Keyspace {
    type Item = Result<Pair>;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        IntoIter(self.iter().map_err(Some))
    }
}
