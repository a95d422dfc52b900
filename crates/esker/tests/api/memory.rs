//! The memory budget, counted in bytes: what flushes and compactions take, and what iterators hold.

use super::{Place, key};
use esker::{Cursor, Db, Options};
use esker_testkit::Rng;

const MIB: u64 = 1 << 20;

fn open(place: &Place, memory: u64) -> Db {
    let mut options = Options::default();
    options.memory = Some(memory);
    Db::open_with(place.path(), options).unwrap()
}

/// Bytes that do not compress.
fn noise(random: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// Puts keys in no order, each several times, so that they stand in many runs.
fn load(db: &Db, keys: usize, rounds: usize, value: &[u8]) {
    for n in 0..keys * rounds {
        db.insert(key(n * 7_919 % keys), value).unwrap();
    }
}

#[test]
fn the_buffers_of_flushes_and_compactions_keep_to_their_share() {
    for mib in [4, 16] {
        let (place, memory) = (Place::new(), mib * MIB);
        let db = open(&place, memory);
        let mut random = Rng::new(1);
        load(&db, 30_000, 2, &noise(&mut random, 400));
        db.compact().unwrap();
        let stats = db.stats();
        assert!(stats.compactions + stats.pushes > 2, "{} compactions", stats.compactions);
        // A flush and a compaction each have one run segment of a MiB with index and filter, of which
        // half a MiB is enough, beside what is read ahead.
        let share = memory / 16 + MIB;
        let most = stats.memory.buffers_max;
        assert!(
            most > 100_000 && most <= share,
            "{most} bytes of buffers, with a share of {share}"
        );
        db.wait_until_idle().unwrap();
        let left = db.stats().memory.buffers;
        assert!(left <= memory / 16, "{left} bytes of buffers are left when nothing is done");
    }
}

#[test]
fn all_parts_together_keep_to_the_budget() {
    let (place, memory) = (Place::new(), 16 * MIB);
    let db = open(&place, memory);
    let mut random = Rng::new(2);
    let value = noise(&mut random, 300);
    let mut most = (0, db.stats().memory);
    for n in 0..80_000 {
        db.insert(key(n * 7_919 % 50_000), &value).unwrap();
        db.get(key(n * 104_729 % 50_000)).unwrap();
        if n % 500 == 0 {
            // What was evicted is freed when no thread of the process can still use it, and other tests
            // run beside this one.
            let stats = db.stats();
            let total = stats.memory.total() - stats.held.evicted;
            if total > most.0 {
                most = (total, stats.memory);
            }
        }
    }
    assert_eq!(most.1.limit, memory);
    assert!(most.0 <= memory / 10 * 11 && most.0 > memory / 2, "{} of {:?}", most.0, most.1);
    let parts = most.1;
    for part in [parts.memtables, parts.cache, parts.indexes, parts.filters, parts.log] {
        assert!(part > 0, "{parts:?}");
    }
}

/// An eighth of the budget, and what one iterator may hold.
fn most_pinned(memory: u64) -> u64 {
    memory / 8 + MIB
}

#[test]
fn a_thousand_forgotten_iterators_hold_a_bounded_share() {
    const KEYS: usize = 40_000;
    let (place, memory) = (Place::new(), 16 * MIB);
    let db = open(&place, memory);
    load(&db, KEYS, 2, &[7; 300]);
    let space = db.default_keyspace();
    let mut forgotten = Vec::new();
    for n in 0..1000 {
        let first = n * 37;
        let mut entries = space.range(key(first)..).unwrap();
        assert_eq!(entries.next().unwrap().unwrap().0, key(first).into_bytes());
        forgotten.push((first, entries));
    }
    let held = db.stats().held;
    assert_eq!(held.iterators, 1000);
    assert!(held.pinned <= most_pinned(memory), "{} bytes are pinned", held.pinned);
    assert!(db.stats().pins_let_go > 500, "{} let go", db.stats().pins_let_go);
    // They see what they saw, and go on from both ends.
    load(&db, KEYS, 1, &[8; 300]);
    for (first, entries) in &mut forgotten {
        for next in 1..=3 {
            let (found, value) = entries.next().unwrap().unwrap();
            assert_eq!((found, value), (key(*first + next).into_bytes(), vec![7; 300]));
        }
        let (found, value) = entries.next_back().unwrap().unwrap();
        assert_eq!((found, value), (key(KEYS - 1).into_bytes(), vec![7; 300]));
    }
    let held = db.stats().held;
    assert!(held.pinned <= 2 * most_pinned(memory), "{} bytes are pinned in motion", held.pinned);
    drop(forgotten);
    assert_eq!(db.stats().held.pinned, 0);
}

#[test]
fn cursors_that_let_go_stay_where_they_are() {
    const KEYS: usize = 5_000;
    let (place, memory) = (Place::new(), MIB);
    let db = open(&place, memory);
    load(&db, KEYS, 2, &[7; 100]);
    let space = db.default_keyspace();
    // Some keys are gone, by deletes and by a range delete.
    (0..KEYS).step_by(5).for_each(|n| db.remove(key(n)).unwrap());
    db.remove_range(key(1000)..key(1500)).unwrap();
    let live: Vec<usize> = (0..KEYS).filter(|n| n % 5 != 0 && !(1000..1500).contains(n)).collect();
    // ESKER_SEED replays a run.
    let given = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    println!("ESKER_SEED={seed}");
    let mut random = Rng::new(seed);
    let mut cursors: Vec<(Cursor, Option<usize>)> =
        (0..60).map(|_| (space.cursor().unwrap(), None)).collect();
    let before = db.stats().pins_let_go;
    for _ in 0..6_000 {
        let (cursor, place) = &mut cursors[random.below(60) as usize];
        *place = match (random.below(5), *place) {
            (0, _) | (_, None) => {
                let wanted = random.below(KEYS as u64) as usize;
                cursor.seek(key(wanted)).unwrap();
                let found = live.partition_point(|n| *n < wanted);
                (found < live.len()).then_some(found)
            }
            (1 | 2, Some(at)) => {
                cursor.next().unwrap();
                (at + 1 < live.len()).then_some(at + 1)
            }
            (_, Some(at)) => {
                cursor.prev().unwrap();
                at.checked_sub(1)
            }
        };
        assert_eq!(cursor.valid(), place.is_some());
        if let Some(at) = *place {
            assert_eq!(cursor.key(), key(live[at]).as_bytes());
            assert_eq!(cursor.value(), [7; 100]);
        }
    }
    assert!(db.stats().pins_let_go > before + 1000, "{} let go", db.stats().pins_let_go);
}

#[test]
fn an_iterator_that_is_alone_keeps_its_blocks() {
    let place = Place::new();
    let db = open(&place, MIB);
    load(&db, 3_000, 3, &[7; 1000]);
    assert_eq!(db.iter().unwrap().count(), 3_000);
    assert_eq!(db.iter().unwrap().rev().count(), 3_000);
    let stats = db.stats();
    assert_eq!((stats.pins_let_go, stats.held.pinned), (0, 0));
}

/// Fills a keyspace for each number.
fn fill_keyspaces(db: &Db, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let keyspace = db.keyspace(&format!("keyspace{number:06}")).unwrap();
        keyspace.insert("key", "value").unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
}

#[test]
fn the_cache_gives_way_to_what_describes_the_trees() {
    let (place, memory) = (Place::new(), 4 * MIB);
    let db = open(&place, memory);
    let share = memory / 8 * 5;
    let small = db.stats().memory;
    assert!(small.description < MIB / 16 && small.cache_limit >= share, "{small:?}");
    fill_keyspaces(&db, 0..1500);
    let many = db.stats().memory;
    assert!(many.description > 3 * MIB / 2, "{many:?}");
    let left = memory - memory / 16 - memory / 8 - many.description;
    assert!(many.cache_limit <= left + memory / 64 && many.cache_limit < share, "{many:?}");
    for number in 0..1500 {
        db.drop_keyspace(&format!("keyspace{number:06}")).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    let gone = db.stats().memory;
    assert!(gone.description < MIB / 8, "{gone:?}");
}

#[test]
fn the_cache_grows_while_nobody_writes_and_gives_way_before_memtables_do() {
    let (place, memory) = (Place::new(), 64 * MIB);
    let db = open(&place, memory);
    let share = memory / 8 * 5;
    let quiet = |db: &Db| {
        // A worker that has nothing to do gives it; how soon is a matter of the machine.
        for _ in 0..10_000 {
            db.wait_until_idle().unwrap();
            if db.stats().memory.cache_limit > share + memory / 8 {
                return true;
            }
            std::thread::yield_now();
        }
        false
    };
    let mut random = Rng::new(3);
    assert!(quiet(&db), "{:?}", db.stats().memory);
    let value = noise(&mut random, 1000);
    let mut seen = db.stats().memory.cache_limit;
    for n in 0..40_000 {
        db.insert(key(n * 7_919 % 40_000), &value).unwrap();
        let memory = db.stats().memory;
        assert!(memory.cache_limit <= seen, "it grew while somebody wrote");
        seen = memory.cache_limit;
    }
    assert!(seen <= share, "{seen} bytes for the cache under load");
    // Puts the log to rest.
    db.compact().unwrap();
    assert!(quiet(&db), "{:?}", db.stats().memory);
}
