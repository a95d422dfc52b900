//! The configuration of a log, and the calls that it makes.

use crate::events::EventBus;
use crate::fs::Fs;
use crate::options::settings::Settings;
use crate::options::{Durability, LogKind, Options};
use crate::waits::Waits;
use crate::wal::format::PAYLOAD_BYTES_MAX;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the first log file.
const FIRST_FILE_BYTES: u64 = 256 << 10;

/// Where the log is and how it is written.
pub struct LogConfig {
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// The directory of the log files.
    pub dir: PathBuf,
    /// How records reach the files.
    pub kind: LogKind,
    /// Bytes of the largest log file; log files double up to it.
    pub file_bytes_max: u64,
    /// Bytes of the first log file, and of the one that a log at rest has.
    pub file_bytes_min: u64,
    /// Longest payload that is accepted.
    pub payload_bytes_max: u64,
    /// The life of the database, which goes into the headers of log files.
    pub life: u64,
    /// Called when the next log file should be prepared or pages read in. A writer calls it outside
    /// of its critical section; it wakes the thread that calls
    /// [`Pipeline::prepare_ahead`](super::Pipeline::prepare_ahead) (R27).
    pub on_prepare_needed: Option<Box<dyn Fn() + Send + Sync>>,
    /// Called to make room when the device is too full for the first log file, or when a
    /// copy-on-write file system finds no space for a record. Returns whether it made room.
    pub on_full: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Where it is told that files could not be removed.
    pub events: Arc<EventBus>,
    /// Where the waits of writers are recorded.
    pub waits: Arc<Waits>,
    /// Called with the time that each sync took.
    pub on_sync: Option<Box<dyn Fn(Duration) + Send + Sync>>,
}

impl LogConfig {
    /// The usual configuration for a log in `dir`.
    pub fn new(fs: Arc<dyn Fs>, dir: PathBuf) -> Self {
        Self {
            fs,
            dir,
            kind: LogKind::Auto,
            file_bytes_max: 64 << 20,
            file_bytes_min: FIRST_FILE_BYTES,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            life: 0,
            on_prepare_needed: None,
            on_full: None,
            events: Arc::new(EventBus::new(false)),
            waits: Arc::default(),
            on_sync: None,
        }
    }

    /// As the options and settings of a database say, for this life of it.
    pub fn of(dir: PathBuf, options: &Options, settings: &Settings, life: u64) -> Self {
        Self {
            life,
            kind: options.log,
            file_bytes_max: settings.log_file_bytes,
            file_bytes_min: options
                .small_rest
                .map_or(FIRST_FILE_BYTES, |rest| u64::from(rest.file_bytes)),
            payload_bytes_max: settings.batch_bytes_max,
            ..Self::new(options.fs.clone(), dir)
        }
    }
}

/// What the log counted since it was opened (R29).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogCounters {
    /// Bytes of log that were reserved, those of `Buffered` records included.
    pub bytes: u64,
    /// Syncs that succeeded.
    pub syncs: u64,
    /// Time that they took.
    pub sync_time: Duration,
    /// Log files prepared, the recycled ones included.
    pub files_prepared: u64,
    /// Log files that were recycled.
    pub files_recycled: u64,
}

/// What a finished write survives (C1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nothing: the write takes up positions, and is not logged (R13).
    Buffered,
    /// The end of the process.
    Process,
    /// Power loss.
    Disk,
}

impl Class {
    /// The class of the writes of a durability class.
    pub fn of(durability: Durability) -> Self {
        match durability {
            Durability::Buffered => Self::Buffered,
            Durability::Process => Self::Process,
            Durability::Disk => Self::Disk,
        }
    }
}
