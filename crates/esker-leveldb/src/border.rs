//! The basics of every function: pointers and lengths as slices, results and errors in memory from
//! `malloc`, and the one place where panics are caught.

#![allow(unsafe_code, reason = "this is where pointers from C become references")]
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract is that of the border, in `lib.rs`")]

use crate::status::{Result, Status};
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The bytes behind a pointer and a length.
///
/// # Safety
/// L2 holds for them.
#[inline]
pub(crate) unsafe fn bytes<'a>(data: *const c_char, len: usize) -> &'a [u8] {
    if data.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller promises that many readable bytes (L2).
    std::slice::from_raw_parts(data.cast(), len)
}

/// The text behind a pointer to a C string.
///
/// # Safety
/// The pointer is NULL or that of a string which ends with a zero byte.
pub(crate) unsafe fn text<'a>(string: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller promises a string with an end.
    (!string.is_null()).then(|| CStr::from_ptr(string))
}

/// The object behind a pointer; an error if it is NULL.
///
/// # Safety
/// L1 holds for it.
#[inline]
pub(crate) unsafe fn object<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the caller promises that an object of the library lives there (L1).
    pointer.as_ref().ok_or_else(|| Status::null(what))
}

/// The object behind a pointer, if it is not NULL, to change it.
///
/// # Safety
/// L1 and L4 hold for it.
#[inline]
pub(crate) unsafe fn object_mut<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: the caller promises an object that no other thread uses (L1, L4).
    pointer.as_mut()
}

/// Hands an object over to C.
pub(crate) fn hand_over<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Takes an object back from C to destroy it.
///
/// # Safety
/// L1 holds for it, and nobody uses it any more.
pub(crate) unsafe fn destroy<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it came from `hand_over` and is taken back once (L1).
        let object = Box::from_raw(pointer);
        contained((), || drop(object));
    }
}

/// A copy of bytes in memory from `malloc`. NULL only if there is no memory.
#[inline]
pub(crate) fn copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: `malloc` has no requirements, and what it returns has room for the bytes.
    unsafe {
        let memory: *mut u8 = libc::malloc(bytes.len().max(1)).cast();
        if !memory.is_null() {
            ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len());
        }
        memory.cast()
    }
}

/// A copy of a text, followed by a zero byte, in memory from `malloc`. The text ends early if it
/// contains a zero byte.
pub(crate) fn copy_text(text: &str) -> *mut c_char {
    let mut bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    bytes.push(0);
    copy(&bytes)
}

/// Writes a value through a pointer, unless the pointer is NULL.
///
/// # Safety
/// The pointer is NULL or points to a writable place of its type.
#[inline]
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller promises a writable place.
        place.write(value);
    }
}

/// Stores an error and frees the one before it.
///
/// # Safety
/// L3 holds for `errptr`.
#[cold]
pub(crate) unsafe fn save_error(errptr: *mut *mut c_char, status: &Status) {
    if errptr.is_null() {
        return;
    }
    // SAFETY: what stands there is NULL or came from `malloc` (L3).
    libc::free((*errptr).cast());
    errptr.write(copy_text(&status.0));
}

/// What `call` returns, or `otherwise` if it panics.
#[inline]
pub(crate) fn contained<R>(otherwise: R, call: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// What `call` returns; an error goes to `errptr`, and so does a panic.
///
/// # Safety
/// L3 holds for `errptr`.
#[inline]
pub(crate) unsafe fn answer<R>(
    errptr: *mut *mut c_char,
    otherwise: R,
    call: impl FnOnce() -> Result<R>,
) -> R {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(result)) => return result,
        Ok(Err(status)) => save_error(errptr, &status),
        Err(panic) => save_error(errptr, &of_panic(panic.as_ref())),
    }
    otherwise
}

/// A caught panic: a defect of this library.
#[cold]
fn of_panic(panic: &(dyn std::any::Any + Send)) -> Status {
    let what = panic.downcast_ref::<String>().map(String::as_str);
    let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    Status::io(format_args!("the library panicked ({what}): please report it"))
}
