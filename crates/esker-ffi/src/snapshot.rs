//! Snapshots.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, bytes, free, give, name, place, quiet, shared};
use crate::code::esker_code;
use crate::database::esker_db;
use crate::fault::esker_error;
use crate::handle::kind;
use crate::keyspace::{Places, bytes_list, esker_keyspace};
use crate::value::{esker_value, give_found};
use esker::Snapshot;
use esker::internals::kept::get_kept;
use std::ffi::{c_char, c_void};

/// The state of the whole database at one moment. It may be used from any thread. While it lives,
/// compactions keep what it sees.
pub struct esker_snapshot(());

kind!(esker_snapshot, b"esksnaps", Snapshot);

/// Takes a snapshot of the database's present state. Free it with `esker_snapshot_free`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_new(
    db: *const esker_db,
    snapshot: *mut *mut esker_snapshot,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(snapshot, "snapshot", std::ptr::null_mut())?;
        *place = give(shared(db)?.db.snapshot()?);
        Ok(())
    })
}

/// As `esker_snapshot_new`, with a label in UTF-8, which need not be unique and may be empty. The
/// statistics show by it who holds old data, and for how long: `esker_stats` in `snapshots`,
/// `esker_openmetrics` in `esker_snapshot_age_seconds`.
///
/// Errors: `ESKER_INVALID_ARGUMENT` if the label is not UTF-8.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_new_with_label(
    db: *const esker_db,
    label: *const c_char,
    label_len: usize,
    snapshot: *mut *mut esker_snapshot,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(snapshot, "snapshot", std::ptr::null_mut())?;
        let label = name(label, label_len, "label")?;
        *place = give(shared(db)?.db.snapshot_with_label(label)?);
        Ok(())
    })
}

/// Frees a snapshot. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_free(snapshot: *mut esker_snapshot) {
    free(snapshot);
}

/// The snapshot's sequence number: of two snapshots of one database, the one with the larger number
/// is the later one. 0 if this is no `esker_snapshot`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_position(snapshot: *const esker_snapshot) -> u64 {
    quiet(0, || Ok(shared(snapshot)?.position()))
}

/// The value that a key had; otherwise as `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_get(
    snapshot: *const esker_snapshot,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(value, "value", std::ptr::null_mut())?;
        let keyspace = &shared(keyspace)?.keyspace;
        let snapshot = Some(shared(snapshot)?);
        *place = give_found(get_kept(keyspace, snapshot, bytes(key, key_len, "key")?)?);
        Ok(())
    })
}

/// Whether a key had a value. As `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_contains(
    snapshot: *const esker_snapshot,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    found: *mut bool,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let found = place(found, "found", false)?;
        let keyspace = &shared(keyspace)?.keyspace;
        *found = shared(snapshot)?.contains_key(keyspace, bytes(key, key_len, "key")?)?;
        Ok(())
    })
}

/// The values that `count` keys had; otherwise as `esker_multi_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_multi_get(
    snapshot: *const esker_snapshot,
    keyspace: *const esker_keyspace,
    keys: *const *const c_void,
    key_lens: *const usize,
    count: usize,
    values: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let places = Places::new(values, count)?;
        let keyspace = &shared(keyspace)?.keyspace;
        let keys = bytes_list(keys, key_lens, count, ("keys", "key"))?;
        places.fill(shared(snapshot)?.multi_get(keyspace, keys)?);
        Ok(())
    })
}
