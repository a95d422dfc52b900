//! Batches: several writes that happen together or not at all.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, bytes, exclusive, free, give, quiet, range, shared, write_if};
use crate::code::esker_code;
use crate::database::esker_db;
use crate::fault::{Result, esker_error};
use crate::handle::kind;
use crate::keyspace::esker_keyspace;
use crate::options::durability;
use esker::{Batch, Db, Durability};
use std::ffi::c_void;
use std::time::Duration;

/// Writes that are committed together, over any number of keyspaces of one database. Later
/// operations win over earlier ones. Only one thread may use it at a time.
pub struct esker_batch(());

kind!(esker_batch, b"eskbatch", Batch);

/// Makes an empty batch. Free it with `esker_batch_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn esker_batch_new() -> *mut esker_batch {
    quiet(std::ptr::null_mut(), || Ok(give(Batch::new())))
}

/// Frees a batch. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_free(batch: *mut esker_batch) {
    free(batch);
}

/// Adds the insertion of a value under a key. Lengths are checked when the batch is written.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_put(
    batch: *mut esker_batch,
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
        exclusive(batch)?.insert(keyspace, key, value);
        Ok(())
    })
}

/// Adds the insertion of a value that expires after `milliseconds`, counted from now.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_put_ttl(
    batch: *mut esker_batch,
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
        exclusive(batch)?.insert_with_ttl(keyspace, key, value, ttl);
        Ok(())
    })
}

/// Adds an operand for the keyspace's merge operator; if it has none, writing the batch fails.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_merge(
    batch: *mut esker_batch,
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
        exclusive(batch)?.merge(keyspace, key, operand);
        Ok(())
    })
}

/// Adds the removal of a key.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_delete(
    batch: *mut esker_batch,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let key = bytes(key, key_len, "key")?;
        exclusive(batch)?.remove(keyspace, key);
        Ok(())
    })
}

/// Adds a range delete of all keys from `start` up to, not including, `end`. NULL with the length 0
/// means no bound on that side.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_delete_range(
    batch: *mut esker_batch,
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
        Ok(exclusive(batch)?.remove_range::<&[u8]>(keyspace, range)?)
    })
}

/// Adds a range delete of all keys that begin with `prefix`: `ESKER_INVALID_ARGUMENT` in a keyspace
/// with a custom comparator.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_delete_prefix(
    batch: *mut esker_batch,
    keyspace: *const esker_keyspace,
    prefix: *const c_void,
    prefix_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let keyspace = &shared(keyspace)?.keyspace;
        let prefix = bytes(prefix, prefix_len, "prefix")?;
        Ok(exclusive(batch)?.remove_prefix(keyspace, prefix)?)
    })
}

/// The number of operations in a batch; 0 if the handle is no batch.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_len(batch: *const esker_batch) -> usize {
    quiet(0, || Ok(exclusive(batch)?.len()))
}

/// Removes all operations and keeps the memory for new ones.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_batch_clear(
    batch: *mut esker_batch,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        exclusive(batch)?.clear();
        Ok(())
    })
}

/// Commits a batch by `write` and tells the position after it.
///
/// # Safety
/// The contract is the border's.
unsafe fn commit(
    db: *const esker_db,
    batch: *const esker_batch,
    durability: i32,
    position: *mut u64,
    write: impl FnOnce(&Db, &Batch, Option<Durability>) -> esker::Result<u64>,
) -> Result<()> {
    write_if(position, 0);
    let db = &shared(db)?.db;
    let batch = exclusive(batch)?;
    let written = write(db, &batch, self::durability(durability)?)?;
    write_if(position, written);
    Ok(())
}

/// Commits a batch: all of it or nothing. The batch does not change and may be written again or
/// cleared. `durability` is an `esker_durability`. `position`, which may be NULL, receives the log
/// position after the batch, for `esker_wait_durable`; 0 if the batch is empty.
///
/// Errors: as `esker_put`; `ESKER_BATCH_TOO_LARGE`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_write(
    db: *const esker_db,
    batch: *const esker_batch,
    durability: i32,
    position: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        commit(db, batch, durability, position, |db, batch, class| match class {
            None => db.write(batch),
            Some(class) => db.write_with(batch, class),
        })
    })
}

/// Commits a batch as `esker_write` does, but never waits because writers are slowed, for memory, or
/// for space on a full device: then it fails with `ESKER_WOULD_BLOCK`, and nothing is written. With
/// `ESKER_DISK` it waits for the sync.
///
/// Errors: as `esker_write`; `ESKER_WOULD_BLOCK`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_try_write(
    db: *const esker_db,
    batch: *const esker_batch,
    durability: i32,
    position: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        commit(db, batch, durability, position, |db, batch, class| match class {
            None => db.try_write(batch),
            Some(class) => db.try_write_with(batch, class),
        })
    })
}
