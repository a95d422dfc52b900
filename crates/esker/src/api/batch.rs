//! Batches: several writes that take effect together or not at all.

use super::range::{HalfOpen, half_open};
use super::value::stored_form;
use crate::admission::Terms;
use crate::base::{Kind, Millis};
use crate::catalog::KeyspaceState;
use crate::db::{Core, Write};
use crate::stats::clients::Counted;
use crate::stats::counters::{WriteCounts, Written};
use crate::txn::reads::ReadSet;
use crate::txn::writes::{OwnValue, OwnWrites};
use crate::wal::ops::Op;
use crate::{Error, Keyspace, Result};
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Writes to any number of keyspaces that are committed together: after a crash all of them are
/// there or none. Later operations in a batch override earlier ones.
///
/// [`crate::Db::write`] checks the keys and values, and that all keyspaces belong to its database.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// let (accounts, log) = (db.keyspace("accounts")?, db.keyspace("log")?);
/// let mut batch = esker::Batch::new();
/// batch.insert(&accounts, "alice", "90");
/// batch.insert(&accounts, "bob", "110");
/// batch.insert(&log, "1", "alice paid bob 10");
/// db.write(batch)?;
/// assert_eq!(accounts.get("bob")?.as_deref(), Some(&b"110"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Batch {
    payload: Vec<u8>,
    keyspaces: Vec<Arc<KeyspaceState>>,
    /// The database of the keyspaces. The weak reference keeps its address from being reused.
    owner: Option<Weak<Core>>,
    /// Whether the keyspaces belong to different databases.
    mixed: bool,
    operations: u32,
    counts: WriteCounts,
    longest_key: usize,
    largest_value: u64,
    /// Why an operand cannot be written.
    cannot_merge: Option<Error>,
    /// The buffer in which the stored form of a value that expires is built.
    stored: Vec<u8>,
    /// What the batch takes of what the program has.
    counted: Counted,
}

impl Batch {
    /// An empty batch.
    ///
    /// # Example
    /// ```
    /// assert!(esker::Batch::new().is_empty());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// The encoded operations and their keyspaces.
    pub(super) fn parts(&self) -> (&[u8], &[Arc<KeyspaceState>]) {
        (&self.payload, &self.keyspaces)
    }

    fn note(&mut self, keyspace: &Keyspace) -> u32 {
        let (state, core) = (keyspace.state(), &keyspace.handle.core);
        let owner = self.owner.get_or_insert_with(|| Arc::downgrade(core));
        self.mixed |= !std::ptr::eq(owner.as_ptr(), Arc::as_ptr(core));
        if self.keyspaces.iter().all(|known| known.id != state.id) {
            self.keyspaces.push(state.clone());
        }
        self.operations += 1;
        state.id
    }

    fn add(&mut self, operation: &Op<'_>) {
        operation.encode(&mut self.payload);
        self.counted.set(self.payload.capacity());
    }

    /// Adds the insertion of a value under a key. The keyspace's time to live, if any, counts from
    /// now.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// let mut batch = esker::Batch::new();
    /// batch.insert(&fruit, "apple", "green");
    /// batch.insert(&fruit, "apple", "red"); // The later one counts.
    /// db.write(batch)?;
    /// assert_eq!(fruit.get("apple")?, Some(b"red".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (key, value) = (key.as_ref(), value.as_ref());
        if let Some(expiry) = keyspace.expiry() {
            return self.special(keyspace, Kind::ExpiringPut, key, Some(expiry), value);
        }
        let keyspace = self.note(keyspace);
        self.add(&Op::Put { keyspace, key, value });
        self.longest_key = self.longest_key.max(key.len());
        self.largest_value = self.largest_value.max(value.len() as u64);
        self.counts.puts += 1;
        self.counts.user_bytes += (key.len() + value.len()) as u64;
    }

    /// Adds the insertion of a value that expires after `ttl`, counted from now; see
    /// [`Keyspace::insert_with_ttl`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use std::time::Duration;
    /// let sessions = db.keyspace("sessions")?;
    /// let mut batch = esker::Batch::new();
    /// batch.insert_with_ttl(&sessions, "ann", "token", Duration::from_secs(3600));
    /// batch.insert_with_ttl(&sessions, "bob", "token", Duration::ZERO); // Expires at once.
    /// db.write(batch)?;
    /// assert_eq!(sessions.iter()?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) {
        let expiry = keyspace.expiry_after(ttl);
        self.special(keyspace, Kind::ExpiringPut, key.as_ref(), Some(expiry), value.as_ref());
    }

    /// Adds an operand for the keyspace's merge operator; see [`Keyspace::merge`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use esker::{CounterU64, KeyspaceOptions};
    /// let visits = db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME))?;
    /// let mut batch = esker::Batch::new();
    /// for page in ["home", "help", "home"] {
    ///     batch.merge(&visits, page, CounterU64::encode(1));
    /// }
    /// db.write(batch)?;
    /// assert_eq!(visits.get_with("home", CounterU64::decode)?, Some(Some(2)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merge(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) {
        let operand = operand.as_ref();
        if let Err(error) = keyspace.check_merge(operand) {
            self.cannot_merge.get_or_insert(error);
        }
        let expiry = keyspace.expiry();
        let kind = if expiry.is_some() { Kind::ExpiringMerge } else { Kind::Merge };
        self.special(keyspace, kind, key.as_ref(), expiry, operand);
    }

    fn special(
        &mut self,
        keyspace: &Keyspace,
        kind: Kind,
        key: &[u8],
        expiry: Option<Millis>,
        value: &[u8],
    ) {
        let keyspace = self.note(keyspace);
        let mut joined = std::mem::take(&mut self.stored);
        let stored = stored_form(expiry, value, &mut joined);
        self.add(&Op::Special { keyspace, kind, key, stored });
        self.longest_key = self.longest_key.max(key.len());
        self.largest_value = self.largest_value.max(stored.len() as u64);
        self.counts.puts += 1;
        self.counts.user_bytes += (key.len() + value.len()) as u64;
        self.stored = joined;
    }

    /// Adds the removal of a key.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?;
    /// let mut batch = esker::Batch::new();
    /// batch.remove(&fruit, "apple");
    /// batch.insert(&fruit, "pear", "green");
    /// db.write(batch)?; // Nobody sees both, or neither.
    /// assert!(!fruit.contains_key("apple")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        let keyspace = self.note(keyspace);
        self.add(&Op::Delete { keyspace, key });
        self.longest_key = self.longest_key.max(key.len());
        self.counts.deletes += 1;
        self.counts.user_bytes += key.len() as u64;
    }

    /// Adds the removal of every key in a range. The cost does not depend on how many keys the
    /// range holds.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the keyspace has a custom comparator and the range is not of
    /// the form `a..b`, `a..`, `..b` or `..`: a custom comparator does not tell the next key.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// # fruit.insert("apple", "red")?;
    /// let mut batch = esker::Batch::new();
    /// batch.remove_range::<&str>(&fruit, ..)?; // Removes all that is there.
    /// batch.insert(&fruit, "pear", "green"); // Stays: it comes later.
    /// db.write(batch)?;
    /// assert_eq!(fruit.iter()?.count(), 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        self.remove_half_open(keyspace, half_open(&keyspace.state().order, &range)?);
        Ok(())
    }

    /// Adds the removal of the keys of a range that was checked.
    pub(super) fn remove_half_open(&mut self, keyspace: &Keyspace, (start, end): HalfOpen) {
        let id = self.note(keyspace);
        let (start, end) = (start.as_deref(), end.as_deref());
        self.add(&Op::DeleteRange { keyspace: id, start, end });
        for bound in [start, end].into_iter().flatten() {
            // A bound may be the successor of a key of the greatest length.
            self.longest_key = self.longest_key.max(bound.len().saturating_sub(1));
            self.counts.user_bytes += bound.len() as u64;
        }
        self.counts.range_deletes += 1;
    }

    /// How many operations the batch holds.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// let mut batch = esker::Batch::new();
    /// for n in 0..2500_u32 {
    ///     batch.insert(&fruit, n.to_be_bytes(), "...");
    ///     // Write what has gathered, a thousand at a time.
    ///     if batch.len() == 1000 {
    ///         db.write(&batch)?;
    ///         batch.clear();
    ///     }
    /// }
    /// assert_eq!(batch.len(), 500);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.operations as usize
    }

    /// Whether the batch holds no operations.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// let mut batch = esker::Batch::new();
    /// batch.remove(&fruit, "kiwi"); // A removal is an operation, whatever is there.
    /// assert!(!batch.is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.operations == 0
    }

    /// Removes all operations and keeps the memory for new ones.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let fruit = db.keyspace("fruit")?;
    /// let mut batch = esker::Batch::new();
    /// batch.insert(&fruit, "apple", "red");
    /// batch.clear();
    /// assert_eq!(db.write(&batch)?, 0); // There is nothing to write.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn clear(&mut self) {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        let counted = std::mem::take(&mut self.counted);
        *self = Self { payload, counted, ..Self::default() };
    }

    /// Adds what a transaction wrote to a keyspace.
    pub(super) fn extend_from(&mut self, keyspace: &Keyspace, writes: &OwnWrites) -> Result<()> {
        for (start, end) in writes.removed() {
            let low = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
            let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            self.remove_range::<&[u8]>(keyspace, (low, high))?;
        }
        for (key, value) in writes.keys() {
            self.add_own(keyspace, key, value);
        }
        Ok(())
    }

    fn add_own(&mut self, keyspace: &Keyspace, key: &[u8], value: &OwnValue) {
        match value {
            OwnValue::Put(value) => self.insert(keyspace, key, value),
            OwnValue::PutFor(value, ttl) => self.insert_with_ttl(keyspace, key, value, *ttl),
            OwnValue::Deleted => self.remove(keyspace, key),
            OwnValue::Merged(base, operands) => {
                if let Some(base) = base {
                    self.add_own(keyspace, key, base);
                }
                for operand in operands.iter() {
                    self.merge(keyspace, key, operand);
                }
            }
        }
    }

    /// Writes the batch; 0 if it is empty.
    pub(super) fn write(&self, core: &Core, terms: Terms) -> Result<u64> {
        self.write_if_unchanged(core, terms, None)
    }

    /// Writes the batch if nothing in `reads` has changed since it was read.
    pub(super) fn write_if_unchanged(
        &self,
        core: &Core,
        terms: Terms,
        reads: Option<&ReadSet>,
    ) -> Result<u64> {
        if self.is_empty() {
            return Ok(0);
        }
        // Keyspaces are written by number, and every database has its own numbers (R16).
        let ours = self.owner.as_ref().is_some_and(|owner| std::ptr::eq(owner.as_ptr(), core));
        if self.mixed || !ours {
            let what = "the batch holds keyspaces of another database: make one for each";
            return Err(Error::invalid(what));
        }
        if self.longest_key > crate::base::limits::KEY_BYTES_MAX {
            let max = crate::base::limits::KEY_BYTES_MAX;
            return Err(Error::KeyTooLong { len: self.longest_key, max });
        }
        core.settings.check_value_len(self.largest_value)?;
        if let Some(error) = &self.cannot_merge {
            return Err(error.clone());
        }
        let keyspaces: Vec<&KeyspaceState> = self.keyspaces.iter().map(Arc::as_ref).collect();
        let write = Write {
            payload: &self.payload,
            operations: self.operations,
            keyspaces: &keyspaces,
            terms,
            counts: Written::Batch(&self.counts),
        };
        let done = core.write_if_unchanged(&write, reads);
        // Seeded: a batch is written although the call says that it would have had to wait.
        if bug!("api_refused_batch_is_written") && matches!(done, Err(Error::WouldBlock { .. })) {
            let terms = Terms::from(terms.durability);
            let _ = core.write_if_unchanged(&Write { terms, ..write }, reads);
        }
        done
    }
}

/// Takes memory for so many bytes of operations at once, so that they need not be moved as the batch grows.
pub fn reserve(batch: &mut Batch, bytes: usize) {
    batch.payload.reserve(bytes);
}

impl Keyspace {
    /// Removes every key in a range. The cost does not depend on how many keys the range holds.
    ///
    /// # Errors
    /// As [`Keyspace::insert`] and [`Batch::remove_range`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-range-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let days = db.keyspace("days")?;
    /// for day in ["2024-12-31", "2025-01-01", "2025-01-02"] {
    ///     days.insert(day, "...")?;
    /// }
    /// days.remove_range(.."2025-01-01")?;
    /// assert_eq!(days.iter()?.count(), 2);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        let mut batch = Batch::new();
        batch.remove_range(self, range)?;
        batch.write(&self.handle.core, self.handle.core.durability().into()).map(|_| ())
    }
}
