//! The checksum of blocks and records in LevelDB's files.

/// A bit pattern added to a checksum before it is stored.
const CRC_MASK: u32 = 0xa282_ead8;

/// The checksum as LevelDB stores it.
pub fn masked_crc(pieces: &[&[u8]]) -> u32 {
    let crc = pieces.iter().fold(0, |crc, piece| crc32c::crc32c_append(crc, piece));
    crc.rotate_right(15).wrapping_add(CRC_MASK)
}
