use super::*;

fn all_kinds() -> Vec<Op<'static>> {
    vec![
        Op::Put { keyspace: 1, key: b"k", value: b"v" },
        Op::Put { keyspace: 300, key: b"", value: b"" },
        Op::Delete { keyspace: 1, key: b"gone" },
        Op::DeleteRange { keyspace: 2, start: Some(b"a"), end: Some(b"b") },
        Op::DeleteRange { keyspace: 2, start: None, end: Some(b"b") },
        Op::DeleteRange { keyspace: 2, start: None, end: None },
        Op::CreateKeyspace { keyspace: 9, name: "blocks", comparator: "reverse" },
        Op::DropKeyspace { keyspace: u32::MAX },
        Op::Special { keyspace: 7, kind: Kind::Merge, key: b"k", stored: b"" },
        Op::Special { keyspace: 7, kind: Kind::ExpiringPut, key: b"k", stored: b"12345678value" },
        Op::Special { keyspace: 7, kind: Kind::ExpiringMerge, key: b"k", stored: b"12345678" },
        Op::SetTraits { keyspace: 7, operator: "sum", filter: "", ttl: 60_000 },
    ]
}

#[test]
fn operations_come_back_as_they_were() {
    let mut payload = Vec::new();
    for op in all_kinds() {
        op.encode(&mut payload);
    }
    let decoded: Result<Vec<_>, _> = Ops::new(&payload).collect();
    assert_eq!(decoded.unwrap(), all_kinds());
}

#[test]
fn every_truncation_is_an_error_or_a_shorter_list() {
    let mut payload = Vec::new();
    let mut ends = vec![0];
    for op in all_kinds() {
        op.encode(&mut payload);
        ends.push(payload.len());
    }
    for len in 0..payload.len() {
        let decoded: Result<Vec<_>, _> = Ops::new(&payload[..len]).collect();
        assert_eq!(decoded.is_ok(), ends.contains(&len), "length {len}");
    }
}
