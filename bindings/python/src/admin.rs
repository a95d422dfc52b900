//! Administration of a database: statistics, verification, repair and removal.

use crate::db::path_of;
use crate::errors::{Result, exception};
use crate::options::{Packing, Wanted, order_from};
use esker::{
    Compression, Db, Keyspace, LevelShape, Metric, MetricKind, MetricUnit, Options, Sample,
    SamplePart, Stats, VerifyReport,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::fmt::Write;
use std::path::PathBuf;

fn level<'py>(py: Python<'py>, level: &LevelShape) -> PyResult<Bound<'py, PyDict>> {
    numbers(
        py,
        &[
            ("runs", level.runs),
            ("segments", level.segments),
            ("bytes", level.bytes),
            ("entries", level.entries),
            ("raw_bytes", level.raw_bytes),
            ("lz4_bytes", level.lz4_bytes),
            ("zstd_bytes", level.zstd_bytes),
            ("unread_bytes", level.unread_bytes),
        ],
    )
}

/// A dict of numbers.
pub(crate) fn numbers<'py>(
    py: Python<'py>,
    numbers: &[(&str, u64)],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, number) in numbers {
        dict.set_item(name, number)?;
    }
    Ok(dict)
}

/// What a dict holds under a name: a dict, which is made if it is missing.
fn dict_in<'py>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    if let Some(inner) = dict.get_item(name)? {
        return Ok(inner.cast_into()?);
    }
    let inner = PyDict::new(dict.py());
    dict.set_item(name, &inner)?;
    Ok(inner)
}

/// Adds a sample to the dict that its field is in, under the field's name. Times are in seconds.
fn add(dict: &Bound<'_, PyDict>, field: &str, sample: &Sample) -> PyResult<()> {
    let part = match sample.part {
        SamplePart::Value if sample.metric.kind == MetricKind::StateSet => {
            let state = usize::try_from(sample.raw).ok();
            let state = state.and_then(|state| sample.metric.states().get(state));
            return dict.set_item(field, state);
        }
        SamplePart::Bucket(upto) => {
            let upto = if upto == u64::MAX { f64::INFINITY } else { upto as f64 / 1e9 };
            return dict_in(&dict_in(dict, field)?, "buckets")?.set_item(upto, sample.raw);
        }
        part => part.name(sample.metric.kind),
    };
    let Some(part) = part else {
        return match sample.metric.unit {
            MetricUnit::Seconds => dict.set_item(field, sample.value()),
            _ => dict.set_item(field, sample.raw),
        };
    };
    let dict = dict_in(dict, field)?;
    match sample.part {
        SamplePart::Count => dict.set_item(part, sample.raw),
        _ => dict.set_item(part, sample.value()),
    }
}

/// The statistics as a dict of dicts.
pub(crate) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for metric in Metric::all().iter().filter(|metric| !metric.is_listed()) {
        for sample in metric.samples(stats) {
            match sample.field.split_once('.') {
                Some((object, field)) => add(&dict_in(&dict, object)?, field, &sample)?,
                None => add(&dict, sample.field, &sample)?,
            }
        }
    }
    dict.set_item("write_amplification", stats.write_amplification())?;
    let trees = PyDict::new(py);
    for tree in &stats.trees {
        let (partitions, debt) = (tree.partitions, tree.compaction_debt);
        let shape = numbers(py, &[("partitions", partitions), ("compaction_debt", debt)])?;
        shape.set_item("base", level(py, &tree.base)?)?;
        let deltas = tree.deltas.iter().map(|delta| level(py, delta));
        shape.set_item("deltas", deltas.collect::<PyResult<Vec<_>>>()?)?;
        let tiers = tree.tiers.iter().map(|tier| level(py, tier));
        shape.set_item("tiers", tiers.collect::<PyResult<Vec<_>>>()?)?;
        trees.set_item(&tree.keyspace, shape)?;
    }
    dict.set_item("keyspaces", trees)?;
    let snapshots = PyList::empty(py);
    for snapshot in &stats.snapshots {
        let shown = numbers(py, &[("position", snapshot.position), ("count", snapshot.count)])?;
        shown.set_item("label", &snapshot.label)?;
        shown.set_item("age", snapshot.age.as_secs_f64())?;
        snapshots.append(shown)?;
    }
    dict.set_item("snapshots", snapshots)?;
    let branches = PyDict::new(py);
    for branch in &stats.branches {
        branches.set_item(&branch.name, branch.data)?;
    }
    dict.set_item("branches", branches)?;
    dict.set_item("slowest", crate::explain::slowest(py, &stats.slowest)?)?;
    Ok(dict)
}

/// The result of a verification.
pub(crate) fn report<'py>(py: Python<'py>, report: &VerifyReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = numbers(
        py,
        &[
            ("files", report.files),
            ("blocks", report.blocks),
            ("entries", report.entries),
            ("bytes", report.bytes),
        ],
    )?;
    let problems = PyList::empty(py);
    for problem in &report.problems {
        let error = exception(py, &problem.error)?;
        if error.getattr("path")?.is_none() {
            error.setattr("path", problem.path.as_os_str())?;
        }
        problems.append(error)?;
    }
    dict.set_item("problems", problems)?;
    Ok(dict)
}

/// A property by LevelDB's name for it. Bases count as level 1, deltas and the runs of
/// tiers as level 0.
pub(crate) fn property(db: &Db, keyspace: &Keyspace, name: &[u8]) -> esker::Result<Option<String>> {
    let Some(name) = name.strip_prefix(b"leveldb.") else { return Ok(None) };
    let mut text = String::new();
    match name {
        b"stats" => {
            let stats = db.stats();
            let tree = stats.trees.iter().find(|tree| tree.keyspace == keyspace.name());
            let _ = writeln!(text, "level  segments  bytes  entries");
            for (number, deltas) in [(0, true), (1, false)] {
                let levels = tree.map(|tree| match deltas {
                    true => tree.tiers.iter().chain(&tree.deltas).copied().collect(),
                    false => vec![tree.base],
                });
                let sum =
                    |of: fn(&LevelShape) -> u64| -> u64 { levels.iter().flatten().map(of).sum() };
                let (segments, bytes) = (sum(|level| level.segments), sum(|level| level.bytes));
                let entries = sum(|level| level.entries);
                let _ = writeln!(text, "{number}  {segments}  {bytes}  {entries}");
            }
        }
        b"sstables" => {
            for segment in keyspace.segments()? {
                let _ = writeln!(
                    text,
                    "file {} at {}: {} bytes, {} entries, age {}",
                    segment.file, segment.offset, segment.bytes, segment.entries, segment.age
                );
            }
        }
        b"approximate-memory-usage" => {
            let memory = db.stats().memory;
            let _ = write!(text, "{}", memory.total());
        }
        _ => {
            let Some(level) = name.strip_prefix(b"num-files-at-level") else { return Ok(None) };
            // LevelDB has seven levels.
            let [level @ b'0'..=b'6'] = level else { return Ok(None) };
            let segments = keyspace.segments()?;
            let count = segments.iter().filter(|segment| match level {
                b'0' => segment.age > 0,
                b'1' => segment.age == 0,
                _ => false,
            });
            let _ = write!(text, "{}", count.count());
        }
    }
    Ok(Some(text))
}

/// Repairs a database. An intact one is not changed. Otherwise everything that can be read is saved
/// into a new database, which takes the place of the damaged one; the damaged one is kept beside
/// it, under the path that is returned.
#[pyfunction]
#[pyo3(signature = (name, *, paranoid_checks=None, write_buffer_size=None, max_open_files=None,
    lru_cache_size=None, block_size=None, block_restart_interval=None, max_file_size=None,
    compression=Packing(Compression::Auto), bloom_filter_bits=None, comparator=None, comparator_name=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn repair_db(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    paranoid_checks: Option<bool>,
    write_buffer_size: Option<u64>,
    max_open_files: Option<u64>,
    lru_cache_size: Option<u64>,
    block_size: Option<u64>,
    block_restart_interval: Option<u64>,
    max_file_size: Option<u64>,
    compression: Option<Packing>,
    bloom_filter_bits: Option<i64>,
    comparator: Option<&Bound<'_, PyAny>>,
    comparator_name: Option<&Bound<'_, PyBytes>>,
) -> Result<Option<PathBuf>> {
    let _ = (paranoid_checks, write_buffer_size, max_open_files, lru_cache_size, block_size);
    let _ = (block_restart_interval, max_file_size, bloom_filter_bits);
    let order = order_from(comparator, comparator_name)?;
    let options = Wanted { compression, order, ..Wanted::default() }.options()?;
    let path = path_of(name)?;
    Ok(py.detach(|| Db::repair(&path, &options))?.kept)
}

/// Removes a database with everything in it. Other files in its directory stay.
#[pyfunction]
pub(crate) fn destroy_db(py: Python<'_>, name: &Bound<'_, PyAny>) -> Result<()> {
    let path = path_of(name)?;
    Ok(py.detach(|| Db::destroy(&path, &Options::default()))?)
}
