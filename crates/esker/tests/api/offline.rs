//! Databases that are closed: destroying them, and repairing them in place, on a real file system
//! with links and with files that are not the database's.

use super::*;
use esker::ErrorKind;
use std::fs;
use std::os::unix::fs::symlink;

/// Everything that leaves files: keyspaces, branches, snapshots, several lives, a log.
fn rich() -> Place {
    let place = Place::new();
    for life in 0..2 {
        let db = place.open();
        let other = db.keyspace("other").unwrap();
        fill(&db, 0..400, life);
        other.insert("k", "v").unwrap();
        db.branch(&format!("branch {life}")).unwrap().insert("k", "v").unwrap();
        db.snapshot_named(&format!("snapshot {life}")).unwrap();
        db.compact().unwrap();
        fill(&db, 300..500, life);
        db.close().unwrap();
    }
    place
}

fn destroy(path: &Path) -> esker::Result<()> {
    Db::destroy(path, &small())
}

/// Everything below a directory, by relative path; links are not followed.
fn tree(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                pending.push(path.clone());
            }
            let bytes = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push((name, bytes));
        }
    }
    found.sort();
    found
}

fn names(directory: &Path) -> Vec<String> {
    tree(directory).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn destroying_leaves_nothing_of_a_database() {
    let place = rich();
    // What an open sets aside, and what a repair that was cut off marks.
    fs::write(place.path().join("data/0000009999.run.set-aside-000003"), "lost").unwrap();
    fs::write(place.path().join("MANIFEST-000001.set-aside-000003"), "lost").unwrap();
    fs::write(place.path().join("INCOMPLETE"), "a mark").unwrap();
    destroy(&place.path()).unwrap();
    assert_eq!(names(place.dir.path()), [""; 0]);
    // Nothing, at a path with or without a directory above it, is nothing to do.
    destroy(&place.path()).unwrap();
    destroy(&place.path().join("below/that")).unwrap();
    // An empty directory is what a destruction leaves that was cut off at the very end.
    fs::create_dir(place.path()).unwrap();
    destroy(&place.path()).unwrap();
    assert_eq!(names(place.dir.path()), [""; 0]);
}

#[test]
fn destroying_removes_only_files_of_a_database() {
    let place = rich();
    let at = |name: &str| place.path().join(name);
    let mine = ["data/00000000042.run", "data/mine", "superblock-C", "wal/42.log", "wal/notes"];
    for name in mine {
        fs::write(at(name), "mine").unwrap();
    }
    let directories = ["MANIFEST-000099", "data/0000000099.run"];
    for name in directories {
        fs::create_dir(at(name)).unwrap();
    }
    destroy(&place.path()).unwrap();
    let mut expected: Vec<&str> = [&mine[..], &directories, &["data", "wal"]].concat();
    expected.sort_unstable();
    assert_eq!(names(&place.path()), expected);
    assert!(mine.iter().all(|name| fs::read(at(name)).unwrap() == b"mine"));
    let error = destroy(&place.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotADatabase, "{error}");
    assert_eq!(names(&place.path()), expected);
}

#[test]
fn nothing_is_destroyed_through_a_link() {
    let place = rich();
    let outside = place.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    // The runs are elsewhere, one log segment too, and a file has a second name.
    fs::rename(place.path().join("data"), outside.join("data")).unwrap();
    symlink(outside.join("data"), place.path().join("data")).unwrap();
    fs::write(outside.join("log"), "a log").unwrap();
    symlink(outside.join("log"), place.path().join("wal/0000007777.log")).unwrap();
    fs::hard_link(place.path().join("superblock-A"), outside.join("superblock-A")).unwrap();
    let before = tree(&outside);
    destroy(&place.path()).unwrap();
    assert_eq!(names(&place.path()), ["data", "wal", "wal/0000007777.log"]);
    assert_eq!(tree(&outside), before);

    // A link for a lock file: nobody else may be kept out by it, and nothing is made through it.
    let place = rich();
    fs::remove_file(place.path().join("LOCK")).unwrap();
    symlink(outside.join("nothing"), place.path().join("LOCK")).unwrap();
    let inside = tree(&place.path());
    assert_eq!(destroy(&place.path()).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!((tree(&place.path()), tree(&outside)), (inside, before));

    // The path itself may be a link. It stays, and leads to an empty directory, as often as wanted.
    let place = rich();
    let alias = place.dir.path().join("alias");
    symlink(place.path(), &alias).unwrap();
    for _ in 0..2 {
        destroy(&alias).unwrap();
        assert_eq!(names(place.dir.path()), ["alias", "db"]);
    }
}

#[test]
fn what_is_no_database_is_not_destroyed() {
    let place = Place::new();
    let refused = |found: &str| {
        let before = tree(place.dir.path());
        let error = destroy(&place.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADatabase, "{error}");
        assert!(error.to_string().contains(found), "{error}");
        assert_eq!(tree(place.dir.path()), before, "{found}");
    };
    fs::write(place.path(), "mine").unwrap();
    refused("it is a file");
    fs::remove_file(place.path()).unwrap();
    symlink("nothing", place.path()).unwrap();
    refused("it is a symbolic link");
    fs::remove_file(place.path()).unwrap();
    fs::create_dir(place.path()).unwrap();
    fs::write(place.path().join("notes"), "mine").unwrap();
    refused("it holds no file of one");
    // Names of LevelDB, which look like ours.
    for name in ["LOCK", "LOG", "MANIFEST-000004", "000005.ldb", "CURRENT"] {
        fs::write(place.path().join(name), "what LevelDB wrote").unwrap();
    }
    refused("LevelDB");
    fs::remove_file(place.path().join("CURRENT")).unwrap();
    refused("it holds no file of one");
    // Whatever else is there: one of the two has to go elsewhere first.
    fs::remove_dir_all(place.path()).unwrap();
    place.open().close().unwrap();
    fs::write(place.path().join("CURRENT"), "mine").unwrap();
    refused("LevelDB");
    for name in names(&place.path()).iter().filter(|name| name.starts_with("MANIFEST-")) {
        fs::remove_file(place.path().join(name)).unwrap();
    }
    refused("CURRENT");
}

#[test]
fn an_open_database_is_neither_destroyed_nor_repaired() {
    let (place, db) = fresh();
    fill(&db, 0..300, 1);
    db.flush().unwrap();
    for error in
        [destroy(&place.path()).unwrap_err(), Db::repair(place.path(), &small()).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    }
    assert_eq!(entries(db.iter().unwrap()).len(), 300);
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    assert!(!Db::repair(place.path(), &small()).unwrap().is_changed());
    destroy(&place.path()).unwrap();
    assert!(!place.path().exists());
}

/// What the path leads to is replaced, and kept where it is, whatever the path looks like.
#[test]
fn a_repair_in_place_follows_the_path_to_the_directory() {
    let place = rich();
    let elsewhere = place.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(place.path(), elsewhere.join("real")).unwrap();
    symlink(elsewhere.join("real"), place.path()).unwrap();
    let run = fs::read_dir(elsewhere.join("real/data")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&run).unwrap();
    let at = bytes.len() / 2;
    bytes[at..at + 40].fill(0xa5);
    fs::write(&run, bytes).unwrap();
    let before = tree(&elsewhere.join("real"));
    let repaired = Db::repair(place.path(), &small()).unwrap();
    let kept = repaired.kept.clone().unwrap();
    assert_eq!(kept, elsewhere.canonicalize().unwrap().join("real.damaged-1"));
    assert_eq!(tree(&kept), before);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 2);
    assert!(place.path().symlink_metadata().unwrap().is_symlink());
    let db = place.open();
    assert!(db.verify().unwrap().problems.is_empty());
    assert!(!entries(db.iter().unwrap()).is_empty());
    db.close().unwrap();
    destroy(&kept).unwrap();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
}
