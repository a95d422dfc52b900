//! How segments are written.

use crate::block::Codec;
use crate::options::settings::Settings;

/// Bytes that are collected before they are written, where the memory budget says nothing.
const COLLECTED_BYTES: u32 = 512 << 10;
/// Filter bits for a key of a base. A key that is absent reads a block for one false answer in 250
/// (`docs/decisions/0038-filters-of-bases-have-12-bits.md`).
const BASE_BITS: u32 = 12;
/// The same where memory is short: filters there take the place of blocks. One false answer in 50.
const SMALL_BASE_BITS: u32 = 8;
/// With a memory budget below this, memory is short.
const SMALL_MEMORY: u64 = 64 << 20;
/// Filter bits for a key of a run over others. There are many such runs over a key and few entries in them, so
/// each bit saves more reads there than in a base (Dayan, Athanassoulis, Idreos: "Monkey", 2017).
const DELTA_BITS: u32 = 14;

/// How segments are written.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// Bytes of blocks after which a segment ends.
    pub segment_bytes: u32,
    /// Bytes of a raw block.
    pub block_bytes: u32,
    /// How blocks are compressed.
    pub codec: Codec,
    /// Filter bits per key; 0 for none.
    pub bits_per_key: u32,
    /// Bytes that are collected before they are written.
    pub collected_bytes: u32,
    /// How separated values are compressed: they stay where they are, whatever becomes of their keys.
    pub values_codec: Codec,
    /// Values with so many bytes are separated from their keys.
    pub separate_from: u32,
    /// Bytes of each piece of a value that comes in pieces.
    pub piece_bytes: u32,
}

impl WriterOptions {
    /// How a database with these settings writes a run; `settled`: it is expected to stay for long.
    pub fn new(settings: &Settings, settled: bool) -> Self {
        // Seeded: filters are short however much memory there is.
        let short = settings.memory < SMALL_MEMORY || bug!("run_filters_of_bases_short");
        Self {
            segment_bytes: settings.segment_bytes,
            block_bytes: settings.block_bytes,
            codec: settings.codec(settled),
            bits_per_key: match settled {
                true if short => SMALL_BASE_BITS,
                true => BASE_BITS,
                false => DELTA_BITS,
            },
            collected_bytes: settings.collected_bytes,
            values_codec: settings.codec(true),
            separate_from: settings.separate_from,
            piece_bytes: settings.value_piece_bytes(),
        }
    }

    /// The same for a run that lies over others if `over` is set, though its blocks are written like those that
    /// stay.
    #[must_use]
    pub fn over_others_if(self, over: bool) -> Self {
        Self { bits_per_key: if over { DELTA_BITS } else { self.bits_per_key }, ..self }
    }
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 20,
            block_bytes: 4 << 10,
            codec: Codec::Raw,
            bits_per_key: 8,
            collected_bytes: COLLECTED_BYTES,
            values_codec: Codec::Raw,
            separate_from: u32::MAX,
            piece_bytes: 256 << 10,
        }
    }
}
