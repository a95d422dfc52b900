//! A forked child gets [`ErrorKind::Forked`] from every call, what it drops does nothing, and its
//! parent goes on unharmed (R26).

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]
#![cfg(unix)]
#![allow(unsafe_code, reason = "only unsafe code can fork")]

mod live;

use esker::internals::kept::{KeptValue, get_in_place, get_kept};
use esker::{Batch, Db, Error, ErrorKind, Iter, Keyspace, Snapshot};
use live::tiny;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Runs `check` in a forked child; what it returns is the child's exit code.
fn in_a_child(check: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs only `check`, which calls the functions under test (they must work
    // without the parent's threads), and then leaves without running destructors or handlers.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).unwrap_or(99);
            // SAFETY: ends the process at once.
            unsafe { nix::libc::_exit(code) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            match nix::sys::wait::waitpid(child, None).unwrap() {
                nix::sys::wait::WaitStatus::Exited(_, code) => code,
                other => panic!("the child ended with {other:?}"),
            }
        }
    }
}

fn forked<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Forked)
}

/// Calls everything; the number of the first call that did not say `Forked`, 0 if all did.
fn call_all(db: &Db, keyspace: &Keyspace, snapshot: &Snapshot, iter: &mut Iter) -> i32 {
    let mut batch = Batch::new();
    batch.insert(keyspace, "batch", "from the child");
    let calls = [
        forked(db.get("k")),
        forked(db.insert("k", "from the child")),
        forked(db.remove("k")),
        forked(db.remove_range("a".."z")),
        forked(db.write(batch)),
        forked(db.contains_key("k")),
        forked(db.multi_get(["k"])),
        forked(db.iter()),
        forked(db.prefix("k")),
        forked(db.first_key_value()),
        forked(db.snapshot()),
        forked(db.keyspace("other")),
        forked(db.keyspaces()),
        forked(db.drop_keyspace("more")),
        forked(db.flush()),
        forked(db.compact()),
        forked(db.sync()),
        forked(db.wait_durable(8)),
        forked(db.wait_until_idle()),
        forked(db.verify()),
        forked(keyspace.get("k")),
        forked(keyspace.insert("k", "from the child")),
        forked(keyspace.compact()),
        forked(snapshot.get(keyspace, "k")),
        forked(snapshot.iter(keyspace)),
        forked(iter.next_entry().map(|_| ())),
        forked(iter.seek("k")),
        forked(db.close()),
    ];
    // Nothing to say, but it must not wait for anybody.
    let _ = db.stats();
    calls.iter().position(|good| !good).map_or(0, |at| at as i32 + 1)
}

#[test]
fn a_child_is_refused_and_its_parent_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    let more = db.keyspace("more").unwrap();
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    for n in 0..2_000u64 {
        more.insert(n.to_be_bytes(), vec![1; 50]).unwrap();
    }
    std::thread::scope(|scope| {
        // Locks are held all the time, so that a child which took one would wait for ever.
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let n = written.load(Ordering::Relaxed);
                db.insert(n.to_be_bytes(), vec![2; 60]).unwrap();
                written.store(n + 1, Ordering::Release);
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let snapshot = db.snapshot().unwrap();
                assert!(snapshot.iter(&more).unwrap().count() >= 2_000);
                db.flush().unwrap();
            }
        });
        for round in 0..live::rounds(30) {
            let snapshot = db.snapshot().unwrap();
            let mut iter = more.iter().unwrap();
            assert!(iter.next_entry().unwrap().is_some());
            let code = in_a_child(|| call_all(&db, &more, &snapshot, &mut iter));
            assert_eq!(code, 0, "round {round}: call {code} did not say that it is forked");
            // The same with everything given up in the child.
            let owned = (db.clone(), more.clone(), snapshot.clone(), more.iter().unwrap());
            let first = 0_u64.to_be_bytes();
            let values = (more.get_pinned(first).unwrap(), more.get_reader(first).unwrap());
            assert!(values.0.is_some() && values.1.is_some());
            let kept = get_in_place(&more, None, &first).unwrap();
            assert!(kept.is_some());
            let code = in_a_child(|| {
                drop(iter);
                drop(snapshot);
                drop(owned);
                drop(values);
                drop(kept);
                0
            });
            assert_eq!(code, 0);
            more.insert(format!("round {round}"), "of the parent").unwrap();
        }
        stop.store(true, Ordering::Release);
    });
    let error = Db::open_with(dir.path(), tiny()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "the parent still holds the lock");
    assert!(db.verify().unwrap().problems.is_empty());
    let found = db.iter().unwrap().count() as u64;
    assert_eq!(found, written.load(Ordering::Acquire));
    db.close().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    assert_eq!(db.iter().unwrap().count() as u64, found);
    assert_eq!(db.get("k").unwrap(), None);
}

/// A kept value has no handle that it could ask whose process this is. What a child would give back is unmapped.
#[test]
fn a_child_does_not_give_back_what_its_parent_kept() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    db.insert("long", [7; 100_000]).unwrap();
    db.flush().unwrap();
    let kept = get_kept(&db.default_keyspace(), None, b"long").unwrap();
    let Some(KeptValue::InPlace(kept)) = kept else { panic!("it is not in place") };
    // Nobody else refers to its memory any more.
    db.close().unwrap();
    drop(db);
    let mut kept = Some(kept);
    let code = in_a_child(|| {
        let last = kept.as_ref().unwrap().bytes().last().unwrap() as *const u8;
        drop(kept.take());
        // SAFETY: the memory is not freed in a child.
        i32::from(unsafe { last.read_volatile() })
    });
    assert_eq!(code, 7);
    assert_eq!(kept.unwrap().bytes(), [7; 100_000]);
}

#[test]
fn the_last_handle_dropped_in_a_child_closes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut db = Some(Db::open_with(dir.path(), tiny()).unwrap());
    db.as_ref().unwrap().insert("k", "v").unwrap();
    let code = in_a_child(|| {
        drop(db.take());
        0
    });
    assert_eq!(code, 0);
    let db = db.unwrap();
    db.insert("k2", "v2").unwrap();
    let locked = Db::open_with(dir.path(), tiny()).unwrap_err().kind();
    assert_eq!(locked, ErrorKind::Locked);
    db.close().unwrap();
    // A child that is still alive keeps copies of the descriptors, and the lock is free.
    let (read, write) = nix::unistd::pipe().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    // SAFETY: the child only reads from a pipe and leaves.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            drop(write);
            let _ = nix::unistd::read(&read, &mut [0]);
            // SAFETY: ends the process at once.
            unsafe { nix::libc::_exit(0) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            db.close().unwrap();
            let db = Db::open_with(dir.path(), tiny()).unwrap();
            assert_eq!(db.get("k2").unwrap().as_deref(), Some(&b"v2"[..]));
            db.close().unwrap();
            drop(write);
            nix::sys::wait::waitpid(child, None).unwrap();
        }
    }
}
