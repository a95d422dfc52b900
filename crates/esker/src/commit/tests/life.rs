//! The ordinary life of a log: write, reopen, seal, release, recycle, fill up, close.

use super::*;
use crate::wal::memfs::{Rng, seed};
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn what_was_written_is_replayed_in_order_across_reopens() {
    for kind in KINDS {
        let mut rng = Rng::new(seed(11));
        let fs = MemFs::new();
        let mut expected = Vec::new();
        let mut log = create(&fs, kind, 16 << 10);
        for round in 0..20 {
            for _ in 0..1 + rng.below(60) {
                // Some records are longer than a log file.
                let len = if rng.below(20) == 0 { 40_000 } else { rng.below(300) } as usize;
                let payload = rng.bytes(len.max(1));
                let start = AtomicU64::new(0);
                let end = log
                    .write(&payload, 1, Class::Process, Ok, |&seq, again| {
                        assert_eq!(seq, again);
                        start.store(seq, Ordering::Relaxed);
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(log.visible(), end);
                let start = start.into_inner();
                assert!(start.is_multiple_of(8) && end.is_multiple_of(8) && end > start);
                expected.push(Batch { start, operations: 1, payload });
            }
            if round % 2 == 0 {
                log.close(&[]).unwrap();
                assert!(matches!(put(&log, b"x", Class::Process), Err(Error::Closed)));
                log.close(&[]).unwrap();
            }
            let end = log.visible();
            drop(log);
            let (batches, recovered) = replay(&fs).unwrap();
            assert_eq!(batches, expected, "{kind:?} round {round}");
            assert_eq!(recovered.clean, round % 2 == 0);
            assert!(recovered.end >= end);
            log = resume(&fs, kind, 16 << 10, recovered);
        }
    }
}

#[test]
fn operation_counts_of_every_size_come_back() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 20);
        let counts = [0, 1, 0x00FF_FFFE, 0x00FF_FFFF, 0x0100_0000];
        let payload = vec![7; 0x0100_0000];
        for count in counts {
            let cut = if count < 2 { &payload[..1] } else { &payload[..] };
            log.write(cut, count, Class::Process, |_| Ok(()), |(), _| Ok(())).unwrap();
        }
        let (batches, _) = replay(&fs).unwrap();
        let replayed: Vec<_> = batches.iter().map(|batch| batch.operations).collect();
        assert_eq!(replayed, counts);
        assert!(batches[2..].iter().all(|batch| batch.payload == payload));
    }
}

#[test]
fn failed_checks_and_buffered_writes_leave_voids() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 16 << 10);
        let mut expected = Vec::new();
        for round in 0u32..500 {
            let payload = round.to_le_bytes();
            let before = log.visible();
            match round % 4 {
                0 => {
                    put(&log, &payload, Class::Process).unwrap();
                    expected.push(payload.to_vec());
                }
                1 => {
                    let refuse = |_| Err::<(), _>(Error::ReadOnly);
                    let outcome =
                        log.write(&payload, 1, Class::Process, refuse, |(), _| unreachable!());
                    assert!(matches!(outcome, Err(Error::ReadOnly)));
                }
                2 => {
                    let operations = round * 3;
                    let end = log
                        .write(&payload, operations, Class::Buffered, |_| Ok(()), |(), _| Ok(()))
                        .unwrap();
                    // Each operation has a sequence number of its own.
                    assert!(end - before > u64::from(operations));
                }
                _ => {
                    let unwinding = std::panic::AssertUnwindSafe(|| {
                        let check = |_| -> Result<()> { std::panic::resume_unwind(Box::new(0)) };
                        log.write(&payload, 1, Class::Process, check, |(), _| Ok(()))
                    });
                    assert!(std::panic::catch_unwind(unwinding).is_err());
                }
            }
            assert!(log.visible() > before, "the stretch was published");
        }
        let (batches, recovered) = replay(&fs).unwrap();
        assert_eq!(payloads(&batches), expected);
        assert_eq!(recovered.end, log.visible());
    }
}

#[test]
fn a_write_that_cannot_be_applied_poisons_and_is_never_seen() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 16 << 10);
        let visible = put(&log, b"before", Class::Process).unwrap();
        let apply = |(): &(), _| Err(Error::ReadOnly);
        let failed = log.write(b"half", 1, Class::Process, |_| Ok(()), apply);
        assert!(matches!(failed, Err(Error::Poisoned { .. })));
        assert_eq!(log.visible(), visible);
        assert!(matches!(put(&log, b"after", Class::Process), Err(Error::Poisoned { .. })));
        assert!(matches!(log.close(&[]), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_write_that_unwinds_while_applying_poisons_and_nobody_hangs() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 16 << 10);
        put(&log, b"before", Class::Process).unwrap();
        let unwinding = std::panic::AssertUnwindSafe(|| {
            let apply = |(): &(), _| std::panic::resume_unwind(Box::new(0));
            log.write(b"half", 1, Class::Process, |_| Ok(()), apply)
        });
        assert!(std::panic::catch_unwind(unwinding).is_err());
        assert!(matches!(put(&log, b"after", Class::Process), Err(Error::Poisoned { .. })));
        let reserved = log.seal(|position| position);
        assert!(matches!(log.wait_visible(reserved), Err(Error::Poisoned { .. })));
        assert!(matches!(log.sync(reserved), Err(Error::Poisoned { .. })));
        assert!(matches!(log.close(&[]), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn released_segments_are_recycled_and_the_log_stays_small() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 16 << 10);
        let payload = vec![3; 1000];
        let mut kept = Vec::new();
        let mut from = FIRST;
        for round in 0..300 {
            put(&log, &payload, Class::Process).unwrap();
            kept.push(payload.clone());
            if log.needs_preparation() {
                log.prepare_ahead().unwrap();
            }
            if round % 10 == 9 {
                from = log.seal(|position| position);
                log.wait_visible(from).unwrap();
                log.release_before(from).unwrap();
                kept.clear();
            }
        }
        put(&log, b"last", Class::Process).unwrap();
        kept.push(b"last".to_vec());
        assert!(fs.total_bytes() <= 5 * (16 << 10), "{} bytes", fs.total_bytes());
        assert_eq!(log.file_bytes(), fs.total_bytes());
        let counters = log.counters();
        assert!(counters.files_recycled > 10, "{counters:?}");
        assert!(counters.bytes >= 300 * 1000);
        let (batches, recovered) = replay_from(&fs, from, Policy::Refuse).unwrap();
        assert_eq!(payloads(&batches), kept);
        // Release after a reopen takes the old log files too.
        let log = resume(&fs, kind, 16 << 10, recovered);
        let end = put(&log, b"next", Class::Process).unwrap();
        log.release_before(end).unwrap();
        assert_eq!(file_paths(&fs).len(), 1, "{:?}", file_paths(&fs));
        let (batches, _) = replay_from(&fs, end, Policy::Refuse).unwrap();
        assert!(batches.is_empty());
    }
}

#[test]
fn a_log_that_starts_later_than_the_manifest_says_is_refused() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 8 << 10);
        for _ in 0..100 {
            put(&log, &[1; 500], Class::Process).unwrap();
        }
        let end = log.visible();
        log.release_before(end).unwrap();
        drop(log);
        assert!(is_corruption(&replay(&fs).unwrap_err()));
        assert!(replay_from(&fs, end, Policy::Refuse).is_ok());
        // The log also must not end before the manifest's start.
        assert!(is_corruption(&replay_from(&fs, end + (1 << 20), Policy::Refuse).unwrap_err()));
        for path in file_paths(&fs) {
            crate::fs::Fs::remove_file(&*fs, &path).unwrap();
        }
        assert!(is_corruption(&replay_from(&fs, end, Policy::Refuse).unwrap_err()));
        let (_, recovered) = replay_from(&fs, end, Policy::KeepPrefix).unwrap();
        assert!(recovered.damage.is_some());
        assert_eq!(recovered.end, end);
    }
}

#[test]
fn a_full_device_stops_writes_only_while_it_is_full() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 10);
        fs.knobs.free.store(0, Ordering::Relaxed);
        let mut expected = Vec::new();
        let full = loop {
            match put(&log, &[9; 1000], Class::Process) {
                Ok(_) => expected.push(vec![9; 1000]),
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::DiskFull { .. }), "{full}");
        let files = file_paths(&fs).len();
        for _ in 0..5 {
            assert!(matches!(put(&log, &[9; 1000], Class::Process), Err(Error::DiskFull { .. })));
        }
        assert_eq!(file_paths(&fs).len(), files, "no half files are left");
        // Room for less than a full log file is enough.
        fs.knobs.free.store(50 << 10, Ordering::Relaxed);
        put(&log, b"again", Class::Disk).unwrap();
        expected.push(b"again".to_vec());
        fs.knobs.free.store(1 << 30, Ordering::Relaxed);
        put(&log, &vec![1; 200_000], Class::Disk).unwrap();
        expected.push(vec![1; 200_000]);
        log.close(&[]).unwrap();
        let (batches, recovered) = replay(&fs).unwrap();
        assert_eq!(payloads(&batches), expected);
        assert!(recovered.clean);
    }
}

#[test]
fn what_a_sync_writes_out_is_not_mapped_any_more() {
    let fs = MemFs::new();
    let log = create(&fs, LogKind::Mapped, 1 << 20);
    // A little is left as it is.
    put(&log, &[1; 1000], Class::Process).unwrap();
    log.sync(log.visible()).unwrap();
    let from = log.visible();
    for _ in 0..20 {
        put(&log, &[2; 100_000], Class::Process).unwrap();
    }
    let until = log.visible();
    put(&log, &[3; 1000], Class::Buffered).unwrap();
    log.sync(until).unwrap();
    let files = crate::fs::Fs::list(&*fs, &dir()).unwrap();
    let of_file = |f: &crate::fs::DirEntry| (f.len, fs.released(&dir().join(&f.name)));
    let released: Vec<_> =
        files.iter().map(of_file).filter(|(_, parts)| !parts.is_empty()).collect();
    let bytes: u64 = released.iter().flat_map(|(_, parts)| parts).map(|(_, len)| len).sum();
    // Of the last file also little: more may come while the others are synced.
    assert!(bytes >= until - from, "{bytes} of {}", until - from);
    // A recycled file may have records of an earlier use up to its end.
    let whole =
        |(len, parts): &(u64, Vec<(u64, u64)>)| parts.iter().all(|(at, part)| at + part == *len);
    assert!(released.len() > 2 && released.iter().all(whole), "{released:?}");
    log.sync(log.visible()).unwrap();
}

#[test]
fn a_failed_sync_ends_writing_and_is_never_repeated() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 10);
        let durable = put(&log, b"durable", Class::Disk).unwrap();
        assert_eq!(log.synced(), durable);
        put(&log, b"process", Class::Process).unwrap();
        fs.knobs.fail_sync.store(true, Ordering::Relaxed);
        assert!(matches!(put(&log, b"lost", Class::Disk), Err(Error::Poisoned { .. })));
        fs.knobs.fail_sync.store(false, Ordering::Relaxed);
        assert!(matches!(put(&log, b"no", Class::Process), Err(Error::Poisoned { .. })));
        assert!(matches!(log.sync(log.visible()), Err(Error::Poisoned { .. })));
        assert!(matches!(log.close(&[]), Err(Error::Poisoned { .. })));
        assert_eq!(fs.knobs.syncs_after_failure.load(Ordering::Relaxed), 0);
        assert_eq!(log.synced(), durable);
        let mut rng = Rng::new(1);
        let (batches, _) = replay(&fs.power_cut(&mut rng, 50)).unwrap();
        assert_eq!(payloads(&batches), [b"durable".to_vec()]);
    }
}

#[test]
fn a_failed_append_of_the_plain_log_poisons() {
    let fs = MemFs::new();
    let log = create(&fs, LogKind::Plain, 64 << 10);
    put(&log, b"one", Class::Process).unwrap();
    fs.knobs.fail_write.store(true, Ordering::Relaxed);
    assert!(matches!(put(&log, b"two", Class::Process), Err(Error::Poisoned { .. })));
    fs.knobs.fail_write.store(false, Ordering::Relaxed);
    assert!(matches!(put(&log, b"three", Class::Process), Err(Error::Poisoned { .. })));
    let (batches, _) = replay(&fs).unwrap();
    assert_eq!(payloads(&batches), [b"one".to_vec()]);
}

#[test]
fn the_log_is_plain_where_mapping_is_not_supported() {
    let fs = MemFs::new();
    fs.knobs.no_map.store(true, Ordering::Relaxed);
    let log = create(&fs, LogKind::Auto, 64 << 10);
    assert!(!log.mapped());
    put(&log, b"one", Class::Process).unwrap();
    assert_eq!(file_paths(&fs).len(), 1);
    let mapped = Pipeline::create(
        config(&MemFs::new(), LogKind::Auto, 64 << 10),
        FIRST,
        Arc::new(Latch::new()),
    );
    assert!(mapped.unwrap().mapped());
    let refused = config(&fs, LogKind::Mapped, 64 << 10);
    let (_, recovered) = replay(&fs).unwrap();
    assert!(Pipeline::resume(refused, recovered, Arc::new(Latch::new())).is_err());
    assert_eq!(replay(&fs).unwrap().0.len(), 1, "the attempt changed nothing");
}

#[test]
fn an_empty_database_keeps_its_log_small() {
    let fs = MemFs::new();
    let log = create(&fs, LogKind::Mapped, 64 << 20);
    put(&log, b"one", Class::Process).unwrap();
    assert!(!log.needs_preparation());
    assert_eq!(fs.total_bytes(), 256 << 10);
}

#[test]
fn segments_double_while_they_fill_fast() {
    let fs = MemFs::new();
    let log = create(&fs, LogKind::Mapped, 1 << 20);
    for _ in 0..40 {
        put(&log, &vec![1; 100_000], Class::Process).unwrap();
    }
    let sizes: Vec<_> = file_paths(&fs).iter().map(|path| fs.read(path).len() >> 10).collect();
    assert_eq!(sizes[..4], [256, 512, 1024, 1024], "{sizes:?}");
}

#[test]
fn oversized_batches_are_refused_before_anything_is_reserved() {
    let fs = MemFs::new();
    let mut config = config(&fs, LogKind::Mapped, 64 << 10);
    config.payload_bytes_max = 1000;
    let log = Pipeline::create(config, FIRST, Arc::new(Latch::new())).unwrap();
    let outcome = put(&log, &[0; 1001], Class::Process);
    assert!(matches!(outcome, Err(Error::BatchTooLarge { len: 1001, max: 1000 })));
    let many = log.write(&[0; 8], 100, Class::Process, |_| Ok(()), |(), _| Ok(()));
    assert!(matches!(many, Err(Error::InvalidArgument { .. })));
    assert_eq!(log.visible(), FIRST);
}

#[test]
fn creation_refuses_a_log_with_records_and_repeats_after_a_crash() {
    for kind in KINDS {
        let fs = MemFs::new();
        drop(create(&fs, kind, 64 << 10));
        let log = create(&fs, kind, 64 << 10);
        assert_eq!(file_paths(&fs).len(), 1, "an empty log file of a creation cut off is replaced");
        put(&log, b"one", Class::Process).unwrap();
        drop(log);
        let again = Pipeline::create(config(&fs, kind, 64 << 10), FIRST, Arc::new(Latch::new()));
        assert!(matches!(again, Err(Error::Exists { .. })));
        assert_eq!(replay(&fs).unwrap().0.len(), 1);
    }
}

/// A log file that is used again gets a new header.
#[cfg(unix)]
#[test]
fn a_segment_that_got_another_name_is_not_recycled() {
    for linking in [false, true] {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("wal");
        let mut config = LogConfig::new(crate::fs::os(), dir.clone());
        config.kind = LogKind::Plain;
        config.file_bytes_max = 64 << 10;
        let log = Pipeline::create(config, FIRST, Arc::new(Latch::new())).unwrap();
        let header = |path: &std::path::Path| std::fs::read(path).unwrap()[..4096].to_vec();
        let mut linked = Vec::new();
        for round in 0..20 {
            for _ in 0..40 {
                put(&log, &[7; 2000], Class::Process).unwrap();
            }
            for entry in std::fs::read_dir(&dir).unwrap().filter(|_| linking) {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let other = base.path().join(format!("{round}-{name}"));
                std::fs::hard_link(dir.join(name), &other).unwrap();
                linked.push((header(&other), other));
            }
            log.release_before(log.seal(|position| position)).unwrap();
        }
        assert_eq!(log.counters().files_recycled == 0, linking);
        for (before, path) in linked {
            assert!(header(&path) == before, "{} was recycled", path.display());
        }
    }
}

#[test]
fn on_the_real_file_system_a_log_lives_through_recycling_and_reopening() {
    for kind in [LogKind::Plain, LogKind::Auto] {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("wal");
        let open = || {
            let mut config = LogConfig::new(crate::fs::os(), dir.clone());
            config.kind = kind;
            config.file_bytes_max = 64 << 10;
            config
        };
        let log = Pipeline::create(open(), FIRST, Arc::new(Latch::new())).unwrap();
        let mut rng = Rng::new(seed(51));
        let (mut expected, mut from) = (Vec::new(), FIRST);
        for round in 0..600 {
            let len = 1 + rng.below(2000) as usize;
            let payload = rng.bytes(len);
            let class = if round % 100 == 0 { Class::Disk } else { Class::Process };
            put(&log, &payload, class).unwrap();
            expected.push(payload);
            if log.needs_preparation() {
                log.prepare_ahead().unwrap();
            }
            if round % 150 == 149 {
                from = log.seal(|position| position);
                log.release_before(from).unwrap();
                expected.clear();
            }
        }
        assert!(log.counters().files_recycled > 0);
        let replayed = |expected: &[Vec<u8>]| {
            let mut found = Vec::new();
            let recovered =
                recover(&*crate::fs::os(), &dir, from, Policy::Refuse, |_, _, payload| {
                    found.push(payload.to_vec());
                    Ok(())
                })
                .unwrap();
            assert_eq!(found, expected);
            recovered
        };
        for clean in [false, true] {
            // The first round finds the files as a killed process leaves them.
            if clean {
                log.close(&[]).unwrap();
            }
            assert_eq!(replayed(&expected).clean, clean);
        }
        let log = Pipeline::resume(open(), replayed(&expected), Arc::new(Latch::new())).unwrap();
        put(&log, b"more", Class::Disk).unwrap();
        expected.push(b"more".to_vec());
        replayed(&expected);
    }
}
