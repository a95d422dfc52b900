//! Copies of a database that share its files: checkpoints, branches, named snapshots.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{answer, border, name, path, place, quiet, shared, write_if};
use crate::code::esker_code;
use crate::database::{esker_db, give_db};
use crate::fault::{Result, esker_error};
use crate::value::{esker_list, give_list};
use esker::Db;
use std::ffi::c_char;
use std::time::UNIX_EPOCH;

/// Makes an independent database in another directory, with the state of all keyspaces at one
/// moment, while reads and writes go on. It is durable when the call returns. Data files are shared
/// by hard links, or copied where that is impossible; neither database depends on the other
/// afterwards.
///
/// Errors: `ESKER_EXISTS` if the path exists, and nothing is changed;
/// `ESKER_READ_ONLY`, `ESKER_DISK_FULL`, `ESKER_IO`, `ESKER_POISONED`. After an error there is no
/// database at the path.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_checkpoint(
    db: *const esker_db,
    directory: *const c_char,
    directory_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(shared(db)?.db.checkpoint(path(directory, directory_len)?)?))
}

/// Makes a branch of this database (or branch) as it is now: a database in the same directory that
/// begins with the same entries and then changes independently. No data is copied. The name has 1
/// to 255 bytes of UTF-8; its length may be `ESKER_NUL`. The handle goes to `branch`; every
/// function that takes a database takes it. Free it with `esker_db_free`. `esker_close` on it
/// closes the directory, for all its handles.
///
/// Errors: `ESKER_BRANCH_EXISTS` if there is a branch or named snapshot of this name,
/// `ESKER_BRANCH_MISSING` if this handle's own branch was dropped, and as `esker_put`. An error
/// changes nothing.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_branch(
    db: *const esker_db,
    branch_name: *const c_char,
    branch_name_len: usize,
    branch: *mut *mut esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || open(db, (branch_name, branch_name_len), branch, Db::branch))
}

/// Opens a branch that was made before, also before the database was last opened; otherwise as
/// `esker_branch`. `ESKER_BRANCH_MISSING` if there is none of this name.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_branch_open(
    db: *const esker_db,
    branch_name: *const c_char,
    branch_name_len: usize,
    branch: *mut *mut esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || open(db, (branch_name, branch_name_len), branch, Db::open_branch))
}

/// The names of all branches of the directory, in order. Free the list with `esker_list_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_branches(
    db: *const esker_db,
    names: *mut *mut esker_list,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(names, "names", std::ptr::null_mut())?;
        *place = give_list(shared(db)?.db.branches()?);
        Ok(())
    })
}

/// Drops a branch and all its entries; `dropped`, which may be NULL, says whether it existed. Its
/// handles then return `ESKER_BRANCH_MISSING`; open iterators go on. Branches made from it, and the
/// one it was made from, keep what they share with it. As `esker_put`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_branch_drop(
    db: *const esker_db,
    branch_name: *const c_char,
    branch_name_len: usize,
    dropped: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(dropped, false);
        let db = &shared(db)?.db;
        let was_there = db.drop_branch(name(branch_name, branch_name_len, "name")?)?;
        write_if(dropped, was_there);
        Ok(())
    })
}

/// Keeps the present state of this database (or branch) as a named snapshot, which survives closing
/// and reopening. It is durable when the call returns. Otherwise as `esker_branch`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_named_snapshot(
    db: *const esker_db,
    snapshot_name: *const c_char,
    snapshot_name_len: usize,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let db = &shared(db)?.db;
        Ok(db.snapshot_named(name(snapshot_name, snapshot_name_len, "name")?)?)
    })
}

/// Opens a named snapshot as a read-only database: writes return `ESKER_READ_ONLY`, and branches
/// can be made of it. Otherwise as `esker_branch_open`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_named_snapshot_open(
    db: *const esker_db,
    snapshot_name: *const c_char,
    snapshot_name_len: usize,
    snapshot: *mut *mut esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        open(db, (snapshot_name, snapshot_name_len), snapshot, Db::open_named_snapshot)
    })
}

/// The names of all named snapshots of the directory, in order. Free the list with
/// `esker_list_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_named_snapshots(
    db: *const esker_db,
    names: *mut *mut esker_list,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(names, "names", std::ptr::null_mut())?;
        *place = give_list(shared(db)?.db.named_snapshots()?);
        Ok(())
    })
}

/// Drops a named snapshot; otherwise as `esker_branch_drop`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_named_snapshot_drop(
    db: *const esker_db,
    snapshot_name: *const c_char,
    snapshot_name_len: usize,
    dropped: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(dropped, false);
        let db = &shared(db)?.db;
        let was_there = db.drop_named_snapshot(name(snapshot_name, snapshot_name_len, "name")?)?;
        write_if(dropped, was_there);
        Ok(())
    })
}

/// The name of a handle's branch or named snapshot, or NULL for the database itself. A zero byte
/// follows it; its length goes to `len`, which may be NULL. The text lives as long as the handle.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_branch_name(
    db: *const esker_db,
    len: *mut usize,
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || Ok(answer(shared(db)?.branch.as_ref(), len)))
}

/// When a handle's branch or named snapshot was made: milliseconds since the beginning of 1970
/// (UTC) by the system's clock; 0 for the database itself, and if this is no `esker_db`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_made_at(db: *const esker_db) -> u64 {
    quiet(0, || {
        let made_at = shared(db)?.db.made_at();
        let since = made_at.and_then(|made_at| made_at.duration_since(UNIX_EPOCH).ok());
        Ok(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    })
}

/// Makes a handle on a branch or named snapshot that `open` finds or makes.
///
/// # Safety
/// B1 for `db`, B2 for the name, B3 for `branch`.
unsafe fn open(
    db: *const esker_db,
    (data, len): (*const c_char, usize),
    branch: *mut *mut esker_db,
    open: impl FnOnce(&Db, &str) -> esker::Result<Db>,
) -> Result<()> {
    let place = place(branch, "branch", std::ptr::null_mut())?;
    let db = &shared(db)?.db;
    *place = give_db(open(db, name(data, len, "name")?)?);
    Ok(())
}
