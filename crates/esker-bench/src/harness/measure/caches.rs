//! Empties the system's cache of files, so that a step finds its data on the device.
//!
//! Linux does so for `/proc/sys/vm/drop_caches`, which only the administrator may write. Pages that are
//! not on the device yet stay in the cache, so everything is synced before. An engine's own cache is
//! not touched.

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

/// Empties the cache.
pub fn drop_now() -> Result<()> {
    #[cfg(unix)]
    nix::unistd::sync();
    let switch = OpenOptions::new().write(true).open(SWITCH);
    let done = switch.and_then(|mut switch| switch.write_all(b"1"));
    done.map_err(|error| Error::io("write", Path::new(SWITCH), &error))
}
