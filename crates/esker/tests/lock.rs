//! Only one handle at a time has a database open (C6), whatever the path by which it comes and
//! whichever process it lives in; a handle that comes too late changes nothing.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod live;

use esker::{Db, ErrorKind};
use esker_testkit::digest::Tree;
use live::tiny;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells this test binary, run once more, which database to use and how.
const ROLE: &str = "ESKER_LOCK_TEST";

/// Runs this binary again in a role; only `in_another_process` runs in it.
fn process(role: &str, path: &Path) -> Child {
    let this = std::env::current_exe().unwrap();
    Command::new(this)
        .args(["--exact", "in_another_process", "--nocapture"])
        .env(ROLE, format!("{role}:{}", path.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a process in the role `open` found.
fn open_elsewhere(path: &Path) -> String {
    let output = process("open", path).wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answer = text.lines().find_map(|line| line.split_once("answer: "));
    answer.unwrap_or_else(|| panic!("no answer in {text:?}")).1.to_owned()
}

/// A process that holds the database open until it is killed.
fn hold_elsewhere(path: &Path) -> Child {
    use std::io::BufRead;
    let mut child = process("hold", path);
    let mut lines = std::io::BufReader::new(child.stdout.as_mut().unwrap()).lines();
    while !lines.next().expect("it says that it holds").unwrap().contains("answer: open") {}
    child
}

/// No test of its own: the other process of the tests below.
#[test]
fn in_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, path) = role.split_once(':').unwrap();
    match Db::open_with(path, tiny()) {
        Err(error) => println!("answer: {}", error.kind().as_str()),
        Ok(db) => {
            if role == "hold" {
                db.insert("held", "yes").unwrap();
                println!("answer: open");
                // Until it is killed.
                let mut nothing = String::new();
                std::io::stdin().read_line(&mut nothing).unwrap();
            } else {
                println!("answer: open");
            }
            std::process::exit(0);
        }
    }
}

fn kind_of_open(path: impl AsRef<Path>) -> Result<Db, ErrorKind> {
    Db::open_with(path, tiny()).map_err(|error| error.kind())
}

#[cfg(unix)]
#[test]
fn the_path_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    let link = dir.path().join("link");
    let mut options = tiny();
    // It writes when it likes.
    options.monitor = Some(false);
    let db = Db::open_with(&real, options).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let above = dir.path().join("real/../link/../real");
    let up: PathBuf = std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
    let relative = up.join(real.strip_prefix("/").unwrap());
    assert!(relative.is_relative() && relative.exists());
    let before = Tree::read(&*esker::fs::os(), &real).unwrap();
    for path in [&real, &link, &above, &relative] {
        assert_eq!(kind_of_open(path).unwrap_err(), ErrorKind::Locked, "{}", path.display());
        assert_eq!(open_elsewhere(&path.canonicalize().unwrap()), "locked");
        let mut reading = tiny();
        reading.read_only = true;
        let error = Db::open_with(path, reading).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
    }
    let after = Tree::read(&*esker::fs::os(), &real).unwrap();
    assert!(after.differences(&before).is_empty(), "{:?}", after.differences(&before));
    db.insert("still", "mine").unwrap();
    db.close().unwrap();
    // The lock is free although the handle still lives.
    let again = Db::open_with(&link, tiny()).unwrap();
    assert_eq!(again.get("still").unwrap().as_deref(), Some(&b"mine"[..]));
    drop(db);
    assert_eq!(open_elsewhere(&real), "locked", "the closed handle took the lock of another");
}

#[test]
fn closing_another_descriptor_does_not_free_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    for _ in 0..3 {
        // Locks of `fcntl` would go with this.
        drop(std::fs::File::open(dir.path().join("LOCK")).unwrap());
        drop(std::fs::OpenOptions::new().write(true).open(dir.path().join("LOCK")).unwrap());
        assert_eq!(kind_of_open(dir.path()).unwrap_err(), ErrorKind::Locked);
        assert_eq!(open_elsewhere(dir.path()), "locked");
    }
    db.close().unwrap();
    assert_eq!(open_elsewhere(dir.path()), "open");
}

#[test]
fn a_killed_holder_leaves_no_lock_behind() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let mut holder = hold_elsewhere(dir.path());
        assert_eq!(kind_of_open(dir.path()).unwrap_err(), ErrorKind::Locked);
        holder.kill().unwrap();
        holder.wait().unwrap();
        let db = Db::open_with(dir.path(), tiny()).unwrap();
        assert_eq!(db.get("held").unwrap().as_deref(), Some(&b"yes"[..]), "round {round}");
        db.insert(format!("round {round}"), "").unwrap();
        db.close().unwrap();
        db.close().unwrap();
    }
    let db = Db::open_with(dir.path(), tiny()).unwrap();
    assert_eq!(db.iter().unwrap().count(), 6);
}

#[test]
fn of_those_that_open_at_once_exactly_one_wins() {
    const OPENERS: u64 = 16;
    let dir = tempfile::tempdir().unwrap();
    for round in 0..live::rounds(30) {
        // Every third time there is nothing yet, else a database that was closed or dropped.
        let path = dir.path().join(format!("db{}", round / 3));
        let barrier = Barrier::new(OPENERS as usize);
        let (opened, done) = (AtomicU64::new(0), Barrier::new(OPENERS as usize));
        std::thread::scope(|scope| {
            for opener in 0..OPENERS {
                let (path, barrier, opened, done) = (&path, &barrier, &opened, &done);
                scope.spawn(move || {
                    barrier.wait();
                    let db = kind_of_open(path);
                    if let Ok(db) = &db {
                        opened.fetch_add(1, Ordering::SeqCst);
                        db.insert(round.to_be_bytes(), opener.to_be_bytes()).unwrap();
                    }
                    // An open handle stays open until all have tried.
                    done.wait();
                    match db {
                        Ok(db) if opener % 2 == 0 => db.close().unwrap(),
                        Ok(db) => drop(db),
                        Err(kind) => assert_eq!(kind, ErrorKind::Locked, "round {round}"),
                    }
                });
            }
        });
        assert_eq!(opened.into_inner(), 1, "round {round}");
        let db = Db::open_with(&path, tiny()).unwrap();
        assert_eq!(db.iter().unwrap().count() as u64, round % 3 + 1);
        assert!(db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
    }
}
