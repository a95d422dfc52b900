//! What is written goes into the cache, as long as the cache has room.
//!
//! A flush or compaction has each block in memory when it writes it. Without this, the first readers
//! after it would read every block again, because the cache held the blocks of runs that are gone.
//! `db/output.rs` decides which outputs this is done for: none while writers are slowed.
//!
//! 1. No block is evicted for one that nobody has asked for: the free room when a segment begins decides. Blocks that are
//!    read while it is written find that room taken. So data that
//!    are much larger than the cache, and are only written, cost one look per segment.
//! 2. Blocks enter the small queue, as if they had been read once, so those that nobody reads leave
//!    before others.
//! 3. At most the blocks of one segment, and of one value segment, of each thread that writes wait for their slots, and
//!    what waits counts as cached (`cache/waiting.rs`).

use super::file::RunFile;
use super::index::{Index, Tail};
use super::meta::SegmentMeta;
use super::segment::Segment;
use super::stored::StoredBytes;
use crate::base::Seq;
use crate::cache::{BlockCache, Waiting};
use std::sync::Arc;

/// The blocks of the segment that is being written.
#[derive(Debug)]
pub(super) struct Warm(Waiting);

impl Warm {
    pub(super) fn new(cache: &Arc<BlockCache>) -> Self {
        Self(Waiting::new(cache))
    }

    /// A segment of about so many bytes begins.
    pub(super) fn begin(&mut self, bytes: u32) {
        self.0.begin(bytes.into());
    }

    /// The next block, not compressed.
    pub(super) fn keep(&mut self, raw: &[u8]) {
        self.0.keep(raw);
    }

    /// The segment ends with this tail. Its blocks go into the cache, where they stay for as long
    /// as the index does.
    pub(super) fn end(&mut self, meta: &SegmentMeta, tail: &[u8]) -> Option<Index> {
        if !self.0.end() {
            return None;
        }
        let tail = Tail::parse(tail, meta).ok()?;
        let index = Index::decode(&tail, meta, self.0.cache()).ok()?;
        self.0.offer(&index.slots);
        (!index.slots.is_empty()).then_some(index)
    }
}

/// A segment that was written.
#[derive(Debug)]
pub struct Written {
    /// Its description.
    pub meta: SegmentMeta,
    pub(super) index: Option<Index>,
    pub(super) stored: StoredBytes,
    pub(super) compressed: bool,
    pub(super) cold: bool,
    pub(super) values: WrittenValues,
}

/// A value segment that was written.
#[derive(Debug)]
pub(super) struct OwnValues {
    pub(super) meta: SegmentMeta,
    /// Its index for the cache.
    pub(super) index: Option<Index>,
    pub(super) stored: StoredBytes,
    /// Whether its values went into it because they are cold.
    pub(super) cold: bool,
}

/// The value segments to which a segment that was written refers.
#[derive(Debug, Default)]
pub(super) struct WrittenValues {
    /// Those that were written with it.
    pub(super) own: Vec<OwnValues>,
    /// Those that were there before.
    pub(super) others: Vec<Arc<Segment>>,
}

impl OwnValues {
    /// The same without what is for the cache.
    fn uncached(&self) -> Self {
        let Self { meta, stored, cold, .. } = self;
        Self { meta: meta.clone(), index: None, stored: *stored, cold: *cold }
    }
}

impl WrittenValues {
    /// The value segments, in the order of the segment's meta.
    fn into_segments(self, file: &Arc<RunFile>) -> Box<[Arc<Segment>]> {
        let mut all = self.others;
        for OwnValues { meta, index, stored, cold } in self.own {
            let segment = Segment::new(meta, file.clone());
            if let Some(index) = index {
                segment.keep(index);
            }
            segment.storage.bytes.get_or_init(|| stored);
            if cold {
                segment.note_cold();
            }
            all.push(segment);
        }
        // Seeded: a key finds its value in another value segment of its run.
        bug!("run_value_segments_out_of_order", return all.into());
        all.sort_by_key(|segment| segment.meta().place());
        all.into()
    }
}

impl Written {
    /// The segment, which is in this file, as one of entries that are ingested at a position.
    pub fn ingested_at(&self, file: Arc<RunFile>, seq: Seq) -> Arc<Segment> {
        let meta = self.meta.clone().ingested_at(seq);
        let Self { stored, compressed, cold, .. } = *self;
        let own = self.values.own.iter().map(OwnValues::uncached).collect();
        let values = WrittenValues { own, others: self.values.others.clone() };
        Self { meta, index: None, stored, compressed, cold, values }.into_segment(file)
    }

    /// The segment, which is in this file.
    pub fn into_segment(self, file: Arc<RunFile>) -> Arc<Segment> {
        let values = self.values.into_segments(&file);
        let segment = Segment::with_values(self.meta, file, values);
        if let Some(index) = self.index {
            segment.keep(index);
        }
        segment.storage.bytes.get_or_init(|| self.stored);
        if self.compressed {
            segment.note_compressed();
        }
        if self.cold {
            segment.note_cold();
        }
        segment
    }
}
