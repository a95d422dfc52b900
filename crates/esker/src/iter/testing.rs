//! Cursors over vectors, random numbers and small data sets, for tests of `iter` and `compaction`.

use crate::base::rangedel::RangeTombstone;
use crate::base::{
    Bytewise, Cursor, KeyOrder, Kind, MergeOperator, Millis, Operator, OperatorResult, Seq,
    expired, join, split,
};
use crate::error::{Error, Result};
use crate::iter::Reading;
use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

/// Descending byte order, as a user's comparator would give it: no heads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descending;

impl KeyOrder for Descending {
    const BYTEWISE: bool = false;

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// An order that a test can make.
pub(crate) trait TestOrder: KeyOrder {
    fn make() -> Self;
}

impl TestOrder for Bytewise {
    fn make() -> Self {
        Self
    }
}

impl TestOrder for Descending {
    fn make() -> Self {
        Self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub key: Vec<u8>,
    pub seq: Seq,
    pub kind: Kind,
    pub value: Vec<u8>,
}

impl Entry {
    pub fn put(key: &[u8], seq: Seq, value: &[u8]) -> Self {
        Self { key: key.to_vec(), seq, kind: Kind::Put, value: value.to_vec() }
    }

    pub fn delete(key: &[u8], seq: Seq) -> Self {
        Self { key: key.to_vec(), seq, kind: Kind::Delete, value: Vec::new() }
    }
}

pub(crate) fn cursor_order<O: KeyOrder>(order: &O, a: &Entry, b: &Entry) -> Ordering {
    order.compare(&a.key, &b.key).then(b.seq.cmp(&a.seq))
}

/// Moves that succeed before all cursors which share it fail.
pub(crate) type Fuse = Rc<Cell<u64>>;

pub(crate) fn long_fuse() -> Fuse {
    Rc::new(Cell::new(u64::MAX))
}

#[derive(Debug, Clone)]
pub(crate) struct VecCursor<O> {
    order: O,
    entries: Rc<Vec<Entry>>,
    /// `None`: not valid.
    at: Option<usize>,
    failed: bool,
    /// It waits at its entry, and must not be asked for more than the key.
    waiting: bool,
    fuse: Fuse,
    pub moves: Rc<Cell<u64>>,
}

impl<O: KeyOrder> VecCursor<O> {
    pub fn new(order: O, mut entries: Vec<Entry>, fuse: &Fuse) -> Self {
        entries.sort_by(|a, b| cursor_order(&order, a, b));
        let entries = Rc::new(entries);
        let moves = Rc::default();
        Self {
            order,
            entries,
            at: None,
            failed: false,
            waiting: false,
            fuse: Rc::clone(fuse),
            moves,
        }
    }

    fn burn(&mut self) -> Result<()> {
        self.moves.set(self.moves.get() + 1);
        match self.fuse.get() {
            u64::MAX => {}
            0 => {
                self.at = None;
                self.failed = true;
                return Err(Error::invalid("the fuse has burnt"));
            }
            left => self.fuse.set(left - 1),
        }
        Ok(())
    }

    fn go(&mut self, index: Option<usize>) -> Result<()> {
        self.burn()?;
        (self.failed, self.waiting) = (false, false);
        self.at = index.filter(|index| *index < self.entries.len());
        Ok(())
    }

    fn known(&self) -> &Entry {
        &self.entries[self.at.expect("only a valid cursor is asked")]
    }

    fn here(&self) -> &Entry {
        assert!(!self.waiting, "a cursor that waits knows only its key");
        self.known()
    }

    /// Waits, except after every third move.
    fn wait(&mut self) {
        self.waiting = self.at.is_some() && !self.moves.get().is_multiple_of(3);
    }
}

impl<O: KeyOrder> Cursor for VecCursor<O> {
    fn valid(&self) -> bool {
        self.at.is_some()
    }

    fn key(&self) -> &[u8] {
        &self.known().key
    }

    fn seq(&self) -> Seq {
        self.here().seq
    }

    fn kind(&self) -> Kind {
        self.here().kind
    }

    fn value(&self) -> &[u8] {
        &self.here().value
    }

    fn shows_newest(&self) -> bool {
        // It does not know after every third move.
        let Some(before) = self.at.and_then(|at| at.checked_sub(1)) else { return false };
        let other = self.order.compare(&self.entries[before].key, self.key()).is_ne();
        other && !self.moves.get().is_multiple_of(3)
    }

    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        let before = |entry: &Entry| {
            let ordering = self.order.compare(&entry.key, key);
            ordering.is_lt() || (ordering.is_eq() && entry.seq >= below)
        };
        let index = self.entries.partition_point(before);
        self.go(Some(index))
    }

    fn seek_waiting(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.seek(key, below)?;
        self.wait();
        Ok(())
    }

    fn seek_to_first_waiting(&mut self) -> Result<()> {
        self.seek_to_first()?;
        self.wait();
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        self.waiting
    }

    fn open(&mut self) -> Result<()> {
        self.waiting = false;
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let before = |entry: &Entry| self.order.compare(&entry.key, key).is_lt();
        let index = self.entries.partition_point(before);
        self.go(index.checked_sub(1))
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.go(Some(0))
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.go(self.entries.len().checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        assert!(!self.waiting, "a cursor that waits is opened first");
        assert!(self.failed || self.at.is_some(), "a move needs a valid cursor");
        let index = self.at.map(|at| at + 1);
        self.go(index)
    }

    fn prev(&mut self) -> Result<()> {
        assert!(!self.waiting, "a cursor that waits is opened first");
        assert!(self.failed || self.at.is_some(), "a move needs a valid cursor");
        let index = self.at.and_then(|at| at.checked_sub(1));
        self.go(index)
    }
}

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// From `ESKER_SEED`, or from the clock; prints the seed.
    pub fn from_env() -> Self {
        let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |now| now.as_nanos() as u64)
        });
        println!("ESKER_SEED={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// A key out of few, of several lengths, many with equal heads.
    pub fn key(&mut self, keys: u64) -> Vec<u8> {
        let number = self.below(keys);
        let text = match number % 3 {
            0 => format!("{number}"),
            1 => format!("common-prefix-{number:04}"),
            _ => format!("k{number:03}"),
        };
        if number == 0 { Vec::new() } else { text.into_bytes() }
    }
}

/// Entries and range tombstones, split into sources from old to new.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    pub entries: Vec<Entry>,
    pub tombstones: Vec<RangeTombstone>,
}

/// Puts operands behind what is there, in brackets where they were joined. An operand with an
/// exclamation mark leaves no value.
pub(crate) struct Concat;

impl MergeOperator for Concat {
    fn name(&self) -> &str {
        "concat"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> OperatorResult<Option<Vec<u8>>> {
        let mut value = existing.map(<[u8]>::to_vec);
        for operand in operands.iter().flat_map(|joined| joined.split(|byte| *byte == b'+')) {
            match operand {
                b"!" => value = None,
                _ => value.get_or_insert_default().extend_from_slice(&[b",", operand].concat()),
            }
        }
        Ok(value)
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.join(&b'+'))
    }
}

pub(crate) fn concat() -> Arc<Operator> {
    Arc::new(Operator::new("test", "concat", Some(Arc::new(Concat))))
}

/// A reader at `at` whose time is `time`.
pub(crate) fn reading(at: Seq, time: Millis) -> Reading {
    Reading { at, time, operator: concat(), leaves_pieces: false }
}

/// A random history, split into levels from old to new. Sequence numbers are 1, 2, …
pub(crate) fn random_levels<O: KeyOrder>(
    random: &mut Random,
    order: &O,
    levels: usize,
    operations: u64,
    keys: u64,
    range_deletes: bool,
) -> Vec<Level> {
    let mut all = plain_levels(random, order, levels, operations, keys, range_deletes);
    if random.one_in(2) {
        // Half of the histories have operands and entries that expire, some of them together.
        let times = 1 + random.below(2 * operations);
        let entries = all.iter_mut().flat_map(|level| &mut level.entries);
        for entry in entries.filter(|entry| entry.kind == Kind::Put) {
            entry.kind = match random.below(8) {
                0..2 => Kind::Merge,
                2 => Kind::ExpiringPut,
                3 => Kind::ExpiringMerge,
                _ => Kind::Put,
            };
            if entry.kind.is_operand() && random.one_in(9) {
                entry.value = b"!".to_vec();
            }
            if entry.kind.expires() {
                let mut stored = Vec::new();
                join(random.below(times) / 4 * 4, &entry.value, &mut stored);
                entry.value = stored;
            }
        }
    }
    all
}

fn plain_levels<O: KeyOrder>(
    random: &mut Random,
    order: &O,
    levels: usize,
    operations: u64,
    keys: u64,
    range_deletes: bool,
) -> Vec<Level> {
    let mut all = vec![Level::default(); levels];
    for seq in 1..=operations {
        let level = ((seq - 1) * levels as u64 / operations) as usize;
        let key = random.key(keys);
        match random.below(12) {
            0 if range_deletes => {
                let mut bounds = [random.key(keys), random.key(keys)];
                bounds.sort_by(|a, b| order.compare(a, b));
                let [start, end] = bounds.map(|bound| (!random.one_in(8)).then_some(bound));
                all[level].tombstones.push(RangeTombstone { start, end, seq });
            }
            1..4 => all[level].entries.push(Entry::delete(&key, seq)),
            _ => {
                let value = seq.to_string().into_bytes();
                all[level].entries.push(Entry::put(&key, seq, &value));
            }
        }
    }
    all
}

/// What a reader at `at` sees when nothing has expired: keys ascending in `order`.
pub(crate) fn visible<O: KeyOrder>(
    order: &O,
    levels: &[Level],
    at: Seq,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    visible_at(order, levels, at, 0)
}

/// What a reader at `at` sees at a time: every history replayed, write after write.
pub(crate) fn visible_at<O: KeyOrder>(
    order: &O,
    levels: &[Level],
    at: Seq,
    time: Millis,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries: Vec<_> = levels.iter().flat_map(|level| &level.entries).collect();
    // Within a key from old to new.
    entries.sort_by(|a, b| order.compare(&a.key, &b.key).then(a.seq.cmp(&b.seq)));
    let mut out: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.seq < at) {
        let covered = levels.iter().flat_map(|level| &level.tombstones).any(|tombstone| {
            let start = tombstone.start.as_deref();
            let end = tombstone.end.as_deref();
            tombstone.seq < at
                && tombstone.seq > entry.seq
                && start.is_none_or(|start| order.compare(start, &entry.key).is_le())
                && end.is_none_or(|end| order.compare(&entry.key, end).is_lt())
        });
        if covered {
            continue;
        }
        let known = out.pop_if(|(key, _)| order.compare(key, &entry.key).is_eq());
        let (expiry, value) = split(entry.kind, &entry.value);
        let value = match (entry.kind, expired(expiry, time)) {
            (Kind::Delete, _) | (Kind::ExpiringPut, true) => None,
            (Kind::ExpiringMerge, true) => known.map(|(_, value)| value),
            (Kind::Put | Kind::ExpiringPut, _) => Some(value.to_vec()),
            (Kind::SeparatedPut | Kind::ExpiringSeparatedPut, _) => {
                unreachable!("no model has them")
            }
            (Kind::Merge | Kind::ExpiringMerge, _) => {
                let existing = known.as_ref().map(|(_, value)| &value[..]);
                Concat.full_merge(&entry.key, existing, &[value]).expect("it never fails")
            }
        };
        out.extend(value.map(|value| (entry.key.clone(), value)));
    }
    out
}

/// The fragments of `tombstones`: start, end, sequence numbers from new to old.
pub(crate) type Fragment = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<Seq>);

pub(crate) fn fragments<O: KeyOrder>(order: &O, tombstones: &[RangeTombstone]) -> Vec<Fragment> {
    let bounds = tombstones.iter().flat_map(|tombstone| [&tombstone.start, &tombstone.end]);
    let mut cuts: Vec<Vec<u8>> = bounds.flatten().cloned().collect();
    cuts.sort_by(|a, b| order.compare(a, b));
    cuts.dedup();
    let starts = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(None));
    let covers = |tombstone: &RangeTombstone, start: &Option<Vec<u8>>, end: &Option<Vec<u8>>| {
        crate::base::rangedel::compare_starts(order, tombstone.start.as_deref(), start.as_deref())
            .is_le()
            && crate::base::rangedel::compare_ends(order, end.as_deref(), tombstone.end.as_deref())
                .is_le()
    };
    let mut out = Vec::new();
    for (start, end) in starts.zip(ends) {
        let covering = tombstones.iter().filter(|tombstone| covers(tombstone, &start, &end));
        let mut seqs: Vec<Seq> = covering.map(|tombstone| tombstone.seq).collect();
        seqs.sort_unstable_by(|a, b| b.cmp(a));
        seqs.dedup();
        if !seqs.is_empty() {
            out.push((start, end, seqs));
        }
    }
    out
}
