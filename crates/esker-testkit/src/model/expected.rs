//! What an iterator must show.

use super::writes::Pair;
use std::ops::Range;

/// A key and what it may show; it is one thing only, unless a compaction filter may have been asked
/// about the key.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) key: Vec<u8>,
    pub(super) shown: Vec<Option<Pair>>,
}

impl Line {
    /// A key that shows this.
    pub(super) fn certain(pair: &Pair) -> Self {
        Self { key: pair.0.clone(), shown: vec![Some(pair.clone())] }
    }

    /// Whether the key may show what was found. From then on it must show that.
    fn take(&mut self, found: Option<(&[u8], &[u8])>) -> bool {
        let fits = |shown: &Option<Pair>| {
            shown.as_ref().map(|(key, value)| (&key[..], &value[..])) == found
        };
        let right = self.shown.iter().any(fits);
        if right {
            self.shown.retain(fits);
        }
        right
    }
}

/// Where a cursor is sent.
#[derive(Clone, Copy)]
pub enum To<'a> {
    /// To the first entry.
    First,
    /// To the last entry.
    Last,
    /// To the first entry that is not before a place.
    From(&'a dyn Fn(&[u8]) -> bool),
    /// To the last entry that is not behind a place.
    UpTo(&'a dyn Fn(&[u8]) -> bool),
    /// To the next entry.
    Next,
    /// To the previous entry.
    Prev,
}

/// What an iterator must still show, from both ends. What it has shown once it must show again.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    lines: Vec<Line>,
    front: usize,
    back: usize,
}

impl Expected {
    /// All of these keys.
    pub(super) fn of(lines: Vec<Line>) -> Self {
        let back = lines.len();
        Self { lines, front: 0, back }
    }

    /// Only the keys that begin with this.
    pub fn with_prefix(self, prefix: &[u8]) -> Self {
        let mut lines = self.lines;
        lines.retain(|line| line.key.starts_with(prefix));
        Self::of(lines)
    }

    /// Takes what an iterator has found at one end. Whether that is right.
    pub fn take(&mut self, forward: bool, found: Option<(&[u8], &[u8])>) -> bool {
        let Some(met) = self.meet(self.front..self.back, forward, found) else { return false };
        if forward {
            self.front = met.map_or(self.back.max(self.front), |at| at + 1);
        } else {
            self.back = met.unwrap_or(self.front.min(self.back));
        }
        true
    }

    /// Where among these lines stands who goes through them in one direction and shows what was found; nowhere if
    /// nothing was found. `None`: that cannot be.
    fn meet(
        &mut self,
        mut range: Range<usize>,
        forward: bool,
        found: Option<(&[u8], &[u8])>,
    ) -> Option<Option<usize>> {
        while let Some(at) = if forward { range.next() } else { range.next_back() } {
            let line = &mut self.lines[at];
            if found.is_some() && line.take(found) {
                return Some(Some(at));
            }
            // Keys that were passed over show nothing.
            if !line.take(None) {
                return None;
            }
        }
        found.is_none().then_some(None)
    }

    /// Takes what a cursor shows after a move from where it stood. Where it stands now; `None`: that is wrong.
    pub fn follow(
        &mut self,
        stood: Option<usize>,
        to: To<'_>,
        found: Option<(&[u8], &[u8])>,
    ) -> Option<Option<usize>> {
        let (lines, end) = (&self.lines, self.lines.len());
        let (range, forward) = match (to, stood) {
            (To::First, _) => (0..end, true),
            (To::Last, _) => (0..end, false),
            (To::From(is_before), _) => {
                (lines.partition_point(|line| is_before(&line.key))..end, true)
            }
            (To::UpTo(is_behind), _) => {
                (0..lines.partition_point(|line| !is_behind(&line.key)), false)
            }
            (To::Next, Some(at)) => (at + 1..end, true),
            (To::Prev, Some(at)) => (0..at, false),
            // A cursor on no entry stays there.
            (To::Next | To::Prev, None) => (0..0, true),
        };
        self.meet(range, forward, found)
    }

    /// Places the front on the first key that does not lie before.
    pub fn seek(&mut self, lies_before: impl Fn(&[u8]) -> bool) {
        self.front = self.lines.partition_point(|line| lies_before(&line.key));
    }

    /// Where it stands, for people.
    pub fn told(&self) -> String {
        let key = |at: usize| self.lines.get(at).map(|line| line.key.escape_ascii().to_string());
        let (front, back) = (key(self.front), self.back.checked_sub(1).and_then(key));
        format!("{}..{} of {}: {front:?} to {back:?}", self.front, self.back, self.lines.len())
    }
}
