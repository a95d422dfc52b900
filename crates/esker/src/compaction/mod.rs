//! Compaction: which runs to read, what to keep, and what to leave alone.
//!
//! The pieces do no I/O of their own. [`plan()`] looks at the key ranges of the input segments and
//! decides which are reused by reference, which are dropped whole and which are rewritten together.
//! [`CompactionStream`] reads the sources of one rewrite, in steps of bounded length, and hands
//! over the entries that survive. [`VersionGc`] is its rule: a pure function of an entry's version,
//! the snapshots and the range tombstones, small enough to be tested over every history of a few
//! operations. [`ThinStream`] applies the rule to one source alone, when there is no room to write
//! all of them.
//!
//! This module also decides what is due and where results go. [`policy`] says when something is due,
//! as pure functions of sizes and counts that the simulator calls too. [`queue`] knows the partitions
//! and spans that are due and the work under way; [`scores`] says how urgent each is. [`partitioning`] has the rules by which partitions
//! take in runs, split and join. [`flush_targets`] finds what a flush or a push touches, [`slicing`]
//! writes it, and [`flush_slices`] adds it to a row. [`install`] puts the results of pushes and compactions in place.
//! [`tiers`] shapes the tiers, and [`pressure`] says how full they are. [`calm`] finds what is compacted without being due while nobody
//! writes, and [`settle`] and [`temperature`] what is compressed then. [`space`] finds what is compacted for the space
//! that it gives back. [`values`] says which separated values move. [`inputs`] gives the plan the runs of a partition. [`thin_candidates`] finds the segments for [`ThinStream`].
//!
//! The database drives these pieces: it opens cursors, writes runs and edits the manifest.

#[cfg(not(loom))]
pub mod calm;
#[cfg(not(loom))]
pub mod choice;
mod counts;
pub mod flush_slices;
pub mod flush_targets;
mod fold;
mod gc;
pub mod inputs;
#[cfg(not(loom))]
pub mod install;
mod key;
pub mod looks;
pub mod partitioning;
mod plan;
pub mod policy;
#[cfg(not(loom))]
pub mod pressure;
pub mod queue;
pub mod scores;
#[cfg(not(loom))]
pub mod settle;
pub mod slicing;
#[cfg(not(loom))]
pub mod space;
mod stream;
#[cfg(not(loom))]
pub mod temperature;
mod thin;
#[cfg(not(loom))]
pub mod thin_candidates;
#[cfg(not(loom))]
pub mod tiers;
#[cfg(not(loom))]
mod turns;
#[cfg(not(loom))]
mod uses;
#[cfg(not(loom))]
pub mod values;

pub use counts::CompactionCounts;
pub use gc::{CompactionRule, Depth, Verdict, VersionGc};
pub use plan::{
    Interval, Piece, PlanLimits, Recoding, SourceKind, SourceRuns, plan, written_bytes,
};
pub use stream::CompactionStream;
pub use thin::{Stretch, ThinStream};
