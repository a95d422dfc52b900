//! A database: open, close, durability and its keyspaces.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{
    answer, border, exclusive, free, give, name, path, place, quiet, shared, shared_or_null,
    write_if,
};
use crate::callbacks::esker_comparator;
use crate::code::esker_code;
use crate::fault::esker_error;
use crate::handle::kind;
use crate::keyspace::{KeyspaceInner, esker_keyspace};
use crate::operators::{esker_keyspace_options, keyspace_options};
use crate::options::esker_options;
use crate::text::Text;
use crate::value::{esker_list, give_list};
use esker::Db;
use std::ffi::c_char;

/// An open database. It may be used from any thread.
pub struct esker_db(());

kind!(esker_db, b"eskdatab", DbInner);

/// The value behind an [`esker_db`].
pub(crate) struct DbInner {
    pub(crate) db: Db,
    path: Text,
    pub(crate) branch: Option<Text>,
}

/// A handle on an open database.
pub(crate) fn give_db(db: Db) -> *mut esker_db {
    let path = Text::of_path(db.path());
    let branch = db.branch_name().map(Text::new);
    give(DbInner { db, path, branch })
}

/// The version of this library, such as `0.1.0`. The text is constant and ends with a zero byte.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn esker_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Opens the database in a directory, or makes one. The path's length may be `ESKER_NUL`; options
/// may be NULL for the default ones. The handle goes to `db`; close it with `esker_close` and free
/// it with `esker_db_free`.
///
/// Errors: `ESKER_LOCKED` if it is open elsewhere, `ESKER_NOT_A_DATABASE` if the directory holds
/// something else, `ESKER_MISSING` and `ESKER_EXISTS` as the options ask, `ESKER_UNKNOWN_FORMAT`,
/// `ESKER_CORRUPTION`, `ESKER_COMPARATOR_MISSING`, `ESKER_IO`. A failed open changes nothing.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_open(
    directory: *const c_char,
    directory_len: usize,
    options: *const esker_options,
    db: *mut *mut esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(db, "db", std::ptr::null_mut())?;
        let directory = path(directory, directory_len)?;
        let options =
            if options.is_null() { esker::Options::default() } else { exclusive(options)?.clone() };
        *place = give_db(Db::open_with(directory, options)?);
        Ok(())
    })
}

/// Closes the database for every handle: ends background work, writes what is in memory, and
/// reports what went wrong. Later calls of this function return the same result; all other calls
/// return `ESKER_CLOSED`, on keyspaces, snapshots and iterators too. All handles must still be
/// freed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_close(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(shared(db)?.db.close()?))
}

/// Frees the handle. NULL is fine. If `esker_close` was not called, the database closes when its
/// last handle, keyspace, snapshot and iterator are freed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_free(db: *mut esker_db) {
    free(db);
}

/// The directory, followed by a zero byte; its length goes to `len`, which may be NULL. The text
/// lives as long as the handle. NULL if this is no `esker_db`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_path(db: *const esker_db, len: *mut usize) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || Ok(answer(Some(&shared(db)?.path), len)))
}

/// Writes the database's unique identifier to `id`, which has room for 16 bytes. It was drawn at
/// random when the database was made. A copy of the directory has the same one.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_id(
    db: *const esker_db,
    id: *mut u8,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(id.cast::<[u8; 16]>(), "id", [0; 16])?;
        *place = shared(db)?.db.id();
        Ok(())
    })
}

/// Opens the keyspace with a name, and makes it on first use. The name's length may be `ESKER_NUL`.
/// Without a comparator (NULL) the keyspace keeps the order it was made with, which for a new one
/// is byte order; with one, the keyspace must have been made with a comparator of the same name.
/// Free the handle with `esker_keyspace_free`.
///
/// Errors: `ESKER_INVALID_ARGUMENT` unless the name has 1 to 255 bytes of UTF-8,
/// `ESKER_COMPARATOR_MISSING`, `ESKER_COMPARATOR_MISMATCH`, and as `esker_put` if the keyspace has
/// to be made.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_open(
    db: *const esker_db,
    keyspace_name: *const c_char,
    keyspace_name_len: usize,
    comparator: *const esker_comparator,
    keyspace: *mut *mut esker_keyspace,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(keyspace, "keyspace", std::ptr::null_mut())?;
        let db = &shared(db)?.db;
        let wanted = name(keyspace_name, keyspace_name_len, "name of the keyspace")?;
        let keyspace = match shared_or_null(comparator)? {
            None => db.keyspace(wanted)?,
            Some(comparator) => db.keyspace_ordered(wanted, comparator.clone())?,
        };
        *place = give(KeyspaceInner::new(db.clone(), keyspace));
        Ok(())
    })
}

/// Opens the keyspace with a name, and makes it on first use with the options, which may be NULL.
/// They may change the time to live and the compaction filter of an existing keyspace. Otherwise as
/// `esker_keyspace_open`.
///
/// Errors: as there; `ESKER_MERGE_OPERATOR_MISSING` if its operator was not given when the database
/// was opened, `ESKER_MERGE_OPERATOR_MISMATCH` if it was made with another,
/// `ESKER_INVALID_ARGUMENT` for a time to live of zero.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_open_with(
    db: *const esker_db,
    keyspace_name: *const c_char,
    keyspace_name_len: usize,
    options: *const esker_keyspace_options,
    keyspace: *mut *mut esker_keyspace,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(keyspace, "keyspace", std::ptr::null_mut())?;
        let db = &shared(db)?.db;
        let wanted = name(keyspace_name, keyspace_name_len, "name of the keyspace")?;
        let keyspace = db.keyspace_with(wanted, keyspace_options(options)?)?;
        *place = give(KeyspaceInner::new(db.clone(), keyspace));
        Ok(())
    })
}

/// The names of all keyspaces, in order. Free the list with `esker_list_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspaces(
    db: *const esker_db,
    names: *mut *mut esker_list,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(names, "names", std::ptr::null_mut())?;
        *place = give_list(shared(db)?.db.keyspaces()?);
        Ok(())
    })
}

/// Drops a keyspace and all its entries; `dropped`, which may be NULL, says whether it existed.
/// The time does not depend on its size. The keyspace `default` cannot be dropped.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_drop_keyspace(
    db: *const esker_db,
    keyspace_name: *const c_char,
    keyspace_name_len: usize,
    dropped: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(dropped, false);
        let db = &shared(db)?.db;
        let name = name(keyspace_name, keyspace_name_len, "name of the keyspace")?;
        let was_there = db.drop_keyspace(name)?;
        write_if(dropped, was_there);
        Ok(())
    })
}

/// Makes everything written so far survive power loss, buffered writes too.
///
/// Errors: `ESKER_POISONED` if the sync fails, `ESKER_DISK_FULL`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_sync(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(shared(db)?.db.sync()?))
}

/// Waits until everything logged before a position, which `esker_write` returned, survives power
/// loss.
///
/// Errors: `ESKER_POISONED` if the sync fails; `ESKER_INVALID_ARGUMENT` for a position that no
/// write returned.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_wait_durable(
    db: *const esker_db,
    position: u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(shared(db)?.db.wait_durable(position)?))
}
