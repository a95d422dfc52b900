//! The layout of a block, and access to single entries.

use crate::base::codec::{DecodeError, Decoded, Reader};
use crate::base::{KeyOrder, Kind, Seq, same_bytes};

/// Bytes before the common prefix.
pub(super) const HEADER_BYTES: usize = 16;

/// Bits of the flags byte.
pub(super) mod flag {
    /// The block has tags and heads (bytewise order).
    pub const TAGGED: u8 = 1;
    /// Only the head holds the first four bytes of a key suffix.
    pub const SPLIT: u8 = 2;
    /// All key remainders have the same length.
    pub const FIXED_KEYS: u8 = 4;
    /// All values have the same length.
    pub const FIXED_VALUES: u8 = 8;
    /// There is a column of sequence numbers and kinds.
    pub const SEQS: u8 = 16;
    /// Offsets have four bytes instead of two.
    pub const WIDE: u8 = 32;
    /// All bits that are known.
    pub const ALL: u8 = 63;
}

/// The checked shape of a block: where each part starts.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub(super) count: u32,
    pub(super) prefix_len: u16,
    pub(super) flags: u8,
    pub(super) heads: u32,
    pub(super) key_ends: u32,
    pub(super) value_ends: u32,
    pub(super) seqs: u32,
    pub(super) keys: u32,
    pub(super) values: u32,
    pub(super) key_width: u32,
    pub(super) value_width: u32,
    end: u32,
}

impl Layout {
    /// Checks a raw block and finds its parts.
    pub fn parse(bytes: &[u8]) -> Decoded<Self> {
        let mut reader = Reader::new(bytes);
        let count = reader.u32()?;
        let prefix_len = reader.u16()?;
        let flags = reader.u8()?;
        let reserved = reader.u8()?;
        let keys_len = reader.u32()?;
        let values_len = reader.u32()?;
        if flags & !flag::ALL != 0 || reserved != 0 {
            return Err(DecodeError("the block has flags that are not known"));
        }
        if count == 0 || count as usize > bytes.len() {
            return Err(DecodeError("the number of entries does not fit the block"));
        }
        let tagged = flags & flag::TAGGED != 0;
        if !tagged && (prefix_len != 0 || flags & flag::SPLIT != 0) {
            return Err(DecodeError("a block without heads has a prefix"));
        }
        let layout =
            Self::place(count, prefix_len, flags, keys_len, values_len, bytes.len() as u64)?;
        layout.check_ends(bytes, layout.key_ends, flag::FIXED_KEYS, keys_len)?;
        layout.check_ends(bytes, layout.value_ends, flag::FIXED_VALUES, values_len)?;
        layout.check_kinds(bytes)?;
        Ok(layout)
    }

    fn place(
        count: u32,
        prefix_len: u16,
        flags: u8,
        keys_len: u32,
        values_len: u32,
        len: u64,
    ) -> Decoded<Self> {
        let n = u64::from(count);
        let has = |bit: u8| flags & bit != 0;
        let offset_bytes = if has(flag::WIDE) { 4 } else { 2 };
        let tags = HEADER_BYTES as u64 + u64::from(prefix_len);
        let heads = tags + if has(flag::TAGGED) { n } else { 0 };
        let key_ends = heads + if has(flag::TAGGED) { 4 * n } else { 0 };
        let value_ends = key_ends + if has(flag::FIXED_KEYS) { 0 } else { offset_bytes * n };
        let seqs = value_ends + if has(flag::FIXED_VALUES) { 0 } else { offset_bytes * n };
        let keys = seqs + if has(flag::SEQS) { 8 * n } else { 0 };
        let values = keys + u64::from(keys_len);
        let end = values + u64::from(values_len);
        if end != len || end > u64::from(u32::MAX) {
            return Err(DecodeError("the parts of the block do not add up to its length"));
        }
        if has(flag::FIXED_KEYS) && !keys_len.is_multiple_of(count)
            || has(flag::FIXED_VALUES) && !values_len.is_multiple_of(count)
        {
            return Err(DecodeError("lengths of fixed width do not divide evenly"));
        }
        // The sum above is below 2^32, so every offset is too.
        Ok(Self {
            count,
            prefix_len,
            flags,
            heads: heads as u32,
            key_ends: key_ends as u32,
            value_ends: value_ends as u32,
            seqs: seqs as u32,
            keys: keys as u32,
            values: values as u32,
            key_width: keys_len / count,
            value_width: values_len / count,
            end: end as u32,
        })
    }

    fn check_ends(&self, bytes: &[u8], start: u32, fixed: u8, len: u32) -> Decoded<()> {
        if self.has(fixed) {
            return Ok(());
        }
        let (start, n) = (start as usize, self.count as usize);
        let mut last = 0;
        let mut ordered = true;
        if self.has(flag::WIDE) {
            for end in bytes[start..start + 4 * n].chunks_exact(4) {
                let end = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
                ordered &= last <= end;
                last = end;
            }
        } else {
            for end in bytes[start..start + 2 * n].chunks_exact(2) {
                let end = u32::from(u16::from_le_bytes([end[0], end[1]]));
                ordered &= last <= end;
                last = end;
            }
        }
        if !ordered || last != len {
            return Err(DecodeError("the offsets of a block are not in order"));
        }
        Ok(())
    }

    fn check_kinds(&self, bytes: &[u8]) -> Decoded<()> {
        if !self.has(flag::SEQS) {
            return Ok(());
        }
        let start = self.seqs as usize;
        let column = &bytes[start..start + 8 * self.count as usize];
        // The kind is the low byte of a little-endian word. For deletes and puts the value need not
        // be checked.
        if column.chunks_exact(8).all(|word| word[0] <= Kind::Put as u8) {
            return Ok(());
        }
        let block = Block::new(bytes, self);
        for (i, word) in column.chunks_exact(8).enumerate() {
            let kind =
                Kind::from_u8(word[0]).ok_or(DecodeError("the kind of an entry is not known"))?;
            if block.value(i).len() < kind.value_bytes_min() {
                return Err(DecodeError("an entry that expires does not say when"));
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn has(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }

    /// How many entries the block has; at least one.
    #[inline]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether the block has tags and heads, as blocks in byte order do.
    #[inline]
    pub fn tagged(&self) -> bool {
        self.has(flag::TAGGED)
    }

    /// Length of the raw block in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.end as usize
    }

    /// Always false: a block has at least one entry.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// A checked block: its bytes and its layout.
///
/// Methods that take an entry number panic if it is not below `count()`.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) layout: &'a Layout,
}

impl<'a> Block<'a> {
    /// Joins bytes with the layout that [`Layout::parse`] found for them.
    #[inline]
    pub fn new(bytes: &'a [u8], layout: &'a Layout) -> Self {
        Self { bytes, layout }
    }

    /// Where the parts stand.
    #[inline]
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// How many entries there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.layout.count()
    }

    /// The bytes that all keys begin with.
    #[inline]
    pub fn prefix(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + usize::from(self.layout.prefix_len)]
    }

    #[inline]
    pub(super) fn tags_start(&self) -> usize {
        HEADER_BYTES + usize::from(self.layout.prefix_len)
    }

    /// The tag of an entry of a tagged block.
    pub fn tag(&self, i: usize) -> u8 {
        self.bytes[self.tags_start() + i]
    }

    #[inline]
    pub(super) fn head_bytes(&self, i: usize) -> [u8; 4] {
        let at = self.layout.heads as usize + 4 * i;
        let slice = &self.bytes[at..at + 4];
        [slice[0], slice[1], slice[2], slice[3]]
    }

    #[inline]
    fn end_at(&self, ends: u32, i: usize) -> usize {
        if self.layout.has(flag::WIDE) {
            let at = ends as usize + 4 * i;
            let slice = &self.bytes[at..at + 4];
            u32::from_le_bytes([slice[0], slice[1], slice[2], slice[3]]) as usize
        } else {
            let at = ends as usize + 2 * i;
            let slice = &self.bytes[at..at + 2];
            usize::from(u16::from_le_bytes([slice[0], slice[1]]))
        }
    }

    #[inline]
    fn range_in(&self, fixed: u8, width: u32, ends: u32, base: u32, i: usize) -> (usize, usize) {
        let base = base as usize;
        if self.layout.has(fixed) {
            let width = width as usize;
            return (base + width * i, base + width * i + width);
        }
        let start = if i == 0 { 0 } else { self.end_at(ends, i - 1) };
        (base + start, base + self.end_at(ends, i))
    }

    /// The part of the key of entry `i` behind the prefix (and, in split blocks, behind the head).
    #[inline]
    pub(super) fn rest(&self, i: usize) -> &'a [u8] {
        let l = self.layout;
        let (start, end) = self.range_in(flag::FIXED_KEYS, l.key_width, l.key_ends, l.keys, i);
        &self.bytes[start..end]
    }

    /// The range of the value of entry `i` in the block's bytes.
    #[inline]
    pub fn value_range(&self, i: usize) -> (usize, usize) {
        let l = self.layout;
        self.range_in(flag::FIXED_VALUES, l.value_width, l.value_ends, l.values, i)
    }

    /// The value of entry `i`.
    #[inline]
    pub fn value(&self, i: usize) -> &'a [u8] {
        let (start, end) = self.value_range(i);
        &self.bytes[start..end]
    }

    /// The sequence number and kind of entry `i`.
    #[inline]
    pub fn version(&self, i: usize) -> (Seq, Kind) {
        if !self.layout.has(flag::SEQS) {
            return (0, Kind::Put);
        }
        let at = self.layout.seqs as usize + 8 * i;
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        let word = u64::from_le_bytes(word);
        // Every kind in a parsed block is known.
        (word >> 8, Kind::from_u8(word as u8).unwrap_or(Kind::Put))
    }

    /// Whether it is certain that entry `i` is the newest of its key in this block.
    #[inline]
    pub fn is_newest<O: KeyOrder>(&self, i: usize) -> bool {
        if i == 0 || !self.layout.has(flag::SEQS) {
            // Entries of one key differ in their sequence numbers, and here all have none.
            return true;
        }
        if !O::BYTEWISE {
            // Keys that differ may be the same to the program.
            return self.version(i - 1).0 == self.version(i).0;
        }
        self.layout.has(flag::SPLIT) && self.head_bytes(i - 1) != self.head_bytes(i)
            || !same_bytes(self.rest(i - 1), self.rest(i))
    }

    /// Replaces the contents of `key` by the key of entry `i`.
    #[inline]
    pub fn key_into(&self, i: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        if self.layout.has(flag::SPLIT) {
            key.extend_from_slice(&self.head_bytes(i));
        }
        key.extend_from_slice(self.rest(i));
    }

    /// Replaces what follows the prefix in `key`, which holds the key of another entry of this
    /// same block.
    #[inline]
    pub fn next_key_into(&self, i: usize, key: &mut Vec<u8>) {
        let rest = self.rest(i);
        let prefix = usize::from(self.layout.prefix_len);
        if self.layout.has(flag::SPLIT) {
            if key.len() == prefix + 4 + rest.len() {
                // Keys of one length, the usual case: no change of length, two plain copies.
                let suffix = &mut key[prefix..];
                suffix[..4].copy_from_slice(&self.head_bytes(i));
                copy_short(&mut suffix[4..], rest);
                return;
            }
            key.truncate(prefix);
            key.extend_from_slice(&self.head_bytes(i));
        } else {
            key.truncate(prefix);
        }
        key.extend_from_slice(rest);
    }
}

/// Copies equal lengths, the first 16 bytes without a call.
#[inline]
fn copy_short(to: &mut [u8], from: &[u8]) {
    if to.len() == from.len() && to.len() <= 16 {
        if let (Some(t), Some(f)) = (to.first_chunk_mut::<8>(), from.first_chunk::<8>()) {
            let (tail_from, at) = (from.last_chunk::<8>().copied(), to_tail(from.len()));
            *t = *f;
            if let (Some(tail), Some(slot)) = (tail_from, to[at..].first_chunk_mut::<8>()) {
                *slot = tail;
            }
            return;
        }
        for (t, f) in to.iter_mut().zip(from) {
            *t = *f;
        }
        return;
    }
    to.copy_from_slice(from);
}

#[inline]
fn to_tail(len: usize) -> usize {
    len.saturating_sub(8)
}
