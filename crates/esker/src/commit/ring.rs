//! Reserve, complete, publish: the lock-free heart of the pipeline.
//!
//! Two words hold the state. The *reserve word* packs a closed bit, the next ticket and the next
//! position; one compare-and-swap on it reserves both. The *head word* packs a waiting bit, the
//! first ticket that is not published and the visible position. Between them lies a ring of
//! slots: the holder of a ticket completes it by storing the end of its record in its slot, and
//! then moves the head over all slots that are complete.
//!
//! A slot is never cleared. A value belongs to the present round exactly if it is greater than
//! the head's position, because positions only grow. A ticket is handed out only when its slot's
//! earlier round was published, so at most `slots - 1` tickets are in flight.
//!
//! Why no completion is lost: a completer stores its slot, passes a sequentially consistent
//! fence, and then looks at the head's slot. Of two completers the one whose fence is later sees
//! both stores, and moves the head over both. Why no sleeper is lost: a sleeper sets the waiting
//! bit in the head word itself, under the parking lock, by the same operation that reads the
//! position; a thread that moves the head clears the bit by compare-and-swap, and must then wake.

use crate::base::Seq;
use crate::sync::primitives::{AtomicBool, AtomicU64, Ordering, Parking, fence};

const FLAG: u64 = 1 << 63;
const TICKET_SHIFT: u32 = 53;
const TICKETS: u64 = 1 << 10;
const POSITION_MASK: u64 = (1 << TICKET_SHIFT) - 1;
/// Positions are multiples of 8; the words hold them divided by it.
const UNIT: u64 = 8;

fn pack(ticket: u64, position: Seq) -> u64 {
    ((ticket % TICKETS) << TICKET_SHIFT) | (position / UNIT)
}

fn ticket_of(word: u64) -> u64 {
    (word & !FLAG) >> TICKET_SHIFT
}

fn position_of(word: u64) -> Seq {
    (word & POSITION_MASK) * UNIT
}

/// A reserved stretch of the log. It must be completed, or the ring stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    pub(crate) start: Seq,
    pub(crate) end: Seq,
    /// What was visible when the stretch was reserved.
    pub(crate) published: Seq,
}

/// Why nothing was reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The prepared space ends before this position.
    Space { end: Seq },
    /// All slots are taken; try again when more than this is visible.
    Slots { visible: Seq },
    /// The gate is closed.
    Gate,
}

/// See the module's description.
pub(crate) struct Ring {
    reserve: CacheLine<AtomicU64>,
    head: CacheLine<AtomicU64>,
    /// End of the prepared space.
    limit: CacheLine<AtomicU64>,
    stopped: AtomicBool,
    slots: Box<[AtomicU64]>,
    parking: Parking,
    gate: Parking,
}

/// Keeps a word that all threads write off the cache lines of its neighbours.
#[repr(align(128))]
struct CacheLine<T>(T);

impl Ring {
    /// A ring that starts at `position`; `slots` is a power of two, at most 1024.
    pub(crate) fn new(slots: usize, position: Seq) -> Self {
        assert!(slots.is_power_of_two() && slots as u64 <= TICKETS);
        assert!(position.is_multiple_of(UNIT));
        Self {
            reserve: CacheLine(AtomicU64::new(pack(0, position))),
            head: CacheLine(AtomicU64::new(pack(0, position))),
            limit: CacheLine(AtomicU64::new(position)),
            stopped: AtomicBool::new(false),
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            parking: Parking::new(),
            gate: Parking::new(),
        }
    }

    fn slot(&self, ticket: u64) -> &AtomicU64 {
        &self.slots[self.slot_index(ticket)]
    }

    /// Which slot belongs to a ticket.
    pub(crate) fn slot_index(&self, ticket: u64) -> usize {
        ticket as usize & (self.slots.len() - 1)
    }

    /// How many slots there are.
    #[cfg(not(loom))]
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Reserves `len` bytes, a multiple of 8.
    #[inline]
    pub(crate) fn try_reserve(&self, len: u64) -> Result<Ticket, Refused> {
        debug_assert!(len.is_multiple_of(UNIT) && len > 0);
        let mut word = self.reserve.0.load(Ordering::Acquire);
        loop {
            if word & FLAG != 0 {
                return Err(Refused::Gate);
            }
            let (number, start) = (ticket_of(word), position_of(word));
            // Seeded: now and then two records share their last and first bytes.
            let len = if bug!("commit_reservations_overlap") && number % 64 == 63 {
                len - UNIT
            } else {
                len
            };
            let end = start + len;
            if end > self.limit.0.load(Ordering::Acquire) {
                return Err(Refused::Space { end });
            }
            // The head is read after the reserve word. If the head has passed the position in that
            // word, the word is stale, and the swap below fails.
            let head = self.head.0.load(Ordering::Acquire);
            let in_flight = number.wrapping_sub(ticket_of(head)) % TICKETS;
            if in_flight >= self.slots.len() as u64 - 1 {
                let now = self.reserve.0.load(Ordering::Acquire);
                if now == word {
                    return Err(Refused::Slots { visible: position_of(head) });
                }
                word = now;
                continue;
            }
            let next = pack(number + 1, end);
            match self.reserve.0.compare_exchange_weak(
                word,
                next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(Ticket { number, start, end, published: position_of(head) }),
                Err(now) => word = now,
            }
        }
    }

    /// Marks a ticket complete, and publishes what can be published.
    #[inline]
    pub(crate) fn complete(&self, ticket: &Ticket) {
        self.slot(ticket.number).store(ticket.end, Ordering::Release);
        fence(Ordering::SeqCst);
        let mut sleepers = false;
        let mut head = self.head.0.load(Ordering::Acquire);
        loop {
            let number = ticket_of(head);
            let end = self.slot(number).load(Ordering::Acquire);
            if end <= position_of(head) {
                break;
            }
            let next = pack(number + 1, end);
            match self.head.0.compare_exchange_weak(head, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    sleepers |= head & FLAG != 0;
                    head = next;
                }
                Err(now) => head = now,
            }
        }
        // Seeded: writers that wait for an earlier one sleep for ever.
        let sleepers = sleepers && !bug!("commit_sleepers_not_woken");
        if sleepers {
            self.parking.notify_all();
        }
    }

    /// Everything before this position is published.
    #[inline]
    pub(crate) fn visible(&self) -> Seq {
        position_of(self.head.0.load(Ordering::Acquire))
    }

    /// Where the next record goes.
    pub(crate) fn reserved(&self) -> Seq {
        position_of(self.reserve.0.load(Ordering::Acquire))
    }

    /// End of the prepared space.
    #[cfg(not(loom))]
    pub(crate) fn limit(&self) -> Seq {
        self.limit.0.load(Ordering::Acquire)
    }

    /// Opens the space up to `limit` for reservation.
    pub(crate) fn raise_limit(&self, limit: Seq) {
        self.limit.0.fetch_max(limit, Ordering::AcqRel);
    }

    /// Waits until everything before `upto` is published; false if the ring was stopped before.
    #[inline]
    pub(crate) fn wait_visible(&self, upto: Seq) -> bool {
        if self.visible() >= upto {
            return true;
        }
        self.wait_visible_slow(upto)
    }

    #[cold]
    fn wait_visible_slow(&self, upto: Seq) -> bool {
        // A predecessor usually completes within the time of one copy. If it was descheduled,
        // spinning takes the CPU time that it needs, so this soon turns into sleep.
        #[cfg(not(loom))]
        for round in 0..64 {
            if self.visible() >= upto {
                return true;
            }
            if round < 32 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        self.parking.wait_until(|| {
            if self.stopped.load(Ordering::Acquire) {
                return true;
            }
            position_of(self.head.0.fetch_or(FLAG, Ordering::AcqRel)) >= upto
        });
        self.visible() >= upto
    }

    /// Ends all waiting, now and later: some ticket will never be completed.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.parking.notify_all();
    }

    /// Closes the gate, runs `f` with the position that separates earlier from later writes, and
    /// opens the gate again, also if `f` unwinds.
    pub(crate) fn seal<R>(&self, f: impl FnOnce(Seq) -> R) -> R {
        struct Open<'a>(&'a Ring);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                self.0.reserve.0.fetch_and(!FLAG, Ordering::AcqRel);
            }
        }
        let gate = self.gate.lock();
        let word = self.reserve.0.fetch_or(FLAG, Ordering::AcqRel);
        let reopen = (word & FLAG == 0).then_some(Open(self));
        let result = f(position_of(word));
        drop(reopen);
        drop(gate);
        result
    }

    /// Takes back prepared space that is not reserved: everything from `limit` on. `limit` is
    /// called with the position up to which space will then be reserved. `len` bytes are reserved
    /// in the same step; the caller makes them a void, so that a thread that read the old limit
    /// cannot reserve by it. `None`: nothing was changed.
    pub(crate) fn retreat(
        &self,
        len: u64,
        limit: impl FnOnce(Seq) -> Option<Seq>,
    ) -> Option<Ticket> {
        let _gate = self.gate.lock();
        let word = self.reserve.0.fetch_or(FLAG, Ordering::AcqRel);
        if word & FLAG != 0 {
            return None;
        }
        let (number, start) = (ticket_of(word), position_of(word));
        let head = self.head.0.load(Ordering::Acquire);
        let in_flight = number.wrapping_sub(ticket_of(head)) % TICKETS;
        let free = in_flight < self.slots.len() as u64 - 1;
        let end = start + len;
        let limit = free.then(|| limit(end)).flatten().filter(|limit| *limit >= end);
        let Some(limit) = limit else {
            self.reserve.0.store(word, Ordering::Release);
            return None;
        };
        self.limit.0.store(limit, Ordering::Release);
        // The reserve word gets a value that it never had before, so every swap under way fails.
        self.reserve.0.store(pack(number + 1, end), Ordering::Release);
        Some(Ticket { number, start, end, published: position_of(head) })
    }

    /// Closes the gate permanently. Returns the position where the log ends, and whether this call
    /// closed the gate.
    pub(crate) fn shut(&self) -> (Seq, bool) {
        let gate = self.gate.lock();
        let word = self.reserve.0.fetch_or(FLAG, Ordering::AcqRel);
        drop(gate);
        (position_of(word), word & FLAG == 0)
    }

    /// Waits until the thread that seals is done; false if the gate stays closed.
    pub(crate) fn wait_gate(&self) -> bool {
        let gate = self.gate.lock();
        let open = self.reserve.0.load(Ordering::Acquire) & FLAG == 0;
        drop(gate);
        open
    }
}
