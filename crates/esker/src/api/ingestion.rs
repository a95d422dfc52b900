//! Ingestion of sorted entries.

use super::handle::Handle;
use super::value::stored_form;
use crate::base::{Kind, Millis};
use crate::catalog::check_key;
use crate::ingest::Ingestor;
use crate::{Db, Keyspace, Result};
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
        let (handle, ingestor) = (self.default.handle.clone(), Ingestor::default());
        Ok(Ingestion { handle, ingestor, stored: Vec::new() })
    }
}

/// Sorted entries on their way into a database, of any number of its keyspaces.
///
/// It is the fastest way to load sorted data: each byte is written once, compressed, and nothing goes
/// into the log or memtables. The keys of each keyspace must come in ascending order; the order among
/// keyspaces does not matter. The buffers take a megabyte for each keyspace, at most eight; each gigabyte of
/// data some hundred kilobytes more. Where the entries of more than eight keyspaces alternate, run segments
/// become small.
///
/// Nothing is visible before [`Ingestion::commit`]. Then all entries are, at once, and survive a power cut.
/// They count as written at that moment: they replace what was written before under the same keys, and
/// snapshots and branches made before do not have them. A transaction that read such a key, or between the
/// first and the last key of a run segment of about a megabyte, cannot commit. Locks of transactions are not
/// waited for.
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
    /// Adds an entry. Its key must be greater than the last one that was added to the same keyspace. The
    /// keyspace's time to live, if any, counts from now.
    ///
    /// # Errors
    /// [`crate::Error::OutOfOrder`], [`crate::Error::KeyTooLong`] above 65,535 bytes,
    /// [`crate::Error::ValueTooLarge`] above an eighth of the memory budget: the ingestion goes on without
    /// the entry. [`crate::Error::KeyspaceDropped`], [`crate::Error::ReadOnly`],
    /// [`crate::Error::InvalidArgument`] for a keyspace of another database or with a custom comparator.
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
        self.add(keyspace, key.as_ref(), keyspace.expiry(), value.as_ref())
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
        self.add(keyspace, key.as_ref(), Some(expiry), value.as_ref())
    }

    fn add(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        expiry: Option<Millis>,
        value: &[u8],
    ) -> Result<()> {
        check_key(key)?;
        keyspace.check_of(&self.handle)?;
        let kind = if expiry.is_some() { Kind::ExpiringPut } else { Kind::Put };
        let stored = stored_form(expiry, value, &mut self.stored);
        self.ingestor.add(&self.handle.core, keyspace.state(), key, (kind, stored))
    }

    /// Makes all entries durable and visible at once.
    ///
    /// If memtables hold something between the keys, they are flushed first; if others go on writing there,
    /// writers wait for the last flush. Writers also wait while the database records the new files, which
    /// takes three syncs.
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
