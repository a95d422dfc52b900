use super::*;

/// A list whose operations are no events.
fn quiet(window: Duration) -> Slowest {
    Slowest::with_window(window, Arc::new(EventBus::new(false)), Duration::ZERO)
}

fn offer(slowest: &Slowest, at: u64, kind: &'static str, millis: u64) {
    let took = Duration::from_millis(millis);
    slowest.offer_at(Duration::from_secs(at), kind, took, || Explanation::of(kind, "k", took));
}

fn times(slowest: &Slowest, at: u64) -> Vec<(&'static str, u64)> {
    let list = slowest.list_at(Duration::from_secs(at));
    let time = |slow: &SlowOperation| {
        (slow.explanation.operation, slow.explanation.time.as_millis() as u64)
    };
    list.iter().map(time).collect()
}

#[test]
fn the_slowest_of_each_kind_stay() {
    let slowest = quiet(WINDOW);
    for millis in 1..=1000 {
        // In an order that is neither ascending nor descending.
        offer(&slowest, 1, "get", millis * 389 % 1009);
    }
    offer(&slowest, 1, "put", 5);
    let kept = times(&slowest, 2);
    let mut all: Vec<u64> = (1..=1000).map(|millis| millis * 389 % 1009).collect();
    all.sort_unstable_by_key(|millis| std::cmp::Reverse(*millis));
    let mut expected: Vec<_> = all[..KEPT].iter().map(|millis| ("get", *millis)).collect();
    expected.push(("put", 5));
    assert_eq!(kept, expected);
}

#[test]
fn what_is_faster_than_all_that_are_kept_is_not_explained() {
    let slowest = quiet(WINDOW);
    for millis in 10..10 + KEPT as u64 {
        offer(&slowest, 1, "get", millis);
    }
    let mut explained = false;
    slowest.offer_at(Duration::from_secs(1), "get", Duration::from_millis(10), || {
        explained = true;
        Explanation::default()
    });
    assert!(!explained);
}

#[test]
fn windows_end() {
    let slowest = quiet(Duration::from_secs(100));
    for _ in 0..KEPT {
        offer(&slowest, 10, "get", 50);
    }
    // In the next window even a fast operation counts, and the last window is still shown.
    offer(&slowest, 110, "get", 1);
    assert_eq!(times(&slowest, 120).len(), KEPT);
    assert_eq!(times(&slowest, 220), [("get", 1)]);
    assert_eq!(times(&slowest, 1000), []);
}

#[test]
fn operations_that_take_as_long_as_the_limit_are_events() {
    let bus = Arc::new(EventBus::new(true));
    let slowest = Slowest::with_window(WINDOW, bus.clone(), Duration::from_millis(20));
    // The list is full of slower ones, and still each is an event.
    for millis in [19].into_iter().chain((100..).take(KEPT)).chain([20]) {
        offer(&slowest, 1, "get", millis);
    }
    let mut events = Vec::new();
    bus.take(&mut events, true);
    let took = |event: &crate::events::Event| match &event.kind {
        EventKind::SlowOperation { operation: "get", duration, .. } => duration.as_millis(),
        other => panic!("{other:?}"),
    };
    assert_eq!(events.first().map(took), Some(100));
    assert!(events.iter().all(|event| took(event) >= 20));
}
