use super::*;
use std::time::SystemTime;

fn step(source: StepSource, outcome: Outcome, nanos: u64) -> Step {
    let blocks = BlockCounts { cached: nanos, page_cache: 2, device: 3 };
    let time = Duration::from_nanos(nanos);
    Step { source, outcome, blocks, bytes_read: 7, entries: 9, time }
}

/// All sources and outcomes that there are.
fn steps() -> Vec<Step> {
    let (number, partition, age) = (1, 2, 3);
    let sources = [
        StepSource::Memtable { number, of: 4, sealed: true },
        StepSource::Run { tier: 1, partition, age, file: Some(5), segment: Some(4096) },
        StepSource::Run { tier: 0, partition, age, file: None, segment: None },
        StepSource::Operands,
        StepSource::Admission,
        StepSource::Reservation,
        StepSource::Log,
        StepSource::Apply,
        StepSource::Publication,
        StepSource::Sync,
        StepSource::Memtable { number, of: 4, sealed: false },
    ];
    let outcomes = [
        Outcome::Found,
        Outcome::Deleted,
        Outcome::RangeDeleted,
        Outcome::Expired,
        Outcome::Operand,
        Outcome::OutsideSegments,
        Outcome::FilterAbsent,
        Outcome::FalsePositive,
        Outcome::Absent,
        Outcome::NotReached,
        Outcome::Done,
    ];
    let steps = sources.into_iter().zip(outcomes).zip(1..);
    steps.map(|((source, outcome), nanos)| step(source, outcome, nanos)).collect()
}

fn slow(operation: &'static str, micros: u64, steps: Vec<Step>) -> SlowOperation {
    let wait = |cause| WaitTime { cause, time: Duration::from_nanos(17) };
    let explanation = Explanation {
        operation,
        keyspace: "users".to_owned(),
        found: micros % 2 == 1,
        time: Duration::from_micros(micros),
        waits: Cause::ALL.into_iter().map(wait).collect(),
        entries: 4,
        stepped_over: 5,
        ..Explanation::default()
    };
    let when = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001);
    SlowOperation { when, explanation: explanation.with_steps(steps) }
}

fn decoded(encoded: &[Vec<u8>]) -> Vec<SlowOperation> {
    encoded.iter().map(|bytes| decode(bytes).expect("an operation")).collect()
}

#[test]
fn every_field_survives() {
    let all: Vec<_> = KINDS.iter().zip(1..).map(|(kind, us)| slow(kind, us, steps())).collect();
    assert_eq!(decoded(&encode(&all)), all);
}

#[test]
fn no_piece_and_no_change_of_the_bytes_makes_decoding_fail_otherwise_than_by_none() {
    let bytes = encode_one(&slow("get", 1, steps()));
    for len in 0..bytes.len() {
        assert_eq!(decode(&bytes[..len]), None, "{len} of {} bytes", bytes.len());
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x40, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let _ = decode(&changed);
        }
    }
}

#[test]
fn what_a_later_version_adds_is_left_out() {
    let known = slow("put", 1, vec![step(StepSource::Log, Outcome::Done, 1)]);
    // More fields behind the known ones.
    let mut longer = encode_one(&known);
    longer.push(200);
    assert_eq!(decode(&longer), Some(known.clone()));
    // Names that this version does not know, of the same length as known ones.
    let renamed = |from: &[u8], to: &[u8]| {
        let mut bytes = encode_one(&known);
        let at = bytes.windows(from.len()).position(|part| part == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
        decode(&bytes)
    };
    assert_eq!(renamed(b"put", b"pet"), None);
    let without_step = renamed(b"\x03log", b"\x03lug").unwrap().explanation;
    assert_eq!((without_step.steps.len(), without_step.waits.len()), (0, Cause::ALL.len()));
    let without_wait = renamed(b"memory", b"melody").unwrap().explanation;
    assert_eq!((without_wait.steps.len(), without_wait.waits.len()), (1, Cause::ALL.len() - 1));
    // A step with more fields.
    let mut bytes = encode_one(&slow("put", 1, Vec::new()));
    assert_eq!(bytes.pop(), Some(0), "no steps");
    let mut longer = encode_step(&known.explanation.steps[0]);
    longer.extend_from_slice(b"more");
    put_varint(&mut bytes, 1);
    put_bytes(&mut bytes, &longer);
    assert_eq!(decode(&bytes).unwrap().explanation.steps, known.explanation.steps);
}

#[test]
fn the_bytes_are_bounded_and_the_worst_of_each_kind_are_there() {
    let many: Vec<_> = steps().into_iter().cycle().take(1_000).collect();
    let mut all = Vec::new();
    for kind in KINDS {
        all.extend((0..16).map(|rank| slow(kind, 1_000 - rank, many.clone())));
    }
    let encoded = encode(&all);
    assert!(encoded.iter().map(Vec::len).sum::<usize>() <= BYTES_MAX);
    let kept = decoded(&encoded);
    assert!(kept.len() > KINDS.len() && kept.len() < all.len(), "{}", kept.len());
    for kind in KINDS {
        let of_kind = kept.iter().filter(|slow| slow.explanation.operation == kind);
        let times: Vec<_> = of_kind.map(|slow| slow.explanation.time.as_micros()).collect();
        assert_eq!(times[0], 1_000, "{kind}");
        assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{times:?}");
    }
    assert!(kept.iter().all(|slow| slow.explanation.steps.len() == STEPS_MAX));
    // The longest steps are those that are there, in their order.
    let mut one: Vec<_> = (1..=100).map(|n| step(StepSource::Log, Outcome::Done, n)).collect();
    one.swap(0, 99);
    let kept = decoded(&encode(&[slow("put", 1, one)]));
    let times: Vec<_> = kept[0].explanation.steps.iter().map(|s| s.time.as_nanos()).collect();
    assert_eq!(times, [100].into_iter().chain(69..=99).collect::<Vec<_>>());
}
