//! Chunks of memory of one size, which memtables and the cache hand to each other.
//!
//! A flush frees a set of memtables while the cache grows by what was flushed, and a compaction's blocks
//! take the place of others. If the system took each chunk back, each new one would cost its first touch
//! again: the system clears it, 0.1 to 0.2 ms for 2 MiB, and in a virtual machine the host may have to
//! find the memory first, which takes milliseconds. So a chunk that nobody uses waits for its next user.
//!
//! 1. The bytes of a chunk are initialised: the system zeroes new ones, and who gives one back has
//!    written only initialised bytes, or zeroes over the others.
//! 2. The chunks that wait are counted ([`ChunkPool::bytes`]). They are at most those of a set of memtables
//!    and those that the cache may have and has not, by what it told last, so they take nothing that the
//!    split of the memory budget does not give these two.
//! 3. Once nobody writes and nothing is left to compact, all of them go back to the system
//!    ([`ChunkPool::trim_if`]).
//! 4. While a large cache grows, a few chunks that it will need are *made ready* by a thread that has nothing else to do
//!    ([`ChunkPool::make_ready`]), so that no reader waits for the system to clear them. They count as those that wait.
#![allow(unsafe_code, reason = "memory that the system gives and takes back")]

use super::pages::PAGE_BYTES;
use parking_lot::Mutex;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A huge page: the largest chunks have it, and are aligned to it.
const CHUNK_BYTES_MAX: usize = 2 << 20;
/// Smaller chunks are no parts of a huge page.
const HUGE_PART_BYTES_MIN: usize = CHUNK_BYTES_MAX / 8;
/// Smaller chunks are not worth a mapping.
const CHUNK_BYTES_MIN: usize = 128 << 10;
/// The chunks of a set of memtables: little of the last one may stay unused.
const CHUNKS_PER_SET: usize = 4;
/// So many chunks are made ready ahead of the cache. With half of them left, the thread is asked for more.
const READY: usize = 4;
/// Where the cache may have fewer chunks more than this, none are made ready.
const ROOM_FOR_READY: usize = 16 * READY;

/// What wakes the thread that makes chunks ready.
struct Wake(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}

/// See the head of this module.
#[derive(Debug)]
pub struct ChunkPool {
    spare: Mutex<Vec<Chunk>>,
    /// Those that were made ready for the cache (invariant 4). Its lock is taken after that of `spare`.
    ready: Mutex<Vec<Chunk>>,
    /// Whether the cache needs more of them soon.
    wanted: AtomicBool,
    wake: OnceLock<Wake>,
    /// As many may wait for the next set of memtables.
    of_set: usize,
    /// As many more, because the cache may have them and has not.
    of_cache: AtomicUsize,
    /// Bytes of each chunk, a power of two.
    chunk_bytes: usize,
}

impl ChunkPool {
    /// A pool for sets of memtables of at most `set_bytes`, which keeps the bytes of one set, and what the
    /// cache may have ([`Self::set_room_of_cache`]).
    pub fn new(set_bytes: usize) -> Self {
        let part = (set_bytes / CHUNKS_PER_SET).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        // Seeded: a set takes memory that it cannot use before it is sealed.
        let part = if bug!("budget_chunks_larger_than_sets") { CHUNK_BYTES_MAX } else { part };
        let chunk_bytes = 1 << part.ilog2();
        Self::keeping(set_bytes / chunk_bytes, chunk_bytes)
    }

    /// A pool of the largest chunks in which none waits.
    pub fn keeping_none() -> Self {
        Self::keeping(0, CHUNK_BYTES_MAX)
    }

    fn keeping(of_set: usize, chunk_bytes: usize) -> Self {
        Self {
            spare: Mutex::default(),
            ready: Mutex::default(),
            wanted: AtomicBool::new(false),
            wake: OnceLock::new(),
            of_set,
            of_cache: AtomicUsize::new(0),
            chunk_bytes,
        }
    }

    /// Bytes of each chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Bytes of the chunks that wait: those for the next set of memtables, and those beyond, which the
    /// cache may have.
    pub fn bytes(&self) -> (usize, usize) {
        let (spare, ready) = (self.spare.lock().len(), self.ready.lock().len());
        let of_set = spare.min(self.of_set);
        (of_set * self.chunk_bytes, (spare - of_set + ready) * self.chunk_bytes)
    }

    /// A chunk for a memtable: one that waits, or a new one. `None` if the system has no memory.
    pub fn take(&self) -> Option<Chunk> {
        let spare = self.spare.lock().pop();
        spare.or_else(|| Chunk::new(self.chunk_bytes))
    }

    /// A chunk for the cache. Half of a set's stay for memtables, whose writers would wait for new ones.
    pub fn take_for_cache(&self) -> Option<Chunk> {
        let mut spare = self.spare.lock();
        let chunk = (spare.len() > self.of_set / 2).then(|| spare.pop()).flatten();
        drop(spare);
        chunk.or_else(|| self.take_ready()).or_else(|| Chunk::new(self.chunk_bytes))
    }

    /// A chunk that was made ready, if there is one. Asks for more if few are left.
    fn take_ready(&self) -> Option<Chunk> {
        let wake = self.wake.get()?;
        let mut ready = self.ready.lock();
        let chunk = ready.pop();
        let few = ready.len() < READY / 2 && self.may_be_ready() > ready.len();
        drop(ready);
        if few && !self.wanted.swap(true, Ordering::Relaxed) {
            (wake.0)();
        }
        chunk
    }

    /// How many chunks may be ready: none where chunks are no huge pages, or where the cache has not much room.
    fn may_be_ready(&self) -> usize {
        let room = self.of_cache.load(Ordering::Relaxed);
        // Seeded: what is made ready does not count against the room of the cache.
        let much = room >= ROOM_FOR_READY || bug!("budget_ready_without_room");
        if much && self.chunk_bytes == CHUNK_BYTES_MAX { READY } else { 0 }
    }

    /// Has `wake` called whenever the cache will soon need chunks that [`Self::make_ready`] should make. Without it none
    /// are made ready.
    pub fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.wake.set(Wake(Box::new(wake)));
    }

    /// Makes a chunk ready for the cache, if it needs one soon and there may be one more. Returns whether it did; the
    /// caller has nothing else to do and calls again.
    pub fn make_ready(&self) -> bool {
        if !self.wanted.load(Ordering::Relaxed) {
            return false;
        }
        let may = self.ready.lock().len() < self.may_be_ready();
        let Some(mut chunk) = may.then(|| Chunk::new(self.chunk_bytes)).flatten() else {
            self.wanted.store(false, Ordering::Relaxed);
            return false;
        };
        chunk.touch();
        self.ready.lock().push(chunk);
        true
    }

    /// Takes a chunk of this size in, or lets the system have it if as many wait as may.
    pub fn give(&self, chunk: Chunk) {
        debug_assert_eq!(chunk.bytes, self.chunk_bytes);
        let mut spare = self.spare.lock();
        // Seeded: memory that waits for its next user is without bound.
        if spare.len() < self.most() || bug!("budget_chunks_wait_without_bound") {
            spare.push(chunk);
        }
    }

    fn most(&self) -> usize {
        self.of_set + self.of_cache.load(Ordering::Relaxed)
    }

    /// Notes that the cache may have so many chunks more than it has, and lets the system have what waits
    /// beyond that. The number is asked for under the lock, so that an old one does not replace a newer.
    pub fn set_room_of_cache(&self, chunks: impl FnOnce() -> usize) {
        // Seeded: what the cache told first replaces what it told last.
        if bug!("budget_earlier_room_noted_last") {
            self.of_cache.store(chunks(), Ordering::Relaxed);
            return;
        }
        let mut spare = self.spare.lock();
        self.of_cache.store(chunks(), Ordering::Relaxed);
        let most = self.most().min(spare.len());
        let rest = spare.split_off(most);
        drop(spare);
        drop(rest);
        self.keep_ready(self.may_be_ready());
    }

    /// Lets the system have what was made ready beyond so many chunks.
    fn keep_ready(&self, most: usize) {
        let mut ready = self.ready.lock();
        let most = most.min(ready.len());
        let rest = ready.split_off(most);
        drop(ready);
        drop(rest);
    }

    /// Lets the system have all that waits, if `calm`: nobody writes, and nothing is left to compact.
    pub fn trim_if(&self, calm: bool) {
        // Seeded: memory that waits is kept for ever.
        if calm && !bug!("budget_chunks_are_never_given_back") {
            let spare = std::mem::take(&mut *self.spare.lock());
            drop(spare);
            self.keep_ready(0);
        }
    }
}

/// Memory that is aligned to its size, owned.
#[derive(Debug)]
pub struct Chunk {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is owned by this value, and nobody else knows it.
unsafe impl Send for Chunk {}

impl Chunk {
    /// A chunk of zeros; `bytes` is a power of two, at least a page. `None` if the system has no memory.
    pub fn new(bytes: usize) -> Option<Self> {
        system::take(bytes).map(|start| Self { start, bytes })
    }

    /// Whether chunks of so many bytes are made as parts of a huge page.
    pub fn may_be_part(bytes: usize) -> bool {
        system::PARTS && (HUGE_PART_BYTES_MIN..CHUNK_BYTES_MAX).contains(&bytes)
    }

    /// The chunks of so many bytes that a huge page has: lookups in all of them need one place of the TLB. Each goes back
    /// to the system alone. One chunk where they would be too small, or where mappings cannot be parted; none if the
    /// system has no memory.
    pub fn of_huge_page(bytes: usize) -> Vec<Self> {
        if !Self::may_be_part(bytes) {
            return Self::new(bytes).into_iter().collect();
        }
        let Some(start) = system::take(CHUNK_BYTES_MAX) else { return Vec::new() };
        let part = |at: usize| {
            // SAFETY: all parts lie in the mapping, which has as many of them as fit.
            let start = unsafe { start.add(at * bytes) };
            Self { start, bytes }
        };
        (0..CHUNK_BYTES_MAX / bytes).map(part).collect()
    }

    /// Has the system give the memory of a new chunk now: each page is written to, with the zeroes that it has.
    fn touch(&mut self) {
        for at in (0..self.bytes).step_by(PAGE_BYTES) {
            // SAFETY: the place lies in the chunk, which nobody else uses.
            unsafe { self.start.add(at).write_volatile(0) };
        }
    }

    /// Where it begins.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives the chunk away as an address; [`Self::from_start`] takes it back.
    pub fn into_start(self) -> NonNull<u8> {
        ManuallyDrop::new(self).start
    }

    /// # Safety
    /// `start` comes from [`Self::into_start`] of a chunk of so many bytes, and nobody uses the memory any
    /// more.
    pub unsafe fn from_start(start: NonNull<u8>, bytes: usize) -> Self {
        Self { start, bytes }
    }
}

/// Whether the system may make the memory of a chunk of the largest size a huge page, and that of a chunk that may be
/// [part of one](Chunk::of_huge_page). Where parts of it went back to the system, it would otherwise be made whole again,
/// without anybody's use.
pub fn allow_huge(_start: NonNull<u8>, _bytes: usize, _allow: bool) {
    #[cfg(all(target_os = "linux", not(loom), not(miri)))]
    if _bytes >= HUGE_PART_BYTES_MIN {
        use rustix::mm::{Advice, madvise};
        let advice = if _allow { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: the advice changes no content, whatever the range is. Without it everything works, too.
        let _ = unsafe { madvise(_start.as_ptr().cast(), _bytes, advice) };
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the memory was taken with these bytes, is owned, and nobody uses it any more.
        unsafe { system::give(self.start, self.bytes) };
    }
}

#[cfg(all(target_os = "linux", not(loom), not(miri)))]
mod system {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use std::ptr::{self, NonNull};

    /// A part of what [`take`] gives can go back alone.
    pub(super) const PARTS: bool = true;

    /// A mapping, aligned to its size. Where it is a huge page, it asks for one: a new chunk then costs one
    /// page fault, and a lookup few misses of the TLB.
    pub(super) fn take(bytes: usize) -> Option<NonNull<u8>> {
        let (twice, protection) = (bytes.checked_mul(2)?, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
        let start =
            unsafe { mmap_anonymous(ptr::null_mut(), twice, protection, MapFlags::PRIVATE) };
        let start = NonNull::new(start.ok()?.cast::<u8>())?;
        let before = start.addr().get().next_multiple_of(bytes) - start.addr().get();
        let after = bytes - before;
        // SAFETY: all parts lie in the mapping, of which only the middle is used from here on. Without
        // huge pages the chunk works, too, so the advice may fail.
        unsafe {
            let chunk = start.add(before);
            if before > 0 {
                munmap(start.as_ptr().cast(), before).ok()?;
            }
            if after > 0 {
                munmap(chunk.add(bytes).as_ptr().cast(), after).ok()?;
            }
            if bytes == super::CHUNK_BYTES_MAX {
                super::allow_huge(chunk, bytes, true);
            }
            Some(chunk)
        }
    }

    /// # Safety
    /// The memory comes from [`take`] with so many bytes, or is a part of it, in whole pages; nobody uses it any more.
    pub(super) unsafe fn give(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the range is exactly the mapping, or a part of it. That cannot fail; if it did, the memory would stay
        // mapped, which harms nobody.
        let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(not(all(target_os = "linux", not(loom), not(miri))))]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    /// What [`take`] gives goes back as a whole.
    pub(super) const PARTS: bool = false;

    pub(super) fn take(bytes: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(bytes, bytes).ok().filter(|_| bytes > 0)?;
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    /// # Safety
    /// The memory comes from [`take`] with so many bytes, and nobody uses it any more.
    pub(super) unsafe fn give(start: NonNull<u8>, bytes: usize) {
        if let Ok(layout) = Layout::from_size_align(bytes, bytes) {
            // SAFETY: it was allocated with this very layout.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests;
