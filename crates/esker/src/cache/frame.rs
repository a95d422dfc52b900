//! Frames, the memory of one block each, and the slots that hold them.
//!
//! A frame begins with 128 bytes of header. The first line holds what reference counting and the
//! queues write; the second holds the layout of the block, which every lookup reads. The bytes of
//! the block follow directly. References are counted as in an `Arc`; an `Arc` cannot be used
//! because a slot must hold a thin pointer.
#![allow(unsafe_code, reason = "one allocation for header and bytes, with a count of its own")]

use super::memory::FrameMemory;
#[cfg(not(loom))]
use super::piece::HEADER_BYTES_MAX;
use super::piece::{ALIGN, Origin, Piece};
use super::pins::Pins;
use super::slice::Slice;
use crate::block::{Block, Layout};
use crate::sync::primitives::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Life, Ordering, fence};
use crate::sync::{Guard, pin};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The header before the bytes.
#[repr(C, align(64))]
struct Header {
    references: AtomicUsize,
    /// The position of the frame in the queues of its shard; changes under the shard's lock.
    position: AtomicU64,
    capacity: usize,
    slot: u32,
    origin: Origin,
    owner: Option<Arc<Slice<Slot>>>,
    memory: Arc<FrameMemory>,
    life: Life,
    hot: Hot,
}

#[repr(C, align(64))]
struct Hot {
    len: u32,
    /// Whether the block was used since it entered its queue.
    used: AtomicU8,
    layout: Option<Layout>,
}

const HEADER_BYTES: usize = size_of::<Header>();
const _: () = assert!(align_of::<Header>() <= ALIGN && HEADER_BYTES >= ALIGN);
#[cfg(not(loom))]
const _: () = assert!(HEADER_BYTES <= HEADER_BYTES_MAX);

/// Cache lines of a frame that a seek touches: its header with the layout, the block's header with prefix, tags, heads.
pub(super) const SOUGHT_LINES: usize = 5;

/// Starts to fetch cache lines, counted from an address, which need not be a valid one.
#[inline]
fn prefetch_lines<T>(from: *const T, lines: std::ops::Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    for line in lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = from.cast::<i8>().wrapping_add(64 * line);
        // SAFETY: a prefetch is a hint that may name any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, lines);
}

fn bytes_start(frame: NonNull<Header>) -> *mut u8 {
    // SAFETY: the allocation has HEADER_BYTES and then the bytes, so the result is in it or one
    // past its end.
    unsafe { frame.as_ptr().cast::<u8>().add(HEADER_BYTES) }
}

/// A frame that is not shared yet: its bytes can be written.
#[derive(Debug)]
pub struct FrameBuf {
    pin: FramePin,
}

impl FrameBuf {
    pub(super) fn new(capacity: usize, memory: &Arc<FrameMemory>) -> Self {
        Self::on(memory.allocate(HEADER_BYTES.saturating_add(capacity)), capacity, memory)
    }

    /// A frame that is in no cache and will be freed soon.
    pub(super) fn once(capacity: usize, memory: &Arc<FrameMemory>) -> Self {
        Self::on(memory.allocate_once(HEADER_BYTES.saturating_add(capacity)), capacity, memory)
    }

    /// `piece`: from that memory, for a header and so many bytes.
    fn on(piece: Piece, capacity: usize, memory: &Arc<FrameMemory>) -> Self {
        let frame = piece.start.cast::<Header>();
        let header = Header {
            references: AtomicUsize::new(1),
            position: AtomicU64::new(0),
            capacity,
            slot: 0,
            origin: piece.origin,
            owner: None,
            memory: Arc::clone(memory),
            life: Life::default(),
            hot: Hot { len: 0, used: AtomicU8::new(0), layout: None },
        };
        // SAFETY: freshly allocated with the header's alignment and at least its size.
        unsafe { frame.write(header) };
        Self { pin: FramePin { frame } }
    }

    /// The bytes, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let capacity = self.pin.header().capacity;
        // SAFETY: this is the only reference to the frame, and the bytes behind the header were
        // initialised when they were allocated.
        unsafe { std::slice::from_raw_parts_mut(bytes_start(self.pin.frame), capacity) }
    }

    /// Declares the first `layout.len()` bytes to be a block with this layout.
    ///
    /// # Panics
    /// If the frame is smaller than that.
    pub fn set_layout(&mut self, layout: Layout) {
        assert!(layout.len() <= self.pin.header().capacity, "the layout exceeds its frame");
        // SAFETY: this is the only reference to the frame.
        let header = unsafe { self.pin.frame.as_mut() };
        header.hot.len = layout.len() as u32;
        header.hot.layout = Some(layout);
    }

    /// Bytes of memory that the frame takes.
    pub fn size(&self) -> u64 {
        self.pin.size()
    }

    /// Ends the writing; `home` is the slot that the frame will be in.
    pub(super) fn share(mut self, home: Option<(Arc<Slice<Slot>>, u32)>) -> FramePin {
        if let Some((owner, slot)) = home {
            // SAFETY: this is the only reference to the frame.
            let header = unsafe { self.pin.frame.as_mut() };
            header.owner = Some(owner);
            header.slot = slot;
        }
        self.pin.header().life.begins();
        self.pin
    }

    /// The frame, in no cache.
    pub fn detached(self) -> FramePin {
        self.share(None)
    }
}

/// A counted reference to a frame.
pub struct FramePin {
    frame: NonNull<Header>,
}

// SAFETY: after `FrameBuf` nothing but atomics changes in a frame, and its memory is freed by the
// drop of the last reference, on any thread.
unsafe impl Send for FramePin {}
// SAFETY: as above; shared references only read or count.
unsafe impl Sync for FramePin {}

impl std::fmt::Debug for FramePin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FramePin").field("len", &self.bytes().len()).finish_non_exhaustive()
    }
}

impl FramePin {
    fn header(&self) -> &Header {
        // SAFETY: the counted reference keeps the frame alive; only a `FrameBuf`, which is not
        // shared, makes mutable references.
        unsafe { self.frame.as_ref() }
    }

    /// The frame for as long as this pin is borrowed.
    #[inline]
    pub fn view(&self) -> FrameView<'_> {
        FrameView { frame: self.frame, borrowed: PhantomData }
    }

    /// The bytes of the block.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.view().bytes()
    }

    /// The block.
    #[inline]
    pub fn block(&self) -> Block<'_> {
        self.view().block()
    }

    /// Bytes of memory that the frame takes.
    pub fn size(&self) -> u64 {
        self.piece().bytes() as u64
    }

    /// The account of what iterators hold of its cache, which may be gone.
    pub fn pins(&self) -> &Pins {
        self.header().memory.pins()
    }

    /// Whether this is a forked child of the process in which it was read: there it must not be freed (R26).
    #[cfg(not(loom))]
    pub fn is_forked(&self) -> bool {
        self.header().memory.is_forked()
    }

    /// Starts to fetch the header.
    pub(super) fn prefetch_header(&self) {
        prefetch_lines(self.frame.as_ptr(), 0..2);
    }

    /// The frame was evicted, and waits until no reader can use it.
    pub(super) fn retire(&self) {
        self.header().memory.retire(self.size());
    }

    /// It waits no longer.
    pub(super) fn release(self) {
        self.header().memory.release(self.size());
    }

    fn piece(&self) -> Piece {
        let header = self.header();
        let asked = HEADER_BYTES + header.capacity;
        Piece { start: self.frame.cast(), asked, origin: header.origin }
    }

    /// The slot in which the frame stands, or stood until it was evicted.
    pub(super) fn home(&self) -> Option<&Slot> {
        let header = self.header();
        header.owner.as_deref().map(|owner| &owner[header.slot as usize])
    }

    pub(super) fn set_position(&self, position: u64) {
        self.header().position.store(position, Ordering::Relaxed);
    }

    /// Whether the block was used since the last call.
    pub(super) fn take_used(&self) -> bool {
        let used = &self.header().hot.used;
        let was = used.load(Ordering::Relaxed) != 0;
        if was {
            used.store(0, Ordering::Relaxed);
        }
        was
    }
}

impl Clone for FramePin {
    fn clone(&self) -> Self {
        self.view().pin()
    }
}

impl Drop for FramePin {
    fn drop(&mut self) {
        // As in `Arc`: all uses of the frame by other threads happen before it is freed.
        if self.header().references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        self.header().life.ends();
        let piece = self.piece();
        // SAFETY: this was the last reference, so the header is read a last time, and its memory
        // comes from this object.
        unsafe {
            let header = self.frame.read();
            header.memory.free(piece);
        }
    }
}

/// A frame that an epoch or a pin keeps alive for `'a`.
#[derive(Clone, Copy)]
pub struct FrameView<'a> {
    frame: NonNull<Header>,
    borrowed: PhantomData<&'a Header>,
}

impl std::fmt::Debug for FrameView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameView").field("len", &self.bytes().len()).finish_non_exhaustive()
    }
}

impl<'a> FrameView<'a> {
    /// # Safety
    /// The frame must be alive, with at least one reference, for `'a`.
    unsafe fn new(frame: NonNull<Header>) -> Self {
        Self { frame, borrowed: PhantomData }
    }

    /// Prefetches the cache lines that every lookup in the block touches ([`SOUGHT_LINES`]). Without this, each would be a miss that waits for the previous one.
    #[inline]
    pub fn prefetch(self) {
        prefetch_lines(self.frame.as_ptr(), 1..SOUGHT_LINES);
    }

    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: alive for `'a` as `new` demands; never mutably borrowed once it is shared.
        let header = unsafe { &*self.frame.as_ptr() };
        header.life.used();
        header
    }

    /// The bytes of the block.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        let len = self.header().hot.len as usize;
        // SAFETY: `len` is at most the capacity (`set_layout`), the bytes are initialised, and
        // nobody writes them any more.
        unsafe { std::slice::from_raw_parts(bytes_start(self.frame), len) }
    }

    /// The block.
    #[inline]
    pub fn block(self) -> Block<'a> {
        let layout = self.header().hot.layout.as_ref();
        Block::new(self.bytes(), layout.expect("frames are shared with a layout"))
    }

    /// Marks the block as used.
    #[inline]
    pub fn touch(self) {
        let used = &self.header().hot.used;
        // Written only once, so that the line of a hot block stays shared between cores.
        if used.load(Ordering::Relaxed) == 0 {
            used.store(1, Ordering::Relaxed);
        }
    }

    /// Keeps the frame alive beyond `'a`.
    #[inline]
    pub fn pin(self) -> FramePin {
        let before = self.header().references.fetch_add(1, Ordering::Relaxed);
        assert!(before < usize::MAX / 2, "too many references to one frame");
        FramePin { frame: self.frame }
    }

    fn position(self) -> u64 {
        self.header().position.load(Ordering::Relaxed)
    }
}

/// Where the index of a segment finds the frame of one block.
///
/// A slot holds the address of a frame, which is even, or an odd number. Odd means that no frame is
/// loaded; the number tells when a frame left the small queue unused, or was read and not kept (1: never).
pub(super) struct Slot(AtomicPtr<Header>);

fn is_frame(pointer: *mut Header) -> bool {
    pointer.addr() & 1 == 0
}

impl Slot {
    pub(super) fn empty() -> Self {
        Self(AtomicPtr::new(ptr::without_provenance_mut(1)))
    }

    /// The frame, if the block is cached, for as long as the epoch lasts.
    #[inline]
    pub(super) fn view<'g>(&self, _guard: &'g Guard) -> Option<FrameView<'g>> {
        let pointer = self.0.load(Ordering::Acquire);
        if !is_frame(pointer) {
            return None;
        }
        let frame = NonNull::new(pointer)?;
        // SAFETY: a frame in a slot is in a queue (invariant 1), and the queue's reference is
        // dropped only after a grace period (invariant 2), which cannot end before `'g` does.
        Some(unsafe { FrameView::new(frame) })
    }

    /// A pin of the frame, if the block is cached.
    pub(super) fn pin(&self) -> Option<FramePin> {
        // Who finds nothing need not enter an epoch for that.
        if self.vacancy().is_some() {
            return None;
        }
        let guard = pin();
        self.view(&guard).map(FrameView::pin)
    }

    /// Starts to fetch the slot.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch_lines(&raw const self.0, 0..1);
    }

    /// Starts to fetch so many lines of the frame. The frame may go at any moment: only its address is used.
    #[inline]
    pub(super) fn prefetch_frame(&self, lines: usize) {
        let pointer = self.0.load(Ordering::Relaxed);
        if is_frame(pointer) {
            prefetch_lines(pointer, 0..lines);
        }
    }

    pub(super) fn address(&self) -> usize {
        ptr::from_ref(&self.0).addr()
    }

    /// The odd number of an empty slot.
    pub(super) fn vacancy(&self) -> Option<u64> {
        let pointer = self.0.load(Ordering::Relaxed);
        (!is_frame(pointer)).then(|| pointer.addr() as u64)
    }

    /// Puts a frame into an empty slot; under the shard's lock.
    pub(super) fn publish(&self, frame: &FramePin) {
        self.0.store(frame.frame.as_ptr(), Ordering::Release);
    }

    /// Empties the slot, leaving an odd number; under the shard's lock.
    pub(super) fn vacate(&self, ghost: u64) {
        self.0.store(ptr::without_provenance_mut(ghost as usize | 1), Ordering::Release);
    }

    /// Empties the slot and returns the position of its frame in the queues; under the shard's
    /// lock.
    pub(super) fn take(&self, guard: &Guard) -> Option<u64> {
        let position = self.view(guard)?.position();
        self.vacate(1);
        Some(position)
    }
}
