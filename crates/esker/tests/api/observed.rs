//! The statistics that an open database writes for other processes.

use esker::{Db, ErrorKind, Observed, ObservedState, Options};
use std::path::Path;

fn options() -> Options {
    let mut options = Options::default();
    options.memory = Some(8 << 20);
    options.monitor = Some(true);
    options
}

/// The first reading that fulfils this; the writing thread has not necessarily run yet.
fn wait_for(path: &Path, fulfilled: impl Fn(&Observed) -> bool) -> Observed {
    loop {
        if let Ok(observed) = Observed::read(path)
            && fulfilled(&observed)
        {
            return observed;
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_open_database_shows_what_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    assert_eq!(Observed::read(&path).unwrap_err().kind(), ErrorKind::Io);
    let db = Db::open_with(&path, options()).unwrap();
    let first = wait_for(&path, |observed| observed.state == ObservedState::Live);
    assert_eq!(first.process, u64::from(std::process::id()));
    db.keyspace("fruit").unwrap().insert("apple", "red").unwrap();
    db.insert("key", "value").unwrap();
    db.get("key").unwrap();
    // It is the writing thread that notices; nothing tells it.
    let now = wait_for(&path, |observed| observed.stats.puts == 2 && observed.stats.gets == 1);
    assert_eq!((now.keyspaces, now.trees_left_out()), (2, false));
    let mut names: Vec<&str> = now.stats.trees.iter().map(|tree| &*tree.keyspace).collect();
    names.sort_unstable();
    assert_eq!(names, ["default", "fruit"]);
    assert!(now.opened <= now.updated && now.update > first.update);
    assert_eq!((now.database, now.opened), (first.database, first.opened));
    let live = db.stats();
    assert_eq!(now.stats.memory.limit, live.memory.limit);
    db.close().unwrap();
    let last = Observed::read(&path).unwrap();
    assert_eq!((last.state, last.stats.puts), (ObservedState::Closed, 2));
    assert!(last.stats.flushes > 0, "the close flushed");
    // The next opening goes on in the file.
    let db = Db::open_with(&path, options()).unwrap();
    let next = wait_for(&path, |observed| observed.state == ObservedState::Live);
    assert!(next.update > last.update && next.opened >= last.updated && next.stats.puts == 0);
    drop(db);
    assert_eq!(Observed::read(&path).unwrap().state, ObservedState::Closed);
}

#[test]
fn a_read_only_open_and_a_switched_off_monitor_write_no_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut off = options();
    off.monitor = Some(false);
    let db = Db::open_with(&path, off).unwrap();
    db.insert("key", "value").unwrap();
    db.close().unwrap();
    let mut read_only = options();
    read_only.read_only = true;
    Db::open_with(&path, read_only).unwrap().close().unwrap();
    assert!(!path.join("STATISTICS").exists());
}

#[test]
fn a_copy_of_a_running_database_is_not_taken_for_a_running_one() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let db = Db::open_with(&path, options()).unwrap();
    wait_for(&path, |observed| observed.state == ObservedState::Live);
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(path.join("STATISTICS"), copy.join("STATISTICS")).unwrap();
    // Only where the system tells one file from another.
    if cfg!(target_os = "linux") {
        let seen = Observed::read(&copy).unwrap().state;
        let file = esker::fs::os().open(&copy.join("STATISTICS"), esker::fs::OpenMode::Read);
        let known = file.unwrap().incarnation() != esker::fs::Incarnation::default();
        assert_eq!(seen, if known { ObservedState::Ended } else { ObservedState::Live });
    }
    // A checkpoint has none.
    let checkpoint = dir.path().join("checkpoint");
    db.checkpoint(&checkpoint).unwrap();
    assert!(!checkpoint.join("STATISTICS").exists());
}

#[cfg(unix)]
#[test]
fn junk_in_the_place_of_the_statistics_disturbs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    Db::open_with(&path, options()).unwrap().close().unwrap();
    let place = path.join("STATISTICS");
    let outside = dir.path().join("outside");
    std::fs::write(&outside, b"mine").unwrap();
    for round in 0..7_u32 {
        if std::fs::remove_file(&place).is_err() {
            let _ = std::fs::remove_dir(&place);
        }
        let mut written = true;
        match round {
            0 => std::fs::write(&place, b"").unwrap(),
            1 => std::fs::write(&place, vec![0xff; 500_000]).unwrap(),
            2 => std::fs::write(&place, b"ESKERST\n\x01\x00\x00\x00").unwrap(),
            3 => {
                std::fs::create_dir(&place).unwrap();
                written = false;
            }
            4 => {
                std::os::unix::fs::symlink(&outside, &place).unwrap();
                written = false;
            }
            5 => {
                let made = std::process::Command::new("mkfifo").arg(&place).status();
                assert!(made.unwrap().success());
                written = false;
            }
            _ => {}
        }
        let db = Db::open_with(&path, options()).unwrap();
        db.insert(round.to_be_bytes(), "value").unwrap();
        db.flush().unwrap();
        assert_eq!(db.get(round.to_be_bytes()).unwrap(), Some(b"value".to_vec()));
        if !written {
            while db.stats().statistics_failures == 0 {
                std::thread::yield_now();
            }
        }
        db.close().unwrap();
        assert_eq!(Observed::read(&path).is_ok(), written, "round {round}");
    }
    assert_eq!(std::fs::read(&outside).unwrap(), b"mine");
    // A database is destroyed with its statistics.
    Db::destroy(&path, &Options::default()).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_thousand_keyspaces_are_totals_and_some_trees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Db::open_with(&path, options()).unwrap();
    for number in 0..1_000 {
        db.keyspace(&format!("keyspace {number}")).unwrap().insert("k", "v").unwrap();
    }
    db.close().unwrap();
    let observed = Observed::read(&path).unwrap();
    assert_eq!((observed.keyspaces, observed.stats.puts), (1_001, 1_000));
    assert!(observed.trees_left_out() && !observed.stats.trees.is_empty());
    assert!(std::fs::metadata(path.join("STATISTICS")).unwrap().len() <= 128 << 10);
}
