//! The queue between the parts of the engine and the monitor thread.
//!
//! 1. [`EventBus::emit`] takes one short lock, does no I/O and calls no code of the program. If
//!    nobody listens it returns at once.
//! 2. The queue holds at most [`QUEUE_MAX`] events. Later ones are dropped; each takes its number,
//!    so a gap in the numbers shows where events are missing, and an event says how many.
//! 3. Of a kind that may come in floods, a bounded number is passed on per second. An event in a
//!    later second, or [`EventBus::take`], says how many were not.

use super::describe::message_of;
use super::kind::{Event, EventKind};
use crate::base::{Clock, SystemClock};
use crate::error::Error;
use crate::sync::Signal;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most events that wait to be taken.
pub const QUEUE_MAX: usize = 1024;

/// Where the parts of the engine put events, and the monitor takes them.
#[derive(Debug)]
pub struct EventBus {
    /// Whether anybody takes events.
    listened: bool,
    queue: Mutex<Queue>,
    signal: Signal,
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    /// The number of the last event.
    last: u64,
    /// Events that found no place, since an event last said so.
    lost: u64,
    windows: Vec<Window>,
}

/// How many events of one kind came in the present second.
#[derive(Debug)]
struct Window {
    kind: &'static str,
    second: u64,
    passed: u32,
    suppressed: u64,
}

impl EventBus {
    /// An empty queue. `listened`: whether anybody takes events; if not, all are ignored.
    pub fn new(listened: bool) -> Self {
        let (queue, signal, ended) = Default::default();
        Self { listened, queue, signal, ended }
    }

    /// Puts an event into the queue.
    pub fn emit(&self, kind: EventKind) {
        if !self.listened {
            return;
        }
        let time = SystemClock.now_millis();
        self.queue.lock().put(time, kind);
        self.signal.notify();
    }

    /// Puts the event about an error into the queue. `event` gets the kind of the error and its
    /// message.
    #[cold]
    pub fn emit_error(&self, error: &Error, event: impl FnOnce(&'static str, String) -> EventKind) {
        self.emit(event(error.kind().as_str(), message_of(error)));
    }

    /// Logs what failed, and puts the event about it into the queue, as [`Self::emit_error`].
    #[cold]
    pub fn warn(
        &self,
        failed: impl Display,
        error: &Error,
        event: impl FnOnce(&'static str, String) -> EventKind,
    ) {
        log::warn!("{failed}: {error}");
        self.emit_error(error, event);
    }

    /// Reports that files to which nothing refers could not be removed.
    pub fn files_left(&self, what: &'static str, error: &Error) {
        self.warn(format_args!("{what} could not be removed yet"), error, |error, message| {
            EventKind::FilesLeft { what, error, message }
        });
    }

    /// Whether anybody takes events. Callers for whom it costs something to make an event ask this
    /// first.
    pub fn is_listened(&self) -> bool {
        self.listened
    }

    /// Moves the waiting events to the end of `events`. Returns whether there is more to say in the
    /// next second, about suppressed events. `end`: everything is said now.
    pub fn take(&self, events: &mut Vec<Event>, end: bool) -> bool {
        let time = SystemClock.now_millis();
        let mut queue = self.queue.lock();
        events.extend(queue.events.drain(..));
        // There is room now.
        queue.tell_lost(time);
        queue.tell_suppressed(time, end);
        events.extend(queue.events.drain(..));
        queue.windows.iter().any(|window| window.suppressed > 0)
    }

    /// The signal that there are events.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// No more events will come: the monitor takes what is there and ends.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.signal.notify();
    }

    /// Whether no more events will come.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Queue {
    fn put(&mut self, time: u64, kind: EventKind) {
        if !self.admits(time, &kind) {
            return;
        }
        self.tell_lost(time);
        self.push(time, kind);
    }

    fn push(&mut self, time: u64, kind: EventKind) {
        self.last += 1;
        if self.events.len() >= QUEUE_MAX {
            self.lost += 1;
        } else {
            self.events.push_back(Event { sequence: self.last, time, kind });
        }
    }

    /// Puts in the queue how many events found no place, if there is one now.
    fn tell_lost(&mut self, time: u64) {
        if self.lost > 0 && self.events.len() < QUEUE_MAX {
            let count = std::mem::take(&mut self.lost);
            self.push(time, EventKind::EventsLost { count, place: "queue" });
        }
    }

    /// Whether an event of this kind is within the limit of its kind.
    fn admits(&mut self, time: u64, kind: &EventKind) -> bool {
        let (name, limit, second) = (kind.name(), kind.per_second(), time / 1000);
        if limit == u32::MAX {
            return true;
        }
        self.tell_suppressed(time, false);
        let at = self.windows.iter().position(|window| window.kind == name);
        let at = at.unwrap_or_else(|| {
            self.windows.push(Window { kind: name, second, passed: 0, suppressed: 0 });
            self.windows.len() - 1
        });
        let Some(window) = self.windows.get_mut(at) else { return true };
        if window.second != second {
            (window.second, window.passed) = (second, 0);
        }
        if window.passed < limit {
            window.passed += 1;
            return true;
        }
        window.suppressed += 1;
        false
    }

    /// Puts in the queue how many events of earlier seconds were suppressed; `end`: of this one
    /// too.
    fn tell_suppressed(&mut self, time: u64, end: bool) {
        let second = time / 1000;
        let over = |window: &Window| window.suppressed > 0 && (end || window.second != second);
        while let Some(window) = self.windows.iter_mut().find(|window| over(window)) {
            let count = std::mem::take(&mut window.suppressed);
            let kind = EventKind::EventsSuppressed { kind: window.kind, count };
            self.push(time, kind);
        }
    }
}
