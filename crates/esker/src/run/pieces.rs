//! Values in pieces: reading a part of one, or all of it.
//!
//! Each block of the value segment is a piece, with a checksum of its own. A reader holds one piece at a time, past
//! the cache: a value of a gigabyte takes no more memory than a piece, and evicts nothing. What has to have all
//! of it (a plain get, an iterator, a merge operator, a compaction filter) gets it in one block that is in no cache.

use super::index::{Index, SharedIndex};
use super::reference::ValueRef;
use super::segment::Segment;
use crate::block::{Layout, single};
use crate::cache::{BlockCache, FramePin};
use crate::error::Result;
use crate::trace::Purpose;
use std::sync::Arc;

impl Segment {
    /// Checks that this value segment is the value in pieces that a reference names.
    fn check_pieces(&self, reference: ValueRef, index: &Index) -> Result<()> {
        let pieces = u64::from(reference.len).div_ceil(u64::from(reference.piece.max(1)));
        let meta = self.meta();
        let same = meta.entries == pieces
            && index.places.len() as u64 == pieces
            && meta.raw_bytes == u64::from(reference.len);
        // Seeded: pieces of another value are taken for those that a key refers to.
        if same || bug!("run_pieces_not_counted") {
            return Ok(());
        }
        Err(self.misfit("a value segment has not the pieces that its reference says"))
    }

    /// Reads a piece, past the cache; returns its block and where its bytes are.
    fn read_piece(
        &self,
        reference: ValueRef,
        (index, piece): (&Index, usize),
        purpose: Purpose,
    ) -> Result<(FramePin, (usize, usize))> {
        let pin = self.read_block(index, piece, purpose)?.detached();
        let range = pin.block().value_range(0);
        let begin = piece as u64 * u64::from(reference.piece);
        let len = u64::from(reference.len).saturating_sub(begin).min(u64::from(reference.piece));
        if pin.block().count() != 1 || (range.1 - range.0) as u64 != len {
            return Err(self.misfit("a piece of a value has not the length that its key says"));
        }
        Ok((pin, range))
    }

    /// A block of the whole value, in no cache.
    pub(super) fn join_pieces(
        &self,
        reference: ValueRef,
        index: &Index,
        purpose: Purpose,
    ) -> Result<FramePin> {
        self.check_pieces(reference, index)?;
        let header = single(reference.len);
        let len = header.len() + reference.len as usize;
        let mut frame = index.slots.cache().frame(len);
        let bytes = frame.bytes_mut();
        bytes[..header.len()].copy_from_slice(&header);
        let mut at = header.len();
        for piece in 0..index.places.len() {
            let (pin, range) = self.read_piece(reference, (index, piece), purpose)?;
            let end = at + range.1 - range.0;
            bytes[at..end].copy_from_slice(&pin.bytes()[range.0..range.1]);
            at = end;
        }
        let layout = Layout::parse(&bytes[..len]).map_err(|error| self.misfit(error.0))?;
        frame.set_layout(layout);
        Ok(frame.detached())
    }
}

/// A value in pieces that stays readable, whatever becomes of its key.
#[derive(Debug, Clone)]
pub struct Pieces {
    pub(super) values: Arc<Segment>,
    pub(super) reference: ValueRef,
    pub(super) cache: Arc<BlockCache>,
    /// Bytes before the value: those of its expiry.
    pub(super) head: u32,
}

impl Pieces {
    /// Bytes of the value.
    pub fn value_len(&self) -> u64 {
        u64::from(self.reference.len - self.head)
    }

    /// Begins to read it.
    pub fn reader(self) -> Result<PiecesReader> {
        let index = self.values.index_once(&self.cache, Purpose::Get)?;
        self.values.check_pieces(self.reference, &index)?;
        Ok(PiecesReader { pieces: self, index, held: None })
    }
}

/// Reads a value in pieces.
#[derive(Debug)]
pub struct PiecesReader {
    pieces: Pieces,
    index: SharedIndex,
    /// The piece that was read last: its number, its block, and where its bytes are in it.
    held: Option<(usize, FramePin, (usize, usize))>,
}

impl PiecesReader {
    /// Bytes of the value.
    pub fn value_len(&self) -> u64 {
        self.pieces.value_len()
    }

    /// The bytes of the value from `at` on as far as one piece has them; none at its end.
    pub fn bytes_at(&mut self, at: u64) -> Result<&[u8]> {
        let Pieces { values, reference, head, .. } = &self.pieces;
        if at >= self.pieces.value_len() {
            return Ok(&[]);
        }
        // Seeded: a reader of a value that expires begins with its time.
        let head = if bug!("run_pieces_begin_with_the_time") { 0 } else { u64::from(*head) };
        let at = at + head;
        let piece = (at / u64::from(reference.piece)) as usize;
        let mut skip = (at % u64::from(reference.piece)) as usize;
        // Seeded: a reader that begins within a piece begins at the start of it.
        bug!("run_pieces_read_from_their_start", skip = 0);
        if self.held.as_ref().is_none_or(|held| held.0 != piece) {
            let (pin, range) = values.read_piece(*reference, (&self.index, piece), Purpose::Get)?;
            self.held = Some((piece, pin, range));
        }
        Ok(self
            .held
            .as_ref()
            .map_or(&[], |(_, pin, (start, end))| &pin.bytes()[start + skip..*end]))
    }
}
