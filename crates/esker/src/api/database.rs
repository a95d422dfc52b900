//! A handle on a database.

use super::handle::Handle;
use crate::admission::Terms;
use crate::catalog::Asked;
use crate::catalog::BranchState;
use crate::db::Core;
use crate::{
    Batch, Comparator, Durability, Error, Keyspace, KeyspaceOptions, Options, Result, Snapshot,
    Transaction, TransactionOptions,
};
use std::borrow::Borrow;
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
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// db.insert("hello", "world")?;
/// assert_eq!(db.get("hello")?.as_deref(), Some(&b"world"[..]));
/// db.close()?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Db {
    pub(super) default: Keyspace,
    pub(super) branch: Arc<BranchState>,
}

impl Db {
    /// Opens the database in a directory, or creates one, with the default options.
    ///
    /// # Errors
    /// [`crate::Error::Locked`] if it is open elsewhere, [`crate::Error::NotADatabase`] if the
    /// directory holds something else, [`crate::Error::UnknownFormat`],
    /// [`crate::Error::Corruption`], [`crate::Error::Io`]. Nothing is changed then.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?; // Creates it.
    /// db.insert("hello", "world")?;
    /// // A database is open once at a time.
    /// assert!(matches!(esker::Db::open(&dir), Err(esker::Error::Locked { .. })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens a database with options.
    ///
    /// # Errors
    /// As [`Db::open`], and [`crate::Error::Missing`], [`crate::Error::Exists`],
    /// [`crate::Error::InvalidArgument`] depending on the options.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut options = esker::Options::default();
    /// options.create_if_missing = false;
    /// let opened = esker::Db::open_with(dir.path().join("none"), options);
    /// assert!(matches!(opened, Err(esker::Error::Missing { .. })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        super::traits::check_names(&options)?;
        let core = Core::open(path.as_ref(), &options)?;
        let handle = Arc::new(Handle { core });
        let state = handle.core.default_keyspace(&BranchState::main())?;
        Ok(Self { default: Keyspace { handle, state }, branch: BranchState::main() })
    }

    /// A new, empty database in memory, for tests: it leaves no file and is gone when it is dropped. It has a memory
    /// budget of 64 MiB, towards which its files do not count. For other options, or to open it again, give
    /// [`Options::fs`] a file system of [`memory`](crate::fs::memory).
    ///
    /// # Errors
    /// As [`Db::open`].
    ///
    /// # Example
    /// ```
    /// let db = esker::Db::in_memory()?;
    /// db.insert("key", "value")?;
    /// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn in_memory() -> Result<Self> {
        Self::open_with("/memory", Options::new().fs(crate::fs::memory()).memory(64 << 20))
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
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.path(), dir.path());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        self.core().path()
    }

    /// The identity of the database: 16 random bytes that were drawn when it was created. A copy
    /// of its directory has the same identity.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let id = db.id();
    /// db.close()?;
    /// assert_eq!(esker::Db::open(&dir)?.id(), id);
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
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let (users, log) = (db.keyspace("users")?, db.keyspace("log")?);
    /// users.insert("1", "ann")?;
    /// assert_eq!(log.get("1")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
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
    /// # let dir = tempfile::tempdir().unwrap();
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
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::{CounterU64, KeyspaceOptions};
    /// let visits = db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME))?;
    /// assert_eq!(visits.merge_operator().as_deref(), Some(CounterU64::NAME));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let asked = options.asked()?;
        let state = self.core().keyspace_in(&self.branch, name, options.comparator, &asked)?;
        Ok(Keyspace { handle: self.default.handle.clone(), state })
    }

    /// The keyspace `default`, which always exists.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("k", "v")?;
    /// assert!(db.default_keyspace().contains_key("k")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn default_keyspace(&self) -> Keyspace {
        self.default.clone()
    }

    /// The names of all keyspaces, in order.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.keyspace("users")?;
    /// assert_eq!(db.keyspaces()?, ["default", "users"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
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
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let old = db.keyspace("2023")?;
    /// old.insert("k", "v")?;
    /// assert!(db.drop_keyspace("2023")?);
    /// assert!(old.insert("k", "v").is_err());
    /// assert_eq!(db.keyspaces()?, ["default"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.core().drop_keyspace_in(&self.branch, name)
    }

    /// Commits a batch, owned or borrowed, atomically. Returns a position for [`Db::wait_durable`]
    /// that is greater than those of all earlier batches; 0 if the batch is empty.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`crate::Error::BatchTooLarge`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let (from, to) = (db.keyspace("from")?, db.keyspace("to")?);
    /// let mut batch = esker::Batch::new();
    /// batch.remove(&from, "box");
    /// batch.insert(&to, "box", "books");
    /// // A crash leaves the box in one of the two places.
    /// db.write(&batch)?;
    /// assert!(to.contains_key("box")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn write(&self, batch: impl Borrow<Batch>) -> Result<u64> {
        batch.borrow().write(self.core(), self.core().durability().into())
    }

    /// Like [`Db::write`], with a given durability class.
    ///
    /// # Errors
    /// As [`Db::write`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let mut batch = esker::Batch::new();
    /// batch.insert(&db.default_keyspace(), "order:1", "paid");
    /// // When this returns, a power cut cannot lose the order.
    /// db.write_with(batch, esker::Durability::Disk)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn write_with(&self, batch: impl Borrow<Batch>, durability: Durability) -> Result<u64> {
        batch.borrow().write(self.core(), durability.into())
    }

    /// Like [`Db::write`], but it never waits for its turn, for memory or for space, as
    /// [`Keyspace::try_insert`]: it fails where it would, and nothing of the batch is written.
    ///
    /// # Errors
    /// As [`Db::write`], and [`crate::Error::WouldBlock`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::{Batch, Error};
    /// let mut batch = Batch::new();
    /// batch.insert(&db.default_keyspace(), "order:1", "paid");
    /// while let Err(Error::WouldBlock { retry_after, .. }) = db.try_write(&batch) {
    ///     // A runtime would do something else meanwhile.
    ///     std::thread::sleep(retry_after);
    /// }
    /// # assert!(db.contains_key("order:1")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn try_write(&self, batch: impl Borrow<Batch>) -> Result<u64> {
        batch.borrow().write(self.core(), Terms::impatient(self.core().durability()))
    }

    /// Like [`Db::try_write`], with a given durability class.
    ///
    /// # Errors
    /// As [`Db::try_write`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let mut batch = esker::Batch::new();
    /// batch.insert(&db.default_keyspace(), "order:1", "paid");
    /// // It waits for the sync of the log, but for no turn before that.
    /// db.try_write_with(batch, esker::Durability::Disk)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn try_write_with(&self, batch: impl Borrow<Batch>, durability: Durability) -> Result<u64> {
        batch.borrow().write(self.core(), Terms::impatient(durability))
    }

    /// Begins a transaction, which reads the database as it is now.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let stock = db.default_keyspace();
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "nails", "100")?;
    /// assert!(!stock.contains_key("nails")?);
    /// tx.commit()?;
    /// assert!(stock.contains_key("nails")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction with options.
    ///
    /// # Errors
    /// As [`Db::begin`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let mut options = esker::TransactionOptions::default();
    /// options.pessimistic = true;
    /// let tx = db.begin_with(options)?;
    /// assert_eq!(tx.get_for_update(&db.default_keyspace(), "nails")?, None);
    /// tx.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
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
    /// # let dir = tempfile::tempdir().unwrap();
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
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn transact<R>(&self, f: impl FnMut(&Transaction) -> Result<R>) -> Result<R> {
        self.transact_with(TransactionOptions::default(), f)
    }

    /// Like [`Db::transact`], with options.
    ///
    /// # Errors
    /// As [`Db::transact`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let mut options = esker::TransactionOptions::default();
    /// options.durability = Some(esker::Durability::Disk);
    /// options.attempts = 10;
    /// let counts = db.default_keyspace();
    /// let count = db.transact_with(options, |tx| {
    ///     let count = tx.get(&counts, "visits")?.map_or(0, |value| value[0]) + 1;
    ///     tx.insert(&counts, "visits", [count])?;
    ///     Ok(count)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn transact_with<R>(
        &self,
        options: TransactionOptions,
        f: impl FnMut(&Transaction) -> Result<R>,
    ) -> Result<R> {
        super::transaction::transact(&self.default.handle, &options, f, Error::wants_retry)
    }

    /// Like [`Db::transact_with`], with an error type of the program. The transaction also runs again if the
    /// program has turned a [`crate::Error::Deadlock`] into an error of its own.
    ///
    /// # Errors
    /// What `f` returns, and as [`Db::transact`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let accounts = db.default_keyspace();
    /// #[derive(Debug)]
    /// enum PayError {
    ///     TooLittle { missing: u8 },
    ///     Store(esker::Error),
    /// }
    /// impl From<esker::Error> for PayError {
    ///     fn from(error: esker::Error) -> Self {
    ///         Self::Store(error)
    ///     }
    /// }
    ///
    /// accounts.insert("alice", [90])?;
    /// let paid = db.transact_as(esker::TransactionOptions::default(), |tx| {
    ///     let alice = tx.get(&accounts, "alice")?.map_or(0, |value| value[0]);
    ///     let rest = alice.checked_sub(100).ok_or(PayError::TooLittle { missing: 100 - alice })?;
    ///     tx.insert(&accounts, "alice", [rest])?;
    ///     Ok(())
    /// });
    /// assert!(matches!(paid, Err(PayError::TooLittle { missing: 10 })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn transact_as<R, E: From<Error>>(
        &self,
        options: TransactionOptions,
        f: impl FnMut(&Transaction) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        super::transaction::transact(&self.default.handle, &options, f, |_| false)
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
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let mut batch = esker::Batch::new();
    /// batch.insert(&db.default_keyspace(), "k", "v");
    /// let token = db.write(batch)?;
    /// // Other work, and then:
    /// db.wait_durable(token)?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn wait_durable(&self, position: u64) -> Result<()> {
        self.core().wait_durable(position)
    }

    /// Makes everything written so far survive power loss, including `Buffered` writes.
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`] if the sync fails, [`crate::Error::DiskFull`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// for n in 0..1000_u32 {
    ///     db.insert(n.to_be_bytes(), "...")?;
    /// }
    /// db.sync()?; // One sync for all of them.
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.core().sync()
    }

    /// A snapshot of the whole database as of now.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("k", "old")?;
    /// let snapshot = db.snapshot()?;
    /// db.insert("k", "new")?;
    /// assert_eq!(snapshot.get(&db.default_keyspace(), "k")?, Some(b"old".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::new(&self.default.handle, None)
    }

    /// A snapshot as of now, with a label: [`crate::Stats::snapshots`] shows who holds old data by
    /// it, and for how long.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let report = db.snapshot_with_label("nightly report")?;
    /// assert_eq!(db.stats().snapshots[0].label, "nightly report");
    /// # drop(report);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn snapshot_with_label(&self, label: &str) -> Result<Snapshot> {
        Snapshot::new(&self.default.handle, Some(label))
    }

    /// Closes the database for every handle: ends background work, flushes the memtables, and
    /// returns the first failure. Later calls of `close` return the same result; all other calls
    /// return [`crate::Error::Closed`].
    ///
    /// # Errors
    /// The first failure of the remaining work. Acknowledged writes are in the log, and the next
    /// open replays them.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let other = db.clone();
    /// db.close()?;
    /// assert!(matches!(other.get("k"), Err(esker::Error::Closed)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn close(&self) -> Result<()> {
        self.core().close()
    }
}
