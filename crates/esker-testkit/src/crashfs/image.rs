//! The contents of a file as blocks that clones share.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// The unit that a power cut keeps or loses: a page of the page cache.
pub(crate) const BLOCK: u64 = 4096;

type Block = Arc<[u8; BLOCK as usize]>;

/// The content of an allocated block that was never written.
static ZEROS: LazyLock<Block> = LazyLock::new(|| Arc::new([0; BLOCK as usize]));

/// A length and a block for each 4 KiB of it; `None` is a hole without space on the device.
///
/// 1. `blocks.len()` is the length in blocks, rounded up.
/// 2. Bytes of the last block past the length are zeros, so that extending shows zeros.
#[derive(Debug, Clone, Default)]
pub(crate) struct Image {
    blocks: Vec<Option<Block>>,
    len: u64,
    /// How many blocks are not holes.
    held: u64,
}

/// The blocks that `len` bytes from `offset` touch.
fn span(offset: u64, len: u64) -> std::ops::Range<usize> {
    (offset / BLOCK) as usize..(offset + len).div_ceil(BLOCK) as usize
}

impl Image {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Changes the length; what is cut off is gone, what is added is a hole. Blocks that changed
    /// go to `dirty`.
    pub(crate) fn set_len(&mut self, len: u64, dirty: &mut BTreeSet<usize>) {
        let count = len.div_ceil(BLOCK) as usize;
        for gone in count..self.blocks.len() {
            self.held -= u64::from(self.blocks[gone].is_some());
            dirty.insert(gone);
        }
        self.blocks.resize(count, None);
        let kept = (len % BLOCK) as usize;
        if len < self.len
            && kept != 0
            && let Some(block) = &mut self.blocks[count - 1]
        {
            Arc::make_mut(block)[kept..].fill(0);
            dirty.insert(count - 1);
        }
        self.len = len;
    }

    /// Reads, or fails if the file ends before.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = buffer;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % BLOCK) as usize;
            let (part, tail) = rest.split_at_mut(rest.len().min(BLOCK as usize - within));
            match &self.blocks[(at / BLOCK) as usize] {
                Some(block) => part.copy_from_slice(&block[within..within + part.len()]),
                None => part.fill(0),
            }
            at += part.len() as u64;
            rest = tail;
        }
        Ok(())
    }

    /// Writes, growing the file; stops with `StorageFull` when `room` new blocks are used up,
    /// having written what fitted. `copies`: what was written before is copied first, for which a
    /// block must be free; allocated blocks that were never written are not.
    pub(crate) fn write(
        &mut self,
        bytes: &[u8],
        offset: u64,
        mut room: u64,
        copies: bool,
        dirty: &mut BTreeSet<usize>,
    ) -> io::Result<()> {
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % BLOCK) as usize;
            let (part, tail) = rest.split_at(rest.len().min(BLOCK as usize - within));
            let index = (at / BLOCK) as usize;
            match self.blocks.get(index).and_then(Option::as_ref) {
                None if room == 0 => return Err(io::ErrorKind::StorageFull.into()),
                None => room -= 1,
                Some(block) if copies && room == 0 && !Arc::ptr_eq(block, &ZEROS) => {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                Some(_) => {}
            }
            let end = at + part.len() as u64;
            if end > self.len {
                self.set_len(end, dirty);
            }
            self.block_mut(index)[within..within + part.len()].copy_from_slice(part);
            dirty.insert(index);
            at = end;
            rest = tail;
        }
        Ok(())
    }

    fn block_mut(&mut self, index: usize) -> &mut [u8; BLOCK as usize] {
        let slot = &mut self.blocks[index];
        self.held += u64::from(slot.is_none());
        Arc::make_mut(slot.get_or_insert_with(|| Arc::clone(&ZEROS)))
    }

    /// Gives each of the first `len` bytes space, or changes nothing and fails.
    pub(crate) fn allocate(
        &mut self,
        len: u64,
        room: u64,
        dirty: &mut BTreeSet<usize>,
    ) -> io::Result<()> {
        let wanted = span(0, len);
        let missing =
            wanted.clone().filter(|&i| self.blocks.get(i).is_none_or(Option::is_none)).count();
        if missing as u64 > room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if len > self.len {
            self.set_len(len, dirty);
        }
        for index in wanted {
            if self.blocks[index].is_none() {
                self.blocks[index] = Some(Arc::clone(&ZEROS));
                self.held += 1;
                dirty.insert(index);
            }
        }
        Ok(())
    }

    /// Makes holes of the whole blocks in a range and zeros of its ragged ends.
    pub(crate) fn punch(&mut self, offset: u64, len: u64, dirty: &mut BTreeSet<usize>) {
        let end = offset.saturating_add(len).min(self.len);
        if offset >= end {
            return;
        }
        for index in span(offset, end - offset) {
            if self.blocks[index].is_none() {
                continue;
            }
            let start = index as u64 * BLOCK;
            let from = offset.max(start) - start;
            let to = end.min(start + BLOCK) - start;
            // The end of the file counts as the end of its last block.
            if from == 0 && (to == BLOCK || start + to == self.len) {
                self.blocks[index] = None;
                self.held -= 1;
            } else {
                self.block_mut(index)[from as usize..to as usize].fill(0);
            }
            dirty.insert(index);
        }
    }

    /// Whether the first `len` bytes have space of their own.
    pub(crate) fn has_space(&self, len: u64) -> bool {
        len <= self.len && span(0, len).all(|index| self.blocks[index].is_some())
    }

    /// Takes one block over from another image of the file, if this one is long enough to have
    /// it; tells whether all of it was taken.
    pub(crate) fn adopt(&mut self, index: usize, from: &Self) -> bool {
        let Some(slot) = self.blocks.get_mut(index) else { return index >= from.blocks.len() };
        let new = from.blocks.get(index).cloned().flatten();
        self.held = self.held + u64::from(new.is_some()) - u64::from(slot.is_some());
        *slot = new;
        let kept = (self.len % BLOCK) as usize;
        if index + 1 == self.blocks.len() && kept != 0 && from.len > self.len {
            if let Some(block) = &mut self.blocks[index] {
                Arc::make_mut(block)[kept..].fill(0);
            }
            return false;
        }
        true
    }

    /// Takes stretches of one block over from another image of the file.
    pub(crate) fn adopt_pieces(&mut self, index: usize, from: &Self, pieces: &[Range<usize>]) {
        let Some(Some(new)) = from.blocks.get(index) else { return };
        if pieces.is_empty() || index >= self.blocks.len() {
            return;
        }
        // What lies behind the end of the file stays zero (invariant 2).
        let end = (self.len - index as u64 * BLOCK).min(BLOCK) as usize;
        let block = self.block_mut(index);
        for piece in pieces {
            let piece = piece.start.min(end)..piece.end.min(end);
            block[piece.clone()].copy_from_slice(&new[piece]);
        }
    }
}
