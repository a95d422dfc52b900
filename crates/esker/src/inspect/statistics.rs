//! The file of statistics: both slots, and the numbers of the newer one.
//!
//! A process that has the database open may write the file while it is shown, so a slot may be
//! damaged that is whole a moment later.

use super::fields::{Fields, size};
use crate::error::{IoContext, Result};
use crate::fs::{File, Fs, OpenMode};
use crate::monitor::statistics::format::{
    HEADER_BYTES, Header, Slot, decode, payload_fits, payload_offset, slot_offset,
};
use crate::stats::{SamplePart, Stats};
use std::path::Path;

pub(super) fn show(fs: &dyn Fs, path: &Path, fields: &mut Fields) -> Result<()> {
    fields.add("file", "statistics");
    fields.add("bytes", size(fs, path)?);
    let file = fs.open(path, OpenMode::Read).context("open", path)?;
    let mut newest: Option<(u64, Vec<u8>)> = None;
    for index in 0..2 {
        let name = format!("slot[{}]", slot_offset(index));
        let mut bytes = [0; HEADER_BYTES];
        if file.read_at(&mut bytes, slot_offset(index)).is_err() {
            fields.add(format!("{name}.damaged"), "the file ends before it");
            continue;
        }
        match decode(index, &bytes) {
            Slot::Unusable => fields.add(format!("{name}.damaged"), "no header, or half of one"),
            Slot::OtherVersion(version) => fields.add(format!("{name}.version"), version),
            Slot::Whole { header, len, sum } => {
                show_header(fields, &name, &header, len);
                match payload(file.as_ref(), &header, len, sum) {
                    None => fields.add(format!("{name}.payload"), "its checksum does not match"),
                    Some(payload) => {
                        fields.add(format!("{name}.payload"), "its checksum is right");
                        if newest.as_ref().is_none_or(|(update, _)| *update < header.update) {
                            newest = Some((header.update, payload));
                        }
                    }
                }
            }
        }
    }
    if let Some((update, payload)) = newest {
        fields.add("shown update", update);
        show_numbers(fields, &payload);
    }
    Ok(())
}

fn payload(file: &dyn File, header: &Header, len: usize, sum: u64) -> Option<Vec<u8>> {
    let mut payload = vec![0; len];
    file.read_at(&mut payload, payload_offset(header.update)).ok()?;
    payload_fits(header.update, sum, &payload).then_some(payload)
}

fn show_header(fields: &mut Fields, name: &str, header: &Header, len: usize) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut add = |field: &str, value: String| fields.add(format!("{name}.{field}"), value);
    add("state", if header.closed { "closed" } else { "open" }.to_owned());
    add("database", hex(&header.database));
    add("process.id", header.process.id.to_string());
    add("process.started", header.process.started.to_string());
    add("process.boot", hex(&header.process.boot));
    add("process.namespace", header.process.namespace.to_string());
    add("inode", header.inode.to_string());
    add("opened", header.opened.to_string());
    add("update", header.update.to_string());
    add("updated", header.updated.to_string());
    add("keyspaces", header.keyspaces.to_string());
    add("payload bytes", len.to_string());
}

/// Every number of the statistics; counts, bytes and nanoseconds.
fn show_numbers(fields: &mut Fields, payload: &[u8]) {
    let Some(stats) = Stats::decode(payload) else {
        fields.add("damaged", "the payload holds no statistics");
        return;
    };
    for sample in stats.samples() {
        let labels: Vec<String> =
            sample.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let part = match sample.part {
            SamplePart::Value => String::new(),
            SamplePart::Count => ".count".to_owned(),
            SamplePart::Sum => ".sum".to_owned(),
            SamplePart::Quantile(permille) => format!(".quantile[{permille}]"),
            SamplePart::Bucket(upto) => format!(".bucket[{upto}]"),
        };
        let name = format!("{}[{}]{part}", sample.metric.name, labels.join(","));
        fields.add(name, sample.raw);
    }
}
