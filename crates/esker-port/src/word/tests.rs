use super::*;
use crate::testing::short_sequences;

const ENCODINGS: [Encoding; 3] = [Encoding::Text, Encoding::Hex, Encoding::Base64];

fn word_of(bytes: &[u8]) -> String {
    Encoding::Text.word(bytes)
}

/// Written in every way, alone and in a line, bytes are read as what they were.
fn round_trip(bytes: &[u8]) {
    for encoding in ENCODINGS {
        let word = encoding.word(bytes);
        assert!(!word.is_empty() && !word.contains('\n'), "{word:?}");
        assert_eq!(decode(word.as_bytes()).unwrap(), bytes, "{word}");
        assert_eq!(decode_value(word.as_bytes(), b"k").unwrap(), bytes, "{word}");
        assert_eq!(decode_bound(word.as_bytes()).unwrap().unwrap(), bytes, "{word}");
        let first = encoding.first_word(bytes);
        assert!(!matches!(first.split(' ').next(), Some("ok" | "err")), "{first}");
        let line = format!("{first} {word} @{word}");
        let words = split(line.as_bytes()).unwrap();
        assert_eq!(words.len(), 3, "{line}");
        assert_eq!(decode(words[0]).unwrap(), bytes, "{line}");
        assert_eq!(decode(words[1]).unwrap(), bytes, "{line}");
        assert_eq!(words[2][0], b'@', "{line}");
        assert_eq!(decode(&words[2][1..]).unwrap(), bytes, "{line}");
    }
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
        // Spaces, quotes and backslashes among them.
        let printable: Vec<u8> = bytes.iter().map(|byte| 0x20 + byte % 95).collect();
        round_trip(&printable);
        let signs: Vec<u8> =
            bytes.iter().map(|byte| br#" "\0x#@-=abcd"#[usize::from(byte % 13)]).collect();
        round_trip(&signs);
        let letters: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        round_trip(letters.as_bytes());
    }
}

#[test]
fn text_that_nothing_is_mistaken_for_stays_plain() {
    for plain in [
        "a",
        "user:1",
        "x#y",
        "a@b",
        "--",
        "-1",
        "00x1",
        "0",
        "0X1",
        "~",
        "!",
        "ok",
        "it's",
        r"a\b",
        "süß",
        "日本",
        "привет",
        "ttl=5s",
    ] {
        assert_eq!(word_of(plain.as_bytes()), plain);
    }
}

#[test]
fn other_text_is_quoted() {
    for (text, word) in [
        ("", r#""""#),
        ("-", r#""-""#),
        ("0x", r#""0x""#),
        ("0xff", r#""0xff""#),
        ("0xb64:AA==", r#""0xb64:AA==""#),
        ("#1", r##""#1""##),
        ("@s", r#""@s""#),
        ("a b", r#""a b""#),
        (" ", r#"" ""#),
        ("größer als", r#""größer als""#),
        (r#"say "hi""#, r#""say \"hi\"""#),
        (r"a \ b", r#""a \\ b""#),
    ] {
        assert_eq!(word_of(text.as_bytes()), word);
    }
    assert_eq!(Encoding::Text.first_word(b"ok"), r#""ok""#);
    assert_eq!(Encoding::Text.first_word(b"err"), r#""err""#);
    assert_eq!(Encoding::Text.first_word(b"okay"), "okay");
}

#[test]
fn what_is_not_printable_text_is_hexadecimal() {
    for (bytes, word) in [
        (&b"a\n"[..], "0x610a"),
        (b"\x7f", "0x7f"),
        (b"\xff\x00", "0xff00"),
        // Cut off in the middle of a character.
        (b"\xc3", "0xc3"),
        // A line separator, a mark that turns the direction of text, a space that looks like one.
        ("\u{2028}".as_bytes(), "0xe280a8"),
        ("\u{202e}".as_bytes(), "0xe280ae"),
        ("a\u{a0}b".as_bytes(), "0x61c2a062"),
        // An accent without a letter would join the quote before it.
        ("\u{301}".as_bytes(), "0xcc81"),
    ] {
        assert_eq!(word_of(bytes), word);
    }
    assert_eq!(word_of("e\u{301}".as_bytes()), "e\u{301}");
}

#[test]
fn every_encoding_can_be_asked_for() {
    assert_eq!(Encoding::Hex.word(b"a b"), "0x612062");
    assert_eq!(Encoding::Hex.first_word(b"ok"), "0x6f6b");
    for (bytes, word) in [
        (&b""[..], "0xb64:"),
        (b"f", "0xb64:Zg=="),
        (b"fo", "0xb64:Zm8="),
        (b"foo", "0xb64:Zm9v"),
        (b"foob", "0xb64:Zm9vYg=="),
        (b"\xfb\xff", "0xb64:+/8="),
    ] {
        assert_eq!(Encoding::Base64.word(bytes), word);
    }
}

#[test]
fn what_was_always_a_word_is_one() {
    for (word, bytes) in [
        (&b"plain"[..], &b"plain"[..]),
        (b"a\"b", b"a\"b"),
        (b"a\tb", b"a\tb"),
        (b"\xff\x00", b"\xff\x00"),
        (b"#20", b"#20"),
        (b"@20", b"@20"),
        (b"-", b"-"),
        (b"0x", b""),
        (b"0xAbCd", b"\xab\xcd"),
    ] {
        assert_eq!(decode(word).unwrap(), bytes);
    }
    assert_eq!(split(b"  get  a\tb \"\" ").unwrap(), [&b"get"[..], b"a\tb", b"\"\""]);
    assert_eq!(split(b"  ").unwrap(), [&b""[..]; 0]);
    assert_eq!(decode(br#""\"\\\n\r\t'""#).unwrap(), b"\"\\\n\r\t'");
}

#[test]
fn malformed_words_are_refused() {
    for word in ["0x1", "0xg0", "0x+1", "0x 1"] {
        let error = decode(word.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("hexadecimal"), "{error}");
    }
    for word in ["0xb64:A", "0xb64:AA", "0xb64:AAA", "0xb64:A===", "0xb64:AB==", "0xb64:AA=A"] {
        let error = decode(word.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("Base64"), "{word}: {error}");
    }
    for word in ["\"", "\"a", r#""\""#, r#""\x""#, r#""a"b""#, r#""a"b"#] {
        let error = decode(word.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("double quote"), "{word}: {error}");
    }
    for line in ["\"a b", "\"a\"b c", r#"get "a\" b"#, "get k @\"s"] {
        let error = split(line.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("double quote"), "{line}: {error}");
    }
    for word in ["#", "#x", "#-1", "#1x", "#99999999999999999999"] {
        assert!(matches!(decode_value(word.as_bytes(), b"k"), Err(TokenError::Malformed(_))));
    }
}

#[test]
fn a_lone_dash_is_no_bound() {
    assert_eq!(decode_bound(b"-").unwrap(), None);
    assert_eq!(decode_bound(b"0x2d").unwrap(), Some(b"-".to_vec()));
    assert_eq!(decode_bound(b"\"-\"").unwrap(), Some(b"-".to_vec()));
    assert_eq!(decode_bound(b"a").unwrap(), Some(b"a".to_vec()));
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
