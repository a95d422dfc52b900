//! Transactions.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, bytes, exclusive, free, give, place, quiet, range, shared, write_if};
use crate::code::esker_code;
use crate::database::esker_db;
use crate::fault::{Result, esker_error, misuse};
use crate::handle::kind;
use crate::keyspace::{Places, bytes_list, esker_keyspace};
use crate::options::durability;
use crate::value::{esker_value, give_value};
use esker::{Savepoint, Transaction, TransactionOptions};
use std::ffi::c_void;
use std::time::Duration;

/// Reads and writes that happen as if at one moment, over any number of keyspaces of one database.
/// Only one thread may use it at a time.
///
/// It reads the database as it was when it began, together with its own writes, which nobody else
/// sees before the commit. The commit succeeds only if nothing that the transaction read was
/// written meanwhile; otherwise it fails with `ESKER_CONFLICT`: begin a new one. Nobody waits for a
/// transaction unless it was begun with `esker_txn_begin_locking`.
pub struct esker_txn(());

kind!(esker_txn, b"esktrans", TxnInner);

/// The value behind an [`esker_txn`].
pub(crate) struct TxnInner {
    /// `None`: it was committed or rolled back.
    transaction: Option<Transaction>,
    savepoints: Vec<Savepoint>,
    /// Whether it belongs to an `esker_transact`; only that ends and frees it.
    lent: bool,
}

impl TxnInner {
    pub(crate) fn open(&self) -> Result<&Transaction> {
        match &self.transaction {
            Some(transaction) => Ok(transaction),
            None => misuse("the transaction has ended: begin another"),
        }
    }

    /// A transaction for the body of an `esker_transact`.
    pub(crate) fn lend(transaction: Transaction) -> Self {
        Self { transaction: Some(transaction), savepoints: Vec::new(), lent: true }
    }

    /// Takes back what was lent.
    pub(crate) fn take_back(&mut self) -> Option<Transaction> {
        self.lent = false;
        self.savepoints.clear();
        self.transaction.take()
    }

    fn end(&mut self) -> Result<Transaction> {
        self.open()?;
        if self.lent {
            return misuse("the transaction is ended by esker_transact: return from its function");
        }
        self.savepoints.clear();
        self.transaction.take().map_or_else(|| misuse("the transaction has ended"), Ok)
    }
}

/// Begins a transaction, which reads the database as it is now. `durability`, an
/// `esker_durability`, is what its commit survives. Free it with `esker_txn_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_begin(
    db: *const esker_db,
    durability: i32,
    txn: *mut *mut esker_txn,
    error: *mut *mut esker_error,
) -> esker_code {
    begin(db, durability, None, txn, error)
}

/// Begins a transaction that locks the keys it reads and writes. So it waits for others instead of
/// conflicting with them, at most the given number of milliseconds for each lock. Otherwise as
/// `esker_txn_begin`. Its reads and writes may fail with `ESKER_LOCK_TIMEOUT` and `ESKER_DEADLOCK`:
/// roll back and begin a new one. Writes outside transactions take no locks; such a write to a
/// locked key makes the commit fail with `ESKER_CONFLICT`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_begin_locking(
    db: *const esker_db,
    durability: i32,
    lock_timeout_ms: u64,
    txn: *mut *mut esker_txn,
    error: *mut *mut esker_error,
) -> esker_code {
    begin(db, durability, Some(Duration::from_millis(lock_timeout_ms)), txn, error)
}

/// How a transaction behaves: it locks if there is a time to wait for locks.
pub(crate) fn options(
    durability: i32,
    lock_timeout: Option<Duration>,
) -> Result<TransactionOptions> {
    let mut options = TransactionOptions::default();
    options.durability = self::durability(durability)?;
    if let Some(lock_timeout) = lock_timeout {
        options.pessimistic = true;
        options.lock_timeout = lock_timeout;
    }
    Ok(options)
}

/// Begins a transaction, with locks if there is a time to wait for them.
///
/// # Safety
/// B1 for `db`, B3 for `txn` and `error`.
unsafe fn begin(
    db: *const esker_db,
    durability: i32,
    lock_timeout: Option<Duration>,
    txn: *mut *mut esker_txn,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(txn, "txn", std::ptr::null_mut())?;
        let db = &shared(db)?.db;
        let options = options(durability, lock_timeout)?;
        let transaction = Some(db.begin_with(options)?);
        *place = give(TxnInner { transaction, savepoints: Vec::new(), lent: false });
        Ok(())
    })
}

/// Frees a transaction, and rolls it back if it was not committed. NULL is fine. Its iterators stay
/// valid.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_free(txn: *mut esker_txn) {
    if quiet(false, || Ok(!exclusive(txn)?.lent)) {
        free(txn);
    }
}

/// Commits: all writes happen at one moment, or, after an error, none of them. Either way the
/// transaction has ended, and must still be freed. `position`, which may be NULL, receives the log
/// position after the writes, for `esker_wait_durable`; 0 if there are none.
///
/// Errors: `ESKER_CONFLICT` if something that was read has changed: begin a new transaction.
/// Otherwise as `esker_put`; after `ESKER_POISONED` the reopened database has either all of the
/// writes or none.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_commit(
    txn: *mut esker_txn,
    position: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(position, 0);
        let committed = exclusive(txn)?.end()?.commit()?;
        write_if(position, committed);
        Ok(())
    })
}

/// Rolls back all writes. The transaction has ended, and must still be freed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_rollback(
    txn: *mut esker_txn,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        exclusive(txn)?.end()?.rollback();
        Ok(())
    })
}

/// Sets a savepoint, to which `esker_txn_rollback_to` can roll back; its number goes to
/// `savepoint`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_savepoint(
    txn: *mut esker_txn,
    savepoint: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(savepoint, "savepoint", 0)?;
        let mut inner = exclusive(txn)?;
        let point = inner.open()?.savepoint();
        *place = inner.savepoints.len() as u64;
        inner.savepoints.push(point);
        Ok(())
    })
}

/// Undoes every write since a savepoint, which may be used again. Keys read since still count as
/// read.
///
/// Errors: `ESKER_INVALID_ARGUMENT` for a number that is no savepoint of this transaction, or one
/// set after a savepoint to which the transaction has already rolled back.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_rollback_to(
    txn: *mut esker_txn,
    savepoint: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let inner = exclusive(txn)?;
        let transaction = inner.open()?;
        let point = usize::try_from(savepoint).ok().and_then(|at| inner.savepoints.get(at));
        let Some(point) = point else {
            let what = format!("{savepoint} is no savepoint of this transaction");
            return Err(esker::Error::InvalidArgument { what }.into());
        };
        Ok(transaction.rollback_to(point)?)
    })
}

/// The value under a key, as the transaction sees it; otherwise as `esker_get`.
/// `ESKER_INVALID_ARGUMENT` for a keyspace of another database.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_get(
    txn: *const esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(value, "value", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let found = exclusive(txn)?.open()?.get(keyspace, bytes(key, key_len, "key")?)?;
        *place = found.map_or(std::ptr::null_mut(), give_value);
        Ok(())
    })
}

/// As `esker_txn_get`, for a value that the transaction will change: a locking transaction takes
/// the exclusive lock at once; in an optimistic one the key counts as read.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_get_for_update(
    txn: *const esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(value, "value", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let key = bytes(key, key_len, "key")?;
        let found = exclusive(txn)?.open()?.get_for_update(keyspace, key)?;
        *place = found.map_or(std::ptr::null_mut(), give_value);
        Ok(())
    })
}

/// As `esker_txn_get_for_update`, for a value that must not change until the commit: the lock is
/// shared among readers and keeps writers out.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_get_for_share(
    txn: *const esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(value, "value", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let key = bytes(key, key_len, "key")?;
        let found = exclusive(txn)?.open()?.get_for_share(keyspace, key)?;
        *place = found.map_or(std::ptr::null_mut(), give_value);
        Ok(())
    })
}

/// Whether a key has a value, as the transaction sees it. As `esker_txn_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_contains(
    txn: *const esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    found: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let found = place(found, "found", false)?;
        let keyspace = &shared(keyspace)?.keyspace;
        *found = exclusive(txn)?.open()?.contains_key(keyspace, bytes(key, key_len, "key")?)?;
        Ok(())
    })
}

/// The values under `count` keys, as the transaction sees them; otherwise as `esker_multi_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_multi_get(
    txn: *const esker_txn,
    keyspace: *const esker_keyspace,
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let places = Places::new(values, count)?;
        let keyspace = &shared(keyspace)?.keyspace;
        let keys = bytes_list(keys, key_lens, count, ("keys", "key"))?;
        places.fill(exclusive(txn)?.open()?.multi_get(keyspace, keys)?);
        Ok(())
    })
}

/// Inserts a value under a key, for the commit.
///
/// Errors: `ESKER_KEY_TOO_LONG`, `ESKER_VALUE_TOO_LARGE`; `ESKER_BATCH_TOO_LARGE` if the
/// transaction would become larger than a batch may be; this write is then not part of it.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_put(
    txn: *mut esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
        Ok(exclusive(txn)?.open()?.insert(keyspace, key, value)?)
    })
}

/// Inserts a value that expires `milliseconds` after the commit; 0: at once. The transaction
/// itself always sees it. As `esker_txn_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_put_ttl(
    txn: *mut esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    milliseconds: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
        let ttl = Duration::from_millis(milliseconds);
        Ok(exclusive(txn)?.open()?.insert_with_ttl(keyspace, key, value, ttl)?)
    })
}

/// Writes an operand for the keyspace's merge operator, for the commit. A merge does not read the
/// key: it conflicts with nobody, unless the transaction also reads the key. As `esker_txn_put` and
/// `esker_merge`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_merge(
    txn: *mut esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    operand: *const c_void,
    operand_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let (key, operand) = (bytes(key, key_len, "key")?, bytes(operand, operand_len, "operand")?);
        Ok(exclusive(txn)?.open()?.merge(keyspace, key, operand)?)
    })
}

/// Removes a key, for the commit. As `esker_txn_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_delete(
    txn: *mut esker_txn,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        Ok(exclusive(txn)?.open()?.remove(keyspace, bytes(key, key_len, "key")?)?)
    })
}

/// Removes all keys from `start` up to, not including, `end` that exist when the transaction
/// commits. NULL with the length 0 means no bound on that side. As `esker_txn_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_delete_range(
    txn: *mut esker_txn,
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let range = range((start, start_len), (end, end_len))?;
        Ok(exclusive(txn)?.open()?.remove_range::<&[u8]>(keyspace, range)?)
    })
}
