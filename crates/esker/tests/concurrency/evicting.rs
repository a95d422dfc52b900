//! Readers of data that are many times as large as the cache. Between two steps of a read its blocks and indexes are
//! evicted and read again, while flushes and compactions replace the runs they belong to and snapshots keep others.
//!
//! Each key has a generation, which its only writer counts. What a reader of the present finds is of a generation
//! between the one that was acknowledged before its moment and the one that was begun after it; what a reader of a
//! snapshot finds is of the one that the key had there.

use super::{StopsOthers, assert_busy, assert_sound};
use crate::live::{number, padded, rounds, seed};
use esker::{Db, Keyspace, Options, Snapshot, Stats};
use esker_testkit::Rng;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const KEYS: u64 = 20_000;
const PADDING: u64 = 400;
const BLOCK_BYTES: u64 = 4 << 10;
const SEGMENT_BYTES: u64 = 32 << 10;
const READERS: u64 = 3;
/// Writes between two snapshots; the one before is dropped when the next is made.
const PER_SNAPSHOT: u64 = 1_500;
/// What the readers do together before the writer ends.
const READS: u64 = 3_000;
/// Keys of a scan, which are several blocks.
const ROWS: u64 = 60;

fn options() -> Options {
    let mut options = Options::default();
    options.memory = Some(1 << 20);
    options.memtable_bytes = Some(64 << 10);
    options.partition_bytes = Some(512 << 10);
    options.block_bytes = BLOCK_BYTES as u32;
    options.segment_bytes = SEGMENT_BYTES as u32;
    options.log_file_bytes = 256 << 10;
    options.workers = Some(2);
    options
}

fn key(at: u64) -> [u8; 9] {
    let mut key = [0; 9];
    key[..8].copy_from_slice(&at.to_be_bytes());
    key
}

/// No key has these, and each lies behind the key of that number.
fn absent(at: u64) -> [u8; 9] {
    let mut key = key(at);
    key[8] = 1;
    key
}

/// What a key has in a generation: nothing in each fifth.
fn content(at: u64, generation: u64) -> Option<Vec<u8>> {
    (generation % 5 != 4).then(|| padded(generation * KEYS + at, PADDING))
}

/// A moment that is kept, and the generations that the keys had then.
struct Kept {
    snapshot: Snapshot,
    generations: Vec<u64>,
}

struct Shared {
    db: Db,
    all: Keyspace,
    begun: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
    kept: Mutex<Arc<Kept>>,
    reads: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    fn write(&self, at: u64) {
        let generation = self.begun[at as usize].fetch_add(1, Ordering::SeqCst) + 1;
        match content(at, generation) {
            Some(value) => self.all.insert(key(at), value).unwrap(),
            None => self.all.remove(key(at)).unwrap(),
        }
        self.acknowledged[at as usize].store(generation, Ordering::SeqCst);
    }

    /// Only between two writes.
    fn keep(db: &Db, begun: &[AtomicU64]) -> Arc<Kept> {
        let generations = begun.iter().map(|generation| generation.load(Ordering::SeqCst));
        Arc::new(Kept { generations: generations.collect(), snapshot: db.snapshot().unwrap() })
    }
}

/// Generations that a read may find in some keys.
struct Expected {
    from: u64,
    generations: Vec<RangeInclusive<u64>>,
}

impl Expected {
    fn check(&self, at: u64, found: Option<&[u8]>, how: &str) {
        let may_be = self.generations[(at - self.from) as usize].clone();
        let is = |generation| content(at, generation).as_deref() == found;
        assert!(
            may_be.clone().any(is),
            "{how}: key {at} has {:?}, of generations {may_be:?}",
            found.map(|value| (number(value) % KEYS, number(value) / KEYS, value.len()))
        );
    }

    /// Every key, whether it was found or not, and nothing else.
    fn check_all(&self, mut found: BTreeMap<Vec<u8>, Vec<u8>>, keys: Range<u64>, how: &str) {
        for at in keys {
            self.check(at, found.remove(&key(at)[..]).as_deref(), how);
        }
        assert!(found.is_empty(), "{how}: {} keys that nobody asked for", found.len());
    }
}

/// A thread that reads in all ways.
struct Reader<'a> {
    shared: &'a Shared,
    rng: Rng,
    /// `None`: the present.
    kept: Option<Arc<Kept>>,
}

impl Reader<'_> {
    /// Runs `read` and returns what it made, with what it may have seen of these keys.
    fn expecting<T>(&self, keys: Range<u64>, read: impl FnOnce() -> T) -> (Expected, T) {
        let places = keys.start as usize..keys.end as usize;
        if let Some(kept) = &self.kept {
            let generations = kept.generations[places].iter().map(|g| *g..=*g).collect();
            return (Expected { from: keys.start, generations }, read());
        }
        let now = |of: &[AtomicU64]| -> Vec<u64> {
            of[places.clone()].iter().map(|g| g.load(Ordering::SeqCst)).collect()
        };
        let least = now(&self.shared.acknowledged);
        let made = read();
        let most = now(&self.shared.begun);
        let generations = least.into_iter().zip(most).map(|(least, most)| least..=most).collect();
        (Expected { from: keys.start, generations }, made)
    }

    fn point(&mut self) {
        let at = self.rng.below(KEYS);
        let all = &self.shared.all;
        let snapshot = self.kept.as_ref().map(|kept| &kept.snapshot);
        let in_place = self.rng.percent(50);
        let (expected, found) = self.expecting(at..at + 1, || match (snapshot, in_place) {
            (None, false) => all.get(key(at)).unwrap(),
            (None, true) => all.get_with(key(at), <[u8]>::to_vec).unwrap(),
            (Some(snapshot), false) => snapshot.get(all, key(at)).unwrap(),
            (Some(snapshot), true) => snapshot.get_with(all, key(at), <[u8]>::to_vec).unwrap(),
        });
        expected.check(at, found.as_deref(), "get");
        let absent = match snapshot {
            None => all.get(absent(at)).unwrap(),
            Some(snapshot) => snapshot.get(all, absent(at)).unwrap(),
        };
        assert_eq!(absent, None, "behind key {at}");
    }

    /// All keys are read as of one moment, somewhere between the begin and the end of the call.
    fn several(&mut self) {
        let numbers: Vec<_> = (0..40).map(|_| self.rng.below(KEYS)).collect();
        let keys = || numbers.iter().map(|at| key(*at));
        let (expected, found) = self.expecting(0..KEYS, || match &self.kept {
            None => self.shared.all.multi_get(keys()).unwrap(),
            Some(kept) => kept.snapshot.multi_get(&self.shared.all, keys()).unwrap(),
        });
        for (at, found) in numbers.iter().zip(found) {
            expected.check(*at, found.as_deref(), "multi_get");
        }
    }

    fn rows(&mut self) {
        let from = self.rng.below(KEYS - ROWS);
        let keys = from..from + ROWS;
        let range = key(keys.start)..key(keys.end);
        let (expected, iter) = self.expecting(keys.clone(), || match &self.kept {
            None => self.shared.all.range(range).unwrap(),
            Some(kept) => kept.snapshot.range(&self.shared.all, range).unwrap(),
        });
        let backward = self.rng.percent(40);
        let entries: Vec<_> = match backward {
            true => iter.rev().map(Result::unwrap).collect(),
            false => iter.map(Result::unwrap).collect(),
        };
        assert!(entries.is_sorted_by(|a: &(Vec<u8>, Vec<u8>), b| (a.0 < b.0) != backward));
        expected.check_all(entries.into_iter().collect(), keys, "range");
    }

    /// A cursor that lives on while others evict what it stands on, and moves near and far.
    fn walk(&mut self) {
        let (expected, mut cursor) = self.expecting(0..KEYS, || match &self.kept {
            None => self.shared.all.cursor().unwrap(),
            Some(kept) => kept.snapshot.cursor(&self.shared.all).unwrap(),
        });
        let mut from = self.rng.below(KEYS - ROWS);
        for _ in 0..6 {
            cursor.seek(key(from)).unwrap();
            let mut found = BTreeMap::new();
            while cursor.valid() && cursor.key() < &key(from + ROWS)[..] {
                found.insert(cursor.key().to_vec(), cursor.value().to_vec());
                cursor.next().unwrap();
            }
            expected.check_all(found, from..from + ROWS, "cursor");
            if cursor.valid() {
                cursor.prev().unwrap();
                assert!(cursor.valid() && cursor.key() < &key(from + ROWS)[..]);
            }
            from = match self.rng.percent(50) {
                true => (from + self.rng.below(ROWS)).min(KEYS - ROWS),
                false => self.rng.below(KEYS - ROWS),
            };
        }
    }

    fn run(&mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.kept = match self.rng.percent(50) {
                true => Some(self.shared.kept.lock().unwrap().clone()),
                false => None,
            };
            for _ in 0..20 {
                match self.rng.below(10) {
                    0 => self.several(),
                    1 | 2 => self.rows(),
                    3 => self.walk(),
                    _ => self.point(),
                }
                self.shared.reads.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn readers_see_what_they_should_while_what_they_read_is_evicted() {
    let seed = seed("readers_see_what_they_should_while_what_they_read_is_evicted");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), options()).unwrap();
    let all = db.default_keyspace().clone();
    let generations = || (0..KEYS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    for at in 0..KEYS {
        all.insert(key(at), content(at, 0).unwrap()).unwrap();
    }
    db.wait_until_idle().unwrap();
    let (begun, acknowledged) = (generations(), generations());
    let kept = Mutex::new(Shared::keep(&db, &begun));
    let before = db.stats();
    let (reads, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let shared = Shared { db, all, begun, acknowledged, kept, reads, stop };
    thread::scope(|scope| {
        for id in 1..=READERS {
            let (shared, rng) = (&shared, Rng::of_thread(seed, id));
            scope.spawn(move || {
                let _stops = StopsOthers(&shared.stop);
                Reader { shared, rng, kept: None }.run();
            });
        }
        let _stops = StopsOthers(&shared.stop);
        let mut rng = Rng::of_thread(seed, 0);
        for n in 0.. {
            let done = n >= rounds(12_000) && shared.reads.load(Ordering::Relaxed) >= READS;
            if done || shared.stop.load(Ordering::Acquire) {
                break;
            }
            if n % PER_SNAPSHOT == 0 {
                *shared.kept.lock().unwrap() = Shared::keep(&shared.db, &shared.begun);
            }
            shared.write(rng.below(KEYS));
        }
    });
    let after = shared.db.stats();
    // What does not fit is read again and again: blocks and, beyond these, indexes.
    let read = |stats: &Stats| stats.page_cache_reads + stats.device_reads;
    let blocks = after.cache_misses - before.cache_misses;
    let indexes = (read(&after) - read(&before)).saturating_sub(blocks);
    let written = after.data_file_bytes + after.written.flush + after.written.compaction;
    assert!(blocks > 4 * (written / BLOCK_BYTES), "{blocks} blocks for {written} bytes");
    assert!(indexes > 4 * (written / SEGMENT_BYTES), "{indexes} indexes for {written} bytes");
    assert_busy(&shared.db, 20);
    assert_sound(&shared.db);
}
