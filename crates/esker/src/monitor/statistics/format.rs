//! The bytes of the file `STATISTICS`: two slots, each a header and a payload.
//!
//! A slot is taken only if its magic, version, lengths, both checksums and its place fit. Updates
//! are numbered, and the number decides the slot, so a slot that was copied to the other place is
//! refused.

use crate::base::codec::{Decoded, Reader, checksum};
use crate::fs::Process;

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 64 << 10;
/// Bytes of the header of a slot.
pub const HEADER_BYTES: usize = 128;
/// The most bytes of the payload.
pub const PAYLOAD_BYTES_MAX: usize = SLOT_BYTES - HEADER_BYTES;
/// Bytes of the file.
pub const FILE_BYTES: usize = 2 * SLOT_BYTES;
/// The version of the file.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"ESKERST\n";
const OPEN: u32 = 1;
const CLOSED: u32 = 2;

/// What the header of a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Whether the database was closed.
    pub closed: bool,
    /// The random bytes that identify the database.
    pub database: [u8; 16],
    /// The process that has the database open.
    pub(crate) process: Process,
    /// The inode of the file; 0: not known.
    pub inode: u64,
    /// When the database was opened, in Unix milliseconds.
    pub opened: u64,
    /// The number of the update.
    pub update: u64,
    /// When the update was made, in Unix milliseconds.
    pub updated: u64,
    /// Keyspaces of the database.
    pub keyspaces: u32,
}

/// The place of the slot of an update.
pub fn slot_offset(update: u64) -> u64 {
    (update % 2) * SLOT_BYTES as u64
}

/// The place of the payload of an update.
pub fn payload_offset(update: u64) -> u64 {
    slot_offset(update) + HEADER_BYTES as u64
}

impl Header {
    /// The bytes of this header of a slot with this payload, whose length the caller has checked.
    pub fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        let state = if self.closed { CLOSED } else { OPEN };
        bytes.extend_from_slice(&state.to_le_bytes());
        bytes.extend_from_slice(&self.database);
        bytes.extend_from_slice(&self.process.id.to_le_bytes());
        bytes.extend_from_slice(&self.process.started.to_le_bytes());
        bytes.extend_from_slice(&self.process.boot);
        for word in [self.process.namespace, self.inode, self.opened, self.update, self.updated] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.keyspaces.to_le_bytes());
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        let sum = checksum(self.update, payload_offset(self.update), payload);
        bytes.extend_from_slice(&sum.to_le_bytes());
        let sum = checksum(self.update, slot_offset(self.update), &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// A slot, as its first bytes describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A whole header; its payload is to be checked with [`payload_fits`].
    Whole {
        /// The header.
        header: Header,
        /// The length of the payload, at most [`PAYLOAD_BYTES_MAX`].
        len: usize,
        /// The checksum of the payload.
        sum: u64,
    },
    /// A header of another version.
    OtherVersion(u32),
    /// Nothing, or a slot that is being written.
    Unusable,
}

/// Decodes the header of slot `index`, 0 or 1.
pub fn decode(index: u64, bytes: &[u8]) -> Slot {
    decode_fields(index, bytes).unwrap_or(Slot::Unusable)
}

fn decode_fields(index: u64, bytes: &[u8]) -> Decoded<Slot> {
    let mut reader = Reader::new(bytes);
    if reader.take(8)? != MAGIC {
        return Ok(Slot::Unusable);
    }
    let version = reader.u32()?;
    if version != VERSION {
        return Ok(Slot::OtherVersion(version));
    }
    let state = reader.u32()?;
    let mut header = Header { closed: state == CLOSED, ..Header::default() };
    header.database.copy_from_slice(reader.take(16)?);
    header.process.id = reader.u64()?;
    header.process.started = reader.u64()?;
    header.process.boot.copy_from_slice(reader.take(16)?);
    header.process.namespace = reader.u64()?;
    header.inode = reader.u64()?;
    header.opened = reader.u64()?;
    header.update = reader.u64()?;
    header.updated = reader.u64()?;
    header.keyspaces = reader.u32()?;
    let len = reader.u32()? as usize;
    let sum = reader.u64()?;
    let covered = reader.position();
    let own = reader.u64()?;
    let place = slot_offset(header.update);
    let known = state == OPEN || state == CLOSED;
    let whole =
        bytes.get(..covered).is_some_and(|bytes| checksum(header.update, place, bytes) == own);
    if !known || !whole || header.update % 2 != index || len > PAYLOAD_BYTES_MAX {
        return Ok(Slot::Unusable);
    }
    Ok(Slot::Whole { header, len, sum })
}

/// Whether this is the payload that the header of `update` describes.
pub fn payload_fits(update: u64, sum: u64, payload: &[u8]) -> bool {
    checksum(update, payload_offset(update), payload) == sum
}
