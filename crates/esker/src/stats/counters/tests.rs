use super::*;

#[test]
fn counts_are_exact_over_threads_that_come_and_go() {
    let counters = Counters::default();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..10_000).for_each(|_| counters.add(Counter::Scans, 1)));
        }
    });
    counters.add(Counter::Scans, 3);
    assert_eq!(counters.total(Counter::Scans), 80_003);
    assert_eq!(counters.total(Counter::Gets), 0);
}

#[test]
fn a_thread_that_alternates_between_databases_loses_no_count() {
    let (one, two) = (Counters::default(), Counters::default());
    for _ in 0..1000 {
        one.add(Counter::Scanned, 1);
        two.add(Counter::Scanned, 2);
    }
    assert_eq!((one.total(Counter::Scanned), two.total(Counter::Scanned)), (1000, 2000));
}

#[test]
fn values_that_only_move_do_not_count_as_turned() {
    let counters = Counters::default();
    let background = &counters.background;
    let turned = || {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&background.bytes_cooled), load(&background.bytes_warmed))
    };
    let moved = MovedBytes { cooled: 200, warmed: 0, emptied: 300 };
    background.note_recoded(Some(Recoding::Cools), (1000, moved));
    assert_eq!(turned(), (700, 0), "500 bytes of keys beside 200 of values");
    let moved = MovedBytes { cooled: 0, warmed: 100, emptied: 500 };
    background.note_recoded(Some(Recoding::Warms), (1000, moved));
    assert_eq!(turned(), (700, 500));
    background.note_recoded(None, (1000, moved));
    assert_eq!(turned(), (700, 600));
}

#[test]
fn calls_are_counted_exactly_and_one_in_128_is_timed() {
    let counters = Counters::default();
    // More threads than stripes, so that some share one.
    let timed = std::thread::scope(|scope| {
        let calls = || {
            let get = |_: &i32| counters.begin(Counter::Gets).is_timed();
            (0..50_000).filter(get).count()
        };
        let threads: Vec<_> = (0..80).map(|_| scope.spawn(calls)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(counters.total(Counter::Gets), 4_000_000);
    // 31,128 are expected; the threads draw alike, so their deviations add up.
    assert!((29_500..33_500).contains(&timed), "{timed} of 4,000,000 calls were timed");
}

#[test]
fn calls_of_a_program_that_alternates_are_all_timed_sometimes() {
    let counters = Counters::default();
    let mut timed = [0; 8];
    for call in 0..128_000 {
        timed[call % 8] += i32::from(counters.begin(Counter::Gets).is_timed());
    }
    assert!(timed.iter().all(|count| (80..170).contains(count)), "{timed:?}");
}

#[test]
fn a_commit_of_one_put_counts_as_one_of_each() {
    let counters = Counters::default();
    let put = WriteCounts { puts: 1, user_bytes: 8, ..WriteCounts::default() };
    let batch = WriteCounts { puts: 3, deletes: 1, user_bytes: 30, ..WriteCounts::default() };
    for written in [Written::Put(8), Written::Batch(&batch), Written::Batch(&put)] {
        counters.begin_commit(&written);
    }
    let totals = [Counter::Puts, Counter::Commits, Counter::Deletes, Counter::UserBytes];
    assert_eq!(totals.map(|counter| counters.total(counter)), [5, 3, 1, 46]);
}

#[test]
fn threads_that_share_a_stripe_lose_no_count() {
    const THREADS: usize = 100;
    let counters = Counters::default();
    // All threads have their numbers before one of them ends, so there are too few stripes.
    let begun = std::sync::Barrier::new(THREADS);
    let call = || {
        counters.add(Counter::Scans, 1);
        begun.wait();
        for _ in 0..1000 {
            if let Some(lane) = counters.count(Counter::Gets) {
                lane.add(Counter::GetsCached as usize, 1);
                continue;
            }
            let apart = counters.count_apart(Counter::Gets);
            apart.lane().add(Counter::GetsCached as usize, 1);
        }
    };
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|_| {
            scope.spawn(call);
        });
    });
    let totals = [Counter::Scans, Counter::Gets, Counter::GetsCached];
    assert_eq!(totals.map(|counter| counters.total(counter)), [100, 100_000, 100_000]);
}
