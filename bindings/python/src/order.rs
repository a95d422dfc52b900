//! Custom comparators, merge operators, compaction filters and listeners that are Python functions.

use crate::errors::Failure;
use esker::{
    CompactionFilter, Comparator, Decision, Event, EventListener, MergeOperator, OperatorResult,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList};
use std::cmp::Ordering;

/// A comparator: the sign of the function's result says which of two keys comes first.
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

/// Ends a call of the engine after a function failed. The engine may be on a background thread, so
/// the exception is shown, and the engine learns of it by unwinding, without the panic's message.
fn give_up(error: PyErr, function: &Py<PyAny>) -> ! {
    let message = error.to_string();
    Python::attach(|py| error.write_unraisable(py, Some(function.bind(py))));
    std::panic::resume_unwind(Box::new(message))
}

/// A merge operator: a function of a key, its value or `None`, and a list of operands from old to
/// new; it returns the new value, or `None` for none.
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
            // The reader of the key gets the exception's message; the rest of it is shown, since
            // the engine may have called the function on a background thread.
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

/// A compaction filter: a function of a key and a value that returns `True` or `None` to keep the
/// entry, `False` to remove it, or bytes as the new value.
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
        // The engine contains it, keeps the entries, calls no more, and reports it to the
        // compaction.
        self.decide(key, value).unwrap_or_else(|error| give_up(error, &self.function))
    }
}

/// A listener: a function of a dict, which has the members of the event's JSON.
pub(crate) struct PyListener {
    function: Py<PyAny>,
}

impl PyListener {
    /// The listener `function`.
    pub(crate) fn new(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !function.is_callable() {
            return Err(PyTypeError::new_err("'on_event' must be callable"));
        }
        Ok(Self { function: function.clone().unbind() })
    }
}

impl EventListener for PyListener {
    fn event(&self, event: &Event) {
        Python::attach(|py| {
            let function = self.function.bind(py);
            let told = py
                .import("json")
                .and_then(|json| json.call_method1("loads", (event.to_json(),)))
                .and_then(|event| function.call1((event,)));
            // Nobody waits for the function, so its exception is shown.
            if let Err(error) = told {
                error.write_unraisable(py, Some(function));
            }
        });
    }
}
