//! Transactions.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{
    Result, border, bytes, exclusive, free, give, kind, misuse, place, quiet, range, shared,
    write_if,
};
use crate::database::esker_db;
use crate::error::{esker_code, esker_error};
use crate::keyspace::{Places, esker_keyspace, key_list};
use crate::options::durability;
use crate::value::{esker_value, give_value};
use esker::{Savepoint, Transaction, TransactionIter, TransactionOptions};
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// Reads and writes that happen as if at one moment, over any number of keyspaces of one database.
/// It is used by one thread at a time.
///
/// It reads the database as it was when it began, together with its own writes, which nobody else
/// sees before the commit. The commit succeeds only if nothing that the transaction read was
/// written meanwhile; otherwise `ESKER_CONFLICT`: begin anew. Nobody waits for a transaction, unless it
/// was begun with `esker_txn_begin_locking`.
pub struct esker_txn(());

kind!(esker_txn, b"esktrans", TxnInner);

/// What lies behind an [`esker_txn`].
pub(crate) struct TxnInner {
    /// `None`: it was committed or rolled back.
    transaction: Option<Transaction>,
    savepoints: Vec<Savepoint>,
}

impl TxnInner {
    fn open(&self) -> Result<&Transaction> {
        match &self.transaction {
            Some(transaction) => Ok(transaction),
            None => misuse("the transaction has ended: begin another"),
        }
    }

    fn end(&mut self) -> Result<Transaction> {
        self.open()?;
        self.savepoints.clear();
        self.transaction.take().map_or_else(|| misuse("the transaction has ended"), Ok)
    }
}

/// Begins a transaction, which reads the database as it is now. `durability`, an
/// `esker_durability`, is what its commit survives. Freed with `esker_txn_free`.
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

/// Begins a transaction that locks the keys that it reads and writes, so that it waits for others
/// instead of conflicting with them: for each lock at most so many milliseconds. Otherwise as
/// `esker_txn_begin`. Its reads and writes may then fail with `ESKER_LOCK_TIMEOUT` and
/// `ESKER_DEADLOCK`: give it up and begin anew. Plain writes ask for no locks; one that comes
/// between makes the commit fail with `ESKER_CONFLICT`.
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
        let mut options = TransactionOptions::default();
        options.durability = self::durability(durability)?;
        if let Some(lock_timeout) = lock_timeout {
            options.pessimistic = true;
            options.lock_timeout = lock_timeout;
        }
        let transaction = Some(db.begin_with(options)?);
        *place = give(TxnInner { transaction, savepoints: Vec::new() });
        Ok(())
    })
}

/// Frees a transaction, and gives it up if it was not committed. NULL is fine. Its iterators live
/// on.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_free(txn: *mut esker_txn) {
    free(txn);
}

/// Commits: all writes happen at one moment, or, after an error, none of them. Either way the
/// transaction has ended, and still has to be freed. `position`, which may be NULL, is the log
/// position behind the writes, for `esker_wait_durable`; 0 if there are none.
///
/// Errors: `ESKER_CONFLICT` if something that was read has changed: begin anew. Otherwise as
/// `esker_put`; after `ESKER_POISONED` the writes may be there or not once the database is
/// reopened, but then all of them.
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

/// Gives everything up. The transaction has ended, and still has to be freed.
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

/// Marks a point, whose number goes to `savepoint`, to which `esker_txn_rollback_to` can go back.
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

/// Takes back every write since a savepoint, which may be used again. What was read since counts on
/// as read.
///
/// Errors: `ESKER_INVALID_ARGUMENT` for a number that is no savepoint of this transaction, or one
/// that came after a savepoint to which the transaction already went back.
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

/// The value under a key, as the transaction sees it; otherwise as `esker_get`. For a keyspace of
/// another database `ESKER_INVALID_ARGUMENT`.
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

/// As `esker_txn_get`, for a value that the transaction is about to change: one that locks takes
/// the lock of a writer at once, for one that does not the key counts as read.
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
        let keys = key_list(keys, key_lens, count)?;
        places.fill(exclusive(txn)?.open()?.multi_get(keyspace, keys)?);
        Ok(())
    })
}

/// Inserts a value under a key, for the commit.
///
/// Errors: `ESKER_KEY_TOO_LONG`, `ESKER_VALUE_TOO_LARGE`; `ESKER_BATCH_TOO_LARGE` if the
/// transaction would become larger than a batch may be, and this write is left out then.
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

/// Removes every key from `start` up to, not including, `end`, whatever that holds when the
/// transaction commits. NULL with the length 0 is no bound on that side. As `esker_txn_put`.
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

/// The entries of a keyspace as a transaction sees them, from both ends. It is used by one thread
/// at a time. How far it came counts as read.
pub struct esker_txn_iter(());

kind!(esker_txn_iter, b"esktxitr", TxnIterInner);

/// What lies behind an [`esker_txn_iter`].
pub(crate) struct TxnIterInner {
    iter: TransactionIter,
    entry: Option<(Vec<u8>, Vec<u8>)>,
}

/// An iterator over the keys from `start` up to, not including, `end`; NULL with the length 0 is no
/// bound on that side. It shows the transaction's writes as they are now; later ones do not change
/// it. Freed with `esker_txn_iter_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_new(
    txn: *const esker_txn,
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    iter: *mut *mut esker_txn_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(iter, "iter", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let range = range((start, start_len), (end, end_len))?;
        let iter = exclusive(txn)?.open()?.range::<&[u8]>(keyspace, range)?;
        *place = give(TxnIterInner { iter, entry: None });
        Ok(())
    })
}

/// Frees an iterator. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_free(iter: *mut esker_txn_iter) {
    free(iter);
}

/// Places the front before the first key at or behind a key; `esker_txn_iter_next` then takes that
/// entry.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_seek(
    iter: *mut esker_txn_iter,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let key = bytes(key, key_len, "key")?;
        let mut inner = exclusive(iter)?;
        inner.entry = None;
        inner.iter.seek(key)?;
        Ok(())
    })
}

/// Takes the next entry from the front; `found` is false if there is none left before the back.
///
/// Errors: as `esker_iter_first`; the error stays until the front is placed anew.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_next(
    iter: *mut esker_txn_iter,
    found: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    take(iter, found, error, TransactionIter::next_entry)
}

/// Takes the next entry from the back; otherwise as `esker_txn_iter_next`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_next_back(
    iter: *mut esker_txn_iter,
    found: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    take(iter, found, error, TransactionIter::next_back_entry)
}

/// Takes an entry from an end.
///
/// # Safety
/// B1 for `iter`, B3 for `found` and `error`.
unsafe fn take(
    iter: *mut esker_txn_iter,
    found: *mut bool,
    error: *mut *mut esker_error,
    from: impl FnOnce(&mut TransactionIter) -> esker::Result<Option<(Vec<u8>, Vec<u8>)>>,
) -> esker_code {
    border(error, || {
        let found = place(found, "found", false)?;
        let mut inner = exclusive(iter)?;
        inner.entry = None;
        inner.entry = from(&mut inner.iter)?;
        *found = inner.entry.is_some();
        Ok(())
    })
}

/// The key that was taken last; its length goes to `len`, which may be NULL. It stays there until
/// the iterator is used again or freed. NULL if there was none.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_key(
    iter: *const esker_txn_iter,
    len: *mut usize,
) -> *const c_char {
    part(iter, len, |(key, _)| key)
}

/// The value that was taken last; as `esker_txn_iter_key`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_value(
    iter: *const esker_txn_iter,
    len: *mut usize,
) -> *const c_char {
    part(iter, len, |(_, value)| value)
}

/// A part of the entry that was taken last.
///
/// # Safety
/// B1 for `iter`, B3 for `len`.
unsafe fn part(
    iter: *const esker_txn_iter,
    len: *mut usize,
    which: impl FnOnce(&(Vec<u8>, Vec<u8>)) -> &Vec<u8>,
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || {
        let inner = exclusive(iter)?;
        let Some(entry) = &inner.entry else { return Ok(std::ptr::null()) };
        let part = which(entry);
        write_if(len, part.len());
        Ok(part.as_ptr().cast())
    })
}
