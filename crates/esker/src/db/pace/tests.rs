use super::*;

const MIB: u64 = 1 << 20;

fn debts(memtables: u64, deltas: u64) -> Debts {
    Debts { memtables, budget: 100 * MIB, deltas, bases: 100 * MIB }
}

#[test]
fn nothing_is_paced_below_the_knees() {
    let pacer = Pacer::default();
    pacer.update(debts(49 * MIB, 99 * MIB));
    assert!(pacer.is_open());
    assert_eq!(pacer.admit(1 << 30), Admission::Go);
}

#[test]
fn only_the_memory_limit_stops() {
    let pacer = Pacer::default();
    pacer.update(debts(99 * MIB, 1000 * MIB));
    assert!(!pacer.is_stopped());
    pacer.update(debts(100 * MIB, 0));
    assert_eq!(pacer.admit(1), Admission::Stop);
}

#[test]
fn the_rate_falls_without_a_step() {
    let pacer = Pacer::default();
    let mut last = f64::INFINITY;
    for fill in 51..100 {
        pacer.update(debts(fill * MIB, 0));
        let rate = pacer.rate.load(Ordering::Relaxed) as f64;
        assert!(rate <= last, "at {fill} %");
        assert!(last.is_infinite() || rate > last * 0.8, "a cliff at {fill} %");
        last = rate;
    }
}

#[test]
fn waits_add_up_to_the_rate() {
    let pacer = Pacer::default();
    pacer.update(debts(75 * MIB, 0));
    let rate = pacer.rate.load(Ordering::Relaxed);
    // Writers that do not really wait see ever later start times, up to the longest wait.
    let mut longest = Duration::ZERO;
    for _ in 0..1000 {
        if let Admission::Wait(wait) = pacer.admit(rate / 1000) {
            longest = longest.max(wait);
        }
    }
    assert!(longest > Duration::from_millis(10) && longest <= WAIT_MAX, "{longest:?}");
}
