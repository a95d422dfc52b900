//! The operating system's file system.
//!
//! [`names`] finds names and follows no links. The standard library provides positioned reads and
//! writes that handle short transfers and interruptions, `fdatasync`, and advisory locks of the
//! open file (which, unlike `fcntl` locks, survive the close of another descriptor). `unix.rs` adds
//! real allocation, holes, mapped windows of the log, and the parts of an
//! [`Incarnation`](crate::fs::Incarnation). `portable.rs` replaces it on systems where Esker uses
//! plain writes only.
//!
//! 1. No buffer lies between a call and the kernel: bytes for which `write_at` returned survive
//!    the process.
//! 2. A failed sync is reported once and never retried here (R8).
//! 3. All descriptors are close-on-exec; a forked child never releases a lock or unmaps a window
//!    of its parent (R26).

mod file;
mod file_system;
mod lock;
#[cfg(unix)]
mod map;
#[cfg(unix)]
mod names;
#[cfg(not(unix))]
#[path = "portable_names.rs"]
mod names;
#[cfg(not(unix))]
#[path = "portable.rs"]
mod system;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(test)]
mod tests;

pub use file_system::{is_out_of_descriptors, os};
pub(super) use system::{boot_id, process_exists};

/// The processor time that the calling thread has used, where the system tells it.
pub fn thread_time() -> Option<std::time::Duration> {
    system::thread_time()
}

/// Gives the calling thread a low priority where the system has priorities for threads: beside a thread
/// of normal priority it gets about a tenth of a processor.
pub fn lower_priority() {
    system::lower_priority();
}
