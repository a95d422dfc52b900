//! Cutting a list at many bounds, in one walk.
//!
//! A flush gives every partition the tombstones that overlap it. Searching the whole list once per
//! partition costs partitions times tombstones. The cutter advances over the list and the
//! partitions together, so a cut costs one search plus the tombstones in it. Calls must come in
//! ascending order of keys.

use super::fragments::{Fragments, Span};
use super::tombstone::Hull;
use crate::base::KeyOrder;

/// Cuts a list into ascending intervals of keys. See the head of this module.
pub struct Cutter<'a> {
    fragments: &'a Fragments,
    /// The spans, sorted by first fragment, and how many of them have begun.
    by_first: Vec<Span>,
    begun: usize,
    /// The spans that have begun and may go on.
    active: Vec<Span>,
    /// The maximal intervals of fragments that tombstones cover, and how many were passed.
    covered: Vec<(u32, u32)>,
    passed: usize,
}

impl<'a> Cutter<'a> {
    /// A cutter at the beginning of `fragments`.
    pub fn new(fragments: &'a Fragments) -> Self {
        let mut by_first = fragments.spans.clone();
        by_first.sort_unstable_by_key(|span| span.first);
        let mut covered: Vec<(u32, u32)> = Vec::new();
        for span in &by_first {
            match covered.last_mut() {
                Some((_, last)) if span.first <= *last => *last = span.last.max(*last),
                _ => covered.push((span.first, span.last)),
            }
        }
        Self { fragments, by_first, begun: 0, active: Vec::new(), covered, passed: 0 }
    }

    /// The start of the first keys at or after `from` (`None`: from the beginning) that a tombstone
    /// covers; `None`: there are no such keys.
    pub fn next_start<'k, O: KeyOrder>(
        &mut self,
        order: &O,
        from: Option<&'k [u8]>,
    ) -> Option<Option<&'k [u8]>>
    where
        'a: 'k,
    {
        let at = self.fragments.fragment_of_start(order, from) as u32;
        while self.covered.get(self.passed).is_some_and(|(_, last)| *last <= at) {
            self.passed += 1;
        }
        let (first, _) = *self.covered.get(self.passed)?;
        Some(if first <= at { from } else { self.fragments.start_of(first as usize) })
    }

    /// The fragment that contains `from`.
    pub fn fragment<O: KeyOrder>(&self, order: &O, from: Option<&[u8]>) -> Hull<'a> {
        let at = self.fragments.fragment_of_start(order, from);
        (self.fragments.start_of(at), self.fragments.end_of(at))
    }

    /// The tombstones, cut to `low..high` (`None`: unbounded), which must not begin before the end
    /// of the previous interval.
    pub fn cut<O: KeyOrder>(
        &mut self,
        order: &O,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Fragments {
        let Some((first, last)) = self.fragments.within(order, low, high) else {
            return Fragments::default();
        };
        while let Some(span) = self.by_first.get(self.begun).filter(|span| span.first <= last) {
            self.active.push(*span);
            self.begun += 1;
        }
        self.active.retain(|span| span.last > first);
        self.fragments.cut_spans((first, last), low, high, self.active.iter().copied())
    }
}
