use super::*;
use crate::compaction::partitioning::tests::{run, settings};
use crate::manifest::Row;
use crate::options::SmallTiers;
use crate::run::{Role, Run};

fn small(tightens: bool) -> Settings {
    let tiers = SmallTiers { count: 2, fan_out: 2, runs: 4, direct: 1, tightens };
    Settings { small_tiers: Some(tiers), ..settings() }
}

/// A run of so many segments, all alike, between two keys.
fn data(role: Role, (low, high): (&str, &str), segments: usize) -> Arc<Run> {
    run(role, &vec![(low, high); segments])
}

/// A part with so many segments in its base, and a run of so many above it if there are any.
fn part((low, high): (&str, &str), base: usize, pending: usize) -> Arc<Partition> {
    let bound = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
    let keys = (if low.is_empty() { "a" } else { low }, if high.is_empty() { "z" } else { low });
    let delta = (pending > 0).then(|| data(Role::Delta, keys, pending));
    Arc::new(Partition {
        lower: bound(low),
        upper: bound(high),
        base: data(Role::Base, keys, base),
        deltas: delta.into_iter().collect(),
    })
}

fn found(tree: &Tree, tightens: bool) -> (usize, Vec<String>) {
    let (tier, parts) = loose(&Bytewise, tree, (&small(tightens), false), |_| false);
    let lower =
        |part: &Arc<Partition>| String::from_utf8(part.lower.clone().unwrap_or_default()).unwrap();
    (tier, parts.iter().map(lower).collect())
}

#[test]
fn a_partition_is_loose_from_an_eighth_on() {
    let row = Row::new(vec![
        part(("", "d"), 80, 10),
        part(("d", "g"), 80, 9),
        part(("g", "k"), 80, 0),
        part(("k", "p"), 0, 1),
        part(("p", ""), 0, 0),
    ]);
    let tree = Tree::of_rows(vec![row]);
    assert_eq!(found(&tree, true), (0, vec![String::new(), "k".to_owned()]));
    let all = loose(&Bytewise, &tree, (&small(true), true), |_| false);
    assert_eq!((all.0, all.1.len()), (0, 3), "all in which anything waits");
    assert_eq!(found(&tree, false), (0, Vec::new()));
    assert_eq!(
        loose(&Bytewise, &tree, (&small(true), true), |_| true).1.len(),
        0,
        "all are shared"
    );
}

#[test]
fn the_highest_tier_is_pushed_first_where_a_part_of_what_is_below_waits() {
    let partitions = || {
        vec![
            part(("", "d"), 80, 20),
            part(("d", "g"), 80, 0),
            part(("g", "k"), 80, 0),
            part(("k", ""), 80, 0),
        ]
    };
    // The top span of the first two holds a run, and with the deltas below it an eighth waits.
    let tier_one = || vec![part(("", "g"), 0, 0), part(("g", ""), 0, 19)];
    let tree = |top: Vec<Arc<Partition>>| {
        let rows = vec![partitions(), tier_one(), top];
        Tree::of_rows(rows.into_iter().map(Row::new).collect())
    };
    assert_eq!(found(&tree(vec![part(("", "g"), 0, 1), part(("g", ""), 0, 0)]), true).0, 2);
    // Nineteen of 160 are less than an eighth, twenty are enough.
    let low = tree(vec![part(("", "g"), 0, 0), part(("g", ""), 0, 0)]);
    assert_eq!(found(&low, true), (0, vec![String::new()]));
    let high = tree(vec![part(("", "g"), 0, 0), part(("g", ""), 0, 1)]);
    assert_eq!(found(&high, true), (2, vec!["g".to_owned()]));
}

#[test]
fn calm_begins_after_a_pause_and_ends_with_a_write() {
    let start = Instant::now();
    let at = |share: u32| start + policy::CALM_AFTER * share / 4;
    let mut calm = Calm::new(7, start);
    let look = |calm: &mut Calm, visible, now| calm.look(visible, now).0;
    assert_eq!(look(&mut calm, 7, at(9)), Calmness::Tight, "nothing was written since the open");
    assert_eq!(look(&mut calm, 8, at(10)), Calmness::After(policy::CALM_AFTER));
    assert!(calm.lasts(8) && !calm.lasts(9));
    assert_eq!(look(&mut calm, 8, at(13)), Calmness::After(policy::CALM_AFTER / 4));
    assert_eq!(look(&mut calm, 8, at(14)), Calmness::Calm);
    calm.tightened(7);
    assert_eq!(look(&mut calm, 8, at(14)), Calmness::Calm, "somebody wrote since the look");
    calm.tightened(8);
    assert_eq!(look(&mut calm, 8, at(15)), Calmness::Tight);
    assert_eq!(look(&mut calm, 9, at(16)), Calmness::After(policy::CALM_AFTER));
    assert_eq!(look(&mut calm, 10, at(20)), Calmness::After(policy::CALM_AFTER), "writes go on");
}

#[test]
fn a_database_is_quiet_after_a_long_pause() {
    let start = Instant::now();
    let quiet = start + policy::QUIET_AFTER;
    let mut calm = Calm::new(7, start);
    assert_eq!(calm.look(7, quiet).1, Quiet::Never, "nothing was written since the open");
    assert_eq!(calm.look(8, quiet).1, Quiet::After(policy::QUIET_AFTER));
    let later = quiet + policy::QUIET_AFTER;
    assert_eq!(calm.look(8, later - policy::CALM_AFTER).1, Quiet::After(policy::CALM_AFTER));
    assert_eq!(calm.look(8, later).1, Quiet::Now);
    calm.tightened(8);
    assert_eq!(calm.look(8, later), (Calmness::Tight, Quiet::Now));
    assert_eq!(calm.look(9, later).1, Quiet::After(policy::QUIET_AFTER), "somebody wrote");
}

#[test]
fn all_is_taken_once_for_each_eighth_that_is_written() {
    let start = Instant::now();
    let mut calm = Calm::new(7, start);
    calm.look(8, start);
    assert!(!calm.grants_all(9, 80) && calm.grants_all(10, 80));
    assert!(calm.grants_all(10, 8000), "what was begun goes on");
    calm.look(9, start);
    assert!(!calm.grants_all(19, 80) && calm.grants_all(20, 80));
    calm.look(10, start);
    assert!(!calm.grants_all(20, 80), "nothing was written since");
}
