//! Iterators.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::border::{bytes, contained, destroy, object, object_mut, put, save_error};
use crate::database::snapshot_of;
use crate::handles::leveldb_t;
use crate::options::leveldb_readoptions_t;
use crate::status::{Result, Status};
use esker::Cursor;
use std::ffi::c_char;
use std::ptr;

/// An iterator, which is on an entry or on none.
#[derive(Debug)]
pub struct leveldb_iterator_t {
    /// Without a cursor, the iterator has only an error.
    cursor: Result<Cursor>,
    /// The cursor's entry, noted after each move: programs read it three times per step, and each
    /// read through the cursor costs a third of the step.
    entry: Entry,
}

/// The entry under a cursor, without a copy: it lies in the cursor or in memory that the cursor
/// holds, and stays there until the cursor moves.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// NULL: the cursor is on no entry.
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
}

impl Entry {
    const NONE: Self = Self { key: ptr::null(), key_len: 0, value: ptr::null(), value_len: 0 };

    /// The entry under a cursor.
    #[inline]
    fn of(cursor: &Cursor) -> Self {
        if !cursor.valid() {
            return Self::NONE;
        }
        let (key, value) = (cursor.key(), cursor.value());
        let (key_len, value_len) = (key.len(), value.len());
        Self { key: key.as_ptr(), key_len, value: value.as_ptr(), value_len }
    }
}

/// Moves an iterator. An error stays in the cursor.
///
/// # Safety
/// L1.
#[inline]
unsafe fn go(
    iterator: *mut leveldb_iterator_t,
    step: impl FnOnce(&mut Cursor) -> esker::Result<()>,
) {
    let Some(iterator) = object_mut(iterator) else { return };
    iterator.entry = Entry::NONE;
    let Ok(cursor) = &mut iterator.cursor else { return };
    let moved = contained(None, || {
        // The cursor keeps its error, for `leveldb_iter_get_error`.
        let _ = step(cursor);
        Some(Entry::of(cursor))
    });
    match moved {
        Some(entry) => iterator.entry = entry,
        None => iterator.cursor = Err(Status::io("the library panicked: please report it")),
    }
}

/// Makes an iterator over the present state or the options' snapshot. It is on no entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_create_iterator(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
) -> *mut leveldb_iterator_t {
    // It is made in its final place: a cursor has a kilobyte, and every closure that returned it
    // would copy it once more.
    let mut made =
        Box::new(leveldb_iterator_t { cursor: Err(Status(String::new())), entry: Entry::NONE });
    let panicked = contained(true, || {
        match object(db, "the database") {
            Ok(db) => {
                let opened = match snapshot_of(options) {
                    None => db.entries.cursor(),
                    Some(snapshot) => snapshot.cursor(&db.entries),
                };
                match opened {
                    Ok(cursor) => made.cursor = Ok(cursor),
                    Err(error) => made.cursor = Err(Status::from(error)),
                }
            }
            Err(status) => made.cursor = Err(status),
        }
        false
    });
    if panicked {
        made.cursor = Err(Status::io("the library panicked: please report it"));
    }
    Box::into_raw(made)
}

/// Destroys an iterator.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_destroy(iterator: *mut leveldb_iterator_t) {
    destroy(iterator);
}

/// Whether the iterator is on an entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_valid(iterator: *const leveldb_iterator_t) -> u8 {
    u8::from(!entry(iterator).key.is_null())
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

/// Goes to the first entry at or after a key.
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

/// Goes to the previous entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_prev(iterator: *mut leveldb_iterator_t) {
    go(iterator, Cursor::prev);
}

/// The key and its length, valid until the iterator moves; NULL and 0 without an entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_key(
    iterator: *const leveldb_iterator_t,
    klen: *mut usize,
) -> *const c_char {
    let entry = entry(iterator);
    put(klen, entry.key_len);
    entry.key.cast()
}

/// The value and its length, valid until the iterator moves; NULL and 0 without an entry.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_iter_value(
    iterator: *const leveldb_iterator_t,
    vlen: *mut usize,
) -> *const c_char {
    let entry = entry(iterator);
    put(vlen, entry.value_len);
    entry.value.cast()
}

/// The entry under an iterator.
///
/// # Safety
/// L1.
#[inline]
unsafe fn entry(iterator: *const leveldb_iterator_t) -> Entry {
    object(iterator, "the iterator").map_or(Entry::NONE, |iterator| iterator.entry)
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
