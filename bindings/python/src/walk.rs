//! Walking over a range of keys in both directions.
//!
//! A walk stands in a gap: before the first entry of its range, behind the last one, or between
//! two. [`Walk::forward`] returns the entry behind the gap and moves the gap behind it;
//! [`Walk::backward`] the other way round. So each undoes the other, as in plyvel. The cursor
//! stands on one of the two neighbours of the gap, and [`Place`] says on which.

use crate::errors::Result;
use crate::order::PyOrder;
use esker::Cursor;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// A range of keys.
#[derive(Clone, Default)]
pub(crate) struct Range {
    pub(crate) start: Option<Vec<u8>>,
    pub(crate) stop: Option<Vec<u8>>,
    pub(crate) include_start: bool,
    pub(crate) include_stop: bool,
}

impl Range {
    /// The bounds, as the engine takes them.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        fn bound(key: Option<&Vec<u8>>, included: bool) -> Bound<&[u8]> {
            match (key, included) {
                (None, _) => Bound::Unbounded,
                (Some(key), true) => Bound::Included(key),
                (Some(key), false) => Bound::Excluded(key),
            }
        }
        (
            bound(self.start.as_ref(), self.include_start),
            bound(self.stop.as_ref(), self.include_stop),
        )
    }
}

/// Where the gap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before everything in the range.
    Start,
    /// Just before the entry that the cursor stands on.
    Before,
    /// Just behind the entry that the cursor stands on.
    Behind,
    /// Behind everything in the range.
    Stop,
}

/// A position in a range of keys.
pub(crate) struct Walk {
    cursor: Cursor,
    order: Option<Arc<PyOrder>>,
    range: Range,
    place: Place,
}

/// A key and its value, until the walk moves.
type Entry<'a> = (&'a [u8], &'a [u8]);

impl Walk {
    /// A walk that stands at the start.
    pub(crate) fn new(cursor: Cursor, order: Option<Arc<PyOrder>>, range: Range) -> Self {
        Self { cursor, order, range, place: Place::Start }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Result<Ordering> {
        match &self.order {
            None => Ok(a.cmp(b)),
            Some(order) => order.try_compare(a, b),
        }
    }

    /// Whether a key lies before the range.
    fn too_small(&self, key: &[u8]) -> Result<bool> {
        let Some(start) = &self.range.start else { return Ok(false) };
        let side = self.compare(key, start)?;
        Ok(side.is_lt() || (side.is_eq() && !self.range.include_start))
    }

    /// Whether a key lies behind the range.
    fn too_large(&self, key: &[u8]) -> Result<bool> {
        let Some(stop) = &self.range.stop else { return Ok(false) };
        let side = self.compare(key, stop)?;
        Ok(side.is_gt() || (side.is_eq() && !self.range.include_stop))
    }

    /// Moves to the start of the range.
    pub(crate) fn go_to_start(&mut self) {
        self.place = Place::Start;
    }

    /// Moves behind the end of the range.
    pub(crate) fn go_to_stop(&mut self) {
        self.place = Place::Stop;
    }

    /// Moves to just before the first entry of the range whose key is not below `key`; a key
    /// behind the range counts as its stop, which may lie in it.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        let key = match &self.range.stop {
            Some(stop) if self.compare(key, stop)?.is_gt() => stop,
            _ => key,
        };
        // In an empty range the stop, too, may lie before the start.
        if self.too_small(key)? {
            self.place = Place::Start;
            return Ok(());
        }
        self.cursor.seek(key)?;
        let stands = self.cursor.valid() && !self.too_large(self.cursor.key())?;
        self.place = if stands { Place::Before } else { Place::Stop };
        Ok(())
    }

    /// Moves to the gap on one side of an entry that is there.
    pub(crate) fn beside(&mut self, key: &[u8], behind: bool) -> Result<()> {
        self.cursor.seek(key)?;
        self.place = if behind { Place::Behind } else { Place::Before };
        Ok(())
    }

    fn first(&mut self) -> Result<()> {
        let Some(start) = &self.range.start else { return Ok(self.cursor.seek_to_first()?) };
        self.cursor.seek(start)?;
        if self.cursor.valid() && self.too_small(self.cursor.key())? {
            self.cursor.next()?;
        }
        Ok(())
    }

    fn last(&mut self) -> Result<()> {
        let Some(stop) = &self.range.stop else { return Ok(self.cursor.seek_to_last()?) };
        self.cursor.seek(stop)?;
        if !self.cursor.valid() {
            self.cursor.seek_to_last()?;
        } else if self.too_large(self.cursor.key())? {
            self.cursor.prev()?;
        }
        Ok(())
    }

    /// Whether the cursor stands on an entry. After a failed move it does not, and that must not
    /// pass for an end.
    fn stands(&self) -> Result<bool> {
        match self.cursor.error() {
            Some(error) => Err(error.clone().into()),
            None => Ok(self.cursor.valid()),
        }
    }

    /// The entry behind the gap; the gap is then behind it.
    pub(crate) fn forward(&mut self) -> Result<Option<Entry<'_>>> {
        match self.place {
            Place::Start => self.first()?,
            Place::Before => {}
            Place::Behind => self.cursor.next()?,
            Place::Stop => return Ok(None),
        }
        if !self.stands()? || self.too_large(self.cursor.key())? {
            self.place = Place::Stop;
            return Ok(None);
        }
        self.place = Place::Behind;
        Ok(Some((self.cursor.key(), self.cursor.value())))
    }

    /// The entry before the gap; the gap is then before it.
    pub(crate) fn backward(&mut self) -> Result<Option<Entry<'_>>> {
        match self.place {
            Place::Start => return Ok(None),
            Place::Before => self.cursor.prev()?,
            Place::Behind => {}
            Place::Stop => self.last()?,
        }
        if !self.stands()? || self.too_small(self.cursor.key())? {
            self.place = Place::Start;
            return Ok(None);
        }
        self.place = Place::Before;
        Ok(Some((self.cursor.key(), self.cursor.value())))
    }
}
