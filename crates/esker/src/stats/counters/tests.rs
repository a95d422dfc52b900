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
fn calls_are_counted_exactly_and_one_in_64_is_timed() {
    let counters = Counters::default();
    // More threads than stripes, so that some share one.
    let timed = std::thread::scope(|scope| {
        let calls = || {
            let get = |_: &i32| counters.begin(counters.lane(), Counter::Gets).is_timed();
            (0..10_000).filter(get).count()
        };
        let threads: Vec<_> = (0..80).map(|_| scope.spawn(calls)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(counters.total(Counter::Gets), 800_000);
    assert!((11_000..14_000).contains(&timed), "{timed} of 800,000 calls were timed");
}

#[test]
fn calls_of_a_program_that_alternates_are_all_timed_sometimes() {
    let counters = Counters::default();
    let mut timed = [0; 8];
    for call in 0..64_000 {
        timed[call % 8] += i32::from(counters.begin(counters.lane(), Counter::Gets).is_timed());
    }
    assert!(timed.iter().all(|count| (80..170).contains(count)), "{timed:?}");
}

#[test]
fn a_commit_of_one_put_counts_as_one_of_each() {
    let counters = Counters::default();
    let put = WriteCounts { puts: 1, user_bytes: 8, ..WriteCounts::default() };
    let batch = WriteCounts { puts: 3, deletes: 1, user_bytes: 30, ..WriteCounts::default() };
    for counts in [put, batch, put] {
        counters.begin_commit(&counts);
    }
    let totals = [Counter::Puts, Counter::Commits, Counter::Deletes, Counter::UserBytes];
    assert_eq!(totals.map(|counter| counters.total(counter)), [5, 3, 1, 46]);
}
