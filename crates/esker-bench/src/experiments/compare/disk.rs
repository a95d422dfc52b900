//! Whether a full disk caused a failure.
//!
//! A full disk ends a comparison: the engines that come next would fail for the same reason, and not by
//! their own fault.

use std::path::Path;

/// With less free space than this, a failure is attributed to the disk.
const FULL_DISK: u64 = 16 << 20;

/// Whether a full disk caused a failure. Engines word it differently, so the disk is checked too.
pub(crate) fn disk_is_full(message: &str, dir: &Path) -> bool {
    let told = ["No space left", "os error 28", "ENOSPC", "disk is full", "disk full"];
    told.iter().any(|words| message.contains(words))
        || room(dir).is_some_and(|room| room < FULL_DISK)
}

/// Bytes that can still be written in a directory.
#[cfg(unix)]
fn room(dir: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(dir).ok()?;
    Some(disk.blocks_available() as u64 * disk.fragment_size() as u64)
}

#[cfg(not(unix))]
fn room(_: &Path) -> Option<u64> {
    None
}
