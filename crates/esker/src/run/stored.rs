//! What is known of how the blocks of a segment are stored, and of how they are read.

use crate::block::Codec;
use crate::trace::Purpose;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// What is known of the temperature of a segment.
#[derive(Debug, Default)]
pub(super) struct Heat {
    /// When somebody who looked found that it had been used, or looked first; 0: nobody did yet.
    pub(super) since: AtomicU64,
    /// Bytes of its blocks that readers have read from the file since then.
    pub(super) read: AtomicU64,
    /// Whether Zstandard would save enough.
    pub(super) worth: OnceLock<bool>,
}

impl Heat {
    /// Counts bytes of blocks that were read from the file.
    pub(super) fn count(&self, purpose: Purpose, bytes: u64) {
        if matches!(purpose, Purpose::Get | Purpose::Scan) {
            self.read.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}
