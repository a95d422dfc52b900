//! Calls that say what they did, as JSON: a get, a scan and a put.
//!
//! Each does the operation like its counterpart without `explain`, and answers with the steps, the
//! blocks, the bytes, the waits and the times instead of the value. The JSON is that of
//! `esker explain --json`, because both come from `esker-json`. It holds no key and no value.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, bytes, place, range, shared};
use crate::code::esker_code;
use crate::fault::{Result, esker_error};
use crate::keyspace::esker_keyspace;
use crate::snapshot::esker_snapshot;
use crate::value::{esker_value, give_text};
use esker::{Explanation, Keyspace};
use std::ffi::c_void;

/// Reads a key as `esker_get` does, and says as JSON what the read did: the sources that it
/// searched, in order, how the search of each ended, the blocks and bytes that it read, and how many
/// microseconds each step took. The value is not returned. The text goes to `json`; release it with
/// `esker_value_free`. It holds no key and no value. Field names do not change; later versions may
/// add some.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_explain_get(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    explained_get(keyspace, (key, key_len), json, error, |keyspace, key| {
        Ok(keyspace.explain_get(key)?)
    })
}

/// Walks over at most `limit` entries from `start` up to, not including, `end`, and says what the
/// scan did: the blocks, bytes and time of each source in each partition, and how many entries it
/// passed without returning them. NULL with the length 0 means no bound on that side. Otherwise as
/// `esker_explain_get`. It is slower than a plain scan, because each move of each source is timed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_explain_scan(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    limit: u64,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        explained(json, || {
            let range = range((start, start_len), (end, end_len))?;
            Ok(shared(keyspace)?.keyspace.explain_scan::<&[u8]>(range, limit)?)
        })
    })
}

/// Inserts a value as `esker_put` does, with the durability of the database, and says how long each
/// phase of the write took and what it waited for. Otherwise as `esker_explain_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_explain_put(
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        explained(json, || {
            let keyspace = &shared(keyspace)?.keyspace;
            let (key, value) = (bytes(key, key_len, "key")?, bytes(value, value_len, "value")?);
            Ok(keyspace.explain_put(key, value)?)
        })
    })
}

/// As `esker_explain_get`, for what `esker_snapshot_get` does.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_snapshot_explain_get(
    snapshot: *const esker_snapshot,
    keyspace: *const esker_keyspace,
    key: *const c_void,
    key_len: usize,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    explained_get(keyspace, (key, key_len), json, error, |keyspace, key| {
        Ok(shared(snapshot)?.explain_get(keyspace, key)?)
    })
}

/// Returns the explanation of a read of a key.
///
/// # Safety
/// As for the exported functions.
unsafe fn explained_get(
    keyspace: *const esker_keyspace,
    (key, key_len): (*const c_void, usize),
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
    get: impl FnOnce(&Keyspace, &[u8]) -> Result<Explanation>,
) -> esker_code {
    border(error, || {
        explained(json, || get(&shared(keyspace)?.keyspace, bytes(key, key_len, "key")?))
    })
}

/// Returns the explanation of an operation, which is not begun without a place for the text.
///
/// # Safety
/// B3 for `json`.
unsafe fn explained(
    json: *mut *mut esker_value,
    operation: impl FnOnce() -> Result<Explanation>,
) -> Result<()> {
    let place = place(json, "json", std::ptr::null_mut())?;
    *place = give_text(esker_json::explanation(&operation()?).to_string());
    Ok(())
}
