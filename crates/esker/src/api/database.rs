//! A handle on a database.

use super::iterator::Pair;
use crate::db::Core;
use crate::db::VerifyReport;
use crate::db::catalog::BranchState;
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

/// An open database: a directory, named keyspaces in it, and their background work.
///
/// Handles are cheap to clone and may be used from any thread. The database closes when the last
/// handle, keyspace, snapshot and iterator is gone; [`Db::close`] closes it at once for all of
/// them and is the only way to hear of a failure.
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

/// What handles share; the last one closes the database.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(super) core: Arc<Core>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // In a forked child the threads and the lock belong to the parent (R26).
        if self.core.is_forked() {
            std::mem::forget(self.core.clone());
            return;
        }
        if let Err(error) = self.core.close() {
            log::error!("{} did not close well: {error}", self.core.path().display());
        }
    }
}

impl Db {
    /// Opens the database in a directory, or makes one, with the default options.
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
    /// [`crate::Error::InvalidArgument`] as the options ask.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        super::traits::check_names(&options)?;
        let core = Core::open(path.as_ref(), &options)?;
        let handle = Arc::new(Handle { core });
        let state = handle.core.default_keyspace(&BranchState::main())?;
        Ok(Self { default: Keyspace { handle, state }, branch: BranchState::main() })
    }

    /// The part of the database that a branch is.
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

    /// What tells this database from every other: 16 random bytes that were drawn when it was
    /// made. A copy of its directory has the same.
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

    /// The keyspace of this name, made on first use, in byte order unless it was made otherwise.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] unless the name has 1 to 255 bytes,
    /// [`crate::Error::ComparatorMissing`] if its order was not given, and as
    /// [`Keyspace::insert`] if it has to be made.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let state = self.core().keyspace_in(&self.branch, name, None, &Asked::default())?;
        Ok(Keyspace { handle: self.default.handle.clone(), state })
    }

    /// The keyspace of this name, made on first use, in the order of a comparator. Its name is
    /// stored and must be the same at every later use.
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

    /// The keyspace of this name, made on first use, with what the options say; of one that is
    /// there, they may change some traits (see [`KeyspaceOptions`]).
    ///
    /// # Errors
    /// As [`Db::keyspace`]; [`crate::Error::ComparatorMismatch`] and
    /// [`crate::Error::MergeOperatorMismatch`] if it was made with others,
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

    /// The keyspace `default`, which is always there.
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

    /// Drops a keyspace with all it holds; says whether there was one. This takes no longer for a
    /// large one; its space returns in the background. Its name may be used again at once.
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

    /// Commits a batch, given or lent: all of it or nothing. Returns a number to wait on with
    /// [`Db::wait_durable`], greater than those of all batches before it; 0 if the batch is empty.
    ///
    /// # Errors
    /// As [`Keyspace::insert`], and [`crate::Error::BatchTooLarge`].
    ///
    /// # Example
    /// See [`Batch`].
    pub fn write(&self, batch: impl Borrow<Batch>) -> Result<u64> {
        batch.borrow().write(self.core(), self.core().durability())
    }

    /// Like [`Db::write`], with its own durability class.
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

    /// Runs `f` in a transaction and commits it. After a conflict everything begins anew, so `f`
    /// should have no effect but through its transaction. Where `f` returns an error nothing is
    /// written and that error is returned; [`crate::Error::aborted`] makes one.
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

    /// Waits until a batch survives power loss, with everything that was logged before it;
    /// `position` is what [`Db::write`] or [`Transaction::commit`] returned. One of class
    /// [`Durability::Buffered`] is flushed for that, since the log does not hold it.
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`] if the sync fails; [`crate::Error::DiskFull`] if there is no room
    /// for the flush; [`crate::Error::InvalidArgument`] for a position behind all writes.
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

    /// Makes everything written so far survive power loss, `Buffered` writes too.
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`] if the sync fails, [`crate::Error::DiskFull`].
    pub fn sync(&self) -> Result<()> {
        self.core().sync()
    }

    /// The state of the whole database at this moment.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::new(&self.default.handle)
    }

    /// Makes a database of its own in another directory, with what this one holds at one moment
    /// over all keyspaces, while reads and writes go on. Everything written before the call is in
    /// it. When the call returns, it is durable.
    ///
    /// What is in memory is flushed first. Data files are shared by hard links, so that this takes
    /// neither long nor space, or copied where the target lies on another device or the file
    /// system has no links. Neither database depends on the other afterwards.
    ///
    /// # Errors
    /// [`crate::Error::Exists`] if anything stands at the path, and nothing is changed;
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

    /// Writes what is in memory to runs.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`], [`crate::Error::Io`], [`crate::Error::Poisoned`].
    pub fn flush(&self) -> Result<()> {
        self.core().flush()
    }

    /// Flushes, and merges whatever a merge can make smaller.
    ///
    /// # Errors
    /// As [`Keyspace::compact`].
    pub fn compact(&self) -> Result<()> {
        self.core().compact(self.branch.id, None, &Bounds::default())
    }

    /// Waits until the background has nothing more to do.
    ///
    /// # Errors
    /// What stops the background for good.
    pub fn wait_until_idle(&self) -> Result<()> {
        self.core().wait_until_idle()
    }

    /// What the database knows about itself.
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

    /// Reads everything that is stored and reports what is damaged.
    ///
    /// # Errors
    /// Only if the search itself cannot go on; damage is in the report.
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

    /// Closes the database for every handle: ends background work, writes what is in memory, and
    /// reports what went wrong. Later calls return the same result; other calls then return
    /// [`crate::Error::Closed`].
    ///
    /// # Errors
    /// The first failure of what was still under way; what was acknowledged is in the log and
    /// comes back at the next open.
    pub fn close(&self) -> Result<()> {
        self.core().close()
    }
}
