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

impl<R> Helper<'_, R> {
    /// Waits for its result. A panic of its work goes on here.
    pub fn join(self) -> R {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Does two pieces of work at the same time, `aside` in a thread of this name. If there is no thread to
/// be had, it comes after the other one.
pub fn both<A: Send, B>(
    name: &str,
    aside: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> (A, B) {
    let mut waits = Some(aside);
    let mut run = || waits.take().expect("the work is done once, by the thread or here")();
    let (done, here) = std::thread::scope(|scope| {
        let thread = Builder::new().name(name.to_owned()).spawn_scoped(scope, &mut run);
        let here = here();
        (thread.ok().map(|thread| Helper(thread).join()), here)
    });
    (done.unwrap_or_else(run), here)
}
