//! Cursors and lookups against a sorted list.

use super::*;
use crate::base::{SEQ_MAX, SeekStage};
use std::cmp::Ordering;

/// Whether the entry is not before `(key, below)`.
fn reached<O: KeyOrder>(order: &O, entry: &Entry, key: &[u8], below: Seq) -> bool {
    match order.compare(&entry.0, key) {
        Ordering::Less => false,
        Ordering::Equal => entry.1 < below,
        Ordering::Greater => true,
    }
}

fn random_key(random: &mut Random, shape: u64) -> Vec<u8> {
    match shape {
        0 => format!("user/{:06}", random.below(3000)).into_bytes(),
        1 => {
            let len = random.below(6) as usize;
            (0..len).map(|_| random.below(3) as u8).collect()
        }
        2 => random.bytes(16),
        _ => {
            let len = 1 + random.below(40) as usize;
            let mut key = vec![b'a'; len];
            key[len - 1] = random.next() as u8;
            key
        }
    }
}

fn random_entries<O: KeyOrder>(random: &mut Random, order: &O, shape: u64) -> Vec<Entry> {
    let stripped = random.below(3) == 0;
    let count = 1 + random.below(1500);
    let fixed = random.below(2) == 0;
    let mut entries: Vec<Entry> = (0..count)
        .map(|_| {
            let key = random_key(random, shape);
            let kind = if stripped || random.below(5) > 0 { Kind::Put } else { Kind::Delete };
            let len = if fixed { 12 } else { random.below(60) as usize };
            let value = if kind == Kind::Put { random.bytes(len) } else { Vec::new() };
            let seq = if stripped { 0 } else { random.below(1000) };
            (key, seq, kind, value)
        })
        .collect();
    entries.sort_by(|a, b| order.compare(&a.0, &b.0).then(b.1.cmp(&a.1)));
    entries.dedup_by(|a, b| order.compare(&a.0, &b.0).is_eq() && a.1 == b.1);
    entries
}

fn shown<O: KeyOrder>(cursor: &RunCursor<O>) -> Option<Entry> {
    if !cursor.valid() {
        return None;
    }
    assert_eq!(cursor.peek(), Some((cursor.key(), cursor.seq(), cursor.kind())));
    Some((cursor.key().to_vec(), cursor.seq(), cursor.kind(), cursor.value().to_vec()))
}

fn random_target(random: &mut Random, entries: &[Entry], shape: u64) -> (Vec<u8>, Seq) {
    let known = entries[random.below(entries.len() as u64) as usize].clone();
    let key = if random.below(2) == 0 { known.0 } else { random_key(random, shape) };
    let below = match random.below(4) {
        0 => 0,
        1 => crate::base::SEQ_MAX,
        2 => known.1,
        _ => random.below(1001),
    };
    (key, below)
}

fn check_cursor<O: KeyOrder>(
    random: &mut Random,
    order: &O,
    cursor: &mut RunCursor<O>,
    entries: &[Entry],
    shape: u64,
) {
    let at = |i: Option<usize>| i.and_then(|i| entries.get(i)).cloned();
    cursor.seek_to_first().unwrap();
    for entry in entries {
        assert_eq!(shown(cursor).as_ref(), Some(entry));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    cursor.seek_to_last().unwrap();
    let mut unknown = 0;
    for (i, entry) in entries.iter().enumerate().rev() {
        assert_eq!(shown(cursor).as_ref(), Some(entry));
        let newer = i > 0 && order.compare(&entries[i - 1].0, &entry.0).is_eq();
        let known = cursor.shows_newest();
        assert!(!(newer && known), "entry {i} of {} is not the newest", entries.len());
        unknown += usize::from(!newer && !known);
        cursor.prev().unwrap();
    }
    // Only of the first entry of a segment it is not known, as far as the bytes of keys say it.
    let segments = cursor.run().segments.len();
    assert!(!O::BYTEWISE || unknown <= segments, "{unknown} of {} in {segments}", entries.len());
    assert!(!cursor.valid());
    let mut position = None;
    for _ in 0..400 {
        let (key, below) = random_target(random, entries, shape);
        let go = random.below(8);
        if [0, 1, 2, 6].contains(&go) {
            // Seeks that were prepared find the same; another positioning forgets the preparation.
            let stages = [SeekStage::Locate, SeekStage::Fetch];
            for stage in &stages[..random.below(3) as usize] {
                cursor.prepare_seek(&key, *stage);
            }
        }
        match go {
            0 => {
                cursor.seek(&key, below).unwrap();
                position = entries.iter().position(|entry| reached(order, entry, &key, below));
            }
            1 => {
                cursor.seek_waiting(&key, below).unwrap();
                position = entries.iter().position(|entry| reached(order, entry, &key, below));
                assert_eq!(cursor.valid(), position.is_some());
                if let Some(entry) = at(position) {
                    assert_eq!(cursor.key(), entry.0);
                    assert_eq!(cursor.peek().unwrap().0, entry.0);
                }
                cursor.open().unwrap();
            }
            2 => {
                cursor.seek_before(&key).unwrap();
                position = entries.iter().rposition(|entry| order.compare(&entry.0, &key).is_lt());
            }
            6 => {
                cursor.seek_to_last().unwrap();
                let (key, below) = random_target(random, entries, shape);
                cursor.seek(&key, below).unwrap();
                position = entries.iter().position(|entry| reached(order, entry, &key, below));
            }
            3 | 4 if position.is_some() => {
                for _ in 0..random.below(20) {
                    if position.is_some() {
                        cursor.next().unwrap();
                        position = position.map(|p| p + 1).filter(|p| *p < entries.len());
                    }
                }
            }
            5 if position.is_some() => {
                for _ in 0..random.below(20) {
                    if position.is_some() {
                        cursor.prev().unwrap();
                        position = position.and_then(|p| p.checked_sub(1));
                    }
                }
            }
            7 => {
                cursor.seek_to_first_waiting().unwrap();
                cursor.open().unwrap();
                position = Some(0);
            }
            _ => {}
        }
        assert!(!cursor.is_waiting());
        assert_eq!(shown(cursor), at(position));
    }
}

fn check_gets<O: KeyOrder>(
    random: &mut Random,
    world: &World,
    order: &O,
    run: &Run,
    entries: &[Entry],
    shape: u64,
) {
    for _ in 0..300 {
        let known = &entries[random.below(entries.len() as u64) as usize];
        let key = if random.below(2) == 0 { known.0.clone() } else { random_key(random, shape) };
        let below = if random.below(2) == 0 { known.1 + 1 } else { random.below(1001) };
        let expected = entries
            .iter()
            .find(|entry| reached(order, entry, &key, below))
            .filter(|entry| order.compare(&entry.0, &key).is_eq())
            .map(|entry| (entry.1, entry.2, entry.3.clone()));
        assert_eq!(get(world, run, order, &key, below).unwrap(), expected, "{key:?} below {below}");
    }
}

fn rounds<O: KeyOrder>(name: &str, order: &O, count: usize) {
    let mut random = Random::seeded(name);
    for _ in 0..count {
        let shape = random.below(4);
        let codec = [Codec::Raw, Codec::Lz4, Codec::Zstd][random.below(3) as usize];
        let options = WriterOptions {
            segment_bytes: 500 + random.below(5000) as u32,
            block_bytes: 50 + random.below(800) as u32,
            codec,
            bits_per_key: random.below(15) as u32,
            collected_bytes: 1 << random.below(20),
            values_codec: Codec::Raw,
            separate_from: u32::MAX,
            piece_bytes: 1000,
        };
        let entries = random_entries(&mut random, order, shape);
        let world = World::new(random.below(60_000));
        let role = if random.below(2) == 0 { Role::Base } else { Role::Delta };
        let run = world.run(order, role, options, &entries);
        check_gets(&mut random, &world, order, &run, &entries, shape);
        for fill in [true, false] {
            let cache = Arc::clone(&world.cache);
            let mut cursor = RunCursor::new(Arc::clone(&run), order.clone(), cache, fill);
            check_cursor(&mut random, order, &mut cursor, &entries, shape);
        }
        let mut counted = 0;
        for segment in run.segments() {
            counted += segment.verify(order).unwrap().entries;
        }
        assert_eq!(counted, entries.len() as u64);
        assert_eq!(run.entries(), counted);
    }
}

#[test]
fn cursors_and_lookups_agree_with_a_sorted_list() {
    rounds("bytewise model", &Bytewise, 40);
}

#[test]
fn custom_orders_agree_with_a_sorted_list() {
    rounds("custom model", &backwards(), 25);
}

#[test]
fn an_empty_run_has_no_entries() {
    let world = World::new(0);
    let run = Arc::new(Run::new(Role::Delta, Vec::new(), Vec::new()));
    assert!(run.is_empty());
    assert_eq!(get(&world, &run, &Bytewise, b"", 5).unwrap(), None);
    let mut cursor = RunCursor::new(run, Bytewise, Arc::clone(&world.cache), true);
    cursor.seek_to_first().unwrap();
    assert!(!cursor.valid());
    cursor.seek_to_last().unwrap();
    cursor.seek(b"x", 5).unwrap();
    cursor.seek_before(b"x").unwrap();
    assert!(!cursor.valid());
}

fn check_all<O: KeyOrder>(order: &O, options: WriterOptions, entries: &[Entry]) {
    let world = World::new(64 << 20);
    let run = world.run(order, Role::Delta, options, entries);
    for (key, seq, kind, value) in entries {
        let found = get(&world, &run, order, key, seq + 1).unwrap();
        assert!(found == Some((*seq, *kind, value.clone())), "key of {} bytes", key.len());
    }
    for fill in [true, false] {
        let cache = Arc::clone(&world.cache);
        let mut cursor = RunCursor::new(Arc::clone(&run), order.clone(), cache, fill);
        cursor.seek_to_last().unwrap();
        for entry in entries.iter().rev() {
            assert!(shown(&cursor).as_ref() == Some(entry));
            cursor.prev().unwrap();
        }
        cursor.seek_to_first().unwrap();
        for entry in entries {
            assert!(shown(&cursor).as_ref() == Some(entry));
            cursor.next().unwrap();
        }
    }
    for segment in run.segments() {
        segment.verify(order).unwrap();
    }
}

#[test]
fn extreme_sizes() {
    let mut random = Random::seeded("extreme sizes");
    let mut entries: Vec<Entry> = vec![
        (Vec::new(), 3, Kind::Put, random.bytes(70_000)),
        (b"a".to_vec(), 2, Kind::Put, random.bytes(5 << 20)),
        (b"a".to_vec(), 1, Kind::Delete, Vec::new()),
        (b"b".to_vec(), 7, Kind::Put, vec![0; 5 << 20]),
        (vec![b'k'; 65_534], 1, Kind::Put, Vec::new()),
        (vec![b'k'; 65_535], 1, Kind::Put, b"long".to_vec()),
        (vec![b'z'; 65_535], 9, Kind::Put, random.bytes(65_536)),
    ];
    for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd] {
        check_all(&Bytewise, WriterOptions { codec, ..WriterOptions::default() }, &entries);
        check_all(&Bytewise, WriterOptions { codec, ..TINY }, &entries);
    }
    let order = backwards();
    entries.sort_by(|a, b| order.compare(&a.0, &b.0).then(b.1.cmp(&a.1)));
    check_all(&order, WriterOptions { codec: Codec::Lz4, ..TINY }, &entries);
}

#[test]
fn versions_of_a_key_may_exceed_a_block_and_a_segment() {
    let version = |key: &[u8], seq: Seq| -> Entry {
        (key.to_vec(), seq, Kind::Put, format!("{seq:050}").into_bytes())
    };
    let mut entries = vec![version(b"j", 4), version(b"k", 4)];
    entries.extend((1..=300).rev().map(|seq| version(b"ka", seq)));
    entries.push(version(b"kb", 7));
    entries.extend((1..=40).rev().map(|seq| version(b"kc", seq)));
    check_all(&Bytewise, TINY, &entries);
    check_all(&backwards(), TINY, &{
        let order = backwards();
        let mut sorted = entries.clone();
        sorted.sort_by(|a, b| order.compare(&a.0, &b.0).then(b.1.cmp(&a.1)));
        sorted
    });
    let world = World::new(1 << 20);
    let run = world.run(&Bytewise, Role::Delta, TINY, &entries);
    let holding =
        run.segments().iter().filter(|s| s.meta().min_key == b"ka" || s.meta().max_key == b"ka");
    assert!(holding.count() <= 2);
    let cache = Arc::clone(&world.cache);
    let mut cursor = RunCursor::new(Arc::clone(&run), Bytewise, cache, true);
    for below in [0, 1, 2, 150, 299, 300, 301] {
        cursor.seek(b"ka", below).unwrap();
        let expected =
            if below <= 1 { (&b"kb"[..], 7) } else { (&b"ka"[..], (below - 1).min(300)) };
        assert_eq!((cursor.key(), cursor.seq()), expected, "below {below}");
        cursor.seek_before(b"ka").unwrap();
        assert_eq!(cursor.key(), b"k");
    }
}

/// A seek within the block where a cursor stands does not search the run.
#[test]
fn a_seek_near_its_place_stays_in_the_block() {
    let world = World::new(4 << 20);
    let run = world.run(&Bytewise, Role::Base, TINY, &numbered(0..900));
    let cache = Arc::clone(&world.cache);
    let mut cursor = RunCursor::new(Arc::clone(&run), Bytewise, cache, true);
    let key = |n: u32| numbered(n..n + 1).remove(0).0;
    let mut stayed = 0;
    for n in 0..890 {
        cursor.seek(&key(n), SEQ_MAX).unwrap();
        for to in [n + 1, n + 2, n, n + 9] {
            let near = cursor.near(&key(to), SEQ_MAX).is_some();
            stayed += u32::from(near && to != n + 9);
            cursor.seek_waiting(&key(to), SEQ_MAX).unwrap();
            cursor.open().unwrap();
            assert_eq!(cursor.key(), key(to), "from {n}");
            cursor.seek_before(&key(to)).unwrap();
            assert_eq!(cursor.valid().then(|| cursor.key().to_vec()), to.checked_sub(1).map(key));
            cursor.seek(&key(n), SEQ_MAX).unwrap();
        }
    }
    // A block has some ten entries, of which the first is found from the root.
    assert!(stayed > 3 * 890 / 2, "{stayed} seeks stayed in their block");
}

#[test]
fn failures_stay_until_the_cursor_is_positioned_anew() {
    let world = World::new(0);
    let run = world.run(&Bytewise, Role::Base, TINY, &numbered(0..900));
    let file = world.mem.file(&world.path(1));
    let damaged = run.segments()[1].meta().offset as usize + 20;
    for fill in [true, false] {
        let cache = Arc::clone(&world.cache);
        let mut cursor = RunCursor::new(Arc::clone(&run), Bytewise, cache, fill);
        file.bytes.lock()[damaged] ^= 4;
        cursor.seek_to_first().unwrap();
        let error = loop {
            match cursor.next() {
                Ok(()) => assert!(cursor.valid(), "an end without an error"),
                Err(error) => break error,
            }
        };
        let Error::Corruption(corruption) = &error else { panic!("{error}") };
        assert_eq!(corruption.section, "block");
        assert_eq!(corruption.path, world.path(1));
        assert!(corruption.key_range.is_some());
        assert!(!cursor.valid());
        assert!(cursor.next().is_err() && cursor.prev().is_err());
        cursor.seek_to_first().unwrap();
        assert_eq!(cursor.key(), b"key00000000");
        file.bytes.lock()[damaged] ^= 4;
        cursor.seek(b"key00000060", 1).unwrap();
        assert_eq!(cursor.key(), b"key00000060");
    }
}
