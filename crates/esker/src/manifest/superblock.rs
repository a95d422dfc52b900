//! The two superblocks: where everything else is found from.
//!
//! Each is one small file, overwritten in place and synced; they are written one after the other,
//! so that at any moment at least one of them is whole (R12). The valid one with the greater
//! generation counts.

use crate::base::codec::{Reader, checksum};
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, OpenMode, open_to_change};
use crate::manifest::FORMAT_VERSION;
use std::io;
use std::path::Path;

/// The file names of the two superblocks.
pub const SUPERBLOCK_NAMES: [&str; 2] = ["superblock-A", "superblock-B"];

const MAGIC: [u8; 8] = *b"ESKERSB\n";
const LEN: usize = 64;

/// The content of a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// Counts updates; the greater one of two valid superblocks counts.
    pub generation: u64,
    /// The number of the manifest.
    pub manifest: u64,
    /// Identifies the database for its whole life.
    pub database: [u8; 16],
}

impl Superblock {
    fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.manifest.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.database);
        let sum = checksum(0, 0, &bytes[..LEN - 8]);
        bytes[LEN - 8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes a superblock; an unknown version is told from damage (C9).
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let damaged = |detail: &str| Error::corruption(path, 0, "superblock", detail);
        if bytes.len() < LEN || bytes[..8] != MAGIC {
            return Err(damaged("it does not begin like a superblock"));
        }
        let bytes = &bytes[..LEN];
        let mut tail = Reader::new(&bytes[LEN - 8..]);
        if tail.u64().ok() != Some(checksum(0, 0, &bytes[..LEN - 8])) {
            return Err(damaged("its checksum does not match"));
        }
        let mut reader = Reader::new(&bytes[8..]);
        let mut parse = || {
            let version = reader.u32()?;
            reader.u32()?;
            let generation = reader.u64()?;
            let manifest = reader.u64()?;
            let mut database = [0; 16];
            database.copy_from_slice(reader.take(16)?);
            Ok((version, Self { generation, manifest, database }))
        };
        let (version, superblock) =
            parse().map_err(|error: crate::base::codec::DecodeError| damaged(error.0))?;
        if version != FORMAT_VERSION {
            return Err(Error::UnknownFormat {
                path: path.to_owned(),
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        Ok(superblock)
    }

    /// Reads one superblock file; `None` if there is no such file or it is empty.
    pub fn read_file(fs: &dyn Fs, path: &Path) -> Result<Option<Self>> {
        let file = match fs.open(path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.context("open", path)?,
        };
        let len = file.len().context("measure", path)?;
        if len == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; len.min(LEN as u64) as usize];
        file.read_at(&mut bytes, 0).context("read", path)?;
        Self::decode(path, &bytes).map(Some)
    }

    /// Reads both superblocks of a directory and returns the one that counts. `None` if neither
    /// file holds anything; an error if there is something and none of it is whole.
    pub fn read(fs: &dyn Fs, directory: &Path) -> Result<Option<Self>> {
        let mut newest: Option<Self> = None;
        let mut failure = None;
        for name in SUPERBLOCK_NAMES {
            match Self::read_file(fs, &directory.join(name)) {
                // Seeded: of two superblocks the second one counts, not the newer one.
                Ok(Some(found)) if bug!("manifest_last_superblock_counts") => newest = Some(found),
                Ok(Some(found)) if newest.is_none_or(|n| n.generation < found.generation) => {
                    newest = Some(found);
                }
                Ok(_) => {}
                // A version that this build does not know refuses the open, whatever stands in
                // the other superblock: a newer build may have begun to upgrade (C9).
                Err(error @ Error::UnknownFormat { .. }) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        match (newest, failure) {
            (Some(superblock), _) => Ok(Some(superblock)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    /// Writes both superblocks, one after the other, each synced; then the directory.
    pub fn write(mut self, fs: &dyn Fs, directory: &Path) -> Result<Self> {
        // The slot that holds the older content goes first, so that the other stays whole.
        let first = (self.generation % 2) as usize;
        // Seeded: the newer superblock is overwritten first, so that a torn write leaves the older
        // one to count.
        let first = if bug!("manifest_newer_superblock_first") { 1 - first } else { first };
        for slot in [first, 1 - first] {
            self.generation += 1;
            // Seeded: only one superblock names the new manifest; the other names one that is gone.
            let slot = if bug!("manifest_one_superblock_written") { first } else { slot };
            let path = directory.join(SUPERBLOCK_NAMES[slot]);
            let (file, fresh) = open_to_change(fs, &path).context("open", &path)?;
            file.write_at(&self.encode(), 0).context("write", &path)?;
            // Seeded: the old manifest goes while the device may still name it.
            bug!("manifest_superblock_not_synced", continue);
            file.sync_data().context("sync", &path)?;
            if fresh {
                // Before the other slot is touched: until its name is durable, this one is not.
                fs.sync_dir(directory).context("sync", directory)?;
            }
        }
        fs.sync_dir(directory).context("sync", directory)?;
        Ok(self)
    }
}
