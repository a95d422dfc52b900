//! What is written, flushed, compacted and ingested while an iterator lets go of its blocks: it goes on with what
//! it saw.

use super::{Pairs, Step, ends_well, expect, value, write};
use crate::cuts::{PATH, key};
use esker::internals::sync::Point;
use esker::{Cursor, Db, Options};
use esker_testkit::barriers::Barriers;
use esker_testkit::{CrashFs, Rng};
use parking_lot::Mutex;
use std::sync::Arc;

const KEYS: usize = super::KEYS;
const CURSORS: usize = 60;
const MOVES: usize = 3000;
const ACTIONS: u64 = 24;

/// A budget so small that a few iterators hold more than their share, and memtables that are not full before.
fn narrow(disk: &CrashFs) -> Options {
    let mut options = super::sizes(disk);
    (options.memory, options.memtable_bytes) = (Some(1 << 20), Some(16 << 10));
    (options.block_bytes, options.segment_bytes) = (4 << 10, 16 << 10);
    options.partition_bytes = Some(64 << 10);
    options
}

/// Changes everything that the sources of an iterator may be, and what is expected.
pub(super) fn disturb(db: &Db, pairs: &Mutex<Arc<Pairs>>, round: u64) {
    let from = (round as usize * 37) % 300;
    let mut steps = vec![Step::Put(from, from + 60, round), Step::Remove(from + 70)];
    if round.is_multiple_of(4) {
        steps.push(Step::RemoveRange(from + 20, from + 50));
    }
    let mut now = Pairs::clone(&pairs.lock());
    write(&db.default_keyspace(), &steps);
    expect(&mut now, &steps);
    match round % 3 {
        0 => db.flush().unwrap(),
        1 => db.compact().unwrap(),
        _ => {
            let mut ingestion = db.ingest().unwrap();
            ingestion.remove_range(&db.default_keyspace(), key(from + 80)..key(from + 90)).unwrap();
            expect(&mut now, &[Step::RemoveRange(from + 80, from + 90)]);
            for number in (from..from + 100).step_by(3) {
                let value = value(number, 1000 + round);
                ingestion.insert(&db.default_keyspace(), key(number), value).unwrap();
                expect(&mut now, &[Step::Put(number, number + 1, 1000 + round)]);
            }
            ingestion.commit().unwrap();
        }
    }
    *pairs.lock() = Arc::new(now);
}

/// A cursor, what it sees, and the key on which it stands.
struct Walk {
    cursor: Cursor,
    sees: Arc<Pairs>,
    at: Option<Vec<u8>>,
}

impl Walk {
    fn step(&mut self, choice: u64, wanted: usize) {
        let key_of = |pair: (&Vec<u8>, &Vec<u8>)| pair.0.clone();
        self.at = match (choice, self.at.take()) {
            (0, _) | (_, None) => {
                self.cursor.seek(key(wanted)).unwrap();
                self.sees.range(key(wanted).into_bytes()..).next().map(key_of)
            }
            (1 | 2, Some(at)) => {
                self.cursor.next().unwrap();
                self.sees.range(at..).nth(1).map(key_of)
            }
            (_, Some(at)) => {
                self.cursor.prev().unwrap();
                self.sees.range(..at).next_back().map(key_of)
            }
        };
        assert_eq!(self.cursor.valid(), self.at.is_some());
        if let Some(at) = &self.at {
            assert_eq!(self.cursor.key(), at);
            assert!(self.cursor.value() == self.sees[at], "the value of {at:?}");
        }
    }
}

#[test]
fn an_iterator_that_has_let_go_sees_what_it_saw() {
    let seed = super::seed();
    let mut random = Rng::new(seed);
    let disk = CrashFs::new();
    let (db, barriers) = Barriers::open(PATH, narrow(&disk)).unwrap();
    let mut pairs = Pairs::new();
    for round in 1..4 {
        let steps = [Step::Put(0, KEYS, round)];
        write(&db.default_keyspace(), &steps);
        expect(&mut pairs, &steps);
        if round < 3 {
            db.flush().unwrap();
        }
    }
    let pairs = Arc::new(Mutex::new(Arc::new(pairs)));
    for round in 0..ACTIONS {
        let (db, pairs) = (db.clone(), pairs.clone());
        barriers.at(Point::IteratorLetsGo, move |_| disturb(&db, &pairs, 10 + round));
    }
    let keyspace = db.default_keyspace();
    let walk = |pairs: &Mutex<Arc<Pairs>>| Walk {
        cursor: keyspace.cursor().unwrap(),
        sees: pairs.lock().clone(),
        at: None,
    };
    let mut walks: Vec<_> = (0..CURSORS).map(|_| walk(&pairs)).collect();
    for _ in 0..MOVES {
        let which = random.below(CURSORS as u64) as usize;
        if random.below(20) == 0 {
            walks[which] = walk(&pairs);
        }
        walks[which].step(random.below(5), random.below(KEYS as u64) as usize);
    }
    assert_eq!(barriers.done(Point::IteratorLetsGo), ACTIONS as usize);
    // Those that have let go hold nothing, and the others hold their share.
    let (pinned, let_go) = (db.stats().held.pinned, db.stats().pins_let_go);
    assert!(pinned <= (1 << 20) / 4, "{pinned} bytes are pinned");
    assert!(let_go > 100, "{let_go} let go");
    drop(walks);
    assert_eq!(db.stats().held.pinned, 0);
    let pairs = pairs.lock().clone();
    ends_well(db, barriers, &disk, &pairs);
}
