//! Iterators and cursors take the memory that the last one of their thread left behind. Whatever that was made for (other
//! sources, another version of the tree, another keyspace, another order of the keys), the next one shows what it should,
//! and what was dropped keeps nothing.

use super::{Place, key, run_files, settled, shrinks, small};
use esker::{Cursor, Db, Iter, Keyspace, KeyspaceOptions};
use esker_testkit::Rng;
use esker_testkit::orders::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: usize = 400;

/// A keyspace, what it holds, and whether its greatest key is its first.
struct Space {
    all: Keyspace,
    model: Model,
    reversed: bool,
}

impl Space {
    fn new(db: &Db, name: &str, reversed: bool) -> Self {
        let mut options = KeyspaceOptions::default();
        if reversed {
            options.comparator = Some(Arc::new(Reverse));
        }
        let all = db.keyspace_with(name, options).unwrap();
        Self { all, model: Model::new(), reversed }
    }

    fn write(&mut self, random: &mut Rng, count: usize) {
        // What is written next lies over what is removed, and stays.
        let (from, to) = (random.below(KEYS as u64) as usize, random.below(150) as usize);
        // In either order the range holds the keys between the two, and the first of them.
        let (low, high) = (key(from).into_bytes(), key(from + to).into_bytes());
        if self.reversed {
            self.all.remove_range(&high[..]..&low[..]).unwrap();
            self.model.retain(|key, _| *key > high || *key <= low);
        } else {
            self.all.remove_range(&low[..]..&high[..]).unwrap();
            self.model.retain(|key, _| *key < low || *key >= high);
        }
        for _ in 0..count {
            let number = random.below(KEYS as u64) as usize;
            // Keys of all lengths, so that buffers of cursors are too short, too long or just right.
            let key = format!("{}{}", key(number), "k".repeat(number % 5 * 60)).into_bytes();
            if random.percent(20) {
                self.all.remove(&key).unwrap();
                self.model.remove(&key);
            } else {
                let value = format!("{:x}", random.next()).repeat(1 + number % 7).into_bytes();
                self.all.insert(&key, &value).unwrap();
                self.model.insert(key, value);
            }
        }
    }

    /// The entries, in the order of the keyspace.
    fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = self.model.iter().map(|(key, value)| (key.clone(), value.clone()));
        if self.reversed { entries.rev().collect() } else { entries.collect() }
    }
}

/// What lives on, and what it must still show.
enum Living {
    Iter(Iter, Vec<(Vec<u8>, Vec<u8>)>),
    /// The place among the entries where the cursor stands.
    Cursor(Cursor, Vec<(Vec<u8>, Vec<u8>)>, usize),
}

impl Living {
    fn new(space: &Space, random: &mut Rng) -> Option<Self> {
        let entries = space.entries();
        if random.percent(50) {
            return Some(Self::Iter(space.all.iter().unwrap(), entries));
        }
        let mut cursor = space.all.cursor().unwrap();
        let at = random.below(entries.len().max(1) as u64) as usize;
        cursor.seek(&entries.get(at)?.0).unwrap();
        Some(Self::Cursor(cursor, entries, at))
    }

    /// Shows some of it.
    fn go(&mut self, random: &mut Rng) {
        match self {
            Self::Iter(iter, left) => {
                for _ in 0..random.below(20) {
                    let forward = random.percent(50);
                    let found = if forward { iter.next_entry() } else { iter.next_back_entry() };
                    let found = found.unwrap().map(|(key, value)| (key.to_vec(), value.to_vec()));
                    let expected = match forward {
                        true => (!left.is_empty()).then(|| left.remove(0)),
                        false => left.pop(),
                    };
                    assert_eq!(found, expected, "forward {forward}");
                }
            }
            Self::Cursor(cursor, entries, at) => {
                let stands = |cursor: &Cursor, at: usize| {
                    let expected = entries.get(at).map(|(key, value)| (&key[..], &value[..]));
                    assert_eq!(cursor.valid().then(|| (cursor.key(), cursor.value())), expected);
                };
                stands(cursor, *at);
                for _ in 0..random.below(20) {
                    let to = random.below(entries.len() as u64) as usize;
                    *at = match random.below(4) {
                        0 => cursor.seek(&entries[to].0).map(|()| to).unwrap(),
                        1 => cursor.seek_back(&entries[to].0).map(|()| to).unwrap(),
                        2 if *at + 1 < entries.len() => cursor.next().map(|()| *at + 1).unwrap(),
                        3 if *at > 0 => cursor.prev().map(|()| *at - 1).unwrap(),
                        _ => continue,
                    };
                    stands(cursor, *at);
                }
            }
        }
    }
}

/// Reads all of a keyspace with iterators and cursors that are made and dropped one after the other.
fn check(space: &Space, random: &mut Rng) {
    let entries = space.entries();
    let found: Vec<_> = space.all.iter().unwrap().map(Result::unwrap).collect();
    assert!(found == entries, "forward: {} of {} entries", found.len(), entries.len());
    // Dropped before it was placed, and where it stands.
    drop(space.all.iter().unwrap());
    drop(space.all.cursor().unwrap());
    let mut cursor = space.all.cursor().unwrap();
    cursor.seek_to_last().unwrap();
    let last = entries.last().map(|(key, value)| (&key[..], &value[..]));
    assert_eq!(cursor.valid().then(|| (cursor.key(), cursor.value())), last);
    drop(cursor);
    let mut found: Vec<_> = space.all.iter().unwrap().rev().map(Result::unwrap).collect();
    found.reverse();
    assert!(found == entries, "backward: {} of {} entries", found.len(), entries.len());
    for _ in 0..10 {
        let Some((first, _)) = entries.get(random.below(entries.len().max(1) as u64) as usize)
        else {
            return;
        };
        let found: Vec<_> =
            space.all.range(&first[..]..).unwrap().take(3).map(Result::unwrap).collect();
        let from = entries.iter().position(|(key, _)| key == first).unwrap();
        assert!(found == entries[from..entries.len().min(from + 3)], "a range");
    }
}

#[test]
fn an_iterator_shows_nothing_of_the_one_whose_memory_it_has() {
    let given = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("ESKER_SEED={seed}");
    let mut random = Rng::new(seed);
    let place = Place::new();
    let mut options = small();
    options.comparators = vec![Arc::new(Reverse)];
    let db = Db::open_with(place.path(), options).unwrap();
    let mut spaces = vec![
        Space::new(&db, "bytes", false),
        Space::new(&db, "reversed", true),
        Space::new(&db, "fleeting0", false),
    ];
    let mut living: Vec<Living> = Vec::new();
    for round in 1..60 {
        // From the memtable alone over many runs to one, each with what was left behind before.
        for space in &mut spaces {
            space.write(&mut random, 60);
        }
        match round % 5 {
            0 => db.compact().unwrap(),
            1 | 2 => db.flush().unwrap(),
            3 => db.wait_until_idle().unwrap(),
            _ => {}
        }
        for _ in 0..4 {
            let which = random.below(3) as usize;
            check(&spaces[which], &mut random);
            living.extend(Living::new(&spaces[which], &mut random));
        }
        for living in &mut living {
            living.go(&mut random);
        }
        while living.len() > 12 {
            living.swap_remove(random.below(living.len() as u64) as usize);
        }
        if round % 7 == 0 {
            // What lives on goes on to show what was dropped.
            db.drop_keyspace(&format!("fleeting{}", round / 7 - 1)).unwrap();
            spaces[2] = Space::new(&db, &format!("fleeting{}", round / 7), false);
        }
    }
    drop(living);
    assert_eq!((db.stats().held.iterators, db.stats().held.pinned), (0, 0));
}

/// The memory that the last iterator of a thread left behind refers to nothing: what it read is given back while no
/// other one is made.
#[test]
fn what_an_iterator_leaves_behind_keeps_neither_blocks_nor_files() {
    for how in 0..4 {
        let place = Place::new();
        let db = place.open();
        for round in 0..3 {
            super::fill(&db, 0..2_000, round);
            db.flush().unwrap();
        }
        super::fill(&db, 0..100, 3);
        let all = db.default_keyspace();
        let (mut iter, mut cursor) = (all.iter().unwrap(), all.cursor().unwrap());
        assert!(iter.next_entry().unwrap().is_some() && iter.next_back_entry().unwrap().is_some());
        cursor.seek(key(1_000)).unwrap();
        assert!(cursor.valid() && db.stats().held.pinned > 0);
        db.remove_range::<&str>(..).unwrap();
        db.compact().unwrap();
        db.wait_until_idle().unwrap();
        let held = db.stats().held;
        assert!(held.iterators == 2 && held.data > 0 && held.pinned > 0, "{held:?}");
        let (before, _) = run_files(&place.path());
        // In either order, in the middle or at their ends.
        match how {
            0 => drop((iter, cursor)),
            1 => drop((cursor, iter)),
            2 => {
                assert_eq!(iter.count(), 1_998);
                drop(cursor);
            }
            _ => {
                while cursor.valid() {
                    cursor.next().unwrap();
                }
                drop((iter, cursor));
            }
        }
        assert_eq!(db.stats().held.pinned, 0);
        shrinks(&db, &place, |left| left < before / 4);
        let kept = |db: &Db| (db.stats().held.states, db.stats().held.data);
        settled(&db, &place.path(), |_| kept(&db) == (0, 0));
        assert_eq!(kept(&db), (0, 0), "after {how}");
    }
}
