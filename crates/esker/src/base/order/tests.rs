use super::*;
use crate::error::ErrorKind;

#[test]
fn heads_never_contradict_the_order() {
    let pieces: [&[u8]; 8] =
        [b"", b"\0", b"a", b"a\0", b"aaaaaaa", b"aaaaaaaa", b"aaaaaaaab", b"\xff\xff\xff\xff"];
    let keys: Vec<Vec<u8>> =
        pieces.iter().flat_map(|a| pieces.iter().map(move |b| [*a, *b].concat())).collect();
    for a in &keys {
        for b in &keys {
            if head_of(a) < head_of(b) {
                assert!(a < b, "{a:?} {b:?}");
            }
            if long_head_of(a) < long_head_of(b) {
                assert!(a < b, "{a:?} {b:?}");
            }
            if a <= b {
                assert!(head_of(a) <= head_of(b), "{a:?} {b:?}");
                assert!(long_head_of(a) <= long_head_of(b), "{a:?} {b:?}");
            }
        }
    }
}

#[test]
fn keys_are_compared_as_their_bytes_are() {
    // Keys that differ at each place, or end there, before and behind the words that are compared without a call.
    let long: Vec<u8> = (0..44u8).map(|byte| byte.wrapping_mul(7)).collect();
    let cut = (0..=long.len()).map(|len| long[..len].to_vec());
    let changed = |by: u8| {
        let long = &long;
        (0..long.len()).map(move |at| {
            let mut key = long.clone();
            key[at] = key[at].wrapping_add(by);
            key
        })
    };
    let keys: Vec<Vec<u8>> = cut.chain(changed(1)).chain(changed(0x80)).collect();
    for a in &keys {
        for b in &keys {
            assert_eq!(Bytewise.compare(a, b), a.cmp(b), "{a:?} {b:?}");
            assert_eq!(same_bytes(a, b), a == b, "{a:?} {b:?}");
        }
    }
}

#[test]
fn a_head_is_padded_with_zeros() {
    for len in 0..20 {
        let key: Vec<u8> = (0..len).map(|byte| 0xE0 + byte).collect();
        let mut padded = [0; 16];
        let kept = key.len().min(16);
        padded[..kept].copy_from_slice(&key[..kept]);
        let long = u128::from_be_bytes(padded);
        assert_eq!(long_head_of(&key), long, "{len} bytes");
        assert_eq!(head_of(&key), (long >> 64) as u64, "{len} bytes");
    }
}

#[test]
fn custom_orders_have_no_heads() {
    struct Bytes;
    impl Comparator for Bytes {
        fn name(&self) -> &str {
            "bytes"
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            a.cmp(b)
        }
    }
    let order = CustomOrder::new(Arc::new(Bytes));
    assert_eq!((order.head(b"key"), Bytewise.head(b"")), (0, 0));
    assert_eq!(Bytewise.head(b"k"), u64::from(b'k') << 56);
    assert_eq!((order.name(), format!("{order:?}")), ("bytes", "CustomOrder(\"bytes\")".into()));
    assert!(order.check().is_ok() && Bytewise.check().is_ok());
}

#[test]
fn a_panic_is_kept_in_and_remembered_by_every_clone() {
    struct Faulty;
    impl Comparator for Faulty {
        fn name(&self) -> &str {
            "faulty"
        }
        fn compare(&self, _: &[u8], _: &[u8]) -> Ordering {
            panic!("the test asked for this panic")
        }
    }
    let order = CustomOrder::new(Arc::new(Faulty));
    let clone = order.clone();
    assert_eq!(order.compare(b"a", b"b"), Ordering::Less, "byte order stands in");
    assert!(clone.panicked());
    let error = clone.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCodePanicked);
    assert!(error.to_string().contains("faulty"), "{error}");
}
