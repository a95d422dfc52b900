use super::*;
use crate::base::rangedel::RangeTombstone;
use crate::base::{Bytewise, KeyBuf, SEQ_MAX};
use crate::iter::testing::*;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

type TestIter<O> = VisibleIter<VecCursor<O>, O, Vec<RangeTombstone>>;

fn iterate<O: TestOrder>(levels: &[Level], at: Seq, bounds: Bounds, fuse: &Fuse) -> TestIter<O> {
    iterate_at(levels, at, 0, bounds, fuse)
}

fn iterate_at<O: TestOrder>(
    levels: &[Level],
    at: Seq,
    time: Millis,
    bounds: Bounds,
    fuse: &Fuse,
) -> TestIter<O> {
    let mut sources = Sources::with_room(levels.len());
    for level in levels {
        let newest = level.entries.iter().map(|entry| entry.seq).max().unwrap_or(0);
        sources.push(VecCursor::new(O::make(), level.entries.clone(), fuse), newest + 1);
    }
    let tombstones = levels.iter().map(|level| level.tombstones.clone()).collect();
    VisibleIter::new(O::make(), sources, tombstones, reading(at, time), bounds)
}

fn random_bound(random: &mut Random, keys: u64) -> Bound<KeyBuf> {
    match random.below(4) {
        0 => Bound::Included(random.key(keys).into()),
        1 => Bound::Excluded(random.key(keys).into()),
        _ => Bound::Unbounded,
    }
}

fn inside<O: KeyOrder>(order: &O, bounds: &Bounds, key: &[u8]) -> bool {
    let low = match &bounds.low {
        Bound::Included(low) => order.compare(low, key).is_le(),
        Bound::Excluded(low) => order.compare(low, key).is_lt(),
        Bound::Unbounded => true,
    };
    let high = match &bounds.high {
        Bound::Included(high) => order.compare(key, high).is_le(),
        Bound::Excluded(high) => order.compare(key, high).is_lt(),
        Bound::Unbounded => true,
    };
    low && high
}

/// Moves the iterator about; `disturb` runs before each move.
fn walk_at_random<C: Cursor, O: TestOrder>(
    random: &mut Random,
    iter: &mut VisibleIter<C, O, Vec<RangeTombstone>>,
    expected: &[(Vec<u8>, Vec<u8>)],
    keys: u64,
    mut disturb: impl FnMut(&mut Random),
) -> Result<()> {
    let order = O::make();
    let mut at: Option<usize> = None;
    for _ in 0..60 {
        disturb(random);
        match random.below(16) {
            0 => {
                iter.seek_to_first()?;
                at = (!expected.is_empty()).then_some(0);
            }
            1 => {
                iter.seek_to_last()?;
                at = expected.len().checked_sub(1);
            }
            2 => {
                let key = random.key(keys);
                iter.seek(&key)?;
                at = expected.iter().position(|entry| order.compare(&entry.0, &key).is_ge());
            }
            3 => {
                let key = random.key(keys);
                iter.seek_before(&key)?;
                at = expected.iter().rposition(|entry| order.compare(&entry.0, &key).is_lt());
            }
            number if number % 5 != 0 => {
                iter.next()?;
                at = at.map(|at| at + 1).filter(|at| *at < expected.len());
            }
            _ => {
                iter.prev()?;
                at = at.and_then(|at| at.checked_sub(1));
            }
        }
        assert_eq!(iter.valid(), at.is_some());
        if let Some(at) = at {
            assert_eq!((iter.key(), iter.value()), (&*expected[at].0, &*expected[at].1));
        }
    }
    Ok(())
}

fn model<O: TestOrder>(range_deletes: bool) {
    let mut random = Random::from_env();
    let order = O::make();
    for round in 0..400 {
        let operations = 1 + random.below(160);
        let keys = 2 + random.below(40);
        let count = 1 + round % 5;
        let levels = random_levels(&mut random, &order, count, operations, keys, range_deletes);
        let at = if random.one_in(2) { SEQ_MAX } else { random.below(operations + 2) };
        let bounds =
            Bounds { low: random_bound(&mut random, keys), high: random_bound(&mut random, keys) };
        let time = random.below(operations + 2);
        let mut expected = visible_at(&order, &levels, at, time);
        expected.retain(|(key, _)| inside(&order, &bounds, key));
        let mut iter = iterate_at::<O>(&levels, at, time, bounds, &long_fuse());
        walk_at_random(&mut random, &mut iter, &expected, keys, |_| {}).expect("no fuse");
    }
}

#[test]
fn shows_what_the_snapshot_sees_bytewise() {
    model::<Bytewise>(false);
}

#[test]
fn shows_what_the_snapshot_sees_under_range_tombstones() {
    model::<Bytewise>(true);
}

#[test]
fn shows_what_the_snapshot_sees_in_a_custom_order() {
    model::<Descending>(true);
}

/// Walks the whole and returns what was seen.
fn collect<O: TestOrder>(iter: &mut TestIter<O>, backward: bool) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    if backward {
        iter.seek_to_last()?
    } else {
        iter.seek_to_first()?
    }
    while iter.valid() {
        keys.push(iter.key().to_vec());
        if backward { iter.prev()? } else { iter.next()? }
    }
    Ok(keys)
}

#[test]
fn never_ends_early_without_an_error() {
    let mut random = Random::from_env();
    let mut fired = 0;
    for round in 0..30 {
        let levels = random_levels(&mut random, &Bytewise, 3, 80, 30, round % 2 == 0);
        let expected: Vec<_> =
            visible(&Bytewise, &levels, SEQ_MAX).into_iter().map(|entry| entry.0).collect();
        for backward in [false, true] {
            for burn in 0..100 {
                let fuse = long_fuse();
                fuse.set(burn);
                let mut iter = iterate::<Bytewise>(&levels, SEQ_MAX, Bounds::default(), &fuse);
                match collect(&mut iter, backward) {
                    Ok(mut keys) => {
                        if backward {
                            keys.reverse();
                        }
                        assert_eq!(keys, expected);
                    }
                    Err(_) => {
                        fired += 1;
                        assert!(!iter.valid());
                        assert!(iter.next().is_err() && iter.prev().is_err());
                        fuse.set(u64::MAX);
                        assert!(iter.next().is_err(), "only a new position ends an error");
                        assert_eq!(collect(&mut iter, false).expect("renewed"), expected);
                    }
                }
            }
        }
    }
    assert!(fired > 1000, "only {fired} faults fired");
}

fn moves_of(iter: &TestIter<Bytewise>) -> u64 {
    iter.tree.cursors().iter().map(|cursor| cursor.moves.get()).sum()
}

fn number_key(number: u64) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

#[test]
fn leaps_over_many_versions_of_a_key() {
    let mut level = Level::default();
    level.entries.push(Entry::put(b"a", 1, b"old"));
    level.entries.push(Entry::put(b"z", 2, b"last"));
    level.entries.extend((3..2000).map(|seq| Entry::put(b"k", seq, b"v")));
    for at in [SEQ_MAX, 1000, 3] {
        for backward in [false, true] {
            let mut iter =
                iterate::<Bytewise>(&[level.clone()], at, Bounds::default(), &long_fuse());
            let keys = collect(&mut iter, backward).expect("no fuse");
            assert_eq!(keys.len(), if at == 3 { 2 } else { 3 });
            assert!(moves_of(&iter) < 60, "{} moves at {at}, {backward}", moves_of(&iter));
        }
    }
}

#[test]
fn leaps_over_the_keys_under_a_range_tombstone() {
    let old = Level {
        entries: (0..5000).map(|i| Entry::put(&number_key(i), i + 1, b"v")).collect(),
        tombstones: Vec::new(),
    };
    let mut new = Level::default();
    let tombstone = |start, end, seq| RangeTombstone { start, end, seq };
    new.tombstones.push(tombstone(Some(number_key(10)), Some(number_key(4900)), 6000));
    new.entries.push(Entry::put(&number_key(2000), 6001, b"new"));
    for backward in [false, true] {
        let levels = [old.clone(), new.clone()];
        let mut iter = iterate::<Bytewise>(&levels, SEQ_MAX, Bounds::default(), &long_fuse());
        let mut keys = collect(&mut iter, backward).expect("no fuse");
        if backward {
            keys.reverse();
        }
        let expected: Vec<_> = (0..10).chain([2000]).chain(4900..5000).map(number_key).collect();
        assert_eq!(keys, expected);
        assert!(moves_of(&iter) < 250, "{} moves", moves_of(&iter));
    }
    // Without bounds on either side everything is covered.
    let all = Level { entries: Vec::new(), tombstones: vec![tombstone(None, None, 6000)] };
    for backward in [false, true] {
        let levels = [old.clone(), all.clone()];
        let mut iter = iterate::<Bytewise>(&levels, SEQ_MAX, Bounds::default(), &long_fuse());
        assert!(collect(&mut iter, backward).expect("no fuse").is_empty());
        assert!(moves_of(&iter) < 60, "{} moves", moves_of(&iter));
    }
}

#[test]
fn stops_at_its_bounds_among_entries_that_it_does_not_see() {
    let entries = (0..5000).map(|i| Entry::put(&number_key(i), i + 10, b"v")).collect();
    let level = Level { entries, tombstones: Vec::new() };
    let bounds = Bounds {
        low: Bound::Included(number_key(2000).into()),
        high: Bound::Excluded(number_key(2010).into()),
    };
    for backward in [false, true] {
        let mut iter =
            iterate::<Bytewise>(std::slice::from_ref(&level), 5, bounds.clone(), &long_fuse());
        assert!(collect(&mut iter, backward).expect("no fuse").is_empty());
        assert!(moves_of(&iter) < 30, "{} moves", moves_of(&iter));
    }
}

type Shared = Rc<RefCell<BTreeMap<(Vec<u8>, Reverse<Seq>), Entry>>>;

/// A cursor over entries to which others may be added at any time, as over a memtable.
struct Growing {
    entries: Shared,
    here: Option<Entry>,
    moves: Rc<Cell<u64>>,
}

impl Growing {
    fn here(&self) -> &Entry {
        self.here.as_ref().expect("only a valid cursor is asked")
    }

    fn place(&self) -> (Vec<u8>, Reverse<Seq>) {
        (self.here().key.clone(), Reverse(self.here().seq))
    }

    fn first_after(&mut self, place: Bound<(Vec<u8>, Reverse<Seq>)>) -> Result<()> {
        self.moves.set(self.moves.get() + 1);
        let entries = self.entries.borrow();
        self.here = entries.range((place, Bound::Unbounded)).next().map(|entry| entry.1.clone());
        Ok(())
    }

    fn last_before(&mut self, place: Bound<(Vec<u8>, Reverse<Seq>)>) -> Result<()> {
        self.moves.set(self.moves.get() + 1);
        let entries = self.entries.borrow();
        let mut range = entries.range((Bound::Unbounded, place));
        self.here = range.next_back().map(|entry| entry.1.clone());
        Ok(())
    }
}

impl Cursor for Growing {
    fn valid(&self) -> bool {
        self.here.is_some()
    }
    fn key(&self) -> &[u8] {
        &self.here().key
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
        let entries = self.entries.borrow();
        let mut before = entries.range(..self.place());
        before.next_back().is_none_or(|(place, _)| place.0 != self.here().key)
    }
    fn seek(&mut self, key: &[u8], below: Seq) -> Result<()> {
        self.first_after(Bound::Excluded((key.to_vec(), Reverse(below))))
    }
    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.last_before(Bound::Excluded((key.to_vec(), Reverse(Seq::MAX))))
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.first_after(Bound::Unbounded)
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.last_before(Bound::Unbounded)
    }
    fn next(&mut self) -> Result<()> {
        self.first_after(Bound::Excluded(self.place()))
    }
    fn prev(&mut self) -> Result<()> {
        self.last_before(Bound::Excluded(self.place()))
    }
}

#[test]
fn entries_that_arrive_during_the_walk_change_nothing() {
    let mut random = Random::from_env();
    for round in 0..300 {
        let (operations, keys) = (1 + random.below(100), 2 + random.below(40));
        let levels = random_levels(&mut random, &Bytewise, 3, operations, keys, round % 2 > 0);
        let at = operations + 1;
        let shared: Vec<Shared> = levels.iter().map(|_| Shared::default()).collect();
        let add = |to: &Shared, entry: Entry| {
            to.borrow_mut().insert((entry.key.clone(), Reverse(entry.seq)), entry);
        };
        let mut sources = Sources::with_room(levels.len());
        for (level, shared) in levels.iter().zip(&shared) {
            level.entries.iter().for_each(|entry| add(shared, entry.clone()));
            let cursor = Growing { entries: Rc::clone(shared), here: None, moves: Rc::default() };
            sources.push(cursor, SEQ_MAX);
        }
        let tombstones = levels.iter().map(|level| level.tombstones.clone()).collect();
        let mut iter =
            VisibleIter::new(Bytewise, sources, tombstones, reading(at, 0), Bounds::default());
        let expected = visible(&Bytewise, &levels, at);
        let mut seq = at;
        let disturb = |random: &mut Random| {
            for _ in 0..random.below(4) {
                let key = random.key(keys);
                let to = &shared[random.below(3) as usize];
                let new = if random.one_in(3) {
                    Entry::delete(&key, seq)
                } else {
                    Entry::put(&key, seq, b"too new")
                };
                add(to, new);
                seq += 1;
            }
        };
        walk_at_random(&mut random, &mut iter, &expected, keys, disturb).expect("cannot fail");
    }
}

#[test]
fn a_turn_takes_few_steps_however_many_entries_have_arrived() {
    let (large, small) = (Shared::default(), Shared::default());
    let add = |to: &Shared, key: u64, seq| {
        let entry = Entry::put(&number_key(key), seq, b"v");
        to.borrow_mut().insert((entry.key.clone(), Reverse(seq)), entry);
    };
    (1..20).for_each(|key| add(&large, 1_000 * key, key));
    add(&small, 500, 25);
    let moves: Rc<Cell<u64>> = Rc::default();
    let mut sources = Sources::with_room(2);
    for entries in [&large, &small] {
        let (entries, moves) = (Rc::clone(entries), Rc::clone(&moves));
        sources.push(Growing { entries, here: None, moves }, SEQ_MAX);
    }
    let tombstones: Vec<Vec<RangeTombstone>> = Vec::new();
    let reading = reading(30, 0);
    let mut iter = VisibleIter::new(Bytewise, sources, tombstones, reading, Bounds::default());
    iter.seek_to_last().expect("cannot fail");
    for key in (2..20).rev() {
        assert_eq!(iter.key(), number_key(1_000 * key));
        iter.prev().expect("cannot fail");
    }
    assert_eq!(iter.key(), number_key(1_000));
    // One cursor stands below them.
    (501..999).for_each(|key| add(&small, key, 1_000 + key));
    moves.set(0);
    iter.next().expect("cannot fail");
    assert_eq!(iter.key(), number_key(2_000));
    assert!(moves.get() < 20, "{} moves", moves.get());
    // It stands behind its last entry now; these arrive before the one above it.
    add(&small, 2_900, 26);
    iter.seek(&number_key(2_000)).expect("cannot fail");
    (2_001..2_899).for_each(|key| add(&small, key, 1_000 + key));
    moves.set(0);
    iter.prev().expect("cannot fail");
    assert_eq!(iter.key(), number_key(1_000));
    assert!(moves.get() < 30, "{} moves", moves.get());
}
