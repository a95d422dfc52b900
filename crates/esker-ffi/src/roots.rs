//! Copies of a database that share its files.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, path, shared};
use crate::database::esker_db;
use crate::error::{esker_code, esker_error};
use std::ffi::c_char;

/// Makes a database of its own in another directory, with what this one holds at one moment over
/// all keyspaces, while reads and writes go on. It is durable when the call returns. Data files are
/// shared by hard links, or copied where that cannot be; neither database depends on the other
/// afterwards.
///
/// Errors: `ESKER_EXISTS` if anything stands at the path, and nothing is changed;
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
