//! A page that is zeroed in a forked child.
#![allow(unsafe_code, reason = "maps one anonymous page and reads its first byte")]

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The smallest length there is: the kernel rounds it up to a page for mapping and unmapping.
const LEN: usize = 4096;

/// One private page whose first byte is 1 in the process that made it and 0 in its children.
#[derive(Debug)]
pub(super) struct WipedPage(NonNull<AtomicU8>);

// SAFETY: the page is only accessed through an atomic byte and unmapped by the only owner.
unsafe impl Send for WipedPage {}
// SAFETY: as above.
unsafe impl Sync for WipedPage {}

impl WipedPage {
    /// `None` where the kernel has no such pages.
    pub(super) fn new() -> Option<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), LEN, protection, MapFlags::PRIVATE) }.ok()?;
        let page = Self(NonNull::new(start.cast())?);
        // SAFETY: the range is exactly the mapping made above.
        unsafe { madvise(start, LEN, Advice::LinuxWipeOnFork) }.ok()?;
        page.byte().store(1, Ordering::Relaxed);
        Some(page)
    }

    #[inline]
    fn byte(&self) -> &AtomicU8 {
        // SAFETY: the mapping is readable and writable for as long as `self` lives, page-aligned,
        // and accessed only as this atomic byte. The kernel wipes it only in a new process,
        // before any code runs there.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(super) fn wiped(&self) -> bool {
        self.byte().load(Ordering::Relaxed) == 0
    }
}

impl Drop for WipedPage {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no reference to it outlives `self`. A child
        // has inherited the (wiped) mapping, so unmapping it there is right as well.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), LEN) };
    }
}
