use super::*;

#[test]
fn varints_come_back_and_have_the_length_that_was_announced() {
    let edges = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, !(1 << bit)]);
    for value in edges.chain([0, u64::MAX]) {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        assert_eq!(bytes.len(), varint_len(value), "{value}");
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.varint(), Ok(value));
        assert!(reader.is_empty());
    }
}

#[test]
fn varints_that_are_cut_too_long_or_padded_are_refused() {
    assert!(Reader::new(&[]).varint().is_err());
    assert!(Reader::new(&[0x80]).varint().is_err(), "cut");
    assert!(Reader::new(&[0x80, 0x00]).varint().is_err(), "not in its shortest form");
    assert!(Reader::new(&[0xff, 0x80, 0x00]).varint().is_err(), "not in its shortest form");
    let mut ten = [0xff; 10];
    ten[9] = 0x02;
    assert!(Reader::new(&ten).varint().is_err(), "more than 64 bits");
    assert!(Reader::new(&[0xff; 11]).varint().is_err(), "more than 10 bytes");
}

#[test]
fn a_maximum_is_kept() {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, 300);
    assert_eq!(Reader::new(&bytes).varint_max(300), Ok(300));
    assert!(Reader::new(&bytes).varint_max(299).is_err());
}

#[test]
fn byte_strings_are_bounded_by_their_maximum_and_by_what_is_there() {
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, b"hello");
    assert_eq!(Reader::new(&bytes).bytes(5), Ok(&b"hello"[..]));
    assert!(Reader::new(&bytes).bytes(4).is_err());
    assert!(Reader::new(&bytes[..5]).bytes(100).is_err());
    let mut huge = Vec::new();
    put_varint(&mut huge, u64::MAX);
    assert!(Reader::new(&huge).bytes(usize::MAX).is_err());
}

#[test]
fn fixed_numbers_are_little_endian_and_move_the_reader() {
    let bytes: Vec<u8> = (1..=15).collect();
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.u8(), Ok(1));
    assert_eq!(reader.u16(), Ok(0x0302));
    assert_eq!(reader.u32(), Ok(0x0706_0504));
    assert_eq!(reader.u64(), Ok(0x0f0e_0d0c_0b0a_0908));
    assert_eq!((reader.position(), reader.remaining()), (15, 0));
    assert!(reader.u8().is_err());
}

#[test]
fn a_failed_read_takes_nothing() {
    let mut reader = Reader::new(&[1, 2, 3]);
    assert!(reader.u32().is_err());
    assert!(reader.take(usize::MAX).is_err());
    assert_eq!(reader.take(3), Ok(&[1, 2, 3][..]));
}

#[test]
fn a_checksum_knows_its_place_and_every_bit() {
    let bytes: Vec<u8> = (0..100).collect();
    let sum = checksum(1, 2, &bytes);
    assert_ne!(sum, checksum(2, 2, &bytes));
    assert_ne!(sum, checksum(1, 3, &bytes));
    assert_ne!(checksum(1, 2, &bytes), checksum(2, 1, &bytes));
    for at in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[at / 8] ^= 1 << (at % 8);
        assert_ne!(sum, checksum(1, 2, &damaged), "bit {at}");
    }
}

#[test]
fn a_checksum_over_pieces_is_that_over_the_whole() {
    let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
    for cut in [0, 1, 8, 240, 241, 999, 1000] {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(checksum_pieces(7, 9, &[a, b]), checksum(7, 9, &bytes), "{cut}");
    }
}
