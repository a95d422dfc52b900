//! Starting the threads of a database.

use crate::error::{Error, Result};
use std::path::Path;
use std::thread::{Builder, JoinHandle};

/// Starts a thread of the database in `directory`.
pub fn spawn(
    name: &str,
    directory: &Path,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let thread = Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| Error::io("start a thread for", directory, error))
}
