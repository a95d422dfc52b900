//! Keyspaces whose keys and values have types of the program.
//!
//! [`Typed`] wraps a keyspace and turns keys and values into bytes with the traits of `encoding`. What it stores is
//! plain entries: programs without the types, the command line and other languages read them as bytes.

mod encoding;
#[cfg(test)]
mod tests;

use super::iterator::Iter;
use super::range::Pair;
use crate::{Batch, Error, Keyspace, Result, Snapshot, Transaction};
pub use encoding::{KeyCodec, KeyFor, ValueCodec, ValueFor};
use std::any::type_name;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// A keyspace with keys of type `K` and values of type `V`.
///
/// Keys come in the order of their type: numbers by size, strings by their bytes, tuples by their first part, then by
/// their second. A keyspace that was written with other types gives [`Error::InvalidArgument`] where an entry does
/// not fit. Nothing records the types: to change them is to write the data anew.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// use esker::Typed;
/// // Scores by game and player.
/// let scores: Typed<(u32, String), u64> = Typed::new(db.keyspace("scores")?);
/// scores.insert((7, "ann".to_owned()), 120)?;
/// scores.insert((7, "bob".to_owned()), 95)?;
/// scores.insert((300, "ann".to_owned()), 4)?;
/// assert_eq!(scores.get((7, "bob".to_owned()))?, Some(95));
/// let game: Vec<_> = scores.range((7, String::new())..(8, String::new()))?.collect::<Result<_, _>>()?;
/// assert_eq!(game, [((7, "ann".to_owned()), 120), ((7, "bob".to_owned()), 95)]);
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Typed<K, V> {
    keyspace: Keyspace,
    types: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for Typed<K, V> {
    fn clone(&self) -> Self {
        Self { keyspace: self.keyspace.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Typed<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Typed").field(&self.keyspace).finish()
    }
}

impl<K: KeyCodec, V: ValueCodec> Typed<K, V> {
    /// The keyspace, seen with types. The order of keys is that of the types only in a keyspace without a custom
    /// comparator.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let ages = esker::Typed::<String, u8>::new(db.keyspace("ages")?);
    /// ages.insert("ann", 31)?;
    /// assert_eq!(ages.get("ann")?, Some(31));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn new(keyspace: Keyspace) -> Self {
        Self { keyspace, types: PhantomData }
    }

    /// The keyspace without types.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let ages = esker::Typed::<u32, u8>::new(db.keyspace("ages")?);
    /// ages.insert(1, 31)?;
    /// assert_eq!(ages.keyspace().len()?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The bytes of a key, for calls that take bytes.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let ages = esker::Typed::<u32, u8>::new(db.keyspace("ages")?);
    /// assert_eq!(ages.key(258), [0, 0, 1, 2]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn key(&self, key: impl KeyFor<K>) -> Vec<u8> {
        bytes_of(&key)
    }

    /// The bytes of a value, for calls that take bytes.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let names = esker::Typed::<u32, String>::new(db.keyspace("names")?);
    /// assert_eq!(names.value("ann"), b"ann");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn value(&self, value: impl ValueFor<V>) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.write_value(&mut bytes);
        bytes
    }

    fn misfit(&self, what: &str, kind: &str, bytes: &[u8]) -> Error {
        let name = self.keyspace.name();
        let bytes = bytes[..bytes.len().min(40)].escape_ascii();
        Error::invalid(format!(
            "a {what} of keyspace {name:?} is no {kind}: \"{bytes}\"; it was written with another type"
        ))
    }

    fn read_value(&self, bytes: &[u8]) -> Result<V> {
        V::read_value(bytes).ok_or_else(|| self.misfit("value", type_name::<V>(), bytes))
    }

    fn read_pair(&self, (key, value): (&[u8], &[u8])) -> Result<(K, V)> {
        let read = K::read_key(key);
        let key = read.ok_or_else(|| self.misfit("key", type_name::<K>(), key))?;
        Ok((key, self.read_value(value)?))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; [`Error::InvalidArgument`] if the value is not of the type.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let ages = esker::Typed::<String, u32>::new(db.keyspace("ages")?);
    /// ages.insert("ann", 31)?;
    /// assert_eq!(ages.get("ann")?, Some(31));
    /// ages.keyspace().insert("bob", "thirty")?;
    /// assert!(ages.get("bob").unwrap_err().to_string().contains("another type"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get(&self, key: impl KeyFor<K>) -> Result<Option<V>> {
        self.keyspace.get_with(self.key(key), |value| self.read_value(value))?.transpose()
    }

    /// Whether the keyspace has a key.
    ///
    /// # Errors
    /// As [`Keyspace::contains_key`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let ages = esker::Typed::<String, u32>::new(db.keyspace("ages")?);
    /// assert!(!ages.contains_key("ann")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn contains_key(&self, key: impl KeyFor<K>) -> Result<bool> {
        self.keyspace.contains_key(self.key(key))
    }

    /// Inserts a value under a key and replaces the existing value, if any.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let names = esker::Typed::<i64, String>::new(db.keyspace("names")?);
    /// names.insert(-3, "ann")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert(&self, key: impl KeyFor<K>, value: impl ValueFor<V>) -> Result<()> {
        self.keyspace.insert(self.key(key), self.value(value))
    }

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// As [`Keyspace::remove`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let names = esker::Typed::<u32, String>::new(db.keyspace("names")?);
    /// names.remove(3)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove(&self, key: impl KeyFor<K>) -> Result<()> {
        self.keyspace.remove(self.key(key))
    }

    /// Calls `f` with the value of a key, writes the result, and returns it; see [`Keyspace::update`].
    ///
    /// # Errors
    /// As [`Keyspace::update`]; [`Error::InvalidArgument`] if the value is not of the type: then nothing is written.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let visits = esker::Typed::<String, u64>::new(db.keyspace("visits")?);
    /// for page in ["home", "help", "home"] {
    ///     visits.update(page, |count| Some(count.unwrap_or(0) + 1))?;
    /// }
    /// assert_eq!(visits.get("home")?, Some(2));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn update(
        &self,
        key: impl KeyFor<K>,
        mut f: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>> {
        let mut misfit = None;
        let written = self.keyspace.update(self.key(key), |old| {
            misfit = None;
            match old.map(|bytes| (bytes, self.read_value(bytes))) {
                None => f(None).map(|new| self.value(new)),
                Some((_, Ok(old))) => f(Some(old)).map(|new| self.value(new)),
                Some((bytes, Err(error))) => {
                    misfit = Some(error);
                    Some(bytes.to_vec())
                }
            }
        })?;
        match misfit {
            Some(error) => Err(error),
            None => written.map(|bytes| self.read_value(&bytes)).transpose(),
        }
    }

    /// All entries in order.
    ///
    /// # Errors
    /// As [`Keyspace::iter`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let squares = esker::Typed::<i32, i32>::new(db.keyspace("squares")?);
    /// for number in [5, -5, 3] {
    ///     squares.insert(number, number * number)?;
    /// }
    /// let numbers: Vec<i32> = squares.iter()?.map(|entry| entry.map(|(key, _)| key)).collect::<Result<_, _>>()?;
    /// assert_eq!(numbers, [-5, 3, 5]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn iter(&self) -> Result<TypedIter<K, V>> {
        Ok(TypedIter { iter: self.keyspace.iter()?, of: self.clone() })
    }

    /// The entries whose keys lie in a range, in order.
    ///
    /// # Errors
    /// As [`Keyspace::range`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let ages = esker::Typed::<String, u8>::new(db.keyspace("ages")?);
    /// ages.insert("ann", 31)?;
    /// ages.insert("bob", 28)?;
    /// assert_eq!(ages.range("b"..)?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn range<Q: KeyFor<K>>(&self, range: impl RangeBounds<Q>) -> Result<TypedIter<K, V>> {
        let range = (range.start_bound().map(bytes_of), range.end_bound().map(bytes_of));
        Ok(TypedIter { iter: self.keyspace.range::<Vec<u8>>(range)?, of: self.clone() })
    }

    /// The first entry.
    ///
    /// # Errors
    /// As [`Keyspace::first_key_value`]; [`Error::InvalidArgument`] if the entry is not of the types.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let queue = esker::Typed::<u64, String>::new(db.keyspace("queue")?);
    /// queue.insert(300, "later")?;
    /// queue.insert(7, "now")?;
    /// assert_eq!(queue.first()?, Some((7, "now".to_owned())));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.iter()?.next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// As [`Typed::first`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let log = esker::Typed::<u64, String>::new(db.keyspace("log")?);
    /// let next = log.last()?.map_or(0, |(number, _)| number + 1);
    /// log.insert(next, "begun")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.iter()?.next_back().transpose()
    }

    /// Adds an insertion to a batch.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let names = esker::Typed::<u32, String>::new(db.keyspace("names")?);
    /// let mut batch = esker::Batch::new();
    /// names.insert_into(&mut batch, 1, "ann");
    /// names.remove_into(&mut batch, 2);
    /// db.write(batch)?;
    /// assert_eq!(names.get(1)?.as_deref(), Some("ann"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_into(&self, batch: &mut Batch, key: impl KeyFor<K>, value: impl ValueFor<V>) {
        batch.insert(&self.keyspace, self.key(key), self.value(value));
    }

    /// Adds a removal to a batch.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let names = esker::Typed::<u32, String>::new(db.keyspace("names")?);
    /// names.insert(2, "bob")?;
    /// let mut batch = esker::Batch::new();
    /// names.remove_into(&mut batch, 2);
    /// db.write(batch)?;
    /// assert_eq!(names.get(2)?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_into(&self, batch: &mut Batch, key: impl KeyFor<K>) {
        batch.remove(&self.keyspace, self.key(key));
    }

    /// The value of a key in a snapshot.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::InvalidArgument`] if the value is not of the type.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let ages = esker::Typed::<String, u8>::new(db.keyspace("ages")?);
    /// ages.insert("ann", 31)?;
    /// let before = db.snapshot()?;
    /// ages.insert("ann", 32)?;
    /// assert_eq!(ages.get_at(&before, "ann")?, Some(31));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_at(&self, snapshot: &Snapshot, key: impl KeyFor<K>) -> Result<Option<V>> {
        let found = snapshot.get(&self.keyspace, self.key(key))?;
        found.map(|value| self.read_value(&value)).transpose()
    }

    /// The value of a key as a transaction sees it.
    ///
    /// # Errors
    /// As [`Transaction::get`]; [`Error::InvalidArgument`] if the value is not of the type.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let accounts = esker::Typed::<String, i64>::new(db.keyspace("accounts")?);
    /// db.transact(|tx| {
    ///     let ann = accounts.get_in(tx, "ann")?.unwrap_or(0);
    ///     accounts.insert_in(tx, "ann", ann + 10)?;
    ///     accounts.remove_in(tx, "bob")
    /// })?;
    /// assert_eq!(accounts.get("ann")?, Some(10));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_in(&self, tx: &Transaction, key: impl KeyFor<K>) -> Result<Option<V>> {
        let found = tx.get(&self.keyspace, self.key(key))?;
        found.map(|value| self.read_value(&value)).transpose()
    }

    /// Inserts a value in a transaction.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    ///
    /// # Example
    /// ```
    /// # let db = esker::Db::in_memory()?;
    /// let accounts = esker::Typed::<String, i64>::new(db.keyspace("accounts")?);
    /// let tx = db.begin()?;
    /// accounts.insert_in(&tx, "ann", 10)?;
    /// tx.commit()?;
    /// assert_eq!(accounts.get("ann")?, Some(10));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_in(
        &self,
        tx: &Transaction,
        key: impl KeyFor<K>,
        value: impl ValueFor<V>,
    ) -> Result<()> {
        tx.insert(&self.keyspace, self.key(key), self.value(value))
    }

    /// Removes a key in a transaction.
    ///
    /// # Errors
    /// As [`Transaction::remove`].
    ///
    /// # Example
    /// ```
    /// # let db = esker::Db::in_memory()?;
    /// let accounts = esker::Typed::<String, i64>::new(db.keyspace("accounts")?);
    /// accounts.insert("ann", 10)?;
    /// db.transact(|tx| accounts.remove_in(tx, "ann"))?;
    /// assert!(!accounts.contains_key("ann")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_in(&self, tx: &Transaction, key: impl KeyFor<K>) -> Result<()> {
        tx.remove(&self.keyspace, self.key(key))
    }
}

fn bytes_of<K>(key: &impl KeyFor<K>) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.write_key(&mut bytes);
    bytes
}

/// The entries of a [`Typed`] keyspace in order, from either end.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let names = esker::Typed::<u8, String>::new(db.keyspace("names")?);
/// names.insert(1, "ann")?;
/// for entry in names.iter()?.rev() {
///     let (number, name) = entry?;
///     println!("{number}: {name}");
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
pub struct TypedIter<K, V> {
    iter: Iter,
    of: Typed<K, V>,
}

impl<K: KeyCodec, V: ValueCodec> TypedIter<K, V> {
    fn read(&self, entry: Option<Result<Pair>>) -> Option<Result<(K, V)>> {
        entry.map(|entry| entry.and_then(|(key, value)| self.of.read_pair((&key, &value))))
    }
}

impl<K: KeyCodec, V: ValueCodec> Iterator for TypedIter<K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.iter.next();
        self.read(entry)
    }
}

impl<K: KeyCodec, V: ValueCodec> DoubleEndedIterator for TypedIter<K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let entry = self.iter.next_back();
        self.read(entry)
    }
}

impl<K: KeyCodec, V: ValueCodec> FusedIterator for TypedIter<K, V> {}
