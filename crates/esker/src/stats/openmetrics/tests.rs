use super::*;
use crate::stats::encoding::distinct;
use std::time::Duration;

#[test]
fn times_are_seconds_to_the_nanosecond() {
    let shown = |raw| Shown { raw, seconds: true }.to_string();
    assert_eq!(shown(0), "0.0");
    assert_eq!(shown(1), "0.000000001");
    assert_eq!(shown(1_500_000_000), "1.5");
    assert_eq!(shown(u64::MAX), "18446744073.709551615");
}

#[test]
fn counters_histograms_summaries_and_states_have_their_shapes() {
    let mut stats = Stats::default();
    stats.puts = 3;
    stats.put_latency.p99 = Duration::from_micros(2);
    stats.waits.lock.count = 1;
    stats.waits.lock.total = Duration::from_micros(20);
    stats.waits.lock.buckets[1] = 1;
    let text = stats.openmetrics();
    for lines in [
        "# TYPE esker_puts counter\n# HELP esker_puts Entries put.\nesker_puts_total 3\n",
        "# TYPE esker_put_latency_seconds summary\n# UNIT esker_put_latency_seconds seconds\n",
        "esker_put_latency_seconds{quantile=\"0.99\"} 0.000002\n",
        "esker_wait_seconds_bucket{cause=\"lock\",le=\"1e-05\"} 0\n\
         esker_wait_seconds_bucket{cause=\"lock\",le=\"3e-05\"} 1\n",
        "esker_wait_seconds_bucket{cause=\"lock\",le=\"+Inf\"} 1\n\
         esker_wait_seconds_count{cause=\"lock\"} 1\nesker_wait_seconds_sum{cause=\"lock\"} 0.00002\n",
        "esker_pace_mode{esker_pace_mode=\"open\"} 1\nesker_pace_mode{esker_pace_mode=\"flush_debt\"} 0\n",
    ] {
        assert!(text.contains(lines), "missing:\n{lines}\nin:\n{text}");
    }
}

#[test]
fn values_of_labels_are_escaped() {
    let text = distinct().openmetrics();
    assert!(text.contains("{keyspace=\"one \\\"word\\\"\"}"), "{text}");
    assert!(text.contains("{keyspace=\"\u{e4}\\\\\\n\"}"), "{text}");
}

/// A line of the text that is a sample: its name without labels, and the rest.
fn sample_names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let end = line.find(['{', ' ']).unwrap();
        &line[..end]
    })
}

#[test]
fn every_sample_belongs_to_the_metric_above_it() {
    let text = distinct().openmetrics();
    assert_eq!(text.matches("# EOF").count(), 1);
    let mut metric = "";
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            metric = head.split(' ').next().unwrap();
        } else if !line.starts_with('#') {
            let name = sample_names(line).next().unwrap();
            let suffix = name.strip_prefix(metric).unwrap_or_else(|| panic!("{line} in {metric}"));
            let known = ["", "_total", "_count", "_sum", "_bucket"];
            assert!(known.contains(&suffix), "{line} in {metric}");
        }
    }
}
