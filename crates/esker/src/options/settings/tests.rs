use super::*;

fn settings(change: impl FnOnce(&mut Options)) -> Result<Settings> {
    let mut options = Options::default();
    change(&mut options);
    Settings::new(&options)
}

#[test]
fn everything_follows_from_the_one_memory_number() {
    let given = settings(|options| options.memory = Some(256 << 20)).unwrap();
    assert_eq!(given.memtable_bytes, 8 << 20);
    assert_eq!(write_budget(given.memtable_bytes), 32 << 20);
    assert_eq!(given.cache_bytes, 160 << 20);
    assert_eq!(given.batch_bytes_max, 32 << 20);
}

#[test]
fn the_shares_fit_into_the_number() {
    for memory in [1 << 20, 3 << 20, 64 << 20, 1 << 30, 40 << 30] {
        let given = settings(|options| options.memory = Some(memory)).unwrap();
        assert!(
            write_budget(given.memtable_bytes) + given.history_bytes + given.cache_bytes <= memory,
            "{given:?}"
        );
        assert!(given.memtable_bytes <= MEMTABLE_BYTES_MAX);
    }
}

#[test]
fn flushes_and_partitions_grow_with_the_number() {
    let sizes = |memory| {
        let given = settings(|options| options.memory = Some(memory)).unwrap();
        given.follow(1 << 40);
        (given.flush_bytes() >> 10, given.table_bytes >> 10, given.partition_bytes() >> 20)
    };
    assert_eq!(sizes(16 << 20), (512, 512, 4));
    assert_eq!(sizes(64 << 20), (2 << 10, 2 << 10, 16));
    assert_eq!(sizes(256 << 20), (8 << 10, 4 << 10, 64));
    assert_eq!(sizes(1 << 30), (32 << 10, 4 << 10, 64));
    assert_eq!(sizes(2 << 30), (64 << 10, 4 << 10, 85));
    assert_eq!(sizes(6 << 30), (192 << 10, 4 << 10, 256));
    assert_eq!(sizes(64 << 30), (256 << 10, 4 << 10, 256));
}

#[test]
fn flushes_and_partitions_are_large_only_where_there_are_many_data() {
    let mib = |memory: u64, asked: Option<u64>, data: u64| {
        let given = settings(|o| (o.memory, o.memtable_bytes) = (Some(memory), asked)).unwrap();
        given.follow(data << 20);
        assert_eq!(given.memtable_sizes().set_bytes, given.flush_bytes());
        (given.flush_bytes() >> 20, given.partition_bytes() >> 20)
    };
    // The data in MiB, a flush, and a partition.
    for (data, flush, partition) in [
        (0, 64, 85),
        (1 << 10, 64, 85),
        (2 << 10, 128, 170),
        (3 << 10, 192, 256),
        (1 << 20, 192, 256),
    ] {
        assert_eq!(mib(6 << 30, None, data), (flush, partition), "{data}");
    }
    // A budget with smaller sets and a size that was asked for give one size.
    assert_eq!((mib(256 << 20, None, 0), mib(256 << 20, None, 1 << 20)), ((8, 64), (8, 64)));
    let asked = |data| mib(6 << 30, Some(90 << 20), data);
    assert_eq!((asked(0), asked(1 << 20)), ((90, 120), (90, 120)));
    let asked = settings(|options| options.partition_bytes = Some(7 << 20)).unwrap();
    assert_eq!(asked.partition_bytes(), 7 << 20);
}

#[test]
fn a_memtable_size_that_was_asked_for_counts_above_the_floor() {
    let asked = |bytes| settings(|o| o.memtable_bytes = Some(bytes)).unwrap().memtable_bytes;
    assert_eq!(asked(1), MEMTABLE_BYTES_MIN);
    assert_eq!(asked(1 << 20), 1 << 20);
    assert_eq!(asked(500 << 20), 500 << 20);
}

#[test]
fn there_is_always_a_worker() {
    assert!(settings(|_| {}).unwrap().workers >= 1);
    assert_eq!(settings(|options| options.workers = Some(0)).unwrap().workers, 1);
    assert_eq!(settings(|options| options.workers = Some(1000)).unwrap().workers, 64);
}

#[test]
fn numbers_beyond_their_limits_are_named() {
    let error = settings(|options| options.block_bytes = 1).unwrap_err().to_string();
    assert!(error.contains("block_bytes") && error.contains("256"), "{error}");
    let error = settings(|options| options.memory = Some(0)).unwrap_err().to_string();
    assert!(error.contains("memory") && error.contains("1048576"), "{error}");
}

#[test]
fn the_default_memory_is_a_part_of_the_machine() {
    let given = settings(|_| {}).unwrap();
    assert!(given.memory >= MEMORY_BYTES_MIN);
    assert_eq!(given.memory, settings(|_| {}).unwrap().memory);
}

/// What a compaction takes beside the one segment that it writes.
#[test]
fn buffers_follow_from_the_number() {
    let kib = |memory: u64, workers| {
        let given = settings(|o| (o.memory, o.workers) = (Some(memory), workers)).unwrap();
        let ahead = given.read_ahead_bytes;
        for runs in [0, 1, 2, 5, 8] {
            let piece = given.piece_bytes(runs);
            assert!(piece * runs as u64 <= ahead && piece >= PIECE_BYTES_MIN, "{runs}: {piece}");
        }
        assert_eq!(given.piece_bytes(usize::MAX), PIECE_BYTES_MIN);
        (ahead >> 10, u64::from(given.collected_bytes) >> 10, given.piece_bytes(10) >> 10)
    };
    // The budget, workers; bytes read ahead, bytes collected, a piece of ten.
    assert_eq!(kib(1 << 20, Some(2)), (128, 64, 16));
    assert_eq!(kib(16 << 20, None), (1024, 128, 102));
    assert_eq!(kib(16 << 20, Some(2)), (512, 128, 51));
    assert_eq!(kib(64 << 20, Some(2)), (2048, 512, 204));
    assert_eq!(kib(256 << 20, Some(2)), (4096, 512, 256));
    assert_eq!(kib(1 << 30, Some(64)), (1024, 512, 102));
}

#[test]
fn a_small_number_has_few_compactions_at_once_but_flushes_apart() {
    let of = |memory, asked| {
        let given = settings(|o| (o.memory, o.workers) = (Some(memory), asked)).unwrap();
        (given.workers, given.flushes_apart())
    };
    assert_eq!(of(16 << 20, None), (1, true));
    assert_eq!(of(1 << 20, None), (1, true));
    assert!(of(64 << 20, None).0 >= 2);
    // The program decides if it says a number.
    assert_eq!(of(16 << 20, Some(4)), (4, true));
    assert_eq!(of(64 << 20, Some(1)), (1, false));
}

#[test]
fn a_space_amplification_that_cannot_be_kept_is_refused() {
    for bound in [1.1, 1.45, 100.0] {
        let given = settings(|options| options.max_space_amplification = bound).unwrap();
        assert_eq!(given.space, SpaceBound { amplification: bound, reserve: 16 << 20 });
    }
    for bound in [0.0, 1.0, 1.05, 101.0, f64::NAN, f64::INFINITY] {
        assert!(settings(|options| options.max_space_amplification = bound).is_err(), "{bound}");
    }
}
