//! Batches.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::border::{bytes, contained, destroy, hand_over, object, object_mut};
use crate::rep::{self, Op};
use std::ffi::{c_char, c_void};

/// Writes that are applied together or not at all.
#[derive(Debug)]
pub struct leveldb_writebatch_t {
    /// In LevelDB's form.
    pub(crate) rep: Vec<u8>,
}

// SAFETY: these only name types; what calls need is told where they are made.
type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

/// Makes an empty batch.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writebatch_create() -> *mut leveldb_writebatch_t {
    hand_over(leveldb_writebatch_t { rep: rep::empty() })
}

/// Destroys a batch.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_destroy(batch: *mut leveldb_writebatch_t) {
    destroy(batch);
}

/// Removes all operations.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_clear(batch: *mut leveldb_writebatch_t) {
    if let Some(batch) = object_mut(batch) {
        batch.rep = rep::empty();
    }
}

/// Adds the insertion of a value under a key.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_put(
    batch: *mut leveldb_writebatch_t,
    key: *const c_char,
    klen: usize,
    val: *const c_char,
    vlen: usize,
) {
    if let Some(batch) = object_mut(batch) {
        let op = Op::Put(bytes(key, klen), bytes(val, vlen));
        contained((), || rep::push(&mut batch.rep, op));
    }
}

/// Adds the removal of a key.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_delete(
    batch: *mut leveldb_writebatch_t,
    key: *const c_char,
    klen: usize,
) {
    if let Some(batch) = object_mut(batch) {
        let op = Op::Delete(bytes(key, klen));
        contained((), || rep::push(&mut batch.rep, op));
    }
}

/// Calls one of two functions with each operation, in their order.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_iterate(
    batch: *const leveldb_writebatch_t,
    state: *mut c_void,
    put: Option<
        unsafe extern "C" fn(
            *mut c_void,
            k: *const c_char,
            klen: usize,
            v: *const c_char,
            vlen: usize,
        ),
    >,
    deleted: Option<unsafe extern "C" fn(*mut c_void, k: *const c_char, klen: usize)>,
) {
    let Ok(batch) = object(batch, "the batch") else { return };
    let (put, deleted): (Option<Put>, Option<Deleted>) = (put, deleted);
    let each = |op: Op<'_>| match (op, put, deleted) {
        (Op::Put(key, value), Some(put), _) => {
            // SAFETY: the caller gave function and state together; the bytes live through the call.
            put(state, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
        }
        (Op::Delete(key), _, Some(deleted)) => {
            // SAFETY: as above.
            deleted(state, key.as_ptr().cast(), key.len());
        }
        _ => {}
    };
    // The library made the batch, so it is whole.
    let _ = contained(Ok(()), || rep::read(&batch.rep, each));
}

/// Adds the operations of `source` to `destination`.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_writebatch_append(
    destination: *mut leveldb_writebatch_t,
    source: *const leveldb_writebatch_t,
) {
    // Copied first: source and destination may be the same batch.
    let Ok(source) = object(source, "the batch").map(|source| source.rep.clone()) else { return };
    if let Some(destination) = object_mut(destination) {
        contained((), || rep::append(&mut destination.rep, &source));
    }
}
