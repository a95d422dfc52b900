//! Blocks as a damaged file may hold them: any bytes to the decoders of LZ4 and Zstandard, to what makes a
//! dictionary of them, and to what reads a raw block; and whatever is compressed comes back as it was.

#![no_main]

use esker::internals::base::Bytewise;
use esker::internals::block::{
    Block, Codec, Dictionary, EncodedBlock, Encoder, Layout, decompress, tag_of,
};
use std::sync::LazyLock;

/// The longest raw block that an input may ask for.
const RAW_BYTES: usize = 32 << 10;

/// A dictionary of what some hundred blocks have in common, as a segment would have it.
static TRAINED: LazyLock<Dictionary> = LazyLock::new(|| {
    let sample =
        |n: usize| format!("user:{n:06}:name=person {n} of {};city=town {}", n % 7, n % 13);
    let samples: Vec<_> = (0..500).map(sample).collect();
    let lens: Vec<_> = samples.iter().map(String::len).collect();
    Dictionary::train(samples.concat().as_bytes(), &lens, 4 << 10).expect("they are alike")
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [mode, low, high, input @ ..] = input else { return };
    let number = usize::from(u16::from_le_bytes([*low, *high]));
    let len = number % RAW_BYTES;
    match mode % 8 {
        0 => decode(Codec::Lz4, input, len, None),
        1 => decode(Codec::Zstd, input, len, None),
        2 => come_back(Codec::Lz4, input, None),
        3 => come_back(Codec::Zstd, input, None),
        4 => read(input),
        5 => decode(Codec::Zstd, input, len, Some(&TRAINED)),
        6 => come_back(Codec::Zstd, input, Some(&TRAINED)),
        _ => with_any_dictionary(input.split_at(number % (input.len() + 1))),
    }
});

/// Decompresses into a buffer of exactly this length, so that the sanitizer sees each byte beside it.
fn decode(codec: Codec, payload: &[u8], len: usize, dictionary: Option<&Dictionary>) {
    let mut raw = vec![0; len];
    if decompress(codec, payload, &mut raw, dictionary).is_ok() {
        read(&raw);
    }
}

fn come_back(codec: Codec, raw: &[u8], dictionary: Option<&Dictionary>) {
    // What repeats is what compresses.
    let raw = raw.repeat(1 + raw.first().map_or(0, |first| usize::from(first % 8)));
    let (mut stored, mut encoder) = (Vec::new(), Encoder::default());
    encoder.set_dictionary(dictionary);
    let (_, sum) = encoder.encode(codec, &raw, 1, 2, &mut stored);
    let block = EncodedBlock::check(&stored, 1, 2, sum).expect("its own checksum");
    let mut out = vec![0; block.raw_len];
    block.decode_into(&mut out, dictionary).expect("its own block");
    assert_eq!(out, raw);
}

/// A dictionary of any bytes is refused, or what it compresses comes back, and what it did not is refused or
/// gives bytes that mean nothing.
fn with_any_dictionary((bytes, rest): (&[u8], &[u8])) {
    let Ok(dictionary) = Dictionary::new(bytes) else { return };
    decode(Codec::Zstd, rest, 4 << 10, Some(&dictionary));
    come_back(Codec::Zstd, rest, Some(&dictionary));
}

/// Reads everything of a raw block that its layout allows.
fn read(bytes: &[u8]) {
    let Ok(layout) = Layout::parse(bytes) else { return };
    let block = Block::new(bytes, &layout);
    let (mut key, mut stepped) = (Vec::new(), Vec::new());
    for i in 0..block.count() {
        if i == 0 {
            block.key_into(0, &mut stepped);
        } else {
            block.next_key_into(i, &mut stepped);
        }
        block.key_into(i, &mut key);
        assert_eq!(key, stepped);
        assert!(block.value(i).len() <= bytes.len());
        block.version(i);
        for tag in [0, tag_of(i as u64)] {
            block.get(&Bytewise, &key, tag, 7);
        }
        assert!(block.lower_bound(&Bytewise, &key, 3) <= block.count());
    }
}
