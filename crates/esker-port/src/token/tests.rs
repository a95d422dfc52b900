use super::*;
use crate::testing::short_sequences;
use crate::word::pseudo_random;

fn round_trip(bytes: &[u8]) {
    let token = encode(bytes);
    assert!(token.bytes().all(|byte| byte.is_ascii_graphic()), "{token:?} is not one token");
    assert_eq!(decode(token.as_bytes()).unwrap(), bytes, "{token}");
}

#[test]
fn every_short_sequence_of_bytes_comes_back() {
    short_sequences().for_each(|bytes| round_trip(&bytes));
}

#[test]
fn long_sequences_come_back() {
    for len in 0..300 {
        let bytes = pseudo_random(len, b"seed");
        round_trip(&bytes);
        let printable: Vec<u8> = bytes.iter().map(|byte| 0x21 + byte % 94).collect();
        round_trip(&printable);
    }
}

#[test]
fn printable_tokens_stay_plain() {
    for plain in ["a", "user:1", "x#y", "a@b", "--", "-1", "00x1", "0", "0X1", "~", "!", "ok"] {
        assert_eq!(encode(plain.as_bytes()), plain);
    }
}

#[test]
fn whatever_could_be_mistaken_is_hexadecimal() {
    for (bytes, token) in [
        (b"".as_slice(), "0x"),
        (b"-", "0x2d"),
        (b"0x", "0x3078"),
        (b"0xff", "0x30786666"),
        (b"#1", "0x2331"),
        (b"@s", "0x4073"),
        (b"a b", "0x612062"),
        (b"a\n", "0x610a"),
        (b"\x7f", "0x7f"),
        (b"\xff\x00", "0xff00"),
    ] {
        assert_eq!(encode(bytes), token);
    }
}

#[test]
fn hexadecimal_digits_may_be_of_either_case() {
    assert_eq!(decode(b"0xAbCd").unwrap(), [0xab, 0xcd]);
}

#[test]
fn malformed_tokens_are_refused() {
    for token in ["0x1", "0xg0", "0x+1", "0x 1"] {
        let error = decode(token.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("hexadecimal"), "{error}");
    }
}
