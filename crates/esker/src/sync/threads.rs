//! Starting the threads of a database.

use crate::error::{Error, Result};
use std::path::Path;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Starts a thread of the database in `directory`.
pub fn spawn(
    name: &str,
    directory: &Path,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let thread = Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| Error::io("start a thread for", directory, error))
}

/// A thread that works for the one that started it, which waits for it.
#[derive(Debug)]
pub struct Helper<'s, R>(ScopedJoinHandle<'s, R>);

/// Starts a helper for work on the database in `directory`.
pub fn help<'s, R: Send + 's>(
    scope: &'s Scope<'s, '_>,
    name: &str,
    directory: &Path,
    run: impl FnOnce() -> R + Send + 's,
) -> Result<Helper<'s, R>> {
    let thread = Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
    thread.map(Helper).map_err(|error| Error::io("start a thread for", directory, error))
}

impl<R> Helper<'_, Result<R>> {
    /// Waits for its result. Its work contains panics; one that it does not contain goes on here.
    pub fn join(self) -> Result<R> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
