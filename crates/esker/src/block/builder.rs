//! Collecting entries and laying them out as a block.

use super::layout::{HEADER_BYTES, flag};
use super::search::short_head;
use crate::base::{Kind, Seq};

/// Buffers larger than this are freed after a block of one large entry.
const KEPT_BYTES: usize = 1 << 20;

/// Collects sorted entries and writes them as one block. Buffers are reused from block to block.
#[derive(Debug, Default)]
pub struct Builder {
    tagged: bool,
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    values: Vec<u8>,
    value_ends: Vec<u32>,
    tags: Vec<u8>,
    versions: Vec<u64>,
    key_len_min: usize,
    key_len_max: usize,
    value_len_min: usize,
    value_len_max: usize,
    /// Some entry is not a `Put` with sequence number 0.
    versioned: bool,
}

impl Builder {
    /// Starts a new block; `tagged` for byte order (R15).
    pub fn reset(&mut self, tagged: bool) {
        self.tagged = tagged;
        for buffer in [&mut self.keys, &mut self.values] {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
            buffer.clear();
        }
        self.key_ends.clear();
        self.value_ends.clear();
        self.tags.clear();
        self.versions.clear();
        (self.key_len_min, self.key_len_max) = (usize::MAX, 0);
        (self.value_len_min, self.value_len_max) = (usize::MAX, 0);
        self.versioned = false;
    }

    /// Bytes of memory that it has.
    pub fn memory(&self) -> usize {
        let bytes = self.keys.capacity() + self.values.capacity() + self.tags.capacity();
        let ends = self.key_ends.capacity() + self.value_ends.capacity();
        bytes + ends * size_of::<u32>() + self.versions.capacity() * size_of::<u64>()
    }

    /// How many entries were added.
    pub fn count(&self) -> usize {
        self.key_ends.len()
    }

    /// Whether no entry was added.
    pub fn is_empty(&self) -> bool {
        self.key_ends.is_empty()
    }

    /// About the length of the block if it ended after one more entry with this many bytes of key
    /// and value. Prefixes and fixed widths, known only at the end, make it smaller.
    #[inline]
    pub fn estimate_with(&self, bytes: usize) -> usize {
        let n = self.count() + 1;
        let columns = if self.versioned { 15 } else { 7 };
        HEADER_BYTES + self.keys.len() + self.values.len() + bytes + n * columns
    }

    /// Adds an entry behind the last one.
    #[inline]
    pub fn add(&mut self, key: &[u8], tag: u8, seq: Seq, kind: Kind, value: &[u8]) {
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len() as u32);
        self.values.extend_from_slice(value);
        self.value_ends.push(self.values.len() as u32);
        self.tags.push(tag);
        self.versions.push(seq << 8 | kind as u64);
        self.versioned |= seq != 0 || kind != Kind::Put;
        self.key_len_min = self.key_len_min.min(key.len());
        self.key_len_max = self.key_len_max.max(key.len());
        self.value_len_min = self.value_len_min.min(value.len());
        self.value_len_max = self.value_len_max.max(value.len());
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] as usize };
        &self.keys[start..self.key_ends[i] as usize]
    }

    /// Appends the block to `out`. There must be an entry.
    pub fn finish(&self, out: &mut Vec<u8>) {
        let n = self.count();
        let mut flags = 0;
        let mut prefix_len = 0;
        if self.tagged {
            flags |= flag::TAGGED;
            // The keys are sorted, so all share the common prefix of the first and the last. If the
            // prefix leaves at least four bytes of every key, only the heads hold these bytes.
            prefix_len = common_prefix(self.key(0), self.key(n - 1));
            if self.key_len_min >= 4 {
                flags |= flag::SPLIT;
                prefix_len = prefix_len.min(self.key_len_min - 4);
            }
        }
        let cut = prefix_len + if flags & flag::SPLIT != 0 { 4 } else { 0 };
        let keys_len = self.keys.len() - n * cut;
        if self.key_len_min == self.key_len_max {
            flags |= flag::FIXED_KEYS;
        }
        if self.value_len_min == self.value_len_max {
            flags |= flag::FIXED_VALUES;
        }
        if self.versioned {
            flags |= flag::SEQS;
        }
        if keys_len > 0xffff || self.values.len() > 0xffff {
            flags |= flag::WIDE;
        }
        out.reserve(HEADER_BYTES + prefix_len + n * 21 + keys_len + self.values.len());
        out.extend_from_slice(&(n as u32).to_le_bytes());
        out.extend_from_slice(&(prefix_len as u16).to_le_bytes());
        out.extend_from_slice(&[flags, 0]);
        out.extend_from_slice(&(keys_len as u32).to_le_bytes());
        out.extend_from_slice(&(self.values.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.key(0)[..prefix_len]);
        self.put_columns(out, flags, prefix_len, cut);
        for i in 0..n {
            out.extend_from_slice(&self.key(i)[cut..]);
        }
        out.extend_from_slice(&self.values);
    }

    fn put_columns(&self, out: &mut Vec<u8>, flags: u8, prefix_len: usize, cut: usize) {
        let n = self.count();
        if self.tagged {
            out.extend_from_slice(&self.tags);
            for i in 0..n {
                out.extend_from_slice(&short_head(&self.key(i)[prefix_len..]).to_be_bytes());
            }
        }
        let wide = flags & flag::WIDE != 0;
        if flags & flag::FIXED_KEYS == 0 {
            let shortened = self.key_ends.iter().enumerate().map(|(i, end)| {
                // The ends of the remainders, each of which is `cut` bytes shorter than its key.
                end - ((i + 1) * cut) as u32
            });
            put_ends(out, wide, shortened);
        }
        if flags & flag::FIXED_VALUES == 0 {
            put_ends(out, wide, self.value_ends.iter().copied());
        }
        if flags & flag::SEQS != 0 {
            for version in &self.versions {
                out.extend_from_slice(&version.to_le_bytes());
            }
        }
    }
}

/// What stands before the value in a block of one entry: a put with an empty key and a value of so many bytes.
pub fn single(len: u32) -> [u8; HEADER_BYTES] {
    let wide = if len > 0xffff { flag::WIDE } else { 0 };
    let mut header = [0; HEADER_BYTES];
    header[0] = 1;
    header[6] = flag::FIXED_KEYS | flag::FIXED_VALUES | wide;
    header[12..].copy_from_slice(&len.to_le_bytes());
    header
}

fn put_ends(out: &mut Vec<u8>, wide: bool, ends: impl Iterator<Item = u32>) {
    for end in ends {
        if wide {
            out.extend_from_slice(&end.to_le_bytes());
        } else {
            out.extend_from_slice(&(end as u16).to_le_bytes());
        }
    }
}

/// How many bytes two keys share at their start.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
