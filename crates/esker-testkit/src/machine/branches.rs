//! Steps of the machine that are about branches and named snapshots.
//!
//! Each has a model of its own, which begins as that of what it was made from. Everything that is
//! written to a branch is logged, and making one makes durable what its parent held: so a kill
//! takes nothing away from any of them. In a branch compaction filters are asked, whatever they have
//! done in its parent since it was made; a named snapshot shows the same for ever.

use super::Machine;
use super::fork::Fork;
use super::reads::Found;
use crate::harness::{self, keyspace, read_some};
use crate::model::Op;
use esker::{Db, Durability, Error};

/// How many there are at most at a time.
const MOST: usize = 5;

impl Machine {
    /// Something happens to the branches.
    pub(super) fn branches(&mut self) {
        match self.below(10) {
            0..=2 => self.make_fork(),
            3 => self.drop_fork(),
            _ if self.forks.is_empty() => self.make_fork(),
            4 | 5 => self.check_fork(),
            _ => self.work_on_fork(),
        }
    }

    /// Time goes on for branches; a named snapshot shows what had not expired when it was made.
    pub(super) fn tick_forks(&mut self, now: u64) {
        let branches = self.forks.iter_mut().filter(|fork| !fork.snapshot);
        branches.for_each(|fork| fork.model.apply(&Op::Tick(now)));
    }

    fn fork(&mut self) -> Option<usize> {
        (!self.forks.is_empty()).then(|| self.below(self.forks.len()))
    }

    /// Makes a branch or a named snapshot of the database, of a branch or of a snapshot.
    pub(super) fn make_fork(&mut self) {
        if self.forks.len() >= MOST {
            self.drop_fork();
        }
        let parent = if self.percent(60) { None } else { self.fork() };
        let (db, model) = match parent.map(|index| &self.forks[index]) {
            Some(fork) => (fork.open(self.db()), fork.model.clone()),
            None => (self.db().clone(), self.model.clone()),
        };
        self.births += 1;
        let snapshot = self.percent(45);
        let mut model = if snapshot { model.frozen() } else { model.thawed() };
        model.apply(&Op::Tick(self.model.now()));
        let name = format!("fork {}", self.births);
        if snapshot {
            db.snapshot_named(&name).unwrap_or_else(|e| panic!("named snapshot: {e}"));
        } else {
            drop(db.branch(&name).unwrap_or_else(|e| panic!("branch: {e}")));
        }
        let again = db.branch(&name);
        assert!(matches!(again, Err(Error::BranchExists { .. })), "two of one name");
        // What was not logged was brought to the disk with the rest.
        self.flushed = self.history.end();
        self.forks.push(Fork { name, snapshot, model });
        if snapshot && self.model.has_filters() && self.percent(50) {
            // From now on it is known what it must show.
            self.check_whole_fork(self.forks.len() - 1);
        }
    }

    fn drop_fork(&mut self) {
        let Some(index) = self.fork() else { return };
        let fork = self.forks.swap_remove(index);
        let open = fork.open(self.db());
        let db = self.db();
        let dropped = if fork.snapshot {
            db.drop_named_snapshot(&fork.name)
        } else {
            db.drop_branch(&fork.name)
        };
        assert!(dropped.unwrap_or_else(|e| panic!("drop of {}: {e}", fork.name)));
        let gone =
            |error| matches!(error, Error::BranchMissing { .. } | Error::KeyspaceDropped { .. });
        assert!(open.keyspaces().is_err_and(gone), "a handle on what was dropped");
    }

    /// Writes to a branch, makes or drops a keyspace in it, or brings it into shape.
    fn work_on_fork(&mut self) {
        let Some(index) = self.fork() else { return };
        let mut fork = self.forks.swap_remove(index);
        let db = fork.open(self.db());
        if fork.snapshot {
            let refused = keyspace(&db, 0).and_then(|keyspace| keyspace.insert("k", "v"));
            assert!(matches!(refused, Err(Error::ReadOnly)), "a snapshot took {refused:?}");
        } else {
            match self.below(12) {
                0 => self.change_keyspaces_of(&db, &mut fork),
                1 => db.flush().unwrap_or_else(|e| panic!("flush of a branch: {e}")),
                2 => {
                    db.compact().unwrap_or_else(|e| panic!("compact of a branch: {e}"));
                    fork.model.filter_all(self.filtered_by_compact());
                }
                _ => self.write_to(&db, &mut fork),
            }
        }
        self.forks.push(fork);
    }

    fn write_to(&mut self, db: &Db, fork: &mut Fork) {
        let ops = self.make.batch(&fork.model, 30);
        let disk = self.percent(10);
        let durability = if disk { Durability::Disk } else { Durability::Process };
        let written = if self.percent(30) {
            harness::transact(db, &ops, durability, &mut self.make.rng)
        } else {
            harness::write(db, &ops, durability)
        };
        match written {
            Ok(_) => fork.model.apply_all(&ops),
            Err(Error::BatchTooLarge { .. }) => {}
            Err(error) => panic!("write to {}: {error}", fork.name),
        }
    }

    fn change_keyspaces_of(&mut self, db: &Db, fork: &mut Fork) {
        let op = self.make.change_of_keyspaces(&fork.model);
        if matches!(op, Op::Create(slot) if !self.withheld.allows(slot)) {
            return;
        }
        let changed = harness::write_as(db, &op, Durability::Process, &fork.model);
        changed.unwrap_or_else(|e| panic!("{op:?}: {e}"));
        fork.model.apply(&op);
        let names = db.keyspaces().unwrap_or_else(|e| panic!("keyspaces: {e}"));
        assert_eq!(names, fork.model.names(), "of {}", fork.name);
    }

    /// Reads some keys of a branch, or everything.
    fn check_fork(&mut self) {
        let Some(index) = self.fork() else { return };
        if self.percent(30) {
            return self.check_whole_fork(index);
        }
        let db = self.forks[index].open(self.db());
        let slot = self.make.slot(&self.forks[index].model);
        let handle = keyspace(&db, slot).unwrap_or_else(|e| panic!("keyspace: {e}"));
        for _ in 0..1 + self.below(20) {
            let key = self.make.key(slot);
            let found = handle.get(&key).map(Found::Value);
            let found = found.unwrap_or_else(|e| panic!("get: {e}"));
            let Fork { name, model, .. } = &mut self.forks[index];
            found.check(model, slot, &key, format_args!("{name}"));
        }
    }

    fn check_whole_fork(&mut self, index: usize) {
        let withheld = self.withheld;
        let which = move |slot| withheld.allows(slot);
        let found = read_some(&self.forks[index].open(self.db()), which);
        let found = found.unwrap_or_else(|e| panic!("read: {e}"));
        let Fork { name, model, .. } = &mut self.forks[index];
        assert_eq!(found.names(), model.names(), "keyspaces of {name}");
        if let Some(what) = model.see_all(&found, which) {
            panic!("content of {name}: {what}");
        }
    }

    /// Compares all that they hold, and which there are.
    pub(super) fn check_forks(&mut self) {
        let names = |snapshot: bool| {
            let of_kind = self.forks.iter().filter(move |fork| fork.snapshot == snapshot);
            let mut names: Vec<_> = of_kind.map(|fork| fork.name.clone()).collect();
            names.sort();
            names
        };
        let sorted = |found: esker::Result<Vec<String>>| {
            let mut found = found.unwrap_or_else(|e| panic!("names of branches: {e}"));
            found.sort();
            found
        };
        assert_eq!(sorted(self.db().branches()), names(false), "branches");
        assert_eq!(sorted(self.db().named_snapshots()), names(true), "named snapshots");
        (0..self.forks.len()).for_each(|index| self.check_whole_fork(index));
    }
}
