//! Damaged bytes, with and without matching checksums: a typed error or the right data, never a
//! panic, a wrong value or a huge allocation.

use super::*;
use crate::base::codec::checksum;
use crate::trace::{Plain, Purpose};
use std::collections::BTreeMap;

const CODECS: [Codec; 3] = [Codec::Raw, Codec::Lz4, Codec::Zstd];

fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = (0..40u32)
        .map(|i| (format!("k{i:05}").into_bytes(), 9, Kind::Put, vec![b'v'; i as usize % 30]))
        .collect();
    entries.insert(20, (b"k00019".to_vec(), 4, Kind::Delete, Vec::new()));
    entries.push((b"kz".to_vec(), 3, Kind::Put, b"last".to_vec()));
    entries
}

/// Reads everything in every way. Damage must not change what is read; errors must be corruption.
fn read_all(world: &World, meta: &SegmentMeta, expect: Option<&[Entry]>) -> Result<()> {
    let segments = || world.segments(1, std::slice::from_ref(meta));
    let check = |result: Result<()>| -> Result<()> {
        if let Err(error) = &result {
            let typed = matches!(error, Error::Corruption(_) | Error::UnknownFormat { .. });
            assert!(typed, "{error}");
        }
        result
    };
    let mut outcome = check(segments()[0].verify(&Bytewise).map(|_| ()));
    for role in [Role::Base, Role::Delta] {
        let run = Arc::new(Run::new(role, segments(), Vec::new()));
        for entry in entries() {
            let (key, seq) = (&entry.0, entry.1);
            let wanted = Wanted { key, hash: hash_key(key), below: seq + 1, doubtful: false };
            let probe =
                run.get(&Bytewise, wanted, Access::Read, &world.cache, &mut Plain).map(|probe| {
                    let Probe::Found(found) = probe else {
                        assert!(expect.is_none(), "a silently missing key");
                        return;
                    };
                    let value = found.value();
                    if expect.is_some() {
                        assert_eq!((found.seq, found.kind, value), (seq, entry.2, &entry.3[..]));
                    }
                });
            outcome = outcome.and(check(probe));
        }
        for fill in [true, false] {
            let cache = Arc::clone(&world.cache);
            let mut cursor = RunCursor::new(Arc::clone(&run), Bytewise, cache, fill);
            let mut walk = |forward: bool| -> Result<()> {
                let mut seen = Vec::new();
                if forward {
                    cursor.seek_to_first()?
                } else {
                    cursor.seek_to_last()?
                }
                while cursor.valid() {
                    let value = cursor.value().to_vec();
                    seen.push((cursor.key().to_vec(), cursor.seq(), cursor.kind(), value));
                    if forward { cursor.next()? } else { cursor.prev()? }
                }
                if let Some(expect) = expect {
                    if !forward {
                        seen.reverse();
                    }
                    assert_eq!(seen, expect);
                }
                cursor.seek(b"k00019", 5)?;
                cursor.seek_before(b"k00030")
            };
            outcome = outcome.and(check(walk(true)));
            outcome = outcome.and(check(walk(false)));
        }
    }
    outcome
}

fn prepared(codec: Codec) -> (World, SegmentMeta) {
    let world = World::new(1 << 20);
    let options = WriterOptions {
        segment_bytes: 1 << 16,
        block_bytes: 400,
        codec,
        bits_per_key: 8,
        ..WriterOptions::default()
    };
    let metas = world.write(&Bytewise, 1, options, &entries());
    assert_eq!(metas.len(), 1);
    (world, metas[0].clone())
}

#[test]
fn every_flipped_bit_is_noticed() {
    let entries = entries();
    for codec in CODECS {
        let (world, meta) = prepared(codec);
        read_all(&world, &meta, Some(&entries)).unwrap();
        let file = world.mem.file(&world.path(1));
        let len = file.bytes.lock().len();
        for at in 0..len {
            let bit = 1 << (at % 8);
            file.bytes.lock()[at] ^= bit;
            let result = read_all(&world, &meta, Some(&entries));
            let padding = at >= 64 && (at as u64) < meta.offset;
            assert!(result.is_err() != padding, "bit {bit} of byte {at}");
            file.bytes.lock()[at] ^= bit;
        }
    }
}

#[test]
fn every_truncation_is_noticed() {
    let entries = entries();
    let (world, meta) = prepared(Codec::Lz4);
    let file = world.mem.file(&world.path(1));
    let whole = file.bytes.lock().clone();
    for len in 0..whole.len() {
        file.bytes.lock().truncate(len);
        assert!(read_all(&world, &meta, Some(&entries)).is_err(), "cut at {len}");
        *file.bytes.lock() = whole.clone();
    }
}

#[test]
fn a_swapped_block_is_noticed() {
    let world = World::new(1 << 20);
    let metas = world.write(&Bytewise, 1, TINY, &numbered(0..900));
    let twins = world.write(&Bytewise, 2, TINY, &numbered(0..900));
    let source = world.mem.file(&world.path(1)).bytes.lock().clone();
    // The same contents in another file: everything is self-consistent but stands in the wrong
    // place. First one block only, then a whole segment.
    let (meta, twin) = (&metas[0], &twins[0]);
    let block = world.segments(1, &metas)[0].index(&world.cache, Purpose::Other).unwrap().places[0];
    for (range, section) in [
        (block.offset as usize..block.end() as usize, "block"),
        (meta.offset as usize..meta.end() as usize, "segment tail"),
    ] {
        let file = world.mem.file(&world.path(2));
        world.segments(2, &twins)[0].verify(&Bytewise).unwrap();
        let whole = file.bytes.lock().clone();
        file.bytes.lock()[range.clone()].copy_from_slice(&source[range]);
        let error = world.segments(2, std::slice::from_ref(twin))[0].verify(&Bytewise).unwrap_err();
        assert!(matches!(&error, Error::Corruption(c) if c.section == section), "{error}");
        *file.bytes.lock() = whole;
    }
}

/// Recomputes the checksum of the tail, in place and in the meta.
fn reseal_tail(bytes: &mut [u8], meta: &mut SegmentMeta) {
    let (start, end) = (meta.tail_offset() as usize, meta.end() as usize);
    meta.checksum = checksum(meta.file, start as u64, &bytes[start..end - 8]);
    bytes[end - 8..end].copy_from_slice(&meta.checksum.to_le_bytes());
}

#[test]
fn a_tail_with_a_forged_checksum_does_no_harm() {
    let (world, mut meta) = prepared(Codec::Raw);
    let file = world.mem.file(&world.path(1));
    let whole = file.bytes.lock().clone();
    let honest = meta.clone();
    for at in honest.tail_offset() as usize..honest.end() as usize - 8 {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            meta = honest.clone();
            reseal_tail(&mut bytes, &mut meta);
            *file.bytes.lock() = bytes;
            let _ = read_all(&world, &meta, None);
        }
    }
}

#[test]
fn a_block_with_a_forged_checksum_does_no_harm() {
    let mut random = Random::seeded("forged blocks");
    for codec in CODECS {
        let (world, honest) = prepared(codec);
        let file = world.mem.file(&world.path(1));
        let whole = file.bytes.lock().clone();
        let places: BTreeMap<u64, u32> = {
            let segment = &world.segments(1, std::slice::from_ref(&honest))[0];
            let index = segment.index(&world.cache, Purpose::Other).unwrap();
            index.places.iter().map(|place| (place.offset, place.len)).collect()
        };
        for (&offset, &len) in &places {
            let (start, end) = (offset as usize, offset as usize + len as usize);
            let old = u64::from_le_bytes(whole[end - 8..end].try_into().unwrap());
            for at in start..end - 8 {
                let mut bytes = whole.clone();
                bytes[at] = match random.below(3) {
                    0 => bytes[at] ^ 1 << random.below(8),
                    1 => 0xff,
                    _ => random.next() as u8,
                };
                let sum = checksum(1, offset, &bytes[start..end - 8]).to_le_bytes();
                bytes[end - 8..end].copy_from_slice(&sum);
                // The index repeats the checksum.
                let mut meta = honest.clone();
                let tail = meta.tail_offset() as usize;
                let repeated = bytes[tail..].windows(8).position(|w| w == old.to_le_bytes());
                let repeated = tail + repeated.unwrap();
                bytes[repeated..repeated + 8].copy_from_slice(&sum);
                reseal_tail(&mut bytes, &mut meta);
                *file.bytes.lock() = bytes;
                let _ = read_all(&world, &meta, None);
            }
        }
    }
}

#[test]
fn a_forged_meta_does_no_harm() {
    let (world, meta) = prepared(Codec::Raw);
    let mut encoded = Vec::new();
    meta.encode(&mut encoded);
    let mut random = Random::seeded("forged meta");
    for at in 0..encoded.len() {
        for _ in 0..4 {
            let mut bytes = encoded.clone();
            bytes[at] = random.next() as u8;
            let mut reader = crate::base::codec::Reader::new(&bytes);
            if let Ok(forged) = SegmentMeta::decode(&mut reader)
                && forged.file == 1
                && forged != meta
            {
                assert!(read_all(&world, &forged, None).is_err());
            }
        }
    }
}
