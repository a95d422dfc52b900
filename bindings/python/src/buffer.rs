//! Values that Python reads where they lie.
//!
//! A view of such a value holds a reference to the object below, and the object keeps the bytes: as
//! long as there is a view, they are neither changed nor freed, whatever happens to the key and to the
//! database.

#![allow(unsafe_code, reason = "the buffer protocol hands out addresses")]

use crate::errors::Result;
use esker::Keyspace;
use esker::internals::cached::Cached;
use esker::internals::kept::{ValueInPlace, get_in_place, get_in_place_cached};
use esker::internals::stats::clients::Counted;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::c_int;

/// A value that is kept where it lies, for views of it.
#[pyclass(frozen, module = "esker._esker")]
struct KeptValue {
    value: ValueInPlace,
    /// A copy, in the account of memory. A block that is kept is in the database's.
    _counted: Counted,
}

#[pymethods]
impl KeptValue {
    /// Lets the interpreter see the bytes, which nobody may write.
    ///
    /// # Safety
    /// The interpreter calls it, with a view that is to be filled.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.get().value.bytes();
        let start = bytes.as_ptr().cast_mut().cast();
        // An object of the interpreter has no more than this many bytes, and neither has a slice of Rust.
        let len = bytes.len() as ffi::Py_ssize_t;
        // SAFETY: the view is one to be filled. It gets a reference to the object, which keeps the bytes in place until
        // the view is released: nothing changes the value of a frozen object. The 1 says that they are read-only.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 1, flags) };
        match filled {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// The value under a key. As in a get, what memory has is taken at once, and the interpreter's lock is released for the rest.
pub(crate) fn find(
    py: Python<'_>,
    keyspace: &Keyspace,
    key: &[u8],
) -> esker::Result<Option<ValueInPlace>> {
    match get_in_place_cached(keyspace, key)? {
        Cached::Known(found) => Ok(found),
        Cached::Unknown => py.detach(|| get_in_place(keyspace, None, key)),
    }
}

/// A read-only view of a value.
pub(crate) fn view(py: Python<'_>, value: ValueInPlace) -> Result<Bound<'_, PyMemoryView>> {
    let _counted = Counted::of(value.copied());
    let kept = Bound::new(py, KeptValue { value, _counted })?;
    Ok(PyMemoryView::from(&kept)?)
}
