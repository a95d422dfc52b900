//! Iterators.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::border::{
    answer, bytes, contained, destroy, hand_over, object, object_mut, put, save_error,
};
use crate::database::{leveldb_t, snapshot_of};
use crate::options::leveldb_readoptions_t;
use crate::status::{Result, Status};
use esker::Cursor;
use std::ffi::c_char;
use std::ptr;

/// An iterator, which stands on an entry or on none.
#[derive(Debug)]
pub struct leveldb_iterator_t {
    /// Without one, the iterator has only its error to show.
    cursor: Result<Cursor>,
}

impl leveldb_iterator_t {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_ok_and(Cursor::valid)
    }
}

/// Moves an iterator. What went wrong stays in the cursor.
///
/// # Safety
/// L1.
#[inline]
unsafe fn go(
    iterator: *mut leveldb_iterator_t,
    step: impl FnOnce(&mut Cursor) -> esker::Result<()>,
) {
    let Some(iterator) = object_mut(iterator) else { return };
    let panicked = contained(true, || {
        if let Ok(cursor) = &mut iterator.cursor {
            // The cursor keeps its error, for `leveldb_iter_get_error`.
            let _ = step(cursor);
        }
        false
    });
    if panicked {
        iterator.cursor = Err(Status::io("the library panicked: please report it"));
    }
}

/// An iterator over the database as of now or of the options' snapshot. It stands on no entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_create_iterator(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
) -> *mut leveldb_iterator_t {
    let panicked = || Err(Status::io("the library panicked: please report it"));
    let cursor = answer(ptr::null_mut(), panicked(), || {
        let open = match object(db, "the database") {
            Ok(db) => match snapshot_of(options) {
                None => db.entries.cursor(),
                Some(snapshot) => snapshot.cursor(&db.entries),
            },
            Err(status) => return Ok(Err(status)),
        };
        Ok(open.map_err(Status::from))
    });
    hand_over(leveldb_iterator_t { cursor })
}

/// Destroys an iterator.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_destroy(iterator: *mut leveldb_iterator_t) {
    destroy(iterator);
}

/// Whether the iterator stands on an entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_valid(iterator: *const leveldb_iterator_t) -> u8 {
    u8::from(object(iterator, "the iterator").is_ok_and(leveldb_iterator_t::valid))
}

/// Goes to the first entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek_to_first(iterator: *mut leveldb_iterator_t) {
    go(iterator, Cursor::seek_to_first);
}

/// Goes to the last entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek_to_last(iterator: *mut leveldb_iterator_t) {
    go(iterator, Cursor::seek_to_last);
}

/// Goes to the first entry at or behind a key.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_seek(
    iterator: *mut leveldb_iterator_t,
    k: *const c_char,
    klen: usize,
) {
    let key = bytes(k, klen);
    go(iterator, |cursor| cursor.seek(key));
}

/// Goes to the next entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_next(iterator: *mut leveldb_iterator_t) {
    go(iterator, Cursor::next);
}

/// Goes to the entry before.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_prev(iterator: *mut leveldb_iterator_t) {
    go(iterator, Cursor::prev);
}

/// The key and its length, in place until the iterator moves; NULL and 0 without an entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_key(
    iterator: *const leveldb_iterator_t,
    klen: *mut usize,
) -> *const c_char {
    part(iterator, klen, Cursor::key)
}

/// The value and its length, in place until the iterator moves; NULL and 0 without an entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_value(
    iterator: *const leveldb_iterator_t,
    vlen: *mut usize,
) -> *const c_char {
    part(iterator, vlen, Cursor::value)
}

/// A part of the entry under an iterator.
///
/// # Safety
/// L1; `len` is NULL or points to a place for the length.
#[inline]
unsafe fn part(
    iterator: *const leveldb_iterator_t,
    len: *mut usize,
    of: impl FnOnce(&Cursor) -> &[u8],
) -> *const c_char {
    let iterator = object(iterator, "the iterator").ok().filter(|iterator| iterator.valid());
    match iterator.and_then(|iterator| iterator.cursor.as_ref().ok()).map(of) {
        Some(part) => {
            put(len, part.len());
            part.as_ptr().cast()
        }
        None => {
            put(len, 0);
            ptr::null()
        }
    }
}

/// The error of an iterator, if it has one.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_get_error(
    iterator: *const leveldb_iterator_t,
    errptr: *mut *mut c_char,
) {
    let status = match object(iterator, "the iterator").map(|iterator| &iterator.cursor) {
        Ok(Ok(cursor)) => cursor.error().map(Status::from),
        Ok(Err(status)) => Some(status.clone()),
        Err(status) => Some(status),
    };
    if let Some(status) = status {
        save_error(errptr, &status);
    }
}
