//! Keyspaces as mappings, and databases behind a prefix.

use crate::bytes::Input;
use crate::db::DB;
use crate::errors::{Result, invalid};
use crate::options::{order_from, ttl_from};
use crate::shared::Space;
use crate::store::Store;
use esker::KeyspaceOptions;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// The space of the keyspace of this name, if there is one.
pub(crate) fn existing(py: Python<'_>, space: &Space, name: &str) -> Result<Space> {
    let db = &space.db;
    let keyspace = py.detach(|| {
        if db.keyspaces()?.iter().any(|known| known == name) {
            db.keyspace(name).map(Some)
        } else {
            Ok(None)
        }
    })?;
    let Some(keyspace) = keyspace else {
        return Err(invalid(format!("there is no keyspace {name:?}: make it first")));
    };
    let keyspace = Arc::new(keyspace);
    Ok(Space { keyspace, order: None, prefix: None, ..space.clone() })
}

/// The part of a keyspace that is written in Rust; `esker.Keyspace` adds the rest of a mapping.
#[pyclass(frozen, subclass, extends = Store, module = "esker._esker")]
pub(crate) struct KeyspaceBase {
    db: Py<DB>,
}

#[pymethods]
impl KeyspaceBase {
    /// The keyspace ``name`` of ``db``, made on first use.
    #[new]
    #[pyo3(signature = (db, name, *, comparator=None, comparator_name=None, merge_operator=None,
        compaction_filter=None, ttl=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        db: &Bound<'_, DB>,
        name: &str,
        comparator: Option<&Bound<'_, PyAny>>,
        comparator_name: Option<&Bound<'_, PyBytes>>,
        merge_operator: Option<String>,
        compaction_filter: Option<String>,
        ttl: Option<f64>,
    ) -> Result<PyClassInitializer<Self>> {
        let main = db.as_super().get().space();
        main.shared.check()?;
        let order = order_from(comparator, comparator_name)?;
        let mut options = KeyspaceOptions::default();
        options.comparator = order.clone().map(|order| order as _);
        options.merge_operator = merge_operator;
        options.compaction_filter = compaction_filter;
        options.ttl = ttl.map(ttl_from).transpose()?;
        let keyspace = py.detach(|| main.db.keyspace_with(name, options))?;
        let keyspace = Arc::new(keyspace);
        let space = Space { keyspace, order, prefix: None, ..main.clone() };
        let base = PyClassInitializer::from(Store::new(space));
        Ok(base.add_subclass(Self { db: db.clone().unbind() }))
    }

    /// The time to live, in seconds, of writes that give none; ``None``: they never expire.
    #[getter]
    fn ttl(slf: &Bound<'_, Self>) -> Option<f64> {
        slf.as_super().get().space().keyspace.ttl().map(|ttl| ttl.as_secs_f64())
    }

    /// Sets the time to live of later writes, in seconds; it is stored.
    fn set_ttl(slf: &Bound<'_, Self>, ttl: Option<f64>) -> Result<()> {
        let space = slf.as_super().get().space();
        space.shared.check()?;
        let ttl = ttl.map(ttl_from).transpose()?;
        Ok(slf.py().detach(|| space.keyspace.set_ttl(ttl))?)
    }

    /// The name of its merge operator.
    #[getter]
    fn merge_operator(slf: &Bound<'_, Self>) -> Option<String> {
        slf.as_super().get().space().keyspace.merge_operator()
    }

    /// The database that the keyspace is in.
    #[getter]
    fn db(&self, py: Python<'_>) -> Py<DB> {
        self.db.clone_ref(py)
    }

    /// The name of the keyspace.
    #[getter]
    fn name(slf: &Bound<'_, Self>) -> String {
        slf.as_super().get().space().keyspace.name().to_owned()
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyBytes>> {
        let bytes: Input<'_, '_> = key.extract()?;
        let found = slf.as_super().get().find(slf.py(), bytes.as_bytes())?;
        Ok(found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))?)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: Input<'_, '_>, value: Input<'_, '_>) -> Result<()> {
        slf.as_super().get().insert(slf.py(), key.as_bytes(), value.as_bytes(), false)
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> Result<()> {
        let bytes: Input<'_, '_> = key.extract()?;
        let store = slf.as_super().get();
        if !store.has(slf.py(), bytes.as_bytes())? {
            return Err(PyKeyError::new_err(key.clone().unbind()).into());
        }
        store.remove(slf.py(), bytes.as_bytes(), false)
    }

    /// The number of keys, which are counted one by one.
    fn __len__(slf: &Bound<'_, Self>) -> Result<usize> {
        let space = slf.as_super().get().space();
        let (shared, keyspace) = (&space.shared, &space.keyspace);
        shared.check()?;
        slf.py().detach(|| {
            let mut iter = keyspace.iter()?;
            let mut count = 0;
            while iter.next_entry()?.is_some() {
                count += 1;
            }
            Ok(count)
        })
    }

    /// Whether there is any key.
    fn __bool__(slf: &Bound<'_, Self>) -> Result<bool> {
        let keyspace = &slf.as_super().get().space().keyspace;
        slf.py().detach(|| Ok(keyspace.iter()?.next_entry()?.is_some()))
    }
}

/// The part of a database whose keys begin with a prefix; here the keys are without it.
#[pyclass(frozen, extends = Store, module = "esker")]
pub(crate) struct PrefixedDB {
    db: Py<DB>,
}

impl PrefixedDB {
    /// The keys of `space` that begin with `prefix`.
    pub(crate) fn build<'py>(
        py: Python<'py>,
        db: Py<DB>,
        space: &Space,
        prefix: &[u8],
    ) -> Result<Bound<'py, Self>> {
        let base = PyClassInitializer::from(Store::new(space.behind(prefix)));
        Ok(Bound::new(py, base.add_subclass(Self { db }))?)
    }
}

#[pymethods]
impl PrefixedDB {
    #[new]
    #[pyo3(signature = (*, db, prefix))]
    fn new(db: &Bound<'_, DB>, prefix: Input<'_, '_>) -> PyClassInitializer<Self> {
        let space = db.as_super().get().space().behind(prefix.as_bytes());
        PyClassInitializer::from(Store::new(space)).add_subclass(Self { db: db.clone().unbind() })
    }

    /// The whole database.
    #[getter]
    fn db(&self, py: Python<'_>) -> Py<DB> {
        self.db.clone_ref(py)
    }

    /// The prefix.
    #[getter]
    fn prefix<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyBytes> {
        let prefix = slf.as_super().get().space().prefix.as_deref().unwrap_or_default();
        PyBytes::new(slf.py(), prefix)
    }

    /// The part behind one more prefix.
    #[allow(clippy::self_named_constructors, reason = "plyvel's name for it")]
    fn prefixed_db<'py>(slf: &Bound<'py, Self>, prefix: Input<'_, '_>) -> Result<Bound<'py, Self>> {
        let (py, db) = (slf.py(), slf.get().db.clone_ref(slf.py()));
        Self::build(py, db, slf.as_super().get().space(), prefix.as_bytes())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> Result<String> {
        let prefix = Self::prefix(slf);
        Ok(format!("<esker.PrefixedDB with prefix {}>", prefix.repr()?))
    }
}
