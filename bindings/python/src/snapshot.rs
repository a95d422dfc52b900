//! Snapshots.

use crate::arrow::ArrowScan;
use crate::buffer;
use crate::bytes::{self, Input, drop_detached};
use crate::errors::{Result, closed};
use crate::iter::{Iterator, Wish};
use crate::raw::RawIterator;
use crate::shared::Space;
use crate::store::{keys_of, values_of};
use esker::internals::kept::get_in_place;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMemoryView};

/// The state of a database at one moment. Making one costs nothing; while it lives, replaced
/// entries keep their space.
#[pyclass(frozen, module = "esker")]
pub(crate) struct Snapshot {
    snapshot: Mutex<Option<esker::Snapshot>>,
    space: Space,
}

impl Snapshot {
    /// What `snapshot` shows of a space.
    pub(crate) fn new(space: &Space, snapshot: esker::Snapshot) -> Result<Self> {
        Ok(Self { snapshot: Mutex::new(Some(snapshot)), space: space.clone() })
    }

    fn snapshot(&self, py: Python<'_>) -> Result<esker::Snapshot> {
        self.space.shared.check()?;
        let snapshot = self.space.shared.lock(py, &self.snapshot)?.clone();
        snapshot.ok_or_else(|| closed("the snapshot"))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(snapshot) = self.snapshot.get_mut().take() {
            drop_detached(snapshot);
        }
    }
}

#[pymethods]
impl Snapshot {
    /// The value that ``key`` had, or ``default``.
    #[pyo3(signature = (key, default=None, *, verify_checksums=None, fill_cache=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
        default: Option<Bound<'py, PyAny>>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let _ = (verify_checksums, fill_cache);
        let snapshot = self.snapshot(py)?;
        let place = (&snapshot, &*self.space.keyspace);
        let found = self.space.with_key(key.as_bytes(), |key| bytes::get(py, &place, key))?;
        py.detach(|| drop(snapshot));
        Ok(found.map(Bound::into_any).or(default))
    }

    /// A read-only ``memoryview`` of the value that ``key`` had, or ``None``, as ``get_buffer`` of a
    /// database. It outlives the snapshot.
    fn get_buffer<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
    ) -> Result<Option<Bound<'py, PyMemoryView>>> {
        let (snapshot, keyspace) = (self.snapshot(py)?, &self.space.keyspace);
        let found = self.space.with_key(key.as_bytes(), |key| {
            py.detach(move || get_in_place(keyspace, Some(&snapshot), key))
        })?;
        found.map(|value| buffer::view(py, value)).transpose()
    }

    /// Whether ``key`` existed.
    fn __contains__(&self, py: Python<'_>, key: Input<'_, '_>) -> Result<bool> {
        let (snapshot, keyspace) = (self.snapshot(py)?, &self.space.keyspace);
        Ok(self.space.with_key(key.as_bytes(), |key| {
            py.detach(move || snapshot.contains_key(keyspace, key))
        })?)
    }

    /// The values that ``keys`` had, in their order; ``None`` where there was none.
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyList>> {
        let keys = keys_of(&self.space, keys)?;
        let (snapshot, keyspace) = (self.snapshot(py)?, &self.space.keyspace);
        let values = py.detach(move || snapshot.multi_get(keyspace, &keys))?;
        values_of(py, &values)
    }

    /// What reading ``key`` in the snapshot does, as ``explain_get`` of a database says it.
    fn explain_get<'py>(&self, py: Python<'py>, key: Input<'_, 'py>) -> Result<Bound<'py, PyDict>> {
        let (snapshot, keyspace) = (self.snapshot(py)?, &self.space.keyspace);
        let explanation = self.space.with_key(key.as_bytes(), |key| {
            py.detach(move || snapshot.explain_get(keyspace, key))
        })?;
        Ok(crate::explain::explanation(py, &explanation)?)
    }

    fn __iter__(&self, py: Python<'_>) -> Result<Iterator> {
        let (snapshot, keyspace) = (self.snapshot(py)?, &self.space.keyspace);
        let cursor = move || snapshot.cursor(keyspace);
        Iterator::new(py, &self.space, &Wish::everything(), cursor)
    }

    /// An iterator over the snapshot's entries.
    #[pyo3(signature = (*, reverse=false, start=None, stop=None, include_start=true,
        include_stop=false, prefix=None, include_key=true, include_value=true,
        verify_checksums=None, fill_cache=None))]
    #[allow(clippy::too_many_arguments)]
    fn iterator<'a, 'py>(
        &self,
        py: Python<'py>,
        reverse: bool,
        start: Option<Input<'a, 'py>>,
        stop: Option<Input<'a, 'py>>,
        include_start: bool,
        include_stop: bool,
        prefix: Option<Input<'a, 'py>>,
        include_key: bool,
        include_value: bool,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> Result<Iterator> {
        let _ = (verify_checksums, fill_cache);
        let include = (include_start, include_stop);
        let shown = (include_key, include_value);
        let wish = Wish { reverse, start, stop, include, prefix, shown };
        let (snapshot, keyspace) = (self.snapshot(py)?, &self.space.keyspace);
        Iterator::new(py, &self.space, &wish, move || snapshot.cursor(keyspace))
    }

    /// A raw iterator over the snapshot's entries. It takes no prefix.
    #[pyo3(signature = (*, verify_checksums=None, fill_cache=None))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> Result<RawIterator> {
        let _ = (verify_checksums, fill_cache);
        let (snapshot, keyspace) = (self.snapshot(py)?, &self.space.keyspace);
        RawIterator::new(py, &self.space, move || snapshot.cursor(keyspace))
    }

    /// The snapshot's entries as an Arrow stream.
    #[pyo3(signature = (*, reverse=false, start=None, stop=None, include_start=true,
        include_stop=false, prefix=None, include_key=true, include_value=true,
        batch_rows=8192, batch_bytes=1 << 20))]
    #[allow(clippy::too_many_arguments)]
    fn arrow<'a, 'py>(
        &self,
        py: Python<'py>,
        reverse: bool,
        start: Option<Input<'a, 'py>>,
        stop: Option<Input<'a, 'py>>,
        include_start: bool,
        include_stop: bool,
        prefix: Option<Input<'a, 'py>>,
        include_key: bool,
        include_value: bool,
        batch_rows: usize,
        batch_bytes: usize,
    ) -> Result<ArrowScan> {
        let include = (include_start, include_stop);
        let shown = (include_key, include_value);
        let wish = Wish { reverse, start, stop, include, prefix, shown };
        ArrowScan::new(&self.space, self.snapshot(py)?, &wish, (batch_rows, batch_bytes))
    }

    /// The state of another keyspace, which must exist, at the same moment.
    fn keyspace(&self, py: Python<'_>, name: &str) -> Result<Self> {
        let snapshot = self.snapshot(py)?;
        let space = crate::keyspace::existing(py, &self.space, name)?;
        Self::new(&space, snapshot)
    }

    /// Releases the snapshot. May be called again.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let snapshot = self.space.shared.lock(py, &self.snapshot)?.take();
        py.detach(|| drop(snapshot));
        Ok(())
    }

    /// The same as ``close``.
    fn release(&self, py: Python<'_>) -> Result<()> {
        self.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyAny>) -> Result<()> {
        self.close(py)
    }
}
