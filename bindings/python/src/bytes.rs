//! Bytes from Python and back.
//!
//! A `bytes` object cannot change, so the engine reads it in place while other Python threads run.
//! Anything else with the buffer protocol can change under a reader that does not hold the
//! interpreter's lock, and is copied first, unless it is a view of a whole `bytes` object.

use esker::Keyspace;
use esker::internals::cached::{Cached, get_cached};
use esker::internals::stats::clients::Counted;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use std::cell::RefCell;

/// An argument that is bytes, or has the buffer protocol.
pub(crate) enum Input<'a, 'py> {
    /// A `bytes` object, borrowed from the caller.
    Borrowed(Borrowed<'a, 'py, PyBytes>),
    /// What was copied from another buffer, or the object that it is a view of.
    Owned(Bound<'py, PyBytes>),
}

impl Input<'_, '_> {
    /// The bytes.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes.as_bytes(),
            Self::Owned(bytes) => bytes.as_bytes(),
        }
    }
}

impl<'py> Input<'_, 'py> {
    /// The object that holds the bytes, for as long as they are needed.
    pub(crate) fn into_object(self) -> Bound<'py, PyBytes> {
        match self {
            Self::Borrowed(bytes) => bytes.to_owned(),
            Self::Owned(bytes) => bytes,
        }
    }

    /// A `bytes` object with these bytes that is not of a subclass, so that its end runs no code of
    /// the program.
    #[inline]
    pub(crate) fn into_plain(self) -> Bound<'py, PyBytes> {
        match self {
            Self::Borrowed(bytes) if bytes.is_exact_instance_of::<PyBytes>() => bytes.to_owned(),
            Self::Borrowed(bytes) => PyBytes::new(bytes.py(), bytes.as_bytes()),
            // `copied` makes no other.
            Self::Owned(bytes) => bytes,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Input<'a, 'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(Self::Borrowed(bytes)),
            Err(_) => copied(&object).map(Self::Owned),
        }
    }
}

#[cold]
fn copied<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let view = PyMemoryView::from(object)?;
    if let Ok(whole) = view.getattr("obj")?.cast_into_exact::<PyBytes>() {
        let len: usize = view.getattr("nbytes")?.extract()?;
        let contiguous: bool = view.getattr("c_contiguous")?.extract()?;
        // A view of as many bytes as there are, in their order, is all of them: it could only
        // begin elsewhere if it were shorter, and only a strided one could turn them round.
        if contiguous && len == whole.as_bytes().len() {
            return Ok(whole);
        }
    }
    Ok(view.call_method0("tobytes")?.cast_into()?)
}

/// Where a thread puts a value while the interpreter's lock is released.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// What is kept between calls, in the account of memory.
    counted: Counted,
}

thread_local! {
    /// The buffer that the thread keeps; `None`: it keeps none, or a call uses it.
    static BUFFER: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// A thread keeps no larger buffer than this.
const KEPT_BYTES: usize = 1 << 20;

/// Where a value is looked up.
pub(crate) trait Lookup: Sync {
    /// Hands the value of `key` to `take`, if there is one.
    fn find(&self, key: &[u8], take: impl FnOnce(&[u8])) -> esker::Result<bool>;

    /// The same, unless it would have to read or wait. By default it may have to.
    fn find_cached<R>(
        &self,
        _key: &[u8],
        _take: impl FnOnce(&[u8]) -> R,
    ) -> esker::Result<Cached<R>> {
        Ok(Cached::Unknown)
    }
}

impl Lookup for Keyspace {
    #[inline]
    fn find(&self, key: &[u8], take: impl FnOnce(&[u8])) -> esker::Result<bool> {
        Ok(self.get_with(key, take)?.is_some())
    }

    #[inline]
    fn find_cached<R>(
        &self,
        key: &[u8],
        take: impl FnOnce(&[u8]) -> R,
    ) -> esker::Result<Cached<R>> {
        get_cached(self, key, take)
    }
}

impl Lookup for (&esker::Snapshot, &Keyspace) {
    fn find(&self, key: &[u8], take: impl FnOnce(&[u8])) -> esker::Result<bool> {
        Ok(self.0.get_with(self.1, key, take)?.is_some())
    }
}

/// The value under a key. What memory has is taken at once: threads that let the interpreter's lock go for a microsecond
/// and want it back wait for each other longer than the get takes. What has to be read is read without the lock, and
/// goes through a buffer that the thread keeps, because objects can be made only with the lock.
#[inline]
pub(crate) fn get<'py>(
    py: Python<'py>,
    place: &impl Lookup,
    key: &[u8],
) -> esker::Result<Option<Bound<'py, PyBytes>>> {
    if let Cached::Known(found) = place.find_cached(key, |value| PyBytes::new(py, value))? {
        return Ok(found);
    }
    let mut buffer = BUFFER.with(RefCell::take).unwrap_or_default();
    let value = &mut buffer.bytes;
    let found = py.detach(|| {
        place.find(key, |bytes| {
            value.clear();
            value.extend_from_slice(bytes);
        })
    })?;
    let object = found.then(|| PyBytes::new(py, value));
    let kept = value.capacity();
    if kept <= KEPT_BYTES {
        buffer.counted.set(kept);
        BUFFER.with(|cell| cell.replace(Some(buffer)));
    }
    Ok(object)
}

/// Drops something of the engine without the interpreter's lock: that may wait for threads which
/// call Python code.
pub(crate) fn drop_detached<T: Send>(value: T) {
    let mut value = Some(value);
    // While the interpreter shuts down there is nothing to release; the rest is dropped here.
    let _ = Python::try_attach(|py| {
        let value = value.take();
        py.detach(|| drop(value));
    });
}
