//! The names in the directory of a database.
//!
//! Superblocks and manifests are named by `manifest`, run files by `run`, and log files by `wal`.
//! This module has the remaining names.

use crate::fs::DirEntry;
use crate::manifest::SUPERBLOCK_NAMES;

/// The name of the lock file.
pub const LOCK_NAME: &str = "LOCK";
/// The directory of the log.
pub const LOG_DIRECTORY: &str = "wal";
/// The directory of the runs.
pub const DATA_DIRECTORY: &str = "data";

/// The events of the database, one per line. The engine never needs it.
pub const EVENTS_NAME: &str = "EVENTS";
/// The earlier events.
pub const EVENTS_BEFORE_NAME: &str = "EVENTS.1";
/// The statistics for other processes. The engine never needs it.
pub const STATISTICS_NAME: &str = "STATISTICS";
/// The files that the engine writes only for readers outside.
pub const MONITOR_NAMES: [&str; 3] = [EVENTS_NAME, EVENTS_BEFORE_NAME, STATISTICS_NAME];

/// What a directory with these entries is.
pub fn what_it_is(entries: &[DirEntry]) -> String {
    let ours = |entry: &DirEntry| SUPERBLOCK_NAMES.contains(&entry.name.as_str());
    match entries.first() {
        None => "an empty directory".to_owned(),
        Some(_) if entries.iter().any(ours) => "a database".to_owned(),
        Some(first) => format!("a directory that holds {:?}", first.name),
    }
}
