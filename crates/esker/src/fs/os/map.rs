//! A shared, write-only mapping of a log file (R9).
//!
//! Bytes copied into the window are in the page cache at once, so they outlive the process
//! without a system call. What the mapping cannot promise is a limit that the documentation
//! states: if another program truncates the file, or the device fails while a page is brought in
//! again, the store raises SIGBUS; the library installs no handler for it.
#![allow(unsafe_code, reason = "maps a file and copies into it; checks every range first")]

use std::fs;
use std::io;
use std::ptr::{self, NonNull};

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::fs::{ForkGuard, LogMap};

/// How far ahead pages are read in one call.
const POPULATE_MAX: u64 = 1 << 20;

/// A unit that no system's page is smaller than.
const PAGE: u64 = 4096;

/// The first `len` bytes of a file.
#[derive(Debug)]
pub(super) struct Window {
    start: NonNull<u8>,
    len: usize,
    owner: ForkGuard,
}

// SAFETY: the window owns its mapping and hands out no reference into it; it is accessed only by
// raw copies whose callers use disjoint ranges (see `LogMap::write`).
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// Maps `len` bytes, which the caller has checked to be within the file.
    pub(super) fn new(file: &fs::File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases no Rust object.
        let start = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0) };
        let start = match start {
            Ok(start) => start,
            // File systems without shared mappings say so in one of these ways.
            Err(rustix::io::Errno::NODEV | rustix::io::Errno::INVAL) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
            Err(error) => return Err(error.into()),
        };
        let Some(start) = NonNull::new(start.cast()) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let window = Self { start, len, owner: ForkGuard::new() };
        // A child must not be able to write to its parent's log (R26).
        #[cfg(target_os = "linux")]
        // SAFETY: the range is exactly the mapping made above.
        unsafe {
            madvise(window.start.as_ptr().cast(), len, Advice::LinuxDontFork)?;
        }
        Ok(window)
    }

    /// The part of `offset..offset + len` that lies in the window, as offset and length.
    fn clip(&self, offset: u64, len: u64) -> Option<(usize, usize)> {
        let end = offset.saturating_add(len).min(self.len as u64);
        (offset < end).then(|| (offset as usize, (end - offset) as usize))
    }
}

impl LogMap for Window {
    #[inline]
    fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        let len = self.len as u64;
        if offset > len || bytes.len() as u64 > len - offset {
            return false;
        }
        // SAFETY: the range was checked to lie within the mapping, which lives as long as `self`.
        // Nobody holds a reference into it, and concurrent writers use disjoint ranges.
        unsafe {
            let target = self.start.as_ptr().add(offset as usize);
            ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        }
        true
    }

    fn populate(&self, offset: u64, len: u64) {
        // Whole pages, from the one that holds `offset`.
        let first = offset / PAGE * PAGE;
        let wanted = len.min(POPULATE_MAX).saturating_add(offset - first);
        let Some((offset, len)) = self.clip(first, wanted) else { return };
        #[cfg(target_os = "linux")]
        {
            // SAFETY: the range lies within the mapping and reading it in changes no byte.
            // Reading, not writing: populate-write on an evicted file dirties all of it.
            let done = unsafe {
                let start = self.start.as_ptr().add(offset).cast();
                madvise(start, len, Advice::LinuxPopulateRead)
            };
            if done.is_ok() {
                return;
            }
        }
        for page in (offset..offset + len).step_by(PAGE as usize) {
            // SAFETY: the byte lies within the mapping. A writer may change it meanwhile; the
            // value is not used, only the page fault that the volatile read causes.
            let _ = unsafe { self.start.as_ptr().add(page).read_volatile() };
        }
    }

    fn len(&self) -> u64 {
        self.len as u64
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // In a forked child the mapping is not there: its addresses may hold something else.
        if cfg!(target_os = "linux") && self.owner.forked() {
            return;
        }
        // SAFETY: the range was mapped by `new` and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
