use super::*;

#[test]
fn a_wait_is_in_the_bucket_that_its_length_belongs_to() {
    let waits = Waits::default();
    for (nanos, bucket) in [(0, 0), (10_000, 0), (10_001, 1), (5_000_000, 6), (u64::MAX, 15)] {
        let before = waits.of(Cause::Sync);
        waits.record(Cause::Sync, Duration::from_nanos(nanos));
        let after = waits.of(Cause::Sync);
        assert_eq!(after.count, before.count + 1);
        assert_eq!(after.buckets[bucket], before.buckets[bucket] + 1, "{nanos}");
    }
    assert_eq!(waits.of(Cause::Lock), Waited::default());
}

#[test]
fn a_guard_records_how_long_it_lived_also_for_its_thread() {
    let waits = Waits::default();
    take_tally();
    let before = Instant::now();
    let wait = waits.begin(Cause::Memory);
    while before.elapsed() < Duration::from_micros(50) {
        std::hint::spin_loop();
    }
    assert_eq!(waits.of(Cause::Memory).count, 0);
    drop(wait);
    let waited = waits.of(Cause::Memory);
    assert!(waited.total > Duration::ZERO && waited.total <= before.elapsed());
    let tally = take_tally();
    assert_eq!(u128::from(tally[Cause::Memory as usize]), waited.total.as_nanos());
    assert_eq!(tally.iter().filter(|nanos| **nanos > 0).count(), 1);
    assert_eq!(take_tally(), [0; CAUSES]);
    let other = std::thread::spawn(take_tally).join().unwrap();
    assert_eq!(other, [0; CAUSES]);
}

#[test]
fn waits_that_were_forgotten_are_not_taken() {
    let waits = Waits::default();
    let nanos = |nanos| Duration::from_nanos(nanos);
    take_tally();
    waits.record(Cause::DiskFull, nanos(10));
    assert!(has_notes());
    forget_notes();
    assert!(!has_notes());
    assert_eq!(take_tally(), [0; CAUSES]);
    waits.record(Cause::DiskFull, nanos(10));
    forget_notes();
    // Waits that come later are all that is taken.
    waits.record(Cause::Memory, nanos(7));
    waits.record(Cause::Memory, nanos(8));
    let mut expected = [0; CAUSES];
    expected[Cause::Memory as usize] = 15;
    assert_eq!(take_tally(), expected);
    assert!(!has_notes());
    // No wait is lost that is shown for the whole database.
    assert_eq!((waits.of(Cause::DiskFull).count, waits.of(Cause::Memory).count), (2, 2));
}

#[test]
fn causes_are_numbered_as_they_are_listed() {
    for (at, cause) in Cause::ALL.into_iter().enumerate() {
        assert_eq!(cause as usize, at);
    }
}

#[test]
fn a_long_wait_is_an_event_unless_stalls_of_its_cause_are() {
    let limit = Duration::from_millis(100);
    let bus = Arc::new(EventBus::new(true));
    let waits = Waits::new(bus.clone(), limit);
    for cause in Cause::ALL {
        waits.record(cause, limit - Duration::from_nanos(1));
    }
    let told = || {
        let mut events = Vec::new();
        bus.take(&mut events, true);
        let told = events.into_iter().map(|event| match event.kind {
            EventKind::LongWait { cause, duration } => (cause, duration),
            other => panic!("{other:?}"),
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(told(), []);
    for cause in Cause::ALL {
        waits.record(cause, limit);
    }
    assert_eq!(told(), [("log_space", limit), ("sync", limit), ("lock", limit)]);
}
