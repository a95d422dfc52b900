//! The bytes of the binary form's header and frame heads.

use super::{Header, VERSION};
use esker::internals::base::codec;

pub const MAGIC: &[u8; 8] = b"ESKRDUMP";
/// Bytes of the header, with its checksum.
pub const HEADER_BYTES: usize = 72;
/// Bytes of the head of a frame without its checksum.
pub const HEAD_BYTES: usize = 12;

pub const KIND_KEYSPACE: u8 = 1;
pub const KIND_ENTRIES: u8 = 2;
pub const KIND_END: u8 = 3;

pub const CODEC_NONE: u8 = 0;
pub const CODEC_ZSTD: u8 = 1;

/// The header without its checksum.
pub fn encode_header(header: &Header) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header.dump);
    out.extend_from_slice(&header.database);
    out.extend_from_slice(&header.position.to_le_bytes());
    out.extend_from_slice(&header.selection.to_le_bytes());
    out
}

/// Reads the fields behind the version.
pub fn decode_header(fields: &[u8]) -> codec::Decoded<Header> {
    let mut reader = codec::Reader::new(fields);
    if reader.u32()? != 0 {
        return Err(codec::DecodeError("reserved bytes are not zero"));
    }
    let mut header = Header::default();
    header.dump.copy_from_slice(reader.take(16)?);
    header.database.copy_from_slice(reader.take(16)?);
    header.position = reader.u64()?;
    header.selection = reader.u64()?;
    Ok(header)
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub kind: u8,
    pub codec: u8,
    pub raw: u32,
    pub stored: u32,
}

impl Head {
    pub fn encode(self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        (out[0], out[1]) = (self.kind, self.codec);
        out[4..8].copy_from_slice(&self.raw.to_le_bytes());
        out[8..].copy_from_slice(&self.stored.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> codec::Decoded<Self> {
        let mut reader = codec::Reader::new(bytes);
        let (kind, codec, reserved) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let head = Self { kind, codec, raw: reader.u32()?, stored: reader.u32()? };
        if reserved != 0 || head.raw as usize > super::BODY_BYTES_MAX || head.stored > head.raw {
            return Err(codec::DecodeError("the head of a frame makes no sense"));
        }
        Ok(head)
    }
}
