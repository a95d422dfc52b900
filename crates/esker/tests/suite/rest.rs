//! The log is put to rest, by pauses, compactions and a close, and the device is cut off at each of
//! their steps, by kills and by power cuts. Whatever is left opens and holds what was acknowledged
//! (C1; R4, R11).

use esker::internals::options::SmallRest;
use esker::{Db, Durability, LogKind, Options};
use esker_testkit::CrashFs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATH: &str = "/db";
const SMALL: u32 = 8 << 10;

fn options(disk: &CrashFs, log: LogKind) -> Options {
    let mut options = super::options(disk.as_fs());
    options.log = log;
    options.memtable_bytes = Some(256 << 10);
    options.log_file_bytes = 64 << 10;
    options.small_rest = Some(SmallRest { after: Duration::ZERO, file_bytes: SMALL });
    options
}

/// A cut, and how many writes it must hold.
struct Cut {
    story: String,
    disk: CrashFs,
    floor: u64,
}

/// Takes cuts at every step while it is on.
struct Cutter {
    on: AtomicBool,
    acknowledged: AtomicU64,
    durable: AtomicU64,
    cuts: Mutex<Vec<Cut>>,
}

impl Cutter {
    fn of(disk: &CrashFs) -> Arc<Self> {
        let cutter = Arc::new(Self {
            on: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            cuts: Mutex::default(),
        });
        let (taken, source) = (cutter.clone(), disk.clone());
        disk.set_hook(Some(Arc::new(move |step, what| {
            if !taken.on.load(Ordering::SeqCst) {
                return;
            }
            // What is acknowledged now must be in the clone, which is taken after this look.
            let acknowledged = taken.acknowledged.load(Ordering::SeqCst);
            let durable = taken.durable.load(Ordering::SeqCst);
            let killed = source.kill_clone();
            let survivors = [0, 50, 100][step as usize % 3];
            let cut = source.crash_clone(step, survivors);
            let mut cuts = taken.cuts.lock().unwrap();
            let story = format!("killed before {what} ({step})");
            cuts.push(Cut { story, disk: killed, floor: acknowledged });
            let story = format!("power cut before {what} ({step}), {survivors} % survive");
            cuts.push(Cut { story, disk: cut, floor: durable });
        })));
        cutter
    }

    /// Writes the next so many entries; the last one is durable.
    fn write(&self, db: &Db, count: u64) {
        for left in (0..count).rev() {
            let number = self.acknowledged.load(Ordering::SeqCst);
            let durability = if left == 0 { Durability::Disk } else { Durability::Process };
            let space = db.default_keyspace();
            space.insert_with(number.to_be_bytes(), vec![7; 900], durability).unwrap();
            self.acknowledged.store(number + 1, Ordering::SeqCst);
            if left == 0 {
                self.durable.store(number + 1, Ordering::SeqCst);
            }
        }
    }
}

fn rested(db: &Db) -> bool {
    db.stats().log_file_bytes == u64::from(SMALL)
}

fn check(cut: &Cut, log: LogKind) {
    let Cut { story, disk, floor } = cut;
    let story = format!("{log:?}: {story}");
    let db = Db::open_with(PATH, options(disk, log)).unwrap_or_else(|e| panic!("{story}: {e}"));
    let entries =
        db.iter().unwrap().map(|entry| entry.unwrap_or_else(|e| panic!("{story}: {e}")).0);
    let numbers: Vec<u64> =
        entries.map(|key| u64::from_be_bytes(key.try_into().unwrap())).collect();
    let held = numbers.len() as u64;
    assert!(numbers.into_iter().eq(0..held), "{story}: there are gaps");
    assert!(held >= *floor, "{story}: {held} of {floor} writes are there");
    // What follows is as good.
    db.insert(held.to_be_bytes(), "more").unwrap();
    let killed = disk.kill_clone();
    db.close().unwrap_or_else(|e| panic!("{story}: {e}"));
    for disk in [disk, &killed] {
        let db = Db::open_with(PATH, options(disk, log)).unwrap_or_else(|e| panic!("{story}: {e}"));
        assert_eq!(db.iter().unwrap().count() as u64, held + 1, "{story}");
    }
}

#[test]
fn a_rest_can_be_cut_off_anywhere() {
    for log in [LogKind::Plain, LogKind::Mapped] {
        let disk = CrashFs::new();
        let db = Db::open_with(PATH, options(&disk, log)).unwrap();
        let cutter = Cutter::of(&disk);
        let cuts_at = |what: &dyn Fn()| {
            cutter.on.store(true, Ordering::SeqCst);
            what();
            cutter.on.store(false, Ordering::SeqCst);
            cutter.cuts.lock().unwrap().len()
        };
        let (mut before, mut steps) = (0, Vec::new());
        for _ in 0..2 {
            cutter.write(&db, 150);
            for what in [
                // A pause, and writes that come while the log is put to rest and after it.
                &(|| cutter.write(&db, 3)) as &dyn Fn(),
                &|| {
                    while !rested(&db) {
                        std::thread::yield_now();
                    }
                },
                &|| cutter.write(&db, 3),
                &|| cutter.write(&db, 60),
                &|| db.compact().unwrap(),
                &|| cutter.write(&db, 20),
            ] {
                let after = cuts_at(what);
                steps.push(after - before);
                before = after;
            }
        }
        cuts_at(&|| db.close().unwrap());
        drop(db);
        disk.set_hook(None);
        println!("{log:?}: cuts {steps:?}");
        let cuts = std::mem::take(&mut *cutter.cuts.lock().unwrap());
        assert!(cuts.len() > 100, "there are only {} cuts", cuts.len());
        cuts.iter().for_each(|cut| check(cut, log));
    }
}
