//! A hint to the processor to fetch a cache line.
//!
//! Searches in the skiplist and the filter know the next line that they need before they need it;
//! asking for it early hides a part of the cache miss.

/// Starts to fetch the cache line at an address, which need not be a valid one.
#[inline(always)]
pub(super) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[allow(unsafe_code, reason = "the intrinsic is declared unsafe")]
    // SAFETY: SSE is part of x86_64; a prefetch of any address has no effect but on the cache.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
