//! What follows a scan: a wrapper around the cursor of each source.

use super::explanation::{Outcome, Step, StepSource};
use super::tally::Tally;
use crate::base::{Cursor, Kind, LaterValue, Seq};
use crate::error::Result;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Follows the cursors of one scan.
pub trait Watcher: Clone {
    /// A followed cursor.
    type Watched<C: Cursor + 'static>: Cursor + 'static;
    /// Follows the cursor of `source`.
    fn watch<C: Cursor + 'static>(
        &self,
        source: impl FnOnce() -> StepSource,
        cursor: C,
    ) -> Self::Watched<C>;
}

/// Follows nothing: the cursors stay what they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    type Watched<C: Cursor + 'static> = C;

    #[inline]
    fn watch<C: Cursor + 'static>(&self, _: impl FnOnce() -> StepSource, cursor: C) -> C {
        cursor
    }
}

/// Keeps a step for each source that the scan opens.
#[derive(Debug, Clone, Default)]
pub struct Watching(Rc<RefCell<Vec<Step>>>);

impl Watching {
    /// The steps so far.
    pub fn take(&self) -> Vec<Step> {
        self.0.take()
    }
}

impl Watcher for Watching {
    type Watched<C: Cursor + 'static> = Watched<C>;

    fn watch<C: Cursor + 'static>(
        &self,
        source: impl FnOnce() -> StepSource,
        cursor: C,
    ) -> Watched<C> {
        let mut steps = self.0.borrow_mut();
        let step = steps.len();
        steps.push(Step {
            source: source(),
            outcome: Outcome::Absent,
            blocks: Default::default(),
            bytes_read: 0,
            entries: 0,
            time: Duration::ZERO,
        });
        Watched { cursor, steps: Rc::clone(&self.0), step }
    }
}

/// A cursor that notes what each of its moves did.
#[derive(Debug)]
pub struct Watched<C> {
    cursor: C,
    steps: Rc<RefCell<Vec<Step>>>,
    step: usize,
}

impl<C: Cursor> Watched<C> {
    fn note(&mut self, go: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
        let (began, tally) = (Instant::now(), Tally::now());
        let moved = go(&mut self.cursor);
        let read = Tally::now().since(tally);
        if let Some(step) = self.steps.borrow_mut().get_mut(self.step) {
            step.time += began.elapsed();
            step.blocks += read.blocks;
            step.bytes_read += read.bytes;
            if self.cursor.valid() {
                step.entries += 1;
                step.outcome = Outcome::Done;
            }
        }
        moved
    }
}

impl<C: Cursor> Cursor for Watched<C> {
    fn valid(&self) -> bool {
        self.cursor.valid()
    }
    fn key(&self) -> &[u8] {
        self.cursor.key()
    }
    fn seq(&self) -> Seq {
        self.cursor.seq()
    }
    fn kind(&self) -> Kind {
        self.cursor.kind()
    }
    fn value(&self) -> &[u8] {
        self.cursor.value()
    }
    fn value_later(&self) -> Option<LaterValue> {
        self.cursor.value_later()
    }
    fn fetch_value(&mut self) -> Result<()> {
        self.note(C::fetch_value)
    }
    fn is_in_pieces(&self) -> bool {
        self.cursor.is_in_pieces()
    }
    fn shows_newest(&self) -> bool {
        self.cursor.shows_newest()
    }
    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.note(|cursor| cursor.seek(key, below))
    }
    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.note(|cursor| cursor.seek_before(key))
    }
    fn seek_waiting(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.note(|cursor| cursor.seek_waiting(key, below))
    }
    fn seek_to_first_waiting(&mut self) -> Result<()> {
        self.note(C::seek_to_first_waiting)
    }
    fn is_waiting(&self) -> bool {
        self.cursor.is_waiting()
    }
    fn held(&self) -> u64 {
        self.cursor.held()
    }
    fn take_buffer(&mut self) -> Vec<u8> {
        self.cursor.take_buffer()
    }
    fn let_go(&mut self) {
        self.cursor.let_go();
    }
    fn open(&mut self) -> Result<()> {
        self.note(C::open)
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.note(C::seek_to_first)
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.note(C::seek_to_last)
    }
    fn next(&mut self) -> Result<()> {
        self.note(C::next)
    }
    fn prev(&mut self) -> Result<()> {
        self.note(C::prev)
    }
}
