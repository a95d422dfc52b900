//! Administration of a database: statistics, verification, repair and removal.

use crate::db::path_of;
use crate::errors::{Result, exception};
use crate::options::{Packing, Wanted, order_from};
use esker::{Compression, Db, Keyspace, Latency, LevelShape, Options, Stats, VerifyReport};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::fmt::Write;
use std::path::PathBuf;

fn latency<'py>(py: Python<'py>, latency: &Latency) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("samples", latency.samples)?;
    for (name, time) in
        [("p50", latency.p50), ("p99", latency.p99), ("p999", latency.p999), ("max", latency.max)]
    {
        dict.set_item(name, time.as_secs_f64())?;
    }
    Ok(dict)
}

fn level<'py>(py: Python<'py>, level: &LevelShape) -> PyResult<Bound<'py, PyDict>> {
    let LevelShape { runs, segments, bytes, entries, .. } = *level;
    numbers(py, &[("runs", runs), ("segments", segments), ("bytes", bytes), ("entries", entries)])
}

fn numbers<'py>(py: Python<'py>, numbers: &[(&str, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, number) in numbers {
        dict.set_item(name, number)?;
    }
    Ok(dict)
}

/// The statistics as a dict of dicts.
pub(crate) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = numbers(
        py,
        &[
            ("puts", stats.puts),
            ("deletes", stats.deletes),
            ("range_deletes", stats.range_deletes),
            ("commits", stats.commits),
            ("gets", stats.gets),
            ("gets_found", stats.gets_found),
            ("scans", stats.scans),
            ("scanned", stats.scanned),
            ("skipped", stats.skipped),
            ("syncs", stats.syncs),
            ("flushes", stats.flushes),
            ("compactions", stats.compactions),
            ("segments_adopted", stats.segments_adopted),
            ("bytes_read", stats.bytes_read),
            ("cache_hits", stats.cache_hits),
            ("cache_misses", stats.cache_misses),
            ("compaction_debt", stats.compaction_debt),
            ("data_file_bytes", stats.data_file_bytes),
            ("log_file_bytes", stats.log_file_bytes),
        ],
    )?;
    let written = &stats.written;
    let bytes = [
        ("user", written.user),
        ("log", written.log),
        ("flush", written.flush),
        ("compaction", written.compaction),
        ("manifest", written.manifest),
    ];
    dict.set_item("written", numbers(py, &bytes)?)?;
    let memory = &stats.memory;
    let bytes = [
        ("limit", memory.limit),
        ("memtables", memory.memtables),
        ("cache", memory.cache),
        ("indexes", memory.indexes),
        ("held", memory.held),
    ];
    dict.set_item("memory", numbers(py, &bytes)?)?;
    dict.set_item("write_amplification", stats.write_amplification())?;
    dict.set_item("put_latency", latency(py, &stats.put_latency)?)?;
    dict.set_item("get_latency", latency(py, &stats.get_latency)?)?;
    dict.set_item("scan_latency", latency(py, &stats.scan_latency)?)?;
    dict.set_item("sync_latency", latency(py, &stats.sync_latency)?)?;
    let stalls = PyDict::new(py);
    for (name, time) in [
        ("flush_debt", stats.stalls.flush_debt),
        ("compaction_debt", stats.stalls.compaction_debt),
        ("memory", stats.stalls.memory),
        ("log_space", stats.stalls.log_space),
        ("sync", stats.stalls.sync),
    ] {
        stalls.set_item(name, time.as_secs_f64())?;
    }
    dict.set_item("stalls", stalls)?;
    let trees = PyDict::new(py);
    for tree in &stats.trees {
        let shape = numbers(py, &[("partitions", tree.partitions)])?;
        shape.set_item("base", level(py, &tree.base)?)?;
        let deltas = tree.deltas.iter().map(|delta| level(py, delta));
        shape.set_item("deltas", deltas.collect::<PyResult<Vec<_>>>()?)?;
        trees.set_item(&tree.keyspace, shape)?;
    }
    dict.set_item("keyspaces", trees)?;
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

/// A property by LevelDB's name for it. Bases count as level 1, deltas as level 0.
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
                    true => tree.deltas.clone(),
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
            let _ = write!(text, "{}", memory.memtables + memory.cache + memory.indexes);
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
