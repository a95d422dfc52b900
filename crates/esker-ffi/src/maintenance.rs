//! Maintenance: flush, compact, statistics, verify, repair.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, exclusive, path, place, shared, write_if};
use crate::code::esker_code;
use crate::database::esker_db;
use crate::fault::{Result, esker_error};
use crate::keyspace::esker_keyspace;
use crate::options::esker_options;
use crate::value::{esker_value, give_text};
use esker::repair;
use std::ffi::c_char;

/// Writes what is in memory to files.
///
/// Errors: `ESKER_DISK_FULL`, `ESKER_IO`, `ESKER_POISONED`, `ESKER_CLOSED`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_flush(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(shared(db)?.db.flush()?))
}

/// Flushes, and compacts what a compaction can make smaller, in all keyspaces.
///
/// Errors: as `esker_keyspace_compact`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_compact(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(shared(db)?.db.compact()?))
}

/// Waits until no background work is left.
///
/// Errors: the failure that stopped the background work for good.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_wait_until_idle(
    db: *const esker_db,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || Ok(shared(db)?.db.wait_until_idle()?))
}

/// The database's statistics, as JSON: counters since open, sampled latencies and stalls in
/// microseconds, sizes in bytes, and the shape of each keyspace's tree. The text goes to `json`;
/// release it with `esker_value_free`. Field names do not change; later versions may add some.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_stats(
    db: *const esker_db,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(json, "json", std::ptr::null_mut())?;
        let stats = unforked(db)?.stats();
        *place = give_text(esker_json::stats(&stats, str::to_owned).to_string());
        Ok(())
    })
}

/// The database's statistics as text in the format OpenMetrics 1.0, for Prometheus and other
/// collectors. The text goes to `text`; release it with `esker_value_free`. Names of metrics do not
/// change; later versions may add some.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_openmetrics(
    db: *const esker_db,
    text: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(text, "text", std::ptr::null_mut())?;
        *place = give_text(unforked(db)?.openmetrics());
        Ok(())
    })
}

/// The run segments of a keyspace, from old to new and in key order, as JSON: for each its file,
/// offset, bytes and entries, its age, its first and last key in hexadecimal, and whether it holds
/// range tombstones. Otherwise as `esker_stats`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_segments(
    keyspace: *const esker_keyspace,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let place = place(json, "json", std::ptr::null_mut())?;
        let segments = shared(keyspace)?.keyspace.segments()?;
        *place = give_text(esker_json::segments(&segments).to_string());
        Ok(())
    })
}

/// Reads everything that is stored and reports damage: the number of problems goes to `problems`
/// and the report, as JSON, to `json`; either may be NULL. Release the report with
/// `esker_value_free`. Damage is no error of this call.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_verify(
    db: *const esker_db,
    problems: *mut usize,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(problems, 0);
        write_if(json, std::ptr::null_mut());
        let report = shared(db)?.db.verify()?;
        write_if(problems, report.problems.len());
        answer_json(json, || esker_json::verify(&report).to_string());
        Ok(())
    })
}

/// Reports, as JSON, what is intact in the database in a directory, what is lost, and what
/// `esker_repair` would save. Changes nothing. Comparators are taken from the options, which may be
/// NULL; `whole`, which may be NULL, says whether nothing is damaged or lost. Damage is no error of
/// this call.
///
/// Errors: `ESKER_MISSING` and `ESKER_NOT_A_DATABASE` if there is no database, `ESKER_LOCKED` if it
/// is open, `ESKER_UNKNOWN_FORMAT`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_repair_plan(
    directory: *const c_char,
    directory_len: usize,
    options: *const esker_options,
    whole: *mut bool,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(whole, false);
        write_if(json, std::ptr::null_mut());
        let plan = repair::plan(path(directory, directory_len)?, &options_of(options)?)?;
        write_if(whole, plan.is_whole());
        answer_json(json, || esker_json::plan(&plan).to_string());
        Ok(())
    })
}

/// Saves everything readable of the database in a directory into a new one at `to`, and reports as
/// `esker_repair_plan`. `to` must not exist or must be an empty directory. The damaged database is
/// not changed.
///
/// Errors: as `esker_repair_plan`; `ESKER_EXISTS` if `to` holds something,
/// `ESKER_INVALID_ARGUMENT` if it lies inside the directory, and the errors of opening and writing
/// the new database. After an error, do not use what was written.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_repair(
    directory: *const c_char,
    directory_len: usize,
    to: *const c_char,
    to_len: usize,
    options: *const esker_options,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(json, std::ptr::null_mut());
        let (from, to) = (path(directory, directory_len)?, path(to, to_len)?);
        let salvaged = repair::salvage(from, to, &options_of(options)?)?;
        answer_json(json, || esker_json::salvaged(&salvaged).to_string());
        Ok(())
    })
}

/// The database behind a pointer: statistics can be read after close too, but not in a forked child
/// (R26).
///
/// # Safety
/// B1 for `db`.
unsafe fn unforked<'a>(db: *const esker_db) -> Result<&'a esker::Db> {
    let db = &shared(db)?.db;
    match db.keyspaces() {
        Err(forked @ esker::Error::Forked) => Err(forked.into()),
        _ => Ok(db),
    }
}

/// The options behind a pointer, or the default ones.
///
/// # Safety
/// B1 for `options`.
unsafe fn options_of(options: *const esker_options) -> Result<esker::Options> {
    if options.is_null() {
        return Ok(esker::Options::default());
    }
    Ok(exclusive(options)?.clone())
}

/// Returns a text, if the caller gave a place for it.
///
/// # Safety
/// B3 for `place`.
unsafe fn answer_json(place: *mut *mut esker_value, text: impl FnOnce() -> String) {
    if !place.is_null() {
        write_if(place, give_text(text()));
    }
}
