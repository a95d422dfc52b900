//! Iterators over what a transaction sees.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, bytes, exclusive, free, give, place, quiet, range, shared, write_if};
use crate::code::esker_code;
use crate::fault::esker_error;
use crate::handle::kind;
use crate::keyspace::esker_keyspace;
use crate::txn::esker_txn;
use esker::TransactionIter;
use esker::internals::stats::clients::Counted;
use std::ffi::{c_char, c_void};

/// The entries of a keyspace as a transaction sees them, from both ends. Only one thread may use it
/// at a time. The part that it has walked counts as read.
pub struct esker_txn_iter(());

kind!(esker_txn_iter, b"esktxitr", TxnIterInner);

/// The value behind an [`esker_txn_iter`].
pub(crate) struct TxnIterInner {
    iter: TransactionIter,
    entry: Option<(Vec<u8>, Vec<u8>)>,
    /// The part of `entry` in what the program was handed.
    counted: Counted,
}

/// Makes an iterator over the keys from `start` up to, not including, `end`; NULL with the length 0
/// means no bound on that side. It shows the transaction's writes so far; later ones do not change
/// it. Free it with `esker_txn_iter_free`.
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
        *place = give(TxnIterInner { iter, entry: None, counted: Counted::default() });
        Ok(())
    })
}

/// Makes an iterator over the keys that begin with `prefix`; otherwise as `esker_txn_iter_new`.
/// `ESKER_INVALID_ARGUMENT` for a keyspace with a custom comparator: use a range there.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_new_prefix(
    txn: *const esker_txn,
    keyspace: *const esker_keyspace,
    prefix: *const c_void,
    prefix_len: usize,
    iter: *mut *mut esker_txn_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(iter, "iter", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let prefix = bytes(prefix, prefix_len, "prefix")?;
        let iter = exclusive(txn)?.open()?.prefix(keyspace, prefix)?;
        *place = give(TxnIterInner { iter, entry: None, counted: Counted::default() });
        Ok(())
    })
}

/// Frees an iterator. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_txn_iter_free(iter: *mut esker_txn_iter) {
    free(iter);
}

/// Places the front before the first entry at or after a key; `esker_txn_iter_next` then takes that
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
/// Errors: as `esker_iter_first`; the error stays until the front is placed again.
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
        let bytes = inner.entry.as_ref().map_or(0, |(key, value)| key.len() + value.len());
        inner.counted.set(bytes);
        *found = inner.entry.is_some();
        Ok(())
    })
}

/// The key that was taken last; its length goes to `len`, which may be NULL. The pointer is valid
/// until the iterator is used again or freed. NULL if there was none.
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
