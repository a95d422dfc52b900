//! The progress reports of a long run, and its summary.

use crate::stream::Totals;
use std::time::{Duration, Instant};

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Step {
    /// Entries that are done.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// The part of the whole that is done, from 0 to 1, where it can be told.
    pub fraction: Option<f64>,
}

/// Receives progress, about every few hundred KiB, on the thread that runs the work.
pub trait Progress {
    /// The run came this far.
    fn step(&mut self, step: Step);
}

/// Ignores progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn step(&mut self, _: Step) {}
}

impl<F: FnMut(Step)> Progress for F {
    fn step(&mut self, step: Step) {
        self(step);
    }
}

/// The summary of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Keyspaces in the stream.
    pub keyspaces: u64,
    /// Entries in the stream.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// How many of these entries come from an earlier, interrupted run.
    pub resumed: u64,
    /// The checksum over all keyspaces, keys and values: the same in every form of the dump, and
    /// the same for every database with the same contents.
    pub content: u64,
    /// Bytes of the stream, or of the files that an import read.
    pub stream_bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Summary {
    /// Of a run that ends now: what its stream held, how many entries were there before, the length
    /// of the stream, and when the run began.
    pub(crate) fn of(totals: &Totals, resumed: u64, stream_bytes: u64, started: Instant) -> Self {
        let Totals { keyspaces, entries, bytes, content } = *totals;
        let elapsed = started.elapsed();
        Self { keyspaces, entries, bytes, resumed, content, stream_bytes, elapsed }
    }
}
