//! Opening files of other stores.
//!
//! The directory of another store is not trusted: opening a pipe in a file's place would wait for
//! ever, and a device may do anything when it is read. So only regular files are opened, and
//! opening never waits. Links are followed, because people do put files of a store elsewhere, and
//! nothing here is ever written to.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Opens a regular file for reading.
///
/// # Errors
/// What opening fails with; that it is no regular file.
pub(crate) fn open(path: &Path) -> Result<File> {
    let mut how = OpenOptions::new();
    how.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe without a writer is opened at once, and refused below.
        how.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    let file = how.open(path)?;
    expect_file(&file.metadata()?)?;
    Ok(file)
}

/// As [`open`]; `None`: there is nothing of that name.
///
/// # Errors
/// Those of [`open`].
pub(crate) fn open_if_there(path: &Path) -> Result<Option<File>> {
    match open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Reads a small regular file of text as a whole.
///
/// # Errors
/// Those of [`open`]; that it is longer than `bytes_max`, or not UTF-8.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let file = open(path)?;
    if file.metadata()?.len() > bytes_max {
        return Err(Error::other(format!("it has more than {bytes_max} bytes")));
    }
    std::io::read_to_string(file)
}

/// Refuses what is neither a regular file nor a directory.
///
/// # Errors
/// That it is something else.
#[cfg(any(feature = "import-fjall", feature = "import-rocksdb"))]
pub(crate) fn expect_file_or_directory(meta: &Metadata) -> Result<()> {
    if meta.is_dir() { Ok(()) } else { expect_file(meta) }
}

fn expect_file(meta: &Metadata) -> Result<()> {
    if meta.is_file() {
        return Ok(());
    }
    Err(Error::other("it is not a regular file, and nothing else is read there"))
}
