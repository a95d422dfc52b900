//! Ingestion of sorted entries.

use super::handle::Handle;
use super::range::half_open;
use super::value::{ReaderSource, stored_form};
use crate::base::{KeyBuf, Kind, Millis};
use crate::catalog::check_key;
use crate::ingest::Ingestor;
use crate::{Db, Error, Keyspace, Result};
use std::io::Read;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

impl Db {
    /// Begins an ingestion: sorted entries go into the database's files directly, and take effect
    /// together when it is committed.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let squares = db.keyspace("squares")?;
    /// let mut ingestion = db.ingest()?;
    /// for n in 0..1000u32 {
    ///     ingestion.insert(&squares, n.to_be_bytes(), (n * n).to_string())?;
    /// }
    /// ingestion.commit()?;
    /// assert_eq!(squares.get(12u32.to_be_bytes())?.as_deref(), Some(&b"144"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn ingest(&self) -> Result<Ingestion> {
        self.core().writable()?;
        self.branch.check_writable()?;
        Ok(Ingestion::new(&self.default.handle))
    }
}

impl Keyspace {
    /// Ingests sorted entries: begins an [`Ingestion`], adds the entries and commits it. Returns how many
    /// there were. It costs three syncs, so use it for thousands of entries or more.
    ///
    /// Before it returns, nothing is visible; then all entries are, and survive a power cut. After an error
    /// none of them is there.
    ///
    /// # Errors
    /// As [`Ingestion::insert_all`] and [`Ingestion::commit`]. [`crate::Error::OutOfOrder`] names the first key
    /// that is not greater than the one before it.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::Error;
    /// let squares = db.keyspace("squares")?;
    /// let entries = (0..1000u32).map(|n| (n.to_be_bytes(), (n * n).to_string()));
    /// assert_eq!(squares.ingest(entries)?, 1000);
    ///
    /// let refused = squares.ingest([("pear", ""), ("quince", ""), ("apple", "")]);
    /// assert!(matches!(refused, Err(Error::OutOfOrder { key, .. }) if key == b"apple"));
    /// assert_eq!(squares.iter()?.count(), 1000);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.handle.core.writable()?;
        let mut ingestion = Ingestion::new(&self.handle);
        let added = ingestion.insert_all(self, entries);
        // Seeded: the entries before one that is refused are there.
        if added.is_ok() || bug!("api_refused_ingestion_is_committed") {
            ingestion.commit()?;
        }
        added
    }
}

/// Sorted entries on their way into a database, of any number of its keyspaces.
///
/// It is the fastest way to load sorted data: each byte is written once, compressed, and nothing goes
/// into the log or memtables. The keys of each keyspace must come in its ascending order; the order among
/// keyspaces does not matter. Several threads can each fill one, and [`Ingestion::join`] makes one of them; its
/// example shows all of it. For entries of one keyspace that are at hand, [`Keyspace::ingest`] is shorter. The
/// buffers take a megabyte for each keyspace, at most eight; each gigabyte of
/// data some hundred kilobytes more. Where the entries of more than eight keyspaces alternate, run segments
/// become small.
///
/// Nothing is visible before [`Ingestion::commit`]. Then all entries are, at once, and survive a power cut.
/// They count as written at that moment: they replace what was written before under the same keys, and
/// snapshots and branches made before do not have them. A transaction that read such a key, or between the
/// first and the last key of a run segment of about a megabyte, or in a removed range, cannot commit. Locks of
/// transactions are not waited for.
///
/// If it is dropped without a commit, its files are removed. After a crash the next open removes them.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// use esker::Error;
/// let (words, lengths) = (db.keyspace("words")?, db.keyspace("lengths")?);
/// let mut ingestion = db.ingest()?;
/// for word in ["ape", "bee", "cow"] {
///     ingestion.insert(&words, word, "an animal")?;
///     ingestion.insert(&lengths, word, "3")?;
/// }
/// // A key out of order is refused, and the others stay.
/// assert!(matches!(ingestion.insert(&words, "ant", "?"), Err(Error::OutOfOrder { .. })));
/// assert_eq!(words.iter()?.count(), 0);
/// ingestion.commit()?;
/// assert_eq!(words.iter()?.count(), 3);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
pub struct Ingestion {
    handle: Arc<Handle>,
    ingestor: Ingestor,
    /// The buffer in which the stored form of a value that expires is built.
    stored: Vec<u8>,
}

impl Ingestion {
    pub(super) fn new(handle: &Arc<Handle>) -> Self {
        Self { handle: handle.clone(), ingestor: Ingestor::default(), stored: Vec::new() }
    }

    /// Adds an entry whose value comes from a reader, which is read to its end; returns the bytes of the value. It
    /// may have up to 1 GiB, whatever the memory budget: no more than two pieces of it, of 256 KiB, are in memory.
    /// [`Keyspace::get_reader`] reads it in pieces, too.
    ///
    /// # Errors
    /// As [`Ingestion::insert`]. [`crate::Error::Io`] if the reader
    /// fails: the ingestion goes on without the entry, and what was written of it takes space until a
    /// compaction has rewritten the rest of the file.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use std::io::Read;
    /// let images = db.keyspace("images")?;
    /// let mut ingestion = db.ingest()?;
    /// for name in ["a.tar", "b.tar"] {
    ///     // A file, or what comes over a network.
    ///     let source = std::io::repeat(7).take(1_000_000);
    ///     assert_eq!(ingestion.insert_reader(&images, name, source)?, 1_000_000);
    /// }
    /// ingestion.commit()?;
    /// assert_eq!(images.iter()?.count(), 2);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_reader(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        reader: impl Read,
    ) -> Result<u64> {
        let key = key.as_ref();
        check_key(key)?;
        keyspace.check_of(&self.handle)?;
        let expiry = keyspace.expiry();
        let kind = if expiry.is_some() { Kind::ExpiringPut } else { Kind::Put };
        let mut source = ReaderSource::new(expiry, reader);
        let head = kind.value_bytes_min() as u64;
        let added = (key, kind);
        let stored =
            self.ingestor.add_from(&self.handle.core, keyspace.state(), added, &mut source)?;
        Ok(stored - head)
    }

    /// Adds an entry. Its key must be greater than the last one that was added to the same keyspace. The
    /// keyspace's time to live, if any, counts from now.
    ///
    /// # Errors
    /// [`crate::Error::OutOfOrder`], [`crate::Error::KeyTooLong`] above 65,535 bytes,
    /// [`crate::Error::ValueTooLarge`] above 1 GiB, for an operand above an eighth of the memory budget: the
    /// ingestion goes on without the entry. [`crate::Error::KeyspaceDropped`], [`crate::Error::ReadOnly`],
    /// [`crate::Error::InvalidArgument`] for a keyspace of another database,
    /// [`crate::Error::ComparatorMissing`].
    /// [`crate::Error::DiskFull`], [`crate::Error::Io`]: nothing more is accepted, drop the ingestion.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// let mut ingestion = db.ingest()?;
    /// ingestion.insert(&fruit, "apple", "red")?;
    /// ingestion.insert(&fruit, "pear", "green")?;
    /// ingestion.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.add(keyspace, key.as_ref(), (false, keyspace.expiry()), value.as_ref())
    }

    /// Adds the entries of an iterator one after the other, as [`Ingestion::insert`] does, and returns how many
    /// there were. Memory does not grow with their number: an entry is taken from the iterator when the one
    /// before it was added.
    ///
    /// # Errors
    /// As [`Ingestion::insert`], for the first entry that is refused. The entries before it were added, nothing
    /// is taken from the iterator after it, and where `insert` goes on the ingestion does. Drop it if the
    /// entries should be there together or not at all.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use std::collections::BTreeMap;
    /// let (fruit, colours) = (db.keyspace("fruit")?, db.keyspace("colours")?);
    /// let mut ingestion = db.ingest()?;
    /// let sorted = BTreeMap::from([("pear", "green"), ("apple", "red")]);
    /// assert_eq!(ingestion.insert_all(&fruit, &sorted)?, 2);
    /// assert_eq!(ingestion.insert_all(&colours, [("green", "pear"), ("red", "apple")])?, 2);
    /// ingestion.commit()?;
    /// assert_eq!(fruit.get("pear")?, Some(b"green".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.insert_results(keyspace, entries.into_iter().map(Ok::<_, Error>))
    }

    /// As [`Ingestion::insert_all`], for an iterator that may fail: a file that is parsed, another keyspace, a
    /// query. Its error type also takes the errors of the ingestion, as with the operator `?`, so it says which
    /// of the two failed. (The names of calls that begin with `try_` mean something else here: that they do
    /// not wait.)
    ///
    /// # Errors
    /// Those of the iterator, which end the call, and those of [`Ingestion::insert_all`], made into its type. The
    /// ingestion has the entries before the error, and after one of the iterator it goes on.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let (old, new) = (db.keyspace("old")?, db.keyspace("new")?);
    /// old.insert("apple", "red")?;
    /// // An iterator over a keyspace gives results of entries.
    /// let mut ingestion = db.ingest()?;
    /// assert_eq!(ingestion.insert_results(&new, old.iter()?)?, 1);
    /// ingestion.commit()?;
    ///
    /// // The type of the error tells a line that is wrong from a key that is.
    /// #[derive(Debug)]
    /// enum LoadError { Line(String), Engine(esker::Error) }
    /// impl From<esker::Error> for LoadError {
    ///     fn from(error: esker::Error) -> Self {
    ///         Self::Engine(error)
    ///     }
    /// }
    /// let load = |text: &str| -> Result<u64, LoadError> {
    ///     let entries = text.lines().map(|line| {
    ///         line.split_once('=').ok_or_else(|| LoadError::Line(line.to_owned()))
    ///     });
    ///     db.ingest()?.insert_results(&new, entries)
    /// };
    /// assert!(matches!(load("a=1\nb=2"), Ok(2)));
    /// assert!(matches!(load("a=1\nb"), Err(LoadError::Line(line)) if line == "b"));
    /// assert!(matches!(load("b=1\na=2"), Err(LoadError::Engine(esker::Error::OutOfOrder { .. }))));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_results<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &mut self,
        keyspace: &Keyspace,
        entries: impl IntoIterator<Item = std::result::Result<(K, V), E>>,
    ) -> std::result::Result<u64, E> {
        let mut added = 0;
        for entry in entries {
            let (key, value) = entry?;
            let inserted = self.insert(keyspace, key, value);
            // Seeded: of the entries of an iterator, those that are refused are left out without an error.
            bug!(
                "api_refused_entries_are_left_out",
                if inserted.is_err() {
                    continue;
                }
            );
            inserted?;
            added += 1;
        }
        Ok(added)
    }

    /// As [`Ingestion::insert`], for a value that expires after `ttl`, counted from now.
    ///
    /// # Errors
    /// As [`Ingestion::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use std::time::Duration;
    /// let sessions = db.keyspace("sessions")?;
    /// let mut ingestion = db.ingest()?;
    /// ingestion.insert_with_ttl(&sessions, "ann", "token", Duration::from_secs(3600))?;
    /// ingestion.insert_with_ttl(&sessions, "bob", "token", Duration::ZERO)?; // Expires at once.
    /// ingestion.commit()?;
    /// assert_eq!(sessions.iter()?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let expiry = keyspace.expiry_after(ttl);
        self.add(keyspace, key.as_ref(), (false, Some(expiry)), value.as_ref())
    }

    /// Adds an operand for the keyspace's merge operator; see [`Keyspace::merge`]. It combines with what was
    /// written under the key before the commit. A key has one entry in an ingestion, so combine several
    /// operands before.
    ///
    /// # Errors
    /// As [`Ingestion::insert`] and [`Keyspace::merge`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::{CounterU64, KeyspaceOptions};
    /// let visits = db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME))?;
    /// visits.merge("home", CounterU64::encode(1))?;
    /// let mut ingestion = db.ingest()?;
    /// ingestion.merge(&visits, "help", CounterU64::encode(20))?;
    /// ingestion.merge(&visits, "home", CounterU64::encode(20))?;
    /// ingestion.commit()?;
    /// assert_eq!(visits.get_with("home", CounterU64::decode)?, Some(Some(21)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let operand = operand.as_ref();
        keyspace.check_merge(operand)?;
        self.add(keyspace, key.as_ref(), (true, keyspace.expiry()), operand)
    }

    /// Adds the removal of a key; it stands in the order of keys as an entry does.
    ///
    /// # Errors
    /// As [`Ingestion::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let mut ingestion = db.ingest()?;
    /// ingestion.remove(&fruit, "apple")?;
    /// ingestion.insert(&fruit, "pear", "green")?;
    /// ingestion.commit()?;
    /// assert!(!fruit.contains_key("apple")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        keyspace.check_of(&self.handle)?;
        self.ingestor.add(&self.handle.core, keyspace.state(), key, (Kind::Delete, &[]))
    }

    /// Adds the removal of every key in a range that was written before the commit. Entries of the ingestion
    /// stay, whether they are added before or after this; so an ingestion can replace the contents of a range
    /// or a keyspace at one moment.
    ///
    /// Ranges may come in any order. They stay in memory until the commit: together they may have an eighth
    /// of the memory budget, in which each takes its two keys and 128 bytes.
    ///
    /// # Errors
    /// [`crate::Error::BatchTooLarge`] beyond that eighth, [`crate::Error::InvalidArgument`] as
    /// [`crate::Batch::remove_range`]: the ingestion goes on without the range. Others as
    /// [`Ingestion::insert`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let prices = db.keyspace("prices")?;
    /// prices.insert("apple", "1.20")?;
    /// prices.insert("quince", "3.00")?;
    /// let mut ingestion = db.ingest()?;
    /// ingestion.remove_range::<&str>(&prices, ..)?; // Everything that is there.
    /// ingestion.insert(&prices, "apple", "1.30")?;
    /// ingestion.insert(&prices, "pear", "1.10")?;
    /// ingestion.commit()?;
    /// let names: Vec<_> = prices.iter()?.map(|entry| entry.unwrap().0).collect();
    /// assert_eq!(names, [&b"apple"[..], b"pear"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        keyspace.check_of(&self.handle)?;
        let (start, end) = half_open(&keyspace.state().order, &range)?;
        let range = (start.map(KeyBuf::into_vec), end.map(KeyBuf::into_vec));
        self.ingestor.remove_range(&self.handle.core, keyspace.state(), range)
    }

    fn add(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        (operand, expiry): (bool, Option<Millis>),
        value: &[u8],
    ) -> Result<()> {
        check_key(key)?;
        keyspace.check_of(&self.handle)?;
        let kind = match (operand, expiry) {
            (false, None) => Kind::Put,
            (false, Some(_)) => Kind::ExpiringPut,
            (true, None) => Kind::Merge,
            (true, Some(_)) => Kind::ExpiringMerge,
        };
        let stored = stored_form(expiry, value, &mut self.stored);
        self.ingestor.add(&self.handle.core, keyspace.state(), key, (kind, stored))
    }

    /// Makes what was added so far durable, but not visible. The commit and [`Ingestion::join`] do so too; a
    /// thread that calls this at its end saves the joining one the time. Entries may follow.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`], [`crate::Error::Io`], [`crate::Error::Closed`]: nothing more is accepted,
    /// drop the ingestion.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let mut ingestion = db.ingest()?;
    /// ingestion.insert(&db.default_keyspace(), "key", "value")?;
    /// ingestion.sync()?; // Takes as long as the device does.
    /// assert_eq!(db.iter()?.count(), 0);
    /// ingestion.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sync(&mut self) -> Result<()> {
        self.ingestor.sync(&self.handle.core)
    }

    /// Takes over everything of another ingestion of the same database, so that both take effect together.
    /// In a keyspace to which both added entries, these must lie apart: those of `other` all before, behind or
    /// between stretches that were added here one behind the other. Removed ranges may overlap; they remove
    /// nothing of either. Entries that follow must come behind the greatest key of both.
    ///
    /// # Errors
    /// [`crate::Error::OutOfOrder`] if entries do not lie apart, [`crate::Error::BatchTooLarge`] for too many
    /// removed ranges, [`crate::Error::InvalidArgument`] for an ingestion of another database, and those of
    /// `other`: this one goes on without `other`, whose files are removed. [`crate::Error::DiskFull`],
    /// [`crate::Error::Io`] of this one: drop it.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let squares = db.keyspace("squares")?;
    /// // Each thread fills the part of a range; their order does not matter.
    /// let fill = |range: std::ops::Range<u32>| -> esker::Result<esker::Ingestion> {
    ///     let mut part = db.ingest()?;
    ///     part.insert_all(&squares, range.map(|n| (n.to_be_bytes(), (n * n).to_string())))?;
    ///     part.sync()?;
    ///     Ok(part)
    /// };
    /// let fill = &fill;
    /// let parts = std::thread::scope(|scope| {
    ///     [0..1000, 1000..2000, 2000..3000]
    ///         .map(|range| scope.spawn(move || fill(range)))
    ///         .map(|part| part.join().unwrap())
    /// });
    /// let mut all = db.ingest()?;
    /// for part in parts {
    ///     all.join(part?)?;
    /// }
    /// all.commit()?;
    /// assert_eq!(squares.iter()?.count(), 3000);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn join(&mut self, mut other: Ingestion) -> Result<()> {
        if !Arc::ptr_eq(&self.handle.core, &other.handle.core) {
            return Err(Error::invalid("the ingestion is one of another database"));
        }
        let taken = std::mem::take(&mut other.ingestor);
        self.ingestor.join(&self.handle.core, taken)
    }

    /// Makes all entries durable and visible at once.
    ///
    /// If memtables hold something between the keys or in removed ranges, they are flushed first; if others
    /// go on writing there, writers wait for the last flush. Writers also wait while the database records the
    /// new files, which takes three syncs. For a keyspace with a custom comparator they wait a little longer.
    ///
    /// # Errors
    /// [`crate::Error::KeyspaceDropped`], [`crate::Error::DiskFull`], [`crate::Error::Io`],
    /// [`crate::Error::Closed`]: then nothing is visible, and the files are removed.
    /// [`crate::Error::Poisoned`]: then the next open finds all entries or none.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("b", "old")?;
    /// let before = db.snapshot()?;
    /// let mut ingestion = db.ingest()?;
    /// for key in ["a", "b", "c"] {
    ///     ingestion.insert(&db.default_keyspace(), key, "new")?;
    /// }
    /// ingestion.commit()?;
    /// assert_eq!(db.get("b")?.as_deref(), Some(&b"new"[..]));
    /// assert_eq!(before.get(&db.default_keyspace(), "b")?.as_deref(), Some(&b"old"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn commit(mut self) -> Result<()> {
        self.ingestor.commit(&self.handle.core)
    }
}

impl Drop for Ingestion {
    fn drop(&mut self) {
        self.ingestor.abandon(&self.handle.core);
    }
}
