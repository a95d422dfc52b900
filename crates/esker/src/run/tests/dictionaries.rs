//! Segments with dictionaries: what they save, and that damage of a dictionary is noticed and named.

use super::*;
use crate::block::Dictionary;
use crate::run::header::{DICTIONARY_VERSION, PLAIN_VERSION};

/// Entries that have much in common, each of which is short.
pub fn records(numbers: std::ops::Range<u64>) -> Vec<Entry> {
    let names = ["anna", "bert", "carla", "dieter", "emil", "frieda", "gustav", "heidi"];
    let record = |number: u64| {
        let mut random = Random(number);
        let (name, city) = (random.below(8) as usize, random.below(8) as usize);
        let value = format!(
            "{{\"id\":{number},\"name\":\"{}\",\"neighbour\":\"{}\",\"score\":{},\"day\":\"2024-{:02}-{:02}\"}}",
            names[name],
            names[city],
            random.below(100_000),
            random.below(12) + 1,
            random.below(28) + 1
        );
        (format!("user:{number:08}").into_bytes(), 0, Kind::Put, value.into_bytes())
    };
    numbers.map(record).collect()
}

const OPTIONS: WriterOptions = WriterOptions {
    segment_bytes: 1 << 16,
    block_bytes: 1000,
    codec: Codec::Lz4,
    bits_per_key: 8,
    collected_bytes: 4 << 10,
    values_codec: Codec::Raw,
    separate_from: u32::MAX,
    piece_bytes: 1000,
};

fn trained(entries: &[Entry]) -> Arc<Dictionary> {
    let (mut samples, mut lens) = (Vec::new(), Vec::new());
    for entries in entries.chunks(10) {
        let before = samples.len();
        for (key, _, _, value) in entries {
            samples.extend_from_slice(key);
            samples.extend_from_slice(value);
        }
        lens.push(samples.len() - before);
    }
    Arc::new(Dictionary::train(&samples, &lens, 1024).unwrap())
}

fn written(
    world: &World,
    id: u64,
    cold: Option<Option<Arc<Dictionary>>>,
    all: &[Entry],
) -> Vec<SegmentMeta> {
    let mut writer = RunWriter::create(&world.fs, &world.dir, id, OPTIONS).unwrap();
    writer.set_cold(cold).unwrap();
    for (key, seq, kind, value) in all {
        writer.add(&Bytewise, key, *seq, *kind, value).unwrap();
    }
    metas(writer.finish().unwrap())
}

fn version(world: &World, id: u64) -> u32 {
    let bytes = world.mem.file(&world.path(id)).bytes.lock()[8..12].to_vec();
    u32::from_le_bytes(bytes.try_into().unwrap())
}

fn found(world: &World, id: u64, metas: &[SegmentMeta]) -> Vec<Entry> {
    let run = Arc::new(Run::new(Role::Base, world.segments(id, metas), Vec::new()));
    let mut all = Vec::new();
    for fill in [true, false] {
        all.clear();
        let mut cursor = RunCursor::new(run.clone(), Bytewise, world.cache.clone(), fill);
        cursor.seek_to_first().unwrap();
        while cursor.valid() {
            all.push((cursor.key().to_vec(), cursor.seq(), cursor.kind(), cursor.value().to_vec()));
            cursor.next().unwrap();
        }
    }
    for (key, _, _, value) in &all {
        let got = get(world, &run, &Bytewise, key, 1).unwrap();
        assert_eq!(got.unwrap().2, *value);
    }
    all
}

#[test]
fn a_dictionary_makes_short_blocks_smaller_and_is_read_everywhere() {
    let (world, all) = (World::new(1 << 20), records(0..2000));
    let dictionary = trained(&all);
    let mut sizes = Vec::new();
    let colds = [None, Some(None), Some(Some(dictionary.clone()))];
    for (id, cold) in (1..).zip(colds) {
        let metas = written(&world, id, cold, &all);
        sizes.push(metas.iter().map(|meta| meta.len).sum::<u64>());
        assert_eq!(version(&world, id), if id == 3 { DICTIONARY_VERSION } else { PLAIN_VERSION });
        assert!(found(&world, id, &metas) == all, "file {id}");
        for segment in world.segments(id, &metas) {
            segment.verify(&Bytewise).unwrap();
            let stored = segment.index(&world.cache, Purpose::Other).unwrap().stored();
            assert_eq!((stored.lz4 > 0, stored.zstd > 0), (id == 1, id > 1));
        }
        let file = Arc::new(DamagedFile::open(&*world.fs, &world.dir, id).unwrap());
        assert_eq!(file.segments(), metas, "without a manifest");
        let mut reader = file.blocks(&metas[0]);
        while reader.advance() {}
        assert!(reader.lost().is_empty() && reader.blocks() > 50);
    }
    let [lz4, plain, cold] = sizes[..] else { unreachable!() };
    assert!(plain * 10 < lz4 * 9 && cold * 10 < plain * 9, "{sizes:?}");
    println!("{lz4} bytes with LZ4, {plain} with Zstandard, {cold} with a dictionary");
}

/// Cold and warm segments in one file, as compactions write them.
#[test]
fn a_file_may_hold_both() {
    let (world, all) = (World::new(1 << 20), records(0..3000));
    let dictionary = trained(&all);
    let mut writer = RunWriter::create(&world.fs, &world.dir, 1, OPTIONS).unwrap();
    for (part, cold) in [None, Some(Some(dictionary)), None, Some(None)].into_iter().enumerate() {
        writer.set_cold(cold).unwrap();
        for (key, seq, kind, value) in &all[part * 750..(part + 1) * 750] {
            writer.add(&Bytewise, key, *seq, *kind, value).unwrap();
        }
    }
    let metas = metas(writer.finish().unwrap());
    assert!(found(&world, 1, &metas) == all);
    let with = |meta: &SegmentMeta| {
        let segment = world.segments(1, std::slice::from_ref(meta)).remove(0);
        segment.index(&world.cache, Purpose::Other).unwrap().dictionary.is_some()
    };
    let with: Vec<bool> = metas.iter().map(with).collect();
    assert!(with.contains(&true) && !with[0] && !with[with.len() - 1], "{with:?}");
}

#[test]
fn a_dictionary_counts_as_memory_of_indexes() {
    let (world, all) = (World::new(8 << 20), records(0..300));
    let dictionary = trained(&all);
    let memory = |id, cold| {
        let metas = written(&world, id, cold, &all);
        let before = index_bytes(&world);
        let segments = world.segments(id, &metas);
        segments.iter().for_each(|segment| segment.load(&world.cache).unwrap());
        (index_bytes(&world) - before, segments)
    };
    let (plain, _first) = memory(1, Some(None));
    let (cold, segments) = memory(2, Some(Some(dictionary.clone())));
    let expected = dictionary.memory() as u64 * segments.len() as u64;
    assert!(cold.abs_diff(plain + expected) < 1000, "{cold}, {plain} and {expected} bytes");
    assert!(dictionary.memory() < 40_000, "{} bytes", dictionary.memory());
    drop(segments);
    assert_eq!(index_bytes(&world), plain);
}

/// A damaged dictionary is an error that names it; of a damaged tail the dictionary is saved, and so are
/// the blocks.
#[test]
fn damage_of_a_dictionary_is_named_and_nothing_wrong_is_read() {
    let (world, all) = (World::new(1 << 20), records(0..200));
    let dictionary = trained(&all);
    let len = dictionary.bytes().len();
    let metas = written(&world, 1, Some(Some(dictionary)), &all);
    let [meta] = &metas[..] else { panic!("{} segments", metas.len()) };
    let file = world.mem.file(&world.path(1));
    let saved = || {
        let file = Arc::new(DamagedFile::open(&*world.fs, &world.dir, 1).unwrap());
        let (mut reader, mut entries) = (file.blocks(meta), 0);
        while reader.advance() {
            let block = reader.block().unwrap();
            for entry in 0..block.count() {
                let mut key = Vec::new();
                block.key_into(entry, &mut key);
                let known = all.iter().find(|(other, ..)| *other == key).unwrap();
                assert_eq!(block.value(entry), known.3);
                entries += 1;
            }
        }
        (entries, reader.lost().to_vec())
    };
    let tail = meta.tail_offset() as usize;
    let whole = file.bytes.lock().clone();
    for at in tail..meta.end() as usize {
        file.bytes.lock()[at] ^= 1 << (at % 8);
        let segment = &world.segments(1, std::slice::from_ref(meta))[0];
        let error = segment.load(&world.cache).unwrap_err();
        assert!(segment.verify(&Bytewise).is_err());
        let Error::Corruption(corruption) = &error else { panic!("{error}") };
        assert_eq!((corruption.offset, corruption.path.as_path()), (tail as u64, &*world.path(1)));
        let (entries, lost) = saved();
        if at < tail + 4 + len + 8 {
            assert_eq!(corruption.section, "dictionary", "byte {}", at - tail);
            // Blocks that are stored raw are left.
            assert!(entries < all.len(), "{entries} entries, byte {}", at - tail);
            assert!(lost.len() > 1);
        } else if !(meta.end() as usize - 27..meta.end() as usize - 24).contains(&at) {
            assert_eq!(corruption.section, "segment tail", "byte {}", at - tail);
            assert_eq!((entries, lost.len()), (all.len(), 1), "byte {}", at - tail);
        }
        file.bytes.lock()[at] ^= 1 << (at % 8);
    }
    // Lengths that make no sense, under checksums that fit.
    for forged in [0, 1, 7, len as u32 - 1, len as u32 + 1, 65_537, u32::MAX] {
        let (mut bytes, mut forged_meta) = (whole.clone(), meta.clone());
        bytes[tail..tail + 4].copy_from_slice(&forged.to_le_bytes());
        let end = tail + 4 + (forged as usize).min(len + 1);
        let sum = crate::base::codec::checksum(1, tail as u64, &bytes[tail..end]);
        bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        let end = meta.end() as usize - 8;
        forged_meta.checksum = crate::base::codec::checksum(1, tail as u64, &bytes[tail..end]);
        bytes[end..].copy_from_slice(&forged_meta.checksum.to_le_bytes());
        *file.bytes.lock() = bytes;
        let segment = &world.segments(1, std::slice::from_ref(&forged_meta))[0];
        let error = segment.load(&world.cache).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{forged}: {error}");
    }
}

fn index_bytes(world: &World) -> u64 {
    world.cache.stats().index_bytes
}
