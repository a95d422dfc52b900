use super::*;
use std::sync::mpsc::channel;

const STEP: u64 = 100;

/// A generator of numbers; the seed is printed, and `ESKER_SEED` replays a run.
fn random() -> impl FnMut(u64) -> u64 {
    let given = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64);
    let seed = given.unwrap_or_else(now);
    println!("ESKER_SEED={seed}");
    let mut state = seed | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

#[test]
fn sums_are_exact_over_threads_that_come_and_go() {
    let sums = Sums::<2>::new(STEP);
    // More threads than stripes, each of which lowers what another one has raised.
    let (sender, receiver) = channel();
    let receiver = std::sync::Mutex::new(receiver);
    std::thread::scope(|scope| {
        for thread in 0..80 {
            let (sums, sender, receiver) = (&sums, sender.clone(), &receiver);
            scope.spawn(move || {
                for round in 0..1000 {
                    sums.add(0, thread + round % 7);
                    sums.add(1, 1);
                    sender.send(thread + round % 7).unwrap();
                    let other: u64 = receiver.lock().unwrap().recv().unwrap();
                    sums.add(0, other.wrapping_neg());
                }
            });
        }
    });
    assert_eq!((sums.get(0), sums.get(1)), (0, 80_000));
    assert!(sums.exceeds(1, 79_999) && !sums.exceeds(1, 80_000));
    sums.add(0, 5);
    assert_eq!((sums.get(0), sums.get(1)), (5, 80_000));
}

#[test]
fn a_comparison_has_the_result_of_the_exact_sum() {
    const THREADS: usize = 8;
    let mut random = random();
    for _ in 0..200 {
        let sums = Sums::<1>::new(STEP);
        let mut exact = 0;
        for _ in 0..200 {
            let number = random(THREADS as u64) as usize;
            let more = random(2 * STEP);
            let lowers = random(2) == 0 && more <= exact;
            let more = if lowers { more.wrapping_neg() } else { more };
            exact = exact.wrapping_add(more);
            sums.add_as(number, 0, more);
            assert_eq!(sums.get(0), exact);
            let near = random(2 * STEP * THREADS as u64);
            for limit in [exact, exact.saturating_sub(1), exact + near, exact.saturating_sub(near)]
            {
                let exceeds = sums.exceeds_among(THREADS, 0, limit);
                assert_eq!(exceeds, exact > limit, "{exact} and {limit}");
            }
        }
    }
}

#[test]
fn what_comes_and_goes_in_less_than_a_step_is_told_to_nobody() {
    let sums = Sums::<1>::new(STEP);
    for number in 0..NOBODY {
        for more in 1..STEP {
            sums.add_as(number, 0, more);
            assert_eq!((sums.told(0), sums.get(0)), (0, more));
            sums.add_as(number, 0, more.wrapping_neg());
            assert_eq!((sums.told(0), sums.get(0)), (0, 0));
        }
    }
    sums.add_as(3, 0, STEP);
    assert_eq!((sums.told(0), sums.get(0)), (STEP, STEP));
}

#[test]
fn threads_without_a_number_tell_at_once() {
    let sums = Sums::<1>::new(STEP);
    sums.add_as(NOBODY, 0, 7);
    assert_eq!((sums.told(0), sums.get(0)), (7, 7));
    sums.add_as(NOBODY, 0, 7_u64.wrapping_neg());
    assert_eq!((sums.told(0), sums.get(0)), (0, 0));
    assert!(!sums.exceeds_among(0, 0, 0));
}
