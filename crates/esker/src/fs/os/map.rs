//! A shared, write-only mapping of a log file (R9).
//!
//! Bytes copied into the window are in the page cache at once, so they outlive the process without
//! a system call. The mapping has one limit, which the documentation states: if another program
//! truncates the file, or the device fails while the kernel reads a page again, the store raises
//! SIGBUS. The library installs no handler for it.
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

/// The first `len` bytes of a file.
#[derive(Debug)]
pub(super) struct Window {
    start: NonNull<u8>,
    len: usize,
    /// Bytes of a page: 4 KiB on many machines, 16 or 64 KiB on others.
    page: u64,
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
        Self::with_page(file, len, rustix::param::page_size() as u64)
    }

    /// Like [`Window::new`], for pages of `page` bytes; the pages of the system must not be larger.
    fn with_page(file: &fs::File, len: u64, page: u64) -> io::Result<Self> {
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
        let window = Self { start, len, page, owner: ForkGuard::new() };
        // A child must not be able to write to its parent's log (R26).
        #[cfg(target_os = "linux")]
        // SAFETY: the range is exactly the mapping made above.
        unsafe {
            madvise(window.start.as_ptr().cast(), len, Advice::LinuxDontFork)?;
        }
        Ok(window)
    }

    /// The page-aligned start and the length of the range that covers `len` bytes from `offset`,
    /// cut to the window and to the limit of one call.
    fn pages(&self, offset: u64, len: u64) -> Option<(usize, usize)> {
        let first = offset / self.page * self.page;
        let end = offset.saturating_add(len.min(POPULATE_MAX)).min(self.len as u64);
        (offset < end).then(|| (first as usize, (end - first) as usize))
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
        let Some((offset, len)) = self.pages(offset, len) else { return };
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
        for page in (offset..offset + len).step_by(self.page as usize) {
            // SAFETY: the byte lies within the mapping. A writer may change it meanwhile; the
            // value is not used, only the page fault that the volatile read causes.
            let _ = unsafe { self.start.as_ptr().add(page).read_volatile() };
        }
    }

    #[cfg(target_os = "linux")]
    fn release(&self, offset: u64, len: u64) {
        // As in `drop`: the addresses may be those of other memory, whose content would be lost.
        if self.owner.forked() {
            return;
        }
        let first = offset.checked_next_multiple_of(self.page).unwrap_or(u64::MAX);
        let end = offset.saturating_add(len).min(self.len as u64) / self.page * self.page;
        if first < end {
            // SAFETY: the range lies within the mapping. It is shared, so no byte is lost: its pages stay in
            // the page cache, and the next access, also by a writer at the same time, maps them again.
            let _ = unsafe {
                let start = self.start.as_ptr().add(first as usize).cast();
                madvise(start, (end - first) as usize, Advice::LinuxDontNeed)
            };
        }
    }

    fn len(&self) -> u64 {
        self.len as u64
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // A forked child does not have the mapping; its addresses may hold other memory.
        if cfg!(target_os = "linux") && self.owner.forked() {
            return;
        }
        // SAFETY: the range was mapped by `new` and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// What is resident of a mapping, in bytes, by `/proc/self/smaps`.
    #[cfg(target_os = "linux")]
    fn resident(window: &Window) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("a list of mappings");
        let start = format!("{:x}-", window.start.as_ptr() as usize);
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&start));
        let line = lines.find(|line| line.starts_with("Rss:")).expect("a size");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("KiB") << 10
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn whole_pages_are_released_and_no_byte_is_lost() {
        const LEN: u64 = 1 << 20;
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(LEN).expect("extend");
        let window = Window::new(&file, LEN).expect("map");
        let page = window.page;
        assert!(window.write(0, &vec![7; LEN as usize]));
        assert_eq!(resident(&window), LEN);
        // Less than a page, and what lies outside.
        for (offset, len) in [(0, page - 1), (1, page), (LEN, 1), (LEN + 1, u64::MAX), (0, 0)] {
            window.release(offset, len);
            assert_eq!(resident(&window), LEN);
        }
        window.release(page - 1, 3 * page);
        assert_eq!(resident(&window), LEN - 2 * page);
        window.release(8 * page, u64::MAX);
        assert_eq!(resident(&window), 6 * page);
        assert!(window.write(2 * page, b"again"));
        assert!(resident(&window) >= 7 * page);
        let mut read = vec![0; LEN as usize];
        file.read_exact_at(&mut read, 0).expect("read");
        let at = 2 * page as usize;
        assert_eq!(&read[at..at + 5], b"again");
        read[at..at + 5].fill(7);
        assert!(read.iter().all(|byte| *byte == 7));
    }

    /// The system takes only starts of its own pages, and those of larger ones are among them.
    #[test]
    fn larger_pages_change_nothing() {
        const LEN: u64 = (3 << 20) + 4096;
        let system = rustix::param::page_size() as u64;
        for page in
            [4 << 10, 16 << 10, 64 << 10, 2 << 20].into_iter().filter(|page| *page >= system)
        {
            let file = tempfile::tempfile().expect("a temporary file");
            file.set_len(LEN).expect("extend");
            let window = Window::with_page(&file, LEN, page).expect("map");
            #[cfg(target_os = "linux")]
            let accepts = |first: u64, bytes: usize| {
                // SAFETY: the range lies within the mapping, and reading it in changes nothing.
                unsafe {
                    let start = window.start.as_ptr().add(first as usize).cast();
                    madvise(start, bytes, Advice::LinuxPopulateRead).is_ok()
                }
            };
            // Kernels before 5.14 know no such advice.
            #[cfg(target_os = "linux")]
            let known = accepts(0, 1);
            for offset in [0, 1, 4095, 4096, page - 1, page, page + 1, LEN - 4097, LEN - 1] {
                for len in [1, 4096, page, POPULATE_MAX, POPULATE_MAX + 1, u64::MAX] {
                    let (first, bytes) = window.pages(offset, len).expect("inside");
                    let (first, end) = (first as u64, (first + bytes) as u64);
                    assert!(first.is_multiple_of(page) && offset - first < page);
                    assert_eq!(end, offset.saturating_add(len.min(POPULATE_MAX)).min(LEN));
                    #[cfg(target_os = "linux")]
                    assert_eq!(accepts(first, bytes), known);
                    window.populate(offset, len);
                }
                let bytes = offset.to_le_bytes();
                assert_eq!(window.write(offset, &bytes), offset + 8 <= LEN);
                let mut read = [0; 8];
                if offset + 8 <= LEN {
                    file.read_exact_at(&mut read, offset).expect("read");
                    assert_eq!(read, bytes);
                }
            }
            assert_eq!(window.pages(LEN, 1), None);
            assert_eq!(window.pages(u64::MAX, u64::MAX), None);
            assert_eq!(window.pages(5, 0), None);
        }
    }
}
