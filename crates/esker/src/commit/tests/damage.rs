//! Damaged logs: every byte cut, every bit flipped, garbage behind the end (C4, R6).

use super::*;
use crate::fs::Fs;
use crate::wal::format::{HEADER_BYTES, RECORD_HEADER_LEN, SEGMENT_HEADER_LEN};
use crate::wal::memfs::{Rng, seed};
use crate::wal::{Inspected, inspect};
use std::sync::atomic::Ordering;

/// A log over several log files of 4 KiB of data each; records span them.
fn small_log(fs: &Arc<MemFs>, kind: LogKind, records: usize) -> (Pipeline, Vec<Vec<u8>>) {
    let log = create(fs, kind, 8 << 10);
    let mut rng = Rng::new(5);
    let written: Vec<_> = (0..records)
        .map(|_| {
            let len = 200 + rng.below(300) as usize;
            let payload = rng.bytes(len);
            put(&log, &payload, Class::Process).unwrap();
            payload
        })
        .collect();
    (log, written)
}

/// Checks that damage was refused, or took at most the last `may_lose` records.
fn check_prefix(outcome: Result<(Vec<Batch>, Recovered)>, written: &[Vec<u8>], may_lose: usize) {
    match outcome {
        Ok((batches, _)) => {
            let found = payloads(&batches);
            assert_eq!(found, written[..found.len()], "a changed payload was returned");
            assert!(found.len() + may_lose >= written.len(), "{} records are left", found.len());
        }
        Err(error) => assert!(is_corruption(&error), "{error}"),
    }
}

#[test]
fn truncation_at_every_byte_is_corruption_unless_nothing_was_there() {
    for closed in [false, true] {
        let fs = MemFs::new();
        let (log, written) = small_log(&fs, LogKind::Mapped, 30);
        if closed {
            log.close(&[]).unwrap();
        }
        let paths = file_paths(&fs);
        assert!(paths.len() >= 3);
        for path in &paths {
            let whole = fs.read(path);
            for len in (0..whole.len()).rev() {
                fs.overwrite(path, whole[..len].to_vec());
                check_prefix(replay(&fs), &written, 0);
            }
            fs.overwrite(path, whole);
        }
        assert_eq!(payloads(&replay(&fs).unwrap().0), written);
    }
}

#[test]
fn every_bit_flip_is_harmless_or_corruption_except_in_the_last_record() {
    for closed in [false, true] {
        let fs = MemFs::new();
        let (log, written) = small_log(&fs, LogKind::Mapped, 24);
        if closed {
            log.close(&[]).unwrap();
        }
        let mut refused = 0u64;
        for path in file_paths(&fs) {
            let len = fs.read(&path).len();
            for offset in 0..len {
                let in_header = offset < HEADER_BYTES as usize;
                let in_copy = offset % 2048 < SEGMENT_HEADER_LEN;
                if in_header && !in_copy && offset % 61 != 0 {
                    continue;
                }
                for bit in 0..8 {
                    fs.patch(&path, offset, 1 << bit);
                    let outcome = replay(&fs);
                    refused += u64::from(outcome.is_err());
                    check_prefix(outcome, &written, usize::from(!closed));
                    fs.patch(&path, offset, 1 << bit);
                }
            }
        }
        assert!(refused > 24 * 200 * 8 / 2, "{refused} flips were noticed");
        assert_eq!(payloads(&replay(&fs).unwrap().0), written);
    }
}

#[test]
fn in_another_life_damage_is_proved_by_what_was_synced() {
    for kind in KINDS {
        let fs = MemFs::new();
        let (log, mut written) = small_log(&fs, kind, 12);
        let synced = log.visible();
        log.sync(synced).unwrap();
        for _ in 0..8 {
            let payload = vec![0xAB; 100];
            put(&log, &payload, Class::Process).unwrap();
            written.push(payload);
        }
        let other = fs.copied();
        let starts: Vec<_> = replay(&other).unwrap().0.iter().map(|batch| batch.start).collect();
        let chain = replay(&other).unwrap().1.chain;
        for (index, start) in starts.iter().enumerate() {
            let log_file = chain.log_files.iter().rfind(|it| it.header.start <= *start).unwrap();
            let offset = (HEADER_BYTES + start - log_file.header.start) as usize;
            other.patch(&log_file.path, offset + 8, 1);
            let outcome = replay(&other);
            if *start < synced {
                assert!(is_corruption(&outcome.unwrap_err()), "record {index} was synced");
                let (kept, recovered) = replay_from(&other, FIRST, Policy::KeepPrefix).unwrap();
                assert_eq!(payloads(&kept), written[..index]);
                assert!(recovered.damage.is_some() && recovered.end == *start);
            } else {
                // No caller was told that it survives power loss.
                assert_eq!(payloads(&outcome.unwrap().0), written[..index]);
            }
            other.patch(&log_file.path, offset + 8, 1);
        }
    }
}

#[test]
fn garbage_behind_the_end_is_ignored_and_later_writes_survive_it() {
    for kind in KINDS {
        let mut rng = Rng::new(seed(3));
        for tail in 0..5 {
            let fs = MemFs::new();
            let (log, mut written) = small_log(&fs, kind, 20);
            let end = log.visible();
            drop(log);
            let (_, recovered) = replay(&fs).unwrap();
            let last = recovered.chain.log_files.last().unwrap();
            let from = (HEADER_BYTES + end - last.header.start) as usize;
            let mut bytes = fs.read(&last.path);
            let donor = fs.read(&recovered.chain.log_files[0].path);
            let len = bytes.len() - from;
            let garbage = match tail {
                0 => vec![0; len],
                1 => vec![0xFF; len],
                2 => rng.bytes(len),
                // Records of an earlier use of a log file, at their own offsets and elsewhere.
                3 => donor[from..].to_vec(),
                _ => donor[HEADER_BYTES as usize..].iter().copied().cycle().take(len).collect(),
            };
            bytes[from..].copy_from_slice(&garbage);
            fs.overwrite(&last.path, bytes);
            let (batches, recovered) = replay(&fs).unwrap();
            assert_eq!(payloads(&batches), written);
            assert_eq!(recovered.end, end);
            let log = resume(&fs, kind, 8 << 10, recovered);
            for _ in 0..20 {
                let payload = rng.bytes(333);
                put(&log, &payload, Class::Process).unwrap();
                written.push(payload);
            }
            drop(log);
            assert_eq!(payloads(&replay(&fs).unwrap().0), written, "tail {tail}");
        }
    }
}

#[test]
fn a_missing_segment_is_corruption_and_a_spare_one_is_not() {
    let fs = MemFs::new();
    let (log, written) = small_log(&fs, LogKind::Plain, 40);
    log.prepare_ahead().unwrap();
    drop(log);
    let paths = file_paths(&fs);
    let spare = usize::from(payloads(&replay(&fs).unwrap().0) == written);
    for path in &paths[..paths.len() - spare] {
        let copy = fs.killed();
        copy.remove_file(path).unwrap();
        check_prefix(replay(&copy), &written, 0);
    }
    for number in [3, 900] {
        // A second name for an old log file, and files that do not belong to the database.
        let copy = fs.killed();
        let stray = dir().join(crate::wal::file_name(number * 1000));
        copy.open(&stray, crate::fs::OpenMode::CreateNew).unwrap();
        copy.overwrite(&stray, fs.read(&paths[0]));
        let other = dir().join("notes.txt");
        copy.open(&other, crate::fs::OpenMode::CreateNew).unwrap();
        let (batches, recovered) = replay(&copy).unwrap();
        assert_eq!(payloads(&batches), written);
        drop(resume(&copy, LogKind::Plain, 8 << 10, recovered));
        assert_eq!(payloads(&replay(&copy).unwrap().0), written);
        assert!(copy.paths().contains(&other));
    }
}

#[test]
fn an_unknown_version_is_refused_before_any_write() {
    let fs = MemFs::new();
    let (log, _) = small_log(&fs, LogKind::Plain, 3);
    drop(log);
    let path = file_paths(&fs).remove(0);
    fs.patch(&path, 8, 4);
    assert!(replay(&fs).is_ok(), "the copy still says version 3");
    fs.patch(&path, 2048 + 8, 4);
    let before = fs.read(&path);
    for policy in [Policy::Refuse, Policy::KeepPrefix] {
        let error = replay_from(&fs, FIRST, policy).unwrap_err();
        assert!(matches!(error, Error::UnknownFormat { found: 7, supported: 3, .. }), "{error}");
    }
    assert_eq!(fs.read(&path), before);
}

#[test]
fn errors_name_the_file_and_the_offset() {
    let fs = MemFs::new();
    let (log, _) = small_log(&fs, LogKind::Plain, 30);
    drop(log);
    let path = file_paths(&fs).remove(1);
    let chain = replay(&fs).unwrap().1.chain;
    let start = chain.log_files[1].header.start;
    let victim = replay(&fs).unwrap().0.into_iter().find(|batch| batch.start >= start).unwrap();
    let offset = HEADER_BYTES + victim.start - start;
    fs.patch(&path, offset as usize + RECORD_HEADER_LEN, 0x10);
    let Err(Error::Corruption(found)) = replay(&fs) else { panic!("damage went unnoticed") };
    assert_eq!((found.path, found.offset, found.section), (path, offset, "log record"));
}

#[test]
fn a_read_error_is_not_the_end_of_the_log() {
    let fs = MemFs::new();
    let (log, _) = small_log(&fs, LogKind::Plain, 5);
    drop(log);
    fs.knobs.fail_reads_from.store(HEADER_BYTES, Ordering::Relaxed);
    let outcome = replay_from(&fs, FIRST, Policy::KeepPrefix);
    assert!(matches!(outcome, Err(Error::Io { operation: "read", .. })));
}

#[test]
fn inspect_shows_segments_records_and_gaps() {
    let fs = MemFs::new();
    let (log, written) = small_log(&fs, LogKind::Plain, 12);
    log.write(b"x", 1, Class::Buffered, |_| Ok(()), |(), _| Ok(())).unwrap();
    let end = log.visible();
    drop(log);
    let victim = replay(&fs).unwrap().0[3].start;
    fs.patch(&file_paths(&fs)[0], (HEADER_BYTES + victim - FIRST) as usize, 1);
    let (mut log_files, mut records, mut gaps) = (0, 0, Vec::new());
    inspect(&*fs, &dir(), FIRST, |seen| {
        match seen {
            Inspected::LogFile { same_life, .. } => {
                assert!(same_life);
                log_files += 1;
            }
            Inspected::Record(_) => records += 1,
            Inspected::Gap { start, end } => gaps.push((start, end)),
            other => panic!("{other:?}"),
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(log_files, file_paths(&fs).len());
    assert_eq!(records, written.len() + 1 - 1);
    assert_eq!(gaps.len(), 2);
    assert_eq!((gaps[0].0, gaps[1].0), (victim, end));
}

#[test]
fn interrupted_preparations_are_blank_and_damaged_headers_are_not() {
    let fs = MemFs::new();
    let (log, written) = small_log(&fs, LogKind::Plain, 3);
    drop(log);
    let spare = dir().join(crate::wal::file_name(77));
    fs.open(&spare, crate::fs::OpenMode::CreateNew).unwrap();
    let used = fs.read(&file_paths(&fs)[0]);
    let cut_off = |len: usize| [&used[..len], &[0; 9000][len..]].concat();
    // The second copy's last bytes.
    let ended = |len: usize| [&[0; 2152][len..], &used[2152 - len..2152], &[0; 9000]].concat();
    for (bytes, accepted) in [
        (cut_off(1), true),
        (cut_off(50), true),
        (used[..50].to_vec(), true),
        ([cut_off(50), vec![1]].concat(), false),
        ([&used[..50], &used[2048..]].concat(), false),
        (ended(1), true),
        (ended(103), true),
        ([ended(50), vec![1]].concat(), false),
        ([&[1], &ended(50)[1..]].concat(), false),
        ([&ended(50)[..2152], &[1], &ended(50)[2153..]].concat(), false),
        (vec![], true),
        (vec![0; 100], true),
        (vec![0; 8192], true),
        ([vec![0; 5000], vec![1]].concat(), false),
        (vec![1; 50], false),
        (vec![1; 8192], false),
    ] {
        fs.overwrite(&spare, bytes);
        match replay(&fs) {
            Ok((batches, recovered)) => {
                assert!(accepted);
                assert_eq!(payloads(&batches), written);
                assert_eq!(recovered.chain.next_number, 78);
            }
            Err(error) => assert!(!accepted && is_corruption(&error), "{error}"),
        }
        let (kept, _) = replay_from(&fs, FIRST, Policy::KeepPrefix).unwrap();
        assert_eq!(payloads(&kept), written);
    }
    assert_eq!(fs.knobs.syncs_after_failure.load(Ordering::Relaxed), 0);
}

#[test]
fn a_crafted_length_is_not_believed() {
    use crate::wal::format::{LogFileHeader, Record, RecordKind};
    // A small file that claims 4 GiB, with a record that claims 1 GiB; all checksums are right.
    let fs = MemFs::new();
    let path = dir().join(crate::wal::file_name(1));
    fs.open(&path, crate::fs::OpenMode::CreateNew).unwrap();
    let header = LogFileHeader {
        nonce: 1,
        serial: 1,
        start: 8,
        capacity: 1 << 32,
        predecessor: 0,
        incarnation: crate::fs::Incarnation::default(),
        life: 0,
    };
    let record = Record {
        position: 8,
        kind: RecordKind::Batch,
        operations: 1,
        payload_len: 1 << 30,
        payload_sum: 0,
        published: 8,
        synced: 8,
    };
    let mut bytes = header.encode_page();
    fs.overwrite(&path, bytes.clone());
    assert_eq!(replay(&fs).unwrap().1.end, 8, "an empty log file, though a short one");
    bytes.extend_from_slice(&record.encode(1));
    bytes.extend_from_slice(&[0; 100]);
    fs.overwrite(&path, bytes);
    assert!(is_corruption(&replay(&fs).unwrap_err()));
    let (_, recovered) = replay_from(&fs, FIRST, Policy::KeepPrefix).unwrap();
    assert_eq!(recovered.end, 8);
    inspect(&*fs, &dir(), FIRST, |_| Ok(())).unwrap();
}
