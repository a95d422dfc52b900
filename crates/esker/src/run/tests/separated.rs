//! Values that are separated from their keys: written, read in all ways, moved and kept by a second writer, and
//! references that lie.

use super::super::fetch::ValueMove;
use super::*;
use crate::base::SEQ_MAX;
use crate::run::header::{PLAIN_VERSION, SEPARATED_VERSION, VERSION};
use crate::run::pieces::Pieces;
use crate::run::reference::ValueRef;
use crate::trace::Purpose;

fn options(random: &mut Random) -> WriterOptions {
    WriterOptions {
        segment_bytes: 300 + random.below(3000) as u32,
        block_bytes: 50 + random.below(400) as u32,
        codec: [Codec::Raw, Codec::Lz4][random.below(2) as usize],
        values_codec: [Codec::Raw, Codec::Lz4, Codec::Zstd][random.below(3) as usize],
        bits_per_key: 10,
        collected_bytes: 1 << random.below(14),
        separate_from: 20 + random.below(100) as u32,
        piece_bytes: 16 + random.below(400) as u32,
    }
}

/// Entries of all kinds, with values of all lengths around the bound, and several versions of some keys.
fn entries(random: &mut Random) -> Vec<Entry> {
    let mut all = Vec::new();
    for number in 0..150 + random.below(150) {
        for version in 0..1 + random.below(4) * random.below(2) {
            let len = [0, 8, 30, 200, 1500][random.below(5) as usize] + random.below(20) as usize;
            let value = if random.below(3) == 0 { vec![7; len + 8] } else { random.bytes(len + 8) };
            let kind = match random.below(10) {
                0 => Kind::Delete,
                1 => Kind::Merge,
                2 | 3 => Kind::ExpiringPut,
                _ => Kind::Put,
            };
            let value = if kind == Kind::Delete { Vec::new() } else { value };
            let seq = 1000 - 10 * version - random.below(5);
            all.push((format!("key{number:05}").into_bytes(), seq, kind, value));
        }
    }
    all
}

/// The segments of a finished writer, with their value segments.
fn finished(world: &World, writer: &mut RunWriter) -> Vec<Arc<Segment>> {
    let notes = Arc::clone(&world.notes) as Arc<dyn Reclaim>;
    let file = RunFile::new(&world.fs, &world.dir, writer.id(), Some(notes), None);
    let written = writer.finish().unwrap();
    written.into_iter().map(|written| written.into_segment(file.clone())).collect()
}

fn written(world: &World, id: u64, options: WriterOptions, all: &[Entry]) -> Vec<Arc<Segment>> {
    let mut writer = RunWriter::create(&world.fs, &world.dir, id, options).unwrap();
    for (at, (key, seq, kind, value)) in all.iter().enumerate() {
        // Some of those that have no other versions come in pieces.
        let beside = [at.wrapping_sub(1), at + 1].map(|at| all.get(at).map(|entry| &entry.0));
        if kind.separated().is_some()
            && value.len().is_multiple_of(3)
            && !beside.contains(&Some(key))
        {
            let mut source = value.as_slice();
            let len = writer.add_from(&Bytewise, key, (*seq, *kind), &mut source).unwrap();
            assert_eq!(len, value.len() as u64);
        } else {
            writer.add(&Bytewise, key, *seq, *kind, value).unwrap();
        }
    }
    finished(world, &mut writer)
}

fn shown(cursor: &mut RunCursor<Bytewise>) -> Entry {
    cursor.fetch_value().unwrap();
    (cursor.key().to_vec(), cursor.seq(), cursor.kind(), cursor.value().to_vec())
}

fn check(world: &World, segments: &[Arc<Segment>], all: &[Entry]) {
    for segment in segments {
        let listed: Vec<_> = segment.meta().values.iter().map(|used| used.place()).collect();
        let there = segment.values().iter().map(|values| values.meta().place());
        assert_eq!(listed, there.collect::<Vec<_>>());
        for segment in segment.with_its_values() {
            segment.verify(&Bytewise).unwrap();
        }
    }
    let run = Arc::new(Run::new(Role::Base, segments.to_vec(), Vec::new()));
    for through in [true, false] {
        let (cache, order) = (world.cache.clone(), Bytewise);
        let mut cursor = RunCursor::new(run.clone(), order, cache, through);
        let mut found = Vec::new();
        cursor.seek_to_first().unwrap();
        while cursor.valid() {
            found.push(shown(&mut cursor));
            cursor.next().unwrap();
        }
        assert!(found == all, "forward, {through}");
        found.clear();
        cursor.seek_to_last().unwrap();
        while cursor.valid() {
            let later = cursor.value_later();
            let value = later.map_or_else(|| cursor.value().to_vec(), |later| later().unwrap());
            let (key, kind) = (cursor.key().to_vec(), cursor.kind().joined());
            found.push((key, cursor.seq(), kind, value));
            cursor.prev().unwrap();
        }
        found.reverse();
        assert!(found == all, "backward, {through}");
    }
    for (key, seq, kind, value) in all {
        let (at, as_what, bytes) = get(world, &run, &Bytewise, key, seq + 1).unwrap().unwrap();
        assert_eq!((at, as_what, &bytes), (*seq, *kind, value));
    }
}

/// A get of a separated value, and a scan of a few, read these values alone; a long scan reads as many ahead as it has
/// shown.
#[test]
fn few_values_are_read_that_are_not_shown() {
    let number = |n: u64| format!("key{n:05}").into_bytes();
    let mut random = Random::seeded("values that are not shown");
    let all: Vec<Entry> = (0..200).map(|n| (number(n), 1, Kind::Put, random.bytes(100))).collect();
    let options =
        WriterOptions { block_bytes: 64_000, segment_bytes: 400_000, separate_from: 40, ..TINY };
    for shows in [1, 2, 3, 4, 6, 7, 12, 13, 24, 25, 48, 64] {
        let world = World::new(4 << 20);
        let segments = written(&world, 1, options, &all);
        let values = &segments[0].values()[0];
        let index = values.index(&world.cache, Purpose::Other).unwrap();
        let len = u64::from(index.places[1].len);
        let run = Arc::new(Run::new(Role::Base, segments.clone(), Vec::new()));
        // Bytes that were read so far, and reads.
        let counts = || {
            let stats = world.cache.stats();
            (stats.bytes_read, stats.misses)
        };
        // The block of the references comes with the first value.
        get(&world, &run, &Bytewise, &number(199), 9).unwrap().unwrap();
        let (bytes, misses) = counts();
        get(&world, &run, &Bytewise, &number(198), 9).unwrap().unwrap();
        let read = (counts().0 - bytes + len / 2) / len;
        assert_eq!((read, counts().1 - misses), (1, 1), "a get");
        let (bytes, misses) = counts();
        let cache = world.cache.clone();
        let mut cursor = RunCursor::new(run.clone(), Bytewise, cache, true);
        cursor.seek(&number(50), 9).unwrap();
        for n in 50..50 + shows {
            assert_eq!(shown(&mut cursor), all[n as usize]);
            cursor.next().unwrap();
        }
        let read = (counts().0 - bytes + len / 2) / len;
        assert!((shows..=2 * shows).contains(&read), "{read} values for {shows}");
        let reads = counts().1 - misses;
        assert!(reads <= 5 + shows / 8, "{reads} reads for {shows} values");
    }
}

/// Whatever bit of its tail is flipped, and if all of it is gone, the values of a value segment are found.
#[test]
fn a_value_segment_without_its_index_still_gives_its_values() {
    let world = World::new(1 << 20);
    let mut random = Random::seeded("values without an index");
    let piece_bytes = 100;
    let options = WriterOptions { separate_from: 40, piece_bytes, ..options(&mut random) };
    let mut writer = RunWriter::create(&world.fs, &world.dir, 1, options).unwrap();
    // Those in pieces have segments of their own, with several blocks each.
    let values: Vec<_> = (0..30).map(|n| random.bytes(40 + 37 * (n as usize % 11))).collect();
    for (number, value) in values.iter().enumerate() {
        let key = format!("key{number:05}").into_bytes();
        match number % 3 {
            0 => drop(writer.add_from(&Bytewise, &key, (5, Kind::Put), &mut value.as_slice())),
            _ => writer.add(&Bytewise, &key, 5, Kind::Put, value).unwrap(),
        }
    }
    let segments = finished(&world, &mut writer);
    let saved = |meta: &SegmentMeta| -> Vec<Vec<u8>> {
        let file = Arc::new(DamagedFile::open(&*world.fs, &world.dir, 1).unwrap());
        let mut reader = file.blocks(meta);
        let mut found = Vec::new();
        for (len, piece) in values.iter().flat_map(|v| [(v.len(), 0), (v.len(), piece_bytes)]) {
            for block in 0..values.len() as u32 {
                let reference =
                    ValueRef { file: 1, offset: meta.offset, block, len: len as u32, piece };
                let value = reader.value(reference);
                let checked = reader.check_value(reference);
                assert_eq!(checked.is_ok(), value.is_ok(), "{reference:?}");
                found.extend(value);
            }
        }
        found.sort();
        found.dedup();
        found
    };
    let bytes = world.mem.file(&world.path(1));
    let whole = bytes.bytes.lock().clone();
    let mut all = 0;
    for meta in segments.iter().flat_map(|segment| segment.values()).map(|values| values.meta()) {
        let expected = saved(meta);
        all += expected.len();
        let tail = meta.tail_offset() as usize..meta.end() as usize;
        for at in tail.clone() {
            bytes.bytes.lock()[at] ^= 1 << (at % 8);
            assert!(saved(meta) == expected, "byte {at} of {tail:?}");
            bytes.bytes.lock().clone_from(&whole);
        }
        bytes.bytes.lock()[tail].fill(0);
        assert!(saved(meta) == expected, "all of it");
        bytes.bytes.lock().clone_from(&whole);
    }
    assert!(all >= values.len(), "{all} values");
}

/// Every reason to move values, which says how they are compressed.
const WHYS: [ValueMove; 4] =
    [ValueMove::Empties, ValueMove::EmptiesCold, ValueMove::Cools, ValueMove::Warms];

#[test]
fn separated_values_are_read_in_every_way_and_stay_or_move_with_their_references() {
    let mut random = Random::seeded("separated");
    for round in 0..40 {
        let world = World::new(random.below(60_000));
        let (first, all) = (options(&mut random), entries(&mut random));
        let before = written(&world, 1, first, &all);
        check(&world, &before, &all);
        let bits = random.next();
        let why = random.below(WHYS.len() as u64) as usize;
        let moves = |values: &Segment| {
            (bits >> (values.meta().offset / 8 % 61) & 1 == 0).then_some(WHYS[why])
        };
        let known = KnownValues::of(&world.cache, before.iter(), moves);
        let mut writer = RunWriter::create(&world.fs, &world.dir, 2, options(&mut random)).unwrap();
        writer.know(&mut Some(known));
        if random.below(2) == 0 {
            writer.set_cold(Some(train(&before, &world.cache).unwrap())).unwrap();
        }
        let run = Arc::new(Run::new(Role::Delta, before.clone(), Vec::new()));
        let mut cursor = RunCursor::past_cache(run, Bytewise, world.cache.clone(), 1000);
        cursor.seek_to_first().unwrap();
        while cursor.valid() {
            let (seq, kind) = (cursor.seq(), cursor.kind());
            writer.add(&Bytewise, cursor.key(), seq, kind, cursor.value()).unwrap();
            cursor.next().unwrap();
        }
        let after = finished(&world, &mut writer);
        check(&world, &after, &all);
        let values = |segments: &[Arc<Segment>]| -> Vec<Arc<Segment>> {
            segments.iter().flat_map(|segment| segment.values().to_vec()).collect()
        };
        for segment in &after {
            for (used, values) in segment.meta().values.iter().zip(segment.values()) {
                let moved = values.meta().file == 2;
                assert!(moved || moves(values).is_none() || used.is_in_pieces());
            }
        }
        drop((cursor, before));
        for values in values(&after) {
            assert!(values.dead_bytes() == 0 || values.meta().file == 1, "round {round}");
        }
    }
}

/// What is written as cold data has values that moved for other reasons beside it.
#[test]
fn values_that_move_are_counted_by_the_reason() {
    let mut random = Random::seeded("moved");
    let options = WriterOptions { separate_from: 50, ..WriterOptions::default() };
    let mut value = || random.bytes(1000);
    let all: Vec<Entry> =
        (0..100).map(|n| (format!("key{n:03}").into_bytes(), 5, Kind::Put, value())).collect();
    for why in WHYS {
        let world = World::new(1 << 20);
        let first = written(&world, 1, options, &all);
        let mut writer = RunWriter::create(&world.fs, &world.dir, 2, options).unwrap();
        writer.know(&mut Some(KnownValues::of(&world.cache, first.iter(), |_| Some(why))));
        writer.set_cold(Some(None)).unwrap();
        let before = writer.bytes_written();
        let run = Arc::new(Run::new(Role::Delta, first, Vec::new()));
        let mut cursor = RunCursor::past_cache(run, Bytewise, world.cache.clone(), 1000);
        cursor.seek_to_first().unwrap();
        while cursor.valid() {
            writer.add(&Bytewise, cursor.key(), 5, cursor.kind(), cursor.value()).unwrap();
            cursor.next().unwrap();
        }
        let (bytes, moved) = writer.end_cold(before).unwrap();
        let of_reason = match why {
            ValueMove::Empties | ValueMove::EmptiesCold => moved.emptied,
            ValueMove::Cools => moved.cooled,
            ValueMove::Warms => moved.warmed,
        };
        assert_eq!(of_reason, moved.cooled + moved.warmed + moved.emptied, "{why:?}");
        assert!(of_reason >= 100_000 && bytes - of_reason < 30_000, "{why:?}: {bytes}, {moved:?}");
        finished(&world, &mut writer);
    }
}

#[test]
fn what_segments_refer_to_is_what_is_alive() {
    let world = World::new(1 << 20);
    let options = WriterOptions { separate_from: 50, ..WriterOptions::default() };
    let all: Vec<Entry> =
        (0..10).map(|n| (format!("key{n}").into_bytes(), 5, Kind::Put, vec![n; 100])).collect();
    let first = written(&world, 1, options, &all);
    let values = first[0].values()[0].clone();
    assert_eq!((values.meta().entries, values.dead_bytes()), (10, 0));
    let known = KnownValues::of(&world.cache, first.iter(), |_| None);
    let mut writer = RunWriter::create(&world.fs, &world.dir, 2, options).unwrap();
    writer.know(&mut Some(known));
    let run = Arc::new(Run::new(Role::Delta, first.clone(), Vec::new()));
    let mut cursor = RunCursor::past_cache(run, Bytewise, world.cache.clone(), 1000);
    cursor.seek_to_first().unwrap();
    for _ in 0..4 {
        writer.add(&Bytewise, cursor.key(), 5, cursor.kind(), cursor.value()).unwrap();
        cursor.next().unwrap();
    }
    let second = finished(&world, &mut writer);
    assert_eq!(second[0].meta().values[0].bytes, 400);
    drop((cursor, first));
    assert_eq!(values.dead_bytes(), 600);
    drop(second);
    assert_eq!(values.dead_bytes(), 1000);
}

#[test]
fn only_files_with_separated_values_have_the_new_version() {
    let world = World::new(0);
    let options = WriterOptions { separate_from: 50, ..TINY };
    let version = |id| world.mem.file(&world.path(id)).bytes.lock()[8];
    written(&world, 1, options, &[(b"a".to_vec(), 1, Kind::Put, vec![1; 49])]);
    written(&world, 2, options, &[(b"a".to_vec(), 1, Kind::Put, vec![1; 50])]);
    let two =
        [(b"a".to_vec(), 1, Kind::Put, vec![1; 50]), (b"b".to_vec(), 1, Kind::Put, vec![1; 50])];
    written(&world, 3, options, &two);
    let in_pieces = written(&world, 4, options, &[(b"a".to_vec(), 1, Kind::Put, vec![1; 102])]);
    let versions = [1, 2, 3, 4].map(|id| u32::from(version(id)));
    assert_eq!(versions, [PLAIN_VERSION, SEPARATED_VERSION, SEPARATED_VERSION, VERSION]);
    // A file that only has a reference to them has it too.
    let mut writer = RunWriter::create(&world.fs, &world.dir, 5, options).unwrap();
    writer.know(&mut Some(KnownValues::of(&world.cache, in_pieces.iter(), |_| {
        Some(ValueMove::Empties)
    })));
    let run = Arc::new(Run::new(Role::Delta, in_pieces, Vec::new()));
    let mut cursor = RunCursor::past_cache(run, Bytewise, world.cache.clone(), 1000);
    cursor.seek_to_first().unwrap();
    writer.add(&Bytewise, cursor.key(), 1, cursor.kind(), cursor.value()).unwrap();
    let after = finished(&world, &mut writer);
    assert_eq!(after[0].meta().values[0].values.file, 4);
    assert_eq!(u32::from(version(5)), VERSION);
}

#[test]
fn a_reference_to_pieces_that_lies_is_corruption() {
    let world = World::new(1 << 20);
    let bytes: Vec<u8> = (0..=255).cycle().take(501).collect();
    let first = written(&world, 1, TINY, &[(b"a".to_vec(), 5, Kind::Put, bytes.clone())]);
    let place = first[0].values()[0].meta().clone();
    assert_eq!((place.entries, place.raw_bytes), (6, 501));
    let stored = |block, len, piece| {
        let mut stored = Vec::new();
        let reference = ValueRef { file: 1, offset: place.offset, block, len, piece };
        reference.encode(Kind::Put, &[], &mut stored);
        stored
    };
    for (len, piece) in [(501, 100), (500, 100), (501, 99), (501, 101), (501, 501), (502, 100)] {
        let reference = ValueRef::decode(Kind::SeparatedPut, &stored(0, len, piece)).unwrap();
        let (values, cache) = (first[0].values()[0].clone(), world.cache.clone());
        let pieces = Pieces { values: values.clone(), reference, cache, head: 0 };
        let read = pieces.reader().and_then(|mut reader| reader.bytes_at(0).map(<[u8]>::to_vec));
        let joined = values.load_value(reference, &world.cache, Purpose::Get);
        if (len, piece) == (501, 100) {
            assert_eq!(read.unwrap(), bytes[..100]);
            assert!(joined.unwrap().block().value(0) == bytes);
        } else {
            assert_eq!(read.unwrap_err().kind(), ErrorKind::Corruption, "{len} {piece}");
            assert_eq!(joined.unwrap_err().kind(), ErrorKind::Corruption, "{len} {piece}");
        }
    }
    let mut zero = stored(0, 501, 0);
    zero.push(0);
    for wrong in [stored(1, 501, 100), stored(0, 501, 502), zero] {
        assert!(ValueRef::decode(Kind::SeparatedPut, &wrong).is_err());
    }
}

#[test]
fn a_reference_that_lies_is_corruption() {
    let world = World::new(1 << 20);
    let options = WriterOptions { separate_from: 50, ..WriterOptions::default() };
    let all =
        [(b"a".to_vec(), 5, Kind::Put, vec![1; 100]), (b"b".to_vec(), 5, Kind::Put, vec![2; 200])];
    let first = written(&world, 1, options, &all);
    let place = first[0].values()[0].meta().clone();
    let lie = |block, len| {
        let reference = ValueRef { file: 1, offset: place.offset, block, len, piece: 0 };
        let mut stored = Vec::new();
        reference.encode(Kind::Put, &[], &mut stored);
        let mut writer = RunWriter::create(&world.fs, &world.dir, 2, options).unwrap();
        writer.know(&mut Some(KnownValues::of(&world.cache, first.iter(), |_| None)));
        let added = writer.add(&Bytewise, b"a", 5, Kind::SeparatedPut, &stored);
        let result = added.and_then(|()| {
            let segments = finished(&world, &mut writer);
            let run = Run::new(Role::Base, segments, Vec::new());
            get(&world, &Arc::new(run), &Bytewise, b"a", SEQ_MAX).map(drop)
        });
        world.fs.remove_file(&world.path(2)).unwrap();
        result
    };
    lie(0, 100).unwrap();
    for (block, len) in [(1, 100), (0, 200), (2, 100), (0, 99)] {
        assert_eq!(lie(block, len).unwrap_err().kind(), ErrorKind::Corruption, "{block} {len}");
    }
}
