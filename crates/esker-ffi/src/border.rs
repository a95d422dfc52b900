//! The border: checked handles, pointers and lengths, and the one place where panics are caught.
//!
//! A [`Handle`] begins with a word that names its kind and changes when it is freed. So the library
//! detects NULL, a handle of another kind and, mostly by luck, a freed one instead of following the
//! pointer. Kinds that only one thread may use at a time note that they are in use: a callback that
//! uses the handle under which it runs gets an error, not a second exclusive reference.

#![allow(unsafe_code, reason = "this is where pointers from C become references")]

use crate::code::esker_code;
use crate::fault::{ErrorInfo, Fault, Result, esker_error, misuse};
use crate::handle::{FREED, Handle, Kind};
use crate::text::Text;
use std::any::Any;
use std::ffi::{OsStr, c_char, c_void};
use std::ops::{Bound, Deref, DerefMut};
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes a handle, which the caller owns.
pub(crate) fn give<K: Kind>(inner: K::Inner) -> *mut K {
    Box::into_raw(Box::new(Handle::new::<K>(inner))).cast()
}

/// The handle behind a pointer from C, if it is of kind `K`.
///
/// # Safety
/// B1 holds for `pointer`, for as long as the result is used.
unsafe fn find<'a, K: Kind>(pointer: *const K) -> Result<&'a Handle<K::Inner>> {
    let name = K::NAME;
    if pointer.is_null() {
        return misuse(format!("the {name} is NULL: give one"));
    }
    let word = pointer.cast::<AtomicU64>();
    if !word.is_aligned() {
        return misuse(format!("this is no {name}: give one"));
    }
    // SAFETY: by B1 some handle lies there, and each begins with its word.
    match unsafe { &*word }.load(Ordering::Relaxed) {
        // SAFETY: the word says that it is a live handle of this kind.
        word if word == K::WORD => Ok(unsafe { &*pointer.cast::<Handle<K::Inner>>() }),
        FREED => misuse(format!("the {name} was freed before: it cannot be used any more")),
        _ => misuse(format!("this is no {name}: give one")),
    }
}

/// The value behind a handle that many threads may use at once.
///
/// # Safety
/// B1 holds for `pointer`, for as long as the result is used; [`exclusive`] is never called for
/// kind `K`.
pub(crate) unsafe fn shared<'a, K: Kind>(pointer: *const K) -> Result<&'a K::Inner> {
    // SAFETY: B1, and nobody has an exclusive reference to a handle of this kind.
    Ok(unsafe { &*find(pointer)?.inner.get() })
}

/// The same for a pointer that may be NULL.
///
/// # Safety
/// As [`shared`].
pub(crate) unsafe fn shared_or_null<'a, K: Kind>(
    pointer: *const K,
) -> Result<Option<&'a K::Inner>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as this function's.
    unsafe { shared(pointer) }.map(Some)
}

/// The only reference to the value behind a handle, until it is dropped.
pub(crate) struct Exclusive<'a, T> {
    handle: &'a Handle<T>,
}

/// The value behind a handle that one thread uses at a time.
///
/// # Safety
/// B1 and B4 hold for `pointer`, for as long as the result is used; [`shared`] is never called for
/// kind `K`.
pub(crate) unsafe fn exclusive<'a, K: Kind>(pointer: *const K) -> Result<Exclusive<'a, K::Inner>> {
    // SAFETY: B1.
    let handle = unsafe { find(pointer)? };
    // Threads do not meet here (B4), so the check and the mark need not be one step; they detect
    // a callback that uses the handle under which it was called.
    if handle.in_use.load(Ordering::Relaxed) {
        let name = K::NAME;
        return misuse(format!("the {name} is in use by the call that called this function"));
    }
    handle.in_use.store(true, Ordering::Relaxed);
    Ok(Exclusive { handle })
}

impl<T> Deref for Exclusive<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `in_use` was taken, and only one `Exclusive` takes it at a time (B4).
        unsafe { &*self.handle.inner.get() }
    }
}

impl<T> DerefMut for Exclusive<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`.
        unsafe { &mut *self.handle.inner.get() }
    }
}

impl<T> Drop for Exclusive<'_, T> {
    fn drop(&mut self) {
        self.handle.in_use.store(false, Ordering::Relaxed);
    }
}

/// Frees a handle. Does nothing to NULL, a handle of another kind, or one that is in use.
///
/// # Safety
/// B1 and B4 hold for `pointer`, and nobody uses it from now on.
pub(crate) unsafe fn free<K: Kind>(pointer: *mut K) {
    quiet((), || {
        // SAFETY: as this function's.
        drop(unsafe { take(pointer) });
        Ok(())
    });
}

/// Frees a handle as [`free`] does, and returns the value behind it.
///
/// # Safety
/// As [`free`].
pub(crate) unsafe fn take<K: Kind>(pointer: *mut K) -> Option<K::Inner> {
    quiet(None, || {
        // SAFETY: B1.
        let handle = unsafe { find(pointer)? };
        if handle.in_use.load(Ordering::Relaxed) {
            return misuse("it is in use");
        }
        handle.word.store(FREED, Ordering::Relaxed);
        // SAFETY: it was made by `give`, its word said so, and nobody else uses it.
        let handle = unsafe { Box::from_raw(pointer.cast::<Handle<K::Inner>>()) };
        Ok(Some(handle.into_inner()))
    })
}

/// Runs the body of an exported function: catches panics, and reports a failure by its code and, if
/// the caller gave a place for it, by an error handle.
///
/// # Safety
/// B3 holds for `error`.
#[inline]
pub(crate) unsafe fn border(
    error: *mut *mut esker_error,
    call: impl FnOnce() -> Result<()>,
) -> esker_code {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => {
            if !error.is_null() {
                // SAFETY: B3.
                unsafe { error.write(std::ptr::null_mut()) };
            }
            esker_code::ESKER_OK
        }
        // SAFETY: as this function's.
        Ok(Err(fault)) => unsafe { tell(error, fault) },
        // SAFETY: as this function's.
        Err(panic) => unsafe { tell(error, Fault::Panic(panic_text(panic))) },
    }
}

/// # Safety
/// B3 holds for `error`.
#[cold]
unsafe fn tell(error: *mut *mut esker_error, fault: Fault) -> esker_code {
    let info = ErrorInfo::new(fault);
    let code = info.code;
    if !error.is_null() {
        // SAFETY: B3.
        unsafe { error.write(give::<esker_error>(info)) };
    }
    code
}

/// The message of a panic.
#[cold]
fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    // The payload may panic when it is dropped.
    std::mem::forget(panic);
    text.unwrap_or_else(|| "it says nothing".to_owned())
}

/// Runs the body of an exported function that cannot report a failure.
#[inline]
pub(crate) fn quiet<T>(otherwise: T, call: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.unwrap_or(otherwise),
        Err(panic) => {
            panic_text(panic);
            otherwise
        }
    }
}

/// The place for a result, set to `empty` at once, so that an error does not leave its old value.
///
/// # Safety
/// B3 holds for `pointer`, for as long as the result is used.
pub(crate) unsafe fn place<'a, T>(
    pointer: *mut T,
    name: &'static str,
    empty: T,
) -> Result<&'a mut T> {
    if pointer.is_null() {
        return misuse(format!("the place for {name} is NULL: give one"));
    }
    if !pointer.is_aligned() {
        return misuse(format!("the place for {name} is not aligned"));
    }
    // SAFETY: B3; it may be uninitialised before, not after.
    unsafe {
        pointer.write(empty);
        Ok(&mut *pointer)
    }
}

/// Writes a result for which the caller may have given no place.
///
/// # Safety
/// B3 holds for `pointer`.
pub(crate) unsafe fn write_if<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() && pointer.is_aligned() {
        // SAFETY: B3.
        unsafe { pointer.write(value) };
    }
}

/// The caller's buffer for `capacity` bytes, which may be NULL if that is 0.
pub(crate) fn room(buffer: *mut c_void, capacity: usize) -> Result<*mut u8> {
    if buffer.is_null() && capacity > 0 {
        return misuse(format!("the buffer is NULL and its capacity is {capacity}"));
    }
    Ok(buffer.cast())
}

/// Bytes from C.
///
/// # Safety
/// B2 holds for `data` and `len`, for as long as the result is used.
pub(crate) unsafe fn bytes<'a>(
    data: *const c_void,
    len: usize,
    name: &'static str,
) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return misuse(format!("the {name} is NULL and its length is {len}"));
    }
    if isize::try_from(len).is_err() {
        return misuse(format!("the length of the {name} is {len}: no memory is that large"));
    }
    // SAFETY: B2, and the length fits.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// One end of a range: NULL with the length 0 is no bound.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn bound<'a>(
    data: *const c_void,
    len: usize,
    name: &'static str,
) -> Result<Option<&'a [u8]>> {
    if data.is_null() && len == 0 {
        return Ok(None);
    }
    // SAFETY: as this function's.
    unsafe { bytes(data, len, name) }.map(Some)
}

/// A half-open range, as the engine takes it.
pub(crate) type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The range from `start` up to, not including, `end`.
///
/// # Safety
/// As [`bytes`], for both ends.
pub(crate) unsafe fn range<'a>(
    (start, start_len): (*const c_void, usize),
    (end, end_len): (*const c_void, usize),
) -> Result<Range<'a>> {
    // SAFETY: as this function's.
    let (start, end) = unsafe { (bound(start, start_len, "start")?, bound(end, end_len, "end")?) };
    let start = start.map_or(Bound::Unbounded, Bound::Included);
    Ok((start, end.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// The first key after all that begin with `prefix`, in byte order; `None` if there is none.
pub(crate) fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// A text from C: bytes with a length, or up to a zero byte if the length is `ESKER_NUL`.
///
/// # Safety
/// As [`bytes`]; with `ESKER_NUL`, a zero byte ends what is readable.
pub(crate) unsafe fn text_bytes<'a>(
    data: *const c_char,
    len: usize,
    name: &'static str,
) -> Result<&'a [u8]> {
    if len != ESKER_NUL {
        // SAFETY: as this function's.
        return unsafe { bytes(data.cast(), len, name) };
    }
    if data.is_null() {
        return misuse(format!("the {name} is NULL: give one"));
    }
    // SAFETY: as this function's.
    Ok(unsafe { std::ffi::CStr::from_ptr(data) }.to_bytes())
}

/// The length of a text that ends with a zero byte; the header says the same in C.
pub(crate) const ESKER_NUL: usize = usize::MAX;

/// A name from C, which is UTF-8.
///
/// # Safety
/// As [`text_bytes`].
pub(crate) unsafe fn name<'a>(
    data: *const c_char,
    len: usize,
    what: &'static str,
) -> Result<&'a str> {
    // SAFETY: as this function's.
    let bytes = unsafe { text_bytes(data, len, what)? };
    std::str::from_utf8(bytes).map_err(|_| {
        esker::Error::InvalidArgument { what: format!("the {what} is not UTF-8: give UTF-8") }
            .into()
    })
}

/// A path from C: bytes on Unix, UTF-8 elsewhere.
///
/// # Safety
/// As [`text_bytes`].
pub(crate) unsafe fn path<'a>(data: *const c_char, len: usize) -> Result<&'a std::path::Path> {
    #[cfg(unix)]
    // SAFETY: as this function's.
    let path: &OsStr = OsStrExt::from_bytes(unsafe { text_bytes(data, len, "path")? });
    #[cfg(not(unix))]
    // SAFETY: as this function's.
    let path: &OsStr = AsRef::as_ref(unsafe { name(data, len, "path")? });
    if path.is_empty() {
        return misuse("the path is empty: give one");
    }
    Ok(path.as_ref())
}

/// Returns a text, and writes its length if there is a place for it.
///
/// # Safety
/// B3 holds for `len`.
pub(crate) unsafe fn answer(text: Option<&Text>, len: *mut usize) -> *const c_char {
    // SAFETY: as this function's.
    unsafe { write_if(len, text.map_or(0, Text::len)) };
    text.map_or(std::ptr::null(), Text::as_ptr)
}

#[cfg(test)]
mod tests;
