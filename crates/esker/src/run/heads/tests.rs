use super::*;

fn heads(numbers: &[u64]) -> Heads {
    Heads::new(None, numbers.len(), numbers.iter().copied())
}

fn check(numbers: &[u64], asked: impl IntoIterator<Item = u64>) {
    let heads = heads(numbers);
    assert_eq!(&*heads, numbers);
    for number in asked {
        let upto = numbers.partition_point(|other| *other <= number);
        assert_eq!(heads.upto(number), upto, "{number} of {}", numbers.len());
    }
}

#[test]
fn any_count_of_numbers_is_searched() {
    for count in (0..700).chain([4095, 4096, 4097, 40_000]) {
        let numbers: Vec<u64> = (0..count).map(|n| 10 * n + 5).collect();
        let asked = (0..=count + 1).flat_map(|n| [10 * n + 4, 10 * n + 5]);
        check(&numbers, asked.chain([0, u64::MAX]));
    }
}

#[test]
fn numbers_may_be_equal_and_as_great_as_can_be() {
    for equal in [1, 7, 8, 9, 64, 65, 100] {
        let numbers: Vec<u64> = (0..600).map(|n| n / equal * 3).collect();
        check(&numbers, 0..2_000);
        let greatest: Vec<u64> = (0..equal).map(|_| u64::MAX).collect();
        check(&greatest, [0, u64::MAX - 1, u64::MAX]);
    }
}

#[test]
fn samples_take_a_sixteenth_more() {
    for count in [100_usize, 400, 10_000] {
        let heads = heads(&(0..count as u64).collect::<Vec<_>>());
        let numbers = heads.lists.len();
        assert!(16 * numbers <= 17 * count + 16, "{numbers} for {count}");
    }
}
