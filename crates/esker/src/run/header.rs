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
/// The newest version of the format: values may be separated.
pub const VERSION: u32 = 3;
/// The version of files whose segments may have dictionaries.
pub(super) const DICTIONARY_VERSION: u32 = 2;
/// The version of files without dictionaries, which earlier programs read too.
pub(super) const PLAIN_VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"eskerrun";

const NAME: NumberedName = NumberedName { prefix: "", digits: 10, suffix: ".run" };

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
