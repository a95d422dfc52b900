use super::*;
use crate::compaction::partitioning::tests::{partition, run};
use crate::manifest::{Partition, Row};
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
    let at = |part: &PartitionKey, scores: &Scores| fill(&Bytewise, &tree, part, (scores, 6));
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
