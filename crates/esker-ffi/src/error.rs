//! Errors as C sees them: a code, and a handle with the details.

#![allow(unsafe_code, reason = "these are exported functions")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{answer, free, quiet, shared, take, write_if};
use crate::code::esker_code;
use crate::code::esker_code::*;
use crate::fault::{ErrorInfo, esker_error};
use crate::text::Text;
use std::ffi::c_char;

/// The name of a code, in lower case with dashes, such as `not-a-database`; `unknown` for a number
/// that is no code. The text is constant and ends with a zero byte.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub extern "C" fn esker_code_name(code: i32) -> *const c_char {
    let name = match code {
        0 => c"ok",
        1 => c"io",
        2 => c"corruption",
        3 => c"locked",
        4 => c"not-a-database",
        5 => c"missing",
        6 => c"exists",
        7 => c"unknown-format",
        8 => c"key-too-long",
        9 => c"value-too-large",
        10 => c"batch-too-large",
        11 => c"disk-full",
        12 => c"poisoned",
        13 => c"closed",
        14 => c"forked",
        15 => c"keyspace-dropped",
        16 => c"comparator-missing",
        17 => c"comparator-mismatch",
        18 => c"user-code-panicked",
        19 => c"read-only",
        20 => c"invalid-argument",
        21 => c"conflict",
        22 => c"deadlock",
        23 => c"lock-timeout",
        24 => c"aborted",
        25 => c"merge-operator-missing",
        26 => c"merge-operator-mismatch",
        27 => c"merge-failed",
        28 => c"branch-missing",
        29 => c"branch-exists",
        30 => c"unfinished",
        31 => c"would-block",
        32 => c"out-of-order",
        33 => c"interrupted",
        100 => c"misuse",
        101 => c"panic",
        102 => c"other",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// The code of an error; `ESKER_OK` for NULL, `ESKER_MISUSE` if the handle is no error.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_code(error: *const esker_error) -> esker_code {
    if error.is_null() {
        return ESKER_OK;
    }
    quiet(ESKER_MISUSE, || Ok(shared(error)?.code))
}

/// The message of an error: one line of UTF-8 that names what failed and the remedy, followed by a
/// zero byte. It lives as long as the error. Never NULL.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_message(error: *const esker_error) -> *const c_char {
    let otherwise = if error.is_null() { c"no error" } else { c"this is no esker_error" };
    quiet(otherwise.as_ptr(), || Ok(shared(error)?.message.as_ptr()))
}

/// The file or directory that an error concerns, or NULL. A zero byte follows it; its length goes
/// to `len`, which may be NULL. The text lives as long as the error.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_path(
    error: *const esker_error,
    len: *mut usize,
) -> *const c_char {
    text_of(error, len, |info| info.path.as_ref())
}

/// Writes the offset of the damage in the file, in bytes, to `offset`; false if the error has none.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_offset(error: *const esker_error, offset: *mut u64) -> bool {
    write_if(offset, 0);
    quiet(false, || {
        let Some(known) = shared(error)?.offset else { return Ok(false) };
        write_if(offset, known);
        Ok(true)
    })
}

/// The damaged part of the file format, such as `block`, or NULL; as `esker_error_path`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_section(
    error: *const esker_error,
    len: *mut usize,
) -> *const c_char {
    text_of(error, len, |info| info.section.as_ref())
}

/// The keyspace that an error concerns, or NULL; as `esker_error_path`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_keyspace(
    error: *const esker_error,
    len: *mut usize,
) -> *const c_char {
    text_of(error, len, |info| info.keyspace.as_ref())
}

/// The branch or named snapshot that an error concerns, or NULL; as `esker_error_path`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_branch(
    error: *const esker_error,
    len: *mut usize,
) -> *const c_char {
    text_of(error, len, |info| info.branch.as_ref())
}

/// The key of a conflict, or the lowest key that damage may concern, or NULL if none is known; as
/// `esker_error_path`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_low_key(
    error: *const esker_error,
    len: *mut usize,
) -> *const c_char {
    text_of(error, len, |info| info.keys.as_ref().map(|(low, _)| low))
}

/// The key of a conflict, or the key up to which damage may reach, or NULL if none is known; as
/// `esker_error_path`.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_high_key(
    error: *const esker_error,
    len: *mut usize,
) -> *const c_char {
    text_of(error, len, |info| info.keys.as_ref().map(|(_, high)| high))
}

/// The operating system's number for an `ESKER_IO` error (`errno`), or 0.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_os_code(error: *const esker_error) -> i32 {
    quiet(0, || Ok(shared(error)?.os_code))
}

/// After how many microseconds it is worth to repeat a call that failed with `ESKER_WOULD_BLOCK`: an
/// estimate. 0 for other errors. The message says what the call would have waited for.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_retry_after(error: *const esker_error) -> u64 {
    quiet(0, || Ok(shared(error)?.retry_after))
}

/// The earlier failure that caused an `ESKER_POISONED` error, or NULL. It belongs to the error: it
/// lives as long, and freeing it does nothing.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_cause(error: *const esker_error) -> *const esker_error {
    quiet(std::ptr::null(), || {
        let cause = shared(error)?.cause.as_ref();
        Ok(cause.map_or(std::ptr::null(), |cause| std::ptr::from_ref(&**cause).cast()))
    })
}

/// Frees an error. NULL is fine.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_error_free(error: *mut esker_error) {
    if quiet(false, || Ok(!shared(error.cast_const())?.is_cause)) {
        free(error);
    }
}

/// Frees an error and returns its value; `None` for a handle that does not own an error.
///
/// # Safety
/// B1 for `error`, which is not used any more.
pub(crate) unsafe fn take_error(error: *mut esker_error) -> Option<ErrorInfo> {
    let own = quiet(false, || Ok(!shared(error.cast_const())?.is_cause));
    if own { take(error) } else { None }
}

/// A text of an error.
///
/// # Safety
/// B1 for `error`, B3 for `len`.
unsafe fn text_of(
    error: *const esker_error,
    len: *mut usize,
    which: impl FnOnce(&'static ErrorInfo) -> Option<&'static Text>,
) -> *const c_char {
    write_if(len, 0);
    quiet(std::ptr::null(), || Ok(answer(which(shared(error)?), len)))
}

#[cfg(test)]
mod tests;
