//! Explanations of operations as dicts.
//!
//! The names are those of `esker explain --json`, with one difference that all dicts of this package
//! share: times are in seconds, so `time` stands where the JSON has `us`. A dict holds no key and no
//! value.

use crate::admin::numbers;
use esker::{BlockCounts, Explanation, SlowOperation, Step, StepSource};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::time::UNIX_EPOCH;

/// An explanation as a dict.
pub(crate) fn explanation<'py>(
    py: Python<'py>,
    explanation: &Explanation,
) -> PyResult<Bound<'py, PyDict>> {
    let Explanation { bytes_read, entries, stepped_over, .. } = *explanation;
    let counts = [("bytes_read", bytes_read), ("entries", entries), ("stepped_over", stepped_over)];
    let dict = numbers(py, &counts)?;
    dict.set_item("operation", explanation.operation)?;
    dict.set_item("keyspace", &explanation.keyspace)?;
    dict.set_item("found", explanation.found)?;
    dict.set_item("time", explanation.time.as_secs_f64())?;
    dict.set_item("blocks", blocks(py, explanation.blocks)?)?;
    let steps = PyList::empty(py);
    for one in &explanation.steps {
        steps.append(step(py, one)?)?;
    }
    dict.set_item("steps", steps)?;
    let waits = PyList::empty(py);
    for wait in &explanation.waits {
        let shown = PyDict::new(py);
        shown.set_item("cause", wait.cause.as_str())?;
        shown.set_item("time", wait.time.as_secs_f64())?;
        waits.append(shown)?;
    }
    dict.set_item("waits", waits)?;
    Ok(dict)
}

/// The slowest operations as a list; `when` is in seconds since 1970.
pub(crate) fn slowest<'py>(
    py: Python<'py>,
    slowest: &[SlowOperation],
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for slow in slowest {
        let dict = explanation(py, &slow.explanation)?;
        let when = slow.when.duration_since(UNIX_EPOCH).unwrap_or_default();
        dict.set_item("when", when.as_secs_f64())?;
        list.append(dict)?;
    }
    Ok(list)
}

fn blocks(py: Python<'_>, blocks: BlockCounts) -> PyResult<Bound<'_, PyDict>> {
    let BlockCounts { cached, page_cache, device, .. } = blocks;
    numbers(py, &[("cached", cached), ("page_cache", page_cache), ("device", device)])
}

fn step<'py>(py: Python<'py>, step: &Step) -> PyResult<Bound<'py, PyDict>> {
    let dict = numbers(py, &[("bytes_read", step.bytes_read), ("entries", step.entries)])?;
    dict.set_item("source", step.source.as_str())?;
    match step.source {
        StepSource::Memtable { number, of, sealed } => {
            dict.set_item("number", number)?;
            dict.set_item("of", of)?;
            dict.set_item("sealed", sealed)?;
        }
        StepSource::Run { tier, partition, age, file, segment } => {
            dict.set_item("tier", tier)?;
            dict.set_item("partition", partition)?;
            dict.set_item("age", age)?;
            dict.set_item("file", file)?;
            dict.set_item("segment", segment)?;
        }
        _ => {}
    }
    dict.set_item("outcome", step.outcome.as_str())?;
    dict.set_item("time", step.time.as_secs_f64())?;
    dict.set_item("blocks", blocks(py, step.blocks)?)?;
    Ok(dict)
}
