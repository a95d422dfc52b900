//! Explanations of operations as JSON. Times are in microseconds.

use super::units::micros;
use esker::{BlockCounts, Explanation, SlowOperation, Step, StepSource};
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;

/// What one operation did.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// let explanation = esker_json::explanation(&db.explain_get("apple")?);
/// assert_eq!(explanation["steps"][0]["source"], "memtable");
/// assert_eq!(explanation["steps"][0]["outcome"], "found");
/// # Ok::<(), esker::Error>(())
/// ```
pub fn explanation(explanation: &Explanation) -> Value {
    named(explanation, str::to_owned)
}

fn named(explanation: &Explanation, name: impl Fn(&str) -> String) -> Value {
    let waits = explanation
        .waits
        .iter()
        .map(|wait| json!({ "cause": wait.cause.as_str(), "us": micros(wait.time) }));
    json!({
        "operation": explanation.operation,
        "keyspace": name(&explanation.keyspace),
        "found": explanation.found,
        "us": micros(explanation.time),
        "steps": explanation.steps.iter().map(step).collect::<Vec<_>>(),
        "waits": waits.collect::<Vec<_>>(),
        "blocks": blocks(&explanation.blocks),
        "bytes_read": explanation.bytes_read,
        "entries": explanation.entries,
        "stepped_over": explanation.stepped_over,
    })
}

/// A slow operation; `when_us` counts from the beginning of 1970.
pub(super) fn slow(slow: &SlowOperation, name: impl Fn(&str) -> String) -> Value {
    let mut value = named(&slow.explanation, name);
    value["when_us"] = micros(slow.when.duration_since(UNIX_EPOCH).unwrap_or_default()).into();
    value
}

fn blocks(blocks: &BlockCounts) -> Value {
    json!({
        "cached": blocks.cached,
        "page_cache": blocks.page_cache,
        "device": blocks.device,
    })
}

fn step(step: &Step) -> Value {
    let mut value = json!({
        "outcome": step.outcome.as_str(),
        "us": micros(step.time),
        "blocks": blocks(&step.blocks),
        "bytes_read": step.bytes_read,
        "entries": step.entries,
    });
    value["source"] = step.source.as_str().into();
    match step.source {
        StepSource::Memtable { number, of, sealed } => {
            value["number"] = number.into();
            value["of"] = of.into();
            value["sealed"] = sealed.into();
        }
        StepSource::Run { tier, partition, age, file, segment } => {
            value["tier"] = tier.into();
            value["partition"] = partition.into();
            value["age"] = age.into();
            value["file"] = file.into();
            value["segment"] = segment.into();
        }
        _ => {}
    }
    value
}
