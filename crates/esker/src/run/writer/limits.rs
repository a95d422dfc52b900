//! What a block can hold, and where blocks are cut.

use crate::base::limits;
use crate::error::{Error, Result};

/// Refuses what no block can hold (R19).
#[inline]
pub(super) fn check_limits(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > limits::KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { len: key.len(), max: limits::KEY_BYTES_MAX });
    }
    if value.len() as u64 > limits::VALUE_BYTES_MAX {
        let max = limits::VALUE_BYTES_MAX;
        return Err(Error::ValueTooLarge { len: value.len() as u64, max });
    }
    Ok(())
}

#[cold]
pub(super) fn out_of_order() -> Error {
    Error::invalid("entries of a run must come in order: ascending keys, new versions first")
}

/// The shortest start of `first` that is greater than `before`, which is less than `first`.
pub(super) fn separator<'a>(before: &[u8], first: &'a [u8]) -> &'a [u8] {
    let shared = before.iter().zip(first).take_while(|(a, b)| a == b).count();
    // Seeded: the fence of a block is not greater than the key before it.
    let shared = if bug!("run_fence_too_short") { shared.saturating_sub(1) } else { shared };
    &first[..first.len().min(shared + 1)]
}
