use super::Chance;
use std::collections::BTreeMap;

/// How many of so many samples each number is in, and each pair of numbers.
fn drawn(count: u64, total: u64, samples: u64) -> (Vec<u64>, BTreeMap<(u64, u64), u64>) {
    let mut chance = Chance(total * 1000 + count);
    let (mut numbers, mut pairs) = (vec![0; total as usize], BTreeMap::new());
    for _ in 0..samples {
        let chosen = chance.choose(count, total);
        assert_eq!(chosen.len() as u64, count.min(total));
        for (n, number) in chosen.iter().enumerate() {
            numbers[*number as usize] += 1;
            for other in chosen.iter().skip(n + 1) {
                *pairs.entry((*number, *other)).or_insert(0) += 1;
            }
        }
    }
    (numbers, pairs)
}

/// Whether a count differs from what is expected of so many tries by at most six standard deviations.
fn is_near(found: u64, expected: f64) -> bool {
    (found as f64 - expected).abs() <= 6.0 * expected.sqrt()
}

#[test]
fn every_number_and_every_pair_is_as_likely_as_any_other() {
    const SAMPLES: u64 = 40_000;
    for (count, total) in [(1, 7), (2, 5), (3, 10), (9, 10), (20, 64)] {
        let (numbers, pairs) = drawn(count, total, SAMPLES);
        let each = (SAMPLES * count) as f64 / total as f64;
        assert!(
            numbers.iter().all(|found| is_near(*found, each)),
            "{count} of {total}: {numbers:?}"
        );
        let all = (total * (total - 1) / 2) as f64;
        let of_pairs = (SAMPLES * count * (count - 1) / 2) as f64 / all;
        assert!(count == 1 || pairs.len() as f64 == all);
        assert!(
            pairs.values().all(|found| is_near(*found, of_pairs)),
            "{count} of {total}: {pairs:?}"
        );
    }
}

#[test]
fn a_sample_of_more_than_there_are_has_all() {
    let mut chance = Chance(3);
    assert!(chance.choose(0, 10).is_empty());
    assert!(chance.choose(5, 0).is_empty());
    assert!(chance.choose(10, 10).into_iter().eq(0..10));
    assert!(chance.choose(u64::MAX, 10).into_iter().eq(0..10));
    let few = chance.choose(3, u64::MAX);
    assert_eq!(few.len(), 3);
    assert!(few.iter().any(|number| *number > u64::MAX / 100));
}

#[test]
fn numbers_below_a_bound_reach_its_ends() {
    let mut chance = Chance(11);
    for bound in [1, 2, 3, 10] {
        let mut found = vec![false; bound as usize];
        (0..200).for_each(|_| found[chance.below(bound) as usize] = true);
        assert!(found.into_iter().all(|found| found));
    }
}
