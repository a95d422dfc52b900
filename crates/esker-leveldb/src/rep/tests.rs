use super::{HEADER_BYTES, Op, append, empty, push, read};

/// A key, and the value if it is a put.
type Found = (Vec<u8>, Option<Vec<u8>>);

fn ops(rep: &[u8]) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    let each = |op: Op<'_>| match op {
        Op::Put(key, value) => found.push((key.to_vec(), Some(value.to_vec()))),
        Op::Delete(key) => found.push((key.to_vec(), None)),
    };
    read(rep, each).map_err(|status| status.0)?;
    Ok(found)
}

#[test]
fn what_is_pushed_is_read_and_the_bytes_are_those_of_leveldb() {
    let mut rep = empty();
    push(&mut rep, Op::Put(b"k", b"value"));
    push(&mut rep, Op::Delete(b"gone"));
    assert_eq!(&rep[8..], b"\x02\0\0\0\x01\x01k\x05value\0\x04gone");
    let long = vec![7; 300];
    let mut other = empty();
    push(&mut other, Op::Put(&long, b""));
    append(&mut rep, &other);
    let expected = vec![
        (b"k".to_vec(), Some(b"value".to_vec())),
        (b"gone".to_vec(), None),
        (long.clone(), Some(Vec::new())),
    ];
    assert_eq!(ops(&rep), Ok(expected));
}

#[test]
fn damaged_batches_are_refused() {
    let mut rep = empty();
    push(&mut rep, Op::Put(b"key", b"value"));
    push(&mut rep, Op::Delete(b"gone"));
    for len in 0..rep.len() {
        assert!(ops(&rep[..len]).is_err(), "cut at {len}");
    }
    let mut miscounted = rep.clone();
    miscounted[8] = 3;
    assert_eq!(ops(&miscounted), Err("Corruption: WriteBatch has wrong count".into()));
    let mut odd = rep.clone();
    odd[HEADER_BYTES] = 9;
    assert_eq!(ops(&odd), Err("Corruption: unknown WriteBatch tag".into()));
    let mut endless = empty();
    endless.extend([1; 1]);
    endless.extend([0xff; 20]);
    assert!(ops(&endless).is_err());
}
