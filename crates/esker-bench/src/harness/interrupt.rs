//! A request, from any thread, to end the running work early.
//!
//! The listener for signals makes the request. The running step of a suite sees it within a second and
//! stops. The figures of that step are dropped, because it ended early; those of the steps before it
//! are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a report is not complete whose suite somebody ended.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Ends what is under way early. Clones are one.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks for the end. Says whether somebody had asked before.
    pub fn ask(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    /// Forgets that somebody asked: what is under way next was not meant.
    pub fn forget(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
