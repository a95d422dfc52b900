use super::{Place, entries, fill, fresh, key, open_roomy, run_files, settled, small, text};
use esker::{Batch, Db, Durability, ErrorKind};
use esker_testkit::orders::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn beside(place: &Place) -> PathBuf {
    place.path().with_extension("checkpoint")
}

fn open_small(path: &Path) -> Db {
    Db::open_with(path, small()).unwrap()
}

#[test]
fn a_checkpoint_holds_what_was_written_before_it_and_nothing_since() {
    let (place, db) = fresh();
    fill(&db, 0..2000, 1);
    let other = db.keyspace("other").unwrap();
    other.insert("k", "v").unwrap();
    db.keyspace("gone").unwrap().insert("k", "v").unwrap();
    db.drop_keyspace("gone").unwrap();
    db.remove_range(key(100)..key(200)).unwrap();
    let buffered = Durability::Buffered;
    other.insert_with("not", "logged", buffered).unwrap();
    let expected = entries(db.iter().unwrap());
    db.checkpoint(beside(&place)).unwrap();
    fill(&db, 0..2000, 2);
    other.remove("k").unwrap();
    let copy = open_small(&beside(&place));
    assert_eq!(entries(copy.iter().unwrap()), expected);
    assert_eq!(copy.keyspaces().unwrap(), ["default", "other"]);
    let other = copy.keyspace("other").unwrap();
    assert_eq!(text(other.get("k").unwrap()).as_deref(), Some("v"));
    assert_eq!(text(other.get("not").unwrap()).as_deref(), Some("logged"));
    assert!(copy.verify().unwrap().problems.is_empty());
}

#[test]
fn original_and_checkpoint_go_their_own_ways() {
    let (place, db) = fresh();
    fill(&db, 0..3000, 1);
    db.checkpoint(beside(&place)).unwrap();
    let copy = open_small(&beside(&place));
    // Both are open, and each rewrites and drops the files that they share.
    for round in 2..5 {
        fill(&db, 0..3000, round);
        fill(&copy, 1000..2000, 10 * round);
        db.compact().unwrap();
        copy.compact().unwrap();
    }
    for database in [&db, &copy] {
        assert!(database.verify().unwrap().problems.is_empty());
        assert_eq!(database.iter().unwrap().count(), 3000);
    }
    let expected = super::value(1500, 40);
    assert_eq!(text(copy.get(key(1500)).unwrap()), Some(expected));
    assert_eq!(text(copy.get(key(5)).unwrap()), Some(super::value(5, 1)));
    assert_eq!(text(db.get(key(5)).unwrap()), Some(super::value(5, 4)));
    db.close().unwrap();
    std::fs::remove_dir_all(place.path()).unwrap();
    copy.close().unwrap();
    let copy = open_small(&beside(&place));
    assert_eq!(copy.iter().unwrap().count(), 3000);
    // The next one can be taken of it in turn.
    copy.checkpoint(place.path()).unwrap();
    assert_eq!(place.open().iter().unwrap().count(), 3000);
}

#[test]
fn a_checkpoint_takes_no_space_for_data() {
    let place = Place::new();
    let db = open_roomy(&place);
    for number in 0..20_000 {
        db.insert(key(number), [7; 200]).unwrap();
    }
    db.flush().unwrap();
    db.wait_until_idle().unwrap();
    db.checkpoint(beside(&place)).unwrap();
    let shared = std::fs::read_dir(beside(&place).join("data")).unwrap().count();
    assert_eq!(shared, run_files(&place.path()).1);
    #[cfg(unix)]
    for entry in std::fs::read_dir(beside(&place).join("data")).unwrap() {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(entry.unwrap().metadata().unwrap().nlink(), 2, "the file was copied");
    }
}

#[test]
fn what_stands_at_the_path_is_left_alone() {
    let (place, db) = fresh();
    db.insert("k", "v").unwrap();
    let file = beside(&place);
    std::fs::write(&file, "mine").unwrap();
    let refused = |target: &Path| {
        let error = db.checkpoint(target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
        error.to_string()
    };
    assert!(refused(&file).contains("there already is a file at"));
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let directory = place.path().with_extension("d");
    std::fs::create_dir(&directory).unwrap();
    assert!(refused(&directory).contains("there already is an empty directory at"));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    std::fs::write(directory.join("mine"), "").unwrap();
    assert!(refused(&directory).contains("there already is a directory that holds \"mine\" at"));
    assert!(refused(&place.path()).contains("there already is a database at"));
    let nowhere = place.path().with_file_name("no").join("such/directory");
    assert_eq!(db.checkpoint(nowhere).unwrap_err().kind(), ErrorKind::Io);
}

/// A database in another's directory would be foreign to it, and refuse the next open.
#[test]
fn a_checkpoint_is_not_made_inside_of_its_source() {
    let (place, db) = fresh();
    db.insert("k", "v").unwrap();
    let inside = |target: &Path| {
        let error = db.checkpoint(target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("lies inside of the database"), "{error}");
        assert!(!target.exists());
    };
    for name in ["copy", "wal/copy", "data/../data/copy", "no/such/directory"] {
        inside(&place.path().join(name));
    }
    #[cfg(unix)]
    {
        let alias = place.path().with_extension("alias");
        std::os::unix::fs::symlink(place.path(), &alias).unwrap();
        inside(&alias.join("copy"));
        let data = place.path().with_extension("data");
        std::os::unix::fs::symlink(place.path().join("data"), &data).unwrap();
        inside(&data.join("copy"));
    }
    db.checkpoint(place.path().join("../copy")).unwrap();
    assert!(place.path().with_file_name("copy").join("superblock-A").exists());
    db.close().unwrap();
    assert_eq!(place.open().get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_read_only_or_closed_database_makes_none() {
    let (place, db) = fresh();
    db.insert("k", "v").unwrap();
    db.close().unwrap();
    assert_eq!(db.checkpoint(beside(&place)).unwrap_err().kind(), ErrorKind::Closed);
    let mut options = small();
    options.read_only = true;
    let db = Db::open_with(place.path(), options).unwrap();
    assert_eq!(db.checkpoint(beside(&place)).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert!(!beside(&place).exists());
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let (place, db) = fresh();
    db.insert("k", "v").unwrap();
    db.checkpoint(beside(&place)).unwrap();
    let identity = |path: &Path| std::fs::read(path.join("superblock-A")).unwrap()[32..48].to_vec();
    assert_ne!(identity(&place.path()), identity(&beside(&place)));
}

#[test]
fn a_checkpoint_keeps_orders() {
    let (place, db) = fresh();
    let reverse = db.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    reverse.insert("a", "1").unwrap();
    reverse.insert("b", "2").unwrap();
    db.checkpoint(beside(&place)).unwrap();
    let copy = open_small(&beside(&place));
    assert_eq!(copy.keyspace("reverse").unwrap_err().kind(), ErrorKind::ComparatorMissing);
    let reverse = copy.keyspace_ordered("reverse", Arc::new(Reverse)).unwrap();
    assert_eq!(super::keys(reverse.iter().unwrap()), ["b", "a"]);
}

/// Batches write one number to two keyspaces: in a checkpoint both have the same one.
#[test]
fn checkpoints_of_a_busy_database_are_one_moment() {
    let (place, db) = fresh();
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                if done.load(Relaxed) {
                    break;
                }
                let mut batch = Batch::new();
                batch.insert(&left, key((number % 500) as usize), number.to_be_bytes());
                batch.insert(&right, key((number % 500) as usize), number.to_be_bytes());
                db.write(batch).unwrap();
            }
        });
        for round in 0..8 {
            let path = place.path().with_extension(format!("c{round}"));
            db.checkpoint(&path).unwrap();
            let copy = open_small(&path);
            let read = |name| entries(copy.keyspace(name).unwrap().iter().unwrap());
            assert_eq!(read("left"), read("right"));
            assert!(copy.verify().unwrap().problems.is_empty());
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn space_returns_in_both_when_the_other_is_gone() {
    let (place, db) = fresh();
    fill(&db, 0..5000, 1);
    db.flush().unwrap();
    db.checkpoint(beside(&place)).unwrap();
    db.remove_range::<&str>(..).unwrap();
    db.compact().unwrap();
    assert!(settled(&db, &place.path(), |bytes| bytes < 4096) < 4096);
    let copy = open_small(&beside(&place));
    assert_eq!(copy.iter().unwrap().count(), 5000);
    copy.remove_range::<&str>(..).unwrap();
    copy.compact().unwrap();
    assert!(settled(&copy, &beside(&place), |bytes| bytes < 4096) < 4096);
}
