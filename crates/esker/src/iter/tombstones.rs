//! Finding the range tombstone that hides a key (R18).
//!
//! Readers and compactions search the range tombstones of every source for two results: the newest
//! tombstone below a bound that covers a key, and the span of keys around it with the same result.
//! The span makes the search cheap: neighbouring keys are mostly in the same span, so a walk
//! searches once per span and then compares each key with its two ends. A tombstone of any source
//! hides entries of all sources, so the results are combined: the newest number and the narrowest
//! span.

use crate::base::rangedel::{Fragments, RangeTombstone};
use crate::base::{KeyOrder, SEQ_MAX, Seq};
use crate::memtable::TombstoneView;

/// A range of keys: from the first bound, inclusive, to the second, exclusive; `None` is open.
pub type Span<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// The range tombstones of one source.
pub trait Tombstones {
    /// Whether there are none.
    fn is_empty(&self) -> bool;

    /// The greatest sequence number less than `below` of a tombstone that covers `key`; 0 if
    /// there is none.
    fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq;

    /// A range of keys around `key` in which `covering_seq` has the same result for each `below`: a
    /// fragment, or the gap between two. `None`: the range is open at that side.
    fn span<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Span<'_>;
}

impl<T: Tombstones> Tombstones for std::sync::Arc<T> {
    fn is_empty(&self) -> bool {
        (**self).is_empty()
    }

    fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
        (**self).covering_seq(order, key, below)
    }

    fn span<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Span<'_> {
        (**self).span(order, key)
    }
}

/// The tombstones of a memtable: its levels, and the few that are not fragmented yet, searched from
/// end to end.
impl Tombstones for TombstoneView {
    fn is_empty(&self) -> bool {
        TombstoneView::is_empty(self)
    }

    fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
        TombstoneView::covering_seq(self, order, key, below)
    }

    fn span<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Span<'_> {
        let mut span: Span<'_> = (None, None);
        for level in self.levels() {
            let (low, high) = Tombstones::span(&**level, order, key);
            for bound in [low, high].into_iter().flatten() {
                narrow(order, &mut span, key, bound);
            }
        }
        for bound in self.tail().flat_map(|tombstone| [&tombstone.start, &tombstone.end]).flatten()
        {
            narrow(order, &mut span, key, bound);
        }
        span
    }
}

/// A plain list, searched from end to end.
impl Tombstones for Vec<RangeTombstone> {
    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
        let covers = |tombstone: &&RangeTombstone| {
            let start = tombstone.start.as_deref();
            let end = tombstone.end.as_deref();
            tombstone.seq < below
                && start.is_none_or(|start| order.compare(start, key).is_le())
                && end.is_none_or(|end| order.compare(key, end).is_lt())
        };
        self.iter().filter(covers).map(|tombstone| tombstone.seq).max().unwrap_or(0)
    }

    fn span<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Span<'_> {
        let mut span: Span<'_> = (None, None);
        for bound in self.iter().flat_map(|tombstone| [&tombstone.start, &tombstone.end]) {
            let Some(bound) = bound.as_deref() else { continue };
            narrow(order, &mut span, key, bound);
        }
        span
    }
}

/// Cuts `span`, which holds `key`, at `bound`.
fn narrow<'a, O: KeyOrder>(order: &O, span: &mut Span<'a>, key: &[u8], bound: &'a [u8]) {
    if order.compare(bound, key).is_le() {
        if span.0.is_none_or(|low| order.compare(low, bound).is_lt()) {
            span.0 = Some(bound);
        }
    } else if span.1.is_none_or(|high| order.compare(bound, high).is_lt()) {
        span.1 = Some(bound);
    }
}

/// The newest of the sequence numbers with which the sources' tombstones cover `key`.
pub(crate) fn covering_seq<O: KeyOrder, T: Tombstones>(
    order: &O,
    tombstones: &[T],
    key: &[u8],
    below: Seq,
) -> Seq {
    tombstones.iter().map(|source| source.covering_seq(order, key, below)).max().unwrap_or(0)
}

/// The result for the present span of a walk. Its buffers are reused.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    filled: bool,
    low: (bool, Vec<u8>),
    high: (bool, Vec<u8>),
    seq: Seq,
}

impl Cover {
    /// The newest tombstone below `below` that covers `key`, 0 if there is none; and whether a
    /// new span was entered. `below` must be the same in all calls.
    #[inline]
    pub(crate) fn seq_at<O: KeyOrder, T: Tombstones>(
        &mut self,
        order: &O,
        tombstones: &[T],
        key: &[u8],
        below: Seq,
    ) -> (Seq, bool) {
        if self.filled && self.holds(order, key) {
            return (self.seq, false);
        }
        self.fill(order, tombstones, key, below);
        (self.seq, true)
    }

    fn holds<O: KeyOrder>(&self, order: &O, key: &[u8]) -> bool {
        // Seeded: once a range delete hid an entry, a scan shows nothing behind it.
        bug!("iter_cover_has_no_end", return true);
        (!self.high.0 || order.compare(key, &self.high.1).is_lt())
            && (!self.low.0 || order.compare(&self.low.1, key).is_le())
    }

    fn fill<O: KeyOrder, T: Tombstones>(
        &mut self,
        order: &O,
        tombstones: &[T],
        key: &[u8],
        below: Seq,
    ) {
        let mut span: Span<'_> = (None, None);
        for source in tombstones {
            let (low, high) = source.span(order, key);
            for bound in [low, high].into_iter().flatten() {
                narrow(order, &mut span, key, bound);
            }
        }
        self.seq = covering_seq(order, tombstones, key, below);
        for (bound, buffer) in [(span.0, &mut self.low), (span.1, &mut self.high)] {
            buffer.0 = bound.is_some();
            buffer.1.clear();
            buffer.1.extend_from_slice(bound.unwrap_or_default());
        }
        self.filled = true;
    }

    /// The sequence number of the last answer.
    pub(crate) fn last_seq(&self) -> Seq {
        self.seq
    }

    /// The span of the last answer.
    pub(crate) fn span(&self) -> Span<'_> {
        (self.low.0.then_some(self.low.1.as_slice()), self.high.0.then_some(self.high.1.as_slice()))
    }
}

impl Tombstones for Fragments {
    fn is_empty(&self) -> bool {
        Fragments::is_empty(self)
    }

    fn covering_seq<O: KeyOrder>(&self, order: &O, key: &[u8], below: Seq) -> Seq {
        Fragments::covering_seq(self, order, key, below)
    }

    fn span<O: KeyOrder>(&self, order: &O, key: &[u8]) -> Span<'_> {
        let fragment = self.covering(order, key, SEQ_MAX);
        (fragment.start, fragment.end)
    }
}
