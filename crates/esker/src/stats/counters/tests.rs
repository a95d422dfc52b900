use super::*;

#[test]
fn counts_are_exact_over_threads_that_come_and_go() {
    let counters = Counters::default();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..10_000).for_each(|_| counters.add(Counter::Puts, 1)));
        }
    });
    counters.add(Counter::Puts, 3);
    assert_eq!(counters.total(Counter::Puts), 80_003);
    assert_eq!(counters.total(Counter::Gets), 0);
}

#[test]
fn a_thread_that_alternates_between_databases_loses_no_count() {
    let (one, two) = (Counters::default(), Counters::default());
    for _ in 0..1000 {
        one.add(Counter::Gets, 1);
        two.add(Counter::Gets, 2);
    }
    assert_eq!((one.total(Counter::Gets), two.total(Counter::Gets)), (1000, 2000));
}

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
    let counters = Counters::default();
    for micros in 1..=1000 {
        counters.record(Timed::Get, Duration::from_micros(micros));
    }
    let latency = counters.latency(Timed::Get);
    assert_eq!(latency.samples, 1000);
    let near = |got: Duration, want: u64| got.as_micros().abs_diff(u128::from(want)) <= 70;
    assert!(near(latency.p50, 500), "{latency:?}");
    assert!(near(latency.p99, 990), "{latency:?}");
    assert_eq!(latency.max, Duration::from_millis(1));
}
