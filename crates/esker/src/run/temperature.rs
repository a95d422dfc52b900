//! The temperature of a segment: whether it is read, and what Zstandard would save where it is not.
//!
//! 1. What is known of it takes a few words in memory and is not stored: after an open everything counts as
//!    just read. Readers note that they use a segment in a flag that they seldom write, and count the
//!    bytes of blocks that they read from the file. Somebody who [looks](Segment::look) now and then
//!    turns the flag into a time.
//! 2. A segment is *cold* when nobody used it for long. What is compressed with Zstandard is *warm* when
//!    its blocks were read from the file so often that LZ4 would have cost less, writing included.
//! 3. Whether Zstandard saves enough of a cold segment is judged once, by some of its blocks: a dictionary
//!    is trained on most of them and tried on the others.
//! 4. A value segment has a temperature of its own, by the same rules, but no dictionary.

use super::meta::SegmentKind;
use super::sample::{block_bytes, spread};
use super::segment::Segment;
use crate::base::Millis;
use crate::block::{Codec, Dictionary, Encoder, TRAILER_BYTES};
use crate::cache::BlockCache;
use crate::error::Result;
use crate::options::settings::Cold;
use crate::trace::Purpose;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The blocks by which a segment is judged, of which every fifth is one that the dictionary is tried on.
const JUDGED: usize = 40;
const TRIED_EVERY: usize = 5;
/// The blocks on which a dictionary is trained, of all segments that get it.
const TRAINED: usize = 64;
/// Blocks that are stored with more bytes say little for what they cost to look at.
const TRAINED_BYTES_MAX: u32 = 32 << 10;
const TRIED_BYTES_MAX: u32 = 1 << 20;
/// A dictionary has this part of a segment's keys and values, between two bounds. Larger ones save less than
/// they take (docs/compaction.md).
const DICTIONARY_DIVISOR: u64 = 16;
const DICTIONARY_BYTES: [u64; 2] = [256, 4 << 10];
/// The divisor of the bytes of a segment's blocks that Zstandard must save.
const SAVING_DIVISOR: u64 = 8;
/// How often as many bytes as a segment has are read from it while it is cold until it is warm. A byte takes
/// 0.6 ns longer to read than with LZ4, and about 10 ns to be written again.
const READS: u64 = 16;

/// How the temperature of a segment has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is not read any more.
    Cold,
    /// It is compressed with Zstandard, and read often.
    Warm,
}

impl Segment {
    /// Looks at `now` whether the segment was used since somebody looked before. It is cold if that is
    /// long ago.
    pub fn look(&self, now: Millis, cold: Cold) -> Option<Turn> {
        let heat = &self.storage.heat;
        let now = now.max(1);
        let since = heat.since.load(Ordering::Relaxed);
        let passed = since > 0 && now.saturating_sub(since) >= cold.after;
        let begins = match self.is_strongly_compressed() {
            // Reads are counted over the same time.
            true => passed && self.turn(now, cold).is_none(),
            // Seeded: what is read counts as cold.
            false => self.take_read() && !bug!("run_readers_leave_segments_cold"),
        };
        if since == 0 || begins {
            heat.since.store(now, Ordering::Relaxed);
        }
        if since > 0 && begins {
            heat.read.store(0, Ordering::Relaxed);
        }
        self.turn(now, cold)
    }

    /// How the temperature has changed, as far as is known: see [`Self::look`].
    pub fn turn(&self, now: Millis, cold: Cold) -> Option<Turn> {
        let heat = &self.storage.heat;
        if self.is_strongly_compressed() {
            let len = self.meta().len;
            let enough = if cold.easily { len / 2 } else { len.saturating_mul(READS) };
            let warm = heat.read.load(Ordering::Relaxed) >= enough;
            // Seeded: what is cold stays cold, however often it is read.
            return (warm && !bug!("run_cold_segments_stay_cold")).then_some(Turn::Warm);
        }
        let since = heat.since.load(Ordering::Relaxed);
        let turned = since > 0 && now.saturating_sub(since) >= cold.after && !self.was_read();
        turned.then_some(Turn::Cold)
    }

    /// Whether some of its blocks are known to be compressed with Zstandard.
    pub fn is_strongly_compressed(&self) -> bool {
        self.stored().is_some_and(|stored| stored.zstd > 0)
    }

    /// Whether it is known if Zstandard would save enough.
    pub fn is_judged_cold(&self) -> bool {
        self.storage.heat.worth.get().is_some()
    }

    /// Marks the segment as written while it was cold, so that this is not done again.
    pub(super) fn note_cold(&self) {
        self.storage.heat.worth.get_or_init(|| false);
    }

    /// Whether Zstandard would save an eighth of the segment, its dictionary included, judged by some blocks.
    /// The first call reads the tail and these blocks, and keeps neither. Of a segment that cannot
    /// be read nothing is saved: damage is left for a read of the data to find.
    pub fn is_worth_cooling(&self, cold: Cold, cache: &Arc<BlockCache>) -> bool {
        let judge = || self.judge_cold(cold, cache).unwrap_or(false);
        *self.storage.heat.worth.get_or_init(judge)
    }

    fn judge_cold(&self, cold: Cold, cache: &Arc<BlockCache>) -> Result<bool> {
        let index = self.index_once(cache, Purpose::Other)?;
        if index.stored().zstd > 0 {
            return Ok(false);
        }
        // Seeded: data that does not shrink is written again.
        if cold.easily || bug!("run_all_cold_segments_shrink") {
            return Ok(true);
        }
        let (mut samples, mut tried) = (Samples::default(), Vec::new());
        let is_data = self.meta().kind == SegmentKind::Data;
        let judged = if is_data { JUDGED } else { JUDGED / TRIED_EVERY };
        for (number, at) in spread(index.places.len(), judged).enumerate() {
            let stored = index.places[at].len;
            let tries = !is_data || number % TRIED_EVERY == TRIED_EVERY / 2;
            let most = if tries { TRIED_BYTES_MAX } else { TRAINED_BYTES_MAX };
            if stored > most {
                continue;
            }
            let mut frame = self.read_block(&index, at, Purpose::Other)?;
            let raw = block_bytes(&mut frame, &index.places[at]);
            match tries {
                // These wait in memory until the dictionary is trained.
                true if raw.len() > TRIED_BYTES_MAX as usize => {}
                true => tried.push((raw.to_vec(), stored as usize - TRAILER_BYTES)),
                false => samples.add(raw),
            }
        }
        let dictionary = samples.train(self.meta().raw_bytes).filter(|_| is_data);
        let mut encoder = Encoder::default();
        encoder.set_dictionary(dictionary.as_ref());
        let before: u64 = tried.iter().map(|(_, stored)| *stored as u64).sum();
        let shrunk = tried.iter().map(|(raw, _)| encoder.stored_len(Codec::Zstd, raw) as u64);
        let saved = before.saturating_sub(shrunk.sum()) as u128;
        let all = self.meta().blocks_len();
        let saved = saved * u128::from(all) / u128::from(before.max(1));
        let costs = dictionary.map_or(0, |dictionary| dictionary.bytes().len() as u64);
        Ok(saved >= u128::from(all / SAVING_DIVISOR + costs) && before > 0)
    }
}

/// A dictionary for these segments, which are written together; `None`: they have too few blocks, or
/// nothing in common.
pub fn train(
    segments: &[Arc<Segment>],
    cache: &Arc<BlockCache>,
) -> Result<Option<Arc<Dictionary>>> {
    let (mut samples, mut raw_bytes) = (Samples::default(), 0);
    let chosen: Vec<_> = spread(segments.len(), TRAINED).collect();
    for at in &chosen {
        let segment = &segments[*at];
        raw_bytes += segment.meta().raw_bytes;
        let index = segment.index_once(cache, Purpose::Compaction)?;
        for block in spread(index.places.len(), TRAINED / chosen.len()) {
            let place = index.places[block];
            if place.len > TRAINED_BYTES_MAX {
                continue;
            }
            let mut frame = segment.read_block(&index, block, Purpose::Compaction)?;
            samples.add(block_bytes(&mut frame, &place));
        }
    }
    Ok(samples.train(raw_bytes / chosen.len().max(1) as u64).map(Arc::new))
}

/// Blocks on which a dictionary is trained.
#[derive(Default)]
struct Samples {
    bytes: Vec<u8>,
    lens: Vec<usize>,
}

impl Samples {
    fn add(&mut self, raw: &[u8]) {
        // The expansion of a block that is stored in few bytes has no bound to speak of.
        let raw = &raw[..raw.len().min(TRAINED_BYTES_MAX as usize)];
        self.bytes.extend_from_slice(raw);
        self.lens.push(raw.len());
    }

    fn train(&self, raw_bytes: u64) -> Option<Dictionary> {
        let [least, most] = DICTIONARY_BYTES;
        let bytes = (raw_bytes / DICTIONARY_DIVISOR).clamp(least, most);
        Dictionary::train(&self.bytes, &self.lens, bytes as usize)
    }
}
