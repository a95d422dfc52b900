//! What Esker's tests share: simulated file systems and tools to compare what is in them.
//!
//! [`CrashFs`] is a disk in memory that can lose what was not synced, as a power cut does.
//! [`FaultFs`] wraps any file system and makes chosen calls fail. [`digest`] tells whether two
//! directories hold the same bytes. [`model`] is what a database should hold, [`ops`] makes up
//! writes, [`oracle`] tells which of them a crash may take and [`harness`] applies them to a
//! database and reads it back. [`referred`] tells whether the run files of a database are those that
//! it refers to. [`serial`] tells whether transactions were serializable, and [`parallel`] runs
//! cases on all processors. [`barriers`] hold threads at points that a test chooses, [`keeper`]
//! decides about all of their steps, and [`cache_events`] counts those of the cache. [`files`] and `misfit` work on the real file system,
//! [`orders`] are comparators, and [`pages`] reads the documentation. All of them are driven by seeds or counters, so that
//! whatever a test finds can be found again.

/// The examples of the page for those who come from another store: compiled and run with the examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/moving.md")]
pub mod moving {}

pub mod crashfs;
pub mod digest;
pub mod faultfs;
pub mod files;
#[cfg(unix)]
pub mod misfit;
pub mod pages;
pub mod parallel;
mod rng;

// Under the model checker the engine is built without its interface, and so without these.
#[cfg(not(loom))]
pub mod barriers;
#[cfg(not(loom))]
pub mod cache_events;
#[cfg(not(loom))]
pub mod harness;
#[cfg(not(loom))]
pub mod keeper;
#[cfg(not(loom))]
pub mod machine;
#[cfg(not(loom))]
pub mod model;
#[cfg(not(loom))]
pub mod ops;
#[cfg(not(loom))]
pub mod oracle;
#[cfg(not(loom))]
pub mod orders;
#[cfg(not(loom))]
pub mod referred;
#[cfg(not(loom))]
pub mod serial;

pub use crashfs::CrashFs;
pub use faultfs::FaultFs;
pub use rng::{Rng, mix};
