//! Keeps a panic in background work from ending its thread.
//!
//! Custom comparators, merge operators and filters are the program's code and may panic. A worker that
//! died of it would leave callers waiting for ever.

use crate::error::{Error, Result};

/// Runs background work; a panic in it becomes an error, so that nobody waits for it for ever.
pub fn contain<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Error::UserCodePanicked { what: format!("a background job ({text})") })
    })
}
