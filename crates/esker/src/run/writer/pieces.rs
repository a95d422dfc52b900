//! Writing a value that comes in pieces.
//!
//! Nobody has all of the value in memory. Each piece becomes a block of a value segment that belongs to this value
//! alone, so the writer takes memory for two pieces. The reference goes into the data segment behind the others: its
//! blocks wait, as for other separated values.
//!
//! 1. A value of one piece is written like any other.
//! 2. The entry is added when all of the value has been written. If the source fails before, or the value is too
//!    large, the writer goes on as if nothing had come: bytes that nothing refers to stay in the file.

use super::RunWriter;
use super::large::REFERENCE_BYTES;
use super::limits::check_limits;
use crate::base::{KeyOrder, Kind, Seq, limits};
use crate::error::{Error, Result};
use crate::run::reference::ValueRef;
use crate::run::warm::OwnValues;

/// Where a value comes from.
pub trait Source {
    /// Replaces the contents of `piece` by the next bytes, as many as it may have, or as there are left.
    ///
    /// # Errors
    /// What reading them fails with.
    fn next(&mut self, piece: &mut Vec<u8>, bytes: usize) -> Result<()>;

    /// Whether reading has failed.
    fn has_failed(&self) -> bool;
}

impl Source for &[u8] {
    fn next(&mut self, piece: &mut Vec<u8>, bytes: usize) -> Result<()> {
        let (now, later) = self.split_at(bytes.min(self.len()));
        piece.clear();
        piece.extend_from_slice(now);
        *self = later;
        Ok(())
    }

    fn has_failed(&self) -> bool {
        false
    }
}

impl RunWriter {
    /// Adds an entry behind the last one, as [`Self::add`] does. Its stored value comes from `source`, and its key has
    /// no other version in the segment. Returns the bytes of the stored value.
    pub fn add_from<O: KeyOrder>(
        &mut self,
        order: &O,
        key: &[u8],
        (seq, kind): (Seq, Kind),
        source: &mut impl Source,
    ) -> Result<u64> {
        let bytes = self.options.piece_bytes as usize;
        let (mut piece, mut next) = (Vec::new(), Vec::new());
        source.next(&mut piece, bytes)?;
        if piece.len() == bytes {
            source.next(&mut next, bytes)?;
        }
        let separated = kind.separated().filter(|_| !next.is_empty());
        let Some(separated) = separated else {
            self.add(order, key, seq, kind, &piece)?;
            return Ok(piece.len() as u64);
        };
        check_limits(key, &[])?;
        let fresh = self.is_fresh(order, key, seq)?;
        if !fresh {
            return Err(Error::invalid("a value in pieces has an older version beside it"));
        }
        let has_begun = self.open.begun && self.open.blocks > 0 && !self.separation.holds_blocks;
        if has_begun {
            self.cut()?;
        }
        self.end_open_values()?;
        // The blocks of a segment that has begun wait from now on.
        self.separation.holds_blocks = true;
        // What is this large does not go into the cache.
        let (warm, referred) = (self.separation.warm.take(), self.separation.referred);
        let head: Vec<u8> = piece.iter().copied().take(kind.value_bytes_min()).collect();
        let written = self.write_pieces([piece, next], head.len(), source);
        self.separation.warm = warm;
        let (reference, values) = match written {
            Ok(written) => written,
            Err(error) => {
                // Seeded: the next value lies behind what a reader that failed has left.
                if !bug!("run_failed_pieces_stay") {
                    self.separation.open = None;
                }
                self.separation.referred = referred;
                return Err(error);
            }
        };
        self.make_place::<O>(key, REFERENCE_BYTES, fresh)?;
        self.separation.holds_blocks = true;
        self.use_own(values, 1);
        self.put_reference::<O>(key, (seq, separated), (reference, kind, &head), fresh)?;
        Ok(u64::from(reference.len))
    }

    /// Writes a value segment of a value that begins with these pieces, of which none is empty; its first `head`
    /// bytes do not count.
    fn write_pieces(
        &mut self,
        [first, mut piece]: [Vec<u8>; 2],
        head: usize,
        source: &mut impl Source,
    ) -> Result<(ValueRef, OwnValues)> {
        let (bytes, max) = (first.len(), limits::VALUE_BYTES_MAX);
        let mut reference = self.write_value(&first, None)?;
        drop(first);
        let mut len = bytes as u64;
        while !piece.is_empty() {
            len += piece.len() as u64;
            // Seeded: a value that is too long ends where its length has no more bits.
            if len - head as u64 > max && !bug!("run_pieces_without_limit") {
                return Err(Error::ValueTooLarge { len: len - head as u64, max });
            }
            self.count_memory(piece.capacity());
            self.write_value(&piece, None)?;
            self.write_if_full()?;
            if piece.len() < bytes {
                break;
            }
            source.next(&mut piece, bytes)?;
        }
        (reference.len, reference.piece) = (len as u32, bytes as u32);
        let values = self.close_values()?;
        values
            .map(|values| (reference, values))
            .ok_or_else(|| Error::invalid("no value was written"))
    }
}
