//! Walking over fragments in key order.
//!
//! A sweep moves over the fragments from left to right and keeps the set of tombstones that cover
//! the present one. It costs O(log n) per tombstone; listing all sequence numbers of all fragments
//! costs extra.

use super::fragments::{Fragment, Fragments, Span};
use crate::base::Seq;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The state of a sweep.
struct Sweep<'a> {
    fragments: &'a Fragments,
    /// The spans, sorted by first fragment, and how many of them have begun.
    by_first: Vec<Span>,
    begun: usize,
    /// The ends of the spans that cover the present fragment.
    ends: BinaryHeap<Reverse<(u32, Seq)>>,
    /// How often each sequence number covers the present fragment.
    active: BTreeMap<Seq, u32>,
    next: u32,
}

impl<'a> Sweep<'a> {
    fn new(fragments: &'a Fragments) -> Self {
        let mut by_first = fragments.spans.clone();
        by_first.sort_unstable_by_key(|span| span.first);
        Self {
            fragments,
            by_first,
            begun: 0,
            ends: BinaryHeap::new(),
            active: BTreeMap::new(),
            next: 0,
        }
    }

    /// Goes to the next fragment and returns its number; `None` after the last.
    fn advance(&mut self) -> Option<usize> {
        let present = self.next;
        if self.fragments.is_empty() || present as usize > self.fragments.bounds.len() {
            return None;
        }
        while let Some(Reverse((end, seq))) = self.ends.peek().copied().filter(|e| e.0.0 <= present)
        {
            debug_assert!(end <= present);
            self.ends.pop();
            if let Some(count) = self.active.get_mut(&seq) {
                *count -= 1;
                if *count == 0 {
                    self.active.remove(&seq);
                }
            }
        }
        while let Some(span) = self.by_first.get(self.begun).filter(|span| span.first <= present) {
            *self.active.entry(span.seq.0).or_insert(0) += 1;
            self.ends.push(Reverse((span.last, span.seq.0)));
            self.begun += 1;
        }
        self.next += 1;
        Some(present as usize)
    }

    /// Appends, ascending, the present fragment's numbers that some reader needs: the newest, and
    /// the newest below each of the ascending `snapshots`. This costs one search per number or per
    /// snapshot, whichever are fewer.
    fn newest_of_stripes(&self, snapshots: &[Seq], out: &mut Vec<Seq>) {
        if snapshots.len() < self.active.len() {
            let visible = |snapshot: &Seq| self.active.range(..snapshot).next_back();
            out.extend(snapshots.iter().filter_map(visible).map(|(seq, _)| *seq));
            out.extend(self.active.last_key_value().map(|(seq, _)| *seq));
            out.dedup();
            return;
        }
        let mut stripe = None;
        for seq in self.active.keys().rev() {
            let end = snapshots.partition_point(|snapshot| snapshot <= seq);
            if stripe != Some(end) {
                out.push(*seq);
            }
            stripe = Some(end);
        }
        out.reverse();
    }
}

/// An iterator over the covered fragments, in key order. See [`Fragments::iter`].
pub struct FragmentIter<'a> {
    sweep: Sweep<'a>,
}

impl<'a> Iterator for FragmentIter<'a> {
    type Item = Fragment<'a>;

    fn next(&mut self) -> Option<Fragment<'a>> {
        loop {
            let at = self.sweep.advance()?;
            if !self.sweep.active.is_empty() {
                let fragments = self.sweep.fragments;
                let seqs = self.sweep.active.keys().rev().copied().collect();
                return Some(Fragment {
                    start: fragments.start_of(at),
                    end: fragments.end_of(at),
                    seqs,
                });
            }
        }
    }
}

impl Fragments {
    /// The fragments that at least one tombstone covers, in key order.
    pub fn iter(&self) -> FragmentIter<'_> {
        FragmentIter { sweep: Sweep::new(self) }
    }

    /// Drops tombstones that no reader needs: per fragment it keeps only the newest tombstone, and
    /// for each of the `snapshots` the newest with a sequence number below it.
    pub fn compact(&self, snapshots: &[Seq]) -> Self {
        let mut snapshots = snapshots.to_vec();
        snapshots.sort_unstable();
        let mut sweep = Sweep::new(self);
        let mut open: BTreeMap<Seq, u32> = BTreeMap::new();
        let mut spans = Vec::new();
        let mut kept = Vec::new();
        let mut close = |seq: Seq, first: u32, last: u32| {
            spans.push(Span { seq: Reverse(seq), first, last });
        };
        while let Some(at) = sweep.advance() {
            let at = at as u32;
            kept.clear();
            sweep.newest_of_stripes(&snapshots, &mut kept);
            // A kept tombstone that continues from the previous fragment stays one span.
            open.retain(|seq, first| {
                let goes_on = kept.binary_search(seq).is_ok();
                if !goes_on {
                    close(*seq, *first, at);
                }
                goes_on
            });
            for seq in &kept {
                open.entry(*seq).or_insert(at);
            }
        }
        for (seq, first) in open {
            close(seq, first, sweep.next);
        }
        let bounds: Vec<&[u8]> = self.bounds.iter().map(|bound| &**bound).collect();
        Self::with_used_bounds(&bounds, spans)
    }
}
