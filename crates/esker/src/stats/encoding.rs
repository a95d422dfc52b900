//! Statistics as bytes, for a file that another process reads.
//!
//! The encoding describes itself: each metric has its name, and each number its labels and part.
//! So a reader of another version ignores what it does not know, and leaves at its default what the
//! writer did not know. The layout is in `docs/file-formats.md`. Every length is checked before it
//! is used.

use super::kinds::SamplePart;
use super::lists::Draft;
use super::metrics::{METRICS, Metric};
use super::report::Stats;
use crate::base::codec::{Decoded, Reader, put_bytes, put_varint};
use crate::trace::encoding as trace;
use std::collections::HashMap;

/// The first bytes.
const MAGIC: &[u8; 8] = b"ESKSTAT1";
/// The most labels of a metric.
const LABELS_MAX: u64 = 16;
/// What stands where a metric has its name.
const SLOWEST: &[u8] = b"slowest";

fn put_part(out: &mut Vec<u8>, part: SamplePart) {
    let (tag, parameter) = match part {
        SamplePart::Value => (0, 0),
        SamplePart::Count => (1, 0),
        SamplePart::Sum => (2, 0),
        SamplePart::Quantile(permille) => (3, u64::from(permille)),
        SamplePart::Bucket(upto) => (4, upto),
    };
    out.push(tag);
    put_varint(out, parameter);
}

/// The next part; `None`: one that this version does not know.
fn read_part(reader: &mut Reader<'_>) -> Decoded<Option<SamplePart>> {
    let (tag, parameter) = (reader.u8()?, reader.varint()?);
    Ok(match tag {
        0 => Some(SamplePart::Value),
        1 => Some(SamplePart::Count),
        2 => Some(SamplePart::Sum),
        3 => u16::try_from(parameter).ok().map(SamplePart::Quantile),
        4 => Some(SamplePart::Bucket(parameter)),
        _ => None,
    })
}

fn encode_metric(metric: &Metric, stats: &Stats, out: &mut Vec<u8>) {
    let (mut samples, mut body) = (0, Vec::new());
    metric.visit(stats, &mut |_, values, part, raw| {
        samples += 1;
        values.iter().for_each(|value| put_bytes(&mut body, value.as_bytes()));
        put_part(&mut body, part);
        put_varint(&mut body, raw);
    });
    put_bytes(out, metric.name.as_bytes());
    put_varint(out, metric.labels.len() as u64);
    put_varint(out, samples);
    out.extend_from_slice(&body);
}

/// Encodes the slowest operations in the form of a metric with one label, so that a version which
/// does not know them passes over them.
fn encode_slowest(stats: &Stats, out: &mut Vec<u8>) {
    let operations = trace::encode(&stats.slowest);
    put_bytes(out, SLOWEST);
    put_varint(out, 1);
    put_varint(out, operations.len() as u64);
    for operation in operations {
        put_bytes(out, &operation);
        put_part(out, SamplePart::Value);
        put_varint(out, 0);
    }
}

/// The operation that a sample of [`SLOWEST`] holds in its label.
fn decode_slowest(reader: &mut Reader<'_>, labels: u64, draft: &mut Draft) -> Decoded<()> {
    for at in 0..labels {
        let bytes = reader.bytes(reader.remaining())?;
        if at == 0 {
            draft.stats.slowest.extend(trace::decode(bytes));
        }
    }
    read_part(reader)?;
    reader.varint()?;
    Ok(())
}

fn decode_metric(
    reader: &mut Reader<'_>,
    known: &HashMap<&[u8], &Metric>,
    draft: &mut Draft,
) -> Decoded<()> {
    let name = reader.bytes(reader.remaining())?;
    let metric = known.get(name);
    let labels = reader.varint_max(LABELS_MAX)?;
    // A sample takes at least three bytes, so this bounds the work.
    let samples = reader.varint_max(reader.remaining() as u64)?;
    let mut values: Vec<&str> = Vec::new();
    for _ in 0..samples {
        if name == SLOWEST {
            decode_slowest(reader, labels, draft)?;
            continue;
        }
        values.clear();
        let mut readable = true;
        for _ in 0..labels {
            match std::str::from_utf8(reader.bytes(reader.remaining())?) {
                Ok(value) => values.push(value),
                Err(_) => readable = false,
            }
        }
        let (part, raw) = (read_part(reader)?, reader.varint()?);
        if let (Some(metric), Some(part), true) = (metric, part, readable)
            && let Some(field) = metric.place(draft, &values)
        {
            field.accept(part, raw);
        }
    }
    Ok(())
}

impl Stats {
    /// The statistics as bytes, from which [`Stats::decode`] makes them again. Of
    /// [`Stats::slowest`], at most 16 KiB are among them: the slowest of each kind, with at most 32
    /// steps each.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # db.insert("key", "value")?;
    /// let stats = db.stats();
    /// let decoded = esker::Stats::decode(&stats.encode()).unwrap();
    /// assert_eq!((decoded.puts, decoded.trees), (1, stats.trees));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_varint(&mut out, METRICS.len() as u64 + 1);
        METRICS.iter().for_each(|metric| encode_metric(metric, self, &mut out));
        encode_slowest(self, &mut out);
        out
    }

    /// Statistics from their bytes, which another version may have written: metrics that are
    /// unknown here are ignored, and what was unknown there has its default. `None`: these bytes
    /// are no statistics, or not all of them. There is no checksum.
    ///
    /// # Example
    /// ```
    /// let bytes = esker::Stats::default().encode();
    /// assert_eq!(esker::Stats::decode(&bytes), Some(esker::Stats::default()));
    /// assert_eq!(esker::Stats::decode(&bytes[1..]), None);
    /// ```
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes.strip_prefix(MAGIC)?);
        let known = METRICS.iter().map(|metric| (metric.name.as_bytes(), metric)).collect();
        let mut draft = Draft::default();
        let metrics = reader.varint().ok()?;
        for _ in 0..metrics {
            decode_metric(&mut reader, &known, &mut draft).ok()?;
        }
        reader.is_empty().then_some(draft.stats)
    }
}

/// Statistics in which every number that the table names is another one above 0, with two of every
/// element of a list.
#[cfg(test)]
pub(super) fn distinct() -> Stats {
    let mut next = 0;
    let mut draft = Draft::default();
    for metric in METRICS {
        for labels in metric.examples() {
            let Some(field) = metric.place(&mut draft, &labels) else { continue };
            let mut parts = Vec::new();
            field.emit(&mut |part, _| parts.push(part));
            for part in parts {
                next += 1;
                field.accept(part, next);
            }
        }
    }
    draft.stats
}

#[cfg(test)]
mod tests;
