//! What tests do with files of the real file system: copy them, and count what they take on the
//! device.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Copies a file, or a directory with all below it, to a path where nothing stands yet.
#[track_caller]
pub fn copy(from: &Path, to: &Path) {
    if let Err(error) = copy_all(from, to) {
        panic!("copy {} to {}: {error}", from.display(), to.display());
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Bytes that the device holds for all files below a directory.
pub fn disk_bytes(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { disk_bytes(&entry.path())? } else { allocated(&metadata) };
    }
    Ok(sum)
}

/// Bytes that the device holds for a file.
#[cfg(unix)]
pub fn allocated(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

/// Bytes that the device holds for a file, as far as can be told here.
#[cfg(not(unix))]
pub fn allocated(metadata: &Metadata) -> u64 {
    metadata.len()
}
