//! Keys as LevelDB stores them: the user's part, and behind it the sequence number and the kind.

use esker::Comparator;
use std::cmp::Ordering;
use std::sync::Arc;

/// LevelDB's part of a key.
pub const TAG_BYTES: usize = 8;

/// The order of the keys.
#[derive(Clone)]
pub enum Order {
    Bytewise,
    Custom(Arc<dyn Comparator>),
}

impl Order {
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytewise => a.cmp(b),
            Self::Custom(order) => order.compare(a, b),
        }
    }
}

/// A key of LevelDB behind the user's part: sequence number and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(pub u64);

impl Tag {
    pub const DELETION: u8 = 0;
    pub const VALUE: u8 = 1;

    pub fn new(sequence: u64, kind: u8) -> Self {
        Self(sequence << 8 | u64::from(kind))
    }

    pub fn sequence(self) -> u64 {
        self.0 >> 8
    }

    pub fn kind(self) -> u8 {
        self.0 as u8
    }
}

/// A stored key as the user's part and LevelDB's. It has at least the latter: the reader of the
/// file checks that.
#[inline]
pub fn split(key: &[u8]) -> (&[u8], Tag) {
    let (user, word) = key.split_at(key.len() - TAG_BYTES);
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(word);
    (user, Tag(u64::from_le_bytes(tag)))
}
