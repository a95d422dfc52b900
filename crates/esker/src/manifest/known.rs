//! How far the manifest and the log are known to be durable.
//!
//! A manifest that lost its last edit, or a log that lost its last records, looks complete. So the
//! superblocks state how far both were durable, and the end mark of the log states it for the
//! manifest.
//!
//! 1. A statement is written only after the sync of what it describes, so it stays true. It may be
//!    older than the files, but never newer.
//! 2. A manifest only grows and has its own nonce. If it does not contain what was durable, it is
//!    damaged or another file.

use crate::base::codec::{Decoded, Reader, checksum};
use crate::wal;

/// How far a manifest reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// The nonce of the manifest.
    pub nonce: u64,
    /// The end of a record.
    pub len: u64,
    /// The running hash of all records up to there.
    pub hash: u64,
}

impl Reach {
    /// A manifest that has only its header.
    pub(super) fn of_header(nonce: u64, len: u64) -> Self {
        Self { nonce, len, hash: nonce }
    }

    /// The reach after another record of `bytes` bytes.
    pub(super) fn with_record(self, sum: u64, bytes: u64) -> Self {
        let hash = checksum(self.hash, self.len, &sum.to_le_bytes());
        Self { len: self.len + bytes, hash, ..self }
    }

    pub(super) fn encode(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.nonce.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16..].copy_from_slice(&self.hash.to_le_bytes());
        bytes
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Decoded<Self> {
        Ok(Self { nonce: reader.u64()?, len: reader.u64()?, hash: reader.u64()? })
    }
}

/// What a superblock states about manifest and log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// The manifest, which the superblock names, was durable up to here.
    pub manifest: Reach,
    /// The log was durable up to here.
    pub log: wal::Reach,
    /// The database was closed in order, and nothing was written since.
    pub closed: bool,
}

/// What the end mark of a log states about the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndMark {
    /// The number of the manifest when the log was closed.
    pub number: u64,
    /// How far it reached.
    pub reach: Reach,
}

impl EndMark {
    /// The payload of the end mark.
    pub fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..].copy_from_slice(&self.reach.encode());
        bytes
    }

    /// Reads a payload; `None` if it is empty, as in version 1.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(payload);
        Some(Self { number: reader.u64().ok()?, reach: Reach::decode(&mut reader).ok()? })
    }
}
