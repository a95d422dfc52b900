//! Sorted runs: immutable, sorted entries on disk.
//!
//! A run is an ordered list of *run segments*, called segments here, that do not overlap, and of
//! segments of range tombstones. The segments may be in several files. A segment (about 1 MiB) is
//! self-contained: blocks, then a tail of filter, index, description and footer. It is the unit of
//! sharing: runs refer to segments, and segments to their file. The drop of the last reference
//! reports the space that can be released (R22). Segments do not know their keyspace (R16); the
//! manifest does.
//!
//! Each reference to a part of a file repeats its checksum: the manifest has the checksum of each
//! tail ([`SegmentMeta`]), the index that of each block. Checksums are salted with file id and
//! offset. So the check of a part fails if it was swapped, misplaced or taken from another file.
//!
//! There are two kinds of point reads ([`Access`]): inside an epoch, without I/O, and outside,
//! where missing blocks are read. `docs/file-formats.md` describes the file format.
//!
//! 1. Segments of a run are in key order and do not overlap; one segment holds all versions of a
//!    key.
//! 2. If the versions of a key continue in the next block, that block is marked as *continued*, so
//!    that a search always begins at the block with the newest version (R17).

mod awaited;
mod cursor;
mod fence;
mod fetch;
mod file;
mod get;
mod header;
mod heads;
mod index;
mod located;
#[cfg(all(test, loom))]
mod loom_tests;
mod meta;
mod neighbours;
mod piece;
mod pieces;
mod reference;
mod salvage;
mod sample;
mod segment;
mod shrink;
mod stored;
mod temperature;
#[cfg(test)]
mod tests;
mod verify;
mod warm;
mod writer;

pub use awaited::{Awaited, AwaitedRange, Awaits};
pub use cursor::RunCursor;
pub use fetch::{KnownValues, ValueMove};
pub use file::{OpenFiles, Reclaim, RunFile};
pub use get::{Access, BlockRef, Found, Probe, Wanted};
pub use header::{HEADER_BYTES, file_name, parse_run_name};
pub use located::{Located, Location};
pub use meta::{SegmentKind, SegmentMeta, Specials};
pub use pieces::{Pieces, PiecesReader};
pub use reference::{ValueRef, ValueUse, ValuesMeta};
pub use salvage::{DamagedFile, Found as FoundBlock, LostPart, SavedValue, SegmentReader};
pub use segment::Segment;
pub use stored::StoredBytes;
pub use temperature::{Turn, train};
pub use verify::SegmentCounts;
pub use warm::Written;
pub use writer::{MovedBytes, RunWriter, Source, WriterOptions, finish_files};

use crate::base::rangedel::Fragments;
use crate::base::{KeyOrder, SEQ_MAX};
use crate::error::Result;
use fence::Fences;
use std::sync::Arc;

/// The role of a run, which decides how its filters are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A partition's base: most reads end here, so a read checks the filter only before I/O.
    Base,
    /// A delta, newer than the base and much smaller: most reads find nothing here, so a read
    /// checks the filter first.
    Delta,
}

/// A sorted run.
#[derive(Debug)]
pub struct Run {
    role: Role,
    fences: Fences,
    segments: Box<[Arc<Segment>]>,
    tombstones: Box<[Arc<Segment>]>,
    bytes: u64,
    entries: u64,
    raw_bytes: u64,
    max_seq: u64,
}

impl Run {
    /// Its range tombstones, one list per run segment that holds some.
    ///
    /// # Errors
    /// What reading a run segment fails with.
    pub fn fragments<O: KeyOrder>(&self, order: &O) -> Result<Vec<Arc<Fragments>>> {
        let list = |segment: &Arc<Segment>| segment.fragments(order).cloned();
        self.tombstones().iter().map(list).collect()
    }

    /// A run of these data segments, in key order, and these segments of range tombstones.
    pub fn new(role: Role, segments: Vec<Arc<Segment>>, tombstones: Vec<Arc<Segment>>) -> Self {
        let bytewise = segments.iter().all(|segment| segment.meta().bytewise);
        let lows = segments.iter().map(|segment| segment.meta().min_key.as_slice());
        let fences = Fences::build(bytewise, lows);
        let all = || segments.iter().chain(&tombstones).map(|segment| segment.meta());
        Self {
            role,
            fences,
            bytes: all().map(SegmentMeta::weight).sum(),
            entries: segments.iter().map(|segment| segment.meta().entries).sum(),
            raw_bytes: segments.iter().map(|segment| segment.meta().raw_bytes).sum(),
            max_seq: all().map(|meta| meta.max_seq).max().unwrap_or(0).min(SEQ_MAX),
            segments: segments.into(),
            tombstones: tombstones.into(),
        }
    }

    /// The first and the last key of its entries, if it has any.
    pub fn ends(&self) -> Option<(&[u8], &[u8])> {
        let (first, last) = (self.segments.first()?.meta(), self.segments.last()?.meta());
        Some((&first.min_key, &last.max_key))
    }

    /// What the run is for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The data segments, in key order.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// The segments of range tombstones.
    pub fn tombstones(&self) -> &[Arc<Segment>] {
        &self.tombstones
    }

    /// Bytes on disk, tombstones and separated values included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of keys and values.
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Entries, deletes included, range tombstones not.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The newest sequence number, range tombstones included.
    pub fn max_seq(&self) -> u64 {
        self.max_seq
    }

    /// Whether another run refers to the same segments.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |a: &[Arc<Segment>], b: &[Arc<Segment>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        same(&self.segments, &other.segments) && same(&self.tombstones, &other.tombstones)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.tombstones.is_empty()
    }
}
