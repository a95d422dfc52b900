//! What the system's cache of files holds when a run or a step begins.
//!
//! A run finds nothing that waits to be written. Otherwise its first syncs would write what the run before it left, and the
//! removal of that run's files, and its longest write would be the other's.
//!
//! A step can find the cache empty, so that its data come from the device. Linux does so for
//! `/proc/sys/vm/drop_caches`, which only the administrator may write. Pages that are not on the device yet stay in
//! the cache, so everything is written before. An engine's own cache is not touched.

use crate::{Error, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

const SWITCH: &str = "/proc/sys/vm/drop_caches";

/// Fails with the reason if this process cannot empty the cache.
pub fn can_drop() -> Result<()> {
    match OpenOptions::new().write(true).open(SWITCH) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::usage(format!(
            "--drop-caches cannot empty the system's cache ({SWITCH}: {error}): it needs Linux and the \
             administrator's rights"
        ))),
    }
}

/// Writes what waits to be written, of all programs.
pub fn write_back() {
    #[cfg(unix)]
    nix::unistd::sync();
}

/// Empties the cache.
pub fn drop_now() -> Result<()> {
    write_back();
    let switch = OpenOptions::new().write(true).open(SWITCH);
    let done = switch.and_then(|mut switch| switch.write_all(b"1"));
    done.map_err(|error| Error::io("write", Path::new(SWITCH), &error))
}
