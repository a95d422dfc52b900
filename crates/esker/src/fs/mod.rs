//! The engine's only access to the operating system.
//!
//! Every file access of the engine goes through [`Fs`] and [`File`], so that the tests can put a
//! simulated disk (power cuts, torn writes, failing syncs) under the very same code. Paths are
//! plain paths; nothing here knows the database's layout.
//!
//! A database's directory may hold what does not belong there: links to files elsewhere, pipes
//! without a writer, devices. Names are therefore judged in one place, below this trait:
//!
//! 1. [`Fs::open`] and [`Fs::lock`] take only regular files. Links are not followed, and
//!    what is not a regular file is not even opened, so no call blocks on a pipe or wakes a device.
//! 2. Below the directory of a file system that [`within`] made, names are found from a handle of
//!    that directory, and no link is followed on the way: nothing outside is read or written.
//! 3. Code that changes a file in place looks at [`File::links`] first.

mod file;
mod file_system;
mod fork;
mod kind;
mod open;
mod os;

pub use file::{Advice, File, Incarnation, LogMap};
pub use file_system::{DirEntry, FileLock, Fs, OpenMode};
pub use fork::ForkGuard;
pub(crate) use kind::expect_kind;
pub use kind::{PathKind, wrong_kind};
pub use open::{open_part, within};
pub(crate) use open::{open_to_change, part};
pub use os::{is_out_of_descriptors, os};
