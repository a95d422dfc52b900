use super::*;

#[test]
fn every_number_survives() {
    let stats = distinct();
    assert_eq!(Stats::decode(&stats.encode()), Some(stats));
    assert_eq!(Stats::decode(&Stats::default().encode()), Some(Stats::default()));
}

#[test]
fn any_piece_of_the_bytes_is_refused() {
    let bytes = distinct().encode();
    for len in 0..bytes.len() {
        assert_eq!(Stats::decode(&bytes[..len]), None, "{len} of {} bytes", bytes.len());
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(Stats::decode(&longer), None);
}

#[test]
fn no_byte_that_changes_makes_decoding_fail_otherwise_than_by_none() {
    let bytes = distinct().encode();
    for at in 0..bytes.len() {
        for flip in [1, 0x40, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let _ = Stats::decode(&changed);
        }
    }
}

/// Statistics with the metrics of `names` only, in this order, and one that no version has.
fn partial(names: &[&str]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_varint(&mut out, names.len() as u64 + 1);
    put_bytes(&mut out, b"esker_later");
    put_varint(&mut out, 1);
    put_varint(&mut out, 2);
    for tag in [0, 77] {
        put_bytes(&mut out, b"label");
        out.push(tag);
        put_varint(&mut out, 5);
        put_varint(&mut out, 6);
    }
    for name in names {
        let metric = METRICS.iter().find(|metric| metric.name == *name).unwrap();
        encode_metric(metric, &distinct(), &mut out);
    }
    out
}

#[test]
fn other_versions_are_understood_as_far_as_they_agree() {
    let all = distinct();
    let decoded = Stats::decode(&partial(&["esker_gets", "esker_level_bytes"])).unwrap();
    assert_eq!((decoded.puts, decoded.gets), (0, all.gets));
    let (tree, whole) = (&decoded.trees[0], &all.trees[0]);
    assert_eq!((&tree.keyspace, tree.partitions), (&whole.keyspace, 0));
    assert_eq!(tree.base.bytes, whole.base.bytes);
    assert_eq!(tree.deltas.len(), whole.deltas.len());
}

#[test]
fn a_metric_with_other_labels_is_ignored() {
    let mut out = MAGIC.to_vec();
    put_varint(&mut out, 1);
    put_bytes(&mut out, b"esker_puts");
    put_varint(&mut out, 1);
    put_varint(&mut out, 1);
    put_bytes(&mut out, b"somewhere");
    put_part(&mut out, SamplePart::Value);
    put_varint(&mut out, 9);
    assert_eq!(Stats::decode(&out), Some(Stats::default()));
}

#[test]
fn levels_that_leave_out_others_are_ignored() {
    let mut out = MAGIC.to_vec();
    put_varint(&mut out, 1);
    put_bytes(&mut out, b"esker_level_bytes");
    put_varint(&mut out, 2);
    put_varint(&mut out, 1);
    put_bytes(&mut out, b"default");
    put_bytes(&mut out, b"delta_4000000000");
    put_part(&mut out, SamplePart::Value);
    put_varint(&mut out, 9);
    let decoded = Stats::decode(&out).unwrap();
    assert_eq!((decoded.trees.len(), decoded.trees[0].deltas.len()), (1, 0));
}

/// Statistics with an operation among the slowest.
fn with_slowest() -> Stats {
    let dir = tempfile::tempdir().unwrap();
    let db = crate::Db::open(&dir).unwrap();
    let explanation = db.explain_put("secret-key", "secret-value").unwrap();
    db.close().unwrap();
    let when = std::time::UNIX_EPOCH + std::time::Duration::from_micros(5);
    let slowest = vec![crate::SlowOperation { when, explanation }];
    Stats { slowest, ..distinct() }
}

#[test]
fn the_slowest_operations_survive() {
    let stats = with_slowest();
    assert!(!stats.slowest[0].explanation.steps.is_empty());
    let bytes = stats.encode();
    assert!(!bytes.windows(6).any(|part| part == b"secret"));
    for len in 0..bytes.len() {
        assert_eq!(Stats::decode(&bytes[..len]), None, "{len} of {} bytes", bytes.len());
    }
    assert_eq!(Stats::decode(&bytes), Some(stats));
}

#[test]
fn a_version_that_does_not_know_the_slowest_operations_reads_the_numbers() {
    let mut bytes = with_slowest().encode();
    let at = bytes.windows(SLOWEST.len()).rposition(|part| part == SLOWEST).unwrap();
    bytes[at] = b'S';
    assert_eq!(Stats::decode(&bytes), Some(distinct()));
}
