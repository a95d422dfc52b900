//! Systems that are not Unix: plain reads and writes, nothing mapped, nothing punched.

use std::fs;
use std::io;
#[cfg(windows)]
use std::os::windows::fs::FileExt;
use std::path::Path;

use crate::fs::{Advice, Incarnation, LogMap};

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(windows)]
pub(super) fn read_exact_at(
    file: &fs::File,
    mut buffer: &mut [u8],
    mut offset: u64,
) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.seek_read(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(windows)]
pub(super) fn write_all_at(file: &fs::File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(not(windows))]
pub(super) fn read_exact_at(_: &fs::File, _: &mut [u8], _: u64) -> io::Result<()> {
    unsupported()
}

#[cfg(not(windows))]
pub(super) fn write_all_at(_: &fs::File, _: &[u8], _: u64) -> io::Result<()> {
    unsupported()
}

/// Windows journals directory entries itself and has no call to wait for that.
pub(super) fn sync_dir(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Unknown, which must not stop anybody from writing.
pub(super) fn free_bytes(_path: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

pub(super) fn allocated(file: &fs::File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

pub(super) fn allocate(_file: &fs::File, _len: u64) -> io::Result<()> {
    unsupported()
}

pub(super) fn punch(_file: &fs::File, _offset: u64, _len: u64) -> io::Result<()> {
    unsupported()
}

/// Without a stable call for it: one name, which is safe because nothing is punched here.
pub(super) fn links(_file: &fs::File) -> io::Result<u64> {
    Ok(1)
}

pub(super) fn incarnation(_file: &fs::File) -> Incarnation {
    Incarnation::default()
}

pub(super) fn map(_file: &fs::File, _len: u64) -> io::Result<Box<dyn LogMap>> {
    unsupported()
}

pub(super) fn advise(_file: &fs::File, _advice: Advice) {}
