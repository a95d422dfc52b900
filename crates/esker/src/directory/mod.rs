//! The directory of a database: the names in it, its lock, and what it may hold.
//!
//! Nothing here knows keyspaces or trees. [`look`] finds out what a path holds before anything is
//! created there (C9), and takes the lock (C6). [`unfinished`] marks a directory that is being
//! filled. [`files`] gives out the numbers of run files and frees their space (R22). [`reserve`]
//! keeps space for what must work on a full device (C7).

pub mod copies;
pub mod files;
pub mod foreign;
pub mod look;
mod names;
pub mod reserve;
pub mod unfinished;

pub use names::{
    DATA_DIRECTORY, EVENTS_BEFORE_NAME, EVENTS_NAME, LOCK_NAME, LOG_DIRECTORY, MONITOR_NAMES,
    STATISTICS_NAME, what_it_is,
};
