use super::{Measured, Remeasured, STEPS_PER_LOOK};

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
