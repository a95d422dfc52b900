//! The database object.

use crate::bytes::Input;
use crate::errors::{Failure, Result};
use crate::keyspace::PrefixedDB;
use crate::options::{Packing, Wanted, filters_from, merges_from, order_from};
use crate::order::{PyListener, PyOrder};
use crate::shared::{Shared, Space};
use crate::store::Store;
use crate::txn::Transaction;
use esker::{Compression, Db, Error, Keyspace};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The keyspace that holds the entries if the database was opened with a comparator: the default
/// keyspace is always in byte order. LevelDB's C interface uses the same name, so each opens
/// databases of the other.
const ORDERED: &str = "leveldb";

/// An open database.
///
/// It is also the keyspace ``default``; ``keyspace`` opens others.
#[pyclass(frozen, subclass, extends = Store, module = "esker")]
pub(crate) struct DB {
    name: Py<PyAny>,
}

/// A path from a string, bytes, or a path-like object.
pub(crate) fn path_of(name: &Bound<'_, PyAny>) -> Result<PathBuf> {
    let py = name.py();
    let decoded = py.import("os")?.getattr("fsdecode")?.call1((name,)).map_err(|error| {
        if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err("'name' must be a string, bytes or a path")
        } else {
            error
        }
    })?;
    let path: PathBuf = decoded.extract()?;
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        let what = "'name' must not contain a zero byte";
        return Err(Failure::Python(PyValueError::new_err(what)));
    }
    Ok(path)
}

/// The keyspace that the database object stands for.
fn main_keyspace(db: &Db, path: &Path, order: Option<&Arc<PyOrder>>) -> esker::Result<Keyspace> {
    let names = db.keyspaces()?;
    let ordered = names.iter().any(|name| name == ORDERED);
    let default = db.default_keyspace();
    // An empty one may still get a comparator; any other is in byte order.
    let undecided = || Ok(names.len() == 1 && default.iter()?.next_entry()?.is_none());
    match order {
        None if ordered => {
            // Opening it in byte order fails with the name of its order.
            db.keyspace(ORDERED)?;
            Ok(default)
        }
        None => Ok(default),
        Some(order) if ordered || undecided()? => db.keyspace_ordered(ORDERED, order.clone()),
        Some(order) => Err(Error::ComparatorMismatch {
            keyspace: format!("default of {}", path.display()),
            stored: "bytewise".to_owned(),
            asked: esker::Comparator::name(order.as_ref()).to_owned(),
        }),
    }
}

impl DB {
    fn shared(slf: &Bound<'_, Self>) -> Arc<Shared> {
        slf.as_super().get().space().shared.clone()
    }

    /// Runs something of the engine on the database, without the interpreter's lock.
    fn run<R: Send>(
        slf: &Bound<'_, Self>,
        then: impl FnOnce(&Db) -> esker::Result<R> + Send,
    ) -> Result<R> {
        let space = slf.as_super().get().space();
        space.shared.check()?;
        Ok(slf.py().detach(|| then(&space.db))?)
    }

    /// The object of a branch or named snapshot that `open` gives.
    fn branched<'py>(
        slf: &Bound<'py, Self>,
        open: impl FnOnce(&Db) -> esker::Result<Db> + Send,
    ) -> Result<Bound<'py, Self>> {
        let space = slf.as_super().get().space();
        let (db, keyspace) = Self::run(slf, |db| {
            let branch = open(db)?;
            let keyspace = main_keyspace(&branch, branch.path(), space.order.as_ref())?;
            Ok((branch, keyspace))
        })?;
        let keyspace = Arc::new(keyspace);
        let space = Space { db, keyspace, ..space.clone() };
        let name = slf.get().name.clone_ref(slf.py());
        let base = PyClassInitializer::from(Store::new(space));
        Ok(Bound::new(slf.py(), base.add_subclass(Self { name }))?)
    }
}

#[pymethods]
impl DB {
    #[new]
    #[pyo3(signature = (name, *, create_if_missing=false, error_if_exists=false,
        paranoid_checks=None, write_buffer_size=None, max_open_files=None, lru_cache_size=None,
        block_size=None, block_restart_interval=None, max_file_size=None, compression=Packing(Compression::Auto),
        bloom_filter_bits=None, comparator=None, comparator_name=None, memory=None,
        durability="process", sync_interval=5.0, read_only=false, workers=None,
        recovery="refuse", merge_operators=None, compaction_filters=None,
        on_event=None, cold_after=3600.0, max_space_amplification=1.45,
        separate_values_from=4096))]
    #[allow(clippy::too_many_arguments)]
    fn new<'py>(
        py: Python<'py>,
        name: &Bound<'py, PyAny>,
        create_if_missing: Option<bool>,
        error_if_exists: Option<bool>,
        paranoid_checks: Option<bool>,
        write_buffer_size: Option<u64>,
        max_open_files: Option<u64>,
        lru_cache_size: Option<u64>,
        block_size: Option<u64>,
        block_restart_interval: Option<u64>,
        max_file_size: Option<u64>,
        compression: Option<Packing>,
        bloom_filter_bits: Option<i64>,
        comparator: Option<&Bound<'py, PyAny>>,
        comparator_name: Option<&Bound<'py, PyBytes>>,
        memory: Option<u64>,
        durability: &str,
        sync_interval: Option<f64>,
        read_only: bool,
        workers: Option<usize>,
        recovery: &str,
        merge_operators: Option<&Bound<'py, PyDict>>,
        compaction_filters: Option<&Bound<'py, PyDict>>,
        on_event: Option<&Bound<'py, PyAny>>,
        cold_after: Option<f64>,
        max_space_amplification: f64,
        separate_values_from: Option<u32>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = (paranoid_checks, write_buffer_size, max_open_files, lru_cache_size, block_size);
        let _ = (block_restart_interval, max_file_size, bloom_filter_bits);
        let order = order_from(comparator, comparator_name)?;
        let wanted = Wanted {
            create_if_missing: create_if_missing.unwrap_or_default(),
            error_if_exists: error_if_exists.unwrap_or_default(),
            read_only,
            compression,
            memory,
            durability: Some(durability),
            sync_interval,
            workers,
            cold_after: Some(cold_after),
            max_space_amplification: Some(max_space_amplification),
            separate_values_from: Some(separate_values_from),
            recovery: Some(recovery),
            order: order.clone(),
            merges: merges_from(merge_operators)?,
            filters: filters_from(compaction_filters)?,
            listener: on_event
                .map(|function| PyListener::new(function).map(Arc::new))
                .transpose()?,
        };
        let (path, options) = (path_of(name)?, wanted.options()?);
        let (db, keyspace) = py.detach(|| -> esker::Result<_> {
            let db = Db::open_with(&path, options)?;
            let keyspace = main_keyspace(&db, &path, order.as_ref())?;
            Ok((db, keyspace))
        })?;
        let shared = Shared::new(db.clone());
        let keyspace = Arc::new(keyspace);
        let space = Space { db, keyspace, order, prefix: None, shared };
        let base = PyClassInitializer::from(Store::new(space));
        Ok(base.add_subclass(Self { name: name.clone().unbind() }))
    }

    /// The name that the database was opened with.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.name.clone_ref(py)
    }

    /// The database's unique identifier: 16 bytes that were drawn at random when it was made.
    #[getter]
    fn id<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyBytes>> {
        let space = slf.as_super().get().space();
        space.shared.check()?;
        Ok(PyBytes::new(slf.py(), &space.db.id()))
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(slf: &Bound<'_, Self>) -> bool {
        Self::shared(slf).is_closed()
    }

    /// Closes the database for all its iterators, snapshots and keyspaces. May be called again.
    fn close(slf: &Bound<'_, Self>) -> Result<()> {
        Self::shared(slf).close(slf.py())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(slf: &Bound<'_, Self>, _args: &Bound<'_, PyAny>) -> Result<()> {
        Self::close(slf)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> Result<String> {
        let state = if Self::closed(slf) { " (closed)" } else { "" };
        Ok(format!("<esker.DB with name {}{state}>", slf.get().name.bind(slf.py()).repr()?))
    }

    /// The part of the database whose keys begin with ``prefix``; there the keys are without it.
    fn prefixed_db<'py>(
        slf: &Bound<'py, Self>,
        prefix: Input<'_, '_>,
    ) -> Result<Bound<'py, PrefixedDB>> {
        let space = slf.as_super().get().space();
        PrefixedDB::build(slf.py(), slf.clone().unbind(), space, prefix.as_bytes())
    }

    /// Opens the keyspace of this name as a mapping, and makes it on first use.
    #[pyo3(signature = (name, *, comparator=None, comparator_name=None, merge_operator=None,
        compaction_filter=None, ttl=None))]
    fn keyspace<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        comparator: Option<&Bound<'py, PyAny>>,
        comparator_name: Option<&Bound<'py, PyBytes>>,
        merge_operator: Option<&str>,
        compaction_filter: Option<&str>,
        ttl: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let options = PyDict::new(py);
        if comparator.is_some() || comparator_name.is_some() {
            options.set_item("comparator", comparator)?;
            options.set_item("comparator_name", comparator_name)?;
        }
        if let Some(merge_operator) = merge_operator {
            options.set_item("merge_operator", merge_operator)?;
        }
        if let Some(compaction_filter) = compaction_filter {
            options.set_item("compaction_filter", compaction_filter)?;
        }
        if let Some(ttl) = ttl {
            options.set_item("ttl", ttl)?;
        }
        CLASS.import(py, "esker._mapping", "Keyspace")?.call((slf, name), Some(&options))
    }

    /// The names of all keyspaces, in order.
    fn keyspaces(slf: &Bound<'_, Self>) -> Result<Vec<String>> {
        Self::run(slf, Db::keyspaces)
    }

    /// Drops a keyspace with all its entries; false if there is none of this name.
    fn drop_keyspace(slf: &Bound<'_, Self>, name: &str) -> Result<bool> {
        Self::run(slf, |db| db.drop_keyspace(name))
    }

    /// Makes batches behave as plyvel's: see ``esker.plyvel``.
    fn _write_failed_batches(slf: &Bound<'_, Self>) {
        slf.as_super().get().space().shared.write_failed_batches();
    }

    /// Begins a transaction. A pessimistic one locks the keys that it reads for update or writes,
    /// and waits for others' locks, for up to ``lock_timeout`` seconds.
    #[pyo3(signature = (*, sync=false, durability=None, pessimistic=false, lock_timeout=None))]
    fn transaction(
        slf: &Bound<'_, Self>,
        sync: bool,
        durability: Option<&str>,
        pessimistic: bool,
        lock_timeout: Option<f64>,
    ) -> Result<Transaction> {
        let options = crate::txn::options_from(sync, durability, (pessimistic, lock_timeout))?;
        crate::txn::begin(slf, options)
    }

    /// Calls ``function`` with a transaction and commits it; after a conflict it tries again, up to
    /// ``attempts`` times. Returns the function's result. A function that returns an awaitable has
    /// not run: that is a ``TypeError``, and ``esker.aio`` has a ``transact`` for it.
    #[pyo3(signature = (function, *, attempts=1000, sync=false, durability=None,
        pessimistic=false, lock_timeout=None))]
    #[allow(clippy::too_many_arguments)]
    fn transact<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
        attempts: u32,
        sync: bool,
        durability: Option<&str>,
        pessimistic: bool,
        lock_timeout: Option<f64>,
    ) -> Result<Bound<'py, PyAny>> {
        let options = crate::txn::options_from(sync, durability, (pessimistic, lock_timeout))?;
        crate::txn::transact(slf, function, attempts, options)
    }

    /// Makes a branch of this database (or branch) as it is now: an independent database in the
    /// same directory, which begins with the same entries. No data is copied.
    fn branch<'py>(slf: &Bound<'py, Self>, name: &str) -> Result<Bound<'py, Self>> {
        Self::branched(slf, |db| db.branch(name))
    }

    /// Opens a branch that was made before.
    fn open_branch<'py>(slf: &Bound<'py, Self>, name: &str) -> Result<Bound<'py, Self>> {
        Self::branched(slf, |db| db.open_branch(name))
    }

    /// The names of all branches, in order.
    fn branches(slf: &Bound<'_, Self>) -> Result<Vec<String>> {
        Self::run(slf, Db::branches)
    }

    /// Drops a branch and all its entries; false if there is none of this name.
    fn drop_branch(slf: &Bound<'_, Self>, name: &str) -> Result<bool> {
        Self::run(slf, |db| db.drop_branch(name))
    }

    /// Keeps the present state as a named snapshot, which survives closing and reopening.
    fn snapshot_named(slf: &Bound<'_, Self>, name: &str) -> Result<()> {
        Self::run(slf, |db| db.snapshot_named(name))
    }

    /// Opens a named snapshot as a read-only database.
    fn open_named_snapshot<'py>(slf: &Bound<'py, Self>, name: &str) -> Result<Bound<'py, Self>> {
        Self::branched(slf, |db| db.open_named_snapshot(name))
    }

    /// The names of all named snapshots, in order.
    fn named_snapshots(slf: &Bound<'_, Self>) -> Result<Vec<String>> {
        Self::run(slf, Db::named_snapshots)
    }

    /// Drops a named snapshot; false if there is none of this name.
    fn drop_named_snapshot(slf: &Bound<'_, Self>, name: &str) -> Result<bool> {
        Self::run(slf, |db| db.drop_named_snapshot(name))
    }

    /// The name of this branch or named snapshot; ``None`` for the database itself.
    #[getter]
    fn branch_name(slf: &Bound<'_, Self>) -> Option<String> {
        slf.as_super().get().space().db.branch_name().map(str::to_owned)
    }

    /// Copies the present state of the database to ``path``, which must not exist. The two share
    /// data files by hard links where possible.
    fn checkpoint(slf: &Bound<'_, Self>, path: &Bound<'_, PyAny>) -> Result<()> {
        let path = path_of(path)?;
        Self::run(slf, |db| db.checkpoint(&path))
    }

    /// Makes everything written so far survive power loss.
    fn sync(slf: &Bound<'_, Self>) -> Result<()> {
        Self::run(slf, Db::sync)
    }

    /// Writes what is in memory to files.
    fn flush(slf: &Bound<'_, Self>) -> Result<()> {
        Self::run(slf, Db::flush)
    }

    /// Waits until no background work is left.
    fn wait_until_idle(slf: &Bound<'_, Self>) -> Result<()> {
        Self::run(slf, Db::wait_until_idle)
    }

    /// LevelDB's property of this name, or ``None`` if it is unknown.
    fn get_property<'py>(
        slf: &Bound<'py, Self>,
        name: Input<'_, '_>,
    ) -> Result<Option<Bound<'py, PyBytes>>> {
        let keyspace = &slf.as_super().get().space().keyspace;
        let name = name.as_bytes();
        let text = Self::run(slf, |db| crate::admin::property(db, keyspace, name))?;
        Ok(text.map(|text| PyBytes::new(slf.py(), text.as_bytes())))
    }

    /// What the database knows about itself: counters since it was opened, latencies in seconds,
    /// bytes, and the shape of each keyspace.
    fn stats<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>> {
        let stats = Self::run(slf, |db| Ok(db.stats()))?;
        Ok(crate::admin::stats(slf.py(), &stats)?)
    }

    /// The statistics as text in the format OpenMetrics 1.0, for Prometheus and other collectors.
    fn openmetrics(slf: &Bound<'_, Self>) -> Result<String> {
        Self::run(slf, |db| Ok(db.openmetrics()))
    }

    /// Reads everything that is stored; returns what is damaged, as exceptions, and how much was
    /// read.
    fn verify<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyDict>> {
        let report = Self::run(slf, Db::verify)?;
        Ok(crate::admin::report(slf.py(), &report)?)
    }
}
