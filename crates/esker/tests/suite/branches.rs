//! Branches and crashes (R24): what a crash leaves of parent and branches is the state after some
//! operation, all of them together, with everything that was durable.
use super::separating as options;
use esker::fs::{Fs, OpenMode};
use esker::{Db, Durability, ErrorKind, Recovery};
use esker_testkit::faultfs::{Effect, Op, Rule};
use esker_testkit::{CrashFs, FaultFs, Rng};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The database itself has the empty name.
type World = BTreeMap<String, Map>;

fn read_map(db: &Db) -> Result<Map, esker::Error> {
    db.iter()?.collect()
}

fn read(db: &Db) -> Result<World, esker::Error> {
    let mut world = World::from([(String::new(), read_map(db)?)]);
    for name in db.branches()? {
        world.insert(name.clone(), read_map(&db.open_branch(&name)?)?);
    }
    for name in db.named_snapshots()? {
        world.insert(name.clone(), read_map(&db.open_named_snapshot(&name)?)?);
    }
    Ok(world)
}

fn handle(db: &Db, name: &str) -> Db {
    if name.is_empty() { db.clone() } else { db.open_branch(name).unwrap() }
}

/// What a crash may leave: the worlds from `durable` to `begun`.
struct Image {
    disk: CrashFs,
    durable: usize,
    begun: usize,
}

#[derive(Default)]
struct Progress {
    /// Operations that have begun, ended, and were durable when they ended.
    begun: AtomicUsize,
    ended: AtomicUsize,
    durable: AtomicUsize,
}

/// One random operation on the database, and what it makes of the world. Says whether all so far
/// is durable when it returns.
fn step(db: &Db, world: &mut World, rng: &mut Rng, number: usize) -> bool {
    let writable: Vec<String> =
        world.keys().filter(|name| !name.starts_with('s')).cloned().collect();
    let name = writable[rng.below(writable.len() as u64) as usize].clone();
    let key = |rng: &mut Rng| format!("{:04}", rng.below(300)).into_bytes();
    match rng.below(100) {
        0..=2 if world.len() < 8 => {
            let made = format!("b{number}");
            handle(db, &name).branch(&made).unwrap();
            world.insert(made, world[&name].clone());
            true
        }
        3..=4 if world.len() < 8 => {
            let made = format!("s{number}");
            handle(db, &name).snapshot_named(&made).unwrap();
            world.insert(made, world[&name].clone());
            true
        }
        5..=7 => {
            let gone = world.keys().nth(rng.below(world.len() as u64) as usize).unwrap().clone();
            if gone.is_empty() {
                return false;
            }
            world.remove(&gone);
            let was = if gone.starts_with('s') {
                db.drop_named_snapshot(&gone)
            } else {
                db.drop_branch(&gone)
            };
            assert!(was.unwrap());
            true
        }
        8..=12 => {
            let (from, to) = (key(rng), key(rng));
            let (from, to) = (from.clone().min(to.clone()), from.max(to));
            handle(db, &name).remove_range(from.clone()..to.clone()).unwrap();
            world.get_mut(&name).unwrap().retain(|key, _| *key < from || *key >= to);
            false
        }
        13..=22 => {
            let key = key(rng);
            handle(db, &name).remove(&key).unwrap();
            world.get_mut(&name).unwrap().remove(&key);
            false
        }
        n => {
            let (key, value) = (key(rng), vec![number as u8; 20 + rng.below(150) as usize]);
            let disk = n > 96;
            let durability = if disk { Durability::Disk } else { Durability::Process };
            let space = handle(db, &name).default_keyspace();
            space.insert_with(&key, &value, durability).unwrap();
            world.get_mut(&name).unwrap().insert(key, value);
            disk
        }
    }
}

fn seed() -> u64 {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    eprintln!("ESKER_SEED={seed}");
    seed
}

fn difference(found: &World, expected: &World) -> String {
    let names: Vec<_> = found.keys().chain(expected.keys()).collect();
    let mut text = String::new();
    for name in names {
        match (found.get(name), expected.get(name)) {
            (Some(found), Some(expected)) => {
                let extra = found.iter().filter(|(key, value)| expected.get(*key) != Some(value));
                let lost = expected.keys().filter(|key| !found.contains_key(*key));
                let show = |key: &Vec<u8>| key.escape_ascii().to_string();
                let extra: Vec<_> = extra.map(|(key, _)| show(key)).collect();
                let lost: Vec<_> = lost.map(show).collect();
                text += &format!("[{name:?}: more or other {extra:?}, lost {lost:?}] ");
            }
            (found, _) => text += &format!("[{name:?} is there: {}] ", found.is_some()),
        }
    }
    text
}

/// Opens an image, compares, writes to the parent and every branch, and opens it again.
fn judge(image: &Image, worlds: &[World], what: &str) {
    let db = Db::open_with("/db", options(image.disk.as_fs()));
    let db = db.unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut world = read(&db).unwrap_or_else(|error| panic!("{what}: {error}"));
    let allowed = &worlds[image.durable..=image.begun];
    assert!(
        allowed.contains(&world),
        "{what}: not the state after any operation from {} to {}: {}",
        image.durable,
        image.begun,
        difference(&world, &allowed[0])
    );
    for name in world.keys().filter(|name| !name.starts_with('s')).cloned().collect::<Vec<_>>() {
        let key = format!("of {name}").into_bytes();
        handle(&db, &name).insert(&key, "after the crash").unwrap();
        world.get_mut(&name).unwrap().insert(key, b"after the crash".to_vec());
    }
    assert_eq!(read(&db).unwrap(), world, "{what}: after writing");
    assert!(db.verify().unwrap().problems.is_empty(), "{what}");
    db.close().unwrap();
    let db = Db::open_with("/db", options(image.disk.as_fs())).unwrap();
    assert_eq!(read(&db).unwrap(), world, "{what}: reopened");
}

#[test]
fn a_crash_leaves_parent_and_branches_at_one_moment() {
    let mut rng = Rng::new(seed());
    let rounds = std::env::var("ESKER_CRASH_POINTS").ok().and_then(|n| n.parse().ok());
    let rounds: u64 = rounds.unwrap_or(500) / 100;
    for round in 0..rounds.max(1) {
        let disk = CrashFs::new();
        let db = Db::open_with("/db", options(disk.as_fs())).unwrap();
        let images = Arc::new(Mutex::new(Vec::new()));
        let progress = Arc::new(Progress::default());
        let (watched, seen, at) = (disk.clone(), images.clone(), progress.clone());
        let every = 20 + rng.below(40);
        disk.set_hook(Some(Arc::new(move |number, what| {
            // Around branches everything is looked at: they are what syncs.
            if number % every != 0 && !(what.contains("sync") && number % 3 == 0) {
                return;
            }
            let percent = [0, 50, 100][(number % 3) as usize];
            let durable = at.durable.load(Ordering::SeqCst);
            let power = watched.crash_clone(number, percent);
            let ended = at.ended.load(Ordering::SeqCst);
            let killed = watched.kill_clone();
            let begun = at.begun.load(Ordering::SeqCst);
            let mut seen = seen.lock();
            seen.push(Image { disk: power, durable, begun });
            if number % 5 == 0 {
                seen.push(Image { disk: killed, durable: ended, begun });
            }
        })));
        let mut world = World::from([(String::new(), Map::new())]);
        let mut worlds = vec![world.clone()];
        for number in 1..=600 {
            progress.begun.store(number, Ordering::SeqCst);
            let durable = step(&db, &mut world, &mut rng, number);
            worlds.push(world.clone());
            progress.ended.store(number, Ordering::SeqCst);
            if durable {
                progress.durable.store(number, Ordering::SeqCst);
            }
            if number % 25 == 0 {
                let found = read(&db).unwrap();
                assert!(found == world, "live at {number}: {}", difference(&found, &world));
            }
            if number % 200 == 0 {
                db.compact().unwrap();
            }
        }
        disk.set_hook(None);
        let images = std::mem::take(&mut *images.lock());
        assert!(images.len() > 20, "{} images", images.len());
        let step = (images.len() / 100).max(1);
        for (number, image) in images.iter().enumerate().step_by(step) {
            judge(image, &worlds, &format!("round {round}, image {number}"));
        }
        assert_eq!(read(&db).unwrap(), world);
    }
}

/// A log that lost its end before the point of a branch: open refuses, and if it may keep the
/// prefix, what is written next does not turn up in the branch.
#[test]
fn a_log_that_ends_before_a_branch_is_damage() {
    let disk = CrashFs::new();
    let faults = FaultFs::over(&disk);
    let db = Db::open_with("/db", options(faults.as_fs())).unwrap();
    // Nothing is flushed, so that the log is needed.
    let refuse = Effect::Error(std::io::ErrorKind::Other);
    faults.add(Rule::new(Op::Create, refuse).path("/data/").persistent());
    for number in 0..50 {
        db.insert(format!("{number:04}"), "before").unwrap();
    }
    db.branch("b").unwrap();
    let disk = disk.kill_clone();
    drop(db);
    // The last records rot away, without a trace of having been there.
    let log = Path::new("/db/wal");
    for entry in disk.list(log).unwrap() {
        let file = disk.open(&log.join(entry.name), OpenMode::ReadWrite).unwrap();
        let len = file.len().unwrap();
        let mut bytes = vec![0; len as usize];
        file.read_at(&mut bytes, 0).unwrap();
        let Some(end) = bytes.iter().rposition(|byte| *byte != 0).filter(|at| *at > 5000) else {
            continue;
        };
        file.write_at(&[0; 500], end as u64 - 499).unwrap();
    }
    let error = Db::open_with("/db", options(disk.as_fs())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let mut keep = options(disk.as_fs());
    keep.recovery = Recovery::KeepPrefix;
    let db = Db::open_with("/db", keep).unwrap();
    let kept = read_map(&db).unwrap();
    assert!(kept.len() > 20 && kept.len() < 50, "{} entries", kept.len());
    for number in 0..50 {
        db.insert(format!("later {number:04}"), "of the parent").unwrap();
    }
    for when in ["at once", "flushed", "reopened"] {
        let db = match when {
            "flushed" => {
                db.flush().unwrap();
                db.clone()
            }
            "reopened" => {
                db.close().unwrap();
                Db::open_with("/db", options(disk.as_fs())).unwrap()
            }
            _ => db.clone(),
        };
        assert_eq!(read_map(&db.open_branch("b").unwrap()).unwrap(), kept, "{when}");
        assert_eq!(read_map(&db).unwrap().len(), kept.len() + 50, "{when}");
    }
}
