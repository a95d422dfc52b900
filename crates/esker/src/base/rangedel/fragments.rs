//! A fragmented list of range tombstones: lookups, cuts and the stored form.
//!
//! The head of [`rangedel`](super) gives the idea and the invariants. [`Fragments`] holds the
//! bounds and the tombstones as spans of fragments; the tree over the fragments answers which
//! tombstone is the newest over a key.

use super::tombstone::{Hull, RangeTombstone};
use crate::base::codec::{DecodeError, Decoded, Reader, put_bytes, put_varint};
use crate::base::{KeyOrder, SEQ_MAX, Seq, limits};
use std::cmp::Reverse;

/// An interval of the key space that the same tombstones cover completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a, S = Vec<Seq>> {
    /// Its first key; `None`: no lower bound.
    pub start: Option<&'a [u8]>,
    /// The first key after it; `None`: no upper bound.
    pub end: Option<&'a [u8]>,
    /// The sequence numbers of the tombstones that cover it, from new to old.
    pub seqs: S,
}

/// One tombstone over the fragments `first..last`. The order of the fields is invariant 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub seq: Reverse<Seq>,
    pub first: u32,
    pub last: u32,
}

/// A list of range tombstones, cut into fragments: see the head of [`rangedel`](super).
///
/// It belongs to one keyspace; every call must pass the order with which the list was built.
#[derive(Debug, Clone, Default)]
pub struct Fragments {
    pub(super) bounds: Vec<Box<[u8]>>,
    pub(super) spans: Vec<Span>,
    tree: Tree,
}

impl PartialEq for Fragments {
    fn eq(&self, other: &Self) -> bool {
        self.bounds == other.bounds && self.spans == other.spans
    }
}

impl Eq for Fragments {}

impl Fragments {
    /// Fragments a list. Ranges that hold no key (`start >= end`) are left out, and so are
    /// tombstones with sequence number 0, which delete nothing.
    pub fn build<O: KeyOrder>(order: &O, mut tombstones: Vec<RangeTombstone>) -> Self {
        tombstones.retain(|tombstone| {
            let empty = match (&tombstone.start, &tombstone.end) {
                (Some(start), Some(end)) => order.compare(start, end).is_ge(),
                _ => false,
            };
            !empty && tombstone.seq > 0
        });
        // Seeded: a range delete also deletes the key at its end.
        bug!(
            "base_range_end_included",
            tombstones.iter_mut().flat_map(|t| &mut t.end).for_each(|end| end.push(0))
        );
        let keys = tombstones.iter().flat_map(|t| [&t.start, &t.end]).flatten();
        let mut keys: Vec<&[u8]> = keys.map(Vec::as_slice).collect();
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup_by(|a, b| order.compare(a, b).is_eq());
        let place =
            |key: &Vec<u8>| keys.partition_point(|bound| order.compare(bound, key).is_le()) as u32;
        let spans = tombstones.iter().map(|tombstone| Span {
            seq: Reverse(tombstone.seq),
            first: tombstone.start.as_ref().map_or(0, place),
            last: tombstone.end.as_ref().map_or(keys.len() as u32 + 1, place),
        });
        Self::assemble(spans.collect(), keys.iter().map(|key| Box::from(*key)).collect())
    }

    /// Fragments ranges that are to be ingested, whose sequence number is not known yet. Their stored form
    /// says 0 for it ([`Self::decode_at`]), and this list covers nothing.
    pub fn unnumbered<O: KeyOrder>(
        order: &O,
        ranges: impl IntoIterator<Item = (Option<Vec<u8>>, Option<Vec<u8>>)>,
    ) -> Self {
        let tombstone = |(start, end)| RangeTombstone { start, end, seq: 1 };
        let mut list = Self::build(order, ranges.into_iter().map(tombstone).collect());
        list.spans.iter_mut().for_each(|span| span.seq = Reverse(0));
        list.tree = Tree::default();
        list
    }

    /// Bytes that the list takes in memory.
    pub fn memory_bytes(&self) -> u64 {
        let keys: usize = self.bounds.iter().map(|key| key.len() + size_of::<Box<[u8]>>()).sum();
        let spans = self.spans.capacity() * size_of::<Span>();
        let tree = self.tree.starts.capacity() * size_of::<usize>();
        let seqs = self.tree.seqs.capacity() * size_of::<Seq>();
        (size_of::<Self>() + keys + spans + tree + seqs) as u64
    }

    /// Sorts `spans` and builds the tree.
    fn assemble(mut spans: Vec<Span>, bounds: Vec<Box<[u8]>>) -> Self {
        spans.sort_unstable();
        spans.dedup();
        let tree = Tree::plant(bounds.len() + 1, &spans);
        Self { bounds, spans, tree }
    }

    /// The list of `spans` over fragments with the bounds `all`, without the bounds at which no
    /// span begins or ends.
    pub(super) fn with_used_bounds(all: &[&[u8]], mut spans: Vec<Span>) -> Self {
        // `used[i]` belongs to the lower bound of fragment `i`, as in `Self::decode`.
        let mut used = vec![false; all.len() + 2];
        for span in &spans {
            used[span.first as usize] = true;
            used[span.last as usize] = true;
        }
        let mut number = 0;
        let mut numbers = vec![0; used.len()];
        let mut bounds = Vec::new();
        for (at, bound) in all.iter().enumerate() {
            if used[at + 1] {
                number += 1;
                bounds.push(Box::from(*bound));
            }
            numbers[at + 1] = number;
        }
        numbers[all.len() + 1] = number + 1;
        for span in &mut spans {
            span.first = numbers[span.first as usize];
            span.last = numbers[span.last as usize];
        }
        Self::assemble(spans, bounds)
    }

    /// Whether there are no tombstones.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of tombstones.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// How many sequence numbers the lists of the tree hold.
    #[cfg(test)]
    pub(super) fn stored(&self) -> usize {
        self.tree.seqs.len()
    }

    /// The newest sequence number; 0 if there are no tombstones.
    pub fn max_seq(&self) -> Seq {
        self.spans.first().map_or(0, |span| span.seq.0)
    }

    /// The oldest sequence number; 0 if there are no tombstones.
    pub fn min_seq(&self) -> Seq {
        self.spans.last().map_or(0, |span| span.seq.0)
    }

    /// The smallest interval that holds every range; `None` if there are no tombstones.
    pub fn hull(&self) -> Option<Hull<'_>> {
        let first = self.spans.iter().map(|span| span.first).min()?;
        let last = self.spans.iter().map(|span| span.last).max()?;
        Some((self.start_of(first as usize), self.end_of(last as usize - 1)))
    }

    /// The tombstones, from new to old.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone> + '_ {
        self.spans.iter().map(|span| RangeTombstone {
            start: self.start_of(span.first as usize).map(<[u8]>::to_vec),
            end: self.end_of(span.last as usize - 1).map(<[u8]>::to_vec),
            seq: span.seq.0,
        })
    }

    /// The newest sequence number less than `below` whose tombstone covers `key`; 0 if none.
    pub fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
        if self.spans.is_empty() {
            return 0;
        }
        self.tree.newest(self.fragment_of(order, key), below)
    }

    /// Like [`Self::covering_seq`], with the interval around `key` for which the result holds: its
    /// start (`None`: unbounded) and its end. A scan need not call this again before the end, and
    /// may skip to the end if the entries are older than the result.
    pub fn covering<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Fragment<'_, Seq> {
        let at = self.fragment_of(order, key);
        let seqs = self.tree.newest(at, below);
        Fragment { start: self.start_of(at), end: self.end_of(at), seqs }
    }

    /// The newest `seq` such that every key in the closed range `low..=high` is covered by a
    /// tombstone with a sequence number in `seq..below`; 0 if some key is not covered. Every entry
    /// in the range that is older than the result is deleted, so a run segment of such entries can
    /// be dropped as a whole.
    pub fn covers_range<O: KeyOrder>(&self, order: &O, low: &[u8], high: &[u8], below: Seq) -> Seq {
        if self.spans.is_empty() {
            return 0;
        }
        let mut least = Seq::MAX;
        for fragment in self.fragment_of(order, low)..=self.fragment_of(order, high) {
            least = least.min(self.tree.newest(fragment, below));
            if least == 0 {
                return 0;
            }
        }
        // An inverted range holds no key, so it has no useful result.
        if least == Seq::MAX { 0 } else { least }
    }

    /// The newest `seq` such that every key in `low..high` (`None`: unbounded) is covered by a
    /// tombstone with a sequence number in `seq..below`; 0 if some key is not covered. It looks no
    /// further than the first gap.
    pub fn covers_all<O: KeyOrder>(
        &self,
        order: &O,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        below: Seq,
    ) -> Seq {
        let Some((first, last)) = self.within(order, low, high) else { return 0 };
        let mut least = Seq::MAX;
        for fragment in first..=last {
            least = least.min(self.tree.newest(fragment as usize, below));
            if least == 0 {
                break;
            }
        }
        least
    }

    /// The tombstones, cut to `low..high` (`None`: unbounded). To cut one list at many bounds, use
    /// a [`Cutter`](super::Cutter).
    pub fn clip<O: KeyOrder>(&self, order: &O, low: Option<&[u8]>, high: Option<&[u8]>) -> Self {
        let Some(window) = self.within(order, low, high) else { return Self::default() };
        self.cut_spans(window, low, high, self.spans.iter().copied())
    }

    /// The first and the last fragment that `low..high` meets; `None` if it holds no key.
    pub(super) fn within<O: KeyOrder>(
        &self,
        order: &O,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Option<(u32, u32)> {
        if let (Some(low), Some(high)) = (low, high)
            && order.compare(low, high).is_ge()
        {
            return None;
        }
        let first = self.fragment_of_start(order, low);
        let begins_before =
            |high| self.bounds.partition_point(|bound| order.compare(bound, high).is_lt());
        let last = high.map_or(self.bounds.len(), begins_before);
        // The end is before the start only with a comparator that contradicts itself.
        (first <= last).then_some((first as u32, last as u32))
    }

    /// `spans`, cut to `low..high`, which meets the fragments of `window`.
    pub(super) fn cut_spans(
        &self,
        window: (u32, u32),
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        spans: impl Iterator<Item = Span>,
    ) -> Self {
        let (first, last) = window;
        // With a lower bound, fragment 0 of the result lies below it.
        let shift = u32::from(low.is_some());
        let number = |fragment: u32| fragment.clamp(first, last + 1) - first + shift;
        let spans: Vec<Span> = spans
            .filter(|span| span.first <= last && span.last > first)
            .map(|span| Span { first: number(span.first), last: number(span.last), ..span })
            .collect();
        if spans.is_empty() {
            return Self::default();
        }
        let inner = self.bounds[first as usize..last as usize].iter().map(|bound| &**bound);
        let bounds: Vec<&[u8]> = low.into_iter().chain(inner).chain(high).collect();
        Self::with_used_bounds(&bounds, spans)
    }

    /// Appends the stored form, described in `docs/file-formats.md`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.bounds.len() as u64);
        for bound in &self.bounds {
            put_bytes(out, bound);
        }
        put_varint(out, self.spans.len() as u64);
        for span in &self.spans {
            put_varint(out, span.first.into());
            put_varint(out, (span.last - span.first).into());
            put_varint(out, span.seq.0);
        }
    }

    /// Reads the stored form and checks every invariant. Each list of tombstones has only one
    /// stored form: this accepts exactly what [`Self::encode`] would write.
    pub fn decode<O: KeyOrder>(order: &O, reader: &mut Reader<'_>) -> Decoded<Self> {
        Self::decode_at(order, reader, 0)
    }

    /// As [`Self::decode`], for a list that was ingested at a position, which is not in its stored form; 0:
    /// it was not ingested.
    pub fn decode_at<O: KeyOrder>(
        order: &O,
        reader: &mut Reader<'_>,
        ingested: Seq,
    ) -> Decoded<Self> {
        // Every bound takes at least one byte: a larger count is wrong and allocates nothing.
        let count = reader.varint_max((reader.remaining() as u64).min(u32::MAX.into()))?;
        let mut bounds: Vec<Box<[u8]>> = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let bound = reader.bytes(limits::BOUND_BYTES_MAX)?;
            if bounds.last().is_some_and(|last| order.compare(last, bound).is_ge()) {
                return Err(DecodeError("bounds of range tombstones do not ascend"));
            }
            bounds.push(bound.into());
        }
        let fragments = bounds.len() as u64 + 1;
        let count = reader.varint_max(reader.remaining() as u64 / 3)?;
        let mut spans: Vec<Span> = Vec::with_capacity(count as usize);
        let mut used = vec![false; bounds.len() + 2];
        for _ in 0..count {
            let first = reader.varint_max(fragments - 1)?;
            let length = reader.varint_max(fragments - first)?;
            let stored = reader.varint_max(SEQ_MAX - 1)?;
            if length == 0 {
                return Err(DecodeError("a range tombstone removes nothing"));
            }
            if (stored == 0) != (ingested > 0) {
                let what = "only the manifest has the sequence number of ingested range tombstones";
                return Err(DecodeError(what));
            }
            let seq = if ingested > 0 { ingested } else { stored };
            let last = first + length;
            let span = Span { seq: Reverse(seq), first: first as u32, last: last as u32 };
            if spans.last().is_some_and(|previous| *previous >= span) {
                return Err(DecodeError("range tombstones are out of order"));
            }
            used[first as usize] = true;
            used[last as usize] = true;
            spans.push(span);
        }
        // `used[i]` belongs to the lower bound of fragment `i`. The first fragment has no lower
        // bound, and no fragment follows the last one.
        if used[1..=bounds.len()].contains(&false) {
            return Err(DecodeError("a bound belongs to no range tombstone"));
        }
        let tree = Tree::plant(bounds.len() + 1, &spans);
        Ok(Self { bounds, spans, tree })
    }

    fn fragment_of<O: KeyOrder>(&self, order: &O, key: &[u8]) -> usize {
        self.bounds.partition_point(|bound| order.compare(bound, key).is_le())
    }

    /// Like [`Self::fragment_of`], for a lower bound (`None`: below every key).
    pub(super) fn fragment_of_start<O: KeyOrder>(&self, order: &O, start: Option<&[u8]>) -> usize {
        start.map_or(0, |key| self.fragment_of(order, key))
    }

    pub(super) fn start_of(&self, fragment: usize) -> Option<&[u8]> {
        fragment.checked_sub(1).map(|below| &*self.bounds[below])
    }

    pub(super) fn end_of(&self, fragment: usize) -> Option<&[u8]> {
        self.bounds.get(fragment).map(|bound| &**bound)
    }
}

/// A segment tree (Bentley) over the fragments, stored as an implicit binary tree: the leaf of
/// fragment `i` is node `leaves + i`, the parent of node `n` is `n / 2`. `seqs` holds the lists of
/// the nodes one after the other; that of node `n` is `starts[n]..starts[n + 1]`.
#[derive(Debug, Clone, Default)]
struct Tree {
    leaves: usize,
    starts: Vec<usize>,
    seqs: Vec<Seq>,
}

impl Tree {
    fn plant(leaves: usize, spans: &[Span]) -> Self {
        if spans.is_empty() {
            return Self::default();
        }
        // Counting first gives each list its place. Filling in the order of the spans keeps the
        // lists sorted (invariant 4).
        let mut starts = vec![0; 2 * leaves + 1];
        for span in spans {
            Self::for_each_node(leaves, span, |node| starts[node + 1] += 1);
        }
        for node in 0..2 * leaves {
            starts[node + 1] += starts[node];
        }
        let mut seqs = vec![0; starts[2 * leaves]];
        let mut next = starts.clone();
        for span in spans {
            Self::for_each_node(leaves, span, |node| {
                seqs[next[node]] = span.seq.0;
                next[node] += 1;
            });
        }
        Self { leaves, starts, seqs }
    }

    /// The disjoint nodes that together make up the range of `span`: at most two on each level.
    fn for_each_node(leaves: usize, span: &Span, mut visit: impl FnMut(usize)) {
        let (mut low, mut high) = (span.first as usize + leaves, span.last as usize + leaves);
        while low < high {
            if low & 1 == 1 {
                visit(low);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                visit(high);
            }
            low /= 2;
            high /= 2;
        }
    }

    /// The newest sequence number less than `below` over a fragment; 0 if there is none.
    fn newest(&self, fragment: usize, below: Seq) -> Seq {
        let mut newest = 0;
        let mut node = if self.leaves == 0 { 0 } else { self.leaves + fragment };
        while node > 0 {
            let list = &self.seqs[self.starts[node]..self.starts[node + 1]];
            // Most readers are newer than every tombstone, so the first one answers.
            let found = match list.first() {
                Some(first) if *first >= below => list.partition_point(|seq| *seq >= below),
                _ => 0,
            };
            newest = newest.max(list.get(found).copied().unwrap_or(0));
            node /= 2;
        }
        newest
    }
}
