//! Transactions.

use crate::bytes::{self, Input, Lookup, drop_detached};
use crate::db::DB;
use crate::errors::{Failure, Result, closed, invalid};
use crate::iter::{Shape, Wish};
use crate::options::{durability_from, ttl_from};
use crate::shared::Space;
use crate::store::{Store, keys_of, values_of};
use esker::{Durability, Keyspace, TransactionIter, TransactionOptions};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyList};
use std::cell::RefCell;
use std::time::Duration;

impl Lookup for (&esker::Transaction, &Keyspace) {
    fn find(&self, key: &[u8], take: impl FnOnce(&[u8])) -> esker::Result<bool> {
        let found = self.0.get(self.1, key)?;
        Ok(found.map(|value| take(&value)).is_some())
    }
}

/// The engine's options for what Python says.
pub(crate) fn options_from(
    sync: bool,
    durability: Option<&str>,
    locks: (bool, Option<f64>),
) -> Result<TransactionOptions> {
    let mut options = TransactionOptions::default();
    options.durability = durability.map(durability_from).transpose()?;
    if sync {
        options.durability = Some(Durability::Disk);
    }
    options.pessimistic = locks.0;
    options.interrupted = Some(signalled);
    if let Some(seconds) = locks.1 {
        options.lock_timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|_| invalid("'lock_timeout' must be a number of seconds"))?;
    }
    Ok(options)
}

/// Reads and writes that happen as if at one moment, over all keyspaces of a database.
///
/// As a context manager it commits at the end of the block, and rolls back after an exception.
/// ``commit`` raises ``ConflictError`` if something that was read has changed meanwhile.
#[pyclass(frozen, module = "esker")]
pub(crate) struct Transaction {
    transaction: Mutex<Option<esker::Transaction>>,
    space: Space,
}

impl Transaction {
    /// Begins one; calls without a keyspace use `space`.
    fn begin(py: Python<'_>, space: &Space, options: TransactionOptions) -> Result<Self> {
        space.shared.check()?;
        let transaction = py.detach(|| space.db.begin_with(options))?;
        Ok(Self { transaction: Mutex::new(Some(transaction)), space: space.clone() })
    }

    /// Hands the transaction and the space that is meant to `then`.
    fn with<R>(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Store>>,
        then: impl FnOnce(&esker::Transaction, &Space) -> Result<R>,
    ) -> Result<R> {
        self.space.shared.check()?;
        let space = keyspace.map_or(&self.space, |store| store.get().space());
        self.space.check_same(space, "keyspace")?;
        let guard = self.space.shared.lock(py, &self.transaction)?;
        let done = then(guard.as_ref().ok_or_else(|| closed("the transaction"))?, space);
        // A wait that was interrupted fails with what the handler of the signal raised.
        match (done, RAISED.take()) {
            (Err(_), Some(raised)) => Err(raised.into()),
            (done, _) => done,
        }
    }

    /// Removes the keys within ``bounds`` that begin with ``prefix``.
    fn remove_all(
        &self,
        py: Python<'_>,
        keyspace: Option<&Bound<'_, Store>>,
        bounds: (Option<&[u8]>, Option<&[u8]>),
        prefix: Option<&[u8]>,
    ) -> Result<()> {
        self.with(py, keyspace, |transaction, space| {
            let range = crate::iter::range(space, bounds, (true, false), prefix)?;
            let keyspace = &space.keyspace;
            Ok(py.detach(|| transaction.remove_range::<&[u8]>(keyspace, range.bounds()))?)
        })
    }

    fn take(&self, py: Python<'_>) -> Result<Option<esker::Transaction>> {
        Ok(self.space.shared.lock(py, &self.transaction)?.take())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.get_mut().take() {
            drop_detached(transaction);
        }
    }
}

#[pymethods]
impl Transaction {
    /// The value under ``key`` as the transaction sees it, or ``default``.
    #[pyo3(signature = (key, default=None, *, keyspace=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
        default: Option<Bound<'py, PyAny>>,
        keyspace: Option<&Bound<'py, Store>>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        self.with(py, keyspace, |transaction, space| {
            let place = (transaction, &*space.keyspace);
            let found = space.with_key(key.as_bytes(), |key| bytes::get(py, &place, key))?;
            Ok(found.map(Bound::into_any).or(default))
        })
    }

    /// Like ``get``, for a value that will be changed: a pessimistic transaction locks the key.
    #[pyo3(signature = (key, default=None, *, keyspace=None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
        default: Option<Bound<'py, PyAny>>,
        keyspace: Option<&Bound<'py, Store>>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let key = key.as_bytes();
        self.with(py, keyspace, |transaction, space| {
            let keyspace = &space.keyspace;
            let found = space
                .with_key(key, |key| py.detach(|| transaction.get_for_update(keyspace, key)))?;
            Ok(found.map(|value| PyBytes::new(py, &value).into_any()).or(default))
        })
    }

    /// Like ``get_for_update``, with a lock that others may share: nobody writes under it.
    #[pyo3(signature = (key, default=None, *, keyspace=None))]
    fn get_for_share<'py>(
        &self,
        py: Python<'py>,
        key: Input<'_, 'py>,
        default: Option<Bound<'py, PyAny>>,
        keyspace: Option<&Bound<'py, Store>>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let key = key.as_bytes();
        self.with(py, keyspace, |transaction, space| {
            let keyspace = &space.keyspace;
            let found = space
                .with_key(key, |key| py.detach(|| transaction.get_for_share(keyspace, key)))?;
            Ok(found.map(|value| PyBytes::new(py, &value).into_any()).or(default))
        })
    }

    /// Whether ``key`` exists in the keyspace where the transaction was begun.
    fn __contains__(&self, py: Python<'_>, key: Input<'_, '_>) -> Result<bool> {
        let key = key.as_bytes();
        self.with(py, None, |transaction, space| {
            let keyspace = &space.keyspace;
            Ok(space.with_key(key, |key| py.detach(|| transaction.contains_key(keyspace, key)))?)
        })
    }

    /// The values under ``keys`` as the transaction sees them; ``None`` where there is none.
    #[pyo3(signature = (keys, *, keyspace=None))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        keyspace: Option<&Bound<'py, Store>>,
    ) -> Result<Bound<'py, PyList>> {
        let space = keyspace.map_or(&self.space, |store| store.get().space());
        let keys = keys_of(space, keys)?;
        let values = self.with(py, keyspace, |transaction, space| {
            Ok(py.detach(|| transaction.multi_get(&space.keyspace, &keys))?)
        })?;
        values_of(py, &values)
    }

    /// Puts ``value`` under ``key``; it expires ``ttl`` seconds after the commit.
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
        self.with(py, keyspace, |transaction, space| {
            let keyspace = &space.keyspace;
            Ok(space.with_key(key, |key| {
                py.detach(|| match ttl {
                    None => transaction.insert(keyspace, key, value),
                    Some(ttl) => transaction.insert_with_ttl(keyspace, key, value, ttl),
                })
            })?)
        })
    }

    /// Writes ``operand`` for the keyspace's merge operator. This conflicts with nobody, unless the
    /// transaction also reads the key.
    #[pyo3(signature = (key, operand, *, keyspace=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        operand: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let (key, operand) = (key.as_bytes(), operand.as_bytes());
        self.with(py, keyspace, |transaction, space| {
            let keyspace = &space.keyspace;
            Ok(space
                .with_key(key, |key| py.detach(|| transaction.merge(keyspace, key, operand)))?)
        })
    }

    /// Removes ``key``, if it exists.
    #[pyo3(signature = (key, *, keyspace=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let key = key.as_bytes();
        self.with(py, keyspace, |transaction, space| {
            let keyspace = &space.keyspace;
            Ok(space.with_key(key, |key| py.detach(|| transaction.remove(keyspace, key)))?)
        })
    }

    /// Removes all keys from ``start`` up to, not including, ``stop``.
    #[pyo3(signature = (start=None, stop=None, *, keyspace=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<Input<'_, '_>>,
        stop: Option<Input<'_, '_>>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        let bounds = (start.as_ref().map(Input::as_bytes), stop.as_ref().map(Input::as_bytes));
        self.remove_all(py, keyspace, bounds, None)
    }

    /// Removes all keys that begin with ``prefix``.
    #[pyo3(signature = (prefix, *, keyspace=None))]
    fn delete_prefix(
        &self,
        py: Python<'_>,
        prefix: Input<'_, '_>,
        keyspace: Option<&Bound<'_, Store>>,
    ) -> Result<()> {
        self.remove_all(py, keyspace, (None, None), Some(prefix.as_bytes()))
    }

    /// An iterator over a range as the transaction sees it, with its own writes so far.
    #[pyo3(signature = (*, reverse=false, start=None, stop=None, include_start=true,
        include_stop=false, prefix=None, include_key=true, include_value=true, keyspace=None))]
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
        keyspace: Option<&Bound<'py, Store>>,
    ) -> Result<TransactionIterator> {
        let include = (include_start, include_stop);
        let shown = (include_key, include_value);
        let wish = Wish { reverse, start, stop, include, prefix, shown };
        self.with(py, keyspace, |transaction, space| {
            let range = wish.range(space)?;
            let keyspace = &space.keyspace;
            let iter = py.detach(|| transaction.range::<&[u8]>(keyspace, range.bounds()))?;
            let shape = Shape::new(space, shown);
            Ok(TransactionIterator {
                iter: Mutex::new(Some(iter)),
                shape,
                reverse,
                space: space.clone(),
            })
        })
    }

    fn __iter__(&self, py: Python<'_>) -> Result<TransactionIterator> {
        self.iterator(py, false, None, None, true, false, None, true, true, None)
    }

    /// Sets a savepoint, to which ``rollback_to`` can roll back.
    fn savepoint(&self, py: Python<'_>) -> Result<Savepoint> {
        self.with(py, None, |transaction, _| Ok(Savepoint(transaction.savepoint())))
    }

    /// Undoes every write since a savepoint, which may be used again.
    fn rollback_to(&self, py: Python<'_>, savepoint: &Bound<'_, Savepoint>) -> Result<()> {
        let savepoint = &savepoint.get().0;
        self.with(py, None, |transaction, _| Ok(py.detach(|| transaction.rollback_to(savepoint))?))
    }

    /// Commits: all writes happen at one moment, or, after an exception, none of them.
    fn commit(&self, py: Python<'_>) -> Result<()> {
        self.space.shared.check()?;
        let transaction = self.take(py)?.ok_or_else(|| closed("the transaction"))?;
        py.detach(|| transaction.commit())?;
        Ok(())
    }

    /// Rolls back all writes. May be called again.
    fn rollback(&self, py: Python<'_>) -> Result<()> {
        let transaction = self.take(py)?;
        py.detach(|| drop(transaction));
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<()> {
        let open = self.space.shared.lock(py, &self.transaction)?.is_some();
        if open && exc_type.is_none() { self.commit(py) } else { self.rollback(py) }
    }
}

/// A savepoint of a transaction.
#[pyclass(frozen, module = "esker")]
pub(crate) struct Savepoint(esker::Savepoint);

/// An iterator over the entries that a transaction sees. The part that it walks counts as read.
#[pyclass(frozen, module = "esker")]
pub(crate) struct TransactionIterator {
    iter: Mutex<Option<TransactionIter>>,
    shape: Shape,
    reverse: bool,
    space: Space,
}

impl Drop for TransactionIterator {
    fn drop(&mut self) {
        if let Some(iter) = self.iter.get_mut().take() {
            drop_detached(iter);
        }
    }
}

#[pymethods]
impl TransactionIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        let mut guard = self.space.shared.lock(py, &self.iter)?;
        self.space.shared.check()?;
        let iter = guard.as_mut().ok_or_else(|| closed("the iterator"))?;
        let entry = py.detach(|| match self.reverse {
            false => iter.next_entry(),
            true => iter.next_back_entry(),
        })?;
        Ok(entry.map(|(key, value)| self.shape.object(py, &key, &value)).transpose()?)
    }

    /// Closes the iterator. May be called again.
    fn close(&self, py: Python<'_>) -> Result<()> {
        let iter = self.space.shared.lock(py, &self.iter)?.take();
        py.detach(|| drop(iter));
        Ok(())
    }
}

/// Begins a transaction of the database `db`.
pub(crate) fn begin(db: &Bound<'_, DB>, options: TransactionOptions) -> Result<Transaction> {
    Transaction::begin(db.py(), db.as_super().get().space(), options)
}

/// Calls `function` with a transaction and commits it, again and again while that conflicts.
pub(crate) fn transact<'py>(
    db: &Bound<'py, DB>,
    function: &Bound<'py, PyAny>,
    attempts: u32,
    options: TransactionOptions,
) -> Result<Bound<'py, PyAny>> {
    let py = db.py();
    for attempt in 1.. {
        let transaction = Bound::new(py, begin(db, options)?)?;
        let run = || -> Result<Bound<'py, PyAny>> {
            let result = function.call1((&transaction,))?;
            refuse_awaitable(&result)?;
            // A function may end its transaction itself.
            let this = transaction.get();
            let open = this.space.shared.lock(py, &this.transaction)?.is_some();
            if open {
                this.commit(py)?;
            }
            Ok(result)
        };
        let failure = match run() {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        transaction.get().rollback(py)?;
        if attempt >= attempts || !wants_retry(py, &failure)? {
            return Err(failure);
        }
    }
    Err(invalid("'attempts' must be at least 1"))
}

/// What an ``async`` function returns when it is called has not run, and nobody here would let it.
fn refuse_awaitable(result: &Bound<'_, PyAny>) -> Result<()> {
    if !result.hasattr("__await__")? {
        return Ok(());
    }
    if result.hasattr("close")? {
        // Python would warn that it was never awaited.
        result.call_method0("close")?;
    }
    let what = "the function of transact returned an awaitable, so nothing was done: await \
                esker.aio's transact with an async function";
    Err(PyTypeError::new_err(what).into())
}

thread_local! {
    /// What a signal's handler raised while this thread waited for a lock.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Lets Python's handlers of signals run, and says whether one raised an exception.
fn signalled() -> bool {
    Python::attach(|py| py.check_signals()).is_err_and(|raised| {
        RAISED.set(Some(raised));
        true
    })
}

/// Whether a new attempt may help. The exception may be the engine's or have passed Python code.
fn wants_retry(py: Python<'_>, failure: &Failure) -> Result<bool> {
    match failure {
        Failure::Engine(error) => Ok(error.wants_retry()),
        Failure::Own(..) => Ok(false),
        Failure::Python(error) => {
            let errors = py.import("esker._errors")?;
            let kinds = (errors.getattr("ConflictError")?, errors.getattr("DeadlockError")?);
            Ok(error.is_instance(py, &kinds.0) || error.is_instance(py, &kinds.1))
        }
    }
}
