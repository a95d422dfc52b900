use super::*;

fn calm(processors: usize) -> (Share, Arc<Signal>) {
    let share = Share::new(processors);
    share.follow(true);
    (share, Arc::new(Signal::new()))
}

fn running(share: &Share) -> usize {
    share.running.load(Ordering::SeqCst)
}

#[test]
fn a_calm_database_leaves_a_processor_to_the_program() {
    for processors in [1, 2, 4] {
        let (share, signal) = calm(processors);
        let most = (processors - 1).max(1);
        let running: Vec<_> = (0..most).map(|_| share.compaction(&signal)).collect();
        assert!(running.iter().all(Option::is_some), "{processors} processors");
        assert!(share.compaction(&signal).is_none(), "{processors} processors");
        // A flush does not wait.
        drop(share.flush());
    }
}

#[test]
fn who_was_refused_is_woken() {
    let (share, signal) = calm(2);
    let running = share.compaction(&signal);
    let seen = signal.epoch();
    assert!(share.compaction(&signal).is_none());
    drop(running);
    assert!(signal.epoch() > seen);
    assert!(share.compaction(&signal).is_some());

    // Also when runs are late, and when somebody waits.
    let flush = share.flush();
    for lift in [0, 1] {
        share.follow(true);
        let seen = signal.epoch();
        assert!(share.compaction(&signal).is_none());
        let _hurry = (lift == 0).then(|| share.hurry());
        share.follow(lift == 0);
        assert!(signal.epoch() > seen, "{lift}");
        assert!(share.compaction(&signal).is_some(), "{lift}");
    }
    drop(flush);
}

#[test]
fn a_compaction_pauses_for_a_flush() {
    let (share, signal) = calm(2);
    let goes_on = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let compaction = share.compaction(&signal);
        let flush = share.flush();
        scope.spawn(|| {
            share.pause();
            goes_on.store(true, Ordering::SeqCst);
            drop(compaction);
        });
        // The pause ends only after the flush, and it left its place.
        while running(&share) > 1 {
            std::thread::yield_now();
        }
        assert!(!goes_on.load(Ordering::SeqCst));
        drop(flush);
    });
    assert!(goes_on.load(Ordering::SeqCst));
    assert_eq!(running(&share), 0);
}

#[test]
fn a_compaction_that_pauses_goes_on_when_runs_are_late_or_somebody_waits() {
    for lift in [0, 1] {
        let (share, signal) = calm(2);
        std::thread::scope(|scope| {
            let compaction = share.compaction(&signal);
            let _flush = share.flush();
            let paused = scope.spawn(|| share.pause());
            while running(&share) > 1 {
                std::thread::yield_now();
            }
            let _hurry = (lift == 0).then(|| share.hurry());
            share.follow(lift == 0);
            paused.join().unwrap();
            drop(compaction);
        });
    }
}

#[test]
fn workers_that_find_nothing_do_not_wake_each_other() {
    let (share, signal) = calm(2);
    let running = share.compaction(&signal).unwrap();
    assert!(share.compaction(&signal).is_none());
    let seen = signal.epoch();
    assert!(!running.found_nothing());
    assert_eq!(signal.epoch(), seen);
    // Who was refused is woken by the next that did something.
    drop(share.compaction(&signal));
    assert!(signal.epoch() > seen);
}

#[test]
fn a_compaction_that_pauses_goes_on_before_another_begins() {
    let (share, signal) = calm(2);
    std::thread::scope(|scope| {
        let compaction = share.compaction(&signal);
        let flush = share.flush();
        let paused = scope.spawn(|| {
            share.pause();
            take_paused()
        });
        while running(&share) > 1 {
            std::thread::yield_now();
        }
        // The place of the flush is free again, and still nobody else gets it.
        share.running.fetch_sub(1, Ordering::SeqCst);
        assert!(share.compaction(&signal).is_none());
        share.running.fetch_add(1, Ordering::SeqCst);
        drop(flush);
        // The pause is told once, and it is not the compaction's time.
        assert!(paused.join().unwrap() > Duration::ZERO);
        drop(compaction);
    });
    assert!(share.compaction(&signal).is_some());
}
