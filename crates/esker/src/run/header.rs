//! The name and the header of a run file.
//!
//! The header repeats the number of the file and has a checksum that is salted with it, so that a
//! run file under a wrong name is detected before a segment of it is read.

use crate::base::codec::{Reader, checksum};
use crate::base::{FileId, NumberedName};
use crate::error::{Error, Result};
use std::path::Path;

/// Bytes of a run file before its first segment.
pub const HEADER_BYTES: usize = 64;
/// The newest version of the format: values may be in pieces.
pub const VERSION: u32 = 4;
/// The version of files with separated values of which none is in pieces.
pub(super) const SEPARATED_VERSION: u32 = 3;
/// The version of files whose segments may have dictionaries.
pub(super) const DICTIONARY_VERSION: u32 = 2;
/// The version of files without dictionaries, which earlier programs read too.
pub(super) const PLAIN_VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"eskerrun";

const NAME: NumberedName = NumberedName { prefix: "", digits: 10, suffix: ".run" };

/// What a run file has that not every version of the format has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Features {
    /// A segment has a dictionary.
    pub dictionary: bool,
    /// A segment has separated values.
    pub separated: bool,
    /// One of them may be in pieces.
    pub pieces: bool,
}

impl Features {
    /// The earliest version that has all of it.
    pub fn version(self) -> u32 {
        match self {
            // Seeded: an earlier program takes references to pieces for damage.
            Self { pieces: true, .. } if !bug!("run_pieces_have_no_version") => VERSION,
            Self { separated: true, .. } => SEPARATED_VERSION,
            // Seeded: an earlier program takes dictionaries for damage.
            Self { dictionary: true, .. } if !bug!("run_dictionaries_have_no_version") => {
                DICTIONARY_VERSION
            }
            _ => PLAIN_VERSION,
        }
    }
}

/// The name of the file with this id in the data directory.
pub fn file_name(id: FileId) -> String {
    NAME.of(id)
}

/// The number in a run file's name.
pub fn parse_run_name(name: &str) -> Option<FileId> {
    NAME.number(name)
}

/// The header of a run file of this version.
pub(super) fn header(id: FileId, version: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[16..24].copy_from_slice(&id.to_le_bytes());
    let sum = checksum(id, 0, &header[..56]);
    header[56..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Checks the header of the file with this id; returns its version.
pub(super) fn check_header(header: &[u8; HEADER_BYTES], id: FileId, path: &Path) -> Result<u32> {
    let corrupt = |detail: &str| Error::corruption(path, 0, "run header", detail);
    let mut reader = Reader::new(header);
    let mut parse = || {
        let magic = reader.take(8)?;
        let (version, reserved, found) = (reader.u32()?, reader.u32()?, reader.u64()?);
        reader.take(32)?;
        Ok((magic, version, reserved, found, reader.u64()?))
    };
    let (magic, version, _, found, sum) =
        parse().map_err(|error: crate::base::codec::DecodeError| corrupt(error.0))?;
    if magic != MAGIC {
        return Err(corrupt("this is not a run file"));
    }
    // A later version may arrange all other fields differently, including the checksum.
    if !(PLAIN_VERSION..=VERSION).contains(&version) {
        return Err(Error::UnknownFormat { path: path.into(), found: version, supported: VERSION });
    }
    if sum != checksum(id, 0, &header[..56]) || found != id {
        return Err(corrupt("the checksum or the file id does not match"));
    }
    Ok(version)
}
