//! What a database is known to consist of: how far its manifest and its log once were durable.
//!
//! A manifest without its last edit, or a log without its last records, looks as if nothing more
//! had ever been written. So superblocks state how far both reach, and the end mark of the log
//! states it for the manifest.
//!
//! 1. A statement is made only after what it describes was synced, so it stays true. It may be
//!    older than the files, and is never ahead of them.
//! 2. Manifests only grow, and each has its own nonce; so one that does not hold what is known of
//!    it is damaged, or another file.

use crate::base::codec::{Decoded, Reader, checksum};
use crate::error::{Error, Result};
use crate::manifest::{Recovered, manifest_name};
use crate::wal;
use std::path::Path;

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

    /// The reach behind a record that stands at the end and takes `bytes` bytes.
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

/// What a superblock states of manifest and log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// The manifest, which the superblock names, was durable up to here.
    pub manifest: Reach,
    /// The log was durable up to here.
    pub log: wal::Reach,
    /// Nothing was written since.
    pub closed: bool,
}

/// What the end mark of a log says of the manifest.
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

    /// Reads a payload; `None` if it says nothing, as in version 1.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(payload);
        Some(Self { number: reader.u64().ok()?, reach: Reach::decode(&mut reader).ok()? })
    }
}

impl Recovered {
    /// Compares the manifest that was read with what is known of it.
    ///
    /// # Errors
    /// [`Error::Corruption`] if it is shorter than that, or another one.
    pub fn check_reach(&self, directory: &Path, known: Reach) -> Result<()> {
        // Seeded: an edit that was damaged, or an older manifest, passes for what there is.
        bug!("manifest_reach_not_checked", return Ok(()));
        let path = directory.join(manifest_name(self.number));
        let refuse =
            |offset, detail: String| Err(Error::corruption(&path, offset, "manifest edit", detail));
        if self.reach.nonce != known.nonce {
            let detail = "it is another manifest than the superblock knows under this number";
            return refuse(0, detail.to_owned());
        }
        if self.reach.len < known.len {
            let detail = format!(
                "no whole record stands here, but {} bytes of the manifest were durable: its end \
                 is damaged, or it is an older file",
                known.len
            );
            return refuse(self.reach.len, detail);
        }
        let is_it = |reach: &Reach| reach.len == known.len && reach.hash == known.hash;
        if !self.steps.iter().any(is_it) {
            let detail = "its edits are others than the superblock knows";
            return refuse(known.len, detail.to_owned());
        }
        Ok(())
    }

    /// Compares the manifest with the log that was read: a log that was begun, or closed, under a
    /// later manifest proves that an older manifest was put back.
    ///
    /// # Errors
    /// [`Error::Corruption`] if it is older than the log.
    pub fn check_log(&self, directory: &Path, log: &wal::Recovered) -> Result<()> {
        // Seeded: superblocks and manifest may be older than the log.
        bug!("manifest_age_not_checked", return Ok(()));
        let older = |than: u64| {
            let detail = format!(
                "the log was written under {}: superblocks and manifest were replaced by older \
                 ones",
                manifest_name(than)
            );
            let path = directory.join(manifest_name(self.number));
            Err(Error::corruption(&path, 0, "manifest", detail))
        };
        if let Some(life) = log.latest_life().filter(|life| *life > self.number) {
            return older(life);
        }
        let Some(mark) = EndMark::decode(&log.mark).filter(|_| log.clean) else { return Ok(()) };
        match mark.number.cmp(&self.number) {
            std::cmp::Ordering::Greater => older(mark.number),
            std::cmp::Ordering::Equal => self.check_reach(directory, mark.reach),
            // A later opening began a manifest of its own and got no further.
            std::cmp::Ordering::Less => Ok(()),
        }
    }
}
