//! Appending a block to what a writer has collected.

use crate::base::FileId;
use crate::block::{Builder, Codec, Encoder};
use crate::run::warm::Warm;

/// A raw block that a large value has made longer than this is not kept.
const RAW_BYTES_KEPT: usize = 64 << 10;

/// Where a block goes, and how it is stored.
pub(super) struct Appending<'w> {
    pub file: FileId,
    /// Where the block begins in the file.
    pub offset: u64,
    pub codec: Codec,
    /// What was collected: the block goes behind it.
    pub buffer: &'w mut Vec<u8>,
    pub encoder: &'w mut Encoder,
    /// Keeps the block for the cache.
    pub warm: Option<&'w mut Warm>,
}

/// A block that was appended.
pub(super) struct Stored {
    pub len: u32,
    pub codec: Codec,
    pub checksum: u64,
}

impl Appending<'_> {
    /// Appends what was collected in a builder; `raw` is a buffer.
    pub fn block(self, block: &Builder, raw: &mut Vec<u8>) -> Stored {
        if self.codec != Codec::Raw {
            raw.clear();
            block.finish(raw);
            let stored = self.raw(raw);
            if raw.capacity() > RAW_BYTES_KEPT {
                *raw = Vec::new();
            }
            return stored;
        }
        let start = self.buffer.len();
        block.finish(self.buffer);
        if let Some(warm) = self.warm {
            warm.keep(&self.buffer[start..]);
        }
        let checksum = Encoder::seal_raw(self.file, self.offset, start, self.buffer);
        Stored { len: (self.buffer.len() - start) as u32, codec: Codec::Raw, checksum }
    }

    /// Appends a raw block.
    pub fn raw(self, raw: &[u8]) -> Stored {
        let start = self.buffer.len();
        if let Some(warm) = self.warm {
            warm.keep(raw);
        }
        let (codec, checksum) =
            self.encoder.encode(self.codec, raw, self.file, self.offset, self.buffer);
        Stored { len: (self.buffer.len() - start) as u32, codec, checksum }
    }
}
