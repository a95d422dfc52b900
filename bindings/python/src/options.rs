//! The options of a database, as Python gives them.

use crate::errors::{Failure, Result, invalid};
use crate::order::{PyFilter, PyListener, PyMerge, PyOrder};
use esker::{Compression, Durability, Options, Recovery};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;
use std::time::Duration;

/// The durability class of a name.
pub(crate) fn durability_from(name: &str) -> Result<Durability> {
    Ok(match name {
        "buffered" => Durability::Buffered,
        "process" => Durability::Process,
        "disk" => Durability::Disk,
        _ => return Err(invalid("'durability' must be 'buffered', 'process' or 'disk'")),
    })
}

/// A number of seconds, of the option with this name.
fn seconds_from(seconds: Option<f64>, name: &str) -> Result<Option<Duration>> {
    let duration = seconds.map(Duration::try_from_secs_f64).transpose();
    duration.map_err(|_| invalid(format!("'{name}' must be a number of seconds, or None")))
}

/// What open does about a damaged log.
pub(crate) fn recovery_from(name: &str) -> Result<Recovery> {
    Ok(match name {
        "refuse" => Recovery::Refuse,
        "keep-prefix" => Recovery::KeepPrefix,
        _ => return Err(invalid("'recovery' must be 'refuse' or 'keep-prefix'")),
    })
}

/// How blocks are compressed, by name. `snappy` is what plyvel's programs say for the usual.
pub(crate) struct Packing(pub(crate) Compression);

impl<'py> FromPyObject<'_, 'py> for Packing {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name = match object.cast::<PyBytes>() {
            Ok(bytes) => String::from_utf8_lossy(bytes.as_bytes()).into_owned(),
            Err(_) => object.extract().map_err(|_| PyTypeError::new_err("not a string"))?,
        };
        Ok(Self(match name.as_str() {
            "snappy" | "auto" => Compression::Auto,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => {
                let what = "'compression' must be None, 'snappy', 'auto', 'lz4' or 'zstd'";
                return Err(PyValueError::new_err(what));
            }
        }))
    }
}

/// The order that a function and its name make.
pub(crate) fn order_from(
    function: Option<&Bound<'_, PyAny>>,
    name: Option<&Bound<'_, PyBytes>>,
) -> Result<Option<Arc<PyOrder>>> {
    match (function, name) {
        (None, None) => Ok(None),
        (Some(function), Some(name)) => {
            Ok(Some(Arc::new(PyOrder::new(name.as_bytes(), function)?)))
        }
        _ => {
            let what = "'comparator' and 'comparator_name' must be specified together";
            Err(Failure::Python(PyValueError::new_err(what)))
        }
    }
}

/// The merge operators of a dict from name to function.
pub(crate) fn merges_from(operators: Option<&Bound<'_, PyDict>>) -> Result<Vec<Arc<PyMerge>>> {
    let mut found = Vec::new();
    for (name, function) in operators.into_iter().flatten() {
        found.push(Arc::new(PyMerge::new(name.extract()?, &function)?));
    }
    Ok(found)
}

/// The compaction filters of a dict from name to function.
pub(crate) fn filters_from(filters: Option<&Bound<'_, PyDict>>) -> Result<Vec<Arc<PyFilter>>> {
    let mut found = Vec::new();
    for (name, function) in filters.into_iter().flatten() {
        found.push(Arc::new(PyFilter::new(name.extract()?, &function)?));
    }
    Ok(found)
}

/// A time to live of so many seconds.
pub(crate) fn ttl_from(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| invalid("'ttl' must be a number of seconds that is not negative"))
}

/// Options that take effect. plyvel has more, which tune LevelDB: Esker has one number instead, so
/// those are checked for their types and do nothing.
#[derive(Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) create_if_missing: bool,
    pub(crate) error_if_exists: bool,
    pub(crate) read_only: bool,
    /// `None`: not at all.
    pub(crate) compression: Option<Packing>,
    pub(crate) memory: Option<u64>,
    pub(crate) durability: Option<&'a str>,
    pub(crate) sync_interval: Option<f64>,
    pub(crate) workers: Option<usize>,
    /// This and the next two: `None` is the engine's default, `Some(None)` never.
    pub(crate) cold_after: Option<Option<f64>>,
    pub(crate) max_space_amplification: Option<f64>,
    pub(crate) separate_values_from: Option<Option<u32>>,
    pub(crate) recovery: Option<&'a str>,
    pub(crate) order: Option<Arc<PyOrder>>,
    pub(crate) merges: Vec<Arc<PyMerge>>,
    pub(crate) filters: Vec<Arc<PyFilter>>,
    pub(crate) listener: Option<Arc<PyListener>>,
}

impl Wanted<'_> {
    /// The engine's options.
    pub(crate) fn options(self) -> Result<Options> {
        let mut options = Options::default();
        options.create_if_missing = self.create_if_missing;
        options.error_if_exists = self.error_if_exists;
        options.read_only = self.read_only;
        options.compression = self.compression.map_or(Compression::None, |packing| packing.0);
        options.memory = self.memory;
        options.workers = self.workers;
        if let Some(name) = self.durability {
            options.durability = durability_from(name)?;
        }
        if let Some(name) = self.recovery {
            options.recovery = recovery_from(name)?;
        }
        options.sync_interval = seconds_from(self.sync_interval, "sync_interval")?;
        if let Some(after) = self.cold_after {
            options.cold_after = seconds_from(after, "cold_after")?;
        }
        if let Some(from) = self.separate_values_from {
            options.separate_values_from = from;
        }
        if let Some(bound) = self.max_space_amplification {
            options.max_space_amplification = bound;
        }
        if let Some(order) = &self.order {
            options.comparators.push(order.clone());
        }
        options.on_event = self.listener.map(|listener| listener as _);
        options.merge_operators.extend(self.merges.into_iter().map(|merge| merge as _));
        options.compaction_filters.extend(self.filters.into_iter().map(|filter| filter as _));
        Ok(options)
    }
}
