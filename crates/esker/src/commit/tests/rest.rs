//! What the log keeps at rest.

use super::*;
use crate::commit::rest::{RestBytes, Resting};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The bytes of the first log file, and of one at rest.
const SMALL: u64 = 16 << 10;
const LARGE: u64 = 256 << 10;

fn config_with_rest(fs: &Arc<MemFs>, kind: LogKind) -> LogConfig {
    let mut config = config(fs, kind, LARGE);
    config.file_bytes_min = SMALL;
    config
}

fn create_with_rest(fs: &Arc<MemFs>, kind: LogKind) -> Pipeline {
    Pipeline::create(config_with_rest(fs, kind), FIRST, Arc::new(Latch::new())).unwrap()
}

fn bytes_on_disk(fs: &MemFs) -> u64 {
    file_paths(fs).into_iter().map(|path| fs.read(&path).len() as u64).sum()
}

/// Writes until large log files are in use, and others are kept and prepared.
fn fill(log: &Pipeline, number: u8) -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    for _ in 0..1500 {
        put(log, &[number; 1000], Class::Process).unwrap();
        written.push(vec![number; 1000]);
        log.prepare_ahead().unwrap();
    }
    written
}

/// What the caller does: everything is flushed, and the log before it released.
fn flush(log: &Pipeline) -> Seq {
    let end = log.seal(|position| position);
    log.wait_visible(end).unwrap();
    log.release_before(end).unwrap();
    end
}

#[test]
fn a_log_at_rest_is_one_small_file() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create_with_rest(&fs, kind);
        fill(&log, 1);
        flush(&log);
        assert!(log.bytes().spare >= LARGE, "{:?}", log.bytes());
        fill(&log, 2);
        assert!(log.bytes().to_gain > 2 * LARGE, "{:?}", log.bytes());
        assert_eq!(log.bytes().files, bytes_on_disk(&fs));
        log.rest().unwrap();
        assert!(log.finish_rest(|| true), "nothing is flushed yet");
        // Who waits for the small file would wait until the next write.
        let at_once = RestBytes { flush: 0, data: 0, pause: Some(Duration::ZERO) };
        let resting = || log.resting(Instant::now(), at_once, true);
        assert_eq!(resting(), Resting::Nothing);
        assert!(!log.finish_rest(|| false));
        assert_eq!((resting(), resting()), (Resting::Now, Resting::Nothing));
        let end = flush(&log);
        assert!(!log.finish_rest(|| true));
        assert_eq!(bytes_on_disk(&fs), SMALL);
        let mapped = if matches!(kind, LogKind::Mapped) { SMALL } else { 0 };
        assert_eq!(log.bytes(), LogBytes { files: SMALL, spare: 0, to_gain: 0, mapped });
        // There is nothing more to do, and nothing is written for it.
        let reserved = log.reserved();
        log.rest().unwrap();
        assert_eq!((bytes_on_disk(&fs), log.reserved()), (SMALL, reserved));
        // The log grows again as that of a new database does.
        let written = fill(&log, 3);
        assert!(bytes_on_disk(&fs) > LARGE);
        assert_eq!(payloads(&replay_from(&fs, end, Policy::Refuse).unwrap().0), written);
        log.close(&[]).unwrap();
        assert_eq!(payloads(&replay_from(&fs, end, Policy::Refuse).unwrap().0), written);
    }
}

/// The window of the large log file ends where the small one begins, also for writers that used it
/// before, and what it holds is replayed as long as it is not flushed.
#[test]
fn writers_go_on_in_the_small_file_and_nothing_is_lost() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create_with_rest(&fs, kind);
        let mut written = fill(&log, 1);
        for round in 0..5 {
            log.rest().unwrap();
            for _ in 0..1200 {
                put(&log, &[round; 700], Class::Process).unwrap();
                written.push(vec![round; 700]);
            }
            assert_eq!(payloads(&replay(&fs).unwrap().0), written);
        }
        // Records so short that the slots of the ring come round within a window.
        for round in 3..8_u32 {
            for number in 0..round * 500 {
                put(&log, &number.to_le_bytes(), Class::Process).unwrap();
                written.push(number.to_le_bytes().to_vec());
                log.prepare_ahead().unwrap();
            }
            log.rest().unwrap();
        }
        assert_eq!(payloads(&replay(&fs).unwrap().0), written);
        let (_, recovered) = replay(&fs).unwrap();
        drop(log);
        let log = Pipeline::resume(config_with_rest(&fs, kind), recovered, Arc::default()).unwrap();
        log.rest().unwrap();
        put(&log, b"more", Class::Disk).unwrap();
        written.push(b"more".to_vec());
        assert_eq!(payloads(&replay(&fs).unwrap().0), written);
    }
}

#[test]
fn rests_among_busy_writers_lose_nothing() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = Arc::new(create_with_rest(&fs, kind));
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3_u8)
                .map(|writer| {
                    let log = log.clone();
                    scope.spawn(move || {
                        for number in 0..2000_u32 {
                            let mut payload = vec![writer; 600];
                            payload[..4].copy_from_slice(&number.to_le_bytes());
                            put(&log, &payload, Class::Process).unwrap();
                        }
                    })
                })
                .collect();
            let (log, ended) = (&log, &ended);
            scope.spawn(move || {
                while !ended.load(Ordering::Acquire) {
                    log.rest().unwrap();
                    log.prepare_ahead().unwrap();
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            ended.store(true, Ordering::Release);
        });
        let (batches, _) = replay(&fs).unwrap();
        assert_eq!(batches.len(), 6000);
        for writer in 0..3_u8 {
            let numbers = batches.iter().filter(|batch| batch.payload[4] == writer);
            let numbers: Vec<_> = numbers.map(|batch| batch.payload[..4].to_vec()).collect();
            let expected: Vec<_> = (0..2000_u32).map(|n| n.to_le_bytes().to_vec()).collect();
            assert_eq!(numbers, expected);
        }
    }
}

/// A device without room, at any step: nothing is lost, and the log takes the next writes as soon as
/// there is room.
#[test]
fn a_rest_that_fails_changes_nothing_that_matters() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create_with_rest(&fs, kind);
        let mut written = fill(&log, 1);
        fs.knobs.free.store(0, Ordering::Relaxed);
        assert!(matches!(log.rest(), Err(Error::DiskFull { .. })));
        put(&log, b"goes on in the large file", Class::Process).unwrap();
        written.push(b"goes on in the large file".to_vec());
        fs.knobs.free.store(u64::MAX, Ordering::Relaxed);
        log.rest().unwrap();
        put(&log, b"later", Class::Process).unwrap();
        written.push(b"later".to_vec());
        assert_eq!(payloads(&replay(&fs).unwrap().0), written);
    }
}
