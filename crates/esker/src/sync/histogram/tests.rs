use super::*;

#[test]
fn buckets_hold_what_their_bounds_say() {
    let mut last = None;
    for nanos in (0..5000).chain((13..40).map(|shift| (1 << shift) + 7)) {
        let bucket = bucket_of(nanos);
        assert!(bucket_floor(bucket) <= nanos, "{nanos}");
        assert!(nanos < bucket_floor(bucket + 1), "{nanos}");
        assert!(last <= Some(bucket), "{nanos}");
        last = Some(bucket);
    }
}

#[test]
fn percentiles_are_near_what_was_recorded() {
    let histogram = Histogram::default();
    for micros in 1..=1000 {
        histogram.record(Duration::from_micros(micros));
    }
    let latency = histogram.summary();
    assert_eq!(latency.samples, 1000);
    let near = |got: Duration, want: u64| got.as_micros().abs_diff(u128::from(want)) <= 70;
    assert!(near(latency.p50, 500), "{latency:?}");
    assert!(near(latency.p99, 990), "{latency:?}");
    assert_eq!(latency.max, Duration::from_millis(1));
}
