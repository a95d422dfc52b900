//! Databases and snapshots.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::batch::leveldb_writebatch_t;
use crate::border::{
    answer, bytes, contained, copy, copy_text, destroy, hand_over, object, put, text,
};
use crate::comparator::Order;
use crate::handles::{leveldb_snapshot_t, leveldb_t};
use crate::options::{leveldb_options_t, leveldb_readoptions_t, leveldb_writeoptions_t};
use crate::status::{Result, Status};
use crate::{manage, open, properties, rep};
use esker::{Durability, Snapshot};
use std::ffi::{OsStr, c_char, c_int};
use std::path::Path;
use std::ptr;

/// What a write survives.
///
/// # Safety
/// L1.
pub(crate) unsafe fn durability(options: *const leveldb_writeoptions_t) -> Durability {
    // SAFETY: NULL or options of the program (L1).
    match options.as_ref() {
        Some(options) if options.sync => Durability::Disk,
        _ => Durability::Process,
    }
}

/// The snapshot of read options.
///
/// # Safety
/// L1.
#[inline]
pub(crate) unsafe fn snapshot_of<'a>(
    options: *const leveldb_readoptions_t,
) -> Option<&'a Snapshot> {
    // SAFETY: both are NULL or objects of the program (L1).
    options.as_ref().and_then(|options| options.snapshot.as_ref()).map(|held| &held.snapshot)
}

/// Options, path and order of a call that needs no open database.
///
/// # Safety
/// L1.
unsafe fn request<'a>(
    options: *const leveldb_options_t,
    name: *const c_char,
) -> Result<(&'a leveldb_options_t, &'a Path, Option<Order>)> {
    let options = object(options, "the options object")?;
    let name = text(name).ok_or_else(|| Status::null("the name of the database"))?;
    // SAFETY: NULL or a comparator of the program (L1).
    let comparator = options.comparator.as_ref();
    let order = comparator.map(|comparator| {
        comparator.order().ok_or_else(|| Status::invalid("the comparator lacks a function or name"))
    });
    Ok((options, path(name.to_bytes()), order.transpose()?))
}

#[cfg(unix)]
fn path(name: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(OsStr::from_bytes(name))
}

#[cfg(not(unix))]
fn path(name: &[u8]) -> &Path {
    Path::new(std::str::from_utf8(name).unwrap_or_default())
}

/// Opens the database in a directory. NULL after an error.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_open(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut leveldb_t {
    answer(errptr, ptr::null_mut(), || {
        let (options, path, order) = request(options, name)?;
        let (db, entries) = open::open(path, options, order)?;
        Ok(hand_over(leveldb_t { db, entries }))
    })
}

/// Closes a database, which ends its background work.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_close(db: *mut leveldb_t) {
    // SAFETY: NULL or a database of the program (L1).
    if let Some(open) = db.as_ref() {
        contained((), || {
            if let Err(error) = open.db.close() {
                log::error!("cannot close {}: {error}", open.db.path().display());
            }
        });
    }
    destroy(db);
}

/// Stores a value under a key.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_put(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    val: *const c_char,
    vallen: usize,
    errptr: *mut *mut c_char,
) {
    answer(errptr, (), || {
        let entries = &object(db, "the database")?.entries;
        let (key, value) = (bytes(key, keylen), bytes(val, vallen));
        Ok(entries.insert_with(key, value, durability(options))?)
    });
}

/// Removes a key, if it exists.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_delete(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    key: *const c_char,
    keylen: usize,
    errptr: *mut *mut c_char,
) {
    answer(errptr, (), || {
        let entries = &object(db, "the database")?.entries;
        Ok(entries.remove_with(bytes(key, keylen), durability(options))?)
    });
}

/// Writes a batch: all of it or nothing. The batch does not change.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_write(
    db: *mut leveldb_t,
    options: *const leveldb_writeoptions_t,
    batch: *mut leveldb_writebatch_t,
    errptr: *mut *mut c_char,
) {
    answer(errptr, (), || {
        let batch = object(batch, "the batch")?;
        write(object(db, "the database")?, &batch.rep, durability(options))
    });
}

/// Writes the operations of a batch in LevelDB's form.
pub(crate) fn write(db: &leveldb_t, rep: &[u8], durability: Durability) -> Result<()> {
    let mut batch = esker::Batch::new();
    rep::read(rep, |op| match op {
        rep::Op::Put(key, value) => batch.insert(&db.entries, key, value),
        rep::Op::Delete(key) => batch.remove(&db.entries, key),
    })?;
    if batch.is_empty() && durability == Durability::Disk {
        // A synced write makes all earlier writes durable, even if it writes nothing itself.
        return Ok(db.db.sync()?);
    }
    db.db.write_with(batch, durability)?;
    Ok(())
}

/// The value under a key, in memory from `malloc`, and its length; NULL and 0 if there is none.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_get(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
    key: *const c_char,
    keylen: usize,
    vallen: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    put(vallen, 0);
    answer(errptr, ptr::null_mut(), || {
        let entries = &object(db, "the database")?.entries;
        let key = bytes(key, keylen);
        // Copied once, from the engine's memory to the program's.
        let take = |value: &[u8]| (copy(value), value.len());
        let found = match snapshot_of(options) {
            None => entries.get_with(key, take),
            Some(snapshot) => snapshot.get_with(entries, key, take),
        };
        let Some((value, len)) = found? else { return Ok(ptr::null_mut()) };
        if value.is_null() {
            return Err(Status::io("there is no memory for the value"));
        }
        put(vallen, len);
        Ok(value)
    })
}

/// Takes a snapshot of a database; NULL if that fails.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_create_snapshot(db: *mut leveldb_t) -> *const leveldb_snapshot_t {
    let taken = answer(ptr::null_mut(), None, || {
        let snapshot = object(db, "the database")?.db.snapshot()?;
        Ok(Some(leveldb_snapshot_t { snapshot }))
    });
    taken.map_or(ptr::null(), |snapshot| hand_over(snapshot).cast_const())
}

/// Releases a snapshot.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_release_snapshot(
    db: *mut leveldb_t,
    snapshot: *const leveldb_snapshot_t,
) {
    let _ = db;
    destroy(snapshot.cast_mut());
}

/// The value of a property, a text from `malloc`; NULL if there is none of that name.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_property_value(
    db: *mut leveldb_t,
    propname: *const c_char,
) -> *mut c_char {
    let value = answer(ptr::null_mut(), None, || {
        let db = object(db, "the database")?;
        let name = text(propname).and_then(|name| name.to_str().ok()).unwrap_or_default();
        properties::value(db, name)
    });
    value.map_or(ptr::null_mut(), |text| copy_text(&text))
}

/// Estimates the bytes that the keys of each range take, without its limit.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_approximate_sizes(
    db: *mut leveldb_t,
    num_ranges: c_int,
    range_start_key: *const *const c_char,
    range_start_key_len: *const usize,
    range_limit_key: *const *const c_char,
    range_limit_key_len: *const usize,
    sizes: *mut u64,
) {
    let missing = range_start_key.is_null()
        || range_start_key_len.is_null()
        || range_limit_key.is_null()
        || range_limit_key_len.is_null();
    if missing || sizes.is_null() {
        return;
    }
    for at in 0..usize::try_from(num_ranges).unwrap_or(0) {
        // SAFETY: the arrays have at least `at + 1` elements.
        let size = answer(ptr::null_mut(), 0, || {
            let start = bytes(*range_start_key.add(at), *range_start_key_len.add(at));
            let limit = bytes(*range_limit_key.add(at), *range_limit_key_len.add(at));
            Ok(object(db, "the database")?.entries.approximate_size(start..limit)?)
        });
        // SAFETY: as above.
        sizes.add(at).write(size);
    }
}

/// Compacts the keys from `start_key` to `limit_key`; NULL: from the first, to the last.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_compact_range(
    db: *mut leveldb_t,
    start_key: *const c_char,
    start_key_len: usize,
    limit_key: *const c_char,
    limit_key_len: usize,
) {
    use std::ops::Bound;
    let bound = |key: *const c_char, len| (!key.is_null()).then(|| bytes(key, len));
    let start = bound(start_key, start_key_len).map_or(Bound::Unbounded, Bound::Included);
    // LevelDB includes the last key. Here the partition that holds it is compacted anyway,
    // unless the partition begins with that key.
    let limit = bound(limit_key, limit_key_len).map_or(Bound::Unbounded, Bound::Excluded);
    let compacted = answer(ptr::null_mut(), Ok(()), || {
        let db = object(db, "the database")?;
        Ok(db.entries.compact_range::<&[u8]>((start, limit)))
    });
    if let Err(error) = compacted {
        // LevelDB's function returns nothing either.
        log::warn!("a range could not be compacted: {error}");
    }
}

/// Removes a database's files, and its directory if nothing else is in it.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_destroy_db(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    answer(errptr, (), || {
        let (_, path, _) = request(options, name)?;
        manage::destroy(path)
    });
}

/// Replaces a damaged database by a new one with everything that can be read of it. The damaged one
/// is kept beside it.
// SAFETY: the name is LevelDB's, whose place this library takes; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_repair_db(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    answer(errptr, (), || {
        let (options, path, order) = request(options, name)?;
        manage::repair(path, options, order)
    });
}
