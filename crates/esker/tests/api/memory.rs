//! The memory budget, counted in bytes: what flushes and compactions take, what iterators hold, and the account of
//! each owner.

use super::{Place, key};
use esker::{Batch, Cursor, Db, Iter, MemoryUse, Options};
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
    // Each over many runs, which is more than the share of one, and each over one run, which is less.
    [false, true].into_iter().for_each(forget_a_thousand);
}

fn forget_a_thousand(compacted: bool) {
    const KEYS: usize = 40_000;
    let (place, memory) = (Place::new(), 16 * MIB);
    let db = open(&place, memory);
    load(&db, KEYS, 2, &[7; 300]);
    if compacted {
        db.compact().unwrap();
    }
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
    // Compactions go on meanwhile: iterators over what they leave hold less than their share, and these shares together
    // have a bound of their own.
    let others = if compacted { 0 } else { memory / 8 };
    assert!(held.pinned <= most_pinned(memory) + others, "{} bytes are pinned", held.pinned);
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

/// An iterator that stands on a value in pieces, which it leaves where they lie, keeps its blocks.
#[test]
fn an_iterator_that_cannot_let_go_does_not_count_as_one_that_has() {
    let (place, memory) = (Place::new(), MIB);
    let db = open(&place, memory);
    let pieces = vec![9; 600_000];
    for n in 0..100 {
        db.insert(key(n), [7; 300]).unwrap();
    }
    db.insert_reader("pieces", &pieces[..]).unwrap();
    db.insert("zero", "after").unwrap();
    db.compact().unwrap();
    let mut iterators: Vec<Iter> = Vec::new();
    for _ in 0..200 {
        let mut entries = db.range("pieces"..).unwrap().leaving_pieces();
        assert_eq!(entries.next().unwrap().unwrap().0, b"pieces");
        assert!(entries.is_in_pieces());
        iterators.push(entries);
    }
    let held = db.stats().held.pinned;
    assert!(held > most_pinned(memory) - MIB, "{held} bytes are pinned");
    assert_eq!(db.stats().pins_let_go, 0, "{held} bytes are pinned");
    // Behind it, one that was to let go does so at once.
    assert_eq!(iterators[199].next().unwrap().unwrap().1, b"after");
    assert_eq!(db.stats().pins_let_go, 1);
    assert!(db.stats().held.pinned < held, "{:?}", db.stats().held);
    drop(iterators);
    assert_eq!((db.stats().held.pinned, db.stats().memory.iterators), (0, 0));
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

/// Waits until a worker that has nothing to do has seen what is asked for; how soon is a matter of the machine.
fn comes(db: &Db, what: impl Fn(MemoryUse) -> bool) -> bool {
    for _ in 0..10_000 {
        db.wait_until_idle().unwrap();
        if what(db.stats().memory) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn what_transactions_wrote_and_read_is_counted_until_they_end() {
    let place = Place::new();
    let db = open(&place, 64 * MIB);
    let space = db.default_keyspace();
    let taken = || db.stats().memory.transactions;
    assert_eq!(taken(), 0);
    let (first, second) = (db.begin().unwrap(), db.begin().unwrap());
    (0..1000).for_each(|n| first.insert(&space, key(n), [7; 1000]).unwrap());
    let written = taken();
    assert!((MIB..=MIB * 3 / 2).contains(&written), "{written} bytes of a MB");
    // What a savepoint can bring back is kept beside what replaces it.
    let savepoint = first.savepoint();
    (0..1000).for_each(|n| first.insert(&space, key(n), [8; 1000]).unwrap());
    assert!(taken() >= 2 * written - MIB / 10, "{} bytes of {written} twice", taken());
    first.rollback_to(&savepoint).unwrap();
    assert_eq!(taken(), written);
    for n in 0..2000 {
        assert_eq!(second.get(&space, key(n)).unwrap(), None);
    }
    let read = taken() - written;
    assert!((100_000..1_000_000).contains(&read), "{read} bytes for 2,000 keys that were read");
    first.commit().unwrap();
    assert_eq!(taken(), read);
    drop(second);
    assert_eq!(taken(), 0);
}

#[test]
fn lists_of_range_tombstones_are_counted_until_they_are_compacted() {
    let place = Place::new();
    let db = open(&place, 16 * MIB);
    load(&db, 2_000, 1, &[7; 100]);
    // They stay while a snapshot may see what they hide.
    let snapshot = db.snapshot().unwrap();
    let before = db.stats().memory;
    assert_eq!(before.tombstones, 0);
    for n in 0..1000 {
        db.remove_range(key(n)..key(n + 1)).unwrap();
    }
    let listed = db.stats().memory;
    assert!(listed.tombstones >= 100_000, "{listed:?}");
    assert!(listed.memtables <= before.memtables + MIB / 16, "{listed:?} after {before:?}");
    db.flush().unwrap();
    assert!(comes(&db, |memory| memory.tombstones < listed.tombstones / 4 * 3));
    // The first read, or a compaction, has the list read from the run. It is shorter than that of the memtable.
    assert_eq!(db.get(key(10)).unwrap(), None);
    let read = db.stats().memory.tombstones;
    assert!((40_000..500_000).contains(&read), "{read} bytes of lists of runs");
    drop(snapshot);
    db.compact().unwrap();
    assert!(comes(&db, |memory| memory.tombstones == 0), "{:?}", db.stats().memory);
    assert_eq!(db.get(key(1000)).unwrap(), Some(vec![7; 100]));
}

#[test]
fn iterators_and_their_copies_of_entries_are_counted_until_they_go() {
    const CURSORS: u64 = 200;
    let place = Place::new();
    let db = open(&place, 4 * MIB);
    load(&db, 5_000, 3, &[7; 200]);
    let taken = || db.stats().memory.iterators;
    assert_eq!(taken(), 0);
    let space = db.default_keyspace();
    let mut cursors: Vec<Cursor> = (0..CURSORS).map(|_| space.cursor().unwrap()).collect();
    cursors.iter_mut().for_each(|cursor| cursor.seek(key(7)).unwrap());
    let small = taken();
    assert!((CURSORS * 500..=CURSORS * 20_000).contains(&small), "{small} bytes of iterators");
    drop(cursors);
    assert_eq!(taken(), 0);
    // One that lets its blocks go keeps a copy of its entry.
    let large = vec![9; 400_000];
    db.insert("large", &large).unwrap();
    db.flush().unwrap();
    let let_go = db.stats().pins_let_go;
    cursors = (0..20).map(|_| space.cursor().unwrap()).collect();
    for cursor in &mut cursors {
        cursor.seek("large").unwrap();
        assert_eq!(cursor.value(), large);
    }
    let copies = db.stats().pins_let_go - let_go;
    assert!(copies >= 10 && taken() >= copies * 400_000, "{} bytes, {copies} copies", taken());
    drop(cursors);
    assert_eq!(taken(), 0);
}

#[test]
fn batches_are_counted_until_they_are_dropped() {
    let place = Place::new();
    let db = open(&place, 64 * MIB);
    let space = db.default_keyspace();
    // Other tests of this process have batches, too, but no large ones.
    let (large, others) = (64 * MIB, 16 * MIB);
    let taken = || db.stats().memory.clients;
    let before = taken();
    let mut batch = Batch::new();
    for n in 0..64 {
        batch.insert(&space, key(n), vec![7; MIB as usize]);
    }
    assert!(taken() + others >= before + large, "{} bytes after {before}", taken());
    batch.clear();
    batch.insert(&space, "key", "value");
    assert!(taken() + others >= before + large, "the buffer is kept for new operations");
    drop(batch);
    assert!(taken() <= before + others, "{} bytes after {before}", taken());
}

#[test]
fn a_batch_does_not_take_the_cache_of_each_database() {
    let (place, beside) = (Place::new(), Place::new());
    let (memory, other) = (16 * MIB, 4096 * MIB);
    let (db, large) = (open(&place, memory), open(&beside, other));
    let mut batch = Batch::new();
    for n in 0..64 {
        batch.insert(&large.default_keyspace(), key(n), vec![7; MIB as usize]);
    }
    // All databases give way to it once, in proportion to their budgets.
    db.insert("key", "value").unwrap();
    db.flush().unwrap();
    let limit = db.stats().memory.cache_limit;
    assert!(limit >= memory / 8 * 5, "{limit} bytes beside {} operations", batch.len());
    drop(batch);
}

/// An iterator over a keyspace that stands on its first entry.
fn first_of(db: &Db, keyspace: &str) -> Iter {
    let mut entries = db.keyspace(keyspace).unwrap().iter().unwrap();
    entries.next().unwrap().unwrap();
    entries
}

#[test]
fn iterators_that_were_forgotten_with_much_do_not_make_others_search_again() {
    let (place, memory) = (Place::new(), 16 * MIB);
    let db = open(&place, memory);
    let large = vec![7; 15 * MIB as usize / 8];
    for keyspace in ["large1", "large2"] {
        db.keyspace(keyspace).unwrap().insert("key", &large).unwrap();
        db.flush().unwrap();
    }
    let small = db.keyspace("small").unwrap();
    (0..5_000).for_each(|n| small.insert(key(n), [8; 300]).unwrap());
    db.compact().unwrap();
    // The second one keeps its block, because the first holds no more than an eighth of the budget.
    let forgotten = [first_of(&db, "large1"), first_of(&db, "large2")];
    let held = db.stats().held.pinned;
    assert!(held > memory / 8 + MIB, "{held} bytes are pinned");
    // Those that come and go take no share with them.
    for _ in 0..2_000 {
        drop(first_of(&db, "small"));
    }
    let mut others: Vec<Iter> = (0..8).map(|_| small.iter().unwrap()).collect();
    for _ in 0..500 {
        for entries in &mut others {
            assert_eq!(entries.next().unwrap().unwrap().1, [8; 300]);
        }
    }
    assert_eq!(db.stats().pins_let_go, 0);
    // Past the bound, one that holds more than its share goes first.
    let mut third = first_of(&db, "large1");
    assert_eq!(db.stats().pins_let_go, 1);
    assert!(db.stats().held.pinned < held + memory / 16, "{:?}", db.stats().held);
    assert!(third.next().is_none());
    drop((forgotten, others, third));
    assert_eq!(db.stats().held.pinned, 0);
}

#[test]
fn readers_that_stand_still_hold_a_bounded_part_whatever_is_written() {
    const KEYS: usize = 8_000;
    let (place, memory) = (Place::new(), 16 * MIB);
    let db = open(&place, memory);
    let mut random = Rng::new(4);
    let value = noise(&mut random, 2_000);
    load(&db, KEYS, 1, &value);
    let space = db.default_keyspace();
    let mut stalled = space.iter().unwrap();
    assert_eq!(stalled.next().unwrap().unwrap().0, key(0).into_bytes());
    let mut forgotten: Vec<Iter> = Vec::new();
    for n in 0..1000 {
        let mut entries = space.range(key(n * 7)..).unwrap();
        entries.next().unwrap().unwrap();
        forgotten.push(entries);
    }
    let mut most = MemoryUse::default();
    let (mut pinned, mut written, mut rounds) = (0, 0, 0);
    while written < 10 * memory {
        db.insert(key(rounds * 7_919 % KEYS), &value).unwrap();
        written += value.len() as u64;
        rounds += 1;
        if rounds % 500 == 0 {
            let stats = db.stats();
            pinned = pinned.max(stats.held.pinned);
            most.held = most.held.max(stats.memory.held);
            most.iterators = most.iterators.max(stats.memory.iterators);
            // What was evicted waits for other tests' threads, unless it is pinned.
            let waits = stats.held.evicted.saturating_sub(stats.held.pinned);
            most.limit = most.limit.max(stats.memory.total() - waits);
        }
    }
    // The memtables of their birth, four sets, of which each may be a little more than its part of an eighth, and
    // for a moment up to three that a flush still has.
    let set = memory / 32 + MIB / 64;
    assert!(most.held > 0 && most.held <= 7 * set, "{most:?}");
    assert!(pinned > 0 && pinned <= most_pinned(memory), "{pinned} bytes are pinned");
    // A cursor over each of the runs and memtables, of which a small tree may have some twenty, and a copy of an
    // entry.
    assert!(most.iterators > 0 && most.iterators <= 1001 * 20_000, "{most:?}");
    let sum = memory / 10 * 11 + most.held + pinned + most.iterators;
    assert!(most.limit <= sum, "{most:?}, {pinned} pinned");
    // They see what they saw.
    assert_eq!(stalled.next().unwrap().unwrap().0, key(1).into_bytes());
    for (n, entries) in forgotten.iter_mut().enumerate() {
        assert_eq!(entries.next().unwrap().unwrap().0, key(n * 7 + 1).into_bytes());
    }
    drop((stalled, forgotten));
    assert!(comes(&db, |memory| memory.held == 0 && memory.iterators == 0));
}
