//! The description of the database: an immutable version of the trees in memory, and the manifest,
//! its durable log.
//!
//! 1. A [`Version`] has an immutable [`Tree`] per keyspace: a row of partitions and the tiers above
//!    it. A change makes a new version that shares all unchanged parts; readers keep the old version
//!    as long as they need it.
//! 2. Each change is also an [`Edit`], which is appended to `MANIFEST-n` and synced *before* the
//!    new version is published and before any file that it drops is deleted (R3, R22).
//! 3. Two superblocks name the manifest and state how far it and the log were durable. A retired
//!    manifest ends with its successor's name, and both superblocks are updated before it is
//!    deleted (R12).
//! 4. Every open for writing starts a new manifest with the whole state in its first record, so no
//!    record ever follows bytes that an earlier process wrote (R7).
//! 5. After a failed append or sync of the manifest its content is unknown: the latch refuses all
//!    further writes until the database is reopened (C2).

mod branch;
mod counts;
mod cuts;
mod draft;
mod edit;
mod extents;
mod fields;
mod known;
mod log;
mod name;
mod partition;
mod reach_record;
mod record;
mod recovered;
mod row;
mod scan;
mod search;
mod sharing;
mod store;
mod superblock;
#[cfg(test)]
mod tests;
mod tree;
mod version;

pub use branch::{BranchKind, BranchRecord, Home};
pub use counts::{CountBounds, groups};
pub use cuts::cuts;
pub use draft::Draft;
pub use edit::{
    Edit, KeyspaceRecord, PartitionRecord, RunRecord, TIERS_MAX, Traits, TreeEdit, TreePiece,
};
pub use extents::{KeyRange, extents, hulls, in_both};
pub use known::{EndMark, Known, Reach};
pub use log::{Manifest, begins_like_one, read, read_records};
pub use name::{manifest_name, parse_manifest_name};
pub use partition::{Partition, run_record};
pub use reach_record::{ReachRecord, Wanted};
pub use recovered::Recovered;
pub use row::Row;
pub use scan::{Content, Piece, Scan, scan};
pub use store::{Dead, Moved, Store, Totals};
pub use superblock::{SUPERBLOCK_NAMES, Superblock, Superblocks};
pub use tree::{Tree, check_tree};
pub use version::{Trees, Version, misfit};

/// The format version that this build writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 3;
/// The oldest format version that this build reads.
pub const FORMAT_VERSION_MIN: u32 = 1;
