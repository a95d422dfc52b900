use super::*;

fn round_trip(bytes: &[u8]) {
    let token = encode(bytes);
    assert!(token.bytes().all(|byte| byte.is_ascii_graphic()), "{token:?} is not one token");
    assert_eq!(decode(token.as_bytes()).unwrap(), bytes, "{token}");
    assert_eq!(decode_value(token.as_bytes(), b"k").unwrap(), bytes, "{token}");
    assert_eq!(decode_bound(token.as_bytes()).unwrap().unwrap(), bytes, "{token}");
    assert_eq!(decode(encode_first(bytes).as_bytes()).unwrap(), bytes, "{token}");
}

#[test]
fn every_short_sequence_of_bytes_comes_back() {
    round_trip(b"");
    for first in 0..=255 {
        round_trip(&[first]);
        for second in 0..=255 {
            round_trip(&[first, second]);
        }
    }
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
    assert_eq!(encode_first(b"ok"), "0x6f6b");
    assert_eq!(encode_first(b"err"), "0x657272");
    assert_eq!(encode_first(b"okay"), "okay");
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
    for token in ["#", "#x", "#-1", "#1x", "#99999999999999999999"] {
        assert!(matches!(decode_value(token.as_bytes(), b"k"), Err(TokenError::Malformed(_))));
    }
}

#[test]
fn a_made_up_value_over_the_limit_is_refused_before_it_is_made() {
    let error = decode_value(b"#9999999999999", b"k").unwrap_err();
    assert_eq!(error, TokenError::TooLarge { len: 9_999_999_999_999 });
}

#[test]
fn made_up_values_follow_from_length_and_key() {
    let value = decode_value(b"#1000", b"key").unwrap();
    assert_eq!(value.len(), 1000);
    assert_eq!(value, decode_value(b"#1000", b"key").unwrap());
    assert_ne!(value, decode_value(b"#1000", b"kez").unwrap());
    assert_ne!(value[..999], decode_value(b"#999", b"key").unwrap());
    assert_eq!(decode_value(b"#0", b"key").unwrap(), b"");
    // The stream is part of the protocol: other programs compute it too.
    assert_eq!(pseudo_random(3, b""), pseudo_random_reference(3, b""));
    assert_eq!(pseudo_random(77, b"a"), pseudo_random_reference(77, b"a"));
}

/// The definition in the documentation, written down a second time.
fn pseudo_random_reference(len: u64, key: &[u8]) -> Vec<u8> {
    let mut state: u128 = 14_695_981_039_346_656_037;
    for &byte in key {
        state = ((state ^ u128::from(byte)) * 1_099_511_628_211) % (1 << 64);
    }
    let mut state = (state + u128::from(len)) % (1 << 64);
    let mut bytes = Vec::new();
    for index in 0..len {
        if index % 8 == 0 {
            state = (state + 0x9e37_79b9_7f4a_7c15) % (1 << 64);
        }
        let mixed = ((state ^ (state >> 30)) * 0xbf58_476d_1ce4_e5b9) % (1 << 64);
        let mixed = ((mixed ^ (mixed >> 27)) * 0x94d0_49bb_1331_11eb) % (1 << 64);
        let mixed = mixed ^ (mixed >> 31);
        bytes.push((mixed >> (8 * (index % 8))) as u8);
    }
    bytes
}

#[test]
fn a_lone_dash_is_no_bound() {
    assert_eq!(decode_bound(b"-").unwrap(), None);
    assert_eq!(decode_bound(b"0x2d").unwrap(), Some(b"-".to_vec()));
    assert_eq!(decode_bound(b"a").unwrap(), Some(b"a".to_vec()));
}
