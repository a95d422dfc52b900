//! The description of the database: an immutable version of the trees in memory, and the manifest,
//! its durable log.
//!
//! 1. A [`Version`] is an immutable tree of partitions per keyspace. A change makes a new version
//!    that shares all unchanged parts; readers keep the old version as long as they need it.
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
mod edit;
mod fields;
mod known;
mod log;
mod name;
mod reach_record;
mod record;
mod recovered;
mod scan;
mod search;
mod store;
mod superblock;
#[cfg(test)]
mod tests;
mod version;

pub use branch::{BranchKind, BranchRecord, Home};
pub use edit::{Edit, KeyspaceRecord, PartitionRecord, RunRecord, Traits, TreeEdit, TreePiece};
pub use known::{EndMark, Known, Reach};
pub use log::{Manifest, begins_like_one, read, read_records};
pub use name::{manifest_name, parse_manifest_name};
pub use reach_record::{ReachRecord, Wanted};
pub use recovered::Recovered;
pub use scan::{Content, Piece, Scan, scan};
pub use store::{Dead, Moved, Store, Totals};
pub use superblock::{SUPERBLOCK_NAMES, Superblock, Superblocks};
pub use version::{Draft, Partition, Tree, Trees, Version, check_tree, misfit, run_record};

/// The format version that this build writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest format version that this build reads.
pub const FORMAT_VERSION_MIN: u32 = 1;
