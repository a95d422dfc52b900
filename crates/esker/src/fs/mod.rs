//! The engine's only access to the operating system.
//!
//! Every file access of the engine goes through [`Fs`] and [`File`], so that the tests can put a
//! simulated disk (power cuts, torn writes, failing syncs) under the very same code. Paths are
//! plain paths; nothing here knows the database's layout.
//!
//! A database's directory may hold what does not belong there: links to files elsewhere, pipes
//! without a writer, devices. So one place, below this trait, checks names:
//!
//! 1. [`Fs::open`] and [`Fs::lock`] take only regular files. They follow no links and do not even
//!    open anything else, so no call blocks on a pipe or wakes a device.
//! 2. A file system that [`within`] made finds names below its directory from a handle of that
//!    directory and follows no link on the way, so it reads and writes nothing outside.
//! 3. Code that changes a file in place checks [`File::links`] first.

mod file;
mod file_system;
mod fork;
mod kind;
mod memory;
mod open;
mod os;
#[cfg_attr(loom, allow(dead_code))]
mod process;

pub use file::{Advice, File, Incarnation, LogMap};
pub use file_system::{DirEntry, FileLock, Fs, OpenMode};
pub(crate) use fork::ForkGuard;
pub(crate) use kind::expect_kind;
pub use kind::{PathKind, wrong_kind};
pub use memory::memory;
pub use open::within;
pub(crate) use open::{open_part, open_to_change, part};
pub(crate) use os::is_out_of_descriptors;
pub use os::os;
pub(crate) use os::{lower_priority, thread_time};
pub(crate) use process::{Fate, Process};
