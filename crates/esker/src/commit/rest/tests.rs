use super::*;

const FLUSH: u64 = 128 << 20;

fn bytes(data: u64) -> RestBytes {
    RestBytes { flush: FLUSH, data, pause: None }
}

fn after(seconds: u64) -> Resting {
    Resting::After(Duration::from_secs(seconds))
}

#[test]
fn a_log_rests_once_after_a_pause_and_not_while_writes_come() {
    let open = Instant::now();
    let at = |seconds| open + Duration::from_secs(seconds);
    let mut rest = Rest::new(1000, open);
    let (gain, bytes) = (64 << 20, bytes(1 << 30));
    assert_eq!(rest.look(1000, at(99), gain, bytes), Resting::Nothing, "nothing was written");
    // Writes that come within the pause put it off.
    let mut visible = 1000 + (1 << 30);
    for second in 100..200 {
        visible += 100;
        assert_eq!(rest.look(visible, at(second), gain, bytes), after(5));
    }
    assert_eq!(rest.look(visible, at(203), gain, bytes), after(1));
    assert_eq!(rest.look(visible, at(204), gain, bytes), Resting::Now);
    rest.ended(visible + 32);
    assert_eq!(rest.look(visible + 32, at(205), gain, bytes), Resting::Nothing);
    assert_eq!(rest.look(visible + 32, at(9999), gain, bytes), Resting::Nothing);
}

#[test]
fn a_trickle_of_writes_makes_no_flush() {
    let open = Instant::now();
    let mut rest = Rest::new(1000, open);
    // A write of 100 bytes each 6 seconds: the log is as small as it would be at rest for a day.
    let (mut visible, mut rests) = (1000, 0);
    for number in 0..100_000_u64 {
        visible += 100;
        let now = open + Duration::from_secs(6 * number);
        let log = if visible - 1000 > 126 << 10 { 256 << 10 } else { 0 };
        rests += u64::from(rest.look(visible, now, log, bytes(1 << 30)) == Resting::Now);
        let later = rest.look(visible, now + Duration::from_secs(5), log, bytes(1 << 30));
        rests += u64::from(later == Resting::Now);
    }
    assert_eq!(rests, 0);
    // When it ends, a minute is enough.
    let end = open + Duration::from_secs(600_000);
    assert_eq!(rest.look(visible, end, 256 << 10, bytes(1 << 30)), after(54));
    let end = end + Duration::from_secs(54);
    assert_eq!(rest.look(visible, end, 256 << 10, bytes(1 << 30)), Resting::Now);
}

#[test]
fn a_pause_is_short_if_much_was_written_for_a_flush_or_for_the_data() {
    let open = Instant::now();
    for (written, data, pause) in [
        (FLUSH / 8, 1 << 40, 5),
        (FLUSH / 8 - 8, 1 << 40, 60),
        (1 << 20, 8 << 20, 5),
        ((1 << 20) - 8, 8 << 20, 60),
        (8, 0, 5),
    ] {
        let mut rest = Rest::new(1000, open);
        assert_eq!(rest.look(1000 + written, open, 1, bytes(data)), after(pause), "{written}");
    }
}

#[test]
fn a_rest_that_could_seal_nothing_is_due_again() {
    let open = Instant::now();
    let at = |seconds| open + Duration::from_secs(seconds);
    let mut rest = Rest::new(1000, open);
    let (gain, bytes, end) = (64 << 10, bytes(1 << 30), 1100);
    rest.ended(end);
    rest.left_unfinished();
    // However little was written, and without a further write.
    assert_eq!(rest.look(end, at(1), gain, bytes), after(5));
    assert_eq!(rest.look(end, at(6), gain, bytes), Resting::Now);
    rest.ended(end);
    assert_eq!(rest.look(end, at(99), gain, bytes), Resting::Nothing);
    // A later flush may release the files first: then there is nothing to finish.
    rest.left_unfinished();
    assert_eq!(rest.look(end, at(100), 0, bytes), Resting::Nothing);
    assert_eq!(rest.look(end, at(101), gain, bytes), Resting::Nothing);
}
