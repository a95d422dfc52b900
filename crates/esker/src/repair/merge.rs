//! Finds the newest readable version of every key in run segments that may overlap in any way. If
//! that version is an operand, the merge also returns the older ones, down to the first that is not
//! an operand.
//!
//! Segments are opened in the order of their first keys and closed at their ends, so only the
//! segments that overlap the present key are open. Each has a *rank*: a higher rank is a newer run,
//! whatever the sequence numbers say (those of bases are stripped). Within a rank, the sequence
//! number decides, and then the number of the file.
//!
//! 1. A segment is read once, from its first entry to its last, however many partitions name it.
//!    Partitions come in key order; at the end of one, its segments wait for the next partition
//!    that names them.

use super::covers::{Cover, Covering};
use super::heap::Heap;
use crate::base::{FileId, KeyOrder, Kind, Seq, limits};
use crate::error::Result;
use crate::run::{DamagedFile, SegmentMeta, SegmentReader, ValueRef, ValuesMeta};
use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The place of a segment: its file and its offset.
pub(super) type Place = (FileId, u64);

/// A segment to read.
pub(super) struct Input {
    pub rank: usize,
    pub meta: SegmentMeta,
}

impl Input {
    pub(super) fn place(&self) -> Place {
        self.meta.place()
    }
}

/// Bounds of the keys to return.
pub(super) type Bounds<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// What the merge needs from its caller.
pub(super) trait Surroundings {
    /// The file of a segment; `None` if it cannot be opened, which the callee reports.
    fn file(&mut self, meta: &SegmentMeta) -> Option<Arc<DamagedFile>>;
    /// A segment was read to its end.
    fn ended(&mut self, reader: &SegmentReader);
    /// A valid entry: a value or an operand, in its stored form. Those of a key come from old to
    /// new.
    fn entry(&mut self, key: &[u8], kind: Kind, stored: &Stored) -> Result<()>;
    /// The value to which an entry of a segment refers; `None` if it is lost, which the callee reports.
    fn separated(
        &mut self,
        meta: &SegmentMeta,
        key: &[u8],
        reference: Reference<'_>,
    ) -> Option<Stored>;
}

/// The stored value of an entry.
pub(super) enum Stored {
    Whole(Vec<u8>),
    /// It is in pieces, was found whole, and is read once more when it is saved.
    InPieces(ValueRef, ValuesMeta),
}

/// The kind of an entry whose value is separated, and what stands in the value's place.
pub(super) type Reference<'a> = (Kind, &'a [u8]);

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
                let (stored, kind) = block.version(self.next);
                (self.seq, self.kind) = (self.reader.meta().numbering().seq(stored), kind);
                self.next += 1;
                return true;
            }
            self.next = 0;
            if !self.reader.advance() {
                return false;
            }
        }
    }

    fn place(&self) -> Place {
        self.reader.meta().place()
    }

    fn value(&self) -> &[u8] {
        self.reader.block().map_or(&[], |block| block.value(self.next - 1))
    }

    /// The order of the entries: by key, the newest first.
    fn compare<O: KeyOrder>(&self, order: &O, other: &Self) -> Ordering {
        let age = |a: &Self| Reverse((a.rank, a.seq, a.reader.meta().file));
        order.compare(&self.key, &other.key).then_with(|| age(self).cmp(&age(other)))
    }
}

/// The needed versions of one key, from new to old: operands, and the value under them.
#[derive(Default)]
struct Chain {
    key: Vec<u8>,
    versions: Vec<(Kind, Stored)>,
    /// Whether an older version is needed too.
    open: bool,
    /// Whether a key was begun.
    begun: bool,
}

impl Chain {
    /// Hands over the collected versions, from old to new.
    fn end(&mut self, around: &mut impl Surroundings) -> Result<()> {
        let versions = std::mem::take(&mut self.versions);
        versions.iter().rev().try_for_each(|(kind, stored)| around.entry(&self.key, *kind, stored))
    }

    /// Takes the next version, in the order of the merge.
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
            if counts && entry.kind.is_separated() {
                let (meta, reference) = (entry.reader.meta(), (entry.kind, entry.value()));
                let value = around.separated(meta, &entry.key, reference);
                self.versions.extend(value.map(|value| (entry.kind.joined(), value)));
            } else if counts && entry.kind != Kind::Delete {
                self.versions.push((entry.kind, Stored::Whole(entry.value().to_vec())));
            }
        }
        Ok(())
    }
}

/// The merge of a tree, partition by partition.
pub(super) struct Merge<'o, O> {
    order: &'o O,
    /// How many of the remaining partitions name each segment.
    named: HashMap<Place, usize>,
    /// Segments that wait for the next partition that names them.
    waiting: HashMap<Place, Active>,
    /// Segments that were read to their ends.
    read: HashSet<Place>,
}

impl<'o, O: KeyOrder> Merge<'o, O> {
    /// `named`: how many partitions name each segment.
    pub(super) fn new(order: &'o O, named: HashMap<Place, usize>) -> Self {
        Self { order, named, waiting: HashMap::new(), read: HashSet::new() }
    }

    /// Hands over the newest version of every key between the bounds, in order, if it is a value,
    /// or the operands and the value under them. A segment is named at most once among the inputs,
    /// and partitions come in the order of their bounds.
    pub(super) fn partition(
        &mut self,
        inputs: Vec<Input>,
        covers: Vec<Cover>,
        bounds: Bounds<'_>,
        around: &mut impl Surroundings,
    ) -> Result<()> {
        let order = self.order;
        let before = |a: &Active, b: &Active| a.compare(order, b).is_lt();
        let metas: Vec<SegmentMeta> = inputs.iter().map(|input| input.meta.clone()).collect();
        let (mut heap, mut unopened) = (Heap::new(), Vec::new());
        for input in inputs {
            match self.waiting.remove(&input.place()) {
                Some(active) => {
                    let active = Active { rank: input.rank, ..active };
                    self.up_to(active, bounds.0, &mut heap, around);
                }
                None if self.read.contains(&input.place()) => {}
                None => unopened.push(input),
            }
        }
        unopened.sort_by(|a, b| order.compare(&b.meta.min_key, &a.meta.min_key));
        let mut covering = Covering::new(covers);
        let mut chain = Chain::default();
        loop {
            // Opens the segments that may hold a key before the first one here.
            while let Some(input) = unopened.pop_if(|input| {
                let min = &input.meta.min_key;
                let first: Option<&Active> = heap.first();
                first.is_none_or(|first| order.compare(min, &first.key).is_le())
                    && bounds.1.is_none_or(|upper| order.compare(min, upper).is_lt())
            }) {
                if let Some(active) = self.open(&input, around) {
                    self.up_to(active, bounds.0, &mut heap, around);
                }
            }
            let Some(first) = heap.first_mut() else { break };
            if bounds.1.is_some_and(|upper| order.compare(&first.key, upper).is_ge()) {
                break;
            }
            let counts = counts(order, first, &mut covering, bounds.0);
            chain.take(order, first, counts, around)?;
            if first.advance() {
                heap.settle(&before);
            } else if let Some(ended) = heap.pop(&before) {
                self.ended(&ended, around);
            }
        }
        chain.end(around)?;
        for active in heap.drain() {
            self.waiting.insert(active.place(), active);
        }
        metas.iter().for_each(|meta| self.let_go(meta, around));
        Ok(())
    }

    fn ended(&mut self, active: &Active, around: &mut impl Surroundings) {
        self.read.insert(active.place());
        around.ended(&active.reader);
    }

    /// Opens a segment at its first entry.
    fn open(&mut self, input: &Input, around: &mut impl Surroundings) -> Option<Active> {
        let Some(file) = around.file(&input.meta) else {
            self.read.insert(input.place());
            return None;
        };
        let reader = file.blocks(&input.meta);
        let mut active =
            Active { rank: input.rank, reader, next: 0, key: Vec::new(), seq: 0, kind: Kind::Put };
        if active.advance() {
            return Some(active);
        }
        self.ended(&active, around);
        None
    }

    /// Skips entries before `lower` and adds the segment to the merge.
    fn up_to(
        &mut self,
        mut active: Active,
        lower: Option<&[u8]>,
        heap: &mut Heap<Active>,
        around: &mut impl Surroundings,
    ) {
        let order = self.order;
        while lower.is_some_and(|lower| order.compare(&active.key, lower).is_lt()) {
            if !active.advance() {
                return self.ended(&active, around);
            }
        }
        heap.push(active, &|a: &Active, b: &Active| a.compare(order, b).is_lt());
    }

    /// Reads a segment to its end if no later partition names it.
    fn let_go(&mut self, meta: &SegmentMeta, around: &mut impl Surroundings) {
        let place = meta.place();
        let left = self.named.get_mut(&place).map_or(0, |left| {
            *left = left.saturating_sub(1);
            *left
        });
        if left > 0 || self.read.contains(&place) {
            return;
        }
        match self.waiting.remove(&place) {
            Some(mut active) => {
                while active.reader.advance() {}
                self.ended(&active, around);
            }
            // It is outside the bounds of all partitions that name it.
            None => {
                self.read.insert(place);
                judge(meta, around);
            }
        }
    }
}

/// Reads a segment only to find its damage.
pub(super) fn judge(meta: &SegmentMeta, around: &mut impl Surroundings) {
    if let Some(file) = around.file(meta) {
        let mut reader = file.blocks(meta);
        while reader.advance() {}
        around.ended(&reader);
    }
    for used in &meta.values {
        judge(&SegmentMeta::of_values(used.values), around);
    }
}

/// Whether a version can belong to this partition and no range delete removed it.
fn counts<O: KeyOrder>(
    order: &O,
    entry: &Active,
    covering: &mut Covering,
    lower: Option<&[u8]>,
) -> bool {
    // A segment that is not in order may hold an entry that cannot be in this partition.
    let inside = lower.is_none_or(|lower| order.compare(lower, &entry.key).is_le());
    let covered = covering
        .newest(order, &entry.key)
        .is_some_and(|(rank, seq)| rank > entry.rank || rank == entry.rank && seq > entry.seq);
    inside && !covered && entry.key.len() <= limits::KEY_BYTES_MAX
}
