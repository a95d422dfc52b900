//! Ingestion: sorted entries that go into the files of a database directly.

use crate::bytes::{Input, drop_detached};
use crate::errors::{Failure, Result, invalid};
use crate::options::ttl_from;
use crate::shared::Space;
use crate::store::Store;
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyIterator, PyTuple};
use std::time::Duration;

/// At most so many entries, and about so many bytes of them, are taken from an iterable before the
/// interpreter's lock is released to add them.
const CHUNK_ENTRIES: usize = 1024;
const CHUNK_BYTES: usize = 1 << 20;

/// A key and its value.
type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Sorted entries on their way into the files of a database, of any number of its keyspaces.
///
/// The keys of each keyspace must come in its ascending order. Nothing is visible before the commit; then
/// all of it is, at once, and durable. As a context manager it commits at the end of the block; if the block
/// raises, nothing of it is kept.
#[pyclass(frozen, module = "esker")]
pub(crate) struct Ingestion {
    /// `None`: it has ended.
    state: Mutex<Option<esker::Ingestion>>,
    space: Space,
}

impl Ingestion {
    /// Begins one.
    pub(crate) fn new(py: Python<'_>, space: &Space) -> Result<Self> {
        space.shared.check()?;
        let db = &space.db;
        let begun = py.detach(|| db.ingest())?;
        Ok(Self { state: Mutex::new(Some(begun)), space: space.clone() })
    }

    /// Passes the ingestion and the space of a call to `then`.
    fn with<R>(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Store>>,
        then: impl FnOnce(&mut esker::Ingestion, &Space) -> Result<R>,
    ) -> Result<R> {
        self.space.shared.check()?;
        let space = keyspace.map_or(&self.space, |store| store.get().space());
        self.space.check_same(space, "keyspace")?;
        let mut state = self.space.shared.lock(py, &self.state)?;
        then(state.as_mut().ok_or_else(ended)?, space)
    }

    /// Adds entries without the interpreter's lock.
    fn add_chunk(
        &self,
        py: Python<'_>,
        chunk: &[Pair<'_>],
        keyspace: Option<&Bound<'_, Store>>,
        ttl: Option<Duration>,
    ) -> Result<()> {
        let entries: Vec<_> =
            chunk.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())).collect();
        self.with(py, keyspace, |ingestion, space| {
            let (keyspace, prefix) = (&space.keyspace, space.prefix.as_deref().unwrap_or_default());
            py.detach(|| {
                let mut whole = prefix.to_vec();
                entries.iter().try_for_each(|(key, value)| {
                    whole.truncate(prefix.len());
                    whole.extend_from_slice(key);
                    match ttl {
                        None => ingestion.insert(keyspace, &whole, value),
                        Some(ttl) => ingestion.insert_with_ttl(keyspace, &whole, value, ttl),
                    }
                })
            })?;
            Ok(())
        })
    }

    /// Ends it and returns what it was.
    fn take(&self, py: Python<'_>) -> Result<esker::Ingestion> {
        self.space.shared.check()?;
        self.space.shared.lock(py, &self.state)?.take().ok_or_else(ended)
    }
}

/// Takes the next entries from an iterable into `chunk`; `false`: there are no more.
fn take_chunk<'py>(
    entries: &mut Bound<'py, PyIterator>,
    chunk: &mut Vec<Pair<'py>>,
) -> Result<bool> {
    let mut bytes = 0;
    while chunk.len() < CHUNK_ENTRIES && bytes < CHUNK_BYTES {
        let Some(entry) = entries.next() else { return Ok(false) };
        let (key, value) = pair_of(&entry?)?;
        bytes += key.as_bytes().len() + value.as_bytes().len();
        chunk.push((key, value));
    }
    Ok(true)
}

/// A tuple of two, or anything else that yields two.
fn pair_of<'py>(entry: &Bound<'py, PyAny>) -> Result<Pair<'py>> {
    let tuple = match entry.cast::<PyTuple>() {
        Ok(tuple) => tuple.clone(),
        Err(_) => {
            let items = PyIterator::from_object(entry)?.collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(entry.py(), items)?
        }
    };
    if tuple.len() != 2 {
        let what = "an entry is a pair of key and value";
        return Err(Failure::Python(PyTypeError::new_err(what)));
    }
    let object = |index| -> Result<Bound<'py, PyBytes>> {
        Ok(tuple.get_item(index)?.extract::<Input<'_, 'py>>()?.into_object())
    };
    Ok((object(0)?, object(1)?))
}

fn ended() -> Failure {
    invalid("the ingestion has ended: begin another")
}

impl Drop for Ingestion {
    fn drop(&mut self) {
        drop_detached(self.state.get_mut().take());
    }
}

#[pymethods]
impl Ingestion {
    /// Adds an entry, in ``keyspace`` or where the ingestion was begun. Its key must be greater than the
    /// last one of that keyspace. It expires ``ttl`` seconds from now.
    #[pyo3(signature = (key, value, *, keyspace=None, ttl=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        value: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
        ttl: Option<f64>,
    ) -> Result<()> {
        let (key, value) = (key.as_bytes(), value.as_bytes());
        let ttl = ttl.map(ttl_from).transpose()?;
        self.with(py, keyspace, |ingestion, space| {
            let keyspace = &space.keyspace;
            space.with_key(key, |key| {
                py.detach(|| match ttl {
                    None => ingestion.insert(keyspace, key, value),
                    Some(ttl) => ingestion.insert_with_ttl(keyspace, key, value, ttl),
                })
            })?;
            Ok(())
        })
    }

    /// Adds the entries of an iterable of pairs of key and value, as ``put`` does, and returns how many there
    /// were. Pairs are taken a thousand at a time, and added while other threads run. After an error the
    /// entries before the one that failed were added, and a few more pairs may have been taken.
    #[pyo3(signature = (entries, *, keyspace=None, ttl=None))]
    pub(crate) fn put_many(
        &self,
        py: Python<'_>,
        entries: &Bound<'_, PyAny>,
        keyspace: Option<&Bound<'_, Store>>,
        ttl: Option<f64>,
    ) -> Result<u64> {
        let ttl = ttl.map(ttl_from).transpose()?;
        // What is wrong about the call shows before anything is taken from the iterable.
        self.with(py, keyspace, |_, _| Ok(()))?;
        let mut entries = PyIterator::from_object(entries)?;
        let (mut chunk, mut added) = (Vec::new(), 0);
        loop {
            // An iterator that is not written in Python does not look for Ctrl-C.
            py.check_signals()?;
            // The ingestion is not locked while the iterator runs, which may use it.
            let taken = take_chunk(&mut entries, &mut chunk);
            self.add_chunk(py, &chunk, keyspace, ttl)?;
            added += chunk.len() as u64;
            chunk.clear();
            if !taken? {
                return Ok(added);
            }
        }
    }

    /// Adds an operand for the merge operator of the keyspace, in the order of keys.
    #[pyo3(signature = (key, operand, *, keyspace=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        operand: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let (key, operand) = (key.as_bytes(), operand.as_bytes());
        self.with(py, keyspace, |ingestion, space| {
            let keyspace = &space.keyspace;
            space.with_key(key, |key| py.detach(|| ingestion.merge(keyspace, key, operand)))?;
            Ok(())
        })
    }

    /// Adds the removal of a key, in the order of keys.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let key = key.as_bytes();
        self.with(py, keyspace, |ingestion, space| {
            let keyspace = &space.keyspace;
            space.with_key(key, |key| py.detach(|| ingestion.remove(keyspace, key)))?;
            Ok(())
        })
    }

    /// Removes all keys from ``start`` up to, not including, ``stop`` that were written before the commit.
    /// Entries of the ingestion stay. Ranges may come in any order.
    #[pyo3(signature = (start=None, stop=None, *, keyspace=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Input<'_, '_>>,
        stop: Option<Input<'_, '_>>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let bounds = (start.as_ref().map(Input::as_bytes), stop.as_ref().map(Input::as_bytes));
        self.with(py, keyspace, |ingestion, space| {
            let range = crate::iter::range(space, bounds, (true, false), None)?;
            let keyspace = &space.keyspace;
            py.detach(|| ingestion.remove_range::<&[u8]>(keyspace, range.bounds()))?;
            Ok(())
        })
    }

    /// Makes what was added so far durable, but not visible. A thread that calls it at its end saves the one
    /// that joins the time.
    fn sync(&self, py: Python<'_>) -> Result<()> {
        self.with(py, None, |ingestion, _| Ok(py.detach(|| ingestion.sync())?))
    }

    /// Takes over everything of another ingestion of the same database, which ends. Where both added to a
    /// keyspace, the entries must lie apart.
    fn join(&self, py: Python<'_>, other: &Bound<'_, Self>) -> Result<()> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Err(invalid("an ingestion cannot be joined with itself"));
        }
        self.space.check_same(&other.space, "other ingestion")?;
        self.with(py, None, |_, _| Ok(()))?;
        let taken = other.take(py)?;
        self.with(py, None, |ingestion, _| Ok(py.detach(|| ingestion.join(taken))?))
    }

    /// Makes everything durable and visible at once, and ends the ingestion.
    pub(crate) fn commit(&self, py: Python<'_>) -> Result<()> {
        let taken = self.take(py)?;
        Ok(py.detach(|| taken.commit())?)
    }

    /// Ends the ingestion; without a commit nothing of it is kept.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let taken = self.space.shared.lock(py, &self.state)?.take();
        py.detach(|| drop(taken));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Result<Py<Self>> {
        slf.get().space.shared.check()?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let is_open = self.space.shared.lock(py, &self.state)?.is_some();
        if is_open && exc_type.is_none() { self.commit(py) } else { self.close(py) }
    }
}
