use super::*;
use std::collections::HashSet;

#[test]
fn decimal_keys_look_like_leveldbs() {
    let format = KeyFormat::new(KeyStyle::Decimal, 16, 1 << 30).unwrap();
    let mut key = format.buffer();
    format.write(1_234_567, &mut key);
    assert_eq!(key, b"0000000001234567");
    let format = KeyFormat::new(KeyStyle::Decimal, 20, 1 << 30).unwrap();
    let mut key = format.buffer();
    format.write(7, &mut key);
    assert_eq!(key, b"00000000000000070000");
    let format = KeyFormat::new(KeyStyle::Decimal, 5, 100_000).unwrap();
    let mut key = format.buffer();
    format.write(90_817, &mut key);
    assert_eq!(key, b"90817");
}

#[test]
fn sizes_that_cannot_hold_the_numbers_are_refused() {
    assert!(KeyFormat::new(KeyStyle::Decimal, 4, 10_000).is_ok());
    assert!(KeyFormat::new(KeyStyle::Decimal, 4, 10_001).is_err());
    assert!(KeyFormat::new(KeyStyle::Binary, 2, 65_536).is_ok());
    assert!(KeyFormat::new(KeyStyle::Binary, 2, 65_537).is_err());
    assert!(KeyFormat::new(KeyStyle::Binary, 0, 1).is_err());
    assert!(KeyFormat::new(KeyStyle::Decimal, 70_000, 1).is_err());
}

#[test]
fn order_of_keys_is_order_of_numbers() {
    for (style, size) in [
        (KeyStyle::Decimal, 7),
        (KeyStyle::Decimal, 16),
        (KeyStyle::Decimal, 33),
        (KeyStyle::Binary, 4),
        (KeyStyle::Binary, 16),
    ] {
        let format = KeyFormat::new(style, size, 1_000_000).unwrap();
        let mut before = format.buffer();
        let mut after = format.buffer();
        for number in (0..999_999).step_by(997) {
            format.write(number, &mut before);
            format.write(number + 1, &mut after);
            assert!(before < after, "{style:?} {size}: {number}");
        }
    }
}

#[test]
fn missing_keys_are_absent_and_sort_inside() {
    for (style, size) in [
        (KeyStyle::Decimal, 16),
        (KeyStyle::Decimal, 4),
        (KeyStyle::Decimal, 24),
        (KeyStyle::Binary, 16),
    ] {
        let format = KeyFormat::new(style, size, 5_000).unwrap();
        assert!(format.has_missing());
        let mut key = format.buffer();
        let present: std::collections::BTreeSet<Vec<u8>> = (0..5_000)
            .map(|n| {
                format.write(n, &mut key);
                key.clone()
            })
            .collect();
        for number in 0..4_990 {
            format.missing(number, &mut key);
            assert_eq!(key.len(), size);
            assert!(!present.contains(&key));
            assert!(present.range(key.clone()..).next().is_some(), "{number} sorts behind all");
            format.write(number, &mut key);
            assert!(present.contains(&key), "a missing key leaves the buffer reusable");
        }
    }
    assert!(!KeyFormat::new(KeyStyle::Binary, 8, 5_000).unwrap().has_missing());
}

#[test]
fn permutations_are_one_to_one_and_depend_on_the_seed() {
    for num in [1, 2, 3, 4, 5, 63, 64, 65, 1_000, 4_097] {
        let permutation = Permutation::new(num, 42);
        let image: HashSet<u64> = (0..num).map(|i| permutation.at(i)).collect();
        assert_eq!(image.len() as u64, num);
        assert!(image.iter().all(|&value| value < num));
        assert!((0..num).all(|i| permutation.back(permutation.at(i)) == i));
    }
    let (a, b) = (Permutation::new(1_000, 1), Permutation::new(1_000, 2));
    let same = (0..1_000).filter(|&i| a.at(i) == b.at(i)).count();
    assert!(same < 50, "{same} of 1000 places agree between two seeds");
    let in_order = (1..1_000).filter(|&i| a.at(i) == a.at(i - 1) + 1).count();
    assert!(in_order < 50, "{in_order} neighbours stayed neighbours");
}
