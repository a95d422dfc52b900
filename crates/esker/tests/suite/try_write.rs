//! Writes that do not wait, while flushes hang.

use super::options;
use esker::{Batch, Cause, Db, Error};
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::{CrashFs, FaultFs};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// A door in the way of everything that is written into run files.
#[derive(Default)]
struct Door {
    shut: Mutex<bool>,
    opened: Condvar,
}

impl Door {
    fn pass(&self) {
        let mut shut = self.shut.lock();
        while *shut {
            self.opened.wait(&mut shut);
        }
    }

    fn set(&self, shut: bool) {
        *self.shut.lock() = shut;
        self.opened.notify_all();
    }
}

/// Opens the door at its end: a test that fails would otherwise wait for the flush of what it wrote.
struct Doorkeeper(Arc<Door>);

impl Doorkeeper {
    fn set(&self, shut: bool) {
        self.0.set(shut);
    }
}

impl Drop for Doorkeeper {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// A database whose flushes stand before a door, and who opens it.
fn database() -> (Db, Doorkeeper) {
    let faults = FaultFs::over(&CrashFs::new());
    let door = Arc::new(Door::default());
    let passes = door.clone();
    let stand = Effect::Call(Arc::new(move || passes.pass()));
    faults.add(Rule::new(Op::Write, stand).path("/data/").persistent());
    let mut options = options(faults.as_fs());
    // Writers pass many decisions of the pacer before memory is full, so however slow the machine, some
    // write comes too early for the rate.
    options.memory = Some(64 << 20);
    options.memtable_bytes = Some(4 << 20);
    (Db::open_with("/db", options).unwrap(), Doorkeeper(door))
}

/// Writes without a wait until memory is full; the keys that were written, and the reasons why others
/// were not.
fn fill(db: &Db, mut write: impl FnMut(&[u8]) -> esker::Result<()>) -> (Vec<u64>, Vec<Cause>) {
    let (mut written, mut reasons) = (Vec::new(), Vec::new());
    for number in 0_u64.. {
        match write(&number.to_be_bytes()) {
            Ok(()) => written.push(number),
            Err(Error::WouldBlock { reason, retry_after }) => {
                assert!(!retry_after.is_zero());
                assert!(!db.contains_key(number.to_be_bytes()).unwrap(), "it was refused");
                reasons.push(reason);
                if reason == Cause::Memory {
                    break;
                }
                std::thread::yield_now();
            }
            Err(other) => panic!("{other}"),
        }
    }
    (written, reasons)
}

/// The database holds just these keys, and nobody has waited.
fn check(db: &Db, written: &[u64]) {
    let waits = db.stats().waits;
    for cause in [Cause::FlushDebt, Cause::CompactionDebt, Cause::Memory, Cause::DiskFull] {
        assert_eq!(waits.of(cause).count, 0, "a write waited: {cause:?}");
    }
    let keys = db.iter().unwrap().map(|entry| entry.unwrap().0);
    let keys = keys.map(|key| u64::from_be_bytes(key.try_into().unwrap()));
    assert!(keys.eq(written.iter().copied()));
}

#[test]
fn what_does_not_wait_is_there_or_was_refused() {
    let (db, door) = database();
    door.set(true);
    let (written, reasons) = fill(&db, |key| db.try_insert(key, [7; 1000]));
    assert!(reasons.contains(&Cause::FlushDebt), "slowed first");
    check(&db, &written);
    let removed = db.try_remove(written[0].to_be_bytes()).unwrap_err();
    assert!(matches!(removed, Error::WouldBlock { reason: Cause::Memory, .. }), "{removed}");
    assert!(removed.to_string().contains("memory"), "{removed}");
    check(&db, &written);
    door.set(false);
    db.flush().unwrap();
    db.try_remove(written[0].to_be_bytes()).unwrap();
    db.try_insert(u64::MAX.to_be_bytes(), "late").unwrap();
    let left: Vec<u64> = written[1..].iter().copied().chain([u64::MAX]).collect();
    check(&db, &left);
    db.close().unwrap();
    assert!(matches!(db.try_insert("k", "v"), Err(Error::Closed)));
}

#[test]
fn a_batch_that_does_not_wait_is_written_whole_or_not_at_all() {
    let (db, door) = database();
    door.set(true);
    let other = db.keyspace("other").unwrap();
    let (written, _) = fill(&db, |key| {
        let mut batch = Batch::new();
        batch.insert(&db.default_keyspace(), key, [7; 500]);
        batch.insert(&other, key, [8; 500]);
        db.try_write(&batch).map(|end| assert!(end > 0))
    });
    check(&db, &written);
    assert_eq!(other.iter().unwrap().count(), written.len());
    assert_eq!(db.try_write(Batch::new()).unwrap(), 0, "nothing needs no room");
    door.set(false);
    db.flush().unwrap();
    db.close().unwrap();
}
