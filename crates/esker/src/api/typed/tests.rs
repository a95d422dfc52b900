//! Tests of typed keyspaces: bytes have the order of what they stand for, and are read as what was written.

use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

fn whole<K: KeyCodec>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.write_key(&mut bytes);
    bytes
}

/// Checks two keys: their order in bytes, and that each is read as it was written.
fn check<K: KeyCodec + fmt::Debug>(a: &K, b: &K, order: impl Fn(&K, &K) -> Ordering) {
    assert_eq!(whole(a).cmp(&whole(b)), order(a, b), "{a:?} and {b:?}");
    for key in [a, b] {
        let read = K::read_key(&whole(key)).unwrap();
        assert_eq!(order(&read, key), Ordering::Equal, "{key:?} became {read:?}");
        let mut more = whole(key);
        more.push(0);
        assert!(K::read_key(&more).is_none_or(|read| order(&read, key).is_gt()), "{key:?}");
        // As a part, behind which something follows.
        let mut part = Vec::new();
        key.write(&mut part);
        part.extend_from_slice(b"rest");
        let mut left = &part[..];
        assert_eq!(order(&K::read(&mut left).unwrap(), key), Ordering::Equal, "{key:?}");
        assert_eq!(left, b"rest", "{key:?}");
    }
}

/// Strings with many zero bytes and bytes of the greatest value.
fn odd_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(
        prop_oneof![Just(0), Just(1), Just(0xFE), Just(0xFF), any::<u8>()],
        0..6,
    )
}

proptest! {
    #[test]
    fn numbers_keep_their_order(a: (u8, u16, u32), b: (u8, u16, u32), c: (u64, u128), d: (u64, u128)) {
        check(&a, &b, Ord::cmp);
        check(&c, &d, Ord::cmp);
    }

    #[test]
    fn signed_numbers_keep_their_order(a: (i8, i16, i32), b: (i8, i16, i32), c: (i64, i128), d: (i64, i128)) {
        check(&a, &b, Ord::cmp);
        check(&c, &d, Ord::cmp);
        check(&a.0, &b.0, Ord::cmp);
        check(&c.1, &d.1, Ord::cmp);
    }

    #[test]
    fn floating_point_numbers_have_the_total_order(a: u32, b: u32, c: u64, d: u64) {
        check(&f32::from_bits(a), &f32::from_bits(b), f32::total_cmp);
        check(&f64::from_bits(c), &f64::from_bits(d), f64::total_cmp);
    }

    #[test]
    fn strings_keep_their_order_alone_and_in_tuples(
        a in odd_bytes(), b in odd_bytes(), c in odd_bytes(), d in odd_bytes(), e: char, f: bool
    ) {
        check(&a, &b, Ord::cmp);
        check(&(a.clone(), c.clone()), &(b.clone(), d.clone()), Ord::cmp);
        check(&(a.clone(), c.clone()), &(a.clone(), d.clone()), Ord::cmp);
        check(&(a.clone(), 7_u8, c.clone()), &(b.clone(), 7, d.clone()), Ord::cmp);
        check(&((a.clone(), b.clone()), c.clone()), &((a, d.clone()), c.clone()), Ord::cmp);
        check(&(Some(b.clone()), e, f), &(Some(c.clone()), e, !f), Ord::cmp);
        check(&None, &Some(d), Ord::cmp);
        check(&[b.len() as u8, 3], &[c.len() as u8, 4], Ord::cmp);
    }

    #[test]
    fn text_keeps_its_order(a: String, b: String, c: String) {
        check(&a, &b, Ord::cmp);
        check(&(a.clone(), c.clone()), &(b, a), Ord::cmp);
    }

    #[test]
    fn foreign_bytes_are_refused_or_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
        type Parts = (String, Option<Vec<u8>>, i32, bool);
        for key in [Parts::read_key(&bytes).map(|key| whole(&key))].into_iter().flatten() {
            assert_eq!(key, bytes, "two forms of one key");
        }
        let _ = (f64::read_key(&bytes), char::read_key(&bytes), <(u8, String)>::read_key(&bytes));
    }
}

#[test]
fn floating_point_numbers_at_their_limits() {
    let ordered = [
        -f64::NAN,
        f64::NEG_INFINITY,
        f64::MIN,
        -1.0,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        f64::MIN_POSITIVE,
        1.0,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
    ];
    for pair in ordered.windows(2) {
        check(&pair[0], &pair[1], f64::total_cmp);
        assert!(whole(&pair[0]) < whole(&pair[1]), "{pair:?}");
    }
}

#[test]
fn entries_of_other_types_are_told_and_stay() {
    let db = crate::Db::in_memory().unwrap();
    let numbers = Typed::<u32, u64>::new(db.keyspace("numbers").unwrap());
    numbers.insert(1, 10).unwrap();
    numbers.keyspace().insert([0, 0, 0, 2], "short").unwrap();
    let told = numbers.update(2, |_| panic!("there is no number")).unwrap_err().to_string();
    assert!(told.contains("numbers") && told.contains("u64") && told.contains("short"), "{told}");
    assert_eq!(numbers.keyspace().get([0, 0, 0, 2]).unwrap().as_deref(), Some(&b"short"[..]));
    let entries: Vec<_> = numbers.iter().unwrap().collect();
    assert!(
        matches!(entries[..], [Ok((1, 10)), Err(Error::InvalidArgument { .. })]),
        "{entries:?}"
    );
    numbers.keyspace().insert("x", [0; 8]).unwrap();
    assert!(numbers.last().unwrap_err().to_string().contains("u32"));
}
