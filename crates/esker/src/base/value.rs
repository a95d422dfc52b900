//! The stored form of values, and operands that wait to be applied.
//!
//! Every write expires on its own: an expired put counts as a delete, an expired operand counts as
//! not written. So the value of a key depends only on its entries and the time, not on the
//! compactions in between.

use crate::base::{Kind, Millis, Operator, Seq};
use crate::error::Result;

/// Bytes before a value that expires: the time, in milliseconds since 1970, little-endian.
pub const EXPIRY_BYTES: usize = 8;

/// Splits a stored value into its expiry, if it has one, and the value.
#[inline]
pub fn split(kind: Kind, stored: &[u8]) -> (Option<Millis>, &[u8]) {
    if !kind.expires() {
        return (None, stored);
    }
    // The time is always there: blocks and log records without it are refused.
    match stored.split_first_chunk::<EXPIRY_BYTES>() {
        Some((expiry, value)) => (Some(Millis::from_le_bytes(*expiry)), value),
        None => (Some(0), &[]),
    }
}

/// Appends the stored form of a value that expires.
pub fn join(expiry: Millis, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&expiry.to_le_bytes());
    out.extend_from_slice(value);
}

/// Whether an entry that expires at `expiry` has expired at `time`.
#[inline]
pub fn expired(expiry: Option<Millis>, time: Millis) -> bool {
    expiry.is_some_and(|expiry| expiry <= time)
}

/// Operands of one key, collected from new to old.
#[derive(Debug, Default)]
pub struct Operands {
    bytes: Vec<u8>,
    /// Sequence number, expiry, and where the operand ends in `bytes`.
    list: Vec<(Seq, Option<Millis>, usize)>,
}

impl Operands {
    /// Removes all operands and keeps the memory unless it is large.
    pub fn clear(&mut self) {
        const KEPT_BYTES: usize = 1 << 20;
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.list.clear();
    }

    /// Adds an older operand in its stored form.
    pub fn push(&mut self, seq: Seq, kind: Kind, stored: &[u8]) {
        let (expiry, operand) = split(kind, stored);
        self.bytes.extend_from_slice(operand);
        self.list.push((seq, expiry, self.bytes.len()));
    }

    /// The number of operands.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no operands.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Sequence number, expiry and bytes of the operand with this index; 0 is the newest.
    pub fn get(&self, index: usize) -> (Seq, Option<Millis>, &[u8]) {
        let (seq, expiry, end) = self.list[index];
        let start = if index == 0 { 0 } else { self.list[index - 1].2 };
        (seq, expiry, &self.bytes[start..end])
    }

    /// Removes the operands that have expired at `time`, and returns how many.
    pub fn drop_expired(&mut self, time: Millis) -> usize {
        if !self.list.iter().any(|(_, expiry, _)| expired(*expiry, time)) {
            return 0;
        }
        let mut kept = Self::default();
        for index in 0..self.len() {
            let (seq, expiry, operand) = self.get(index);
            if !expired(expiry, time) {
                kept.bytes.extend_from_slice(operand);
                kept.list.push((seq, expiry, kept.bytes.len()));
            }
        }
        let gone = self.len() - kept.len();
        *self = kept;
        gone
    }

    /// The value for a reader at `time`: the operands that have not expired, applied to `base`.
    pub fn read(
        &self,
        operator: &Operator,
        key: &[u8],
        base: Option<&[u8]>,
        time: Millis,
    ) -> Result<Option<Vec<u8>>> {
        let alive: Vec<&[u8]> = (0..self.len())
            .rev()
            .map(|index| self.get(index))
            .filter(|(_, expiry, _)| !expired(*expiry, time))
            .map(|(_, _, operand)| operand)
            .collect();
        if alive.is_empty() {
            return Ok(base.map(<[u8]>::to_vec));
        }
        operator.full_merge(key, base, &alive)
    }
}

#[cfg(test)]
mod tests;
