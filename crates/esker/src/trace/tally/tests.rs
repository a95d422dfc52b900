use super::*;

#[test]
fn a_thread_waits_for_the_device_while_some_of_its_last_reads_did() {
    let quick = || add_read(4096, Duration::from_micros(3));
    let slow = || add_read(4096, Duration::from_micros(90));
    // Each test has a thread of its own.
    assert!(waits_for_device(), "nothing is known yet");
    (0..28).for_each(|_| quick());
    assert!(waits_for_device());
    quick();
    assert!(!waits_for_device());
    for number in 1..=4 {
        slow();
        assert_eq!(waits_for_device(), number == 4, "{number} of the last");
    }
    (0..28).for_each(|_| quick());
    assert!(waits_for_device());
    quick();
    assert!(!waits_for_device());
}
