//! Iterators: a position in a keyspace that moves in both directions.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{
    behind_prefix, border, bytes, exclusive, free, give, place, quiet, range, shared,
    shared_or_null, write_if,
};
use crate::code::esker_code;
use crate::fault::{Fault, Result, esker_error};
use crate::handle::kind;
use crate::keyspace::esker_keyspace;
use crate::snapshot::esker_snapshot;
use esker::Cursor;
use std::ffi::{c_char, c_void};
use std::ops::Bound;

/// A position in a keyspace, as the keyspace was when the iterator was made. Only one thread may
/// use it at a time. It holds no lock, but its files keep their space on the device while it lives.
pub struct esker_iter(());

kind!(esker_iter, b"eskitera", Cursor);

/// Makes an iterator over the keys from `start` up to, not including, `end`; NULL with the length 0
/// means no bound on that side. It shows the state of a snapshot, or the present one if that is
/// NULL. It is on no entry until it is placed. Free it with `esker_iter_free`.
///
/// Errors: as `esker_get`; `ESKER_COMPARATOR_MISSING`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_new(
    keyspace: *const esker_keyspace,
    snapshot: *const esker_snapshot,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    iter: *mut *mut esker_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(iter, "iter", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let range = range((start, start_len), (end, end_len))?;
        let cursor = match shared_or_null(snapshot)? {
            None => keyspace.cursor_in::<&[u8]>(range)?,
            Some(snapshot) => snapshot.cursor_in::<&[u8]>(keyspace, range)?,
        };
        *place = give(cursor);
        Ok(())
    })
}

/// Makes an iterator over the keys that begin with `prefix`; otherwise as `esker_iter_new`.
/// `ESKER_INVALID_ARGUMENT` for a keyspace with a custom comparator: use a range there.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_new_prefix(
    keyspace: *const esker_keyspace,
    snapshot: *const esker_snapshot,
    prefix: *const c_void,
    prefix_len: usize,
    iter: *mut *mut esker_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(iter, "iter", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let prefix = bytes(prefix, prefix_len, "prefix")?;
        if keyspace.comparator_name().is_some() {
            let what = "this keyspace has a custom comparator: ask for a range, not for a prefix";
            return Err(esker::Error::InvalidArgument { what: what.to_owned() }.into());
        }
        let end = behind_prefix(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (Bound::Included(prefix), end);
        let cursor = match shared_or_null(snapshot)? {
            None => keyspace.cursor_in::<&[u8]>(range)?,
            Some(snapshot) => snapshot.cursor_in::<&[u8]>(keyspace, range)?,
        };
        *place = give(cursor);
        Ok(())
    })
}

/// Frees an iterator. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_free(iter: *mut esker_iter) {
    free(iter);
}

/// Places or moves an iterator.
///
/// # Safety
/// B1 for `iter`, B3 for `error`.
#[inline]
unsafe fn go(
    iter: *mut esker_iter,
    error: *mut *mut esker_error,
    go: impl FnOnce(&mut Cursor) -> Result<(), esker::Error>,
) -> esker_code {
    border(error, || go(&mut *exclusive(iter)?).map_err(Fault::from))
}

/// Goes to the first entry. If there is none, `esker_iter_valid` is false; that is no error.
///
/// Errors: `ESKER_CORRUPTION` and `ESKER_IO` where the data cannot be read, `ESKER_CLOSED`,
/// `ESKER_FORKED`. After an error the iterator is on no entry, and `esker_iter_next` and
/// `esker_iter_prev` repeat the error until it is placed again: it never ends early in silence.
/// `ESKER_MERGE_FAILED`, `ESKER_MERGE_OPERATOR_MISSING` and `ESKER_USER_CODE_PANICKED` concern
/// a single entry: after those, next and prev go on to its neighbours.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_first(
    iter: *mut esker_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    go(iter, error, Cursor::seek_to_first)
}

/// Goes to the last entry. As `esker_iter_first`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_last(
    iter: *mut esker_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    go(iter, error, Cursor::seek_to_last)
}

/// Goes to the first entry at or after a key. As `esker_iter_first`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_seek(
    iter: *mut esker_iter,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let key = bytes(key, key_len, "key")?;
        Ok(exclusive(iter)?.seek(key)?)
    })
}

/// Goes to the last entry at or before a key. As `esker_iter_first`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_seek_back(
    iter: *mut esker_iter,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let key = bytes(key, key_len, "key")?;
        Ok(exclusive(iter)?.seek_back(key)?)
    })
}

/// Goes to the next entry. Does nothing if the iterator is on no entry. As `esker_iter_first`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_next(
    iter: *mut esker_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    go(iter, error, Cursor::next)
}

/// Goes to the previous entry. Does nothing if the iterator is on no entry. As `esker_iter_first`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_prev(
    iter: *mut esker_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    go(iter, error, Cursor::prev)
}

/// Whether the iterator is on an entry. If not, `esker_iter_error` says whether it reached the end
/// or failed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_valid(iter: *const esker_iter) -> bool {
    quiet(false, || Ok(exclusive(iter)?.valid()))
}

/// The key of the iterator's entry, without a copy; its length goes to `len`, which may be NULL.
/// The pointer is valid until the iterator is moved or freed. NULL if the iterator is on no entry.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_key(iter: *const esker_iter, len: *mut usize) -> *const c_char {
    entry(iter, len, Cursor::key)
}

/// The value of the iterator's entry; as `esker_iter_key`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_value(
    iter: *const esker_iter,
    len: *mut usize,
) -> *const c_char {
    entry(iter, len, Cursor::value)
}

/// A part of the iterator's entry.
///
/// # Safety
/// B1 for `iter`, B3 for `len`.
#[inline]
unsafe fn entry(
    iter: *const esker_iter,
    len: *mut usize,
    which: impl FnOnce(&Cursor) -> &[u8],
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || {
        let cursor = exclusive(iter)?;
        if !cursor.valid() {
            return Ok(std::ptr::null());
        }
        let part = which(&cursor);
        write_if(len, part.len());
        Ok(part.as_ptr().cast())
    })
}

/// The code of the last move's error; the error goes to `error`, which may be NULL. `ESKER_OK` if
/// the move succeeded.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iter_error(
    iter: *const esker_iter,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || exclusive(iter)?.error().map_or(Ok(()), |error| Err(error.clone().into())))
}
