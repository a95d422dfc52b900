//! What a database, a keyspace and a prefixed database have in common: one space of keys.

use crate::arrow::ArrowScan;
use crate::batch::WriteBatch;
use crate::buffer;
use crate::bytes::{self, Input};
use crate::errors::{Failure, Result};
use crate::ingestion::Ingestion;
use crate::iter::{Iterator, Wish, range};
use crate::options::{durability_from, ttl_from};
use crate::pieces;
use crate::raw::RawIterator;
use crate::shared::Space;
use crate::snapshot::Snapshot;
use crate::walk::Range;
use esker::{Batch, Durability, Keyspace};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyMemoryView, PyTuple};

/// A space of keys: a keyspace, or the part of one behind a prefix.
#[pyclass(frozen, subclass, module = "esker")]
pub(crate) struct Store {
    space: Space,
}

impl Store {
    /// The store of a space.
    pub(crate) fn new(space: Space) -> Self {
        Self { space }
    }

    /// The space.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The value under a key.
    #[inline]
    pub(crate) fn find<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
    ) -> Result<Option<Bound<'py, PyBytes>>> {
        let keyspace = &*self.space.keyspace;
        Ok(self.space.with_key(key, |key| bytes::get(py, keyspace, key))?)
    }

    /// Removes all keys of a range.
    fn remove_all(&self, py: Python<'_>, range: &Range, sync: bool) -> Result<()> {
        let (keyspace, db) = (&self.space.keyspace, &self.space.db);
        py.detach(|| {
            let mut batch = Batch::new();
            batch.remove_range::<&[u8]>(keyspace, range.bounds())?;
            match sync {
                false => db.write(batch),
                true => db.write_with(batch, Durability::Disk),
            }
        })?;
        Ok(())
    }

    /// Whether there is a key.
    pub(crate) fn has(&self, py: Python<'_>, key: &[u8]) -> Result<bool> {
        let keyspace = &self.space.keyspace;
        Ok(self.space.with_key(key, |key| py.detach(|| keyspace.contains_key(key)))?)
    }

    /// Writes a value under a key.
    #[inline]
    pub(crate) fn insert(
        &self,
        py: Python<'_>,
        key: &[u8],
        value: &[u8],
        sync: bool,
    ) -> Result<()> {
        let keyspace = &self.space.keyspace;
        self.space.with_key(key, |key| {
            py.detach(|| match sync {
                false => keyspace.insert(key, value),
                true => keyspace.insert_with(key, value, Durability::Disk),
            })
        })?;
        Ok(())
    }

    /// Runs a write on the keyspace and the whole key, without the interpreter's lock.
    fn write_now(
        &self,
        py: Python<'_>,
        key: &[u8],
        write: impl FnOnce(&Keyspace, &[u8]) -> esker::Result<()> + Send,
    ) -> Result<()> {
        let keyspace = &*self.space.keyspace;
        Ok(self.space.with_key(key, |key| py.detach(|| write(keyspace, key)))?)
    }

    /// Writes what `fill` puts into a batch.
    fn write(
        &self,
        py: Python<'_>,
        sync: bool,
        fill: impl FnOnce(&mut Batch) + Send,
    ) -> Result<()> {
        let db = &self.space.db;
        py.detach(|| {
            let mut batch = Batch::new();
            fill(&mut batch);
            match sync {
                false => db.write(batch),
                true => db.write_with(batch, Durability::Disk),
            }
        })?;
        Ok(())
    }

    /// Removes a key.
    #[inline]
    pub(crate) fn remove(&self, py: Python<'_>, key: &[u8], sync: bool) -> Result<()> {
        let keyspace = &self.space.keyspace;
        self.space.with_key(key, |key| {
            py.detach(|| match sync {
                false => keyspace.remove(key),
                true => keyspace.remove_with(key, Durability::Disk),
            })
        })?;
        Ok(())
    }
}

/// Replaces the value under a key by the result of `function`, and tries again until no other write
/// comes between.
fn updated(keyspace: &Keyspace, key: &[u8], function: &Py<PyAny>) -> Result<Option<Vec<u8>>> {
    loop {
        let found = keyspace.get(key)?;
        let new = Python::attach(|py| -> PyResult<Option<Vec<u8>>> {
            let found = found.as_ref().map(|value| PyBytes::new(py, value));
            let made = function.bind(py).call1((found,))?;
            if made.is_none() {
                return Ok(None);
            }
            let made: Input<'_, '_> = made.extract()?;
            Ok(Some(made.as_bytes().to_vec()))
        })?;
        let nothing = found.is_none() && new.is_none();
        if nothing || keyspace.compare_and_set(key, found.as_deref(), new.as_deref())? {
            return Ok(new);
        }
    }
}

/// Several keys, as one list of bytes that Python cannot change meanwhile.
pub(crate) fn keys_of<'py>(space: &Space, keys: &Bound<'py, PyAny>) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::with_capacity(keys.len().unwrap_or_default());
    for key in PyIterator::from_object(keys)? {
        let key = key?;
        let key: Input<'_, 'py> = key.extract()?;
        found.push(space.with_key(key.as_bytes(), <[u8]>::to_vec));
    }
    Ok(found)
}

/// Values as Python's bytes.
pub(crate) fn values_of<'py>(
    py: Python<'py>,
    values: &[Option<Vec<u8>>],
) -> Result<Bound<'py, PyList>> {
    let objects = values.iter().map(|value| value.as_ref().map(|bytes| PyBytes::new(py, bytes)));
    Ok(PyList::new(py, objects)?)
}

#[pymethods]
impl Store {
    /// The value under ``key``, or ``default``.
    #[pyo3(signature = (key, default=None, *, verify_checksums=None, fill_cache=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
        default: Option<Bound<'py, PyAny>>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        // Checksums are always verified, and the cache knows what to keep.
        let _ = (verify_checksums, fill_cache);
        Ok(self.find(py, key.as_bytes())?.map(Bound::into_any).or(default))
    }

    /// A read-only ``memoryview`` of the value under ``key``, or ``None``. The value is not copied; the
    /// view shows it as it is now, for as long as the view lives, also after the database was closed.
    fn get_buffer<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
    ) -> Result<Option<Bound<'py, PyMemoryView>>> {
        let keyspace = &*self.space.keyspace;
        let found = self.space.with_key(key.as_bytes(), |key| buffer::find(py, keyspace, key))?;
        found.map(|value| buffer::view(py, value)).transpose()
    }

    /// Puts ``value`` under ``key``; with ``sync`` it survives power loss when this returns.
    /// It expires after ``ttl`` seconds.
    #[pyo3(signature = (key, value, *, sync=false, ttl=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        value: Input<'_, '_>,
        sync: Option<bool>,
        ttl: Option<f64>,
    ) -> Result<()> {
        let (key, value, sync) = (key.as_bytes(), value.as_bytes(), sync.unwrap_or_default());
        let Some(ttl) = ttl else { return self.insert(py, key, value, sync) };
        let ttl = ttl_from(ttl)?;
        let keyspace = &self.space.keyspace;
        self.space.with_key(key, |key| {
            self.write(py, sync, |batch| batch.insert_with_ttl(keyspace, key, value, ttl))
        })
    }

    /// Puts what is left in ``file``, a binary file, under ``key`` and returns how many bytes that is. The value may
    /// have up to 1 GiB and is read in pieces, so that it needs little memory. It survives power loss when this
    /// returns.
    #[pyo3(signature = (key, file, /))]
    fn put_from(&self, py: Python<'_>, key: Input<'_, '_>, file: &Bound<'_, PyAny>) -> Result<u64> {
        pieces::put_from(py, &self.space, key.as_bytes(), file)
    }

    /// A ``ValueReader`` of the value under ``key``, or ``None``. It reads a value that ``put_from`` has written in
    /// pieces.
    #[pyo3(signature = (key, /))]
    fn open_value<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, '_>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        pieces::open_value(py, &self.space, key.as_bytes())
    }

    /// Puts ``value`` under ``key`` if that needs no wait for its turn, for memory or for space on
    /// the device. Otherwise it writes nothing and raises ``WouldBlockError``.
    fn try_put(&self, py: Python<'_>, key: Input<'_, '_>, value: Input<'_, '_>) -> Result<()> {
        let value = value.as_bytes();
        self.write_now(py, key.as_bytes(), |keyspace, key| keyspace.try_insert(key, value))
    }

    /// Removes ``key`` if that needs no wait, as ``try_put``.
    fn try_delete(&self, py: Python<'_>, key: Input<'_, '_>) -> Result<()> {
        self.write_now(py, key.as_bytes(), |keyspace, key| keyspace.try_remove(key))
    }

    /// Writes ``operand``, which the keyspace's merge operator applies to the value.
    #[pyo3(signature = (key, operand, *, sync=false))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        operand: Input<'_, '_>,
        sync: bool,
    ) -> Result<()> {
        let (key, operand, keyspace) = (key.as_bytes(), operand.as_bytes(), &self.space.keyspace);
        self.space.with_key(key, |key| {
            py.detach(|| match sync {
                false => keyspace.merge(key, operand),
                true => keyspace.merge_with(key, operand, Durability::Disk),
            })
        })?;
        Ok(())
    }

    /// Puts ``new`` under ``key`` if its value is ``expected``; ``None`` means no value, for both.
    /// Returns whether it was put.
    #[pyo3(signature = (key, expected, new))]
    fn compare_and_set(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        expected: Option<Input<'_, '_>>,
        new: Option<Input<'_, '_>>,
    ) -> Result<bool> {
        let (key, keyspace) = (key.as_bytes(), &self.space.keyspace);
        let expected = expected.as_ref().map(Input::as_bytes);
        let new = new.as_ref().map(Input::as_bytes);
        let set = |key: &[u8]| py.detach(|| keyspace.compare_and_set(key, expected, new));
        Ok(self.space.with_key(key, set)?)
    }

    /// Puts ``value`` under ``key`` if the key has none. Returns whether it was put.
    fn insert_if_absent(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        value: Input<'_, '_>,
    ) -> Result<bool> {
        let (key, value, keyspace) = (key.as_bytes(), value.as_bytes(), &self.space.keyspace);
        let insert = |key: &[u8]| py.detach(|| keyspace.insert_if_absent(key, value));
        Ok(self.space.with_key(key, insert)?)
    }

    /// Replaces the value under ``key`` by the result of ``function`` on it, and returns the new
    /// one. ``None`` means no value, for both. The function is called again if another write came
    /// between; if it raises, nothing is changed.
    fn update_with<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, '_>,
        function: &Bound<'py, PyAny>,
    ) -> Result<Option<Bound<'py, PyBytes>>> {
        let (keyspace, function) = (&self.space.keyspace, function.clone().unbind());
        let key = key.as_bytes();
        let changed =
            self.space.with_key(key, |key| py.detach(|| updated(keyspace, key, &function)))?;
        Ok(changed.map(|value| PyBytes::new(py, &value)))
    }

    /// Removes ``key``, if it exists.
    #[pyo3(signature = (key, *, sync=false))]
    fn delete(&self, py: Python<'_>, key: Input<'_, '_>, sync: Option<bool>) -> Result<()> {
        self.remove(py, key.as_bytes(), sync.unwrap_or_default())
    }

    /// Removes all keys from ``start`` up to, not including, ``stop``, with one range delete; the
    /// cost does not depend on what the range holds.
    #[pyo3(signature = (start=None, stop=None, *, sync=false))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Input<'_, '_>>,
        stop: Option<Input<'_, '_>>,
        sync: bool,
    ) -> Result<()> {
        let bounds = (start.as_ref().map(Input::as_bytes), stop.as_ref().map(Input::as_bytes));
        self.remove_all(py, &range(&self.space, bounds, (true, false), None)?, sync)
    }

    /// Removes all keys that begin with ``prefix``, with one range delete; the cost does not depend on
    /// how many there are.
    #[pyo3(signature = (prefix, *, sync=false))]
    fn delete_prefix(&self, py: Python<'_>, prefix: Input<'_, '_>, sync: bool) -> Result<()> {
        let range = range(&self.space, (None, None), (true, false), Some(prefix.as_bytes()))?;
        self.remove_all(py, &range, sync)
    }

    /// Removes everything; the cost does not depend on the number of entries.
    fn clear(&self, py: Python<'_>) -> Result<()> {
        self.remove_all(py, &range(&self.space, (None, None), (true, false), None)?, false)
    }

    /// Whether ``key`` exists.
    fn __contains__(&self, py: Python<'_>, key: Input<'_, '_>) -> Result<bool> {
        self.has(py, key.as_bytes())
    }

    /// The values under ``keys``, in their order and as of one moment; ``None`` where there is
    /// none.
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyList>> {
        let keys = keys_of(&self.space, keys)?;
        let values = py.detach(|| self.space.keyspace.multi_get(&keys))?;
        values_of(py, &values)
    }

    /// Makes a batch of writes that are applied together or not at all. As a context manager it is
    /// written at the end of the block; if the block raises, it is dropped, unless ``transaction``
    /// is false.
    #[pyo3(signature = (*, transaction=None, sync=false, durability=None))]
    fn write_batch(
        &self,
        transaction: Option<bool>,
        sync: Option<bool>,
        durability: Option<&str>,
    ) -> Result<WriteBatch> {
        let mut class = durability.map(durability_from).transpose()?;
        if sync == Some(true) {
            class = Some(Durability::Disk);
        }
        let drops = transaction.unwrap_or_else(|| self.space.shared.drops_failed_batches());
        WriteBatch::new(&self.space, drops, class)
    }

    /// Begins an ingestion: sorted entries go into the files of the database directly, the fastest way to
    /// load, and are visible when it is committed. As a context manager it is committed at the end of the
    /// block; if the block raises, nothing of it is kept.
    fn ingestion(&self, py: Python<'_>) -> Result<Ingestion> {
        Ingestion::new(py, &self.space)
    }

    /// Ingests the entries of an iterable of pairs of key and value, whose keys ascend; returns how many
    /// there were. Nothing is visible before it returns; then all of it is, and durable. After an error
    /// nothing of it is kept. They expire ``ttl`` seconds from now.
    #[pyo3(signature = (entries, *, ttl=None))]
    fn ingest_sorted(
        &self,
        py: Python<'_>,
        entries: &Bound<'_, PyAny>,
        ttl: Option<f64>,
    ) -> Result<u64> {
        let ingestion = Ingestion::new(py, &self.space)?;
        let added = ingestion.put_many(py, entries, None, ttl)?;
        ingestion.commit(py)?;
        Ok(added)
    }

    fn __iter__(&self, py: Python<'_>) -> Result<Iterator> {
        let wish = Wish::everything();
        Iterator::new(py, &self.space, &wish, || self.space.keyspace.cursor())
    }

    /// An iterator over the keys from ``start`` to ``stop``, or over those that begin with
    /// ``prefix``, as they are now.
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
        Iterator::new(py, &self.space, &wish, || self.space.keyspace.cursor())
    }

    /// An iterator in LevelDB's style, which is on an entry. It takes no prefix.
    #[pyo3(signature = (*, verify_checksums=None, fill_cache=None))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        verify_checksums: Option<bool>,
        fill_cache: Option<bool>,
    ) -> Result<RawIterator> {
        let _ = (verify_checksums, fill_cache);
        RawIterator::new(py, &self.space, || self.space.keyspace.cursor())
    }

    /// The entries of a range as an Arrow stream of record batches with the binary columns ``key``
    /// and ``value``, as they are now.
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
        self.space.shared.check()?;
        let include = (include_start, include_stop);
        let shown = (include_key, include_value);
        let wish = Wish { reverse, start, stop, include, prefix, shown };
        let snapshot = py.detach(|| self.space.db.snapshot())?;
        ArrowScan::new(&self.space, snapshot, &wish, (batch_rows, batch_bytes))
    }

    /// Takes a snapshot: the state at this moment, which does not change. The statistics show its
    /// label.
    #[pyo3(signature = (*, label=None))]
    fn snapshot(&self, py: Python<'_>, label: Option<&str>) -> Result<Snapshot> {
        self.space.shared.check()?;
        let take = || match label {
            Some(label) => self.space.db.snapshot_with_label(label),
            None => self.space.db.snapshot(),
        };
        Snapshot::new(&self.space, py.detach(take)?)
    }

    /// Reads ``key`` like ``get``, and says what the read did, as a dict: the sources that it
    /// searched, in order, how the search of each ended, the blocks and bytes that it read, and the
    /// seconds that each step took. It holds no key and no value.
    fn explain_get<'py>(&self, py: Python<'py>, key: Input<'_, 'py>) -> Result<Bound<'py, PyDict>> {
        self.space.shared.check()?;
        let keyspace = &self.space.keyspace;
        let explain = |key: &[u8]| py.detach(|| keyspace.explain_get(key));
        let explanation = self.space.with_key(key.as_bytes(), explain)?;
        Ok(crate::explain::explanation(py, &explanation)?)
    }

    /// Walks over at most ``limit`` entries from ``start`` up to, not including, ``stop``, and says
    /// what the scan did: ``entries`` is how many it found, ``stepped_over`` how many it passed
    /// without returning them. Otherwise as ``explain_get``.
    #[pyo3(signature = (start=None, stop=None, *, limit=100))]
    fn explain_scan<'py>(
        &self,
        py: Python<'py>,
        start: Option<Input<'_, 'py>>,
        stop: Option<Input<'_, 'py>>,
        limit: u64,
    ) -> Result<Bound<'py, PyDict>> {
        self.space.shared.check()?;
        let bounds = (start.as_ref().map(Input::as_bytes), stop.as_ref().map(Input::as_bytes));
        let range = range(&self.space, bounds, (true, false), None)?;
        let keyspace = &self.space.keyspace;
        let explain = || keyspace.explain_scan::<&[u8]>(range.bounds(), limit);
        let explanation = py.detach(explain)?;
        Ok(crate::explain::explanation(py, &explanation)?)
    }

    /// Puts ``value`` under ``key`` with the durability of the database, and says how long each
    /// phase of the write took and what it waited for. Otherwise as ``explain_get``.
    fn explain_put<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
        value: Input<'_, 'py>,
    ) -> Result<Bound<'py, PyDict>> {
        self.space.shared.check()?;
        let (value, keyspace) = (value.as_bytes(), &self.space.keyspace);
        let explain = |key: &[u8]| py.detach(|| keyspace.explain_put(key, value));
        let explanation = self.space.with_key(key.as_bytes(), explain)?;
        Ok(crate::explain::explanation(py, &explanation)?)
    }

    /// Compacts the entries between two keys, so that they take less space.
    #[pyo3(signature = (*, start=None, stop=None))]
    fn compact_range(
        &self,
        py: Python<'_>,
        start: Option<Input<'_, '_>>,
        stop: Option<Input<'_, '_>>,
    ) -> Result<()> {
        let bounds = (start.as_ref().map(Input::as_bytes), stop.as_ref().map(Input::as_bytes));
        let range = range(&self.space, bounds, (true, self.space.order.is_none()), None)?;
        Ok(py.detach(|| self.space.keyspace.compact_range::<&[u8]>(range.bounds()))?)
    }

    /// Estimates the bytes that the entries from ``start`` to ``stop`` take in files.
    fn approximate_size(
        &self,
        py: Python<'_>,
        start: Input<'_, '_>,
        stop: Input<'_, '_>,
    ) -> Result<u64> {
        let bounds = (Some(start.as_bytes()), Some(stop.as_bytes()));
        let range = range(&self.space, bounds, (true, false), None)?;
        Ok(py.detach(|| self.space.keyspace.approximate_size::<&[u8]>(range.bounds()))?)
    }

    /// Like ``approximate_size`` for several pairs of ``start`` and ``stop``, as a list.
    #[pyo3(signature = (*ranges))]
    fn approximate_sizes(&self, py: Python<'_>, ranges: &Bound<'_, PyTuple>) -> Result<Vec<u64>> {
        self.space.shared.check()?;
        let mut sizes = Vec::with_capacity(ranges.len());
        for range in ranges {
            let pair = PyIterator::from_object(&range)?.collect::<PyResult<Vec<_>>>()?;
            let [start, stop] = pair.as_slice() else {
                let what = "a range is a pair of start and stop";
                return Err(Failure::Python(PyTypeError::new_err(what)));
            };
            sizes.push(self.approximate_size(py, start.extract()?, stop.extract()?)?);
        }
        Ok(sizes)
    }
}
