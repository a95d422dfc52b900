//! The newest readable version of every key, over segments of any overlap; where that is an
//! operand, the older ones too, down to the first version that is none.
//!
//! Segments are opened in the order of their first keys and closed when they end, so that only
//! those are held that overlap the present key. Each has a *rank*: a higher one means a newer run,
//! whatever the sequence numbers say (those of bases are stripped). Within a rank sequence numbers
//! decide, and then the number of the file.

use crate::base::rangedel::Fragments;
use crate::base::{KeyOrder, Kind, SEQ_MAX, Seq, limits};
use crate::error::Result;
use crate::run::{DamagedFile, SegmentMeta, SegmentReader};
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// A segment to read.
pub(super) struct Input {
    pub rank: usize,
    pub meta: SegmentMeta,
}

/// Range tombstones of a run.
pub(super) struct Covers {
    pub rank: usize,
    pub fragments: Fragments,
}

/// Bounds of the keys that count.
pub(super) type Bounds<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// What the merge needs from its surroundings.
pub(super) trait Surroundings {
    /// The file of a segment; `None` if it cannot be opened, which is reported there.
    fn file(&mut self, meta: &SegmentMeta) -> Option<Arc<DamagedFile>>;
    /// A segment was read to its end.
    fn ended(&mut self, reader: &SegmentReader);
    /// An entry that counts: a value or an operand, in its stored form. Those of a key come from
    /// old to new.
    fn entry(&mut self, key: &[u8], kind: Kind, stored: &[u8]) -> Result<()>;
}

/// A segment that is being read, at one of its entries.
struct Active {
    rank: usize,
    reader: SegmentReader,
    next: usize,
    key: Vec<u8>,
    seq: Seq,
    kind: Kind,
}

impl Active {
    /// Goes to the next entry; false behind the last.
    fn advance(&mut self) -> bool {
        loop {
            if let Some(block) = self.reader.block()
                && self.next < block.count()
            {
                block.key_into(self.next, &mut self.key);
                (self.seq, self.kind) = block.version(self.next);
                self.next += 1;
                return true;
            }
            self.next = 0;
            if !self.reader.advance() {
                return false;
            }
        }
    }

    fn value(&self) -> &[u8] {
        self.reader.block().map_or(&[], |block| block.value(self.next - 1))
    }

    /// The order in which entries are met: by key, the newest first.
    fn compare<O: KeyOrder>(&self, order: &O, other: &Self) -> Ordering {
        let age = |a: &Self| Reverse((a.rank, a.seq, a.reader.meta().file));
        order.compare(&self.key, &other.key).then_with(|| age(self).cmp(&age(other)))
    }
}

/// The versions of one key that count, from new to old: operands, and what they stand on.
#[derive(Default)]
struct Chain {
    key: Vec<u8>,
    versions: Vec<(Kind, Vec<u8>)>,
    /// Whether an older version counts too.
    open: bool,
    /// Whether a key was begun.
    begun: bool,
}

impl Chain {
    /// Gives what was collected, from old to new.
    fn end(&mut self, around: &mut impl Surroundings) -> Result<()> {
        let versions = std::mem::take(&mut self.versions);
        versions.iter().rev().try_for_each(|(kind, stored)| around.entry(&self.key, *kind, stored))
    }

    /// Takes the next version, in the order in which they are met.
    fn take<O: KeyOrder>(
        &mut self,
        order: &O,
        entry: &Active,
        counts: bool,
        around: &mut impl Surroundings,
    ) -> Result<()> {
        if !self.begun || order.compare(&self.key, &entry.key).is_ne() {
            self.end(around)?;
            self.key.clear();
            self.key.extend_from_slice(&entry.key);
            (self.begun, self.open) = (true, true);
        }
        if self.open {
            self.open = counts && entry.kind.is_operand();
            if counts && entry.kind != Kind::Delete {
                self.versions.push((entry.kind, entry.value().to_vec()));
            }
        }
        Ok(())
    }
}

/// Gives the newest version of every key between the bounds, in order, if it is a value; or
/// operands and what they stand on.
pub(super) fn merge<O: KeyOrder>(
    order: &O,
    mut inputs: Vec<Input>,
    covers: &[Covers],
    bounds: Bounds<'_>,
    around: &mut impl Surroundings,
) -> Result<()> {
    inputs.sort_by(|a, b| order.compare(&b.meta.min_key, &a.meta.min_key));
    let mut active: Vec<Active> = Vec::new();
    let mut chain = Chain::default();
    loop {
        let first = |active: &[Active]| {
            (0..active.len()).min_by(|a, b| active[*a].compare(order, &active[*b]))
        };
        let mut best = first(&active);
        while let Some(input) = inputs.pop_if(|input| {
            best.is_none_or(|i| order.compare(&input.meta.min_key, &active[i].key).is_le())
        }) {
            active.extend(open(input, around));
            best = first(&active);
        }
        let Some(best) = best else { return chain.end(around) };
        let entry = &mut active[best];
        chain.take(order, entry, counts(order, entry, covers, bounds), around)?;
        if !entry.advance() {
            around.ended(&active.swap_remove(best).reader);
        }
    }
}

fn open(input: Input, around: &mut impl Surroundings) -> Option<Active> {
    let reader = around.file(&input.meta)?.blocks(&input.meta);
    let mut active =
        Active { rank: input.rank, reader, next: 0, key: Vec::new(), seq: 0, kind: Kind::Put };
    if active.advance() {
        return Some(active);
    }
    around.ended(&active.reader);
    None
}

/// Whether a version is inside the bounds and no range delete removed it.
fn counts<O: KeyOrder>(order: &O, entry: &Active, covers: &[Covers], bounds: Bounds<'_>) -> bool {
    let key = &entry.key;
    let inside = bounds.0.is_none_or(|lower| order.compare(lower, key).is_le())
        && bounds.1.is_none_or(|upper| order.compare(key, upper).is_lt());
    let covered = covers.iter().any(|cover| match cover.rank.cmp(&entry.rank) {
        Ordering::Less => false,
        Ordering::Equal => cover.fragments.covering_seq(order, key, SEQ_MAX) > entry.seq,
        Ordering::Greater => cover.fragments.covering_seq(order, key, SEQ_MAX) > 0,
    });
    inside && !covered && key.len() <= limits::KEY_BYTES_MAX
}
