//! What is written goes into the cache, as long as the cache has room.
//!
//! A flush or compaction has each block in memory when it writes it. Without this, the first readers
//! after it would read every block again, because the cache held the blocks of runs that are gone.
//! `db/output.rs` decides which outputs this is done for: none while writers are slowed.
//!
//! 1. No block is evicted for one that nobody has asked for: free room alone decides. So data that
//!    are much larger than the cache, and are only written, cost one look per segment.
//! 2. Blocks enter the small queue, as if they had been read once, so those that nobody reads leave
//!    before others.
//! 3. At most the blocks of one segment, and of one value segment, are in memory outside of the cache.

use super::file::RunFile;
use super::index::{Index, Tail};
use super::meta::SegmentMeta;
use super::segment::Segment;
use super::stored::StoredBytes;
use crate::base::Seq;
use crate::block::Layout;
use crate::cache::{BlockCache, FrameBuf};
use std::sync::Arc;

/// The blocks of the segment that is being written.
#[derive(Debug)]
pub(super) struct Warm {
    cache: Arc<BlockCache>,
    frames: Vec<FrameBuf>,
    /// Bytes that may still be kept; nothing is kept if some block does not fit.
    room: Option<u64>,
}

impl Warm {
    pub(super) fn new(cache: &Arc<BlockCache>) -> Self {
        Self { cache: Arc::clone(cache), frames: Vec::new(), room: None }
    }

    /// A segment of about so many bytes begins.
    pub(super) fn begin(&mut self, bytes: u32) {
        self.frames.clear();
        let room = self.cache.room();
        self.room = (room >= u64::from(bytes)).then_some(room);
    }

    /// The next block, not compressed.
    pub(super) fn keep(&mut self, raw: &[u8]) {
        let Some(room) = self.room else { return };
        // A block that was just built has a layout.
        let left = room.checked_sub(raw.len() as u64).zip(Layout::parse(raw).ok());
        let Some((room, layout)) = left else {
            self.room = None;
            self.frames = Vec::new();
            return;
        };
        self.room = Some(room);
        let mut frame = self.cache.frame(raw.len());
        frame.bytes_mut().copy_from_slice(raw);
        frame.set_layout(layout);
        self.frames.push(frame);
    }

    /// The segment ends with this tail. Its blocks go into the cache, where they stay for as long
    /// as the index does.
    pub(super) fn end(&mut self, meta: &SegmentMeta, tail: &[u8]) -> Option<Index> {
        let frames = self.frames.drain(..);
        self.room.take()?;
        let tail = Tail::parse(tail, meta).ok()?;
        let index = Index::decode(&tail, meta, &self.cache).ok()?;
        let last = index.slots.len().checked_sub(1)?;
        for (i, frame) in frames.enumerate().take(last + 1) {
            // Seeded: a block that was kept stands for another one of its segment.
            let i = if bug!("run_kept_blocks_stand_in_wrong_slots") { last - i } else { i };
            index.slots.offer_to_room(i, frame);
        }
        Some(index)
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
