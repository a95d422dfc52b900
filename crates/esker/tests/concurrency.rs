//! Readers, writers and iterators against a database whose buffers are so small that flushes,
//! compactions, splits and evictions never stop.
//!
//! Every test states what each reader must see whatever the schedule is, and checks at its end
//! that there was background work to race with. The schedule is the system's, so a seed repeats
//! the choices of the threads and not their order. `ESKER_ROUNDS` multiplies the work.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

#[path = "concurrency/evicting.rs"]
mod evicting;
mod live;

use esker::{Batch, Db, Durability, ErrorKind, Keyspace, Options};
use esker_testkit::Rng;
use esker_testkit::orders::{Caseless, Reverse};
use live::{number, padded, rounds, seed, tiny};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

/// What a keyspace held.
type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn orders() -> Options {
    let mut options = tiny();
    options.comparators = vec![Arc::new(Reverse), Arc::new(Caseless)];
    options
}

/// Fails unless the background was busy.
fn assert_busy(db: &Db, flushes: u64) {
    let stats = db.stats();
    assert!(stats.flushes >= flushes, "only {} flushes: nothing was raced", stats.flushes);
    assert!(stats.compactions > 0, "no compactions: nothing was raced");
}

fn assert_sound(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Tells the others to stop when its thread ends, well or badly.
struct StopsOthers<'a>(&'a AtomicBool);

impl Drop for StopsOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

// ---------------------------------------------------------------------------------------------
// Linearizability of single keys

/// One call, from before it began to after it ended, by a clock that all threads share.
#[derive(Debug, Clone, Copy)]
struct Call {
    key: u64,
    value: u64,
    begin: u64,
    end: u64,
    writes: bool,
    #[allow(dead_code, reason = "shown when the test fails")]
    how: &'static str,
}

/// Whether the calls on one key could have happened one at a time, each at a moment between its
/// begin and its end. All written values differ, so the test of Gibbons and Korach ("Testing
/// shared memories", 1997) applies: the calls on one value span a zone from the first end to the
/// last begin; zones that run forward must be disjoint, and none that runs backward may lie
/// within one that runs forward.
fn assert_linearizable(key: u64, calls: &[Call]) {
    #[derive(Debug, Clone, Copy)]
    struct Zone {
        value: u64,
        first_end: u64,
        last_begin: u64,
    }
    let mut writes: HashMap<u64, Call> = HashMap::new();
    for call in calls.iter().filter(|call| call.writes) {
        assert!(writes.insert(call.value, *call).is_none(), "value {} twice", call.value);
    }
    let mut zones: HashMap<u64, Zone> = HashMap::new();
    for call in calls {
        let Some(write) = writes.get(&call.value) else {
            panic!("key {key}: {call:?} saw a value that nobody wrote");
        };
        assert!(call.end >= write.begin, "key {key}: {call:?} ended before its {write:?} began");
        let (value, first_end, last_begin) = (call.value, call.end, call.begin);
        let zone = zones.entry(value).or_insert(Zone { value, first_end, last_begin });
        zone.first_end = zone.first_end.min(call.end);
        zone.last_begin = zone.last_begin.max(call.begin);
    }
    let (mut forward, backward): (Vec<Zone>, Vec<Zone>) =
        zones.into_values().partition(|zone| zone.first_end < zone.last_begin);
    forward.sort_by_key(|zone| zone.first_end);
    for pair in forward.windows(2) {
        assert!(
            pair[0].last_begin <= pair[1].first_end,
            "key {key}: the values of {pair:?} were both current at one time: {:#?}",
            calls
                .iter()
                .filter(|call| pair.iter().any(|zone| zone.value == call.value))
                .collect::<Vec<_>>()
        );
    }
    for zone in backward {
        let next = forward.partition_point(|other| other.first_end < zone.last_begin);
        let Some(around) = next.checked_sub(1).map(|at| forward[at]) else { continue };
        assert!(
            zone.first_end > around.last_begin,
            "key {key}: {zone:?} happened while another value stayed: {around:?}"
        );
    }
}

#[test]
fn the_test_of_linearizability_finds_stale_reads() {
    let call = |value, begin, end, writes| Call { key: 0, value, begin, end, writes, how: "" };
    let good = [call(1, 0, 1, true), call(2, 2, 5, true), call(1, 3, 4, false)];
    assert_linearizable(0, &good);
    for bad in [
        // Old after new was complete.
        vec![call(1, 0, 1, true), call(2, 2, 3, true), call(1, 4, 5, false)],
        // New, then old again.
        vec![call(1, 0, 1, true), call(2, 2, 9, true), call(2, 3, 4, false), call(1, 5, 6, false)],
        // Before it was written.
        vec![call(1, 0, 1, true), call(2, 5, 6, true), call(2, 2, 3, false)],
    ] {
        assert!(std::panic::catch_unwind(|| assert_linearizable(0, &bad)).is_err());
    }
}

/// Writers and readers on a few contended keys and many others; returns all calls on the former.
fn contend(db: &Db, keyspace: &Keyspace, seed: u64, writes: u64, key: fn(u64, u64) -> Vec<u8>) {
    const KEYS: u64 = 24;
    const WRITERS: u64 = 3;
    const READERS: u64 = 3;
    let clock = AtomicU64::new(1);
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let stop = AtomicBool::new(false);
    let mut calls = Vec::new();
    for at in 0..KEYS {
        keyspace.insert(key(at, 0), padded(at, 8)).unwrap();
        calls.push(Call { key: at, value: at, begin: 0, end: 0, writes: true, how: "first" });
    }
    let writer = |id: u64| {
        let mut rng = Rng::of_thread(seed, id);
        let mut calls = Vec::new();
        for n in 0..writes {
            let at = rng.below(KEYS);
            let value = KEYS + n * WRITERS + id;
            let bytes = padded(value, rng.below(120));
            let begin = now();
            let how = match rng.below(8) {
                0 => {
                    let mut batch = Batch::new();
                    batch.insert(keyspace, key(at, rng.next()), padded(u64::MAX, 9));
                    batch.insert(keyspace, key(KEYS + rng.below(1500), 0), &bytes);
                    batch.insert(keyspace, key(at, rng.next()), &bytes);
                    db.write(batch).unwrap();
                    "batch"
                }
                1 => {
                    let class = Durability::Buffered;
                    keyspace.insert_with(key(at, rng.next()), &bytes, class).unwrap();
                    "buffered"
                }
                _ => {
                    keyspace.insert(key(at, rng.next()), &bytes).unwrap();
                    "insert"
                }
            };
            calls.push(Call { key: at, value, begin, end: now(), writes: true, how });
            for _ in 0..3 {
                keyspace.insert(key(KEYS + rng.below(1500), 0), &bytes).unwrap();
            }
        }
        calls
    };
    let reader = |id: u64| {
        let mut rng = Rng::of_thread(seed, WRITERS + id);
        let mut calls = Vec::new();
        let mut buffer = Vec::new();
        while !stop.load(Ordering::Acquire) {
            let at = rng.below(KEYS);
            let begin = now();
            let (how, value) = match rng.below(4) {
                0 => {
                    let sought = key(at, rng.next());
                    let mut iter = keyspace.iter().unwrap();
                    iter.seek(&sought).unwrap();
                    ("seek", number(iter.next_entry().unwrap().expect("the key is there").1))
                }
                1 => {
                    let values = keyspace.multi_get([key(at, 1)]).unwrap();
                    ("multi_get", number(values[0].as_ref().unwrap()))
                }
                _ => {
                    assert!(keyspace.get_into(key(at, rng.next()), &mut buffer).unwrap());
                    ("get", number(&buffer))
                }
            };
            calls.push(Call { key: at, value, begin, end: now(), writes: false, how });
            // Something cold, so that blocks are loaded and evicted.
            keyspace.get(key(KEYS + rng.below(1500), 0)).unwrap();
        }
        calls
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|id| scope.spawn(move || reader(id))).collect();
        let writers: Vec<_> = (0..WRITERS).map(|id| scope.spawn(move || writer(id))).collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Ordering::Release);
        ended.into_iter().for_each(|result| calls.extend(result.unwrap()));
        readers.into_iter().for_each(|reader| calls.extend(reader.join().unwrap()));
    });
    let mut by_key: BTreeMap<u64, Vec<Call>> = BTreeMap::new();
    calls.into_iter().for_each(|call| by_key.entry(call.key).or_default().push(call));
    by_key.iter().for_each(|(key, calls)| assert_linearizable(*key, calls));
}

#[test]
fn single_keys_are_linearizable() {
    let seed = seed("single_keys_are_linearizable");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    let keyspace = db.keyspace("contended").unwrap();
    contend(&db, &keyspace, seed, rounds(6_000), |at, _| format!("key{at:06}").into_bytes());
    assert_busy(&db, 20);
    db.close().unwrap();
}

#[test]
fn single_keys_are_linearizable_in_an_order_of_their_own() {
    let seed = seed("single_keys_are_linearizable_in_an_order_of_their_own");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), orders()).unwrap();
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    let caseless = db.keyspace_ordered("caseless", Arc::new(Caseless)).unwrap();
    let writes = rounds(2_500);
    thread::scope(|scope| {
        scope.spawn(|| {
            contend(&db, &reverse, seed, writes, |at, _| format!("key{at:06}").into_bytes());
        });
        contend(&db, &caseless, seed + 1, writes, |at, dice| {
            let key = format!("key{at:06}");
            if dice % 2 == 0 { key.into_bytes() } else { key.to_uppercase().into_bytes() }
        });
    });
    assert_eq!(caseless.iter().unwrap().count(), caseless.iter().unwrap().rev().count());
    assert_busy(&db, 10);
    assert_sound(&db);
    db.close().unwrap();
}

// ---------------------------------------------------------------------------------------------
// Batches

/// The keys of a group of equal numbers, far apart so that they lie in several partitions.
const SPREAD: u64 = 6;

fn group_key(group: u64, at: u64) -> String {
    format!("{:03}-group{group}", at * 160)
}

/// The numbers that a reader finds under the keys of a group; all are of one moment.
fn group_numbers(
    db: &Db,
    keyspaces: &[Keyspace; 2],
    group: u64,
    rng: &mut Rng,
) -> Vec<Option<u64>> {
    let keys: Vec<_> = (0..SPREAD).map(|at| group_key(group, at)).collect();
    let ours = |key: &[u8]| key.ends_with(format!("group{group}").as_bytes());
    match rng.below(4) {
        0 => {
            let snapshot = db.snapshot().unwrap();
            let mut order: Vec<_> = (0..SPREAD * 2).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, rng.below(i as u64 + 1) as usize);
            }
            let get = |at: u64| {
                let keyspace = &keyspaces[(at % 2) as usize];
                snapshot.get(keyspace, group_key(group, at / 2)).unwrap().map(|v| number(&v))
            };
            order.into_iter().map(get).collect()
        }
        1 => {
            let keyspace = &keyspaces[rng.below(2) as usize];
            let values = keyspace.multi_get(&keys).unwrap();
            values.into_iter().map(|value| value.map(|value| number(&value))).collect()
        }
        2 => {
            let snapshot = db.snapshot().unwrap();
            let mut found = Vec::new();
            for keyspace in keyspaces {
                for entry in snapshot.iter(keyspace).unwrap().rev() {
                    let (key, value) = entry.unwrap();
                    found.extend(ours(&key).then(|| Some(number(&value))));
                }
            }
            found.resize(found.len().max(SPREAD as usize * 2), None);
            found
        }
        _ => {
            let mut found = Vec::new();
            let mut iter = keyspaces[rng.below(2) as usize].iter().unwrap();
            while let Some((key, value)) = iter.next_entry().unwrap() {
                found.extend(ours(key).then(|| Some(number(value))));
            }
            found.resize(found.len().max(SPREAD as usize), None);
            found
        }
    }
}

#[test]
fn batches_are_seen_whole_and_never_taken_back() {
    const GROUPS: u64 = 2;
    let seed = seed("batches_are_seen_whole_and_never_taken_back");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), orders()).unwrap();
    let keyspaces =
        [db.keyspace("a").unwrap(), db.keyspace_ordered("b", Arc::new(Reverse)).unwrap()];
    let written: Vec<AtomicU64> = (0..GROUPS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let batch_of = |group: u64, n: u64, rng: &mut Rng| {
        let mut batch = Batch::new();
        for at in 0..SPREAD {
            for keyspace in &keyspaces {
                batch.insert(keyspace, group_key(group, at), padded(n, 60));
            }
        }
        let filler = format!("{:03}-filler", rng.below(1000));
        batch.insert(&keyspaces[rng.below(2) as usize], filler, padded(n, 200));
        batch
    };
    for group in 0..GROUPS {
        db.write(batch_of(group, 0, &mut Rng::new(seed))).unwrap();
    }
    thread::scope(|scope| {
        for group in 0..GROUPS {
            let (db, stop, written, batch_of) = (&db, &stop, &written, &batch_of);
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let mut rng = Rng::of_thread(seed, group);
                for n in 1..=rounds(2_500) {
                    db.write(batch_of(group, n, &mut rng)).unwrap();
                    written[group as usize].store(n, Ordering::Release);
                }
            });
        }
        for reader in 0..3 {
            let (db, stop, written, keyspaces) = (&db, &stop, &written, &keyspaces);
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let mut rng = Rng::of_thread(seed, 100 + reader);
                let mut last = [0; GROUPS as usize];
                while !stop.load(Ordering::Acquire) {
                    let group = rng.below(GROUPS);
                    let acknowledged = written[group as usize].load(Ordering::Acquire);
                    let found = group_numbers(db, keyspaces, group, &mut rng);
                    let first = found[0].expect("every key has a value");
                    assert!(found.iter().all(|n| *n == Some(first)), "a torn batch: {found:?}");
                    assert!(first >= acknowledged, "{first} after {acknowledged} was written");
                    let last = &mut last[group as usize];
                    assert!(first >= *last, "{first} after {last} was seen");
                    *last = first;
                }
            });
        }
    });
    assert_busy(&db, 20);
    assert_sound(&db);
    db.close().unwrap();
}

// ---------------------------------------------------------------------------------------------
// Iterators

const FIXED: u64 = 700;

fn fixed_key(at: u64) -> Vec<u8> {
    format!("k{:05}", at * 2).into_bytes()
}

fn is_fixed(key: &[u8]) -> bool {
    let text = std::str::from_utf8(key).unwrap();
    text[1..].parse::<u64>().unwrap().is_multiple_of(2)
}

/// Writes fixed keys again and again, and lets others come and go between them.
fn churn(keyspace: &Keyspace, rng: &mut Rng, operations: u64) {
    for n in 0..operations {
        if rng.below(2) == 0 {
            keyspace.insert(fixed_key(rng.below(FIXED)), padded(n, rng.below(100))).unwrap();
            continue;
        }
        let key = format!("k{:05}", rng.below(FIXED) * 2 + 1);
        match rng.below(3) {
            0 => keyspace.remove(key).unwrap(),
            _ => keyspace.insert(key, padded(n, rng.below(100))).unwrap(),
        }
    }
}

/// Walks over a keyspace in one of the ways there are; the keys come in the order of the keyspace.
fn walk(keyspace: &Keyspace, rng: &mut Rng) -> Vec<Vec<u8>> {
    let key_of = |entry: esker::Result<(Vec<u8>, Vec<u8>)>| entry.unwrap().0;
    match rng.below(4) {
        0 => keyspace.iter().unwrap().map(key_of).collect(),
        1 => {
            let mut keys: Vec<_> = keyspace.iter().unwrap().rev().map(key_of).collect();
            keys.reverse();
            keys
        }
        2 => {
            let (mut front, mut back) = (Vec::new(), Vec::new());
            let mut iter = keyspace.iter().unwrap();
            let share = 1 + rng.below(9);
            loop {
                let forward = rng.below(10) < share;
                let entry = if forward { iter.next() } else { iter.next_back() };
                let Some(entry) = entry else { break };
                if forward { &mut front } else { &mut back }.push(key_of(entry));
            }
            // Both ends must have met.
            assert!(iter.next().is_none() && iter.next_back().is_none());
            front.extend(back.into_iter().rev());
            front
        }
        _ => {
            // Each key is sought behind the last one.
            let mut keys: Vec<Vec<u8>> = Vec::new();
            let mut iter = keyspace.iter().unwrap();
            while let Some((key, _)) = iter.next_entry().unwrap() {
                let key = key.to_vec();
                if keys.last() != Some(&key) {
                    keys.push(key.clone());
                }
                if rng.below(4) == 0 {
                    iter.seek(&key).unwrap();
                    assert_eq!(iter.next_entry().unwrap().unwrap().0, key, "sought and not found");
                }
            }
            keys
        }
    }
}

#[test]
fn iterators_are_complete_and_in_order_while_everything_changes() {
    let seed = seed("iterators_are_complete_and_in_order_while_everything_changes");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), orders()).unwrap();
    let plain = db.keyspace("plain").unwrap();
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    let keyspaces = [(&plain, false), (&reverse, true)];
    for (keyspace, _) in keyspaces {
        (0..FIXED).for_each(|at| keyspace.insert(fixed_key(at), padded(at, 40)).unwrap());
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for (at, (keyspace, _)) in keyspaces.into_iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let operations = rounds(if at == 0 { 30_000 } else { 12_000 });
                churn(keyspace, &mut Rng::of_thread(seed, at as u64), operations);
            });
        }
        for reader in 0..3 {
            let stop = &stop;
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let mut rng = Rng::of_thread(seed, 50 + reader);
                while !stop.load(Ordering::Acquire) {
                    let (keyspace, reversed) = keyspaces[rng.below(2) as usize];
                    let mut keys = walk(keyspace, &mut rng);
                    if reversed {
                        keys.reverse();
                    }
                    assert!(keys.is_sorted_by(|a, b| a < b), "out of order or twice");
                    let fixed: Vec<_> = keys.iter().filter(|key| is_fixed(key)).collect();
                    assert_eq!(fixed.len() as u64, FIXED);
                    // A part of it, from both sides.
                    let low = rng.below(FIXED - 10);
                    let high = low + 1 + rng.below(FIXED - low - 1);
                    let (first, last) = (fixed_key(low), fixed_key(high));
                    let range = if reversed { last..first } else { first..last };
                    let backward = rng.below(2) == 0;
                    let iter = keyspace.range(range).unwrap();
                    let count = |iter: &mut dyn Iterator<Item = esker::Result<_>>| {
                        iter.filter(|entry: &esker::Result<(Vec<u8>, Vec<u8>)>| {
                            is_fixed(&entry.as_ref().unwrap().0)
                        })
                        .count() as u64
                    };
                    let found =
                        if backward { count(&mut iter.rev()) } else { count(&mut { iter }) };
                    assert_eq!(found, high - low);
                }
            });
        }
    });
    assert_busy(&db, 20);
    assert_sound(&db);
    db.close().unwrap();
}

// ---------------------------------------------------------------------------------------------
// Range deletes

#[test]
fn range_deletes_and_new_inserts_are_seen_together() {
    const REGIONS: u64 = 3;
    const KEYS: u64 = 60;
    let seed = seed("range_deletes_and_new_inserts_are_seen_together");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), orders()).unwrap();
    let plain = db.keyspace("plain").unwrap();
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    let key = |region: u64, at: u64| format!("r{region}-{at:04}");
    let range = |region: u64, reversed: bool| {
        // Just before the first key to just behind the last one, in the order of the keyspace.
        let (low, high) = (format!("r{region}-"), format!("r{region}."));
        if reversed { high..low } else { low..high }
    };
    let fill = |region: u64, generation: u64, rng: &mut Rng| {
        let mut batch = Batch::new();
        for (keyspace, reversed) in [(&plain, false), (&reverse, true)] {
            batch.remove_range(keyspace, range(region, reversed)).unwrap();
            // Every third generation is empty.
            for at in (0..KEYS).filter(|_| !generation.is_multiple_of(3)) {
                batch.insert(keyspace, key(region, at), padded(generation, rng.below(40)));
            }
        }
        batch
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for region in 0..REGIONS {
            let (db, stop, fill) = (&db, &stop, &fill);
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let mut rng = Rng::of_thread(seed, region);
                for generation in 0..rounds(350) {
                    db.write(fill(region, generation, &mut rng)).unwrap();
                }
            });
        }
        for reader in 0..3 {
            let (db, stop, keyspaces) = (&db, &stop, [&plain, &reverse]);
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let mut rng = Rng::of_thread(seed, 70 + reader);
                let mut newest = [0; REGIONS as usize];
                while !stop.load(Ordering::Acquire) {
                    let keyspace = keyspaces[rng.below(2) as usize];
                    let snapshot = db.snapshot().unwrap();
                    let iter = match rng.below(2) {
                        0 => snapshot.iter(keyspace).unwrap(),
                        _ => keyspace.iter().unwrap(),
                    };
                    let entries: Vec<_> = match rng.below(2) {
                        0 => iter.map(|entry| entry.unwrap()).collect(),
                        _ => iter.rev().map(|entry| entry.unwrap()).collect(),
                    };
                    for region in 0..REGIONS {
                        let of_region: Vec<_> = entries
                            .iter()
                            .filter(|(key, _)| key[1] == b'0' + region as u8)
                            .map(|(_, value)| number(value))
                            .collect();
                        let Some(first) = of_region.first() else { continue };
                        assert!(of_region.iter().all(|n| n == first), "{of_region:?}");
                        assert_eq!(of_region.len() as u64, KEYS, "generation {first} is torn");
                        let newest = &mut newest[region as usize];
                        assert!(*first >= *newest, "generation {first} after {newest}");
                        *newest = *first;
                    }
                    let region = rng.below(REGIONS);
                    let keys = (0..KEYS).map(|at| key(region, at));
                    let values = snapshot.multi_get(keyspace, keys).unwrap();
                    let numbers: BTreeSet<_> =
                        values.iter().map(|value| value.as_deref().map(number)).collect();
                    assert_eq!(numbers.len(), 1, "a torn region: {numbers:?}");
                }
            });
        }
    });
    assert_busy(&db, 10);
    assert_sound(&db);
    db.close().unwrap();
}

// ---------------------------------------------------------------------------------------------
// Keyspaces that come and go

/// Writers of a keyspace that is dropped and made again; what they were told is `told`.
fn write_until_told_to_stop(
    db: &Db,
    steady: &Keyspace,
    current: &Mutex<(u64, Keyspace)>,
    stop: &AtomicBool,
    names: (u64, u64),
    rng: &mut Rng,
) -> Vec<(u64, String)> {
    let (round, thread) = names;
    let mut told = Vec::new();
    let (mut generation, mut keyspace) = current.lock().unwrap().clone();
    let mut n = 0;
    while !stop.load(Ordering::Acquire) {
        n += 1;
        let key = format!("{:02}-{round}-{thread}-{generation}-{n}", rng.below(100));
        let mut batch = Batch::new();
        batch.insert(steady, &key, padded(generation, 20));
        batch.insert(&keyspace, &key, padded(generation, 100));
        match db.write(batch) {
            Ok(_) => told.push((generation, key)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::KeyspaceDropped, "{error}");
                let kind = keyspace.get(&key).unwrap_err().kind();
                assert_eq!(kind, ErrorKind::KeyspaceDropped);
                (generation, keyspace) = current.lock().unwrap().clone();
            }
        }
    }
    told
}

#[test]
fn nothing_reappears_in_a_keyspace_that_was_dropped() {
    let seed = seed("nothing_reappears_in_a_keyspace_that_was_dropped");
    let dir = tempfile::tempdir().unwrap();
    let mut all: BTreeSet<String> = BTreeSet::new();
    let mut last: BTreeSet<String> = BTreeSet::new();
    for round in 0..rounds(4) {
        let db = Db::open_with(dir.path(), orders()).unwrap();
        let steady = db.keyspace("steady").unwrap();
        let keys = |keyspace: &Keyspace| -> BTreeSet<String> {
            let key =
                |entry: esker::Result<(Vec<u8>, _)>| String::from_utf8(entry.unwrap().0).unwrap();
            keyspace.iter().unwrap().map(key).collect()
        };
        // In an order of its own every other generation.
        let make = |generation: u64| match generation % 2 {
            0 => db.keyspace("work").unwrap(),
            _ => db.keyspace_ordered("work", Arc::new(Reverse)).unwrap(),
        };
        if round > 0 {
            assert_eq!(db.keyspaces().unwrap(), ["default", "steady", "work"]);
            assert!(keys(&make(1)) == last, "the last generation, after reopening");
            assert!(keys(&steady) == all, "the steady keyspace, after reopening");
            assert!(db.drop_keyspace("work").unwrap());
        }
        let generations = 25 + Rng::new(seed).below(2) * 2;
        let current = Mutex::new((1, make(1)));
        let stop = AtomicBool::new(false);
        let mut told = Vec::new();
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|thread| {
                    let (db, steady, current, stop) = (&db, &steady, &current, &stop);
                    let mut rng = Rng::of_thread(seed, round * 10 + thread);
                    scope.spawn(move || {
                        let _stops = StopsOthers(stop);
                        let names = (round, thread);
                        write_until_told_to_stop(db, steady, current, stop, names, &mut rng)
                    })
                })
                .collect();
            let _stops = StopsOthers(&stop);
            let mut rng = Rng::of_thread(seed, round * 10 + 9);
            for generation in 2..=generations {
                let some = |count| {
                    (0..count).for_each(|n| steady.insert("00-pace", padded(n, 0)).unwrap());
                };
                some(rng.below(600));
                match rng.below(4) {
                    0 => db.flush().unwrap(),
                    1 => current.lock().unwrap().1.compact().unwrap(),
                    _ => {}
                }
                let old = current.lock().unwrap().1.clone();
                assert!(db.drop_keyspace("work").unwrap());
                let late = old.insert("late", "late").unwrap_err();
                assert_eq!(late.kind(), ErrorKind::KeyspaceDropped);
                assert_eq!(old.iter().unwrap_err().kind(), ErrorKind::KeyspaceDropped);
                *current.lock().unwrap() = (generation, make(generation));
                some(rng.below(200));
            }
            stop.store(true, Ordering::Release);
            told.extend(writers.into_iter().flat_map(|writer| writer.join().unwrap()));
        });
        all.insert("00-pace".to_owned());
        all.extend(told.iter().map(|(_, key)| key.clone()));
        let newest = told.into_iter().filter(|(generation, _)| *generation == generations);
        last = newest.map(|(_, key)| key).collect();
        assert!(keys(&current.lock().unwrap().1) == last, "what was acknowledged, and only that");
        assert!(keys(&steady) == all, "batches with a dropped keyspace leave no trace");
        assert!(db.stats().flushes > 0);
        assert_sound(&db);
        db.close().unwrap();
    }
}

// ---------------------------------------------------------------------------------------------
// Snapshots

#[test]
fn snapshots_stay_as_they_were_while_compactions_run() {
    const KEYS: u64 = 400;
    let seed = seed("snapshots_stay_as_they_were_while_compactions_run");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), orders()).unwrap();
    let plain = db.keyspace("plain").unwrap();
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    let keyspaces = [&plain, &reverse];
    let key = |at: u64| format!("key{at:05}").into_bytes();
    let stop = AtomicBool::new(false);
    let start = Barrier::new(6);
    thread::scope(|scope| {
        for writer in 0..3u64 {
            let (stop, start) = (&stop, &start);
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let mut rng = Rng::of_thread(seed, writer);
                start.wait();
                for n in 0..rounds(9_000) {
                    let keyspace = keyspaces[usize::from(rng.below(4) == 0)];
                    let at = rng.below(KEYS);
                    match rng.below(40) {
                        0 if std::ptr::eq(keyspace, keyspaces[0]) => {
                            keyspace.remove_range(key(at)..key(at + 1 + rng.below(20))).unwrap();
                        }
                        0..=9 => keyspace.remove(key(at)).unwrap(),
                        _ => keyspace.insert(key(at), padded(n, rng.below(90))).unwrap(),
                    }
                }
            });
        }
        for reader in 0..3 {
            let (db, stop, start) = (&db, &stop, &start);
            scope.spawn(move || {
                let _stops = StopsOthers(stop);
                let mut rng = Rng::of_thread(seed, 30 + reader);
                let image = |snapshot: &esker::Snapshot, backward: bool| {
                    keyspaces.map(|keyspace| -> BTreeMap<Vec<u8>, Vec<u8>> {
                        let iter = snapshot.iter(keyspace).unwrap();
                        if backward {
                            iter.rev().map(|entry| entry.unwrap()).collect()
                        } else {
                            iter.map(|entry| entry.unwrap()).collect()
                        }
                    })
                };
                let mut kept: Vec<(esker::Snapshot, [Content; 2])> = Vec::new();
                start.wait();
                while !stop.load(Ordering::Acquire) {
                    match rng.below(12) {
                        0..=3 => {
                            let snapshot = db.snapshot().unwrap();
                            let image = image(&snapshot, rng.below(2) == 0);
                            kept.push((snapshot, image));
                            if kept.len() > 6 {
                                kept.swap_remove(rng.below(6) as usize);
                            }
                        }
                        4 => keyspaces[rng.below(2) as usize].compact().unwrap(),
                        5 => db.flush().unwrap(),
                        _ => {
                            let Some((snapshot, then)) =
                                kept.get(rng.below(kept.len().max(1) as u64) as usize)
                            else {
                                continue;
                            };
                            assert!(image(snapshot, rng.below(2) == 0) == *then, "it changed");
                            for _ in 0..50 {
                                let (at, sought) = (rng.below(2) as usize, key(rng.below(KEYS)));
                                let now = snapshot.get(keyspaces[at], &sought).unwrap();
                                assert_eq!(now.as_ref(), then[at].get(&sought));
                            }
                        }
                    }
                }
            });
        }
    });
    assert_busy(&db, 20);
    assert_sound(&db);
    db.close().unwrap();
}
