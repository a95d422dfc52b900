//! The nodes of the skiplist, as they lie in the arena.
//!
//! ```text
//! link[height-1] … link[1] link[0] | head keyspace key_len seq value_len kind height | key value
//!                                  ^ a node's address
//! ```
//! Links precede the header (as in RocksDB's InlineSkipList), so that the header and the first
//! bytes of the key share a cache line at every height.
//!
//! Invariants:
//! 1. Everything but `seq` and the links is written before the node is first linked, and never
//!    again.
//! 2. A node is reached only through pointers that were stored with `Release` after that and are
//!    loaded with `Acquire`; so a thread that sees a node sees its fields and bytes.
//! 3. `link[i]` of a node points to a node that is higher than `i`, or to nothing.
//! 4. A node lives as long as the arena: nodes are never removed.

#![allow(unsafe_code, reason = "nodes of varying size in an arena, linked by atomic pointers")]

use super::arena::Arena;
use super::prefetch::prefetch;
use crate::base::{KeyspaceId, Kind, Seq};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The header of a node.
#[repr(C, align(8))]
pub(super) struct Header {
    head: u64,
    keyspace: KeyspaceId,
    key_len: u32,
    seq: AtomicU64,
    value_len: u32,
    kind: Kind,
    height: u8,
    /// So that no byte of a node is without a value (invariant 3 of the arena).
    filled: [u8; 2],
}

const _: () = assert!(size_of::<Header>() == 32);
// A link and what it becomes in the arena have the same size.
const _: () = assert!(size_of::<Option<NodeRef<'_>>>() == size_of::<AtomicPtr<Header>>());

/// What a node is made of.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub keyspace: KeyspaceId,
    pub head: u64,
    pub key: &'a [u8],
    pub seq: Seq,
    pub kind: Kind,
    pub value: &'a [u8],
}

/// A node of a skiplist whose arena lives at least for `'a`.
///
/// Only `allocate` creates a node; `from_raw` takes a pointer that came from a `NodeRef`.
pub(super) struct NodeRef<'a> {
    header: NonNull<Header>,
    arena: PhantomData<&'a Arena>,
}

impl Clone for NodeRef<'_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for NodeRef<'_> {}

impl PartialEq for NodeRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header
    }
}

impl<'a> NodeRef<'a> {
    /// Writes a node into the arena that has these links, from the bottom up: as many as it is high.
    /// No other thread knows it yet. Each of the nodes must be higher than its level.
    #[inline]
    pub(super) fn allocate(arena: &'a Arena, next: &[Option<Self>], entry: &Entry<'_>) -> Self {
        let height = next.len();
        let links = size_of_val(next);
        let (key, value) = (entry.key, entry.value);
        let start = arena.allocate(links + size_of::<Header>() + key.len() + value.len());
        let header = Header {
            seq: AtomicU64::new(entry.seq),
            head: entry.head,
            keyspace: entry.keyspace,
            key_len: u32::try_from(key.len()).expect("keys are at most 65,535 bytes long"),
            value_len: u32::try_from(value.len()).expect("values are at most 1 GiB large"),
            kind: entry.kind,
            height: height as u8,
            filled: [0; 2],
        };
        // SAFETY: the arena handed out exactly the bytes for the links, the header, the key and
        // the value, in this order; the start is a multiple of 8, and so are the sizes of links
        // and header, so that all parts are aligned. Nobody else has the range.
        unsafe {
            let address = start.add(links);
            let bytes = address.add(size_of::<Header>());
            let mut link = address.cast::<AtomicPtr<Header>>();
            for next in next {
                link = link.sub(1);
                let next = next.map_or(std::ptr::null_mut(), |next| next.header.as_ptr());
                link.write(AtomicPtr::new(next));
            }
            address.cast::<Header>().write(header);
            bytes.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
            let value_at = bytes.add(key.len());
            value_at.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
            Self { header: address.cast(), arena: PhantomData }
        }
    }

    /// # Safety
    /// The pointer came from [`Self::as_ptr`] of a node whose arena lives at least for `'a`, and
    /// reached this thread with `Acquire` ordering or in another way that orders it (invariant 2).
    pub(super) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self { header, arena: PhantomData }
    }

    pub(super) fn as_ptr(self) -> NonNull<Header> {
        self.header
    }

    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: a `NodeRef` points to an initialised header in a living arena (invariants 1, 4).
        unsafe { self.header.as_ref() }
    }

    #[inline]
    pub(super) fn keyspace(self) -> KeyspaceId {
        self.header().keyspace
    }

    #[inline]
    pub(super) fn head(self) -> u64 {
        self.header().head
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        self.header().kind
    }

    #[inline]
    pub(super) fn height(self) -> usize {
        self.header().height.into()
    }

    /// The sequence number. Acquire pairs with `publish`: a thread that sees an entry as
    /// published also sees everything its writer did before.
    #[inline]
    pub(super) fn seq(self) -> Seq {
        self.header().seq.load(Ordering::Acquire)
    }

    /// Gives a pending entry its sequence number.
    pub(super) fn publish(self, seq: Seq) {
        self.header().seq.store(seq, Ordering::Release);
    }

    #[inline]
    pub(super) fn key(self) -> &'a [u8] {
        let len = self.header().key_len as usize;
        // SAFETY: `key_len` initialised bytes follow the header (`allocate`), in the same
        // allocation, and are never written again (invariant 1).
        unsafe { std::slice::from_raw_parts(self.header.add(1).cast().as_ptr(), len) }
    }

    #[inline]
    pub(super) fn value(self) -> &'a [u8] {
        let Header { key_len, value_len, .. } = *self.header();
        // SAFETY: `value_len` initialised bytes follow the key, as in `key`.
        unsafe {
            let value = self.header.add(1).cast::<u8>().add(key_len as usize);
            std::slice::from_raw_parts(value.as_ptr(), value_len as usize)
        }
    }

    /// The link of a level.
    ///
    /// # Safety
    /// The node must be higher than `level`.
    #[inline]
    unsafe fn link(self, level: usize) -> &'a AtomicPtr<Header> {
        debug_assert!(level < self.height());
        // SAFETY: the node has `height > level` initialised links before its header, in the same
        // allocation.
        unsafe { self.header.cast::<AtomicPtr<Header>>().sub(level + 1).as_ref() }
    }

    /// The next node on a level.
    ///
    /// # Safety
    /// The node must be higher than `level`.
    #[inline]
    pub(super) unsafe fn next_on(self, level: usize) -> Option<Self> {
        // SAFETY: the caller's promise.
        let next = unsafe { self.link(level) }.load(Ordering::Acquire);
        NonNull::new(next).map(|header| Self { header, arena: PhantomData })
    }

    /// The next node in order.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        // SAFETY: every node has at least one level.
        unsafe { self.next_on(0) }
    }

    /// Fetches the cache line of the node that follows on a level.
    ///
    /// # Safety
    /// The node must be higher than `level`.
    #[inline]
    pub(super) unsafe fn prefetch_on(self, level: usize) {
        // SAFETY: the caller's promise. The pointer is only prefetched, so its order is no matter.
        prefetch(unsafe { self.link(level) }.load(Ordering::Relaxed));
    }

    /// Fetches what a comparison and the step behind it read: from the link of a level to the first
    /// bytes of the key, which seldom lie in one cache line.
    #[inline]
    pub(super) fn prefetch_all(self, level: usize) {
        let header = self.header.as_ptr().cast::<u8>();
        prefetch(header.wrapping_sub((level + 1) * size_of::<AtomicPtr<Header>>()));
        prefetch(header.wrapping_add(size_of::<Header>() + size_of::<u64>()));
    }

    /// Sets a link of a node that is not yet linked on this level.
    ///
    /// # Safety
    /// Both nodes must be higher than `level`.
    #[inline]
    pub(super) unsafe fn set_next(self, level: usize, next: Option<Self>) {
        let next = next.map_or(std::ptr::null_mut(), |next| next.header.as_ptr());
        // SAFETY: the caller's promise. Relaxed: the node is published by `replace_next`.
        unsafe { self.link(level) }.store(next, Ordering::Relaxed);
    }

    /// Puts `node` behind this node if `next` still is what follows on this level.
    ///
    /// # Safety
    /// All nodes must be higher than `level`.
    #[inline]
    pub(super) unsafe fn replace_next(self, level: usize, next: Option<Self>, node: Self) -> bool {
        let next = next.map_or(std::ptr::null_mut(), |next| next.header.as_ptr());
        // SAFETY: the caller's promise.
        let link = unsafe { self.link(level) };
        // Release publishes the node's fields, bytes and links (invariant 2).
        let swap =
            link.compare_exchange(next, node.header.as_ptr(), Ordering::Release, Ordering::Relaxed);
        swap.is_ok()
    }
}
