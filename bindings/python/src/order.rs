//! Orders of keys, merge operators and compaction filters that are Python functions.

use crate::errors::Failure;
use esker::{CompactionFilter, Comparator, Decision, MergeOperator, OperatorResult};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList};
use std::cmp::Ordering;

/// A function of two keys that says, by the sign of a number, which one comes first.
pub(crate) struct PyOrder {
    name: String,
    function: Py<PyAny>,
}

impl PyOrder {
    /// The order `function`, stored under `name`.
    pub(crate) fn new(name: &[u8], function: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err("'comparator' must be callable"));
        }
        let name = String::from_utf8(name.to_vec())
            .map_err(|_| crate::errors::invalid("'comparator_name' must be UTF-8"))?;
        Ok(Self { name, function: function.clone().unbind() })
    }

    /// Compares two keys; an exception of the function is passed on.
    pub(crate) fn try_compare(&self, a: &[u8], b: &[u8]) -> Result<Ordering, Failure> {
        Python::attach(|py| {
            let keys = (PyBytes::new(py, a), PyBytes::new(py, b));
            let sign: i64 = self.function.bind(py).call1(keys)?.extract()?;
            Ok(sign.cmp(&0))
        })
    }
}

impl Comparator for PyOrder {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.try_compare(a, b).unwrap_or_else(|failure| {
            // The engine contains it, ends writing, and says so to every caller.
            give_up(PyErr::from(failure), &self.function)
        })
    }
}

/// Ends a call of the engine for which a function had no answer. The engine may be on a thread that
/// nobody waits for: the exception is shown, and the engine told by unwinding that no answer can be
/// had, without the panic's own message.
fn give_up(error: PyErr, function: &Py<PyAny>) -> ! {
    let message = error.to_string();
    Python::attach(|py| error.write_unraisable(py, Some(function.bind(py))));
    std::panic::resume_unwind(Box::new(message))
}

/// A function of a key, the value that is there or `None`, and a list of operands from old to new;
/// it returns the new value, or `None` for none.
pub(crate) struct PyMerge {
    name: String,
    function: Py<PyAny>,
}

impl PyMerge {
    /// The operator `function`, stored under `name`.
    pub(crate) fn new(name: String, function: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err("a merge operator must be callable"));
        }
        Ok(Self { name, function: function.clone().unbind() })
    }
}

impl MergeOperator for PyMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> OperatorResult<Option<Vec<u8>>> {
        Python::attach(|py| {
            let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
            let operands = PyList::new(py, operands.iter().map(|operand| bytes(operand)))?;
            let merged = self.function.bind(py).call1((bytes(key), existing.map(bytes), operands));
            // An exception's message reaches whoever reads the key; the rest of it is shown, since
            // the engine may have asked on a thread of its own.
            let merged = merged.inspect_err(|error| {
                error.clone_ref(py).write_unraisable(py, Some(self.function.bind(py)));
            })?;
            if merged.is_none() {
                return Ok(None);
            }
            let merged: crate::bytes::Input<'_, '_> = merged.extract()?;
            Ok(Some(merged.as_bytes().to_vec()))
        })
    }
}

/// A function of a key and a value that says what becomes of them: `True` or `None` keeps the entry,
/// `False` removes it, bytes are the new value.
pub(crate) struct PyFilter {
    name: String,
    function: Py<PyAny>,
}

impl PyFilter {
    /// The filter `function`, stored under `name`.
    pub(crate) fn new(name: String, function: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err("a compaction filter must be callable"));
        }
        Ok(Self { name, function: function.clone().unbind() })
    }

    fn decide(&self, key: &[u8], value: &[u8]) -> PyResult<Decision> {
        Python::attach(|py| {
            let entry = (PyBytes::new(py, key), PyBytes::new(py, value));
            let answer = self.function.bind(py).call1(entry)?;
            if answer.is_none() {
                return Ok(Decision::Keep);
            }
            if let Ok(keep) = answer.cast::<PyBool>() {
                return Ok(if keep.is_true() { Decision::Keep } else { Decision::Remove });
            }
            let changed: crate::bytes::Input<'_, '_> = answer.extract()?;
            Ok(Decision::Change(changed.as_bytes().to_vec()))
        })
    }
}

impl CompactionFilter for PyFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        // The engine contains it, keeps the entries, asks no more, and says so to whoever compacts.
        self.decide(key, value).unwrap_or_else(|error| give_up(error, &self.function))
    }
}
