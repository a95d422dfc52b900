//! Reports as JSON: statistics, verify and repair. Times are in microseconds, sizes in bytes; paths
//! are shown as text. The program and the C interface describe statistics by this one function.

mod explain;

pub use explain::explanation;

use esker::repair::{Kept, Plan, Salvaged};
use esker::{Latency, LevelShape, SegmentShape, Stats, TreeShape, VerifyReport};
use serde_json::{Value, json};
use std::time::Duration;

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn latency(latency: &Latency) -> Value {
    json!({
        "samples": latency.samples,
        "p50": micros(latency.p50),
        "p99": micros(latency.p99),
        "p999": micros(latency.p999),
        "max": micros(latency.max),
    })
}

fn level(level: &LevelShape) -> Value {
    json!({
        "runs": level.runs,
        "segments": level.segments,
        "bytes": level.bytes,
        "entries": level.entries,
    })
}

/// The shape of one tree, as in [`stats`]: a caller with hundreds of thousands of trees writes them
/// one by one.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// for shape in &db.stats().trees {
///     let tree = esker_json::tree(shape, str::to_uppercase);
///     assert_eq!(tree["keyspace"], "DEFAULT");
/// }
/// # Ok::<(), esker::Error>(())
/// ```
pub fn tree(tree: &TreeShape, name: impl Fn(&str) -> String) -> Value {
    json!({
        "keyspace": name(&tree.keyspace),
        "partitions": tree.partitions,
        "base": level(&tree.base),
        "deltas": tree.deltas.iter().map(level).collect::<Vec<_>>(),
    })
}

/// The statistics of a database. `name` says how the name of a keyspace is shown.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// let stats = esker_json::stats(&db.stats(), str::to_owned);
/// assert_eq!(stats["puts"], 1);
/// # Ok::<(), esker::Error>(())
/// ```
pub fn stats(stats: &Stats, name: impl Fn(&str) -> String) -> Value {
    let mut all = json!({
        "put_latency_us": latency(&stats.put_latency),
        "get_latency_us": latency(&stats.get_latency),
        "scan_latency_us": latency(&stats.scan_latency),
        "sync_latency_us": latency(&stats.sync_latency),
        "page_cache_latency_us": latency(&stats.page_cache_latency),
        "device_latency_us": latency(&stats.device_latency),
        "bytes_written": {
            "user": stats.written.user,
            "log": stats.written.log,
            "flush": stats.written.flush,
            "compaction": stats.written.compaction,
            "manifest": stats.written.manifest,
        },
        "stalls_us": {
            "flush_debt": micros(stats.stalls.flush_debt),
            "compaction_debt": micros(stats.stalls.compaction_debt),
            "memory": micros(stats.stalls.memory),
            "log_space": micros(stats.stalls.log_space),
            "sync": micros(stats.stalls.sync),
        },
        "memory": {
            "limit": stats.memory.limit,
            "memtables": stats.memory.memtables,
            "cache": stats.memory.cache,
            "indexes": stats.memory.indexes,
            "held": stats.memory.held,
        },
        "held": {
            "snapshots": stats.held.snapshots,
            "oldest_snapshot_us": micros(stats.held.oldest_snapshot),
            "states": stats.held.states,
            "data": stats.held.data,
        },
        "write_amplification": stats.write_amplification(),
        "slowest": stats.slowest.iter().map(|slow| explain::slow(slow, &name)).collect::<Vec<_>>(),
        "trees": stats.trees.iter().map(|shape| tree(shape, &name)).collect::<Vec<_>>(),
    });
    for (name, count) in stats.counters() {
        all[name] = count.into();
    }
    all
}

/// The run segments of a keyspace. Keys are shown in hexadecimal.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// db.insert("k", "v")?;
/// db.flush()?;
/// let segments = esker_json::segments(&db.default_keyspace().segments()?);
/// assert_eq!(segments[0]["smallest"], "6b");
/// # Ok::<(), esker::Error>(())
/// ```
pub fn segments(segments: &[SegmentShape]) -> Value {
    let segment = |segment: &SegmentShape| {
        json!({
            "age": segment.age,
            "file": segment.file,
            "offset": segment.offset,
            "bytes": segment.bytes,
            "entries": segment.entries,
            "smallest": hex(&segment.smallest),
            "largest": hex(&segment.largest),
            "tombstones": segment.tombstones,
        })
    };
    segments.iter().map(segment).collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // To write into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The report of verify.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let report = esker_json::verify(&db.verify()?);
/// assert_eq!(report["problems"].as_array().map(Vec::len), Some(0));
/// # Ok::<(), esker::Error>(())
/// ```
pub fn verify(report: &VerifyReport) -> Value {
    let problem = |problem: &esker::Problem| {
        json!({
            "path": problem.path.to_string_lossy(),
            "kind": problem.error.kind().as_str(),
            "message": problem.error.to_string(),
        })
    };
    json!({
        "files": report.files,
        "blocks": report.blocks,
        "entries": report.entries,
        "bytes": report.bytes,
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
    })
}

/// The report of what a repair could save of a database.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # esker::Db::open(&dir)?.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// assert_eq!(esker_json::plan(&plan)["whole"], true);
/// # Ok::<(), esker::Error>(())
/// ```
pub fn plan(plan: &Plan) -> Value {
    let finding = |finding: &esker::repair::Finding| {
        json!({
            "state": finding.state.to_string(),
            "path": finding.path.as_ref().map(|path| path.to_string_lossy()),
            "text": finding.text,
        })
    };
    let kept = |kept: &Kept| {
        json!({
            "keyspace": kept.keyspace,
            "entries": kept.entries,
            "at_most": kept.at_most,
            "segments": kept.segments,
            "blocks": kept.blocks,
            "blocks_lost": kept.blocks_lost,
        })
    };
    json!({
        "whole": plan.is_whole(),
        "losses": plan.has_losses(),
        "findings": plan.findings.iter().map(finding).collect::<Vec<_>>(),
        "keyspaces": plan.keyspaces.iter().map(kept).collect::<Vec<_>>(),
        "log": {
            "batches": plan.log.batches,
            "operations": plan.log.operations,
            "lost": plan.log.lost,
        },
    })
}

/// The report of what a repair saved of a database.
///
/// # Example
/// ```
/// # let (dir, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
/// # esker::Db::open(&dir)?.close()?;
/// let salvaged = esker::repair::salvage(&dir, &new, &esker::Options::default())?;
/// assert_eq!(esker_json::salvaged(&salvaged)["plan"]["losses"], false);
/// # Ok::<(), esker::Error>(())
/// ```
pub fn salvaged(salvaged: &Salvaged) -> Value {
    json!({
        "plan": plan(&salvaged.plan),
        "to": salvaged.to.to_string_lossy(),
        "operations": salvaged.operations,
    })
}
