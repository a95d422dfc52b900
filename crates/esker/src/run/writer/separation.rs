//! What is known of the separated values of the segment that is being written.

use crate::base::FileId;
use crate::block::{Builder, Encoder};
use crate::cache::BlockCache;
use crate::error::Result;
use crate::run::Segment;
use crate::run::fetch::{KnownValues, ValueMove};
use crate::run::index::IndexBuilder;
use crate::run::reference::{ValueRef, ValueUse};
use crate::run::warm::{OwnValues, Warm};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value segment has about this many times the size of a data segment: it has no filter and its index has no
/// keys, and each costs an entry in the description of the tree.
pub(super) const VALUE_SEGMENTS: u64 = 4;
/// A data segment refers to about this many times its size, so that compactions and partitions are cut as they
/// are where values stand beside their keys.
const REFERRED_SEGMENTS: u64 = 16;

/// The separated values of the segment that is being written.
#[derive(Debug, Default)]
pub(super) struct Separation {
    /// The value segments to which entries may refer that are added.
    pub(super) known: KnownValues,
    /// Whether the blocks of the segment wait for the end of a value segment.
    pub(super) holds_blocks: bool,
    pub(super) held: Vec<u8>,
    pub(super) blocks: Vec<HeldBlock>,
    /// The value segment that is being written.
    pub(super) open: Option<OpenValues>,
    pub(super) block: Builder,
    /// Compresses values: those of cold keys without the dictionary of the keys.
    pub(super) encoder: Encoder,
    pub(super) reference: Vec<u8>,
    /// Bytes of the values to which the segment refers.
    pub(super) referred: u64,
    /// Whether values came for the segment before.
    pub(super) expects_values: bool,
    pub(super) uses: BTreeMap<(FileId, u64), ValueUse>,
    /// Those of the value segments that were there before.
    pub(super) others: Vec<Arc<Segment>>,
    /// The value segments that were written for the segment and have ended.
    pub(super) own: Vec<OwnValues>,
    pub(super) warm: Option<Warm>,
    pub(super) moved: MovedBytes,
}

/// Bytes of stored values that moved, by the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MovedBytes {
    /// Because they were not read.
    pub cooled: u64,
    /// Because they were read often.
    pub warmed: u64,
    /// Because much beside them was dead. They stay as cold or warm as they were.
    pub emptied: u64,
}

impl MovedBytes {
    pub(super) fn add(&mut self, why: Option<ValueMove>, stored: u64) {
        match why {
            Some(ValueMove::Cools) => self.cooled += stored,
            Some(ValueMove::Warms) => self.warmed += stored,
            // Seeded: cold values that only move count as turned cold again, with the keys beside them.
            Some(_) if bug!("run_emptied_values_count_as_keys") => {}
            Some(ValueMove::Empties | ValueMove::EmptiesCold) => self.emptied += stored,
            None => {}
        }
    }
}

/// A block that waits.
#[derive(Debug)]
pub(super) struct HeldBlock {
    /// Where it ends in the bytes that wait.
    pub(super) end: usize,
    pub(super) fence: Vec<u8>,
    pub(super) continued: bool,
}

/// The value segment that is being written.
#[derive(Debug)]
pub(super) struct OpenValues {
    pub(super) offset: u64,
    pub(super) index: IndexBuilder,
    /// Whether its values go into it because they are cold.
    pub(super) cold: bool,
    pub(super) entries: u32,
    pub(super) raw_bytes: u64,
    /// Bytes of its stored blocks.
    pub(super) stored: u64,
}

impl Separation {
    pub(super) fn keep_in(&mut self, cache: &Arc<BlockCache>) {
        self.warm = Some(Warm::new(cache));
    }

    /// Bytes of memory that it has.
    pub(super) fn memory(&self) -> usize {
        let index = self.open.as_ref().map_or(0, |open| open.index.memory());
        let fences: usize = self.blocks.iter().map(|block| block.fence.capacity()).sum();
        let uses = self.uses.len() * size_of::<ValueUse>();
        let block = self.block.memory() + self.encoder.memory();
        self.held.capacity() + block + index + fences + uses
    }

    /// What counts against the size of a segment: its blocks that wait, or a part of its values.
    pub(super) fn size(&self) -> u64 {
        let values = self.open.as_ref().map_or(0, |open| open.stored / VALUE_SEGMENTS);
        values.max(self.held.len() as u64).max(self.referred / REFERRED_SEGMENTS)
    }

    /// Keeps a block until the value segment ends.
    pub(super) fn hold(&mut self, block: &Builder, fence: Vec<u8>, continued: bool) {
        block.finish(&mut self.held);
        self.blocks.push(HeldBlock { end: self.held.len(), fence, continued });
    }

    /// Notes that an entry refers to a value of a segment that was there before.
    pub(super) fn refer(&mut self, segment: &Arc<Segment>, reference: ValueRef) -> Result<()> {
        let values = segment.meta().as_values();
        let used = self.uses.entry(reference.place()).or_insert_with(|| {
            self.others.push(segment.clone());
            ValueUse { values, entries: 0, bytes: 0 }
        });
        used.entries += 1;
        used.bytes += u64::from(reference.len);
        self.referred += u64::from(reference.len);
        let block = u64::from(reference.block) < values.entries;
        if !block || used.entries > values.entries || used.bytes > values.raw_bytes {
            return Err(segment.misfit("it has fewer values than its references say"));
        }
        Ok(())
    }

    /// The value segments to which the segment refers that has ended.
    pub(super) fn take_uses(&mut self) -> Box<[ValueUse]> {
        self.referred = 0;
        std::mem::take(&mut self.uses).into_values().collect()
    }
}
