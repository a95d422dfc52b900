//! The file `LOCK` of LevelDB and RocksDB, which both hold while they have a directory open.

use crate::{Engine, Result};
use std::fs::File;
use std::path::Path;

/// Keeps the store from opening its directory while it is read, and checks whether it has it open.
#[cfg(unix)]
pub(crate) fn shared(engine: Engine, path: &Path) -> Result<Option<File>> {
    let path = path.join("LOCK");
    let opened = crate::foreign::open_if_there(&path)
        .map_err(|error| crate::Error::io("open", path.display().to_string(), error))?;
    let Some(file) = opened else { return Ok(None) };
    let shared = rustix::fs::FlockOperation::NonBlockingLockShared;
    match rustix::fs::fcntl_lock(&file, shared) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Err(crate::Error::Source {
            engine,
            path,
            detail: "the database is open elsewhere: close it first".to_owned(),
        }),
        // File systems without locks: the store cannot use them there either.
        Err(_) => Ok(None),
    }
}

#[cfg(not(unix))]
pub(crate) fn shared(_: Engine, _: &Path) -> Result<Option<File>> {
    Ok(None)
}
