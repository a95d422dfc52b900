use super::answer::{Answer, answer, windows};
use super::load::{EVENT_AT, HUGE, Load, SLOW_UNTIL, STALL_SECONDS};
use super::world::{Rule, SET_BYTES};
use esker::internals::admission::PaceMode;

const SECONDS: u64 = 70;

fn paced(load: Load) -> Answer {
    let answer = answer(load, Rule::Paced, SECONDS);
    check(&answer);
    answer
}

/// What holds for every load.
fn check(answer: &Answer) {
    let load = answer.load;
    for sample in &answer.samples {
        let (memory, path) = (sample.memory, sample.path);
        // No runaway: one more than everybody's put, at most.
        let over =
            if load == Load::SmallAndHuge { HUGE as f64 / (4 * SET_BYTES) as f64 } else { 0.01 };
        assert!(memory <= 1.0 + over, "{load:?}: memory at {memory} after {} s", sample.at);
        assert!(path <= 3.0, "{load:?}: a path at {path} after {} s", sample.at);
        let stopped = sample.mode == PaceMode::Stopped;
        assert!(!stopped || path >= 1.0 || load == Load::SmallAndHuge, "{load:?}: {sample:?}");
    }
    assert!(answer.puts.iter().all(|puts| *puts > 0), "{load:?}: a writer was starved");
}

#[test]
fn at_half_speed_nobody_waits() {
    let calm = paced(Load::Calm);
    assert!(calm.spread < 0.02, "{calm:?}", calm = calm.spread);
    assert!(calm.wait < 0.01, "{} s", calm.wait);
    assert_eq!(calm.stopped, 0.0);
}

#[test]
fn an_overload_of_any_length_settles() {
    for load in [Load::Busy, Load::Overload, Load::Crowd] {
        let answer = paced(load);
        assert_eq!(answer.stopped, 0.0, "{load:?}");
        // The rate that is in force changes slowly, so what is written does.
        assert!(answer.unrest < 0.035, "{load:?}: {}", answer.unrest);
        assert!(answer.spread < 0.9, "{load:?}: {}", answer.spread);
        // What a put waits for are the bytes before it, at a fraction of the drain.
        let bound = if load == Load::Crowd { 1.0 } else { 0.02 };
        assert!(answer.wait < bound, "{load:?}: {} s", answer.wait);
    }
}

#[test]
fn pacing_costs_little_throughput_and_takes_the_stops_away() {
    let (paced, stops) = (paced(Load::Overload), answer(Load::Overload, Rule::StopsOnly, SECONDS));
    assert!(paced.rate > 0.88 * stops.rate, "{} of {}", paced.rate, stops.rate);
    assert!(stops.stopped > 0.3 && stops.wait > 100.0 * paced.wait);
    assert!(paced.spread < 0.75 * stops.spread, "{} of {}", paced.spread, stops.spread);
}

#[test]
fn bursts_and_a_recorded_load_stop_nobody() {
    for load in [Load::Bursts, Load::Recorded] {
        let answer = paced(load);
        assert_eq!(answer.stopped, 0.0, "{load:?}");
        assert!(answer.wait < 0.05, "{load:?}: {} s", answer.wait);
    }
}

#[test]
fn a_device_that_becomes_slow_slows_writers_and_does_not_stop_them() {
    let slow = paced(Load::SlowDisk);
    assert_eq!(slow.stopped, 0.0);
    assert!(slow.wait < 0.3, "{} s", slow.wait);
    let during = |from, to| {
        let samples = slow.samples.iter().filter(move |it| it.at >= from && it.at < to);
        windows(&samples.copied().collect::<Vec<_>>())
    };
    let before = during(EVENT_AT - 10.0, EVENT_AT);
    let (last, after) = (during(SLOW_UNTIL - 10.0, SLOW_UNTIL), during(SLOW_UNTIL + 10.0, 70.0));
    let mean = |windows: &[f64]| windows.iter().sum::<f64>() / windows.len() as f64;
    assert!(mean(&last) < 0.5 * mean(&before), "it takes less in");
    assert!(mean(&after) > mean(&before), "it catches up");
}

#[test]
fn a_device_that_stalls_for_a_second_is_made_up_for() {
    let stall = paced(Load::Stall);
    assert_eq!(stall.stopped, 0.0);
    assert!(stall.wait < STALL_SECONDS / 10.0, "{} s", stall.wait);
}

#[test]
fn small_writes_wait_for_the_bytes_of_huge_ones_and_no_longer() {
    let mixed = paced(Load::SmallAndHuge);
    // Two huge ones before it, at a fraction of the drain.
    let bound = 4.0 * HUGE as f64 / mixed.rate;
    assert!(mixed.wait < bound, "{} s, {bound} s at most", mixed.wait);
    let small = &mixed.puts[..8];
    let (least, most) = (small.iter().min().unwrap(), small.iter().max().unwrap());
    // Nearly as often: who is served first in a tick of an open pacer writes more in it.
    assert!(*least as f64 > 0.4 * *most as f64, "{small:?}");
}

#[test]
fn in_a_crowd_all_write_as_often_and_nobody_asks_all_the_time() {
    let crowd = paced(Load::Crowd);
    let (least, most) = (crowd.puts.iter().min().unwrap(), crowd.puts.iter().max().unwrap());
    assert!(most - least <= 20, "from {least} to {most} puts");
    let puts: u64 = crowd.puts.iter().sum();
    assert!(crowd.asked < 12 * puts, "{} times for {puts} puts", crowd.asked);
}

#[test]
fn the_same_question_has_the_same_answer() {
    let once = || {
        let answer = answer(Load::SmallAndHuge, Rule::Paced, 10);
        (answer.puts, answer.asked, answer.rate.to_bits(), answer.wait.to_bits())
    };
    assert_eq!(once(), once());
}
