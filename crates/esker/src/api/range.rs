//! Ranges of keys, as callers give them and as the engine takes them.
//!
//! A caller gives any `RangeBounds`. Deletes and iterators take half-open ranges: a first key, and
//! the first key after the range.

use crate::base::{Bytewise, KeyBuf, KeyOrder};
use crate::catalog::Order;
use crate::catalog::check_key;
use crate::iter::Bounds;
use crate::{Error, Result};
use std::ops::{Bound, RangeBounds};

/// A key and a value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// A range as it is stored: its first key, and the first key after it.
pub(super) type HalfOpen = (Option<KeyBuf>, Option<KeyBuf>);

/// The range as its first key and the first key after it. In byte order the next key after `k` is
/// `k` with a zero byte; under a custom comparator no such key is known.
pub(super) fn half_open<K: AsRef<[u8]>>(
    order: &Order,
    range: &impl RangeBounds<K>,
) -> Result<HalfOpen> {
    let bytewise = matches!(order, Order::Bytewise);
    let behind = |key: &K| -> Result<KeyBuf> {
        if !bytewise {
            let what = "this keyspace has a custom comparator: give ranges of the form a..b";
            return Err(Error::invalid(what));
        }
        check_key(key.as_ref())?;
        Ok(KeyBuf::behind(key.as_ref()))
    };
    let at = |key: &K| -> Result<KeyBuf> {
        check_key(key.as_ref())?;
        Ok(key.as_ref().into())
    };
    let start = match range.start_bound() {
        Bound::Included(key) => Some(at(key)?),
        Bound::Excluded(key) => Some(behind(key)?),
        Bound::Unbounded => None,
    };
    let end = match range.end_bound() {
        Bound::Included(key) => Some(behind(key)?),
        Bound::Excluded(key) => Some(at(key)?),
        Bound::Unbounded => None,
    };
    Ok((start, end))
}

/// The first key that does not begin with `prefix`, in byte order; `None`: there is none.
fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    debug_assert!(Bytewise.compare(prefix, &end).is_lt());
    Some(end)
}

/// The range of the keys that begin with `prefix`. Under a custom comparator they need not be neighbours.
pub(super) fn of_prefix(order: &Order, prefix: &[u8]) -> Result<HalfOpen> {
    if !matches!(order, Order::Bytewise) {
        let what = "this keyspace has a custom comparator: use a range instead of a prefix";
        return Err(Error::invalid(what));
    }
    check_key(prefix)?;
    Ok((Some(prefix.into()), behind_prefix(prefix).map(KeyBuf::from)))
}

/// The bounds of a half-open range.
pub(super) fn bounds((start, end): HalfOpen) -> Bounds {
    Bounds {
        low: start.map_or(Bound::Unbounded, Bound::Included),
        high: end.map_or(Bound::Unbounded, Bound::Excluded),
    }
}
