//! Systems that are not Unix: plain reads and writes, nothing mapped, nothing punched.

use std::fs;
use std::io;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

use crate::fs::{Advice, Incarnation, LogMap};

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn thread_time() -> Option<std::time::Duration> {
    None
}

pub(super) fn lower_priority() {}

pub(super) fn next_data(_: &fs::File, offset: u64) -> u64 {
    offset
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

/// Only memory limits the number of open files.
pub(super) fn descriptors() -> usize {
    usize::MAX
}

pub(super) fn is_out_of_descriptors(_error: &io::Error) -> bool {
    false
}

pub(super) fn allocated(file: &fs::File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

pub(super) fn allocate(_file: &fs::File, _len: u64) -> io::Result<()> {
    unsupported()
}

pub(super) fn allocates(_file: &fs::File, _len: u64) -> bool {
    false
}

pub(super) fn keeps_space(_file: &fs::File) -> bool {
    true
}

pub(super) fn punch(_file: &fs::File, _offset: u64, _len: u64) -> io::Result<()> {
    unsupported()
}

/// Says one name, since the standard library has no stable call for it; this is safe because no
/// hole is punched here.
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

pub(super) fn read_ahead(_file: &fs::File, _offset: u64, _len: u64) {}

pub(crate) fn boot_id() -> Option<[u8; 16]> {
    None
}

/// Not known here, so the process may exist.
pub(crate) fn process_exists(_id: u64) -> bool {
    true
}
