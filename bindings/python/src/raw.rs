//! The raw iterator: in LevelDB's style, on an entry.

use crate::bytes::{Input, drop_detached};
use crate::errors::{Failure, Result, closed};
use crate::shared::Space;
use esker::Cursor;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An iterator that is on an entry, or on none.
#[pyclass(frozen, module = "esker")]
pub(crate) struct RawIterator {
    cursor: Mutex<Option<Cursor>>,
    space: Space,
}

impl RawIterator {
    /// A raw iterator on no entry.
    pub(crate) fn new(
        py: Python<'_>,
        space: &Space,
        cursor: impl FnOnce() -> esker::Result<Cursor> + Send,
    ) -> Result<Self> {
        space.shared.check()?;
        Ok(Self { cursor: Mutex::new(Some(py.detach(cursor)?)), space: space.clone() })
    }

    fn with<R>(&self, py: Python<'_>, then: impl FnOnce(&mut Cursor) -> Result<R>) -> Result<R> {
        let mut guard = self.space.shared.lock(py, &self.cursor)?;
        self.space.shared.check()?;
        then(guard.as_mut().ok_or_else(|| closed("the iterator"))?)
    }

    fn go(
        &self,
        py: Python<'_>,
        go: impl FnOnce(&mut Cursor) -> esker::Result<()> + Send,
    ) -> Result<()> {
        self.with(py, |cursor| Ok(py.detach(|| go(cursor))?))
    }

    /// A move from an entry to its neighbour.
    fn step(
        &self,
        py: Python<'_>,
        go: impl FnOnce(&mut Cursor) -> esker::Result<()> + Send,
    ) -> Result<()> {
        self.with(py, |cursor| {
            standing(cursor)?;
            Ok(py.detach(|| go(cursor))?)
        })
    }
}

fn standing(cursor: &Cursor) -> Result<&Cursor> {
    match cursor.error() {
        Some(error) => Err(error.clone().into()),
        None if cursor.valid() => Ok(cursor),
        None => Err(Failure::Own("iterator-invalid", "the iterator stands on no entry".into())),
    }
}

impl Drop for RawIterator {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor.get_mut().take() {
            drop_detached(cursor);
        }
    }
}

#[pymethods]
impl RawIterator {
    /// Whether the iterator is on an entry.
    fn valid(&self, py: Python<'_>) -> Result<bool> {
        self.with(py, |cursor| Ok(cursor.valid()))
    }

    /// Goes to the first entry.
    fn seek_to_first(&self, py: Python<'_>) -> Result<()> {
        self.go(py, Cursor::seek_to_first)
    }

    /// Goes to the last entry.
    fn seek_to_last(&self, py: Python<'_>) -> Result<()> {
        self.go(py, Cursor::seek_to_last)
    }

    /// Goes to the first entry at or after `target`.
    fn seek(&self, py: Python<'_>, target: Input<'_, '_>) -> Result<()> {
        let target = target.as_bytes();
        self.go(py, |cursor| cursor.seek(target))
    }

    /// Goes to the next entry.
    fn next(&self, py: Python<'_>) -> Result<()> {
        self.step(py, Cursor::next)
    }

    /// Goes to the previous entry.
    fn prev(&self, py: Python<'_>) -> Result<()> {
        self.step(py, Cursor::prev)
    }

    /// The key of the entry.
    fn key<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        self.with(py, |cursor| Ok(PyBytes::new(py, standing(cursor)?.key())))
    }

    /// The value of the entry.
    fn value<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        self.with(py, |cursor| Ok(PyBytes::new(py, standing(cursor)?.value())))
    }

    /// The key and the value of the entry.
    fn item<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        self.with(py, |cursor| {
            let cursor = standing(cursor)?;
            Ok((PyBytes::new(py, cursor.key()), PyBytes::new(py, cursor.value())))
        })
    }

    /// Closes the iterator. May be called again.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let cursor = self.space.shared.lock(py, &self.cursor)?.take();
        py.detach(|| drop(cursor));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyAny>) -> Result<()> {
        self.close(py)
    }
}
