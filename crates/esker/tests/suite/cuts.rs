//! What tests share that cut work off at every step, and compare what a database with branches holds.

use esker::Db;
use esker_testkit::CrashFs;
use std::sync::{Arc, Mutex};

pub const PATH: &str = "/db";

pub fn key(number: usize) -> String {
    format!("key{number:04}")
}

/// The entries of each keyspace of the database, its branches and its named snapshots.
pub type World = Vec<(String, Vec<(Vec<u8>, Vec<u8>)>)>;

/// What the database, its branches and its named snapshots hold in the keyspaces `default` and `words`.
pub fn world(db: &Db) -> World {
    let mut all = vec![(String::new(), db.clone())];
    for name in db.branches().unwrap() {
        all.push((name.clone(), db.open_branch(&name).unwrap()));
    }
    for name in db.named_snapshots().unwrap() {
        all.push((name.clone(), db.open_named_snapshot(&name).unwrap()));
    }
    let mut found = World::new();
    for (name, db) in all {
        for keyspace in ["default", "words"] {
            let entries = db.keyspace(keyspace).unwrap().iter().unwrap();
            found.push((format!("{name}/{keyspace}"), entries.map(Result::unwrap).collect()));
        }
    }
    found
}

/// Makes the branches `one`, `two` and `three`, and returns the second, which differs then.
pub fn branch_thrice(db: &Db) -> Db {
    for name in ["one", "two", "three"] {
        drop(db.branch(name).unwrap());
    }
    let two = db.open_branch("two").unwrap();
    two.insert(key(250), "of its own").unwrap();
    two.compact().unwrap();
    two
}

/// The disk as it would be found if the process had been killed, or the power cut, before each step that
/// `work` makes there, each with its story.
pub fn cuts_of(disk: &CrashFs, work: impl FnOnce()) -> Vec<(String, CrashFs)> {
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let (taken, source) = (cuts.clone(), disk.clone());
    disk.set_hook(Some(Arc::new(move |step, what: &str| {
        let survivors = [0, 50, 100][step as usize % 3];
        let cut = source.crash_clone(step, survivors);
        let mut cuts = taken.lock().unwrap();
        cuts.push((format!("killed before {what} ({step})"), source.kill_clone()));
        cuts.push((format!("power cut before {what} ({step}), {survivors} % survive"), cut));
    })));
    work();
    disk.set_hook(None);
    let cuts = std::mem::take(&mut *cuts.lock().unwrap());
    println!("{} cuts", cuts.len());
    cuts
}
