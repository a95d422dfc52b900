//! Boxed slices whose memory is the cache's: what the index of a run segment is made of.
#![allow(unsafe_code, reason = "owns memory that the allocator of frames gives")]

use super::memory::{FrameMemory, alone, free_alone};
use super::piece::{ALIGN, Origin, Piece};
use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// An owned slice. It is aligned to a cache line.
pub struct Slice<T> {
    start: NonNull<T>,
    len: usize,
    /// Bytes that were asked for; none: the slice has no memory.
    asked: usize,
    origin: Origin,
    /// Where the memory comes from; `None`: the allocator.
    memory: Option<Arc<FrameMemory>>,
    owned: PhantomData<T>,
}

// SAFETY: the slice owns its elements, as a box does.
unsafe impl<T: Send> Send for Slice<T> {}
// SAFETY: as above; a shared reference gives only shared references to elements.
unsafe impl<T: Sync> Sync for Slice<T> {}

impl<T> Slice<T> {
    /// The items, of which at most the first `count` are taken, in memory of a cache or of the allocator.
    pub fn collect(
        home: Option<&Arc<FrameMemory>>,
        count: usize,
        items: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut slice = Self::with_room(home, count);
        items.into_iter().take(count).for_each(|item| slice.push(item));
        slice
    }

    /// Adds an element behind the others, if there is room for it.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.len < self.room() {
            // SAFETY: there is room for more elements than have been written.
            unsafe { self.start.add(self.len).write(item) };
            self.len += 1;
        }
    }

    #[inline]
    fn room(&self) -> usize {
        self.asked / size_of::<T>()
    }

    /// An empty slice with room for so many.
    pub fn with_room(memory: Option<&Arc<FrameMemory>>, count: usize) -> Self {
        const { assert!(align_of::<T>() <= ALIGN && size_of::<T>() > 0) };
        // What would be too large for the address space is so for the allocator, too, which ends the process.
        let asked = count.saturating_mul(size_of::<T>());
        let mut slice = Self {
            start: NonNull::dangling(),
            len: 0,
            asked,
            origin: Origin::Allocator,
            memory: memory.cloned(),
            owned: PhantomData,
        };
        if asked > 0 {
            let piece = match memory {
                Some(memory) => memory.allocate_slice(asked),
                None => alone(asked),
            };
            (slice.start, slice.origin) = (piece.start.cast(), piece.origin);
        }
        slice
    }

    fn piece(&self) -> Piece {
        Piece { start: self.start.cast(), asked: self.asked, origin: self.origin }
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.piece().bytes()
    }
}

impl<T: Copy> Slice<T> {
    /// The elements of the parts one after the other, of which at most the first `count` are taken.
    pub fn concat<'a>(
        home: Option<&Arc<FrameMemory>>,
        count: usize,
        parts: impl IntoIterator<Item = &'a [T]>,
    ) -> Self
    where
        T: 'a,
    {
        let mut slice = Self::with_room(home, count);
        for part in parts {
            let part = &part[..part.len().min(count - slice.len)];
            // SAFETY: there is room for `count` elements, of which `len` and those of the part are at most as many; a
            // new slice does not overlap with the part.
            unsafe { slice.start.add(slice.len).copy_from_nonoverlapping(first(part), part.len()) };
            slice.len += part.len();
        }
        slice
    }
}

/// Where the elements are.
fn first<T>(part: &[T]) -> NonNull<T> {
    NonNull::from(part).cast()
}

impl<T> Deref for Slice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements were written, and nobody else has a reference to them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Slice<T> {
    fn drop(&mut self) {
        let elements = NonNull::slice_from_raw_parts(self.start, self.len);
        // SAFETY: they were written and are used a last time.
        unsafe { elements.drop_in_place() };
        if self.asked == 0 {
            return;
        }
        match &self.memory {
            // SAFETY: the memory comes from there, and nobody uses it any more.
            Some(memory) => unsafe { memory.free_slice(self.piece()) },
            // SAFETY: as above.
            None => unsafe { free_alone(self.piece()) },
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Slice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
