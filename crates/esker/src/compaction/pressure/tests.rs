use super::*;
use crate::compaction::partitioning::tests::{partition, run};
use crate::manifest::Row;
use crate::run::Role;

/// A row of parts with these lower bounds and numbers of runs.
fn row(parts: &[(&str, usize)]) -> Row {
    let bound =
        |at: usize| parts.get(at).map(|(lower, _)| *lower).filter(|lower| !lower.is_empty());
    let one = |at: usize| -> Arc<Partition> {
        let empty = partition(bound(at), bound(at + 1), &[]);
        let (lower, upper) = (empty.lower.clone(), empty.upper.clone());
        let deltas = vec![run(Role::Delta, &[]); parts[at].1];
        Arc::new(Partition { lower, upper, base: empty.base.clone(), deltas })
    };
    Row::new((0..parts.len()).map(one).collect())
}

fn key(tier: usize, lower: &str) -> PartitionKey {
    let lower = (!lower.is_empty()).then(|| lower.as_bytes().to_vec());
    PartitionKey { keyspace: 0, tier, lower }
}

#[test]
fn the_runs_of_a_path_add_up_and_those_of_its_neighbours_do_not() {
    let tree = Tree::of_rows(vec![
        row(&[("", 3), ("d", 9), ("m", 1), ("s", 2)]),
        row(&[("", 6), ("m", 12)]),
        row(&[("", 4)]),
    ]);
    let whole = HashMap::new();
    let at = |part: &PartitionKey, scores: &Scores| {
        fill(&Bytewise, &tree, part, Known { scores, damaged: &whole, runs_max: 6 })
    };
    // 9 + 6 + 4 of 2 * 6 + 10 runs, and nothing is late; 2 + 12 + 4.
    let deep = key(0, "d");
    let none = Scores::new();
    assert_eq!(at(&deep, &none), policy::fill(19, 0.0, 2, 6));
    assert_eq!(at(&key(0, "s"), &none), policy::fill(18, 0.0, 2, 6));
    // The second span should hold 6 runs, the partition that is late lies under the first.
    let scores = Scores::from([(key(1, "m"), 2.0), (deep.clone(), 9.0 / 8.0)]);
    let late = policy::late(9, 9.0 / 8.0);
    assert_eq!(at(&deep, &scores), policy::fill(19, late, 2, 6));
    assert_eq!(at(&key(1, "m"), &scores), policy::fill(17, policy::late(12, 2.0), 2, 6));
    assert!(at(&key(1, "m"), &scores) > 1.0 && at(&deep, &scores) < 1.0);
}

#[test]
fn runs_that_wait_over_damage_slow_nobody() {
    let tree = Tree::of_rows(vec![
        row(&[("", 3), ("d", 9), ("m", 1)]),
        row(&[("", 6), ("m", 90)]),
        row(&[("", 4)]),
    ]);
    let (part, scores) = (key(0, "m"), Scores::from([(key(0, "m"), 1.2), (key(1, "m"), 9.0)]));
    let at = |damaged: &[PartitionKey]| {
        let error = || Error::corruption("f".as_ref(), 0, "block", "damaged");
        let damaged = damaged.iter().map(|key| (key.clone(), error())).collect();
        fill(&Bytewise, &tree, &part, Known { scores: &scores, damaged: &damaged, runs_max: 6 })
    };
    // The span over the part that is due has far more runs than any may have.
    assert!(at(&[]) > 1.0);
    // If it is damaged, the part's own run and those of the other tier are what counts, and the part
    // beside it, which has nothing to do with this path, changes nothing.
    let rest = policy::fill(1 + 4, policy::late(1, 1.2), 2, 6);
    assert_eq!(at(&[key(1, "m")]), rest);
    assert_eq!(at(&[key(1, "m"), key(1, "")]), rest);
    assert!(rest < 1.0);
}

#[test]
fn the_deltas_of_a_damaged_partition_are_known_to_stay() {
    let empty = |lower, upper| partition(lower, upper, &[]);
    let full = empty(Some("m"), None).with_delta(run(Role::Delta, &[("n", "o")]));
    let bytes = full.delta_bytes();
    assert!(bytes > 0);
    let above = empty(None, None).with_delta(run(Role::Delta, &[("n", "o")]));
    let rows = [vec![empty(None, Some("m")), Arc::new(full)], vec![Arc::new(above)]];
    let tree = Tree::of_rows(rows.map(Row::new).into());
    let of = |part| left(damaged(&Bytewise, &tree, &part).into_iter());
    assert_eq!((of(key(0, "m")), of(key(0, "")), of(key(0, "q"))), (bytes, 0, 0));
    assert_eq!(of(key(1, "")), 0, "pending runs are no debt");
    // A branch has the same partition, and its bytes are summed once.
    let twice = [key(0, "m"), key(0, "m")];
    assert_eq!(left(twice.iter().filter_map(|part| damaged(&Bytewise, &tree, part))), bytes);
}
