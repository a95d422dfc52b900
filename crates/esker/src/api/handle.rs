//! What the handles of one open database share, and the moments that they register.
//!
//! Every public type that reads or writes holds an `Arc<Handle>`; when the last one is dropped, the
//! database closes. A snapshot holds a registered moment.

use crate::Result;
use crate::base::Moment;
use crate::db::Core;
use std::sync::Arc;

/// What handles share; dropping the last one closes the database.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(super) core: Arc<Core>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // In a forked child the threads and the lock belong to the parent (R26).
        if self.core.is_forked() {
            std::mem::forget(self.core.clone());
            return;
        }
        if let Err(error) = self.core.close() {
            log::error!("closing {} failed: {error}", self.core.path().display());
        }
    }
}

/// A registered moment: compactions keep what it sees until it is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    /// The database.
    pub(super) handle: Arc<Handle>,
    /// The moment.
    pub(super) moment: Moment,
    /// Its label, for statistics.
    label: Option<Arc<str>>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // In a forked child the list may be locked by a thread that does not exist there (R26).
        if !self.handle.core.is_forked() {
            self.handle.core.release_snapshot(self.moment.seq, self.label.as_ref());
        }
    }
}

impl Registration {
    /// Registers the present moment.
    pub(super) fn new(handle: &Arc<Handle>, label: Option<&str>) -> Result<Self> {
        let label: Option<Arc<str>> = label.map(Into::into);
        let moment = handle.core.take_snapshot(label.as_ref())?;
        Ok(Self { handle: handle.clone(), moment, label })
    }
}
