//! What one operation did: the steps of a read or a write, and the slowest operations.
//!
//! The code that searches is generic over a [`Recorder`]. That of plain reads
//! (`lookup::counting::Counting`) only counts the answers of filters; a read that is explained passes
//! [`Recording`], which keeps a [`Step`] for each source. So one code serves both, and a plain read
//! pays nothing for the other. Scans are generic over a [`Watcher`], which
//! wraps the cursors of their sources, and writes over [`Phases`].
//!
//! Reads of files are rare and slow enough to be timed always. Each adds to a tally of its thread
//! ([`tally`]); the difference of two tallies is what a step read.
//!
//! [`Slowest`] keeps the slowest operations of the last hour, without keys and values.

mod display;
pub mod encoding;
mod explanation;
mod phases;
mod recorder;
mod slowest;
pub mod tally;
mod watcher;

pub use explanation::{BlockCounts, Explanation, Outcome, Step, StepSource, WaitTime};
pub use phases::{Phases, Untimed, WriteRecording};
pub use recorder::{FilterAnswer, FilterCounts, Plain, Recorder, Recording};
pub use slowest::{SlowOperation, Slowest};
pub use tally::Purpose;
pub use watcher::{Unwatched, Watcher, Watching};
