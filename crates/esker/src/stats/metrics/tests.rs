use super::*;
use crate::stats::encoding::distinct;
use std::collections::HashSet;

#[test]
fn every_field_of_stats_is_in_the_table() {
    // The table gave every field that it names a number above 0.
    let shown = format!("{:#?}", distinct());
    let empty =
        |line: &&str| line.ends_with(": 0,") || line.ends_with(": 0ns,") || line.ends_with(": [],");
    // The slowest operations are no numbers.
    let fields = shown.lines().filter(|line| line.trim() != "slowest: [],");
    let missing: Vec<&str> = fields.filter(empty).collect();
    assert!(missing.is_empty(), "these fields have no metric: {missing:#?}\nin {shown}");
}

#[test]
fn names_follow_the_rules_of_openmetrics() {
    let mut names = HashSet::new();
    for metric in METRICS {
        assert!(names.insert(metric.name), "{} stands twice", metric.name);
        let (kind, unit) = (metric.kind, metric.unit.as_str());
        let plain = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
        assert!(metric.name.starts_with("esker_") && metric.name.chars().all(plain), "{metric:?}");
        assert!(metric.name.ends_with(unit), "{metric:?}");
        let suffixes = ["_total", "_count", "_sum", "_bucket", "_info", "_created"];
        assert!(!suffixes.iter().any(|suffix| metric.name.ends_with(suffix)), "{metric:?}");
        assert!(metric.help().ends_with('.') && !metric.help().contains("  "), "{metric:?}");
        assert_eq!(kind == MetricKind::StateSet, !metric.states().is_empty(), "{metric:?}");
    }
}

#[test]
fn places_name_files_of_the_engine() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for metric in METRICS {
        assert!(source.join(metric.place).is_file(), "{metric:?}: {}", metric.place);
    }
}

#[test]
fn samples_of_a_metric_differ_by_their_labels_or_parts() {
    let mut seen = HashSet::new();
    for sample in distinct().samples() {
        assert_eq!(sample.labels.len(), sample.metric.labels.len());
        assert!(
            seen.insert((sample.metric.name, sample.labels.clone(), sample.part)),
            "{sample:?}"
        );
    }
}
