use super::*;
use crate::base::codec::{Decoded, hash_key};
use crate::base::{Bytewise, Kind, Seq};

fn block(tagged: bool, entries: &[(&[u8], Seq, Kind, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::default();
    builder.reset(tagged);
    for (key, seq, kind, value) in entries {
        builder.add(key, tag_of(hash_key(key)), *seq, *kind, value);
    }
    let mut out = Vec::new();
    builder.finish(&mut out);
    out
}

fn get(bytes: &[u8], key: &[u8], below: Seq) -> Option<(Seq, Kind, Vec<u8>)> {
    let layout = Layout::parse(bytes).unwrap();
    let block = Block::new(bytes, &layout);
    let found = block.get(&Bytewise, key, tag_of(hash_key(key)), below)?;
    let (seq, kind) = block.version(found);
    Some((seq, kind, block.value(found).to_vec()))
}

const P: Kind = Kind::Put;

#[test]
fn finds_the_newest_version_below() {
    let bytes = block(
        true,
        &[(b"aaaaa", 9, P, b"9"), (b"aaaaa", 5, Kind::Delete, b""), (b"aaaaa", 2, P, b"2")],
    );
    assert_eq!(get(&bytes, b"aaaaa", 10).unwrap().2, b"9");
    assert_eq!(get(&bytes, b"aaaaa", 9).unwrap(), (5, Kind::Delete, vec![]));
    assert_eq!(get(&bytes, b"aaaaa", 5).unwrap().2, b"2");
    assert_eq!(get(&bytes, b"aaaaa", 2), None);
    assert_eq!(get(&bytes, b"aaaa", 10), None);
    assert_eq!(get(&bytes, b"aaaaaa", 10), None);
}

#[test]
fn keys_that_differ_in_zeros_are_different() {
    let keys: [&[u8]; 6] = [b"", b"\0", b"\0\0\0", b"\0\0\0\0\0", b"a", b"a\0"];
    for skip in 0..keys.len() {
        let kept: Vec<_> =
            keys.iter().enumerate().filter(|(i, _)| *i != skip).map(|(_, key)| *key).collect();
        let entries: Vec<_> = kept.iter().map(|key| (*key, 0, P, *key)).collect();
        let bytes = block(true, &entries);
        let layout = Layout::parse(&bytes).unwrap();
        let parsed = Block::new(&bytes, &layout);
        for key in keys {
            let expected = kept.contains(&key).then(|| (0, P, key.to_vec()));
            assert_eq!(get(&bytes, key, 1), expected, "{key:?} without {:?}", keys[skip]);
            let bound = parsed.lower_bound(&Bytewise, key, 1);
            assert_eq!(bound, kept.iter().filter(|k| **k < key).count());
            let bound = parsed.lower_bound(&Bytewise, key, 0);
            assert_eq!(bound, kept.iter().filter(|k| **k <= key).count());
        }
    }
}

#[test]
fn dense_numbers_cost_little_beyond_their_values() {
    let keys: Vec<Vec<u8>> = (0..35).map(|i| format!("{:016}", 1000 + i).into_bytes()).collect();
    let value = [7; 100];
    let entries: Vec<_> = keys.iter().map(|key| (&key[..], 0, P, &value[..])).collect();
    let bytes = block(true, &entries);
    // A tag and a head per entry; no offsets, no sequence numbers, no key remainders.
    assert_eq!(bytes.len(), 16 + 12 + 35 * (100 + 5));
    for key in &keys {
        assert!(get(&bytes, key, 1).is_some());
    }
    assert_eq!(get(&bytes, b"0000000000000999", 1), None);
}

#[test]
fn stored_blocks_are_checked() {
    let raw = block(true, &[(b"some key", 0, P, &[5; 3000])]);
    let noise: Vec<u8> =
        (0..300u32).flat_map(|i| hash_key(&i.to_le_bytes()).to_le_bytes()).collect();
    let incompressible = block(true, &[(b"some key", 0, P, &noise)]);
    let mut encoder = Encoder::default();
    for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd] {
        for (raw, shrinks) in [(&raw, true), (&incompressible, false)] {
            let mut stored = b"before".to_vec();
            let (used, sum) = encoder.encode(codec, raw, 3, 99, &mut stored);
            let stored = &stored[6..];
            let shrinks = shrinks && codec != Codec::Raw;
            assert_eq!(used, if shrinks { codec } else { Codec::Raw });
            assert_eq!(stored.len() < 200, shrinks);
            let checked = EncodedBlock::check(stored, 3, 99, sum).unwrap();
            let mut out = vec![0; checked.raw_len];
            checked.decode_into(&mut out, None).unwrap();
            assert_eq!(out, *raw);
            assert!(EncodedBlock::check(stored, 4, 99, sum).is_err());
            assert!(EncodedBlock::check(stored, 3, 98, sum).is_err());
            assert!(EncodedBlock::check(stored, 3, 99, sum ^ 1).is_err());
        }
    }
}

/// Decompresses between two canaries.
fn decompress_guarded(codec: Codec, payload: &[u8], len: usize) -> Decoded<Vec<u8>> {
    const CANARY: usize = 64;
    let mut space = vec![0xA5; len + 2 * CANARY];
    let result = decompress(codec, payload, &mut space[CANARY..CANARY + len], None);
    let beside = space[..CANARY].iter().chain(&space[CANARY + len..]);
    assert!(beside.copied().all(|byte| byte == 0xA5), "{codec:?}: {payload:?} to {len} bytes");
    result.map(|()| space[CANARY..CANARY + len].to_vec())
}

/// The decoder of LZ4 checks its bounds by itself (decision 0028), and that of Zstandard is C.
#[test]
fn decoders_write_nothing_beside_their_buffer() {
    let text: Vec<u8> = (0..40u8).flat_map(|i| [b'a' + i % 7, b'b', b'c', i, i / 3]).collect();
    let raw = [&text[..], &[7; 300], &text[..90], b"the end"].concat();
    let mut encoder = Encoder::default();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let mut stored = Vec::new();
        assert_eq!(encoder.encode(codec, &raw, 1, 0, &mut stored).0, codec);
        let payload = &stored[..stored.len() - TRAILER_BYTES];
        assert_eq!(decompress_guarded(codec, payload, raw.len()).unwrap(), raw);
        for len in [0, 1, raw.len() - 1, raw.len() + 1, 2 * raw.len()] {
            decompress_guarded(codec, payload, len).unwrap_err();
        }
        for end in 0..payload.len() {
            decompress_guarded(codec, &payload[..end], raw.len()).unwrap_err();
        }
        let mut damaged = payload.to_vec();
        for at in 0..payload.len() {
            for value in 0..=255 {
                damaged[at] = value;
                // What it says is not checked here: a checksum does that.
                let _ = decompress_guarded(codec, &damaged, raw.len());
            }
            damaged[at] = payload[at];
        }
    }
}

#[test]
fn extreme_compression_stays_within_what_readers_accept() {
    let raw = block(true, &[(b"zeros", 0, P, &vec![0; 8 << 20])]);
    for codec in [Codec::Lz4, Codec::Zstd] {
        let mut stored = Vec::new();
        let (used, sum) = Encoder::default().encode(codec, &raw, 1, 0, &mut stored);
        assert_ne!(used, Codec::Raw);
        let checked = EncodedBlock::check(&stored, 1, 0, sum).unwrap();
        assert_eq!(checked.raw_len, raw.len());
    }
}

#[test]
fn damaged_layouts_are_refused_or_harmless() {
    let shapes = [
        block(
            true,
            &[(b"key1", 5, P, b"a"), (b"key2", 4, Kind::Delete, b""), (b"key33", 3, P, b"c")],
        ),
        block(true, &[(b"", 0, P, b"a"), (b"k", 0, P, b"b")]),
        block(false, &[(b"z", 0, P, b"a"), (b"key", 9, P, b"b")]),
        block(true, &[(b"key1", 1, P, &[1; 70_000])]),
    ];
    for bytes in &shapes {
        let inner: Vec<usize> = (0..bytes.len().min(120)).collect();
        for at in inner {
            for value in [0, 1, 2, 4, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(1)] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                exercise(&damaged);
            }
            exercise(&bytes[..at]);
        }
    }
}

fn exercise(bytes: &[u8]) {
    let Ok(layout) = Layout::parse(bytes) else { return };
    let block = Block::new(bytes, &layout);
    let mut key = Vec::new();
    block.key_into(0, &mut key);
    for i in 0..block.count() {
        block.next_key_into(i, &mut key);
        let rebuilt = key.clone();
        block.key_into(i, &mut key);
        assert_eq!(rebuilt, key);
        assert!(block.value(i).len() <= bytes.len());
        block.version(i);
        for tag in [0, 255, tag_of(hash_key(&key))] {
            block.get(&Bytewise, &key, tag, 7);
        }
        block.lower_bound(&Bytewise, &key, 3);
    }
    for key in [&b""[..], b"k", b"key2", b"zzzzzzzz"] {
        block.get(&Bytewise, key, tag_of(hash_key(key)), 7);
        assert!(block.lower_bound(&Bytewise, key, 7) <= block.count());
    }
}
