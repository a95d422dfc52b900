//! An iterator or a cursor, and what it must still show.

use crate::model::{Expected, Folded, To, is_folded};
use esker::{Comparator, Cursor, Iter};
use std::cmp::Ordering;

/// What walks.
pub(super) enum Shows {
    Iter(Iter),
    /// With the line on which it stands.
    Cursor(Cursor, Option<usize>),
}

/// An iterator or a cursor, and what it must still show.
pub(super) struct Walk {
    shows: Shows,
    slot: usize,
    expected: Expected,
}

impl Walk {
    /// What must show this.
    pub(super) fn new(shows: Shows, slot: usize, expected: Expected) -> Self {
        Self { shows, slot, expected }
    }

    /// The slot of which it shows a part.
    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// Whether it is a cursor.
    pub(super) fn is_cursor(&self) -> bool {
        matches!(self.shows, Shows::Cursor(..))
    }

    /// Moves one end, or the cursor, by some entries. A cursor that stands nowhere begins at the other end.
    pub(super) fn run(&mut self, forward: bool, count: usize) {
        if let Shows::Cursor(_, at) = &self.shows {
            let (begin, step) = if forward { (To::First, To::Next) } else { (To::Last, To::Prev) };
            let mut to = if at.is_some() { step } else { begin };
            for _ in 0..count {
                if !self.send(to, &[]) {
                    // It has come to the end, and stays there.
                    self.send(step, &[]);
                    return;
                }
                to = step;
            }
            return;
        }
        let Shows::Iter(iter) = &mut self.shows else { return };
        for _ in 0..count {
            let found = if forward { iter.next_entry() } else { iter.next_back_entry() };
            let found = found.unwrap_or_else(|e| panic!("iterator: {e}"));
            assert!(
                self.expected.take(forward, found),
                "slot {}, forward {forward}: key {:?}, not at {}",
                self.slot,
                found.map(|(key, _)| key.escape_ascii().to_string()),
                self.expected.told(),
            );
            if found.is_none() {
                return;
            }
        }
    }

    /// Places the front on the first key that does not lie before this one; a cursor that goes `back`, on the last
    /// that does not lie behind it.
    pub(super) fn seek(&mut self, key: &[u8], back: bool) {
        let folded = is_folded(self.slot);
        let order = |a: &[u8], b: &[u8]| {
            if folded { Folded.compare(a, b) } else { a.cmp(b) }
        };
        let is = |wanted: Ordering| move |have: &[u8]| order(have, key) == wanted;
        match &mut self.shows {
            Shows::Iter(iter) => {
                iter.seek(key).unwrap_or_else(|e| panic!("seek: {e}"));
                self.expected.seek(is(Ordering::Less));
            }
            Shows::Cursor(..) if back => _ = self.send(To::UpTo(&is(Ordering::Greater)), key),
            Shows::Cursor(..) => _ = self.send(To::From(&is(Ordering::Less)), key),
        }
    }

    /// Sends the cursor somewhere, to `key` if that is where it goes; whether it stands on an entry then.
    fn send(&mut self, to: To<'_>, key: &[u8]) -> bool {
        let Shows::Cursor(cursor, at) = &mut self.shows else { return false };
        let (how, moved) = match to {
            To::First => ("to the first", cursor.seek_to_first()),
            To::Last => ("to the last", cursor.seek_to_last()),
            To::From(_) => ("to a key", cursor.seek(key)),
            To::UpTo(_) => ("back to a key", cursor.seek_back(key)),
            To::Next => ("to the next", cursor.next()),
            To::Prev => ("to the previous", cursor.prev()),
        };
        moved.unwrap_or_else(|e| panic!("cursor, {how}: {e}"));
        let found = cursor.valid().then(|| (cursor.key(), cursor.value()));
        let Some(stands) = self.expected.follow(*at, to, found) else {
            panic!(
                "slot {}, a cursor {how} {}, from line {at:?}: key {:?}, not in {}",
                self.slot,
                key.escape_ascii(),
                found.map(|(key, _)| key.escape_ascii().to_string()),
                self.expected.told(),
            );
        };
        *at = stands;
        at.is_some()
    }
}
