//! Whether compression would make a segment smaller.
//!
//! 1. The index says how each block is stored, so the sums are known from the moment that a segment is
//!    written or its index is first read. They stay known when the cache drops the index.
//! 2. Whether a raw segment would shrink is judged once, by a few of its blocks, and remembered for
//!    as long as the database is open: what does not shrink is not tried again and again.
//! 3. What a compressing writer wrote is as small as it gets.

use super::sample::spread;
use super::segment::Segment;
use super::stored::StoredBytes;
use crate::block::{Codec, Encoder};
use crate::cache::BlockCache;
use crate::error::Result;
use crate::trace::Purpose;
use std::sync::Arc;

/// The blocks by which a segment is judged.
const SAMPLES: usize = 4;
/// The divisor of the bytes of these blocks that compression must save.
const SAVING_DIVISOR: usize = 10;

impl Segment {
    /// How its blocks are stored; `None`: nothing was read of it since the database was opened.
    pub fn stored(&self) -> Option<StoredBytes> {
        self.storage.bytes.get().copied()
    }

    /// Whether it is known if it would shrink.
    pub fn is_judged(&self) -> bool {
        self.storage.shrinks.get().is_some()
    }

    /// Marks the segment as written by a compressing writer, so that it is not judged again.
    pub fn note_compressed(&self) {
        self.storage.shrinks.get_or_init(|| false);
    }

    /// Whether all of its blocks are raw and `codec` would make them smaller by a tenth, judged by
    /// a few of them. Only rewriting the segment compresses it then. The first call reads the tail
    /// and these blocks, and keeps neither. A segment that cannot be read does not shrink: damage is
    /// left for a read of the data to find.
    pub fn would_shrink(&self, codec: Codec, cache: &Arc<BlockCache>) -> bool {
        if codec == Codec::Raw {
            return false;
        }
        let judge = || self.judge(codec, cache).unwrap_or(false);
        *self.storage.shrinks.get_or_init(judge)
    }

    fn judge(&self, codec: Codec, cache: &Arc<BlockCache>) -> Result<bool> {
        let index = self.index_once(cache, Purpose::Other)?;
        if !index.stored().is_raw() {
            return Ok(false);
        }
        // Seeded: data that cannot shrink is written again.
        bug!("run_all_raw_segments_shrink", return Ok(true));
        let (mut encoder, mut before, mut after) = (Encoder::default(), 0, 0);
        for at in spread(index.places.len(), SAMPLES) {
            let mut frame = self.read_block(&index, at, Purpose::Other)?;
            let raw = frame.bytes_mut();
            before += raw.len();
            after += encoder.stored_len(codec, raw);
        }
        Ok((before - after) * SAVING_DIVISOR >= before)
    }
}
