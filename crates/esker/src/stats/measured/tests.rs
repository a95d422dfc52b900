use super::{Measured, Remeasured, STEPS_PER_LOOK};
use crate::manifest::{Partition, Tree};
use crate::stats::shapes::tree_shapes;
use std::sync::Arc;

/// The steps of so many looks at a database that takes `each` steps to measure.
fn steps(looks: u64, each: u64) -> u64 {
    let (mut remeasured, mut steps) = (Remeasured::default(), 0);
    for _ in 0..looks {
        let seen = remeasured.look(|| {
            steps += each;
            Measured { data_file_bytes: 7, steps: each, ..Measured::default() }
        });
        assert_eq!(seen.data_file_bytes, 7);
    }
    steps
}

#[test]
fn a_small_database_is_measured_at_each_look() {
    assert_eq!(steps(100, 10), 1000);
    assert_eq!(steps(100, STEPS_PER_LOOK - 1), 100 * (STEPS_PER_LOOK - 1));
}

#[test]
fn a_large_database_costs_no_more_per_look() {
    for files in [STEPS_PER_LOOK, 5_000, 77_777, 1_000_000] {
        let looks = 20_000;
        let spent = steps(looks, files);
        assert!(spent <= STEPS_PER_LOOK * looks + files, "{files} files: {spent} steps");
    }
}

fn tree(partitions: u32) -> Tree {
    let bound = |n: u32| (n > 0 && n < partitions).then(|| n.to_be_bytes()[..].into());
    let partition = |n| Partition { lower: bound(n), upper: bound(n + 1), ..Partition::default() };
    Tree::new((0..partitions).map(partition).map(Arc::new).collect())
}

#[test]
fn trees_of_many_partitions_cost_no_more_per_look() {
    for (trees, partitions) in [(1, 20_000), (200, 100), (256, 100)] {
        let trees: Vec<_> = (0..trees).map(|_| tree(partitions)).collect();
        let (mut remeasured, mut steps, mut each, mut walked) = (Remeasured::default(), 0, 0, 0);
        let looks = 200;
        for _ in 0..looks {
            let seen = remeasured.look(|| {
                let named = trees.iter().map(|tree| ("name", Some(tree), 0));
                let (trees, taken) = tree_shapes(named);
                (steps, each) = (steps + taken, taken);
                walked += trees.iter().map(|tree| tree.partitions).sum::<u64>();
                Measured { trees, steps: taken, ..Measured::default() }
            });
            // A look that gathers nothing shows the trees of an earlier one.
            assert_eq!(seen.trees.len(), trees.len());
            assert_eq!(seen.trees[0].partitions, u64::from(partitions));
        }
        let all = trees.len() as u64 * u64::from(partitions);
        assert!(each >= all / 10, "{each} steps for {all} partitions");
        assert!(steps <= STEPS_PER_LOOK * looks + each, "{all} partitions: {steps} steps");
        // What is shown is at most so many looks old.
        let times = walked / all;
        assert!(times >= looks / (each / STEPS_PER_LOOK + 1), "{all}: gathered {times} times");
    }
}
