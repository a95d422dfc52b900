//! The two queues of one shard of the cache, small and main: first in, first out, with a second
//! chance.

use super::frame::FramePin;
use std::collections::VecDeque;

/// The bit of a position that tells the queue.
const MAIN: u64 = 1 << 63;

/// A queue that supports removal from the middle: a removal leaves a hole, which stays until it
/// reaches the front or until holes outnumber frames.
#[derive(Debug, Default)]
struct Fifo {
    frames: VecDeque<Option<FramePin>>,
    /// The position of the front.
    front: u64,
    holes: usize,
    bytes: u64,
}

impl Fifo {
    fn push(&mut self, frame: FramePin, queue: u64) {
        frame.set_position((self.front + self.frames.len() as u64) | queue);
        self.bytes += frame.size();
        self.frames.push_back(Some(frame));
    }

    fn pop(&mut self) -> Option<FramePin> {
        while let Some(front) = self.frames.pop_front() {
            self.front += 1;
            if let Some(frame) = front {
                self.bytes -= frame.size();
                return Some(frame);
            }
            self.holes -= 1;
        }
        None
    }

    fn remove(&mut self, position: u64, queue: u64) -> Option<FramePin> {
        let index = usize::try_from((position & !MAIN).checked_sub(self.front)?).ok()?;
        let frame = self.frames.get_mut(index)?.take()?;
        self.bytes -= frame.size();
        self.holes += 1;
        if self.holes > 32 && self.holes > self.frames.len() / 2 {
            let frames = std::mem::take(&mut self.frames);
            (self.holes, self.bytes) = (0, 0);
            frames.into_iter().flatten().for_each(|frame| self.push(frame, queue));
        }
        Some(frame)
    }
}

/// Queues and capacity of one shard.
#[derive(Debug)]
pub(super) struct Shard {
    capacity: u64,
    small: Fifo,
    main: Fifo,
    /// Bytes that left the small queue unused: the clock of the ghost queue.
    ghost_clock: u64,
}

impl Shard {
    pub(super) fn new(capacity: u64) -> Self {
        Self { capacity, small: Fifo::default(), main: Fifo::default(), ghost_clock: 0 }
    }

    pub(super) fn set_capacity(&mut self, capacity: u64, retired: &mut Vec<FramePin>) {
        self.capacity = capacity;
        self.shrink(retired);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.small.bytes + self.main.bytes
    }

    /// Whether a frame of this size is kept: a huge one would evict everything else.
    pub(super) fn admits(&self, size: u64) -> bool {
        size <= self.capacity / 4
    }

    /// Takes a frame whose slot held the number `ghost`.
    pub(super) fn insert(&mut self, frame: FramePin, ghost: u64, retired: &mut Vec<FramePin>) {
        let left = ghost >> 1;
        let came_back = left != 0 && self.ghost_clock.saturating_sub(left) < self.capacity;
        // Makes room first, so that the new frame does not evict itself.
        self.shrink_to(self.capacity.saturating_sub(frame.size()), retired);
        if came_back {
            self.main.push(frame, MAIN);
        } else {
            self.small.push(frame, 0);
        }
    }

    /// Evicts until the frames fit.
    pub(super) fn shrink(&mut self, retired: &mut Vec<FramePin>) {
        self.shrink_to(self.capacity, retired);
    }

    fn shrink_to(&mut self, limit: u64, retired: &mut Vec<FramePin>) {
        while self.bytes() > limit {
            let from_small = self.small.bytes > self.capacity / 10 || self.main.bytes == 0;
            let queue = if from_small { &mut self.small } else { &mut self.main };
            let Some(frame) = queue.pop() else { return };
            // A used frame gets another round. Each round clears a bit that only readers set, so
            // this ends.
            if frame.take_used() {
                self.main.push(frame, MAIN);
                continue;
            }
            let mut ghost = 1;
            if from_small {
                self.ghost_clock += frame.size();
                ghost = self.ghost_clock << 1 | 1;
            }
            if let Some(slot) = frame.home() {
                slot.vacate(ghost);
            }
            retired.push(frame);
        }
    }

    pub(super) fn remove(&mut self, position: u64) -> Option<FramePin> {
        if position & MAIN != 0 {
            self.main.remove(position, MAIN)
        } else {
            self.small.remove(position, 0)
        }
    }
}
