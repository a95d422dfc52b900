//! Callbacks: custom comparators that a C program defines.

#![allow(unsafe_code, reason = "these are exported functions, and they keep pointers of C")]
#![allow(unsafe_op_in_unsafe_fn, reason = "their contract is the border's")]

use crate::border::{border, free, give, name, place};
use crate::code::esker_code;
use crate::fault::{Fault, esker_error};
use crate::handle::kind;
use esker::Comparator;
use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// Compares two keys: negative, zero or positive if `a` is less than, equal to or greater than `b`.
/// It must be a total order that never changes for its name. Many threads call it at once. It must
/// return (no `longjmp`, no exception), and must not call this library with the database whose keys
/// it orders.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_compare = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        a: *const c_char,
        a_len: usize,
        b: *const c_char,
        b_len: usize,
    ) -> c_int,
>;

/// Called once, from any thread, with a context that nothing uses any more. NULL: nothing to do.
// SAFETY: the giver of such a function promises that it may be called so (B4, B5).
pub type esker_destroy = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// A custom comparator. Databases, keyspaces and options that were given one keep it alive.
pub struct esker_comparator(());

kind!(esker_comparator, b"eskcmpar", Arc<dyn Comparator>);

/// A pointer of the C program, and the function that releases it.
pub(crate) struct Context {
    pointer: *mut c_void,
    destroy: esker_destroy,
}

// SAFETY: the giver of a context promises that it may be used from any thread (B4).
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(pointer: *mut c_void, destroy: esker_destroy) -> Self {
        Self { pointer, destroy }
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the giver promises that it may be called with this pointer, and returns (B5);
            // this is the only call.
            unsafe { destroy(self.pointer) }
        }
    }
}

/// A comparator that calls C.
struct Called {
    name: String,
    compare: unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int,
    context: Context,
}

impl Comparator for Called {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (a, a_len) = (a.as_ptr().cast(), a.len());
        let (b, b_len) = (b.as_ptr().cast(), b.len());
        // SAFETY: the giver promises that it may be called so from any thread, and returns (B5).
        unsafe { (self.compare)(self.context.pointer(), a, a_len, b, b_len) }.cmp(&0)
    }
}

/// Makes a comparator with a name, which is stored with each keyspace that uses it. The name has 1
/// to 255 bytes of UTF-8; its length may be `ESKER_NUL`. `context` is passed to every call and
/// destroyed after the last one; if this function fails, it is not destroyed.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_comparator_new(
    stored_name: *const c_char,
    stored_name_len: usize,
    compare: esker_compare,
    context: *mut c_void,
    destroy: esker_destroy,
    comparator: *mut *mut esker_comparator,
    error: *mut *mut esker_error,
) -> esker_code {
    border(error, || {
        let comparator = place(comparator, "comparator", std::ptr::null_mut())?;
        let stored = callback_name(stored_name, stored_name_len, "name of the comparator")?;
        let Some(compare) = compare else {
            return Err(Fault::Misuse("the compare function is NULL: give one".to_owned()));
        };
        let context = Context::new(context, destroy);
        let made: Arc<dyn Comparator> = Arc::new(Called { name: stored, compare, context });
        *comparator = give(made);
        Ok(())
    })
}

/// A name that is stored for a callback.
///
/// # Safety
/// As [`name`].
pub(crate) unsafe fn callback_name(
    data: *const c_char,
    len: usize,
    what: &'static str,
) -> Result<String, Fault> {
    let stored = name(data, len, what)?;
    if stored.is_empty() || stored.len() > 255 {
        let what = format!("the {what} has {} bytes: give 1 to 255", stored.len());
        return Err(esker::Error::InvalidArgument { what }.into());
    }
    Ok(stored.to_owned())
}

/// Frees a handle on a comparator. NULL is fine. Databases, keyspaces and options that were given
/// it go on using it.
// SAFETY: the name is this library's; the contract is the border's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_comparator_free(comparator: *mut esker_comparator) {
    free(comparator);
}
