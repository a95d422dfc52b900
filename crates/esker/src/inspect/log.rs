//! A log file: its header, and each record with its operations.

use super::fields::{self, Fields, bound, key, size};
use crate::base::split;
use crate::error::{IoContext, Result};
use crate::fs::{Fs, OpenMode};
use crate::wal::format::{HEADER_BYTES, HeaderPage, VERSION};
use crate::wal::ops::{Op, Ops};
use crate::wal::{self, LogFileHeader, Record, RecordKind, Visited};
use std::path::Path;

pub(super) fn show(fs: &dyn Fs, path: &Path, fields: &mut Fields) -> Result<()> {
    fields.add("file", "log file");
    let bytes = size(fs, path)?;
    fields.add("bytes", bytes);
    let file = fs.open(path, OpenMode::Read).context("open", path)?;
    let mut page = vec![0; bytes.min(HEADER_BYTES) as usize];
    file.read_at(&mut page, 0).context("read", path)?;
    match LogFileHeader::decode_page(&page) {
        HeaderPage::Valid(header) => {
            let version = LogFileHeader::version_of(&page).unwrap_or(VERSION);
            fields.add("header.format version", version);
            show_header(&header, bytes, fields);
        }
        HeaderPage::Blank => fields.add("header", "blank: never used"),
        HeaderPage::Damaged => {
            fields.add("damaged[0]", "log file header at 0: no copy is whole, so no record is");
            return Ok(());
        }
        // The read below refuses it.
        HeaderPage::Unknown(_) => {}
    }
    // Damage of the header as a whole, such as a blank one before records.
    wal::visit_file(fs, path, |visited| {
        match visited {
            Visited::Record { record, payload } => show_record(&record, Some(payload), fields),
            Visited::Bad(record) => show_record(&record, None, fields),
            Visited::Gap { start, end, last } => {
                let what = if last { "behind the last record" } else { "between records" };
                let value = format!("positions to {end}, {what}: no whole record starts there");
                fields.add(format!("gap[{start}]"), value);
            }
        }
        Ok(())
    })
    .or_else(|error| fields.damage("damaged[0]", error))
}

fn show_header(header: &LogFileHeader, bytes: u64, fields: &mut Fields) {
    fields.add("header.nonce", format!("{:#018x}", header.nonce));
    fields.add("header.serial", header.serial);
    fields.add("header.start", header.start);
    fields.add("header.capacity", header.capacity);
    fields.add("header.predecessor", format!("{:#018x}", header.predecessor));
    let incarnation: String = header.incarnation.0.iter().map(|b| format!("{b:02x}")).collect();
    fields.add("header.incarnation", incarnation);
    fields.add("header.life", header.life);
    if bytes < HEADER_BYTES + header.capacity {
        let missing = HEADER_BYTES + header.capacity - bytes;
        fields.add(format!("damaged[{bytes}]"), format!("{missing} bytes are missing at the end"));
    }
}

fn show_record(record: &Record, payload: Option<&[u8]>, fields: &mut Fields) {
    let name = format!("record[{}]", record.position);
    let kind = match record.kind {
        RecordKind::Void => "void",
        RecordKind::Batch => "batch",
        RecordKind::End => "end mark",
    };
    fields.add(format!("{name}.kind"), kind);
    fields.add(format!("{name}.payload bytes"), record.payload_len);
    fields.add(format!("{name}.published"), record.published);
    fields.add(format!("{name}.synced"), record.synced);
    if record.kind != RecordKind::Batch {
        return;
    }
    fields.add(format!("{name}.operations"), record.operations);
    let Some(payload) = payload else {
        // A record may go on in the next log file, which is not looked at here.
        fields.add(format!("{name}.damaged"), "the payload is not whole in this file");
        return;
    };
    for (i, op) in Ops::new(payload).enumerate() {
        let name = format!("{name}.op[{i}]");
        match op {
            Ok(op) => fields.add(name, shown(&op)),
            Err(error) => return fields.add(format!("{name}.damaged"), error.0),
        }
    }
}

fn shown(op: &Op<'_>) -> String {
    match *op {
        Op::Put { keyspace, key: k, value } => {
            format!("put keyspace {keyspace} key {} value of {} bytes", key(k), value.len())
        }
        Op::Delete { keyspace, key: k } => format!("delete keyspace {keyspace} key {}", key(k)),
        Op::DeleteRange { keyspace, start, end } => {
            format!("delete range keyspace {keyspace} from {} to {}", bound(start), bound(end))
        }
        Op::CreateKeyspace { keyspace, name, comparator } => {
            let order = if comparator.is_empty() { "bytewise" } else { comparator };
            format!("create keyspace {keyspace} {name:?}, order {order:?}")
        }
        Op::InBranch { keyspace, branch } => format!("keyspace {keyspace} in branch {branch}"),
        Op::DropKeyspace { keyspace } => format!("drop keyspace {keyspace}"),
        Op::Special { keyspace, kind, key: k, stored } => {
            let (expiry, value) = split(kind, stored);
            let what = if kind.is_operand() { "merge" } else { "put" };
            let until = expiry.map_or_else(String::new, |at| format!(", expires at {at} ms"));
            let len = value.len();
            format!("{what} keyspace {keyspace} key {} value of {len} bytes{until}", key(k))
        }
        Op::SetTraits { keyspace, operator, filter, ttl } => {
            format!("set traits of keyspace {}", fields::traits(keyspace, operator, filter, ttl))
        }
    }
}
