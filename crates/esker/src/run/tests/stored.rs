//! How blocks are stored, and whether a segment would shrink.

use super::*;

const ENTRIES: u64 = 2000;

/// Values of which those between two parts of a hundred are compressible.
fn entries(random: &mut Random, from: u64, to: u64) -> Vec<Entry> {
    let value = |number: u64, random: &mut Random| match number * 100 / ENTRIES {
        part if part >= from && part < to => vec![b'v'; 100],
        _ => random.bytes(100),
    };
    let entry =
        |number: u64| (format!("key{number:06}").into_bytes(), 0, Kind::Put, value(number, random));
    (0..ENTRIES).map(entry).collect()
}

fn written(world: &World, id: u64, codec: Codec, entries: &[Entry]) -> Arc<Segment> {
    let options = WriterOptions { codec, ..WriterOptions::default() };
    let metas = world.write(&Bytewise, id, options, entries);
    assert_eq!(metas.len(), 1);
    world.segments(id, &metas).remove(0)
}

#[test]
fn a_raw_segment_is_judged_by_blocks_from_all_over_it() {
    let mut random = Random::seeded("a_raw_segment_is_judged_by_blocks_from_all_over_it");
    let world = World::new(1 << 20);
    // In the middle there is nothing to gain, or only there.
    let cases = [(0, 0, false), (0, 100, true), (0, 40, true), (60, 100, true), (45, 55, false)];
    for (id, (from, to, shrinks)) in (1..).zip(cases) {
        let segment = written(&world, id, Codec::Raw, &entries(&mut random, from, to));
        for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd] {
            let expected = shrinks && codec != Codec::Raw;
            assert_eq!(segment.would_shrink(codec, &world.cache), expected, "{from} to {to} %");
            assert_eq!(segment.is_judged(), codec != Codec::Raw);
        }
    }
}

#[test]
fn what_is_compressed_already_does_not_shrink() {
    let mut random = Random::seeded("what_is_compressed_already_does_not_shrink");
    let world = World::new(1 << 20);
    for (id, codec) in [(1, Codec::Lz4), (2, Codec::Zstd)] {
        let segment = written(&world, id, codec, &entries(&mut random, 0, 30));
        assert!(!segment.would_shrink(Codec::Zstd, &world.cache), "{codec:?}");
        let stored = segment.stored().unwrap();
        let [compressed, other] = match codec {
            Codec::Zstd => [stored.zstd, stored.lz4],
            _ => [stored.lz4, stored.zstd],
        };
        assert!(compressed > 0 && other == 0 && stored.raw > compressed, "{stored:?}");
        assert_eq!(compressed + stored.raw, segment.meta().blocks_len());
    }
}

#[test]
fn what_cannot_be_read_is_left_alone() {
    let mut random = Random::seeded("what_cannot_be_read_is_left_alone");
    let world = World::new(1 << 20);
    let segment = written(&world, 1, Codec::Raw, &entries(&mut random, 0, 100));
    assert_eq!(segment.stored(), None);
    let flip = || {
        let file = world.mem.file(&world.path(1));
        file.bytes.lock()[segment.meta().tail_offset() as usize] ^= 1;
    };
    flip();
    assert!(!segment.would_shrink(Codec::Lz4, &world.cache) && segment.is_judged());
    assert_eq!(segment.stored(), None);
    flip();
    segment.load(&world.cache).unwrap();
    assert_eq!(segment.stored().unwrap().raw, segment.meta().blocks_len());
}
