//! What is known of how the blocks of a segment are stored.

use super::temperature::Heat;
use crate::block::Codec;
use std::sync::OnceLock;

/// Bytes of stored blocks, by how they are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredBytes {
    /// Not compressed.
    pub raw: u64,
    /// LZ4.
    pub lz4: u64,
    /// Zstandard.
    pub zstd: u64,
}

impl StoredBytes {
    /// Adds a block.
    pub(super) fn add(&mut self, codec: Codec, len: u32) {
        let bytes = match codec {
            Codec::Raw => &mut self.raw,
            Codec::Lz4 => &mut self.lz4,
            Codec::Zstd => &mut self.zstd,
        };
        *bytes += u64::from(len);
    }

    /// Whether no block is compressed.
    pub(super) fn is_raw(self) -> bool {
        self.lz4 + self.zstd == 0
    }
}

/// What is known of how a segment is stored.
#[derive(Debug, Default)]
pub(super) struct Storage {
    /// The sums over its blocks.
    pub(super) bytes: OnceLock<StoredBytes>,
    /// Whether it is raw and would shrink.
    pub(super) shrinks: OnceLock<bool>,
    /// Its temperature.
    pub(super) heat: Heat,
}
