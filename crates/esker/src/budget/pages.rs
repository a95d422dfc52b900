//! Bytes in a mapping of their own.
//!
//! The system takes them back when they are dropped, whichever thread drops them. Making and dropping
//! a mapping costs a few microseconds, and the first touch of each page as much again, so this is for
//! what is large and lives for long, or is reused.
#![allow(unsafe_code, reason = "memory that the system gives and takes back")]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a page, as far as sizes of mappings are concerned.
pub const PAGE_BYTES: usize = 4 << 10;

/// At least so many zeroed bytes in a mapping of their own, at an address that is a multiple of a page; `None` if the
/// system has no memory, or no mappings. [`unmap`] gives them back.
pub fn map(_bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(all(target_os = "linux", not(loom), not(miri)))]
    return mapped::Mapping::new(_bytes).map(mapped::Mapping::into_start);
    #[cfg(not(all(target_os = "linux", not(loom), not(miri))))]
    return None;
}

/// Gives a mapping back.
///
/// # Safety
/// `_start` comes from [`map`] with so many bytes, and nobody uses the memory any more.
pub unsafe fn unmap(_start: NonNull<u8>, _bytes: usize) {
    #[cfg(all(target_os = "linux", not(loom), not(miri)))]
    // SAFETY: as the caller promises.
    drop(unsafe { mapped::Mapping::from_start(_start, _bytes) });
}

/// Bytes of a page, or of several, as far as [`release`] is concerned.
pub const RELEASE_BYTES: usize = if cfg!(target_arch = "x86_64") { PAGE_BYTES } else { 64 << 10 };

/// Lets the system have pages of a mapping that stays: they are zeroes from then on. `false` if they are as they were,
/// which is so where there are no mappings.
///
/// # Safety
/// The range begins and ends at multiples of [`RELEASE_BYTES`], lies in memory of [`map`] or of a
/// [`Chunk`](super::Chunk), and nobody uses it.
pub unsafe fn release(_start: NonNull<u8>, _bytes: usize) -> bool {
    #[cfg(all(target_os = "linux", not(loom), not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: as the caller promises; private pages without a file are zeroes when they are touched again.
        unsafe { madvise(_start.as_ptr().cast(), _bytes, Advice::LinuxDontNeed) }.is_ok()
    }
    #[cfg(not(all(target_os = "linux", not(loom), not(miri))))]
    false
}

/// Zeroed bytes, at an address that is a multiple of a page where they are mapped.
pub struct Pages {
    memory: Memory,
}

enum Memory {
    #[cfg(all(target_os = "linux", not(loom), not(miri)))]
    Mapped(mapped::Mapping),
    Heap(Box<[u8]>),
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self { memory: Memory::Heap(Box::default()) }
    }
}

impl Pages {
    /// At least so many bytes.
    pub fn new(bytes: usize) -> Self {
        #[cfg(all(target_os = "linux", not(loom), not(miri)))]
        if let Some(mapping) = mapped::Mapping::new(bytes) {
            return Self { memory: Memory::Mapped(mapping) };
        }
        Self { memory: Memory::Heap(vec![0; bytes].into()) }
    }
}

impl Deref for Pages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.memory {
            #[cfg(all(target_os = "linux", not(loom), not(miri)))]
            Memory::Mapped(mapping) => mapping.bytes(),
            Memory::Heap(bytes) => bytes,
        }
    }
}

impl DerefMut for Pages {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            #[cfg(all(target_os = "linux", not(loom), not(miri)))]
            Memory::Mapped(mapping) => mapping.bytes_mut(),
            Memory::Heap(bytes) => bytes,
        }
    }
}

#[cfg(all(target_os = "linux", not(loom), not(miri)))]
mod mapped {
    use super::PAGE_BYTES;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use std::mem::ManuallyDrop;
    use std::ptr::{self, NonNull};

    /// A private mapping of `len` bytes, more than none.
    pub(super) struct Mapping {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: the memory is owned by this value, and nobody else knows it.
    unsafe impl Send for Mapping {}
    // SAFETY: as above; shared references only read.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        /// `None` for no bytes, or if the system has no memory.
        pub(super) fn new(bytes: usize) -> Option<Self> {
            let len = bytes.checked_next_multiple_of(PAGE_BYTES).filter(|len| *len > 0)?;
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
            let start =
                unsafe { mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
            Some(Self { start: NonNull::new(start.ok()?.cast())?, len })
        }

        /// Gives the mapping away as an address.
        pub(super) fn into_start(self) -> NonNull<u8> {
            ManuallyDrop::new(self).start
        }

        /// # Safety
        /// `start` comes from [`Self::into_start`] of a mapping that was made for so many bytes, and nobody uses the
        /// memory any more.
        pub(super) unsafe fn from_start(start: NonNull<u8>, bytes: usize) -> Self {
            Self { start, len: bytes.next_multiple_of(PAGE_BYTES) }
        }

        #[inline]
        pub(super) fn bytes(&self) -> &[u8] {
            // SAFETY: the mapping has `len` bytes, which the system has zeroed, and lives as long as
            // the borrow.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }

        #[inline]
        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above; the borrow is the only one.
            unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: the range is exactly the mapping, and nobody uses it any more. That cannot
            // fail; if it did, the memory would stay mapped, which harms nobody.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}
