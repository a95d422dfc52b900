//! A handle on a database.

use super::handle::Handle;
use super::range::Pair;
use crate::catalog::BranchState;
use crate::db::Core;
use crate::db::VerifyReport;
use crate::db::keyspaces::Asked;
use crate::iter::Bounds;
use crate::{
    Batch, Comparator, Durability, Iter, Keyspace, KeyspaceOptions, Options, Result, Snapshot,
    Stats, Transaction, TransactionOptions,
};
use std::borrow::Borrow;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;

/// An open database: a directory, its keyspaces, and the background work.
///
/// Handles are cheap to clone and may be used from any thread. The database closes when the last
/// handle, keyspace, snapshot and iterator is dropped. [`Db::close`] closes it at once for all of
/// them and returns an error if closing fails; a drop can only log it.
///
/// Methods that take no keyspace work on the keyspace `default`.
///
/// # Example
/// ```
/// # let dir = std::env::temp_dir().join(format!("esker-doc-db-{}", std::process::id()));
/// let db = esker::Db::open(&dir)?;
/// db.insert("hello", "world")?;
/// assert_eq!(db.get("hello")?.as_deref(), Some(&b"world"[..]));
/// db.close()?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Db {
    default: Keyspace,
    branch: Arc<BranchState>,
}

impl Db {
    /// Opens the database in a directory, or creates one, with the default options.
    ///
    /// # Errors
    /// [`crate::Error::Locked`] if it is open elsewhere, [`crate::Error::NotADatabase`] if the
    /// directory holds something else, [`crate::Error::UnknownFormat`],
    /// [`crate::Error::Corruption`], [`crate::Error::Io`]. Nothing is changed then.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens a database with options.
    ///
    /// # Errors
    /// As [`Db::open`], and [`crate::Error::Missing`], [`crate::Error::Exists`],
    /// [`crate::Error::InvalidArgument`] depending on the options.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        super::traits::check_names(&options)?;
        let core = Core::open(path.as_ref(), &options)?;
        let handle = Arc::new(Handle { core });
        let state = handle.core.default_keyspace(&BranchState::main())?;
        Ok(Self { default: Keyspace { handle, state }, branch: BranchState::main() })
    }

    /// A handle on a branch.
    pub(super) fn at_branch(&self, branch: Arc<BranchState>) -> Result<Self> {
        let state = self.core().default_keyspace(&branch)?;
        let handle = self.default.handle.clone();
        Ok(Self { default: Keyspace { handle, state }, branch })
    }

    pub(super) fn branch_state(&self) -> &Arc<BranchState> {
        &self.branch
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.default.handle.core
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.core().path()
    }

    /// The identity of the database: 16 random bytes that were drawn when it was created. A copy
    /// of its directory has the same identity.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-id-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let id = db.id();
    /// db.close()?;
    /// assert_eq!(esker::Db::open(&dir)?.id(), id);
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn id(&self) -> [u8; 16] {
        self.core().id()
    }

    /// Opens the keyspace of this name, or creates it in byte order. An existing keyspace keeps the
    /// order that it was created with.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] unless the name has 1 to 255 bytes,
    /// [`crate::Error::ComparatorMissing`] if its custom comparator was not given at open, and as
    /// [`Keyspace::insert`] if it has to be created.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let state = self.core().keyspace_in(&self.branch, name, None, &Asked::default())?;
        Ok(Keyspace { handle: self.default.handle.clone(), state })
    }

    /// Opens the keyspace of this name, or creates it with a custom comparator. The comparator's
    /// name is stored and must be the same at every later use.
    ///
    /// # Errors
    /// As [`Db::keyspace`], and [`crate::Error::ComparatorMismatch`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-order-{}", std::process::id()));
    /// use std::{cmp::Ordering, sync::Arc};
    /// struct Reverse;
    /// impl esker::Comparator for Reverse {
    ///     fn name(&self) -> &str { "reverse" }
    ///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering { b.cmp(a) }
    /// }
    /// let db = esker::Db::open(&dir)?;
    /// let newest_first = db.keyspace_ordered("news", Arc::new(Reverse))?;
    /// newest_first.insert("2024", "old")?;
    /// newest_first.insert("2025", "new")?;
    /// assert_eq!(newest_first.first_key_value()?.unwrap().1, b"new");
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keyspace_ordered(&self, name: &str, order: Arc<dyn Comparator>) -> Result<Keyspace> {
        let state = self.core().keyspace_in(&self.branch, name, Some(order), &Asked::default())?;
        Ok(Keyspace { handle: self.default.handle.clone(), state })
    }

    /// Opens the keyspace of this name, or creates it with these options. They can change some
    /// options of an existing keyspace (see [`KeyspaceOptions`]).
    ///
    /// # Errors
    /// As [`Db::keyspace`]; [`crate::Error::ComparatorMismatch`] and
    /// [`crate::Error::MergeOperatorMismatch`] if it was created with others,
    /// [`crate::Error::MergeOperatorMissing`] if its operator was not given at open,
    /// [`crate::Error::InvalidArgument`] for a filter that was not given or a ttl of zero, and
    /// [`crate::Error::ReadOnly`] if something would change.
    ///
    /// # Example
    /// See [`KeyspaceOptions`].
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let asked = options.asked()?;
        let state = self.core().keyspace_in(&self.branch, name, options.comparator, &asked)?;
        Ok(Keyspace { handle: self.default.handle.clone(), state })
    }

    /// The keyspace `default`, which always exists.
    pub fn default_keyspace(&self) -> Keyspace {
        self.default.clone()
    }

    /// The names of all keyspaces, in order.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        self.core().keyspace_names(&self.branch)
    }

    /// Drops a keyspace and its entries, and returns whether it existed. A large keyspace takes no
    /// longer: the background frees its space. Its name may be used again at once.
    ///
    /// # Errors
    /// As [`Keyspace::insert`]; [`crate::Error::InvalidArgument`] for `default`.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-drop-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let old = db.keyspace("2023")?;
    /// old.insert("k", "v")?;
    /// assert!(db.drop_keyspace("2023")?);
    /// assert!(old.insert("k", "v").is_err());
    /// assert_eq!(db.keyspaces()?, ["default"]);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.core().drop_keyspace_in(&self.branch, name)
    }

    /// [`Keyspace::insert`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.insert(key, value)
    }

    /// [`Keyspace::get`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.default.get(key)
    }

    /// [`Keyspace::contains_key`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default.contains_key(key)
    }

    /// [`Keyspace::multi_get`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.default.multi_get(keys)
    }

    /// [`Keyspace::remove`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.remove(key)
    }

    /// [`Keyspace::remove_range`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.default.remove_range(range)
    }

    /// [`Keyspace::range`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        self.default.range(range)
    }

    /// [`Keyspace::prefix`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.default.prefix(prefix)
    }

    /// [`Keyspace::iter`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn iter(&self) -> Result<Iter> {
        self.default.iter()
    }

    /// [`Keyspace::first_key_value`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn first_key_value(&self) -> Result<Option<Pair>> {
        self.default.first_key_value()
    }

    /// [`Keyspace::last_key_value`] on `default`.
    ///
    /// # Errors
    /// As there.
    pub fn last_key_value(&self) -> Result<Option<Pair>> {
        self.default.last_key_value()
    }

    /// Commits a batch, owned or borrowed, atomically. Returns a position for [`Db::wait_durable`]
    /// that is greater than those of all earlier batches; 0 if the batch is empty.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`crate::Error::BatchTooLarge`].
    ///
    /// # Example
    /// See [`Batch`].
    pub fn write(&self, batch: impl Borrow<Batch>) -> Result<u64> {
        batch.borrow().write(self.core(), self.core().durability())
    }

    /// Like [`Db::write`], with a given durability class.
    ///
    /// # Errors
    /// As [`Db::write`].
    pub fn write_with(&self, batch: impl Borrow<Batch>, durability: Durability) -> Result<u64> {
        batch.borrow().write(self.core(), durability)
    }

    /// Begins a transaction, which reads the database as it is now.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// See [`Transaction`].
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction with options.
    ///
    /// # Errors
    /// As [`Db::begin`].
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        Transaction::begin(&self.default.handle, &options)
    }

    /// Runs `f` in a transaction and commits it. After a conflict `f` runs again in a new
    /// transaction, so it should have no other effects. If `f` returns an error, nothing is written
    /// and the error is returned; [`crate::Error::aborted`] makes one.
    ///
    /// # Errors
    /// What `f` returns, and as [`Transaction::commit`]; [`crate::Error::Conflict`] only after
    /// [`TransactionOptions::attempts`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-transact-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let accounts = db.keyspace("accounts")?;
    /// accounts.insert("alice", [90])?;
    /// let pay = |amount: u8| {
    ///     db.transact(|tx| {
    ///         let alice = tx.get(&accounts, "alice")?.map_or(0, |value| value[0]);
    ///         let Some(rest) = alice.checked_sub(amount) else {
    ///             return Err(esker::Error::aborted("alice has not got that much"));
    ///         };
    ///         tx.insert(&accounts, "alice", [rest])?;
    ///         tx.insert(&accounts, "bob", [amount])?;
    ///         Ok(rest)
    ///     })
    /// };
    /// assert_eq!(pay(30)?, 60);
    /// assert!(matches!(pay(70), Err(esker::Error::Aborted { .. })));
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn transact<R>(&self, f: impl FnMut(&Transaction) -> Result<R>) -> Result<R> {
        self.transact_with(TransactionOptions::default(), f)
    }

    /// Like [`Db::transact`], with options.
    ///
    /// # Errors
    /// As [`Db::transact`].
    pub fn transact_with<R>(
        &self,
        options: TransactionOptions,
        f: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        super::transaction::transact(&self.default.handle, &options, f)
    }

    /// Waits until a batch, and everything that was logged before it, survives power loss;
    /// `position` is what [`Db::write`] or [`Transaction::commit`] returned. A batch of class
    /// [`Durability::Buffered`] is flushed, since it is not in the log.
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`] if the sync fails; [`crate::Error::DiskFull`] if there is no room
    /// for the flush; [`crate::Error::InvalidArgument`] for a position after all writes.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-token-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let mut batch = esker::Batch::new();
    /// batch.insert(&db.default_keyspace(), "k", "v");
    /// let token = db.write(batch)?;
    /// // Other work, and then:
    /// db.wait_durable(token)?;
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wait_durable(&self, position: u64) -> Result<()> {
        self.core().wait_durable(position)
    }

    /// Makes everything written so far survive power loss, including `Buffered` writes.
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`] if the sync fails, [`crate::Error::DiskFull`].
    pub fn sync(&self) -> Result<()> {
        self.core().sync()
    }

    /// A snapshot of the whole database as of now.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::new(&self.default.handle)
    }

    /// Copies the database, as it is at one moment, to another directory, while reads and writes
    /// go on. The copy holds everything written before the call and is durable when the call
    /// returns.
    ///
    /// The call flushes the memtables first. Hard links share the data files, which takes little
    /// time and space; on another device, or a file system without links, they are copied.
    /// Afterwards neither database depends on the other.
    ///
    /// # Errors
    /// [`crate::Error::Exists`] if the path exists, and nothing is changed;
    /// [`crate::Error::ReadOnly`], [`crate::Error::DiskFull`], [`crate::Error::Io`],
    /// [`crate::Error::Poisoned`]. After an error there is no database at the path.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-checkpoint-{}", std::process::id()));
    /// # let copy = dir.with_extension("monday");
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("stock", "100")?;
    /// db.checkpoint(&copy)?;
    /// db.insert("stock", "40")?;
    /// let monday = esker::Db::open(&copy)?;
    /// assert_eq!(monday.get("stock")?.as_deref(), Some(&b"100"[..]));
    /// # monday.close()?; db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok(); std::fs::remove_dir_all(&copy).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<()> {
        self.core().checkpoint(path.as_ref())
    }

    /// Flushes the memtables: writes their entries as runs.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`], [`crate::Error::Io`], [`crate::Error::Poisoned`].
    pub fn flush(&self) -> Result<()> {
        self.core().flush()
    }

    /// Flushes, and compacts whatever a compaction can make smaller.
    ///
    /// # Errors
    /// As [`Keyspace::compact`].
    pub fn compact(&self) -> Result<()> {
        self.core().compact(self.branch.id, None, &Bounds::default())
    }

    /// Waits until there is no background work left.
    ///
    /// # Errors
    /// The error that stopped the background work for good.
    pub fn wait_until_idle(&self) -> Result<()> {
        self.core().wait_until_idle()
    }

    /// Statistics of the database.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-stats-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("k", "v")?;
    /// assert_eq!(db.stats().puts, 1);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.core().stats(self.branch.id)
    }

    /// Reads all stored data and reports what is damaged.
    ///
    /// # Errors
    /// Only if the check itself cannot go on; the report lists the damage.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-verify-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// assert!(db.verify()?.problems.is_empty());
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        self.core().verify()
    }

    /// Closes the database for every handle: ends background work, flushes the memtables, and
    /// returns the first failure. Later calls of `close` return the same result; all other calls
    /// return [`crate::Error::Closed`].
    ///
    /// # Errors
    /// The first failure of the remaining work. Acknowledged writes are in the log, and the next
    /// open replays them.
    pub fn close(&self) -> Result<()> {
        self.core().close()
    }
}
