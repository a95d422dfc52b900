//! Which versions of a key a compaction keeps.
//!
//! Snapshots cut the sequence numbers into *stripes*. A snapshot `p` sees the numbers less than
//! `p`, so two numbers are in one stripe when no snapshot is greater than the smaller number and
//! not greater than the larger one. Every reader, now and later, sees all of a stripe or nothing of
//! it. Only writes that come after the compaction are an exception, and they are newer than
//! everything it reads. So readers can distinguish only versions of different stripes (R17, R21):
//!
//! 1. Of the versions of a key in one stripe only the newest is kept; it shadows the others for
//!    every reader that sees them.
//! 2. A version is dropped when a range tombstone of its stripe, newer than it, covers the key.
//!    A reader that sees the version sees the tombstone.
//! 3. A delete is dropped when it is at the bottom and in the oldest stripe. By 1 no older version
//!    of its key is kept, and at the bottom nothing older lies below. In any other case it stays:
//!    it may hide something.
//! 4. Of the tombstones that cover one fragment only the newest of each stripe is kept: it hides
//!    everything that the others hide, from the same readers. At the bottom those of the oldest
//!    stripe are dropped too: what they hide is also in that stripe and was dropped by 2.
//! 5. At the bottom a version in the oldest stripe gets sequence number 0. Every reader sees it
//!    before and after. By 1 it is the only one of its key with number 0 and still the oldest.
//!    A tombstone that survives 4 is of a later stripe, so it is newer than the version before
//!    and after: it hides it from the same readers. A tombstone that is not among the inputs
//!    comes from a newer source and is newer than every input.
//!
//! 6. An operand is kept while nothing older is known; it shadows nothing. Of the versions of a
//!    stripe, those from the newest down to the first that is no operand make up the value, so rule
//!    1 begins after that one. `compaction::fold` decides what becomes of them.
//! 7. The stripe's time decides what has expired. It is the earliest among the times of the
//!    snapshots that see the stripe and the time of the compaction. Every reader that sees the
//!    stripe has that time or a later one. A named snapshot keeps the time at which it was made, so
//!    times need not rise with positions.
//!
//! Rules 3 to 5 require that *all* tombstones and all older entries of the key range take part, or
//! that the plan keeps them out (`compaction::plan` reuses no segment that a newer tombstone of the
//! inputs touches).

#[cfg(test)]
pub(super) mod tests;

use crate::base::rangedel::Fragments;
use crate::base::{KeyOrder, Kind, Millis, Moment, SEQ_MAX, Seq};
use crate::iter::{Cover, Tombstones, covering_seq};

/// Where the output of a compaction lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Older entries may lie below: deletes and range tombstones are kept.
    Upper,
    /// Nothing older exists below.
    Bottom,
}

/// What a compaction does with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is written with this sequence number.
    Keep(Seq),
    /// A newer version in its stripe shadows it.
    Shadowed,
    /// A range tombstone of its stripe hides it.
    Covered,
    /// It is a delete with nothing left to hide.
    Spent,
    /// It is an operand: what becomes of it depends on older entries.
    Operand,
}

/// What a compaction must preserve, determined once and applied at either depth.
#[derive(Debug, Clone, Default)]
pub struct CompactionRule {
    /// The moments of present readers and of readers that may return, in any order.
    pub snapshots: Vec<Moment>,
    /// The time at which the compaction began.
    pub now: Millis,
}

impl CompactionRule {
    /// The rule for an output at `depth`.
    pub fn at(self, depth: Depth) -> VersionGc {
        let mut moments = self.snapshots;
        // Moments are visited from newest to oldest; of several at one position the earliest time
        // is kept.
        moments.sort_unstable_by_key(|moment| std::cmp::Reverse(moment.seq));
        let mut earliest = self.now;
        let mut times: Vec<(Seq, Millis)> = Vec::with_capacity(moments.len());
        for Moment { seq, time } in moments {
            // Only this snapshot and later ones see the stripe.
            earliest = earliest.min(time);
            match times.last_mut().filter(|(last, _)| *last == seq) {
                Some((_, known)) => *known = earliest,
                None => times.push((seq, earliest)),
            }
        }
        times.reverse();
        let (snapshots, times) = times.into_iter().unzip();
        VersionGc { times, now: self.now, ..VersionGc::new(snapshots, depth) }
    }
}

/// Decides, version by version, what a compaction keeps.
///
/// Call [`start_key`](Self::start_key) before the versions of each key, and
/// [`decide`](Self::decide) for these from new to old.
#[derive(Debug, Clone)]
pub struct VersionGc {
    /// Ascending.
    snapshots: Vec<Seq>,
    /// The earliest time of each snapshot and those after it. If empty, nothing expires before
    /// `now`.
    times: Vec<Millis>,
    now: Millis,
    depth: Depth,
    /// The end of the stripe of the last version; `None` before the first version of a key.
    last: Option<Seq>,
    /// Whether all versions of that stripe so far were operands.
    open: bool,
}

impl VersionGc {
    /// The rule for a compaction whose output lies at `depth`. `snapshots` may be in any order;
    /// each is greater than 0.
    pub fn new(mut snapshots: Vec<Seq>, depth: Depth) -> Self {
        snapshots.sort_unstable();
        snapshots.dedup();
        Self { snapshots, times: Vec::new(), now: 0, depth, last: None, open: false }
    }

    /// The versions of another key follow.
    #[inline]
    pub fn start_key(&mut self) {
        self.last = None;
    }

    /// The end of the stripe of `seq`, which names the stripe: the first snapshot that sees it, or
    /// [`SEQ_MAX`] if there is none.
    #[inline]
    pub fn stripe_end(&self, seq: Seq) -> Seq {
        // Seeded: an entry at a snapshot counts as seen by it.
        let seq = if bug!("compaction_stripe_off_by_one") { seq.saturating_sub(1) } else { seq };
        match self.snapshots.last() {
            Some(last) if seq < *last => {
                self.snapshots[self.snapshots.partition_point(|snapshot| *snapshot <= seq)]
            }
            _ => SEQ_MAX,
        }
    }

    /// Whether the stripe that ends at `end` is the oldest one, which every reader sees.
    #[inline]
    fn is_oldest(&self, end: Seq) -> bool {
        // Seeded: deletes that only later readers see are dropped, and what they hide becomes
        // visible.
        bug!("compaction_every_stripe_is_the_oldest", return true);
        self.snapshots.first().is_none_or(|oldest| end == *oldest)
    }

    /// Decides about the next version, which is one of `key`. The range tombstones of the inputs
    /// are given by a lookup and as a whole.
    #[inline]
    pub(super) fn decide_at<O: KeyOrder, T: Tombstones>(
        &mut self,
        order: &O,
        key: &[u8],
        (seq, kind): (Seq, Kind),
        (cover, tombstones): (&mut Cover, &[T]),
    ) -> Verdict {
        if tombstones.is_empty() {
            return self.decide(seq, kind, |_| 0);
        }
        let (newest, _) = cover.seq_at(order, tombstones, key, SEQ_MAX);
        self.decide(seq, kind, |below| {
            // The newest tombstone decides unless a snapshot lies in between.
            if newest <= seq || newest < below {
                return newest;
            }
            covering_seq(order, tombstones, key, below)
        })
    }

    /// Decides about the next version. `covering(below)` is the newest tombstone of the inputs,
    /// with a sequence number less than `below`, that covers the key; 0 if there is none.
    #[inline]
    pub fn decide(&mut self, seq: Seq, kind: Kind, covering: impl FnOnce(Seq) -> Seq) -> Verdict {
        let end = self.stripe_end(seq);
        if self.last == Some(end) && !self.open {
            return Verdict::Shadowed;
        }
        self.last = Some(end);
        self.open = false;
        // Seeded: a range delete removes entries that an older snapshot still sees.
        let covering = |end| {
            covering(if bug!("compaction_tombstone_ignores_snapshots") { SEQ_MAX } else { end })
        };
        if covering(end) > seq {
            return Verdict::Covered;
        }
        if kind.is_operand() {
            self.open = true;
            return Verdict::Operand;
        }
        if self.is_settled(end) {
            return if kind == Kind::Delete { Verdict::Spent } else { Verdict::Keep(0) };
        }
        Verdict::Keep(seq)
    }

    /// The end of the stripe of the last version.
    #[inline]
    pub fn last_stripe(&self) -> Seq {
        self.last.unwrap_or(SEQ_MAX)
    }

    /// Whether a stripe is the oldest one and lies at the bottom: nothing older exists.
    #[inline]
    pub fn is_settled(&self, end: Seq) -> bool {
        // Seeded: a flush drops deletes that still hide older entries.
        bug!("compaction_deletes_dropped_above_data", return self.is_oldest(end));
        self.depth == Depth::Bottom && self.is_oldest(end)
    }

    /// Whether no older versions lie below the inputs.
    pub fn is_bottom(&self) -> bool {
        self.depth == Depth::Bottom
    }

    /// The time of the earliest reader of a stripe (rule 7).
    pub fn stripe_time(&self, end: Seq) -> Millis {
        // Seeded: a snapshot loses an entry that expired after it was taken.
        bug!("compaction_expiry_ignores_snapshots", return self.now);
        let place = self.snapshots.partition_point(|snapshot| *snapshot < end);
        self.times.get(place).copied().unwrap_or(self.now)
    }

    /// The time of the earliest reader.
    pub fn earliest_time(&self) -> Millis {
        self.times.first().copied().unwrap_or(self.now)
    }

    /// Whether the output needs a tombstone with this sequence number (rule 4, its second half: the
    /// caller ensures that no newer tombstone of its stripe covers the same keys).
    pub fn keeps_tombstone(&self, seq: Seq) -> bool {
        self.depth == Depth::Upper || !self.is_seen_by_all(seq)
    }

    /// Appends to `out` those sequence numbers of one fragment that survive; both descending.
    pub fn surviving_seqs(&self, fragment: &[Seq], out: &mut Vec<Seq>) {
        let mut last = None;
        for seq in fragment {
            let end = self.stripe_end(*seq);
            if last != Some(end) && self.keeps_tombstone(*seq) {
                out.push(*seq);
            }
            last = Some(end);
        }
    }

    /// The range tombstones that the output needs, given those of all inputs.
    pub fn surviving<O: KeyOrder>(&self, order: &O, inputs: &Fragments) -> Fragments {
        let compacted = inputs.compact(&self.snapshots);
        // Seeded: a flush drops range tombstones.
        bug!("compaction_tombstones_dropped_above_data", return Fragments::default());
        if self.depth == Depth::Upper {
            return compacted;
        }
        let kept = compacted.tombstones().filter(|tombstone| self.keeps_tombstone(tombstone.seq));
        Fragments::build(order, kept.collect())
    }

    /// The snapshots, ascending.
    pub fn snapshots(&self) -> &[Seq] {
        &self.snapshots
    }

    /// Whether every reader sees both of the sequence numbers `oldest` and `newest`, or neither.
    pub fn same_stripe(&self, oldest: Seq, newest: Seq) -> bool {
        self.stripe_end(oldest) == self.stripe_end(newest)
    }

    /// Whether every reader sees `seq`.
    pub fn is_seen_by_all(&self, seq: Seq) -> bool {
        self.is_oldest(self.stripe_end(seq))
    }
}
