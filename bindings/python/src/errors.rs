//! From the engine's errors to Python's exceptions.
//!
//! The tree of exceptions is Python (`esker/_errors.py`), so that it can be read, documented and
//! typed there. Here an error is taken apart into its kind, its message and its typed fields.

use esker::{ConflictCause, Error};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// What every fallible call of this crate returns.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// An error on its way to Python: made anywhere, turned into an exception where Python is at hand.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Of the engine.
    Engine(Error),
    /// Made by the binding: the kind in `_errors.py` and the message.
    Own(&'static str, String),
    /// An exception already.
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| {
            let made = match failure {
                Failure::Python(error) => return error,
                Failure::Engine(error) => exception(py, &error),
                Failure::Own(kind, message) => make(py, kind, &message, &PyDict::new(py)),
            };
            made.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

/// An argument that the call does not accept.
pub(crate) fn invalid(what: impl Into<String>) -> Failure {
    Failure::Own("invalid-argument", what.into())
}

/// The object is closed.
pub(crate) fn closed(what: &str) -> Failure {
    Failure::Own("closed", format!("{what} is closed"))
}

fn make<'py>(
    py: Python<'py>,
    kind: &str,
    message: &str,
    fields: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    MAKE.import(py, "esker._errors", "make")?.call1((kind, message, fields))
}

/// The exception for an error of the engine.
pub(crate) fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields_of_files(&fields, error)?;
    fields_of_calls(&fields, error)?;
    fields_of_keyspaces(&fields, error)?;
    make(py, error.kind().as_str(), &error.to_string(), &fields)
}

/// What errors about files carry.
fn fields_of_files(fields: &Bound<'_, PyDict>, error: &Error) -> PyResult<()> {
    match error {
        Error::Io { operation, path, source } => {
            fields.set_item("operation", operation)?;
            fields.set_item("path", path.as_os_str())?;
            if let Some(code) = source.raw_os_error() {
                fields.set_item("errno", code)?;
            }
        }
        Error::Corruption(corruption) => {
            fields.set_item("path", corruption.path.as_os_str())?;
            fields.set_item("offset", corruption.offset)?;
            fields.set_item("section", corruption.section)?;
            fields.set_item("keyspace", corruption.keyspace.as_deref())?;
            fields.set_item("detail", &corruption.detail)?;
            if let Some((low, high)) = &corruption.key_range {
                fields.set_item("key_range", (low.as_slice(), high.as_slice()))?;
            }
        }
        Error::Locked { path }
        | Error::Missing { path }
        | Error::Exists { path, .. }
        | Error::Unfinished { path }
        | Error::DiskFull { path, .. } => fields.set_item("path", path.as_os_str())?,
        Error::NotADatabase { path, found, .. } => {
            fields.set_item("path", path.as_os_str())?;
            fields.set_item("found", found)?;
        }
        Error::UnknownFormat { path, found, supported } => {
            fields.set_item("path", path.as_os_str())?;
            fields.set_item("found", found)?;
            fields.set_item("supported", supported)?;
        }
        _ => {}
    }
    Ok(())
}

/// What errors about arguments and transactions carry.
fn fields_of_calls(fields: &Bound<'_, PyDict>, error: &Error) -> PyResult<()> {
    match error {
        Error::KeyTooLong { len, max } => {
            fields.set_item("length", len)?;
            fields.set_item("limit", max)?;
        }
        Error::ValueTooLarge { len, max } | Error::BatchTooLarge { len, max } => {
            fields.set_item("length", len)?;
            fields.set_item("limit", max)?;
        }
        Error::WouldBlock { reason, retry_after } => {
            fields.set_item("reason", reason.as_str())?;
            fields.set_item("retry_after", retry_after.as_secs_f64())?;
        }
        Error::Poisoned { cause } => fields.set_item("cause", exception(fields.py(), cause)?)?,
        Error::Conflict { keyspace, key, cause } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("key", key.as_slice())?;
            let cause = match cause {
                ConflictCause::KeyChanged => "key-changed",
                ConflictCause::RangeChanged => "range-changed",
                ConflictCause::HistoryTooOld => "history-too-old",
                _ => "unknown",
            };
            fields.set_item("reason", cause)?;
        }
        Error::OutOfOrder { keyspace, key } | Error::Deadlock { keyspace, key } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("key", key.as_slice())?;
        }
        Error::LockTimeout { keyspace, key, waited } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("key", key.as_slice())?;
            fields.set_item("waited", waited.as_secs_f64())?;
        }
        _ => {}
    }
    Ok(())
}

/// What errors about keyspaces carry.
fn fields_of_keyspaces(fields: &Bound<'_, PyDict>, error: &Error) -> PyResult<()> {
    match error {
        Error::KeyspaceDropped { keyspace } => fields.set_item("keyspace", keyspace)?,
        Error::ComparatorMissing { keyspace, comparator } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("comparator", comparator)?;
        }
        Error::ComparatorMismatch { keyspace, stored, asked } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("comparator", stored)?;
            fields.set_item("asked", asked)?;
        }
        Error::BranchMissing { branch } | Error::BranchExists { branch } => {
            fields.set_item("branch", branch)?;
        }
        Error::MergeOperatorMissing { keyspace, operator } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("operator", operator)?;
        }
        Error::MergeOperatorMismatch { keyspace, stored, asked } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("operator", stored)?;
            fields.set_item("asked", asked)?;
        }
        Error::MergeFailed { keyspace, operator, detail } => {
            fields.set_item("keyspace", keyspace)?;
            fields.set_item("operator", operator)?;
            fields.set_item("detail", detail)?;
        }
        _ => {}
    }
    Ok(())
}
