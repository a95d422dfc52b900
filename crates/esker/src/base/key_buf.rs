//! Keys of which most need no memory of their own.

use std::fmt;
use std::ops::Deref;

/// Keys up to this length stand in the object itself: a bound of 64 bytes, and the zero byte with which the first key after
/// it ends.
const INLINE: usize = 65;

/// A key that an iterator keeps. Most are short: these are copied without an allocation.
#[derive(Clone)]
pub struct KeyBuf(Kept);

#[derive(Clone)]
enum Kept {
    Inline { len: u8, bytes: [u8; INLINE] },
    Long(Box<[u8]>),
}

impl KeyBuf {
    /// The first key after `key` in byte order.
    pub fn behind(key: &[u8]) -> Self {
        if key.len() >= INLINE {
            return Self(Kept::Long([key, &[0]].concat().into()));
        }
        Self::inline(key, key.len() + 1)
    }

    /// A key of `len` bytes, at most [`INLINE`]: these, and zeroes behind them.
    fn inline(key: &[u8], len: usize) -> Self {
        let mut bytes = [0; INLINE];
        bytes[..key.len()].copy_from_slice(key);
        Self(Kept::Inline { len: len as u8, bytes })
    }

    /// The bytes in a vector of their own.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Kept::Inline { len, bytes } => bytes[..usize::from(len)].to_vec(),
            Kept::Long(bytes) => bytes.into(),
        }
    }
}

impl From<&[u8]> for KeyBuf {
    fn from(key: &[u8]) -> Self {
        if key.len() > INLINE {
            return Self(Kept::Long(key.into()));
        }
        Self::inline(key, key.len())
    }
}

impl From<Vec<u8>> for KeyBuf {
    fn from(key: Vec<u8>) -> Self {
        if key.len() > INLINE { Self(Kept::Long(key.into())) } else { Self::from(&key[..]) }
    }
}

impl Deref for KeyBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kept::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Kept::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for KeyBuf {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for KeyBuf {}

impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests;
