//! Killed processes and power cuts, also during recovery and again after it (R6, R7).

use super::*;
use crate::wal::memfs::{Rng, seed};
use std::sync::mpsc;

/// What a sequential workload knows about its log.
struct Model {
    /// Logged batches from `log_start` on, with the ends of their records.
    batches: Vec<(Batch, Seq)>,
    log_start: Seq,
}

impl Model {
    fn payloads(&self) -> Vec<Vec<u8>> {
        self.batches.iter().map(|(batch, _)| batch.payload.clone()).collect()
    }
}

/// A log whose files grow from the smallest to four times that.
fn small_config(fs: &Arc<MemFs>, kind: LogKind) -> LogConfig {
    LogConfig { file_bytes_min: 8 << 10, ..config(fs, kind, 20 << 10) }
}

fn create_small(fs: &Arc<MemFs>, kind: LogKind) -> Pipeline {
    Pipeline::create(small_config(fs, kind), FIRST, Arc::default()).unwrap()
}

fn resume_small(fs: &Arc<MemFs>, kind: LogKind, recovered: Recovered) -> Pipeline {
    Pipeline::resume(small_config(fs, kind), recovered, Arc::default()).unwrap()
}

#[test]
fn what_was_written_before_a_close_survives_a_power_cut() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create_small(&fs, kind);
        let written: Vec<Vec<u8>> = (0..30).map(|number| vec![number; 700]).collect();
        for payload in &written {
            put(&log, payload, Class::Process).unwrap();
        }
        log.close(b"done").unwrap();
        let after = fs.power_cut(&mut Rng::new(1), 0);
        assert!(payloads(&replay(&after).unwrap().0) == written, "{kind:?}");
    }
}

/// Some random writes, syncs, releases, rests and failed checks.
fn work(log: &Pipeline, model: &mut Model, rng: &mut Rng, steps: u64) {
    for _ in 0..steps {
        let class = match rng.below(10) {
            0 => Class::Disk,
            1 | 2 => Class::Buffered,
            _ => Class::Process,
        };
        let len = if rng.below(30) == 0 { 9000 } else { 1 + rng.below(600) };
        let payload = rng.bytes(len as usize);
        let fails = rng.below(10) == 0;
        let check = |start| if fails { Err(Error::ReadOnly) } else { Ok(start) };
        let mut start = 0;
        let outcome = log.write(&payload, 1, class, check, |&seq, _| {
            start = seq;
            Ok(())
        });
        assert_eq!(outcome.is_err(), fails);
        if let Ok(end) = outcome
            && class != Class::Buffered
        {
            model.batches.push((Batch { start, operations: 1, payload }, end));
        }
        match rng.below(25) {
            0 => log.sync(log.visible()).unwrap(),
            1 => {
                // As in the database: flush up to a sealed position, then release the log.
                let sealed = log.seal(|position| position);
                log.wait_visible(sealed).unwrap();
                model.log_start = sealed;
                model.batches.clear();
                log.release_before(sealed).unwrap();
            }
            2 | 3 => {
                log.prepare_ahead().unwrap();
            }
            4 => log.rest().unwrap(),
            _ => {}
        }
    }
}

#[test]
fn a_killed_process_loses_nothing() {
    for kind in KINDS {
        let mut rng = Rng::new(seed(21));
        for _ in 0..20 {
            let mut fs = MemFs::new();
            let mut log = create_small(&fs, kind);
            let mut model = Model { batches: Vec::new(), log_start: FIRST };
            for _ in 0..5 {
                let steps = rng.below(100);
                work(&log, &mut model, &mut rng, steps);
                fs = fs.killed();
                let (batches, recovered) =
                    replay_from(&fs, model.log_start, Policy::Refuse).unwrap();
                assert_eq!(payloads(&batches), model.payloads());
                assert_eq!(recovered.end, log.visible());
                log = resume_small(&fs, kind, recovered);
                if rng.below(2) == 0 {
                    // Killed again before the first write, with nothing flushed.
                    fs = fs.killed();
                    let (batches, recovered) =
                        replay_from(&fs, model.log_start, Policy::Refuse).unwrap();
                    assert_eq!(payloads(&batches), model.payloads());
                    log = resume_small(&fs, kind, recovered);
                }
            }
        }
    }
}

#[test]
fn after_a_power_cut_a_prefix_survives_with_everything_synced() {
    for kind in KINDS {
        let mut rng = Rng::new(seed(22));
        let (mut lost, mut cuts) = (0, 0);
        for _ in 0..60 {
            let mut fs = MemFs::new();
            let mut log = create_small(&fs, kind);
            let mut model = Model { batches: Vec::new(), log_start: FIRST };
            for _ in 0..4 {
                let steps = rng.below(80);
                work(&log, &mut model, &mut rng, steps);
                let synced = log.synced();
                let percent = [0, 30, 70, 100][rng.below(4) as usize];
                fs = fs.power_cut(&mut rng, percent);
                let (batches, mut recovered) =
                    replay_from(&fs, model.log_start, Policy::Refuse).unwrap();
                let kept = batches.len();
                assert_eq!(payloads(&batches), model.payloads()[..kept]);
                let must = model.batches.iter().filter(|(_, end)| *end <= synced).count();
                assert!(kept >= must, "{} synced batches were lost", must - kept);
                lost += model.batches.len() - kept;
                cuts += 1;
                model.batches.truncate(kept);
                // Cut again during recovery: after resuming, before anything was flushed.
                while rng.below(3) == 0 {
                    drop(resume_small(&fs, kind, recovered));
                    fs = fs.power_cut(&mut rng, percent);
                    let (again, second) =
                        replay_from(&fs, model.log_start, Policy::Refuse).unwrap();
                    assert_eq!(again, batches);
                    recovered = second;
                }
                let end = recovered.end;
                log = resume_small(&fs, kind, recovered);
                // R7: what was replayed is flushed before the first write.
                model.batches.clear();
                model.log_start = end;
                if rng.below(2) == 0 {
                    log.release_before(end).unwrap();
                }
            }
        }
        assert!(lost > 0 && cuts == 240, "the cuts took nothing: {lost} of {cuts}");
    }
}

#[test]
fn a_hole_that_nobody_published_is_a_torn_tail() {
    // The first writer dies between reservation and copy, the second after its copy.
    let fs = MemFs::new();
    let log = create(&fs, LogKind::Mapped, 64 << 10);
    put(&log, b"kept", Class::Process).unwrap();
    let (reserved, is_reserved) = mpsc::channel();
    let (logged, is_logged) = mpsc::channel();
    let image = std::thread::scope(|scope| {
        let (log, fs) = (&log, &fs);
        let first = scope.spawn(move || {
            let mut image = None;
            let check = |_| {
                reserved.send(()).unwrap();
                is_logged.recv().unwrap();
                image = Some(fs.killed());
                Ok(())
            };
            log.write(b"hole", 1, Class::Process, check, |(), _| Ok(())).unwrap();
            image.unwrap()
        });
        is_reserved.recv().unwrap();
        let apply = |(): &(), _| {
            logged.send(()).unwrap();
            Ok(())
        };
        log.write(b"behind the hole", 1, Class::Process, |_| Ok(()), apply).unwrap();
        first.join().unwrap()
    });
    let (batches, recovered) = replay(&image).unwrap();
    assert_eq!(payloads(&batches), [b"kept".to_vec()]);
    // Records after the hole never come back, even after more writes and another open.
    let log = resume(&image, LogKind::Mapped, 64 << 10, recovered);
    put(&log, b"new", Class::Process).unwrap();
    drop(log);
    assert_eq!(payloads(&replay(&image).unwrap().0), [b"kept".to_vec(), b"new".to_vec()]);
    // The living process lost nothing.
    assert_eq!(replay(&fs).unwrap().0.len(), 3);
}

#[test]
fn a_prefix_that_was_kept_stays_kept() {
    for kind in KINDS {
        let fs = MemFs::new();
        let log = create(&fs, kind, 8 << 10);
        for number in 0u8..60 {
            put(&log, &[number; 300], Class::Process).unwrap();
        }
        drop(log);
        let path = file_paths(&fs).remove(1);
        fs.patch(&path, 5000, 0xFF);
        assert!(is_corruption(&replay(&fs).unwrap_err()));
        let (kept, recovered) = replay_from(&fs, FIRST, Policy::KeepPrefix).unwrap();
        assert!(!kept.is_empty() && kept.len() < 59);
        let log = resume(&fs, kind, 8 << 10, recovered);
        put(&log, b"new", Class::Process).unwrap();
        drop(log);
        let mut expected = payloads(&kept);
        expected.push(b"new".to_vec());
        assert_eq!(payloads(&replay(&fs).unwrap().0), expected);
    }
}
