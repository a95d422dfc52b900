//! What the log frees when the device is full.

use super::*;
use crate::wal::memfs::Rng;
use std::sync::atomic::Ordering;

fn total(fs: &MemFs) -> u64 {
    fs.total_bytes()
}

#[test]
fn prepared_and_released_segments_are_given_back_and_writing_goes_on() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 10);
        let mut expected = Vec::new();
        let mut put = |number: u8| {
            put(&log, &[number; 1000], Class::Process).unwrap();
            expected.push(vec![number; 1000]);
        };
        while !log.needs_preparation() {
            put(1);
        }
        assert!(log.prepare_ahead().unwrap());
        let prepared = total(&fs);
        assert!(log.give_up_spare(), "the log file that was prepared ahead");
        assert!(total(&fs) < prepared);
        assert!(!log.give_up_spare(), "there is nothing more");
        for _ in 0..200 {
            put(2);
        }
        assert_eq!(payloads(&replay(&fs).unwrap().0), expected);
        let end = log.seal(|position| position);
        log.release_before(end).unwrap();
        let released = total(&fs);
        while log.give_up_spare() {}
        assert!(total(&fs) < released, "log files that wait to be used again");
        put_all(&log, 3);
        let (batches, _) = replay_from(&fs, end, Policy::Refuse).unwrap();
        assert_eq!(payloads(&batches), vec![vec![3; 1000]; 200]);
        log.close(&[]).unwrap();
    }
}

fn put_all(log: &Pipeline, number: u8) {
    for _ in 0..200 {
        put(log, &[number; 1000], Class::Process).unwrap();
    }
}

/// After a power cut the removed files may exist again, in any combination.
#[test]
fn a_power_cut_after_segments_were_given_back_loses_nothing() {
    for seed in 0..200 {
        let fs = MemFs::new();
        let log = create(&fs, KINDS[seed as usize % 2], 64 << 10);
        let mut rng = Rng::new(seed);
        let mut expected = Vec::new();
        for _ in 0..3 {
            for _ in 0..rng.below(60) {
                put(&log, &[7; 1000], Class::Process).unwrap();
                expected.push(vec![7; 1000]);
            }
            let _ = log.prepare_ahead();
            log.give_up_spare();
        }
        put(&log, b"durable", Class::Disk).unwrap();
        expected.push(b"durable".to_vec());
        let (batches, _) = replay(&fs.power_cut(&mut rng, 50)).unwrap();
        assert_eq!(payloads(&batches), expected, "seed {seed}");
    }
}

#[test]
fn a_segment_takes_no_more_than_its_share_of_what_is_free() {
    let fs = MemFs::new();
    fs.knobs.free.store(4 << 20, Ordering::Relaxed);
    let log = create(&fs, LogKind::Mapped, 64 << 20);
    let largest = || {
        let lens = file_paths(&fs).into_iter().map(|path| fs.read(&path).len() as u64);
        lens.max().unwrap_or(0)
    };
    while put(&log, &[1; 10_000], Class::Process).is_ok() {
        let free = fs.knobs.free.load(Ordering::Relaxed);
        assert!(largest() <= 512 << 10, "{} of {free}", largest());
    }
}

#[test]
fn what_an_earlier_life_prepared_makes_room_for_the_first_segment() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 64 << 10);
        while !log.needs_preparation() {
            put(&log, &[1; 1000], Class::Process).unwrap();
        }
        log.prepare_ahead().unwrap();
        let written = payloads(&replay(&fs).unwrap().0);
        drop(log);
        fs.knobs.free.store(0, Ordering::Relaxed);
        let (_, recovered) = replay(&fs).unwrap();
        let log = resume(&fs, kind, 64 << 10, recovered);
        put(&log, b"more", Class::Process).unwrap();
        let found = payloads(&replay(&fs).unwrap().0);
        assert_eq!(found.len(), written.len() + 1);
    }
}
