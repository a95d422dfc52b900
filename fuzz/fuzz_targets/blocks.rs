//! Blocks as a damaged file may hold them: any bytes to the decoders of LZ4 and Zstandard, and to what
//! reads a raw block; and whatever is compressed comes back as it was.

#![no_main]

use esker::internals::base::Bytewise;
use esker::internals::block::{Block, Codec, EncodedBlock, Encoder, Layout, decompress, tag_of};

/// The longest raw block that an input may ask for.
const RAW_BYTES: usize = 32 << 10;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [mode, low, high, input @ ..] = input else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high])) % RAW_BYTES;
    match mode % 5 {
        0 => decode(Codec::Lz4, input, len),
        1 => decode(Codec::Zstd, input, len),
        2 => come_back(Codec::Lz4, input),
        3 => come_back(Codec::Zstd, input),
        _ => read(input),
    }
});

/// Decompresses into a buffer of exactly this length, so that the sanitizer sees each byte beside it.
fn decode(codec: Codec, payload: &[u8], len: usize) {
    let mut raw = vec![0; len];
    if decompress(codec, payload, &mut raw, None).is_ok() {
        read(&raw);
    }
}

fn come_back(codec: Codec, raw: &[u8]) {
    // What repeats is what compresses.
    let raw = raw.repeat(1 + raw.first().map_or(0, |first| usize::from(first % 8)));
    let mut stored = Vec::new();
    let (_, sum) = Encoder::default().encode(codec, &raw, 1, 2, &mut stored);
    let block = EncodedBlock::check(&stored, 1, 2, sum).expect("its own checksum");
    let mut out = vec![0; block.raw_len];
    block.decode_into(&mut out, None).expect("its own block");
    assert_eq!(out, raw);
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
