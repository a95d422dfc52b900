use super::*;

const MIB: u64 = 1 << 20;

fn debts(memtables: u64, deltas: u64) -> Debts {
    let (budget, bases) = (100 * MIB, 100 * MIB);
    Debts { memtables, budget, deltas, bases, log_budget: 1, ..Debts::default() }
}

fn rate(pacer: &Pacer) -> f64 {
    pacer.line.lock().rate
}

#[test]
fn nothing_is_paced_below_the_knees() {
    let pacer = Pacer::default();
    pacer.update(debts(49 * MIB, 99 * MIB));
    assert!(pacer.is_open());
    assert_eq!(pacer.admit(1 << 30, &mut None), Admission::Go);
}

#[test]
fn only_the_memory_limit_stops() {
    let pacer = Pacer::default();
    pacer.update(debts(99 * MIB, 1000 * MIB));
    assert_eq!(pacer.admit(1, &mut None), Admission::Go);
    pacer.update(debts(100 * MIB, 0));
    assert_eq!(pacer.admit(1, &mut None), Admission::Stop);
}

#[test]
fn a_long_log_paces_like_full_memtables() {
    let pacer = Pacer::default();
    let debts = |log| Debts { log, log_budget: 100 * MIB, budget: MIB, ..Debts::default() };
    pacer.update(debts(49 * MIB));
    assert!(pacer.is_open());
    pacer.update(debts(75 * MIB));
    assert!(!pacer.is_open());
    assert_eq!(pacer.admit(1, &mut None), Admission::Go);
    pacer.update(debts(100 * MIB));
    assert_eq!(pacer.admit(1, &mut None), Admission::Stop);
}

#[test]
fn on_a_full_device_writers_have_to_ask_and_are_not_slowed() {
    let pacer = Pacer::default();
    pacer.update(Debts { tight: true, ..debts(99 * MIB, 1000 * MIB) });
    assert!(!pacer.is_open());
    assert_eq!(pacer.admit(1 << 30, &mut None), Admission::Go);
    assert_eq!(pacer.admit(1 << 30, &mut None), Admission::Go);
    pacer.update(Debts { tight: true, ..debts(100 * MIB, 0) });
    assert_eq!(pacer.admit(1, &mut None), Admission::Stop, "memory is the limit for everybody");
}

#[test]
fn the_rate_falls_without_a_step() {
    let pacer = Pacer::default();
    let mut last = f64::INFINITY;
    for fill in 51..100 {
        pacer.update(debts(fill * MIB, 0));
        let rate = rate(&pacer);
        assert!(rate <= last, "at {fill} %");
        assert!(last.is_infinite() || rate > last * 0.8, "a cliff at {fill} %");
        last = rate;
    }
}

/// Writers of `bytes` each that write as soon as they may, for ten seconds of a clock of its own;
/// the bytes that they wrote. Everybody is woken, and asks, `wakes` times in every millisecond.
fn written(pacer: &Pacer, writers: usize, bytes: u64, wakes: u64) -> u64 {
    let mut places = vec![None; writers];
    let mut written = 0;
    for step in 0..10_000 * wakes {
        let now = Duration::from_micros(step * 1000 / wakes);
        for place in &mut places {
            // A writer that may go is back at once with its next write.
            while pacer.admit_at(bytes, place, now) == Admission::Go {
                *place = None;
                written += bytes;
            }
        }
    }
    written
}

#[test]
fn the_rate_holds_for_writes_of_any_size_and_however_often_writers_are_woken() {
    for (writers, bytes) in [(1, 100 << 10), (1, 8 << 20), (4, 1 << 20), (16, 4 << 20)] {
        for wakes in [1, 20] {
            let pacer = Pacer::default();
            pacer.update_at(debts(90 * MIB, 0), Duration::ZERO);
            let allowed = rate(&pacer) * 10.0;
            let written = written(&pacer, writers, bytes, wakes) as f64;
            let burst = 2.0 * bytes as f64 + rate(&pacer) * (WAIT_MIN + SAVED_MAX).as_secs_f64();
            let case = format!("{writers} writers of {bytes}: {written} of {allowed}");
            assert!(written <= allowed + burst, "{case}");
            assert!(written >= allowed - burst, "{case}");
        }
    }
}

#[test]
fn a_writer_that_is_woken_keeps_its_place() {
    let pacer = Pacer::default();
    pacer.update_at(debts(90 * MIB, 0), Duration::ZERO);
    let (mut first, mut second, mut third) = (None, None, None);
    assert_eq!(pacer.admit_at(10 * MIB, &mut first, Duration::ZERO), Admission::Go);
    let ask = |place: &mut _, now| pacer.admit_at(MIB, place, now);
    for _ in 0..1000 {
        assert_eq!(ask(&mut second, Duration::ZERO), Admission::Wait(WAIT_MAX, Cause::FlushDebt));
        assert_eq!(ask(&mut third, Duration::ZERO), Admission::Wait(WAIT_MAX, Cause::FlushDebt));
    }
    let turn = Duration::from_secs_f64((10 * MIB) as f64 / rate(&pacer));
    assert_eq!(ask(&mut second, turn), Admission::Go);
    assert!(matches!(ask(&mut third, turn), Admission::Wait(_, Cause::FlushDebt)));
    // Waiting writers go on when the debt is gone, and nobody pays for it later.
    assert!(pacer.update_at(debts(10 * MIB, 0), turn));
    assert_eq!(ask(&mut third, turn), Admission::Go);
    pacer.update_at(debts(90 * MIB, 0), turn);
    assert_eq!(ask(&mut None, turn), Admission::Go);
}

#[test]
fn a_pace_slows_only_those_who_write() {
    let pacer = Pacer::default();
    let at = Duration::from_secs;
    assert!(!pacer.slows_a_writer_at(at(1)));
    pacer.update_at(debts(75 * MIB, 0), at(1));
    assert!(!pacer.slows_a_writer_at(at(2)), "nobody writes");
    pacer.admit_at(1, &mut None, at(2));
    assert!(pacer.slows_a_writer_at(at(2)), "the next one may wait");
    assert!(!pacer.slows_a_writer_at(at(3)), "nobody writes any more");
    pacer.update_at(debts(100 * MIB, 0), at(5));
    assert!(pacer.slows_a_writer_at(at(6)));
    pacer.update_at(debts(0, 0), at(7));
    assert!(!pacer.slows_a_writer_at(at(7)));
}

#[test]
fn nobody_moves_on_while_memory_is_full() {
    let pacer = Pacer::default();
    let at = Duration::from_secs;
    pacer.update_at(debts(90 * MIB, 0), at(0));
    let mut waiting = None;
    assert_eq!(pacer.admit_at(1000 * MIB, &mut None, at(0)), Admission::Go);
    assert_eq!(pacer.admit_at(1, &mut waiting, at(0)), Admission::Wait(WAIT_MAX, Cause::FlushDebt));
    assert!(!pacer.update_at(debts(100 * MIB, 0), at(0)));
    assert_eq!(pacer.admit_at(1, &mut waiting, at(1000)), Admission::Stop);
    assert!(pacer.update_at(debts(90 * MIB, 0), at(1000)), "those who were stopped ask again");
    assert_eq!(
        pacer.admit_at(1, &mut waiting, at(1000)),
        Admission::Wait(WAIT_MAX, Cause::FlushDebt)
    );
}

#[test]
fn each_change_of_the_cause_is_told() {
    let bus = Arc::new(EventBus::new(true));
    let pacer = Pacer::new(bus.clone());
    let half = Debts { memtables: 60, budget: 100, bases: 100, ..Debts::default() };
    let steps = [
        Debts { memtables: 10, ..half },
        half,
        Debts { memtables: 70, ..half },
        Debts { memtables: 100, ..half },
        Debts { memtables: 10, deltas: 150, ..half },
        Debts { memtables: 10, tight: true, ..half },
        Debts { memtables: 10, ..half },
    ];
    for (second, debts) in steps.into_iter().enumerate() {
        pacer.update_at(debts, Duration::from_secs(second as u64));
    }
    let mut events = Vec::new();
    bus.take(&mut events, true);
    let told: Vec<_> = events
        .iter()
        .map(|event| match event.kind {
            EventKind::WriteStallBegin { cause, rate } => (cause, rate.is_some(), None),
            EventKind::WriteStallEnd { cause, rate, duration } => {
                (cause, rate.is_some(), Some(duration.as_secs()))
            }
            _ => panic!("{event:?}"),
        })
        .collect();
    let expected = [
        ("flush_debt", true, None),
        ("flush_debt", true, Some(2)),
        ("memory", false, None),
        ("memory", false, Some(1)),
        ("compaction_debt", true, None),
        ("compaction_debt", true, Some(1)),
        ("disk_full", false, None),
        ("disk_full", false, Some(1)),
    ];
    assert_eq!(told, expected);
}
