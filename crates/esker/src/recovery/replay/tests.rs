use super::*;
use crate::error::ErrorKind;
use crate::options::Options;

fn encoded(ops: &[Op<'_>]) -> Vec<u8> {
    let mut payload = Vec::new();
    ops.iter().for_each(|op| op.encode(&mut payload));
    payload
}

fn put<'a>(keyspace: u32, key: &'a [u8], value: &'a [u8]) -> Op<'a> {
    Op::Put { keyspace, key, value }
}

fn small() -> Settings {
    let mut options = Options::default();
    options.memory = Some(4 << 20);
    options.memtable_bytes = Some(16 << 10);
    Settings::new(&options).unwrap()
}

/// Replays batches, starting at 64 and 1,000 positions apart, and returns the sets, newest first.
fn replay(catalog: &mut Catalog, batches: &[Vec<u8>]) -> Result<Vec<Arc<MemtableSet>>> {
    let (settings, pool) = (small(), Arc::new(ChunkPool::new(0)));
    let mut replay = Replay::new((Path::new("wal"), 64), &settings, &pool, catalog, false);
    for (number, payload) in batches.iter().enumerate() {
        let position = 64 + 1000 * number as u64;
        replay.apply(position, Ops::new(payload).count() as u32, payload)?;
    }
    Ok(replay.finish(64 + 1000 * batches.len() as u64))
}

#[test]
fn operations_get_the_numbers_that_they_had() {
    let mut catalog = Catalog::new(Vec::new());
    let batch = encoded(&[put(0, b"a", b"1"), put(0, b"b", b"2"), put(0, b"a", b"3")]);
    let sets = replay(&mut catalog, &[batch]).unwrap();
    assert_eq!(sets.len(), 2);
    let table = sets[1].bytewise().table(0).unwrap();
    let seq = |key: &[u8], below| table.get(0, key, below).map(|found| found.seq);
    assert_eq!((seq(b"a", 1000), seq(b"a", 66), seq(b"b", 1000)), (Some(66), Some(64), Some(65)));
}

#[test]
fn what_was_replayed_is_sealed_and_an_empty_set_takes_writes() {
    let mut catalog = Catalog::new(Vec::new());
    let sets = replay(&mut catalog, &[encoded(&[put(0, b"a", b"1")])]).unwrap();
    assert_eq!((sets[0].start, sets[0].sealed_at()), (1064, None));
    assert!(sets[0].is_empty());
    assert_eq!((sets[1].start, sets[1].sealed_at()), (64, Some(1064)));
}

#[test]
fn an_empty_log_leaves_one_empty_set() {
    let mut catalog = Catalog::new(Vec::new());
    let sets = replay(&mut catalog, &[]).unwrap();
    assert_eq!((sets.len(), sets[0].start, sets[0].sealed_at()), (1, 64, None));
}

#[test]
fn sets_are_sealed_as_they_fill() {
    let mut catalog = Catalog::new(Vec::new());
    let value = vec![0; 2000];
    let batches: Vec<_> =
        (0..40_u32).map(|n| encoded(&[put(0, &n.to_be_bytes(), &value)])).collect();
    let sets = replay(&mut catalog, &batches).unwrap();
    assert!(sets.len() > 3, "{} sets", sets.len());
    for pair in sets.windows(2) {
        assert_eq!(pair[1].sealed_at(), Some(pair[0].start), "sets follow without a gap");
    }
}

#[test]
fn keyspaces_are_made_and_dropped_in_the_order_of_the_log() {
    let mut catalog = Catalog::new(Vec::new());
    let create = |keyspace, name| Op::CreateKeyspace { keyspace, name, comparator: "" };
    let batches = [
        encoded(&[create(1, "a")]),
        encoded(&[put(1, b"k", b"first")]),
        encoded(&[Op::DropKeyspace { keyspace: 1 }]),
        encoded(&[put(1, b"late", b"x")]),
        encoded(&[create(2, "a")]),
        encoded(&[put(2, b"k", b"second"), put(77, b"k", b"of nobody")]),
    ];
    let sets = replay(&mut catalog, &batches).unwrap();
    let table = sets[1].bytewise().table(0).unwrap();
    assert_eq!(catalog.by_name(0, "a").unwrap().id, 2);
    assert!(table.get(1, b"late", u64::MAX >> 8).is_none(), "it came after the drop");
    assert_eq!(table.get(2, b"k", u64::MAX >> 8).unwrap().value, b"second");
    assert!(table.get(77, b"k", u64::MAX >> 8).is_none());
}

#[test]
fn a_change_of_keyspaces_alone_is_flushed_too() {
    let mut catalog = Catalog::new(Vec::new());
    let batch = encoded(&[Op::CreateKeyspace { keyspace: 1, name: "a", comparator: "" }]);
    let sets = replay(&mut catalog, &[batch]).unwrap();
    assert_eq!(sets.len(), 2);
    assert_eq!(sets[1].sealed_at(), Some(1064));
}

#[test]
fn writes_in_an_order_that_is_not_known_refuse() {
    let mut catalog = Catalog::new(Vec::new());
    let batches = [
        encoded(&[Op::CreateKeyspace { keyspace: 1, name: "a", comparator: "mine" }]),
        encoded(&[put(1, b"k", b"v")]),
    ];
    assert!(replay(&mut catalog, &batches[..1]).is_ok());
    let error = replay(&mut Catalog::new(Vec::new()), &batches).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ComparatorMissing);
}

#[test]
fn operations_that_cannot_be_read_are_corruption_at_their_position() {
    let mut catalog = Catalog::new(Vec::new());
    let (settings, pool) = (small(), Arc::new(ChunkPool::new(0)));
    let mut replay = Replay::new((Path::new("wal"), 64), &settings, &pool, &mut catalog, false);
    let two = encoded(&[put(0, b"a", b"1"), put(0, b"b", b"2")]);
    for (payload, operations) in [(&two[..two.len() - 1], 2), (&[99][..], 1), (&two[..], 1)] {
        let error = replay.apply(500, operations, payload).unwrap_err();
        let Error::Corruption(corruption) = &error else { panic!("{error}") };
        assert_eq!((corruption.offset, corruption.section), (500, "log operation"));
    }
}
