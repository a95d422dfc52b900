//! The operating system's file system.
//!
//! [`names`] finds names and follows no links. The standard library does what it can: positioned
//! reads and writes that deal with short transfers and interruptions, `fdatasync`, advisory locks
//! that belong to the open file (and so are not lost when another descriptor of it is closed, as
//! `fcntl` locks are). What it lacks is in `unix.rs`, and in `portable.rs` for systems where Esker
//! runs with plain writes only: real allocation, holes, mapped log windows, and the facts that make
//! up an [`Incarnation`](crate::fs::Incarnation).
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
