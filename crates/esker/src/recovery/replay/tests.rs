use super::*;
use crate::error::ErrorKind;
use crate::options::Options;
use crate::options::settings::Settings;

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
    let mut replay =
        Replay::new((Path::new("wal"), 64), settings.memtable_sizes(), &pool, catalog, false);
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
    let mut replay =
        Replay::new((Path::new("wal"), 64), settings.memtable_sizes(), &pool, &mut catalog, false);
    let two = encoded(&[put(0, b"a", b"1"), put(0, b"b", b"2")]);
    for (payload, operations) in [(&two[..two.len() - 1], 2), (&[99][..], 1), (&two[..], 1)] {
        let error = replay.apply(500, operations, payload).unwrap_err();
        let Error::Corruption(corruption) = &error else { panic!("{error}") };
        assert_eq!((corruption.offset, corruption.section), (500, "log operation"));
    }
}

/// A small generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % bound
    }
}

/// An entry, or a range tombstone with its end in place of the value.
type Row = (u32, Vec<u8>, Seq, Option<Kind>, Vec<u8>);

/// The batches of a log: position, number of operations, payload.
type Batches = Vec<(Seq, u32, Vec<u8>)>;

/// Random batches with their positions, and what must be in the memtables afterwards.
fn history(random: &mut Random) -> (Batches, Vec<Row>, Seq) {
    let create = |keyspace, name| Op::CreateKeyspace { keyspace, name, comparator: "" };
    let first = encoded(&[create(1, "one"), create(2, "two"), create(3, "gone")]);
    let (mut batches, mut rows) = (vec![(64, 3, first)], Vec::new());
    let (mut position, drop_at) = (1000, 1000 + random.below(2_000_000));
    let mut dropped = false;
    for _ in 0..6000 {
        if position >= drop_at && !dropped {
            dropped = true;
            batches.push((position, 1, encoded(&[Op::DropKeyspace { keyspace: 3 }])));
            position += 64;
        }
        let (mut payload, count) = (Vec::new(), 1 + random.below(3));
        for n in 0..count {
            let (keyspace, seq) = (random.below(5) as u32, position + n);
            let mut key = || format!("{:012}", random.below(900)).into_bytes();
            let (key, end) = (key(), key());
            let (kind, value) = match random.below(20) {
                0 => (None, end),
                1..4 => (Some(Kind::Delete), Vec::new()),
                _ => (Some(Kind::Put), vec![n as u8; random.below(400) as usize]),
            };
            let op = match kind {
                None => Op::DeleteRange { keyspace, start: Some(&key), end: Some(&value) },
                Some(Kind::Delete) => Op::Delete { keyspace, key: &key },
                Some(_) => Op::Put { keyspace, key: &key, value: &value },
            };
            op.encode(&mut payload);
            // Keyspace 4 never was, and 3 was there when its first writes came.
            if keyspace < 3 || keyspace == 3 && !dropped {
                rows.push((keyspace, key, seq, kind, value));
            }
        }
        batches.push((position, count as u32, payload));
        position += 8 * (4 + random.below(100));
    }
    (batches, rows, position)
}

/// Everything in a set, which must belong there.
fn rows_of(set: &MemtableSet) -> Vec<Row> {
    let mut rows = Vec::new();
    for keyspace in set.keyspaces() {
        let mut shown = Vec::new();
        set.bytewise().cursors(keyspace, |_, source, _| {
            let crate::memtable::MemorySource::Merged(mut cursor) = source else {
                panic!("not sorted")
            };
            use crate::base::Cursor;
            cursor.seek_to_first().unwrap();
            while cursor.valid() {
                let (key, value) = (cursor.key().to_vec(), cursor.value().to_vec());
                shown.push((keyspace, key, cursor.seq(), Some(cursor.kind()), value));
                cursor.next().unwrap();
            }
        });
        assert!(shown.is_sorted_by_key(|row| (row.1.clone(), std::cmp::Reverse(row.2))));
        let table = set.bytewise().table(0).unwrap();
        for (_, key, seq, kind, value) in shown.iter().step_by(29) {
            let found = table.get(keyspace, key, seq + 1).unwrap();
            assert_eq!((found.seq, Some(found.kind), found.value), (*seq, *kind, &value[..]));
        }
        rows.extend(shown);
        let gone = table.tombstones(keyspace).into_iter();
        rows.extend(gone.map(|RangeTombstone { start, end, seq }| {
            (keyspace, start.unwrap(), seq, None, end.unwrap())
        }));
    }
    let end = set.sealed_at().unwrap_or(u64::MAX);
    assert!(rows.iter().all(|row| (set.start..end).contains(&row.2)));
    rows
}

#[test]
fn whatever_the_sets_and_the_threads_the_same_is_replayed() {
    let chosen = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok());
    for seed in chosen.map_or_else(|| (1..=4).collect(), |seed| vec![seed]) {
        println!("ESKER_SEED={seed}");
        let mut random = Random(seed);
        let (batches, mut expected, end) = history(&mut random);
        expected.sort_unstable_by_key(|row: &Row| row.2);
        let mut points: Vec<Seq> = (0..4).map(|_| 8 * random.below(end / 8)).collect();
        points.sort_unstable();
        points.retain(|point| *point > 64);
        for memtable_bytes in [16 << 10, 300 << 10, 64 << 20] {
            let mut settings = small();
            (settings.memtable_bytes, settings.small_set_bytes) = (memtable_bytes, memtable_bytes);
            let (mut catalog, pool) = (Catalog::new(Vec::new()), Arc::new(ChunkPool::new(0)));
            let filtered = memtable_bytes == 300 << 10;
            let at = (Path::new("wal"), 64);
            let mut replay =
                Replay::new(at, settings.memtable_sizes(), &pool, &mut catalog, filtered);
            replay.points.clone_from(&points);
            let ((), replay) = crate::recovery::relay::relay(at.0, replay, |sink| {
                batches.iter().try_for_each(|(at, count, payload)| sink(*at, *count, payload))
            })
            .unwrap();
            let sets = replay.finish(end);
            let mut rows: Vec<Row> = sets.iter().flat_map(|set| rows_of(set)).collect();
            rows.sort_unstable_by_key(|row| row.2);
            assert!(rows == expected, "{memtable_bytes}: {} rows", rows.len());
            for set in &sets[1..] {
                let inside =
                    |point: &&Seq| set.start < **point && **point < set.sealed_at().unwrap();
                assert_eq!(points.iter().find(inside), None, "a set reaches over a point");
            }
        }
    }
}

#[test]
fn memtables_of_a_replay_take_what_those_before_the_kill_took() {
    let mut settings = small();
    (settings.memtable_bytes, settings.small_set_bytes) = (256 << 10, 256 << 10);
    // Four sets, as full as a running database lets them become, of small entries.
    let pool = Arc::new(ChunkPool::new(0));
    let (mut batches, mut position, mut before) = (Vec::new(), 64_u64, 0);
    for _ in 0..4 {
        let table = Memtable::with_pool(crate::base::Bytewise, 256 << 10, pool.clone());
        while (table.bytes() as u64) < settings.memtable_bytes {
            let key = position.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            table.insert(0, &key, position, Kind::Put, b"twelve bytes");
            batches.push((position, encoded(&[put(0, &key, b"twelve bytes")])));
            position += 56;
        }
        before += table.bytes();
    }
    let mut catalog = Catalog::new(Vec::new());
    let mut replay =
        Replay::new((Path::new("wal"), 64), settings.memtable_sizes(), &pool, &mut catalog, false);
    let (mut most, mut set_most) = (0, 0);
    for (position, payload) in &batches {
        replay.apply(*position, 1, payload).unwrap();
        let building = replay.building.bytes();
        set_most = set_most.max(building);
        most = most.max(building + replay.sealed.iter().map(|set| set.bytes()).sum::<u64>());
    }
    let after: u64 = replay.finish(position).iter().map(|set| set.bytes()).sum();
    println!("{before} bytes before, {most} at most while replaying, {after} afterwards");
    // A set ends with the first batch that finds it full.
    assert!(set_most <= settings.memtable_bytes + 4096);
    // The entries take the same; their addresses take up to 16 bytes each, of some 80 here.
    assert!(most <= before as u64 * 5 / 4 && after <= before as u64 * 5 / 4);
}
