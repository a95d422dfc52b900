//! Turning several runs into one: what to read, what to keep, what to leave alone.
//!
//! None of the pieces does I/O of its own. [`plan()`] looks at the key ranges of the segments that
//! take part and decides which are reused by reference, which are dropped whole and which are
//! rewritten together. [`CompactionStream`] walks over the sources of one rewrite, in steps of
//! bounded length, and hands over the entries that survive. [`VersionGc`] is the rule by which it
//! decides: a pure function of an entry's version, the snapshots and the range tombstones, small
//! enough to be tested over every history of a few operations. [`ThinStream`] applies the rule to
//! one source alone, where there is no room to write them all.
//!
//! What is due, and where results go, is decided here too: [`queue`] knows the partitions that are due
//! and the work under way; [`partitioning`] says how partitions take in runs, split and join;
//! [`flush_targets`] and [`flush_slices`] put what a flush wrote into a tree; [`inputs`] gives the
//! plan the runs of a partition; [`thin_candidates`] finds the segments for [`ThinStream`].
//!
//! The database drives these pieces: it opens cursors, writes runs and edits the manifest.

mod counts;
pub mod flush_slices;
pub mod flush_targets;
mod fold;
mod gc;
pub mod inputs;
pub mod partitioning;
mod plan;
pub mod queue;
mod stream;
mod thin;
pub mod thin_candidates;

pub use counts::CompactionCounts;
pub use gc::{CompactionRule, Depth, Verdict, VersionGc};
pub use plan::{Interval, Piece, PlanLimits, SourceKind, SourceRuns, plan};
pub use stream::CompactionStream;
pub use thin::{Stretch, ThinStream};
