//! Codecs: how a block becomes the bytes on disk, and back.
//!
//! A block on disk is raw or compressed, and always ends with a trailer: the codec, the raw length and a
//! salted checksum. A new codec is a variant of [`Codec`], with its arms in [`decompress`] and
//! [`Encoder`]; `options/settings.rs` says which data gets which codec.

use super::RAW_BYTES_MAX;
use super::dictionary::{self, Dictionary};
use crate::base::FileId;
use crate::base::codec::{DecodeError, Decoded, Reader, checksum};
use std::fmt;

/// Bytes after the payload of a block on disk: codec, raw length, checksum.
pub const TRAILER_BYTES: usize = 13;

/// How a block is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Not at all.
    #[default]
    Raw = 0,
    /// LZ4, block format.
    Lz4 = 1,
    /// Zstandard, one frame, made with the dictionary of its segment if that has one.
    Zstd = 2,
}

impl Codec {
    /// The codec with this number, if there is one.
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Raw),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The maximal length of a block on disk.
pub fn encoded_max() -> u64 {
    RAW_BYTES_MAX + TRAILER_BYTES as u64
}

/// The largest expansion that a compressed payload may claim. LZ4 cannot exceed 255, and the writer
/// keeps Zstandard below it too, so a small damaged file cannot demand a huge allocation.
pub fn expansion_max(payload: usize) -> u64 {
    payload as u64 * 255 + 64
}

/// A block as it is on disk, after its checksum matched.
#[derive(Debug, Clone, Copy)]
pub struct EncodedBlock<'a> {
    /// How the payload is compressed.
    pub codec: Codec,
    /// The length of the raw block.
    pub raw_len: usize,
    /// The bytes before the trailer.
    pub payload: &'a [u8],
}

impl<'a> EncodedBlock<'a> {
    /// Checks a block on disk that was read at `offset` of `file` against the checksum in the index.
    pub fn check(bytes: &'a [u8], file: FileId, offset: u64, expected: u64) -> Decoded<Self> {
        let body_len = bytes.len().checked_sub(8).ok_or(DecodeError("a block is too short"))?;
        let (body, stored) = bytes.split_at(body_len);
        // Seeded: damaged blocks are read.
        if checksum(file, offset, body) != expected && !bug!("block_checksum_not_checked") {
            return Err(DecodeError("the checksum of a block does not match"));
        }
        if Reader::new(stored).u64()? != expected {
            return Err(DecodeError("a block's own checksum differs from its referrer's"));
        }
        let payload_len =
            body_len.checked_sub(5).ok_or(DecodeError("a block is too short for its trailer"))?;
        let (payload, trailer) = body.split_at(payload_len);
        let mut trailer = Reader::new(trailer);
        let codec = Codec::from_u8(trailer.u8()?)
            .ok_or(DecodeError("the codec of a block is not known"))?;
        let raw_len = u64::from(trailer.u32()?);
        let fits = match codec {
            Codec::Raw => raw_len == payload_len as u64,
            Codec::Lz4 | Codec::Zstd => raw_len <= expansion_max(payload_len),
        };
        if !fits || raw_len > RAW_BYTES_MAX {
            return Err(DecodeError("the raw length of a block is out of bounds"));
        }
        Ok(Self { codec, raw_len: raw_len as usize, payload })
    }

    /// Writes the raw block to `out`, whose length must be `raw_len`; `dictionary`: that of its segment.
    pub fn decode_into(&self, out: &mut [u8], dictionary: Option<&Dictionary>) -> Decoded<()> {
        if self.codec == Codec::Raw {
            if out.len() != self.payload.len() {
                return Err(DecodeError("the raw length of a block does not match"));
            }
            out.copy_from_slice(self.payload);
            return Ok(());
        }
        decompress(self.codec, self.payload, out, dictionary)
    }
}

/// Decompresses `payload`, which must fill `out` exactly.
pub fn decompress(
    codec: Codec,
    payload: &[u8],
    out: &mut [u8],
    dictionary: Option<&Dictionary>,
) -> Decoded<()> {
    let len = out.len();
    let written = match codec {
        Codec::Raw => return Err(DecodeError("a raw block cannot be decompressed")),
        Codec::Lz4 => lz4_flex::block::decompress_into(payload, out).ok(),
        Codec::Zstd => dictionary::decompress(payload, out, dictionary),
    };
    if written != Some(len) {
        return Err(DecodeError("a block cannot be decompressed"));
    }
    Ok(())
}

/// The level of Zstandard for data that is written once.
const LEVEL: i32 = 3;

/// Compresses blocks; keeps its buffers and contexts.
#[derive(Default)]
pub struct Encoder {
    buffer: Vec<u8>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    /// Compresses blocks with this dictionary from now on, or without one, where Zstandard does it.
    pub fn set_dictionary(&mut self, dictionary: Option<&Dictionary>) {
        self.zstd = dictionary.and_then(|dictionary| {
            let made = zstd::bulk::Compressor::with_dictionary(LEVEL, dictionary.bytes());
            let mut made = made.ok()?;
            // Whoever reads a block knows its dictionary, so its frame need not name it.
            made.set_parameter(zstd::zstd_safe::CParameter::DictIdFlag(false)).ok()?;
            Some(made)
        });
    }

    /// Bytes of the buffer that it has.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// Appends `raw` to `out` as a block on disk for `offset` of `file`; returns the codec used and
    /// the checksum. It stays raw unless `codec` saves an eighth.
    pub fn encode(
        &mut self,
        codec: Codec,
        raw: &[u8],
        file: FileId,
        offset: u64,
        out: &mut Vec<u8>,
    ) -> (Codec, u64) {
        let start = out.len();
        let used = self.compress(codec, raw);
        if used == Codec::Raw {
            out.extend_from_slice(raw);
        } else {
            out.extend_from_slice(&self.buffer);
        }
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
        (used, seal(used, raw.len(), file, offset, start, out))
    }

    /// Appends the trailer of the raw block at `start` of `out`; returns the checksum.
    pub fn seal_raw(file: FileId, offset: u64, start: usize, out: &mut Vec<u8>) -> u64 {
        let raw_len = out.len() - start;
        seal(Codec::Raw, raw_len, file, offset, start, out)
    }

    /// The bytes of a raw block as [`Self::encode`] would store it, without the trailer.
    pub fn stored_len(&mut self, codec: Codec, raw: &[u8]) -> usize {
        if self.compress(codec, raw) == Codec::Raw { raw.len() } else { self.buffer.len() }
    }

    /// Compresses into the buffer; returns `codec` if that saves enough.
    fn compress(&mut self, codec: Codec, raw: &[u8]) -> Codec {
        let used = match codec {
            Codec::Raw => return Codec::Raw,
            Codec::Lz4 => self.lz4(raw),
            Codec::Zstd => self.zstd(raw),
        };
        let worth = self.buffer.len() <= raw.len() - raw.len() / 8;
        if worth { used } else { Codec::Raw }
    }

    fn lz4(&mut self, raw: &[u8]) -> Codec {
        self.buffer.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
        match lz4_flex::block::compress_into(raw, &mut self.buffer) {
            Ok(len) => {
                self.buffer.truncate(len);
                Codec::Lz4
            }
            Err(_) => self.incompressible(raw),
        }
    }

    fn zstd(&mut self, raw: &[u8]) -> Codec {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        let Some(compressor) = &mut self.zstd else { return self.lz4(raw) };
        self.buffer.clear();
        self.buffer.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        if compressor.compress_to_buffer(raw, &mut self.buffer).is_err() {
            return self.incompressible(raw);
        }
        if raw.len() as u64 > expansion_max(self.buffer.len()) {
            // More than a reader accepts; LZ4 never reaches this.
            return self.lz4(raw);
        }
        Codec::Zstd
    }

    fn incompressible(&mut self, raw: &[u8]) -> Codec {
        self.buffer.clear();
        self.buffer.extend_from_slice(raw);
        Codec::Raw
    }
}

fn seal(
    codec: Codec,
    raw_len: usize,
    file: FileId,
    offset: u64,
    start: usize,
    out: &mut Vec<u8>,
) -> u64 {
    out.push(codec as u8);
    out.extend_from_slice(&(raw_len as u32).to_le_bytes());
    let sum = checksum(file, offset, &out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
    sum
}
