//! Transactions.
//!
//! This module holds the handle and its end; `reads` and `writes` hold the rest. `txn` is
//! the layer below.

mod reads;
mod writes;

use super::handle::Handle;
use crate::budget::Lease;
use crate::txn::locks::{Mode, Request};
use crate::txn::reads::ReadSet;
use crate::txn::writes::{OwnOrder, OwnWrites, Undo};
use crate::{Batch, Durability, Error, Keyspace, Result, Snapshot};
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The label of the snapshots that transactions read from.
const TRANSACTION: Option<&str> = Some("transaction");

/// How a transaction behaves.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// use esker::TransactionOptions;
/// use std::time::Duration;
/// let options = TransactionOptions::new().pessimistic(true).lock_timeout(Duration::from_millis(10));
/// let (stock, tx) = (db.default_keyspace(), db.begin_with(options)?);
/// tx.insert(&stock, "nails", "100")?;
/// // Another transaction waits for the lock, but not for long.
/// let other = db.begin_with(options)?.insert(&stock, "nails", "90");
/// assert!(matches!(other, Err(esker::Error::LockTimeout { .. })));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// Whether the transaction locks keys: those that it writes, and those that it reads with
    /// [`Transaction::get_for_update`] or [`Transaction::get_for_share`].
    pub pessimistic: bool,
    /// How long the transaction waits for a lock.
    pub lock_timeout: Duration,
    /// Called about twenty times a second by a thread that waits for a lock. If it returns true,
    /// the wait ends at once with [`Error::LockTimeout`]. Programs use it to handle signals.
    pub interrupted: Option<fn() -> bool>,
    /// The durability class of the commit; `None`: that of the database.
    pub durability: Option<Durability>,
    /// How often [`crate::Db::transact_with`] tries before it returns the conflict.
    pub attempts: u32,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        let lock_timeout = Duration::from_secs(10);
        Self {
            pessimistic: false,
            lock_timeout,
            interrupted: None,
            durability: None,
            attempts: 1000,
        }
    }
}

/// Methods that set the field of their name: the type of the argument, how the field gets it, and an
/// example.
macro_rules! setters {
    ($($name:ident($value:ident: $type:ty) = $field:expr, $example:literal;)*) => {
        /// Methods that set a field and give the options back.
        impl TransactionOptions {
            $(
                #[doc = concat!("Sets the field [`", stringify!($name), "`](TransactionOptions#structfield.", stringify!($name), ").")]
                ///
                /// # Example
                /// ```
                /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
                /// # use esker::{Durability, TransactionOptions};
                /// # use std::time::Duration;
                #[doc = concat!("let options = TransactionOptions::new().", stringify!($name), "(", $example, ");")]
                /// let (stock, tx) = (db.default_keyspace(), db.begin_with(options)?);
                /// tx.insert(&stock, "nails", "100")?;
                /// tx.commit()?;
                /// # Ok::<(), esker::Error>(())
                /// ```
                #[must_use]
                pub fn $name(mut self, $value: $type) -> Self {
                    self.$name = $field;
                    self
                }
            )*
        }
    };
}

setters! {
    pessimistic(yes: bool) = yes, "true";
    lock_timeout(time: Duration) = time, "Duration::from_secs(1)";
    interrupted(asked: fn() -> bool) = Some(asked), "|| false";
    durability(class: Durability) = Some(class), "Durability::Disk";
    attempts(count: u32) = count, "3";
}

impl TransactionOptions {
    /// The default options.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::{Durability, TransactionOptions};
    /// let options = TransactionOptions::new().durability(Durability::Disk).attempts(10);
    /// db.transact_with(options, |tx| tx.insert(&db.default_keyspace(), "key", "value"))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// How a transaction waits for a lock.
#[derive(Clone, Copy)]
struct Patience {
    timeout: Duration,
    interrupted: Option<fn() -> bool>,
}

/// Reads and writes over any number of keyspaces that happen as if at one moment.
///
/// A transaction reads the database as it was when the transaction began, and its own writes, which
/// nobody else sees before [`Transaction::commit`]. The commit succeeds only if no other
/// transaction or plain write has changed what the transaction read: keys, present or absent, and
/// ranges, as far as its iterators came. Otherwise the commit fails with [`Error::Conflict`] and
/// writes nothing; [`crate::Db::transact`] then tries again. So transactions are serializable:
/// their effect is as if they ran one after the other, in the order of their commits. A
/// transaction that only reads, or only writes, never conflicts.
///
/// Such a transaction is optimistic: it holds no lock, and nobody waits for it. With
/// [`TransactionOptions::pessimistic`] a transaction locks keys, and locking transactions wait for
/// each other instead of conflicting. Plain writes and optimistic transactions ignore locks: if
/// they write a locked key, the locking transaction conflicts when it commits. A read under a lock
/// sees the value at the time when the lock is held; all other reads see the state as of the first
/// read without a lock. Locks are held until the transaction ends; [`Transaction::remove_range`]
/// takes none.
///
/// While a transaction is open, compactions keep the versions that it reads, and flushed memtables
/// stay in memory, up to a sixteenth of the memory budget. If much more is written meanwhile, the
/// transaction can no longer be checked and conflicts ([`crate::ConflictCause::HistoryTooOld`]).
///
/// A transaction holds its writes in memory; they can be as large as a batch. Dropping a
/// transaction rolls it back.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// let accounts = db.keyspace("accounts")?;
/// accounts.insert("alice", "90")?;
/// let tx = db.begin()?;
/// assert_eq!(tx.get(&accounts, "alice")?.as_deref(), Some(&b"90"[..]));
/// tx.insert(&accounts, "alice", "80")?;
/// tx.insert(&accounts, "bob", "10")?;
/// assert_eq!(tx.iter(&accounts)?.count(), 2);
/// assert_eq!(accounts.get("bob")?, None);
/// tx.commit()?;
/// assert_eq!(accounts.get("bob")?.as_deref(), Some(&b"10"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Transaction {
    inner: Mutex<Inner>,
    /// The snapshot for reads without locks, taken at the beginning, or later if the transaction
    /// locks.
    snapshot: OnceLock<Snapshot>,
    durability: Durability,
    /// How the transaction waits for locks; `None`: it takes none.
    pessimistic: Option<Patience>,
    /// Held while the transaction waits for a lock, so that it waits for one at a time.
    locking: Mutex<()>,
    /// Whether a call failed because another transaction goes first: this one has to run again.
    lost: AtomicBool,
    open: Open,
}

/// The registration of an open transaction.
struct Open {
    handle: Arc<Handle>,
    begin: u64,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        // In a forked child the list may be locked by a thread that does not exist there (R26).
        if !self.handle.core.is_forked() {
            self.handle.core.end_transaction(self.begin, self.number);
        }
    }
}

struct Inner {
    reads: ReadSet,
    spaces: Vec<Space>,
    /// How to undo operations, from the first savepoint on.
    undo: Vec<(usize, Undo)>,
    /// About what `undo` takes.
    undo_bytes: u64,
    savepoints: Vec<Savepoint>,
    next_savepoint: u64,
    /// Whether something was read as of another moment than that of the snapshot.
    mixed: bool,
    /// What all of this takes of the memory budget.
    lease: Lease,
}

/// What was written to one keyspace.
struct Space {
    keyspace: Keyspace,
    writes: Arc<OwnWrites>,
}

/// A point in a transaction to which [`Transaction::rollback_to`] goes back.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # let stock = db.keyspace("stock")?;
/// let tx = db.begin()?;
/// let begin = tx.savepoint();
/// for article in ["nails", "screws"] {
///     tx.insert(&stock, article, "0")?;
/// }
/// tx.rollback_to(&begin)?;
/// assert_eq!(tx.iter(&stock)?.count(), 0);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Savepoint {
    transaction: u64,
    number: u64,
    undo: usize,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("begin", &self.open.begin).finish_non_exhaustive()
    }
}

impl Transaction {
    pub(super) fn begin(handle: &Arc<Handle>, options: &TransactionOptions) -> Result<Self> {
        let core = &handle.core;
        let (begin, number) = core.begin_transaction()?;
        // The transaction is registered first, so every write from the snapshot's position on is
        // kept.
        let open = Open { handle: handle.clone(), begin, number };
        let snapshot = OnceLock::new();
        let patience = Patience { timeout: options.lock_timeout, interrupted: options.interrupted };
        let pessimistic = options.pessimistic.then_some(patience);
        if pessimistic.is_none() {
            let _ = snapshot.set(Snapshot::new(handle, TRANSACTION)?);
        }
        let inner = Inner {
            reads: ReadSet::new(core.settings.batch_bytes_max),
            spaces: Vec::new(),
            undo: Vec::new(),
            undo_bytes: 0,
            savepoints: Vec::new(),
            next_savepoint: 0,
            mixed: false,
            lease: core.transactions.lease(),
        };
        let durability = options.durability.unwrap_or(core.durability());
        let (inner, locking) = (Mutex::new(inner), Mutex::default());
        let lost = AtomicBool::new(false);
        Ok(Self { inner, snapshot, durability, pessimistic, locking, lost, open })
    }

    /// Checks that a keyspace belongs to the database of the transaction.
    fn check(&self, keyspace: &Keyspace) -> Result<()> {
        self.open.handle.core.check_open()?;
        keyspace.check_of(&self.open.handle)
    }

    /// The snapshot for reads without locks.
    fn snapshot(&self) -> Result<&Snapshot> {
        if let Some(snapshot) = self.snapshot.get() {
            return Ok(snapshot);
        }
        let new = Snapshot::new(&self.open.handle, TRANSACTION)?;
        Ok(self.snapshot.get_or_init(|| new))
    }

    /// Locks a key, if the transaction is pessimistic.
    fn lock(&self, keyspace: &Keyspace, key: &[u8], mode: Mode) -> Result<()> {
        let Some(Patience { timeout, interrupted }) = self.pessimistic else { return Ok(()) };
        let (core, order) = (&self.open.handle.core, order_of(keyspace)?);
        let request = Request {
            holder: self.open.number,
            keyspace: keyspace.state.id,
            name: keyspace.name(),
            order: &order,
            key,
            mode,
            timeout,
            interrupted,
        };
        let one_at_a_time = self.locking.lock();
        let locked = core.locks().lock(&request);
        drop(one_at_a_time);
        core.note_waits("lock", keyspace.name());
        order.custom().map_or(Ok(()), |order| core.trust(order))?;
        locked.map(drop).inspect_err(|error| {
            if error.wants_retry() {
                self.lost.store(true, Ordering::Relaxed);
            }
        })
    }

    /// Whether the transaction has locked a key.
    fn has_locked(&self, keyspace: &Keyspace, key: &[u8]) -> Result<bool> {
        if self.pessimistic.is_none() {
            return Ok(false);
        }
        let (core, order) = (&self.open.handle.core, order_of(keyspace)?);
        Ok(core.locks().has(self.open.number, keyspace.state.id, &order, key))
    }

    /// Marks a point to which [`Transaction::rollback_to`] can go back.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let stock = db.keyspace("stock")?;
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "nails", "100")?;
    /// let point = tx.savepoint();
    /// tx.remove_range::<&str>(&stock, ..)?;
    /// assert_eq!(tx.get(&stock, "nails")?, None);
    /// tx.rollback_to(&point)?;
    /// assert_eq!(tx.get(&stock, "nails")?.as_deref(), Some(&b"100"[..]));
    /// tx.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn savepoint(&self) -> Savepoint {
        let mut inner = self.inner.lock();
        let number = inner.next_savepoint;
        inner.next_savepoint += 1;
        let point = Savepoint { transaction: self.open.number, number, undo: inner.undo.len() };
        inner.savepoints.push(point.clone());
        point
    }

    /// Undoes every write since a savepoint. The savepoint may be used again. Reads since then
    /// still count as reads.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a savepoint of another transaction, or one made after a
    /// savepoint to which the transaction already rolled back.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "nails", "100")?;
    /// let point = tx.savepoint();
    /// tx.insert(&stock, "nails", "0")?;
    /// tx.rollback_to(&point)?;
    /// tx.commit()?;
    /// assert_eq!(stock.get("nails")?, Some(b"100".to_vec()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn rollback_to(&self, savepoint: &Savepoint) -> Result<()> {
        let mut inner = self.inner.lock();
        let Some(at) = inner.savepoints.iter().position(|known| known == savepoint) else {
            let what = "the savepoint is of another transaction, or was itself rolled back";
            return Err(Error::invalid(what));
        };
        inner.savepoints.truncate(at + 1);
        while inner.undo.len() > savepoint.undo {
            if let Some((space, undo)) = inner.undo.pop() {
                inner.undo_bytes -= undo.memory_bytes();
                Arc::make_mut(&mut inner.spaces[space].writes).undo(undo);
            }
        }
        inner.count();
        Ok(())
    }

    /// Commits: all writes happen at one moment, or, after an error, none of them. Returns a
    /// position for [`crate::Db::wait_durable`]; 0 if there are no writes.
    ///
    /// # Errors
    /// [`Error::Conflict`] if something that the transaction read has changed: run it again. As
    /// [`Keyspace::insert`] otherwise; after [`Error::Poisoned`] either all writes or none are
    /// there once the database is reopened (C2).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// let seats = db.keyspace("seats")?;
    /// let tx = db.begin()?;
    /// assert!(!tx.contains_key(&seats, "12A")?);
    /// tx.insert(&seats, "12A", "ann")?;
    /// seats.insert("12A", "bob")?; // Somebody else is faster.
    /// assert!(matches!(tx.commit(), Err(esker::Error::Conflict { .. })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn commit(self) -> Result<u64> {
        let core = &self.open.handle.core;
        core.check_open()?;
        let inner = self.inner.lock();
        let mut batch = Batch::new();
        for Space { keyspace, writes } in &inner.spaces {
            batch.extend_from(keyspace, writes)?;
        }
        if batch.is_empty() {
            // If everything was read at one moment, the transaction took place at that moment.
            return if inner.mixed {
                core.check_unchanged(&inner.reads).map(|()| 0)
            } else {
                Ok(0)
            };
        }
        let reads = Some(&inner.reads).filter(|reads| !reads.is_empty());
        batch.write_if_unchanged(core, self.durability.into(), reads)
    }

    /// Discards all writes. Dropping the transaction does the same.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let stock = db.keyspace("stock")?;
    /// let tx = db.begin()?;
    /// tx.insert(&stock, "nails", "100")?;
    /// tx.rollback();
    /// assert!(!stock.contains_key("nails")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn rollback(self) {
        drop(self);
    }
}

impl Inner {
    /// Counts what the transaction has in memory.
    fn count(&mut self) {
        // Seeded: what transactions wrote is in nobody's account.
        bug!("api_transactions_not_counted", return);
        let writes = self.spaces.iter().map(|space| space.writes.memory_bytes()).sum::<u64>();
        self.lease.set_about(self.reads.bytes() + writes + self.undo_bytes);
    }

    fn own(&self, keyspace: &Keyspace) -> Option<&Arc<OwnWrites>> {
        let space = self.spaces.iter().find(|space| space.keyspace.state.id == keyspace.state.id);
        space.map(|space| &space.writes)
    }

    /// The index of a keyspace in `spaces`.
    fn space(&mut self, keyspace: &Keyspace) -> Result<usize> {
        let id = keyspace.state.id;
        if let Some(at) = self.spaces.iter().position(|space| space.keyspace.state.id == id) {
            return Ok(at);
        }
        let writes = Arc::new(OwnWrites::new(order_of(keyspace)?));
        self.spaces.push(Space { keyspace: keyspace.clone(), writes });
        Ok(self.spaces.len() - 1)
    }
}

fn order_of(keyspace: &Keyspace) -> Result<OwnOrder> {
    OwnOrder::of(&keyspace.state.order).ok_or_else(|| Error::ComparatorMissing {
        keyspace: keyspace.name().to_owned(),
        comparator: keyspace.state.comparator_name().unwrap_or_default().to_owned(),
    })
}

/// Runs `f` in transactions until one of them commits. `wants_retry` says which of its errors come from a transaction
/// that lost against another one.
pub(super) fn transact<R, E: From<Error>>(
    handle: &Arc<Handle>,
    options: &TransactionOptions,
    mut f: impl FnMut(&Transaction) -> std::result::Result<R, E>,
    wants_retry: impl Fn(&E) -> bool,
) -> std::result::Result<R, E> {
    let mut attempt = 1;
    loop {
        let tx = Transaction::begin(handle, options)?;
        let (error, lost) = match f(&tx) {
            Ok(result) => match tx.commit() {
                Ok(_) => return Ok(result),
                Err(error) => {
                    let lost = error.wants_retry();
                    (E::from(error), lost)
                }
            },
            Err(error) => {
                // The program may have turned the error into one of its own.
                let lost = wants_retry(&error) || tx.lost.load(Ordering::Relaxed);
                (error, lost)
            }
        };
        if !lost || attempt >= options.attempts {
            return Err(error);
        }
        attempt += 1;
        // The transaction that won may need the same keys again, so this thread yields.
        std::thread::yield_now();
    }
}
