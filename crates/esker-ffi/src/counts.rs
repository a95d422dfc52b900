//! How many entries a range has, and where to cut it into parts.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, place, range, shared, write_if};
use crate::code::esker_code;
use crate::fault::esker_error;
use crate::keyspace::esker_keyspace;
use crate::value::{esker_list, give_list};
use std::ffi::c_void;

/// Counts the entries from `start` up to, not including, `end`, as they are now. NULL with the length 0
/// means no bound on that side. What a run segment alone holds of the range is known without reading
/// it; entries elsewhere are read. Errors: as `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_count(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    entries: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(entries, "entries", 0)?;
        let range = range((start, start_len), (end, end_len))?;
        *place = shared(keyspace)?.keyspace.count::<&[u8]>(range)?;
        Ok(())
    })
}

/// Estimates the number of entries from `start` up to, not including, `end`, without reading any.
/// `entries` is the middle of what is possible, and `deviation`, which may be NULL, says by how many it
/// may be wrong, up or down; 0: it is exact. Otherwise as `esker_count`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_approximate_count(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    entries: *mut u64,
    deviation: *mut u64,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(deviation, 0);
        let place = place(entries, "entries", 0)?;
        let range = range((start, start_len), (end, end_len))?;
        let estimate = shared(keyspace)?.keyspace.approximate_count::<&[u8]>(range)?;
        *place = estimate.entries;
        write_if(deviation, estimate.error);
        Ok(())
    })
}

/// Lists keys that cut the range from `start` up to, not including, `end` into parts of about equal
/// bytes, for scans by several threads: at most `parts - 1`, in order, strictly within the range. It
/// reads nothing and knows only run segments, of about 1 MiB: a range of few of them gives fewer keys,
/// and entries that were not flushed do not count. NULL with the length 0 means no bound on that
/// side. Free the list with `esker_list_free`. Errors: as `esker_get`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_split_points(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    parts: usize,
    keys: *mut *mut esker_list,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(keys, "keys", std::ptr::null_mut())?;
        let range = range((start, start_len), (end, end_len))?;
        *place = give_list(shared(keyspace)?.keyspace.split_points::<&[u8]>(range, parts)?);
        Ok(())
    })
}
