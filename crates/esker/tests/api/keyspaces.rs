use super::{Place, fresh, key, keys, run_files, settled, small, text, value};
use esker::{Db, ErrorKind};

#[test]
fn keyspaces_hold_the_same_keys_apart() {
    let (_place, db) = fresh();
    let (a, b) = (db.keyspace("a").unwrap(), db.keyspace("b").unwrap());
    a.insert("k", "in a").unwrap();
    b.insert("k", "in b").unwrap();
    db.flush().unwrap();
    b.remove("k").unwrap();
    assert_eq!(text(a.get("k").unwrap()).as_deref(), Some("in a"));
    assert_eq!(b.get("k").unwrap(), None);
    assert_eq!(a.iter().unwrap().count(), 1);
    assert_eq!(b.iter().unwrap().count(), 0);
}

#[test]
fn a_keyspace_is_made_once_and_found_again() {
    let (place, db) = fresh();
    db.keyspace("a").unwrap().insert("k", "v").unwrap();
    assert_eq!(text(db.keyspace("a").unwrap().get("k").unwrap()).as_deref(), Some("v"));
    assert_eq!(db.keyspace("a").unwrap().name(), "a");
    assert_eq!(db.keyspaces().unwrap(), ["a", "default"]);
    db.close().unwrap();
    let db = place.open();
    assert_eq!(db.keyspaces().unwrap(), ["a", "default"]);
    assert_eq!(text(db.keyspace("a").unwrap().get("k").unwrap()).as_deref(), Some("v"));
}

#[test]
fn an_empty_keyspace_outlives_the_database_too() {
    let (place, db) = fresh();
    db.keyspace("empty").unwrap();
    db.close().unwrap();
    assert_eq!(place.open().keyspaces().unwrap(), ["default", "empty"]);
}

#[test]
fn the_default_keyspace_is_the_one_without_a_name() {
    let (_place, db) = fresh();
    db.insert("k", "v").unwrap();
    assert_eq!(text(db.keyspace("default").unwrap().get("k").unwrap()).as_deref(), Some("v"));
    assert_eq!(db.default_keyspace().name(), "default");
}

#[test]
fn names_have_1_to_255_bytes() {
    let (_place, db) = fresh();
    assert_eq!(db.keyspace("").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.keyspace(&"n".repeat(256)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.keyspace(&"n".repeat(255)).unwrap().insert("k", "v").unwrap();
    db.keyspace("../../etc/passwd\n").unwrap().insert("k", "v").unwrap();
    assert_eq!(db.keyspaces().unwrap().len(), 3);
}

#[test]
fn a_dropped_keyspace_refuses_its_old_handles() {
    let (_place, db) = fresh();
    let old = db.keyspace("old").unwrap();
    old.insert("k", "v").unwrap();
    assert!(db.drop_keyspace("old").unwrap());
    assert!(!db.drop_keyspace("old").unwrap(), "it is gone");
    assert_eq!(old.insert("k", "v").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(old.remove("k").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(old.remove_range("a".."z").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(old.get("k").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(old.iter().unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(db.keyspaces().unwrap(), ["default"]);
}

#[test]
fn a_name_that_was_dropped_is_free_at_once_and_begins_empty() {
    let (place, db) = fresh();
    let old = db.keyspace("name").unwrap();
    old.insert("k", "old").unwrap();
    db.flush().unwrap();
    old.insert("k2", "old").unwrap();
    db.drop_keyspace("name").unwrap();
    let new = db.keyspace("name").unwrap();
    assert_eq!(new.iter().unwrap().count(), 0);
    new.insert("k3", "new").unwrap();
    assert_eq!(old.get("k").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    db.close().unwrap();
    let db = place.open();
    assert_eq!(keys(db.keyspace("name").unwrap().iter().unwrap()), ["k3"]);
}

#[test]
fn a_drop_holds_after_reopening() {
    let (place, db) = fresh();
    db.keyspace("gone").unwrap().insert("k", "v").unwrap();
    db.drop_keyspace("gone").unwrap();
    db.close().unwrap();
    let db = place.open();
    assert_eq!(db.keyspaces().unwrap(), ["default"]);
    assert_eq!(db.keyspace("gone").unwrap().get("k").unwrap(), None);
}

#[test]
fn the_space_of_a_dropped_keyspace_returns() {
    let (place, db) = fresh();
    let big = db.keyspace("big").unwrap();
    for number in 0..4000 {
        big.insert(key(number), value(number, 0)).unwrap();
    }
    db.insert("kept", "v").unwrap();
    db.wait_until_idle().unwrap();
    let (before, _) = run_files(&place.path());
    assert!(before > 100_000);
    db.drop_keyspace("big").unwrap();
    db.wait_until_idle().unwrap();
    let after = settled(&db, &place.path(), |after| after < before / 10);
    assert!(after < before / 10, "{before} bytes became {after}");
    assert_eq!(text(db.get("kept").unwrap()).as_deref(), Some("v"));
}

#[test]
fn the_default_keyspace_cannot_be_dropped() {
    let (_place, db) = fresh();
    assert_eq!(db.drop_keyspace("default").unwrap_err().kind(), ErrorKind::InvalidArgument);
    db.insert("k", "v").unwrap();
}

#[test]
fn keyspaces_are_made_and_dropped_by_many_threads_at_once() {
    let (_place, db) = fresh();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..40 {
                    let name = format!("space {}", (thread + round) % 3);
                    match db.keyspace(&name).unwrap().insert("k", "v") {
                        Ok(()) => {}
                        Err(error) => assert_eq!(error.kind(), ErrorKind::KeyspaceDropped),
                    }
                    db.drop_keyspace(&name).unwrap();
                }
            });
        }
    });
    assert_eq!(db.keyspaces().unwrap(), ["default"]);
    db.wait_until_idle().unwrap();
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count())
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count())
}

#[test]
fn ten_thousand_keyspaces_share_a_log_a_few_files_and_no_threads() {
    const COUNT: usize = 10_000;
    let place = Place::new();
    let mut options = small();
    // Sizes as in use: many keyspaces must not need special options.
    options.memtable_bytes = None;
    options.memory = Some(64 << 20);
    let db = Db::open_with(place.path(), options.clone()).unwrap();
    let (threads_before, files_before) = (threads(), open_files());
    for number in 0..COUNT {
        let space = db.keyspace(&format!("space {number}")).unwrap();
        space.insert("k", number.to_string()).unwrap();
        space.insert("second", "v").unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    // Other tests run in this process, so the bounds are wide; 10,000 would still break them.
    assert!(threads() < threads_before + 500);
    assert!(open_files() < files_before + 2_000);
    let (_, files) = run_files(&place.path());
    assert!(files < 100, "{files} run files");
    db.close().unwrap();
    let db = Db::open_with(place.path(), options).unwrap();
    assert_eq!(db.keyspaces().unwrap().len(), COUNT + 1);
    for number in (0..COUNT).step_by(97) {
        let space = db.keyspace(&format!("space {number}")).unwrap();
        assert_eq!(text(space.get("k").unwrap()), Some(number.to_string()));
        assert_eq!(keys(space.iter().unwrap()), ["k", "second"]);
    }
}
