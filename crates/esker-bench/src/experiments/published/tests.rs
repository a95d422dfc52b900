//! The list of experiments.

use super::*;
use crate::Error;
use crate::harness::settings::Settings;
use std::collections::HashSet;

#[test]
fn names_of_experiments_and_steps_are_unique_and_settings_are_in_order() {
    let names: HashSet<&str> = ALL.iter().map(|experiment| experiment.name).collect();
    assert_eq!(names.len(), ALL.len());
    for experiment in ALL {
        let settings =
            experiment.settings(Settings { num: experiment.scale, ..Settings::default() });
        settings.check().unwrap();
        let steps = experiment.steps(&settings);
        let names: HashSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names.len(), steps.len(), "{}", experiment.name);
        for figure in experiment.published(&settings) {
            assert!(names.contains(&*figure.workload), "{}: {figure:?}", experiment.name);
            assert!(figure.ops_per_second > 0.0);
        }
        assert!(!experiment.differs.is_empty() && !experiment.source.is_empty());
    }
}

#[test]
fn an_unknown_experiment_is_answered_with_those_there_are() {
    let error = find("leveldb").unwrap_err();
    assert!(matches!(error, Error::Usage(_)));
    assert!(error.to_string().contains("choose from leveldb-vs-rocksdb"), "{error}");
}

#[test]
fn the_nearest_scale_is_nearest_by_ratio() {
    let scales = [1_000_000, 10_000_000, 100_000_000];
    let cases = [(1, 1_000_000), (3_000_000, 1_000_000), (4_000_000, 10_000_000)];
    for (wanted, nearest) in cases {
        assert_eq!(figure::nearest(&scales, wanted), nearest);
    }
    assert_eq!(figure::nearest(&scales, u64::MAX), 100_000_000);
}
