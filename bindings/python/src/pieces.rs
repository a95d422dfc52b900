//! Values in pieces: from a file into the database, and back through a reader.

use crate::bytes::{Input, drop_detached};
use crate::errors::{Result, closed, invalid};
use crate::shared::Space;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, Read, Seek, SeekFrom};

/// A binary file of Python, read with the interpreter's lock.
struct File<'f> {
    file: &'f Py<PyAny>,
    /// What a call of it raised.
    raised: &'f Mutex<Option<PyErr>>,
}

impl Read for File<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = Python::attach(|py| -> PyResult<usize> {
            let bytes = self.file.bind(py).call_method1("read", (out.len(),))?;
            let bytes: Input<'_, '_> = bytes.extract()?;
            let bytes = bytes.as_bytes();
            let Some(room) = out.get_mut(..bytes.len()) else {
                return Err(invalid("the file gave more bytes than it was asked for").into());
            };
            room.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        read.map_err(|error| {
            *self.raised.lock() = Some(error);
            io::Error::other("a file of Python raised an exception")
        })
    }
}

/// Puts what is left in a binary file under a key; returns how many bytes.
pub(crate) fn put_from(
    py: Python<'_>,
    space: &Space,
    key: &[u8],
    file: &Bound<'_, PyAny>,
) -> Result<u64> {
    let (file, raised) = (file.clone().unbind(), Mutex::new(None));
    let reader = File { file: &file, raised: &raised };
    let put = space.with_key(key, |key| py.detach(|| space.keyspace.insert_reader(key, reader)));
    match raised.into_inner() {
        Some(error) => Err(error.into()),
        None => Ok(put?),
    }
}

/// The reader of a value under a key, wrapped as a binary file.
pub(crate) fn open_value<'py>(
    py: Python<'py>,
    space: &Space,
    key: &[u8],
) -> Result<Option<Bound<'py, PyAny>>> {
    let found = space.with_key(key, |key| py.detach(|| space.keyspace.get_reader(key)))?;
    let Some(reader) = found else { return Ok(None) };
    let len = reader.len();
    let inner = ValueSource { state: Mutex::new(Some(reader)), space: space.clone(), len };
    let wrap = py.import("esker._values")?.getattr("ValueReader")?;
    Ok(Some(wrap.call1((inner,))?))
}

/// What a reader of a value reads from.
#[pyclass(frozen, module = "esker", name = "_ValueSource")]
pub(crate) struct ValueSource {
    /// `None`: it was closed.
    state: Mutex<Option<esker::ValueReader>>,
    space: Space,
    len: u64,
}

impl ValueSource {
    fn with<R>(
        &self,
        py: Python<'_>,
        then: impl FnOnce(&mut esker::ValueReader) -> io::Result<R> + Send,
    ) -> Result<R>
    where
        R: Send,
    {
        self.space.shared.check()?;
        let mut state = self.space.shared.lock(py, &self.state)?;
        let reader = state.as_mut().ok_or_else(|| closed("the reader of the value"))?;
        Ok(py.detach(|| then(reader)).map_err(engine_error)?)
    }
}

/// The engine's error in an error of a reader.
fn engine_error(error: io::Error) -> esker::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<esker::Error>()).cloned();
    inner.unwrap_or_else(|| esker::Error::InvalidArgument { what: error.to_string() })
}

impl Drop for ValueSource {
    fn drop(&mut self) {
        drop_detached(self.state.get_mut().take());
    }
}

#[pymethods]
impl ValueSource {
    /// The next bytes, at most ``size``.
    fn read<'py>(&self, py: Python<'py>, size: usize) -> Result<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.with(py, |reader| reader.take(size as u64).read_to_end(&mut bytes))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Goes to a place; ``whence`` as in ``io``.
    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> Result<u64> {
        let to = match whence {
            0 => {
                SeekFrom::Start(offset.try_into().map_err(|_| invalid("a place before the value"))?)
            }
            1 => SeekFrom::Current(offset),
            2 => SeekFrom::End(offset),
            _ => return Err(invalid("whence is 0, 1 or 2")),
        };
        self.with(py, |reader| reader.seek(to))
    }

    /// Lets the value go.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let reader = self.space.shared.lock(py, &self.state)?.take();
        drop_detached(reader);
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.len as usize
    }
}
