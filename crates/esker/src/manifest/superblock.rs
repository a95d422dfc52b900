//! The two superblocks: they name the manifest and state how far manifest and log were durable.
//!
//! Each is one small file that is overwritten in place and synced. They are never written at the
//! same time, so at least one of them is whole at any moment (R12). The valid one with the greater
//! generation is in force.

use crate::base::codec::{Reader, checksum};
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, OpenMode, open_to_change};
use crate::manifest::{FORMAT_VERSION, Known, Reach};
use crate::wal;
use std::io;
use std::path::Path;

/// The file names of the two superblocks.
pub const SUPERBLOCK_NAMES: [&str; 2] = ["superblock-A", "superblock-B"];

const MAGIC: [u8; 8] = *b"ESKERSB\n";
/// What all versions have in common, its checksum included: version 1 ends here.
const HEAD_LEN: usize = 64;
const LEN: usize = 512;
const FLAG_CLOSED: u32 = 1;

/// The content of a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// The format version of the database. One that is written anew says the newest, and one that
    /// is written again says the same as before.
    pub version: u32,
    /// Counts updates; the greater one of two valid superblocks counts.
    pub generation: u64,
    /// The number of the manifest.
    pub manifest: u64,
    /// Identifies the database for its whole life.
    pub database: [u8; 16],
    /// How far manifest and log were durable; `None` in version 1.
    pub known: Option<Known>,
}

impl Superblock {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.manifest.to_le_bytes());
        bytes.extend_from_slice(&self.database);
        bytes.resize(HEAD_LEN - 8, 0);
        let sum = checksum(0, 0, &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        let Some(known) = self.known else { return bytes };
        bytes.extend_from_slice(&known.manifest.encode());
        bytes.extend_from_slice(&known.log.position.to_le_bytes());
        bytes.extend_from_slice(&known.log.nonce.to_le_bytes());
        bytes.extend_from_slice(&(u32::from(known.closed) * FLAG_CLOSED).to_le_bytes());
        bytes.resize(LEN - 8, 0);
        let sum = checksum(1, 0, &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes a superblock; distinguishes an unknown version from damage (C9).
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self> {
        let damaged = |detail: &str| Error::corruption(path, 0, "superblock", detail);
        if bytes.len() < HEAD_LEN || bytes[..8] != MAGIC {
            return Err(damaged("it does not begin like a superblock"));
        }
        if !is_summed(0, &bytes[..HEAD_LEN]) {
            return Err(damaged("its checksum does not match"));
        }
        let mut reader = Reader::new(&bytes[8..]);
        let mut head = || {
            let version = reader.u32()?;
            reader.u32()?;
            let generation = reader.u64()?;
            let manifest = reader.u64()?;
            let mut database = [0; 16];
            database.copy_from_slice(reader.take(16)?);
            Ok(Self { version, generation, manifest, database, known: None })
        };
        let superblock =
            head().map_err(|error: crate::base::codec::DecodeError| damaged(error.0))?;
        let supported = FORMAT_VERSION;
        match superblock.version {
            1 => Ok(superblock),
            2..=FORMAT_VERSION if bytes.len() < LEN || !is_summed(1, &bytes[..LEN]) => {
                Err(damaged("its second checksum does not match"))
            }
            2..=FORMAT_VERSION => {
                let known = decode_known(&bytes[HEAD_LEN..]).map_err(|error| damaged(error.0))?;
                Ok(Self { known: Some(known), ..superblock })
            }
            found => Err(Error::UnknownFormat { path: path.to_owned(), found, supported }),
        }
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
}

/// Overwrites one superblock, or makes it, and syncs it.
fn write(fs: &dyn Fs, directory: &Path, slot: usize, superblock: &Superblock) -> Result<()> {
    let path = directory.join(SUPERBLOCK_NAMES[slot]);
    let (file, fresh) = open_to_change(fs, &path).context("open", &path)?;
    file.write_at(&superblock.encode(), 0).context("write", &path)?;
    // Seeded: the old manifest goes while the device may still name it.
    bug!("manifest_superblock_not_synced", return Ok(()));
    file.sync_data().context("sync", &path)?;
    if fresh {
        // Sync the directory before the other file is written: until its name is durable, this one
        // is not.
        fs.sync_dir(directory).context("sync", directory)?;
    }
    Ok(())
}

/// Whether the last eight bytes are the checksum of those before them.
fn is_summed(salt: u64, bytes: &[u8]) -> bool {
    let Some((covered, sum)) = bytes.split_last_chunk::<8>() else { return false };
    checksum(salt, 0, covered) == u64::from_le_bytes(*sum)
}

fn decode_known(bytes: &[u8]) -> crate::base::codec::Decoded<Known> {
    let mut reader = Reader::new(bytes);
    let manifest = Reach::decode(&mut reader)?;
    let log = wal::Reach { position: reader.u64()?, nonce: reader.u64()? };
    let flags = reader.u32()?;
    if flags & !FLAG_CLOSED != 0 {
        return Err(crate::base::codec::DecodeError("it has flags that are not known"));
    }
    Ok(Known { manifest, log, closed: flags & FLAG_CLOSED != 0 })
}

/// The superblocks of a directory.
#[derive(Debug)]
pub struct Superblocks {
    current: Superblock,
    /// The file with the superblock in force.
    slot: usize,
    /// Whether this object wrote and synced the one in force. One that was read may be only in the
    /// page cache, if a process was killed before its sync.
    synced: bool,
    /// Whether the last write of the other one failed, so that it may be incomplete.
    torn: bool,
}

impl Superblocks {
    /// Writes the first superblocks of a new database.
    pub fn create(fs: &dyn Fs, directory: &Path, first: Superblock) -> Result<Self> {
        let mut superblocks = Self { current: first, slot: 1, synced: true, torn: false };
        superblocks.write_both(fs, directory, first)?;
        Ok(superblocks)
    }

    /// Reads both superblocks of a directory. `None` if both files are missing or empty; an error
    /// if neither of them is whole.
    pub fn read(fs: &dyn Fs, directory: &Path) -> Result<Option<Self>> {
        let mut newest: Option<Self> = None;
        let mut failure = None;
        for (slot, name) in SUPERBLOCK_NAMES.iter().enumerate() {
            let is_newer = |newest: &Option<Self>, found: &Superblock| {
                // Seeded: of two superblocks the second one counts, not the newer one.
                bug!("manifest_last_superblock_counts")
                    || newest.as_ref().is_none_or(|n| n.current.generation < found.generation)
            };
            match Superblock::read_file(fs, &directory.join(name)) {
                Ok(Some(current)) if is_newer(&newest, &current) => {
                    newest = Some(Self { current, slot, synced: false, torn: false });
                }
                Ok(_) => {}
                // A version that this build does not know refuses the open, whatever the other
                // superblock holds: a newer build may have begun to upgrade (C9).
                Err(error @ Error::UnknownFormat { .. }) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        match (newest, failure) {
            (Some(superblocks), _) => Ok(Some(superblocks)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    /// The superblock in force.
    pub fn current(&self) -> &Superblock {
        &self.current
    }

    /// The names of the superblocks that are whole, as far as this object knows. After a failed
    /// write, for example without space, that one is missing until a write succeeds.
    pub fn whole(&self) -> impl Iterator<Item = &'static str> {
        let torn = self.torn.then_some(1 - self.slot);
        let whole = move |slot: &usize| Some(*slot) != torn;
        (0..SUPERBLOCK_NAMES.len()).filter(whole).map(|slot| SUPERBLOCK_NAMES[slot])
    }

    /// Writes one superblock over the one that is not in force; its generation is set here. After
    /// an error the previous one is still in force, and the other is not whole.
    pub fn write_one(&mut self, fs: &dyn Fs, directory: &Path, next: Superblock) -> Result<()> {
        if !self.synced {
            // Before a write may tear the other one, this one must be durable. It is written again,
            // because an earlier sync of it may have failed (R7). These are the same bytes, so a
            // torn write leaves them as they were.
            // Seeded: a power cut during a conversion leaves no superblock.
            let same = if bug!("manifest_superblock_in_force_is_converted") {
                Superblock { version: FORMAT_VERSION, ..self.current }
            } else {
                self.current
            };
            write(fs, directory, self.slot, &same)?;
            self.synced = true;
        }
        // Only version 1 says nothing of manifest and log.
        let version = if next.known.is_some() { FORMAT_VERSION } else { 1 };
        let generation = self.current.generation + 1;
        let next = Superblock { version, generation, ..next };
        let slot = 1 - self.slot;
        // Seeded: the superblock that counts is overwritten, so that a torn write leaves the other.
        let slot = if bug!("manifest_newer_superblock_first") { 1 - slot } else { slot };
        // Seeded: a superblock that found no space is taken for damage by verify.
        self.torn = !bug!("manifest_unwritten_superblock_is_damage");
        write(fs, directory, slot, &next)?;
        (self.current, self.slot, self.torn) = (next, slot, false);
        Ok(())
    }

    /// Writes both superblocks, one after the other, so that either leads to the new state.
    pub fn write_both(&mut self, fs: &dyn Fs, directory: &Path, next: Superblock) -> Result<()> {
        self.write_one(fs, directory, next)?;
        // Seeded: only one superblock names the new manifest; the other names one that is gone.
        bug!("manifest_one_superblock_written", return Ok(()));
        self.write_one(fs, directory, next)
    }
}
