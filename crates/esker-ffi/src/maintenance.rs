//! Maintenance: flush, compact, statistics, verify, repair.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, exclusive, path, place, range, shared, write_if};
use crate::code::esker_code;
use crate::database::esker_db;
use crate::fault::{Result, esker_error, misuse};
use crate::keyspace::esker_keyspace;
use crate::options::esker_options;
use crate::value::{esker_value, give_text};
use esker::repair;
use std::ffi::{c_char, c_void};

/// Says whether a long call is to end: true ends it. It gets the `context` of that call, on the thread
/// that made it, before the call waits and about twenty times a second while it does. It may look at
/// a flag that a handler of signals, a timer or another thread sets, and it may call this library. It
/// must return (no `longjmp`, no exception).
// SAFETY: the giver of such a function promises that it may be called so (B5).
pub type esker_interrupted = Option<unsafe extern "C" fn(context: *mut c_void) -> bool>;

/// What the engine asks, which then asks C.
///
/// # Safety
/// B5 for `interrupted`, for as long as the result is used.
unsafe fn asks(interrupted: esker_interrupted, context: *mut c_void) -> Result<impl Fn() -> bool> {
    let Some(interrupted) = interrupted else {
        return misuse("the function that says whether the call is to end is NULL: give one");
    };
    // SAFETY: the giver promises that it may be called so, and returns (B5).
    Ok(move || unsafe { interrupted(context) })
}

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

/// As `esker_flush`, until `interrupted` returns true. An interrupted flush goes on in the background as
/// far as it was begun. What is in memory is in the log as before, unless it was written with
/// `ESKER_DURABILITY_BUFFERED`.
///
/// Errors: as `esker_flush`; `ESKER_INTERRUPTED`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_flush_until(
    db: *const esker_db,
    interrupted: esker_interrupted,
    context: *mut c_void,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        // The function may free the handle.
        let db = shared(db)?.db.clone();
        Ok(db.flush_until(asks(interrupted, context)?)?)
    })
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

/// As `esker_compact`, until `interrupted` returns true. An interrupted compaction loses nothing: what is
/// compacted stays so, what has been begun ends in the background, and the rest is taken back, unless
/// it is due anyway or another call waits for it. A later compaction goes on with what is left.
///
/// Errors: as `esker_compact`; `ESKER_INTERRUPTED`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_compact_until(
    db: *const esker_db,
    interrupted: esker_interrupted,
    context: *mut c_void,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        // The function may free the handle.
        let db = shared(db)?.db.clone();
        Ok(db.compact_until(asks(interrupted, context)?)?)
    })
}

/// As `esker_keyspace_compact`, until `interrupted` returns true: as `esker_compact_until`.
///
/// Errors: as `esker_keyspace_compact`; `ESKER_INTERRUPTED`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_compact_until(
    keyspace: *const esker_keyspace,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    interrupted: esker_interrupted,
    context: *mut c_void,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        // The function may free the handle.
        let keyspace = shared(keyspace)?.keyspace.clone();
        let range = range((start, start_len), (end, end_len))?;
        let interrupted = asks(interrupted, context)?;
        Ok(keyspace.compact_range_until::<&[u8]>(range, interrupted)?)
    })
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

/// As `esker_verify`, until `interrupted` returns true, which is called before each part of a file that
/// is read. An end by it is no error of this call: `ended`, which may be NULL, and `interrupted` in the
/// report say that the report is about what was read until then.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_verify_until(
    db: *const esker_db,
    interrupted: esker_interrupted,
    context: *mut c_void,
    ended: *mut bool,
    problems: *mut usize,
    json: *mut *mut esker_value,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        write_if(ended, false);
        write_if(problems, 0);
        write_if(json, std::ptr::null_mut());
        // The function may free the handle.
        let db = shared(db)?.db.clone();
        let report = db.verify_until(asks(interrupted, context)?)?;
        write_if(ended, report.interrupted);
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
