use super::*;

#[test]
fn buffers_count_until_they_are_gone() {
    let buffers = Arc::new(Buffers::default());
    let (mut first, mut second) = (buffers.lease(), buffers.lease());
    first.set(1000);
    second.set(500);
    assert_eq!((buffers.used(), buffers.most()), (1500, 1500));
    first.set(200);
    assert_eq!((buffers.used(), buffers.most()), (700, 1500));
    drop(second);
    assert_eq!(buffers.used(), 200);
    drop(first);
    assert_eq!((buffers.used(), buffers.most()), (0, 1500));
}

#[test]
fn a_collector_is_used_again_and_counts_while_it_waits() {
    let buffers = Arc::new(Buffers::default());
    let make = || {
        let mut collector = Collector::uncounted(10_000);
        collector.extend_from_slice(b"header");
        collector.count_in(&buffers);
        assert_eq!(&collector[..], b"header");
        collector
    };
    let first = make();
    assert_eq!(buffers.used(), first.capacity() as u64);
    let address = first.as_ptr();
    drop(first);
    assert!(buffers.used() >= 10_000, "it waits for the next writer");
    let mut again = make();
    assert_eq!(again.as_ptr(), address);
    again.count(5000);
    assert_eq!(buffers.used(), again.capacity() as u64 + 5000);
    // What a large value has grown is not kept.
    again.extend_from_slice(&[1; 100_000]);
    again.count(0);
    assert!(buffers.used() > 100_000);
    again.empty();
    assert!(again.is_empty() && again.capacity() < 20_000);
    again.extend_from_slice(&[1; 100_000]);
    drop(again);
    assert_eq!(buffers.used(), 0);
}

#[test]
fn few_collectors_wait() {
    let buffers = Arc::new(Buffers::default());
    let all: Vec<_> = (0..8)
        .map(|_| {
            let mut collector = Collector::uncounted(4096);
            collector.count_in(&buffers);
            collector
        })
        .collect();
    assert!(buffers.used() >= 8 * 4096);
    drop(all);
    assert!(buffers.used() < 3 * 4096 && buffers.used() >= 2 * 4096, "{}", buffers.used());
}

#[test]
fn pages_can_be_written_and_come_zeroed() {
    let mut pages = Pages::new(100_000);
    assert!(pages.len() >= 100_000 && pages.iter().all(|byte| *byte == 0));
    pages[99_999] = 7;
    let moved = std::thread::spawn(move || pages[99_999]).join().unwrap();
    assert_eq!(moved, 7);
    assert!(Pages::new(0).is_empty() && Pages::default().is_empty());
}
