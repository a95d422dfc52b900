use super::*;
use crate::compaction::partitioning::tests::segment;
use crate::run::{Role, Run, Segment, SegmentMeta, ValueUse, ValuesMeta};
use std::sync::Arc;

/// So many bytes of the value segment with this number.
fn used(number: u64, bytes: u64) -> ValueUse {
    let values = ValuesMeta {
        file: 2,
        offset: number * 4096,
        len: 4096,
        tail_len: 0,
        entries: 100,
        raw_bytes: 10_000,
        checksum: 0,
    };
    ValueUse { values, entries: 10, bytes }
}

#[test]
fn uses_are_walked_over_once_however_many_have_turned() {
    const SEGMENTS: u64 = 50;
    // Each segment refers to a value segment of its own and to the next one's.
    let segments = (0..SEGMENTS).map(|number| {
        let key = format!("{number:03}");
        let like = segment(&key, &key);
        let values = Box::new([used(number, 100), used(number + 1, 1)]);
        Segment::new(SegmentMeta { values, ..like.meta().clone() }, like.file().clone())
    });
    let base = Arc::new(Run::new(Role::Base, segments.collect(), Vec::new()));
    let part = Partition { base, ..Partition::default() };
    let uses = Uses::of(&part);
    assert_eq!(uses.steps.get(), 0, "nobody has asked");
    for _ in 0..3 {
        for number in 1..SEGMENTS {
            assert_eq!(uses.bytes(used(number, 0).place()), 101);
        }
    }
    assert_eq!(uses.bytes(used(0, 0).place()), 100);
    assert_eq!(uses.bytes(used(SEGMENTS, 0).place()), 1);
    assert_eq!(uses.bytes(used(SEGMENTS + 1, 0).place()), 0);
    assert_eq!(uses.steps.get(), 2 * SEGMENTS as usize);
}
