//! A wish that a suite ends early, told from any thread.
//!
//! Whoever listens for signals asks; the step under way sees it within a second and stops. What that
//! step had measured does not count, since it ended before its time; the steps before it do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a suite early. Clones are one.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks for the end. Says whether somebody had asked before.
    pub fn ask(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
