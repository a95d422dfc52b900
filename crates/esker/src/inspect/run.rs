//! A run file: its header, and each segment with its blocks.

use super::fields::{Fields, key};
use super::manifest::show_meta;
use crate::base::FileId;
use crate::error::{IoContext, Result};
use crate::fs::{Fs, OpenMode};
use crate::run::{DamagedFile, SegmentKind, SegmentReader};
use std::path::Path;
use std::sync::Arc;

pub(super) fn show(
    fs: &dyn Fs,
    path: &Path,
    id: Option<FileId>,
    fields: &mut Fields,
) -> Result<()> {
    let file = fs.open(path, OpenMode::Read).context("open", path)?;
    // A run file under a foreign name is taken at its word.
    let mut stored = [0; 8];
    let stored = file.read_at(&mut stored, 16).map_or(0, |()| u64::from_le_bytes(stored));
    let id = id.unwrap_or(stored);
    let file = Arc::new(DamagedFile::open_path(fs, path.to_owned(), id)?);
    fields.add("file", "run");
    fields.add("bytes", file.len());
    match file.header().clone() {
        Ok(version) => fields.add("header.format version", version),
        // A version behind a wrong checksum is damage like any other.
        Err(crate::Error::UnknownFormat { found, .. }) => {
            fields.add("header.damaged[8]", format!("format version {found}, and no checksum"));
        }
        Err(error) => fields.damage("header.damaged[0]", error)?,
    }
    fields.add("header.file id", stored);
    let mut end = 64;
    for meta in file.segments() {
        let name = format!("segment[{}]", meta.offset);
        if meta.offset > end {
            let what = format!("{} bytes: padding, or what was given back", meta.offset - end);
            fields.add(format!("unused[{end}]"), what);
        }
        end = meta.end();
        show_meta(&meta, &name, fields);
        if let Err(error) = file.check_tail(&meta) {
            let what = format!("segment tail at {}: {}", meta.tail_offset(), error.0);
            fields.add(format!("{name}.damaged"), what);
        }
        if meta.kind != SegmentKind::Tombstones {
            show_blocks(file.blocks(&meta), &name, fields);
        }
    }
    if end < file.len() {
        let what = format!("{} bytes in which no segment ends", file.len() - end);
        fields.add(format!("damaged[{end}]"), what);
    }
    Ok(())
}

fn show_blocks(mut reader: SegmentReader, name: &str, fields: &mut Fields) {
    if let Some(bytes) = reader.dictionary_bytes() {
        let what = format!("{bytes} bytes at {}", reader.meta().tail_offset());
        fields.add(format!("{name}.dictionary"), what);
    }
    let (mut first, mut last) = (Vec::new(), Vec::new());
    while reader.advance() {
        let (Some(place), Some(block)) = (reader.place(), reader.block()) else { continue };
        block.key_into(0, &mut first);
        block.key_into(block.count() - 1, &mut last);
        let value = format!(
            "{} entries, {:?}, {} bytes, keys {} to {}",
            block.count(),
            place.codec,
            place.len,
            key(&first),
            key(&last)
        );
        fields.add(format!("{name}.block[{}]", place.offset), value);
    }
    for part in reader.lost() {
        if part.section == "block" {
            let what = format!("{} bytes: {}", part.len, part.detail);
            fields.add(format!("{name}.block[{}].damaged", part.offset), what);
        }
    }
}
