//! Definitions that all layers share: sequence numbers, kinds of entries, key order, limits, and
//! the checked decoding of bytes that come from a disk. Nothing here does I/O.
//!
//! A sequence number is a position in the log (R1), so it orders writes of all keyspaces, and a
//! reader at `s` sees the entries numbered below `s`. The key order is a type parameter from here
//! up to the iterators, so bytewise code contains no code for custom comparators.

#[macro_use]
pub mod bugs;
mod builtin;
mod clock;
pub mod codec;
mod cursor;
mod filter;
mod key_buf;
mod numbered;
mod operator;
mod order;
pub mod rangedel;
#[cfg(test)]
pub(crate) mod testing;
mod value;

pub use builtin::{Append, CounterI64, CounterU64, Max, builtin};
pub use clock::{Clock, Millis, Moment, SteadyClock, SystemClock};
pub use cursor::{Cursor, LaterValue, SeekStage};
pub use filter::{CompactionFilter, Decision, Filter};
pub use key_buf::KeyBuf;
pub use numbered::{NumberedName, first_free, within_reach};
pub use operator::{Associative, AssociativeOperator, MergeOperator, Operator, OperatorResult};
pub use order::{Bytewise, Comparator, CustomOrder, KeyOrder, head_of, long_head_of, same_bytes};
pub use value::{EXPIRY_BYTES, Operands, expired, join, split};

/// A position in the one endless log (R1), and so the sequence number of the write there.
///
/// Operation `i` of a batch whose record starts at `p` has sequence number `p + i`; a record is
/// longer than its number of operations, so numbers never collide. A reader "at `s`" sees exactly
/// the entries whose sequence number is **less than** `s`.
pub type Seq = u64;

/// A bound above every sequence number: a reader at it sees everything.
/// Sequence numbers fit 56 bits, so that a kind can share their word.
pub const SEQ_MAX: Seq = 1 << 56;

/// The number of a keyspace; never reused (R16).
pub type KeyspaceId = u32;

/// The number of a file in `data/`; never reused, also not after a failed attempt.
pub type FileId = u64;

/// What an entry of a memtable or run says about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The key is absent from here on.
    Delete = 0,
    /// The key has this value from here on.
    Put = 1,
    /// The keyspace's merge operator applies this operand to the older entries.
    Merge = 2,
    /// Like `Put` until the time stored before the value; from then on a delete.
    ExpiringPut = 3,
    /// Like `Merge` until the time stored before the operand; from then on ignored.
    ExpiringMerge = 4,
    /// Like `Put`, in runs only: a reference to the value, which lies in a value segment.
    SeparatedPut = 5,
    /// Like `ExpiringPut`, in runs only: the time, and a reference to the stored form, which lies in a
    /// value segment.
    ExpiringSeparatedPut = 6,
}

impl Kind {
    /// The kind with this number, if there is one.
    #[inline]
    pub fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Delete),
            1 => Some(Self::Put),
            2 => Some(Self::Merge),
            3 => Some(Self::ExpiringPut),
            4 => Some(Self::ExpiringMerge),
            5 => Some(Self::SeparatedPut),
            6 => Some(Self::ExpiringSeparatedPut),
            _ => None,
        }
    }

    /// Whether it is an operand, which means nothing without the older entries.
    #[inline]
    pub fn is_operand(self) -> bool {
        matches!(self, Self::Merge | Self::ExpiringMerge)
    }

    /// Whether an expiry time is stored before the value.
    #[inline]
    pub fn expires(self) -> bool {
        matches!(self, Self::ExpiringPut | Self::ExpiringMerge | Self::ExpiringSeparatedPut)
    }

    /// Whether a reference to the value stands in its place.
    #[inline]
    pub fn is_separated(self) -> bool {
        self as u8 >= Self::SeparatedPut as u8
    }

    /// The kind of a put whose value is separated from its key; `None`: only puts have values that
    /// can be.
    pub fn separated(self) -> Option<Self> {
        match self {
            Self::Put => Some(Self::SeparatedPut),
            Self::ExpiringPut => Some(Self::ExpiringSeparatedPut),
            _ => None,
        }
    }

    /// The kind of the entry once its value stands where the reference was.
    #[inline]
    pub fn joined(self) -> Self {
        match self {
            Self::SeparatedPut => Self::Put,
            Self::ExpiringSeparatedPut => Self::ExpiringPut,
            other => other,
        }
    }

    /// The least number of bytes of a stored value.
    #[inline]
    pub fn value_bytes_min(self) -> usize {
        if self.expires() { EXPIRY_BYTES } else { 0 }
    }
}

/// Limits that hold for every database.
pub mod limits {
    /// Longest key, in bytes (R19).
    pub const KEY_BYTES_MAX: usize = 65_535;
    /// Longest bound of a range of keys: the longest key and a zero byte, which stands for "up to
    /// and including this key".
    pub const BOUND_BYTES_MAX: usize = KEY_BYTES_MAX + 1;
    /// Largest value, in bytes, memory permitting (R19).
    pub const VALUE_BYTES_MAX: u64 = 1 << 30;
    /// Longest name of a keyspace, comparator, merge operator or compaction filter, in bytes.
    pub const NAME_BYTES_MAX: usize = 255;
    /// Most keyspaces in one database.
    pub const KEYSPACES_MAX: usize = 1_000_000;
}
