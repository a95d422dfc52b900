//! The file `STATISTICS`: the statistics of an open database for other processes.
//!
//! A process that has the database open for writing writes the file about once per second; any
//! other process reads it, without a lock and without a write. [`format`] has the bytes,
//! [`StatisticsFile`] writes them, [`Observed`] reads them and says whether they are of now.
//!
//! 1. The engine never reads the file to work. Whatever is in its place, opening and writing go on;
//!    what cannot be written is counted.
//! 2. Two slots take turns, so while one is being written the other is whole. A reader never takes
//!    a half-written slot for a whole one: a checksum covers all of it.
//! 3. The file is read with positioned reads and never mapped: a mapping of a file that is cut
//!    would kill the reader.

pub mod format;
mod observed;
#[cfg(test)]
mod tests;
mod writer;

pub use observed::{Observed, ObservedState};
pub use writer::StatisticsFile;

pub use crate::directory::STATISTICS_NAME;

/// The most trees whose shape is in the file.
pub const TREES_MAX: usize = 256;
