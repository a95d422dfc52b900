//! Reads everything that is still readable of a manifest, for repair and inspection.
//!
//! An open stops at the first damage and refuses; a scan continues behind it. Every record can be
//! checked alone, because its checksum is salted with the nonce of the file and its offset.

use super::log::{HEADER_LEN, check_header};
use super::record::{KIND_EDIT, KIND_SUCCESSOR, RECORD_HEADER_LEN, record_at};
use crate::base::codec::Reader;
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, OpenMode};
use crate::manifest::Edit;
use crate::manifest::search::Search;
use std::path::Path;

/// What a manifest holds.
#[derive(Debug)]
pub struct Scan {
    /// Its version, or what is wrong with its header.
    pub header: Result<u32>,
    /// The number in its header.
    pub number: u64,
    /// The nonce in its header.
    pub nonce: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Records and gaps, in order.
    pub pieces: Vec<Piece>,
}

/// A piece of a manifest.
#[derive(Debug)]
pub struct Piece {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in bytes, padding included.
    pub len: u64,
    /// What it is.
    pub content: Content,
}

/// What a piece of a manifest is.
#[derive(Debug)]
pub enum Content {
    /// An edit.
    Edit(Edit),
    /// The number of the manifest that takes this one's place.
    Successor(u64),
    /// A whole record whose content is invalid.
    Senseless(&'static str),
    /// Bytes that are not a record, between records or behind the last.
    Damage,
    /// Zeros behind the last record: allocated space.
    Unused,
}

impl Scan {
    /// The edits, in order.
    pub fn edits(&self) -> impl Iterator<Item = (u64, &Edit)> {
        self.pieces.iter().filter_map(|piece| match &piece.content {
            Content::Edit(edit) => Some((piece.offset, edit)),
            _ => None,
        })
    }

    /// The manifest that takes this one's place, if it names one.
    pub fn successor(&self) -> Option<u64> {
        self.pieces.iter().rev().find_map(|piece| match piece.content {
            Content::Successor(number) => Some(number),
            _ => None,
        })
    }

    /// Whether the first record, which holds the whole state, is readable.
    pub fn has_state(&self) -> bool {
        self.edits().next().is_some_and(|(offset, _)| offset == HEADER_LEN)
    }
}

/// Reads the manifest at `path`, which should have this number. An unknown version is refused.
pub fn scan(fs: &dyn Fs, path: &Path, number: u64) -> Result<Scan> {
    let file = fs.open(path, OpenMode::Read).context("open", path)?;
    let len = file.len().context("measure", path)?;
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0).context("read", path)?;
    let field = |at: usize| {
        let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<8>());
        field.map_or(0, |field| u64::from_le_bytes(*field))
    };
    // A damaged header may still hold the right nonce; then the checksums of the records match.
    let (stored, nonce) = (field(16), field(24));
    let header = match check_header(path, &bytes, number) {
        Err(error @ Error::UnknownFormat { .. }) => return Err(error),
        other => other.map(|(version, _)| version),
    };
    let mut scan = Scan { header, number: stored, nonce, len, pieces: Vec::new() };
    let mut search = Search::new(&bytes, nonce);
    let mut at = HEADER_LEN as usize;
    while at < bytes.len() {
        let Some(record) = record_at(&bytes, at, nonce) else {
            let next = search.find(at + 8).unwrap_or(bytes.len());
            scan.gap(&bytes, at, next);
            at = next;
            continue;
        };
        let record_len = (RECORD_HEADER_LEN + record.payload.len()).next_multiple_of(8);
        let content = content(record.kind, record.payload);
        scan.pieces.push(Piece { offset: at as u64, len: record_len as u64, content });
        at += record_len;
    }
    Ok(scan)
}

impl Scan {
    fn gap(&mut self, bytes: &[u8], start: usize, end: usize) {
        let zeros = end == bytes.len() && bytes[start..end].iter().all(|byte| *byte == 0);
        let content = if zeros { Content::Unused } else { Content::Damage };
        self.pieces.push(Piece { offset: start as u64, len: (end - start) as u64, content });
    }
}

fn content(kind: u32, payload: &[u8]) -> Content {
    match kind {
        KIND_EDIT => match Edit::decode(payload) {
            Ok(edit) => Content::Edit(edit),
            Err(error) => Content::Senseless(error.0),
        },
        KIND_SUCCESSOR => match Reader::new(payload).u64() {
            Ok(number) => Content::Successor(number),
            Err(error) => Content::Senseless(error.0),
        },
        _ => Content::Senseless("a record is of a kind that is not known"),
    }
}
