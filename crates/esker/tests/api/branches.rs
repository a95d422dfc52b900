use super::{
    Place, as_after_a_crash, entries, fill, fresh, key, keys, open_roomy, run_files, settled,
    small, text,
};
use esker::{
    Batch, CompactionFilter, Db, Decision, Durability, ErrorKind, KeyspaceOptions, Options,
};
use esker_testkit::orders::Reverse;
use std::sync::Arc;

/// What every test does at some point: everything on disk is in order, and closes.
fn sound(db: &Db) {
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn get(db: &Db, key: &str) -> Option<String> {
    text(db.get(key).unwrap())
}

#[test]
fn a_branch_begins_as_its_parent_was_and_goes_its_own_way() {
    let (place, db) = fresh();
    fill(&db, 0..2000, 1);
    db.insert("only in memory", "yes").unwrap();
    let expected = entries(db.iter().unwrap());
    let branch = db.branch("trial").unwrap();
    assert_eq!(branch.branch_name(), Some("trial"));
    assert_eq!(entries(branch.iter().unwrap()), expected);
    fill(&branch, 1000..3000, 2);
    branch.remove_range(key(0)..key(500)).unwrap();
    fill(&db, 0..100, 3);
    db.remove("only in memory").unwrap();
    let check = |db: &Db, branch: &Db| {
        assert_eq!(db.iter().unwrap().count(), 2000);
        assert_eq!(branch.iter().unwrap().count(), 2501);
        assert_eq!(get(db, &key(50)), Some(super::value(50, 3)));
        assert_eq!(get(branch, &key(50)), None);
        assert_eq!(get(db, &key(1500)), Some(super::value(1500, 1)));
        assert_eq!(get(branch, &key(1500)), Some(super::value(1500, 2)));
        assert_eq!(get(branch, &key(700)), Some(super::value(700, 1)));
        assert_eq!(get(branch, "only in memory").as_deref(), Some("yes"));
        assert_eq!(get(db, "only in memory"), None);
    };
    check(&db, &branch);
    db.flush().unwrap();
    check(&db, &branch);
    db.compact().unwrap();
    branch.compact().unwrap();
    check(&db, &branch);
    sound(&db);
    db.close().unwrap();
    let db = place.open();
    assert_eq!(db.branches().unwrap(), ["trial"]);
    check(&db, &db.open_branch("trial").unwrap());
    sound(&db);
}

#[test]
fn what_is_in_memory_is_shared_and_comes_back_from_the_log() {
    let place = Place::new();
    let db = open_roomy(&place);
    let other = db.keyspace("other").unwrap();
    for number in 0..100 {
        db.insert(key(number), "parent").unwrap();
        other.insert(key(number), "other").unwrap();
    }
    db.remove(key(7)).unwrap();
    db.remove_range(key(20)..key(30)).unwrap();
    let first = db.branch("first").unwrap();
    for number in 0..10 {
        first.insert(key(number), "first").unwrap();
        db.insert(key(number), "later").unwrap();
    }
    let second = first.branch("second").unwrap();
    second.keyspace("new").unwrap().insert("k", "v").unwrap();
    second.remove(key(3)).unwrap();
    let check = |db: &Db, when: &str| {
        let (first, second) = (db.open_branch("first").unwrap(), db.open_branch("second").unwrap());
        assert_eq!(get(db, &key(3)).as_deref(), Some("later"), "{when}");
        assert_eq!(get(&first, &key(3)).as_deref(), Some("first"), "{when}");
        assert_eq!(get(&second, &key(3)), None, "{when}");
        assert_eq!(get(&second, &key(4)).as_deref(), Some("first"), "{when}");
        assert_eq!(get(&second, &key(50)).as_deref(), Some("parent"), "{when}");
        assert_eq!(db.iter().unwrap().count(), 90, "{when}");
        assert_eq!(first.iter().unwrap().count(), 90, "{when}");
        assert_eq!(second.iter().unwrap().count(), 89, "{when}");
        assert_eq!(first.keyspace("other").unwrap().iter().unwrap().count(), 100, "{when}");
        assert_eq!(db.keyspaces().unwrap(), ["default", "other"], "{when}");
        assert_eq!(second.keyspaces().unwrap(), ["default", "new", "other"], "{when}");
    };
    check(&db, "at once");
    // A copy of the directory is what a killed process leaves.
    let killed = as_after_a_crash(&place);
    check(&open_roomy(&killed), "after replay");
    let mut options = Options::default();
    options.read_only = true;
    let killed = as_after_a_crash(&place);
    check(&Db::open_with(killed.path(), options).unwrap(), "read only");
    db.flush().unwrap();
    check(&db, "after a flush");
    let killed = as_after_a_crash(&place);
    check(&open_roomy(&killed), "after a flush and replay");
    sound(&db);
}

#[test]
fn a_branch_costs_no_space_whatever_it_shares() {
    let place = Place::new();
    let db = open_roomy(&place);
    let manifest = || -> u64 {
        let entries = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap());
        let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with("MANIFEST"));
        // The end of what is written, not of the space that is prepared.
        let end = |bytes: Vec<u8>| bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64;
        named.map(|entry| end(std::fs::read(entry.path()).unwrap())).sum()
    };
    let mut costs = Vec::new();
    for size in [1_000, 50_000] {
        for number in 0..size {
            // Bytes that hardly shrink.
            let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let value: [u8; 100] = std::array::from_fn(|at| (mixed >> (at % 57)) as u8);
            db.insert(key(number), value).unwrap();
        }
        db.compact().unwrap();
        db.wait_until_idle().unwrap();
        let before = (run_files(&place.path()).0, manifest());
        db.branch(&format!("of {size}")).unwrap();
        let after = (run_files(&place.path()).0, manifest());
        assert_eq!(after.0, before.0, "{before:?} {after:?}");
        costs.push(after.1 - before.1);
    }
    assert!(costs.iter().all(|bytes| *bytes < 256), "{costs:?}");
    assert!(run_files(&place.path()).0 > 1 << 20);
}

#[test]
fn many_branches_share_one_description_of_what_they_share() {
    let (place, db) = fresh();
    fill(&db, 0..5000, 1);
    db.compact().unwrap();
    db.close().unwrap();
    let manifest = || -> u64 {
        let entries = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap());
        let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with("MANIFEST"));
        named.map(|entry| entry.metadata().unwrap().len()).sum()
    };
    // An open writes the whole state anew.
    drop(place.open());
    let before = manifest();
    let db = place.open();
    for number in 0..50 {
        let branch = db.branch(&format!("b{number}")).unwrap();
        fill(&branch, [number * 10], 2);
    }
    db.close().unwrap();
    let db = place.open();
    let after = manifest();
    assert!(after < before * 4, "{before} and {after} bytes");
    for number in 0..50 {
        let branch = db.open_branch(&format!("b{number}")).unwrap();
        assert_eq!(branch.iter().unwrap().count(), 5000);
        assert_eq!(get(&branch, &key(number * 10)), Some(super::value(number * 10, 2)));
        assert_eq!(get(&branch, &key(number * 10 + 1)), Some(super::value(number * 10 + 1, 1)));
    }
    sound(&db);
}

#[test]
fn a_dropped_branch_is_gone_and_its_space_returns() {
    let (place, db) = fresh();
    fill(&db, 0..3000, 1);
    db.compact().unwrap();
    let alone = settled(&db, &place.path(), |_| true);
    let branch = db.branch("trial").unwrap();
    fill(&branch, 0..3000, 2);
    branch.compact().unwrap();
    assert!(run_files(&place.path()).0 > alone + alone / 2);
    let iter = branch.iter().unwrap();
    let space = branch.keyspace("space").unwrap();
    assert!(db.drop_branch("trial").unwrap());
    assert!(!db.drop_branch("trial").unwrap());
    assert_eq!(branch.get("k").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(branch.insert("k", "v").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(space.insert("k", "v").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    assert_eq!(branch.keyspace("x").unwrap_err().kind(), ErrorKind::BranchMissing);
    assert_eq!(branch.branch("y").unwrap_err().kind(), ErrorKind::BranchMissing);
    assert_eq!(db.open_branch("trial").unwrap_err().kind(), ErrorKind::BranchMissing);
    assert_eq!(iter.filter(Result::is_ok).count(), 3000, "it holds what it reads");
    assert!(db.branches().unwrap().is_empty());
    let enough = alone + alone / 4;
    assert!(settled(&db, &place.path(), |bytes| bytes < enough) < enough);
    // The name is free, and numbers are not used twice.
    let again = db.branch("trial").unwrap();
    assert_eq!(get(&again, &key(5)), Some(super::value(5, 1)));
    assert_eq!(branch.insert("k", "v").unwrap_err().kind(), ErrorKind::KeyspaceDropped);
    sound(&db);
    db.close().unwrap();
    let db = place.open();
    assert_eq!(db.branches().unwrap(), ["trial"]);
    assert_eq!(get(&db, &key(5)), Some(super::value(5, 1)));
}

#[test]
fn branches_outlive_what_they_were_made_from() {
    let place = Place::new();
    let db = open_roomy(&place);
    let data = db.keyspace("data").unwrap();
    data.insert("flushed", "1").unwrap();
    db.flush().unwrap();
    data.insert("in memory", "2").unwrap();
    let middle = db.branch("middle").unwrap();
    middle.keyspace("data").unwrap().insert("of the middle", "3").unwrap();
    middle.branch("last").unwrap();
    db.drop_keyspace("data").unwrap();
    db.drop_branch("middle").unwrap();
    let check = |db: &Db, when: &str| {
        assert_eq!(db.keyspaces().unwrap(), ["default"], "{when}");
        assert_eq!(db.branches().unwrap(), ["last"], "{when}");
        let data = db.open_branch("last").unwrap().keyspace("data").unwrap();
        assert_eq!(keys(data.iter().unwrap()), ["flushed", "in memory", "of the middle"], "{when}");
    };
    check(&db, "at once");
    for _ in 0..2 {
        let killed = as_after_a_crash(&place);
        let again = open_roomy(&killed);
        check(&again, "after replay");
        sound(&again);
        again.compact().unwrap();
        check(&again, "after replay and a compaction");
        db.flush().unwrap();
    }
    check(&db, "after a flush");
    db.close().unwrap();
    check(&open_roomy(&place), "reopened");
}

#[test]
fn a_keyspace_of_a_dropped_branch_does_not_come_back_from_the_log() {
    let place = Place::new();
    let db = open_roomy(&place);
    let branch = db.branch("b").unwrap();
    branch.keyspace("made in it").unwrap().insert("k", "v").unwrap();
    db.drop_branch("b").unwrap();
    db.keyspace("later").unwrap().insert("k", "w").unwrap();
    let killed = as_after_a_crash(&place);
    let again = open_roomy(&killed);
    assert_eq!(again.keyspaces().unwrap(), ["default", "later"]);
    assert!(again.branches().unwrap().is_empty());
    let made = again.keyspace("next").unwrap();
    assert!(made.iter().unwrap().next().is_none());
    sound(&again);
}

#[test]
fn a_named_snapshot_stays_as_it_was_and_refuses_writes() {
    let (place, db) = fresh();
    fill(&db, 0..1000, 1);
    db.keyspace("other").unwrap().insert("k", "v").unwrap();
    db.snapshot_named("monday").unwrap();
    fill(&db, 0..1000, 2);
    db.compact().unwrap();
    let check = |db: &Db| {
        let monday = db.open_named_snapshot("monday").unwrap();
        assert_eq!(monday.iter().unwrap().count(), 1000);
        assert_eq!(get(&monday, &key(5)), Some(super::value(5, 1)));
        assert_eq!(get(db, &key(5)), Some(super::value(5, 2)));
        assert!(monday.made_at().is_some());
        let other = monday.keyspace("other").unwrap();
        let mut batch = Batch::new();
        batch.insert(&db.default_keyspace(), "not", "written");
        batch.insert(&other, "k", "w");
        for refused in [
            monday.insert("k", "v"),
            monday.remove("k"),
            monday.remove_range::<&str>(..),
            monday.keyspace("new").map(drop),
            monday.drop_keyspace("other").map(drop),
            other.compact(),
            db.write(batch).map(drop),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
        }
        assert_eq!(get(db, "not"), None);
    };
    check(&db);
    let made_at = db.open_named_snapshot("monday").unwrap().made_at();
    db.close().unwrap();
    let db = place.open();
    check(&db);
    assert_eq!(db.named_snapshots().unwrap(), ["monday"]);
    assert!(db.branches().unwrap().is_empty());
    assert_eq!(db.open_named_snapshot("monday").unwrap().made_at(), made_at);
    assert_eq!(db.open_branch("monday").unwrap_err().kind(), ErrorKind::BranchMissing);
    assert_eq!(db.branch("monday").unwrap_err().kind(), ErrorKind::BranchExists);
    assert!(!db.drop_branch("monday").unwrap());
    // It can be gone back to.
    let again = db.open_named_snapshot("monday").unwrap().branch("again").unwrap();
    again.insert("k", "v").unwrap();
    assert!(db.drop_named_snapshot("monday").unwrap());
    assert_eq!(get(&again, &key(5)), Some(super::value(5, 1)));
    sound(&db);
}

#[test]
fn compactions_leave_named_snapshots_alone() {
    let (place, db) = fresh();
    for round in 0..4 {
        fill(&db, 0..500, round);
        db.flush().unwrap();
    }
    db.snapshot_named("s").unwrap();
    db.wait_until_idle().unwrap();
    let before = db.stats().compactions;
    let snapshot = db.open_named_snapshot("s").unwrap();
    snapshot.compact().unwrap();
    assert_eq!(db.stats().compactions, before);
    db.close().unwrap();
    let db = place.open();
    db.wait_until_idle().unwrap();
    assert_eq!(db.stats().compactions, 0);
    assert_eq!(db.open_named_snapshot("s").unwrap().iter().unwrap().count(), 500);
}

/// Takes everything away.
struct Sweep;

impl CompactionFilter for Sweep {
    fn name(&self) -> &str {
        "sweep"
    }
    fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
        Decision::Remove
    }
}

#[test]
fn what_is_due_for_compaction_when_a_named_snapshot_is_made_stays_in_it() {
    let mut options = small();
    options.compaction_filters.push(Arc::new(Sweep));
    let place = Place::new();
    let db = Db::open_with(place.path(), options).unwrap();
    let space = db.keyspace_with("swept", KeyspaceOptions::filtered("sweep")).unwrap();
    let mut made = Vec::new();
    for round in 0..12 {
        for number in 0..300 {
            space.insert(format!("{number:04}"), format!("{round}")).unwrap();
        }
        db.flush().unwrap();
        let name = format!("s{round}");
        db.snapshot_named(&name).unwrap();
        let snapshot = db.open_named_snapshot(&name).unwrap();
        let held = entries(snapshot.keyspace("swept").unwrap().iter().unwrap());
        made.push((snapshot, held));
    }
    db.wait_until_idle().unwrap();
    assert!(db.stats().entries_filtered > 0, "the database itself is swept");
    assert!(made.iter().any(|(_, held)| !held.is_empty()), "some were made before the sweep");
    for (snapshot, held) in made {
        assert_eq!(entries(snapshot.keyspace("swept").unwrap().iter().unwrap()), held);
    }
}

#[test]
fn orders_and_snapshots_work_across_branches() {
    let (place, db) = fresh();
    let space = db.keyspace_ordered("r", Arc::new(Reverse)).unwrap();
    space.insert("a", "1").unwrap();
    space.insert("b", "1").unwrap();
    let branch = db.branch("b").unwrap();
    let copy = branch.keyspace("r").unwrap();
    let moment = db.snapshot().unwrap();
    copy.insert("c", "2").unwrap();
    copy.remove("a").unwrap();
    space.insert("d", "1").unwrap();
    let mut both = Batch::new();
    both.insert(&space, "z", "both");
    both.insert(&copy, "z", "both");
    db.write(both).unwrap();
    for _ in 0..2 {
        assert_eq!(keys(space.iter().unwrap()), ["z", "d", "b", "a"]);
        assert_eq!(keys(copy.iter().unwrap()), ["z", "c", "b"]);
        assert_eq!(keys(moment.iter(&copy).unwrap()), ["b", "a"]);
        assert_eq!(keys(moment.iter(&space).unwrap()), ["b", "a"]);
        assert_eq!(keys(copy.iter().unwrap().rev()), ["b", "c", "z"]);
        branch.compact().unwrap();
        db.compact().unwrap();
    }
    drop(moment);
    db.close().unwrap();
    let mut options = small();
    options.comparators = vec![Arc::new(Reverse)];
    let db = Db::open_with(place.path(), options).unwrap();
    let copy = db.open_branch("b").unwrap().keyspace("r").unwrap();
    assert_eq!(keys(copy.iter().unwrap()), ["z", "c", "b"]);
    sound(&db);
}

#[test]
fn a_branch_has_keyspaces_and_figures_of_its_own() {
    let (_place, db) = fresh();
    fill(&db, 0..500, 1);
    let branch = db.branch("b").unwrap();
    branch.keyspace("only here").unwrap().insert("k", "v").unwrap();
    branch.drop_keyspace("only here").unwrap();
    branch.keyspace("and this").unwrap().insert("k", "v").unwrap();
    assert_eq!(db.keyspaces().unwrap(), ["default"]);
    assert_eq!(branch.keyspaces().unwrap(), ["and this", "default"]);
    let names = |db: &Db| -> Vec<String> {
        db.stats().trees.into_iter().map(|tree| tree.keyspace).collect()
    };
    assert_eq!(names(&db), ["default"]);
    assert_eq!(names(&branch), ["and this", "default"]);
    assert_eq!(db.branch("b").unwrap_err().kind(), ErrorKind::BranchExists);
    assert_eq!(db.branch("").unwrap_err().kind(), ErrorKind::InvalidArgument);
    branch.wait_until_idle().unwrap();
    // One log: closing one closes all.
    branch.close().unwrap();
    assert_eq!(db.get("k").unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_checkpoint_has_the_branches() {
    let (place, db) = fresh();
    fill(&db, 0..500, 1);
    let branch = db.branch("b").unwrap();
    fill(&branch, 0..500, 2);
    db.snapshot_named("s").unwrap();
    let path = place.path().with_extension("checkpoint");
    db.checkpoint(&path).unwrap();
    let copy = Db::open_with(&path, small()).unwrap();
    assert_eq!(get(&copy.open_branch("b").unwrap(), &key(5)), Some(super::value(5, 2)));
    assert_eq!(get(&copy.open_named_snapshot("s").unwrap(), &key(5)), Some(super::value(5, 1)));
    sound(&copy);
}

#[test]
fn buffered_writes_before_a_branch_are_in_it() {
    let place = Place::new();
    let db = open_roomy(&place);
    db.default_keyspace().insert_with("k", "v", Durability::Buffered).unwrap();
    let branch = db.branch("b").unwrap();
    assert_eq!(get(&branch, "k").as_deref(), Some("v"));
    db.sync().unwrap();
    assert_eq!(get(&branch, "k").as_deref(), Some("v"));
    // No log holds it: making the branch brought it to the disk.
    db.default_keyspace().insert_with("k", "w", Durability::Buffered).unwrap();
    drop(db.branch("c").unwrap());
    let left = as_after_a_crash(&place);
    let killed = open_roomy(&left);
    assert_eq!(get(&killed.open_branch("c").unwrap(), "k").as_deref(), Some("w"));
    assert_eq!(get(&killed, "k").as_deref(), Some("w"));
}

#[test]
fn branches_of_a_busy_database_are_one_moment() {
    let (_place, db) = fresh();
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                let mut batch = Batch::new();
                batch.insert(&left, key((number % 500) as usize), number.to_be_bytes());
                batch.insert(&right, key((number % 500) as usize), number.to_be_bytes());
                db.write(batch).unwrap();
            }
        });
        for round in 0..20 {
            let branch = db.branch(&format!("b{round}")).unwrap();
            let read = |name| entries(branch.keyspace(name).unwrap().iter().unwrap());
            let before = read("left");
            assert_eq!(before, read("right"));
            if round % 3 == 0 {
                db.flush().unwrap();
            }
            assert_eq!(before, read("left"));
            if round % 2 == 0 {
                branch.keyspace("left").unwrap().insert("own", "1").unwrap();
                db.drop_branch(&format!("b{round}")).unwrap();
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    sound(&db);
}

#[test]
fn a_repair_saves_branches_beside_the_rest() {
    let place = Place::new();
    let db = open_roomy(&place);
    db.insert("flushed", "1").unwrap();
    db.flush().unwrap();
    db.insert("in memory", "2").unwrap();
    let branch = db.branch("b").unwrap();
    branch.insert("of the branch", "3").unwrap();
    branch.keyspace("new").unwrap().insert("k", "v").unwrap();
    db.insert("later", "4").unwrap();
    let killed = as_after_a_crash(&place);
    let saved = Place::new();
    esker::repair::salvage(killed.path(), saved.path(), &small()).unwrap();
    let saved = saved.open();
    assert_eq!(saved.keyspaces().unwrap(), ["default", "default@b", "new@b"]);
    assert_eq!(keys(saved.iter().unwrap()), ["flushed", "in memory", "later"]);
    let copy = saved.keyspace("default@b").unwrap();
    assert_eq!(keys(copy.iter().unwrap()), ["flushed", "in memory", "of the branch"]);
}
