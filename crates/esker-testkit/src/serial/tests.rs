#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

use super::{Anomaly, Edge, Key, Record, check};

const X: Key = (0, 0);
const Y: Key = (0, 1);

fn record(
    position: impl Into<Option<u64>>,
    reads: &[(Key, Option<u64>)],
    writes: &[(Key, Option<u64>)],
) -> Record {
    Record { position: position.into(), reads: reads.to_vec(), writes: writes.to_vec() }
}

fn edges(anomaly: Result<(), Anomaly>) -> Vec<Edge> {
    let Err(Anomaly::Cycle(steps)) = anomaly else { panic!("no cycle: {anomaly:?}") };
    let mut edges: Vec<_> = steps.into_iter().map(|(_, edge, _)| edge).collect();
    edges.sort();
    edges
}

#[test]
fn a_serial_history_is_right() {
    let history = [
        record(10, &[(X, None)], &[(X, Some(1))]),
        record(20, &[(X, Some(1)), (Y, None)], &[(X, Some(2)), (Y, Some(3))]),
        record(None, &[(X, Some(2)), (Y, Some(3))], &[]),
        record(30, &[(X, Some(2))], &[(X, None)]),
        record(None, &[(X, None), (Y, Some(3))], &[]),
        record(40, &[(X, None)], &[(X, Some(4))]),
        record(None, &[(X, Some(4)), (Y, Some(3))], &[]),
    ];
    assert_eq!(check(&history), Ok(()));
}

#[test]
fn write_skew_is_a_cycle_of_two_anti_dependencies() {
    let history = [
        record(10, &[], &[(X, Some(1)), (Y, Some(2))]),
        record(20, &[(X, Some(1)), (Y, Some(2))], &[(X, None)]),
        record(30, &[(X, Some(1)), (Y, Some(2))], &[(Y, None)]),
    ];
    assert_eq!(edges(check(&history)), [Edge::ReadWrite, Edge::ReadWrite]);
}

#[test]
fn a_lost_update_and_a_phantom_are_cycles() {
    let lost = [
        record(10, &[], &[(X, Some(1))]),
        record(20, &[(X, Some(1))], &[(X, Some(2))]),
        record(30, &[(X, Some(1))], &[(X, Some(3))]),
    ];
    assert_eq!(edges(check(&lost)), [Edge::WriteWrite, Edge::ReadWrite]);
    // Both found nothing in the range and put something there.
    let phantom = [
        record(10, &[(X, None), (Y, None)], &[(X, Some(1))]),
        record(20, &[(X, None), (Y, None)], &[(Y, Some(2))]),
    ];
    assert_eq!(edges(check(&phantom)), [Edge::ReadWrite, Edge::ReadWrite]);
}

#[test]
fn a_reader_between_two_halves_of_a_write_is_a_cycle() {
    let history = [
        record(10, &[], &[(X, Some(1)), (Y, Some(2))]),
        record(20, &[], &[(X, Some(3)), (Y, Some(4))]),
        record(None, &[(X, Some(3)), (Y, Some(2))], &[]),
    ];
    assert_eq!(edges(check(&history)), [Edge::WriteRead, Edge::ReadWrite]);
}

#[test]
fn a_value_of_nobody_is_an_anomaly() {
    let history = [record(None, &[(X, Some(7))], &[])];
    assert_eq!(check(&history), Err(Anomaly::UnknownValue { reader: 0, key: X, value: 7 }));
}

#[test]
fn a_reader_of_absent_keys_is_placed_where_all_are_absent() {
    let history = [
        record(10, &[], &[(X, Some(1))]),
        record(20, &[(X, Some(1))], &[(X, None), (Y, Some(2))]),
        record(30, &[(Y, Some(2))], &[(Y, None)]),
        record(None, &[(X, None), (Y, None)], &[]),
        record(None, &[(X, Some(1)), (Y, None)], &[]),
    ];
    assert_eq!(check(&history), Ok(()));
    let torn = [
        record(10, &[], &[(X, Some(1)), (Y, Some(2))]),
        record(20, &[], &[(X, None), (Y, None)]),
        record(None, &[(X, Some(1)), (Y, None)], &[]),
    ];
    assert!(check(&torn).is_err());
}
