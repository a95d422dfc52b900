//! The write-ahead log on disk: its bytes, its files, and reading it back.
//!
//! The log is one endless sequence of bytes; a *position* in it is a sequence number (R1). A log file
//! holds a window of it: a header page and a data area. A record may span several log files. A log file
//! names its predecessor by nonce and starts where the predecessor ends, so recovery finds the log by
//! walking back from the log file with the highest serial number: this is the *chain*. All other files
//! in the directory are leftovers without meaning. File names are not part of the format: recycled files
//! keep their names.
//!
//! Invariants:
//! 1. A log file's header and directory entry are durable before its first record is written (R4).
//! 2. A byte belongs to the log only in the last log file of the chain that starts at or before it.
//! 3. At every moment the directory holds a log file that covers the manifest's log start (R11).
//! 4. No code here reads through a mapping (R9), and every length from disk is checked before it is
//!    used (C5).
//!
//! [`crate::commit`] orders the writes; this module knows where bytes go.
//! The idea of chained, salted and recycled log files is that of RocksDB's recycled logs and of
//! SQLite's salted WAL; the torn-end rule by published and synced positions is our own (R6).

mod chain;
mod creation;
pub mod format;
mod inspect;
mod log_file;
pub mod ops;
mod recover;
mod salvage;
mod stream;

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "helpers of tests, too, may panic")]
pub(crate) mod memfs;
#[cfg(all(test, not(loom)))]
mod tests;

pub use chain::{Chain, ChainFile, Policy};
pub use format::{LogFileHeader, Record, RecordKind};
pub use inspect::{Inspected, inspect, verify};
pub use log_file::{AllocatedFile, LogFile, Medium, RELEASE_BYTES_MIN, file_name, file_number};
pub use recover::{Reach, Recovered, recover};
pub use salvage::{LogSalvage, LostStretch, Visited, is_whole, salvage, visit_file};

/// The position of the first record of a new database. It is not 0, because sequence number 0
/// means "older than everything".
pub const FIRST_POSITION: crate::base::Seq = 64;
