//! How many bytes of the device a directory takes.
//!
//! Allocated blocks are counted, not lengths of files: a file may have holes, and a file system may
//! reserve space ahead. Reports divide this figure by the bytes of live data (space amplification).

use std::fs::Metadata;
use std::path::Path;

/// Allocated bytes of all files below `dir`. Files that vanish meanwhile count nothing: the engine
/// under test goes on deleting what it no longer needs.
pub fn allocated(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => allocated(&entry.path()),
            Ok(metadata) => size(&metadata),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(unix)]
fn size(metadata: &Metadata) -> u64 {
    // Always units of 512 bytes, whatever the file system's block size is.
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn size(metadata: &Metadata) -> u64 {
    metadata.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_depths_count_and_holes_do_not() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("inner")).unwrap();
        std::fs::write(dir.path().join("inner/file"), vec![1; 10_000]).unwrap();
        let full = allocated(dir.path());
        assert!(full >= 10_000, "{full}");
        if cfg!(target_os = "linux") {
            let sparse = std::fs::File::create(dir.path().join("sparse")).unwrap();
            sparse.set_len(1 << 30).unwrap();
            assert!(allocated(dir.path()) < 1 << 20);
        }
        assert_eq!(allocated(&dir.path().join("nothing")), 0);
    }
}
