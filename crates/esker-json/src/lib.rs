//! Reports as JSON: statistics, verify and repair. Times are in microseconds, sizes in bytes; paths
//! are shown as text. The program and the C interface describe statistics by this one function.

mod explain;
mod units;

pub use explain::explanation;

use esker::repair::{Kept, Plan, Salvaged};
use esker::{
    BranchUse, LevelShape, Metric, MetricKind, MetricUnit, Observed, Sample, SamplePart,
    SegmentShape, SnapshotUse, Stats, TreeShape, VerifyReport,
};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::micros;

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
        "tiers": tree.tiers.iter().map(level).collect::<Vec<_>>(),
        "compaction_debt": tree.compaction_debt,
    })
}

/// The place of a field: the object that it is in, if it is in one, and its name there. The names of
/// times end in `_us`.
fn place(sample: &Sample) -> (Option<&'static str>, String) {
    let timed = sample.metric.unit == MetricUnit::Seconds;
    let suffix = if timed { "_us" } else { "" };
    match sample.field.split_once('.') {
        // These two are called what they were called before there was a table of metrics.
        Some(("written", field)) => (Some("bytes_written"), field.to_owned()),
        Some(("stalls", field)) => (Some("stalls_us"), field.to_owned()),
        Some((object, field)) if sample.metric.kind == MetricKind::Histogram => {
            (Some(object), field.to_owned())
        }
        Some((object, field)) => (Some(object), format!("{field}{suffix}")),
        None => (None, format!("{}{suffix}", sample.field)),
    }
}

/// The number of a sample; times are in microseconds.
fn number(sample: &Sample) -> Value {
    let counted = matches!(sample.part, SamplePart::Count | SamplePart::Bucket(_));
    match sample.metric.unit {
        MetricUnit::Seconds if !counted => micros(Duration::from_nanos(sample.raw)).into(),
        _ => sample.raw.into(),
    }
}

/// Adds a sample to what is shown of its field.
fn add(field: &mut Value, sample: &Sample) {
    let part = match sample.part {
        SamplePart::Value if sample.metric.kind == MetricKind::StateSet => {
            let state = usize::try_from(sample.raw).ok();
            *field = state.and_then(|state| sample.metric.states().get(state).copied()).into();
            return;
        }
        SamplePart::Bucket(upto) => {
            // A bucket that all waits are in says nothing beyond their count.
            if sample.raw > 0 && upto < u64::MAX {
                let upto = micros(Duration::from_nanos(upto));
                field["buckets_us"][format!("{upto}")] = sample.raw.into();
            }
            return;
        }
        // The other names of a histogram's fields say the unit too.
        SamplePart::Sum if sample.metric.kind == MetricKind::Histogram => Some("total_us"),
        part => part.name(sample.metric.kind),
    };
    match part {
        Some(part) => field[part] = number(sample),
        None => *field = number(sample),
    }
}

/// The statistics of a database. `name` says how the name of a keyspace or a branch, or the label of
/// a snapshot, is shown. The fields follow from the table of metrics ([`esker::Metric`]). A bucket
/// of a histogram is named by the longest time that it counts; buckets that count nothing are left
/// out.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// let stats = esker_json::stats(&db.stats(), str::to_owned);
/// assert_eq!(stats["puts"], 1);
/// assert_eq!(stats["pace"]["mode"], "open");
/// # Ok::<(), esker::Error>(())
/// ```
pub fn stats(stats: &Stats, name: impl Fn(&str) -> String) -> Value {
    let snapshot = |snapshot: &SnapshotUse| {
        json!({
            "position": snapshot.position,
            "label": name(&snapshot.label),
            "age_us": micros(snapshot.age),
            "count": snapshot.count,
        })
    };
    let branch = |branch: &BranchUse| json!({ "name": name(&branch.name), "data": branch.data });
    let mut all = json!({
        "write_amplification": stats.write_amplification(),
        "snapshots": stats.snapshots.iter().map(snapshot).collect::<Vec<_>>(),
        "branches": stats.branches.iter().map(branch).collect::<Vec<_>>(),
        "slowest": stats.slowest.iter().map(|slow| explain::slow(slow, &name)).collect::<Vec<_>>(),
        "trees": stats.trees.iter().map(|shape| tree(shape, &name)).collect::<Vec<_>>(),
    });
    for metric in Metric::all().iter().filter(|metric| !metric.is_listed()) {
        for sample in metric.samples(stats) {
            let (object, field) = place(&sample);
            let object = match object {
                Some(object) => &mut all[object],
                None => &mut all,
            };
            add(&mut object[field], &sample);
        }
    }
    all
}

/// Who wrote statistics for other processes, when, and whether they are of now. The statistics
/// themselves are shown by [`stats`].
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let mut options = esker::Options::default();
/// # options.monitor = Some(true);
/// esker::Db::open_with(&dir, options)?.close()?;
/// let observed = esker_json::observed(&esker::Observed::read(&dir)?);
/// assert_eq!(observed["state"], "closed");
/// assert_eq!(observed["process"], std::process::id());
/// # Ok::<(), esker::Error>(())
/// ```
pub fn observed(observed: &Observed) -> Value {
    let millis = |time: SystemTime| {
        time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
    };
    json!({
        "state": observed.state.as_str(),
        "process": observed.process,
        "opened_ms": millis(observed.opened),
        "updated_ms": millis(observed.updated),
        "age_us": micros(observed.age),
        "update": observed.update,
        "keyspaces": observed.keyspaces,
        "trees_left_out": observed.trees_left_out(),
    })
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

/// The report of verify. The database is `whole` if no problem was found and all was looked at.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let report = esker_json::verify(&db.verify()?);
/// assert_eq!(report["problems"].as_array().map(Vec::len), Some(0));
/// assert_eq!(report["whole"], true);
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
        "interrupted": report.interrupted,
        "whole": report.problems.is_empty() && !report.interrupted,
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
