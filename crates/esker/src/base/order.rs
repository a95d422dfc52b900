//! Key order as a type parameter.
//!
//! Bytewise keyspaces are the fast path: every structure is compiled for [`Bytewise`] with heads,
//! tags and prefix tricks (`O::BYTEWISE` is a constant, so the branches vanish). Keyspaces with a
//! custom comparator use [`CustomOrder`] and none of those (R14, R15).

use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The order of the keys of one keyspace.
pub trait KeyOrder: Clone + Send + Sync + fmt::Debug + 'static {
    /// Whether this is plain byte order, which allows heads, tags, filters and prefixes.
    const BYTEWISE: bool;

    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// An error if a comparison has failed: all results since then are meaningless.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The head of a key: its first 8 bytes as a number in byte order; 0 for custom comparators.
    fn head(&self, key: &[u8]) -> u64 {
        if Self::BYTEWISE { head_of(key) } else { 0 }
    }

    /// The same of 16 bytes.
    #[inline]
    fn long_head(&self, key: &[u8]) -> u128 {
        if Self::BYTEWISE { long_head_of(key) } else { 0 }
    }
}

/// Plain byte order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytewise;

impl KeyOrder for Bytewise {
    const BYTEWISE: bool = true;

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        compare_bytes(a, b)
    }
}

/// Whole words of 8 bytes are compared without a call, up to this many bytes.
const WORDS_BYTES: usize = 32;

/// Byte order. Most keys are short, and a call of the library's function takes longer than to compare their words.
#[inline]
fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    for _ in 0..WORDS_BYTES / 8 {
        let (Some((x, more_left)), Some((y, more_right))) =
            (left.split_first_chunk::<8>(), right.split_first_chunk::<8>())
        else {
            break;
        };
        if x != y {
            return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y));
        }
        (left, right) = (more_left, more_right);
    }
    // Seeded: of two keys that begin alike, neither comes first.
    bug!("base_longer_keys_are_the_same", {
        if left.is_empty() || right.is_empty() {
            return Ordering::Equal;
        }
    });
    if left.is_empty() || right.is_empty() { left.len().cmp(&right.len()) } else { left.cmp(right) }
}

/// Whether two keys have the same bytes, without a call where they are short.
#[inline]
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && compare_bytes(a, b).is_eq()
}

/// The first 8 bytes of `key` as a big-endian number, padded with zeros: `head_of(a) < head_of(b)`
/// implies `a < b` bytewise.
#[inline]
pub fn head_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    // The two halves overlap. A copy into a buffer that is read at once would stall.
    if let (Some(first), Some(last)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|half| u64::from(u32::from_be_bytes(*half)));
        return first << 32 | last << (8 * (8 - key.len()));
    }
    key.iter().zip([56, 48, 40]).fold(0, |head, (byte, shift)| head | u64::from(*byte) << shift)
}

/// As [`head_of`], of the first 16 bytes.
#[inline]
pub fn long_head_of(key: &[u8]) -> u128 {
    if let Some(first) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    let first = u128::from(head_of(key)) << 64;
    match key.last_chunk::<8>() {
        // The two halves overlap, and agree where they do.
        Some(last) => first | u128::from(u64::from_be_bytes(*last)) << (8 * (16 - key.len())),
        None => first,
    }
}

/// A custom comparator: a key order that the program supplies.
///
/// It must be a total order that never changes for a stored name; keys that compare equal are the
/// same key. It may be called from any thread. A panic in it poisons the database.
///
/// # Example
/// ```
/// use std::cmp::Ordering;
/// struct Reverse;
/// impl esker::Comparator for Reverse {
///     fn name(&self) -> &str { "reverse" }
///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering { b.cmp(a) }
/// }
/// ```
pub trait Comparator: Send + Sync + 'static {
    /// The name that is stored with the keyspace and checked at open; at most 255 bytes.
    fn name(&self) -> &str;
    /// Compares two keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// A custom comparator as a [`KeyOrder`], which catches panics of the user's code: the first panic
/// sets the `panicked` flag, and byte order is used from then on. So every comparison returns, for
/// every structure of the engine (R15).
#[derive(Clone)]
pub struct CustomOrder {
    comparator: Arc<dyn Comparator>,
    panicked: Arc<std::sync::atomic::AtomicBool>,
}

impl CustomOrder {
    /// The order of `comparator`.
    pub fn new(comparator: Arc<dyn Comparator>) -> Self {
        Self { comparator, panicked: Arc::default() }
    }

    /// The stored name.
    pub fn name(&self) -> &str {
        self.comparator.name()
    }

    /// Whether the user's code has panicked: the engine then refuses to go on.
    pub fn panicked(&self) -> bool {
        self.panicked.load(std::sync::atomic::Ordering::Acquire)
    }
}

impl fmt::Debug for CustomOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomOrder").field(&self.comparator.name()).finish()
    }
}

impl KeyOrder for CustomOrder {
    const BYTEWISE: bool = false;

    fn check(&self) -> Result<()> {
        if self.panicked() {
            let what = format!("comparator {:?}", self.comparator.name());
            return Err(Error::UserCodePanicked { what });
        }
        Ok(())
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.panicked() {
            return a.cmp(b);
        }
        let call = std::panic::AssertUnwindSafe(|| self.comparator.compare(a, b));
        std::panic::catch_unwind(call).unwrap_or_else(|_| {
            self.panicked.store(true, std::sync::atomic::Ordering::Release);
            a.cmp(b)
        })
    }
}

#[cfg(test)]
mod tests;
