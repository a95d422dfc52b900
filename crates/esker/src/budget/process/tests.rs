use super::{Member, part};

#[test]
fn parts_are_in_proportion_to_the_budgets() {
    assert_eq!(part(1_000, 16, 64), 250);
    assert_eq!(part(1_000, 64, 64), 1_000);
    assert_eq!(part(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
    assert_eq!(part(1_000, 0, 0), 0);
    // A member that has left meanwhile is not in the sum any more.
    assert_eq!(part(1_000, 64, 16), 1_000);
}

#[test]
fn members_share_until_they_leave() {
    // Other tests of this process open databases, whose budgets are small beside these.
    let (large, mib) = (1 << 60, 1 << 20);
    let first = Member::new(large);
    assert!(first.part_of(mib) > mib / 10 * 9);
    let second = Member::new(3 * large);
    assert!(first.part_of(mib) <= mib / 4);
    assert!(second.part_of(mib) > mib / 3 * 2);
    drop(second);
    assert!(first.part_of(mib) > mib / 10 * 9);
}
