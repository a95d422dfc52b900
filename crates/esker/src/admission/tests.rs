use super::*;

const MIB: u64 = 1 << 20;

fn debts(memtables: u64, deltas: u64) -> Debts {
    let (budget, bases) = (100 * MIB, 100 * MIB);
    Debts { memtables, budget, deltas, bases, log_budget: 1, ..Debts::default() }
}

/// Asks once, for a writer that comes now.
fn admit(pacer: &Pacer, bytes: u64) -> Admission {
    pacer.admit_at(bytes, &mut None, pacer.uptime())
}

fn is_stop(admission: Admission) -> bool {
    matches!(admission, Admission::Stop(_))
}

fn waits(admission: Admission) -> bool {
    matches!(admission, Admission::Wait(_, Cause::FlushDebt))
}

fn rate(pacer: &Pacer) -> f64 {
    pacer.line.lock().rate
}

#[test]
fn nothing_is_paced_below_the_knees() {
    let pacer = Pacer::default();
    pacer.update(debts(49 * MIB, 99 * MIB));
    assert!(pacer.is_open());
    assert_eq!(admit(&pacer, 1 << 30), Admission::Go);
}

#[test]
fn only_the_memory_limit_stops() {
    let pacer = Pacer::default();
    pacer.update(debts(99 * MIB, 1000 * MIB));
    assert_eq!(admit(&pacer, 1), Admission::Go);
    pacer.update(debts(100 * MIB, 0));
    assert!(is_stop(admit(&pacer, 1)));
}

#[test]
fn a_long_log_paces_like_full_memtables() {
    let pacer = Pacer::default();
    let debts = |log| Debts { log, log_budget: 100 * MIB, budget: MIB, ..Debts::default() };
    pacer.update(debts(49 * MIB));
    assert!(pacer.is_open());
    pacer.update(debts(75 * MIB));
    assert!(!pacer.is_open());
    assert_eq!(admit(&pacer, 1), Admission::Go);
    pacer.update(debts(100 * MIB));
    assert!(is_stop(admit(&pacer, 1)));
}

#[test]
fn on_a_full_device_writers_have_to_ask_and_are_not_slowed() {
    let pacer = Pacer::default();
    pacer.update(Debts { tight: true, ..debts(99 * MIB, 1000 * MIB) });
    assert!(!pacer.is_open());
    assert_eq!(admit(&pacer, 1 << 30), Admission::Go);
    assert_eq!(admit(&pacer, 1 << 30), Admission::Go);
    pacer.update(Debts { tight: true, ..debts(100 * MIB, 0) });
    assert!(is_stop(admit(&pacer, 1)), "memory is the limit for everybody");
}

#[test]
fn the_rate_falls_without_a_step() {
    let pacer = Pacer::default();
    let mut last = f64::INFINITY;
    for fill in 51..100 {
        pacer.update(debts(fill * MIB, 0));
        let rate = rate(&pacer);
        assert!(rate <= last, "at {fill} %");
        let cliff = 0.05 * FLUSH_DRAIN as f64;
        assert!(last.is_infinite() || last - rate < cliff, "a cliff at {fill} %");
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
            let burst =
                2.0 * bytes as f64 + rate(&pacer) * (WAIT_MIN + line::SAVED_MAX).as_secs_f64();
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
        assert!(waits(ask(&mut second, Duration::ZERO)));
        assert!(waits(ask(&mut third, Duration::ZERO)));
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
    assert!(waits(pacer.admit_at(1, &mut waiting, at(0))));
    assert!(!pacer.update_at(debts(100 * MIB, 0), at(0)));
    assert!(is_stop(pacer.admit_at(1, &mut waiting, at(1000))));
    assert!(pacer.update_at(debts(90 * MIB, 0), at(1000)), "those who were stopped ask again");
    assert!(waits(pacer.admit_at(1, &mut waiting, at(1000))));
}

#[test]
fn each_change_of_the_cause_is_told() {
    let bus = Arc::new(EventBus::new(true));
    let pacer = Pacer::new(bus.clone(), Share::new(2));
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

/// Writers that write as soon as they may, while the pace goes from paced to stopped and back, and one
/// of which is always the last to wake: how often each was let go.
fn grants(writers: usize, rounds: usize) -> Vec<u64> {
    let pacer = Pacer::default();
    let mut places = vec![None; writers];
    let mut grants = vec![0; writers];
    let (paced, stopped) = (debts(90 * MIB, 0), debts(100 * MIB, 0));
    let mut now = Duration::ZERO;
    for round in 0..rounds {
        pacer.update_at(if round % 2 == 0 { stopped } else { paced }, now);
        // It wakes, asks, and wakes late again.
        for writer in 0..writers {
            while pacer.admit_at(MIB, &mut places[writer], now) == Admission::Go {
                grants[writer] += 1;
            }
            now += Duration::from_millis(3);
        }
    }
    grants
}

#[test]
fn nobody_is_let_go_much_more_often_than_another() {
    for writers in [2, 3, 8, 50] {
        let grants = grants(writers, 2000);
        let (least, most) = (*grants.iter().min().unwrap(), *grants.iter().max().unwrap());
        assert!(least > 10, "{grants:?}");
        assert!(most - least <= 1, "{grants:?}");
    }
}

#[test]
fn a_writer_far_from_the_head_asks_seldom() {
    let pacer = Pacer::default();
    pacer.update_at(debts(90 * MIB, 0), Duration::ZERO);
    let eight_seconds = (rate(&pacer) * 8.0) as u64;
    pacer.admit_at(eight_seconds, &mut None, Duration::ZERO);
    let (mut place, mut now, mut asked) = (None, Duration::ZERO, 1);
    while let Admission::Wait(nap, _) = pacer.admit_at(1, &mut place, now) {
        now += nap;
        asked += 1;
    }
    assert!(asked < 40, "it asked {asked} times");
    let late = now.abs_diff(Duration::from_secs(8));
    assert!(late < WAIT_MIN, "it went at {now:?}");
}

#[test]
fn the_places_of_writers_that_gave_up_are_skipped() {
    let pacer = Pacer::default();
    pacer.update_at(debts(90 * MIB, 0), Duration::ZERO);
    let ask = |bytes, place: &mut _, now| pacer.admit_at(bytes, place, now);
    assert_eq!(ask(10 * MIB, &mut None, Duration::ZERO), Admission::Go);
    let (mut first, mut second) = (None, None);
    assert!(waits(ask(MIB, &mut first, Duration::ZERO)));
    {
        // As an error in the middle of the wait does it.
        let mut turn = pacer.turn(10_000 * MIB, true);
        assert!(waits(turn.ask()));
    }
    assert!(waits(ask(MIB, &mut second, Duration::ZERO)));
    let turn = |mib: u64| Duration::from_secs_f64((mib * MIB) as f64 / rate(&pacer));
    assert_eq!(ask(MIB, &mut first, turn(10)), Admission::Go);
    assert!(waits(ask(MIB, &mut second, turn(10))), "the first one's bytes count");
    // The turn asked by the real clock, so the head may have moved a little less.
    assert_eq!(ask(MIB, &mut second, turn(11) + NAP_MIN), Admission::Go);
}

/// A program that tries again and again while all are stopped, and fails, leaves nothing behind; nor do
/// several that give up in any order.
#[test]
fn what_is_remembered_of_writers_that_gave_up_is_bounded_by_those_that_wait() {
    let pacer = Pacer::default();
    pacer.update_at(debts(100 * MIB, 0), Duration::ZERO);
    let mut waiting = None;
    assert!(matches!(pacer.admit_at(MIB, &mut waiting, Duration::ZERO), Admission::Stop(_)));
    let remembered = || pacer.line.lock().remembered();
    for round in 0..1000 {
        let mut turns: Vec<_> = (0..3).map(|_| pacer.turn(MIB, true)).collect();
        assert!(turns.iter_mut().all(|turn| matches!(turn.ask(), Admission::Stop(_))));
        // The one in the middle first, or the last.
        drop(turns.remove(1 + round % 2));
        assert!(remembered() <= 1);
        drop(turns);
        assert_eq!((remembered(), pacer.line.lock().taken), (0, MIB), "{round}");
    }
    // Those in the middle of the line are skipped.
    let (mut middle, mut last) = (None, None);
    for place in [&mut middle, &mut last] {
        assert!(matches!(pacer.admit_at(MIB, place, Duration::ZERO), Admission::Stop(_)));
    }
    pacer.leave(middle.unwrap(), MIB);
    let line = pacer.line.lock();
    assert_eq!((line.remembered(), line.time_to(last.unwrap())), (1, line.time_to(MIB)));
}

#[test]
fn who_does_not_wait_goes_only_if_nobody_waits_before_it() {
    let pacer = Pacer::default();
    pacer.update_at(debts(90 * MIB, 0), Duration::ZERO);
    let at = |mib: u64| Duration::from_secs_f64((mib * MIB) as f64 / rate(&pacer));
    assert_eq!(pacer.try_admit_at(10 * MIB, Duration::ZERO), Admission::Go);
    let mut waiting = None;
    let Admission::Wait(after, Cause::FlushDebt) = pacer.try_admit_at(MIB, Duration::ZERO) else {
        panic!("ten MiB are before it");
    };
    assert!(after.abs_diff(at(10)) < WAIT_MIN, "{after:?}");
    // It took no place, so who comes now is the next.
    assert!(waits(pacer.admit_at(MIB, &mut waiting, Duration::ZERO)));
    assert!(waits(pacer.try_admit_at(MIB, after)), "somebody waits before it");
    assert_eq!(pacer.admit_at(MIB, &mut waiting, after), Admission::Go);
    assert_eq!(pacer.try_admit_at(MIB, at(11)), Admission::Go, "nobody waits any more");
    // And who waits has to wait for its bytes.
    assert!(waits(pacer.admit_at(1, &mut None, at(11))));
    pacer.update_at(debts(100 * MIB, 0), after);
    assert!(is_stop(pacer.try_admit_at(1, after)));
    pacer.update_at(Debts { tight: true, ..debts(0, 0) }, after);
    assert_eq!(pacer.try_admit_at(1, after), Admission::Go);
}

#[test]
fn a_flush_that_hangs_slows_writers_before_it_ends() {
    let hangs = |secs| Debts { flush_takes: Some(Duration::from_secs(secs)), ..debts(75 * MIB, 0) };
    let at = Duration::from_secs;
    let pacer = Pacer::default();
    pacer.update_at(debts(75 * MIB, 0), at(100));
    let before = rate(&pacer);
    pacer.update_at(hangs(5), at(100));
    assert!(rate(&pacer) < before / 10.0);
    // What the flush before it took does not count.
    pacer.flushed_at(25 * MIB, Duration::ZERO, at(100));
    pacer.update_at(hangs(5), at(100));
    assert!(rate(&pacer) > before / 2.0);
}

#[test]
fn deltas_over_damage_slow_nobody() {
    let pacer = Pacer::default();
    let (tiers, workers) = (0, 2);
    let press = |left| pacer.press(Pressure { allowed: None, full: false, tiers, workers, left });
    press(0);
    pacer.update(debts(0, 500 * MIB));
    assert!(!pacer.is_open());
    // Nothing will compact 450 of the 500 MiB.
    press(450 * MIB);
    pacer.update(debts(0, 500 * MIB));
    assert!(pacer.is_open());
}

#[test]
fn the_rate_follows_the_runs_without_jumps() {
    let pacer = Pacer::default();
    let press =
        |allowed| pacer.press(Pressure { allowed, full: false, tiers: 1, workers: 2, left: 0 });
    let drain = {
        press(Some(2.0));
        pacer.drains().compaction
    };
    // The workers take in a flush of 25 MiB in this time.
    let time = (25 * MIB) as f64 / drain;
    let at = |times: f64| Duration::from_secs_f64(100.0 + time * times);
    pacer.update_at(debts(0, 0), at(0.0));
    // A run comes and goes with each flush and push.
    let mut last = rate(&pacer);
    for step in 1..1000 {
        press(Some(if step % 2 == 0 { 2.0 } else { 0.25 }));
        pacer.update_at(debts(0, 0), at(f64::from(step) * 0.1));
        let now = rate(&pacer);
        assert!((now - last).abs() < 0.2 * drain, "from {last} to {now}");
        last = now;
    }
    assert!((0.9..1.4).contains(&(last / drain)), "the mean of both: {last}");
    press(Some(0.25));
    pacer.update_at(debts(0, 0), at(200.0));
    assert!((rate(&pacer) / drain - 0.25).abs() < 0.01, "it arrives there");
    press(None);
    // While somebody waits, it leaves it slowly too.
    pacer.admit_at(1 << 40, &mut None, at(200.0));
    pacer.update_at(debts(0, 0), at(200.1));
    assert!(!pacer.is_open());
    pacer.update_at(debts(0, 0), at(203.0));
    assert!(pacer.is_open());
    // Where nobody waits, nobody is held back.
    press(Some(0.25));
    pacer.update_at(debts(0, 0), at(300.0));
    press(None);
    pacer.update_at(debts(0, 0), at(300.1));
    assert!(pacer.is_open());
}
