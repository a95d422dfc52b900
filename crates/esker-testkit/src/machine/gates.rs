//! Steps of the machine that hold the background, let it go on point by point, make checkpoints
//! that are held between their stages, and withhold code that keyspaces need.

use super::Machine;
use super::checkpoint::Checkpoint;
use super::withheld::Withheld;
use crate::harness::{keyspace, read_all, small_options};
use crate::keeper::CHECKPOINT;
use crate::model::{Op, SLOTS};
use esker::internals::sync::Point;
use esker::{Db, Error};
use std::path::PathBuf;

impl Machine {
    /// The background is held, or goes on a little, or is let go.
    pub(super) fn gates(&mut self) {
        if !self.keeper.is_held() {
            return self.keeper.hold();
        }
        match self.below(24) {
            0 | 1 => self.keeper.let_go(),
            2 => self.keeper.step_log(),
            20 | 21 => self.tick(),
            22 => self.take_snapshot(),
            23 => self.make_fork(),
            3..=6 => {
                for _ in 0..2 + self.below(6) {
                    let choice = self.make.rng.next();
                    self.keeper.step(choice);
                }
            }
            _ => {
                let choice = self.make.rng.next();
                self.keeper.step(choice);
            }
        }
    }

    /// A checkpoint is begun, or goes on to its next stage.
    pub(super) fn checkpoints(&mut self) {
        let Some(checkpoint) = &mut self.checkpoint else { return self.begin_checkpoint() };
        match self.keeper.step_checkpoint(Some(checkpoint.at)) {
            Some(point) => checkpoint.at = point,
            None => self.end_checkpoint(),
        }
    }

    fn begin_checkpoint(&mut self) {
        // What the one before shares with the database is shared no longer.
        self.remove_checkpoint();
        if self.withheld != Withheld::default() {
            return;
        }
        self.births += 1;
        let path = PathBuf::from(format!("/checkpoint {}", self.births));
        let (db, keeper, target) = (self.db().clone(), self.keeper.clone(), path.clone());
        let run = move || {
            let made = db.checkpoint(target);
            drop(db);
            keeper.checkpoint_ended();
            made
        };
        let thread = std::thread::Builder::new().name(CHECKPOINT.to_owned()).spawn(run);
        let thread = thread.unwrap_or_else(|e| panic!("thread: {e}"));
        let at = self.keeper.step_checkpoint(None);
        // It was flushed for.
        self.flushed = self.history.end();
        let models = vec![self.model.clone()];
        let Some(at) = at else { panic!("a checkpoint ended: {:?}", thread.join()) };
        self.checkpoint = Some(Checkpoint { path, thread, at, models });
    }

    /// Notes what a checkpoint that is being made may hold.
    pub(super) fn note_for_checkpoint(&mut self) {
        if let Some(checkpoint) = &mut self.checkpoint
            && matches!(checkpoint.at, Point::CheckpointFlushed)
        {
            checkpoint.models.push(self.model.clone());
        }
    }

    /// Lets a checkpoint that is being made come to its end, and looks at it.
    pub(super) fn finish_checkpoint(&mut self) {
        while self.checkpoint.is_some() {
            self.checkpoints();
        }
    }

    fn end_checkpoint(&mut self) {
        let Some(Checkpoint { path, thread, models, .. }) = self.checkpoint.take() else { return };
        let made = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        made.unwrap_or_else(|e| panic!("checkpoint: {e}"));
        let mut options = small_options(&mut self.make.rng);
        options.fs = self.disk.as_fs();
        options.clock = self.clock.clone();
        options.create_if_missing = false;
        let db = Db::open_with(&path, options);
        let db = db.unwrap_or_else(|e| panic!("open of {}: {e}", path.display()));
        let found = read_all(&db).unwrap_or_else(|e| panic!("read of a checkpoint: {e}"));
        let (now, mut first) = (self.model.now(), None);
        let fits = models.into_iter().any(|mut model| {
            model.apply(&Op::Tick(now));
            let difference = model.difference(&found);
            let fits = difference.is_none();
            first = first.take().or(difference);
            fits
        });
        assert!(fits, "a checkpoint holds no state of its time; against the first: {first:?}");
        let report = db.verify().unwrap_or_else(|e| panic!("verify of a checkpoint: {e}"));
        assert!(report.problems.is_empty(), "verify of a checkpoint: {:?}", report.problems);
        db.close().unwrap_or_else(|e| panic!("close of a checkpoint: {e}"));
        self.copy = Some(path);
    }

    /// Removes the checkpoint that was made last.
    pub(super) fn remove_checkpoint(&mut self) {
        let Some(path) = self.copy.take() else { return };
        let fs = self.disk.as_fs();
        let attempt = || -> std::io::Result<()> {
            for directory in [path.join("data"), path.join("wal"), path.clone()] {
                for entry in fs.list(&directory)? {
                    fs.remove_file(&directory.join(&entry.name))?;
                }
                fs.remove_dir(&directory)?;
            }
            Ok(())
        };
        attempt().unwrap_or_else(|e| panic!("removal of a checkpoint: {e}"));
    }

    /// Opens the database without some of the code that its keyspaces need; or gives a comparator
    /// that was withheld.
    pub(super) fn withhold(&mut self) {
        if self.withheld.comparator {
            return self.give_comparator();
        }
        let withheld = match self.below(4) {
            0 => Withheld { comparator: true, operator: true },
            1 => Withheld { operator: true, ..Withheld::default() },
            _ => Withheld { comparator: true, ..Withheld::default() },
        };
        self.reopen_with(withheld);
        if self.percent(70) {
            self.keeper.hold();
        }
    }

    fn give_comparator(&mut self) {
        let given = keyspace(self.db(), 1);
        match given {
            Ok(_) => assert!(!self.withheld.operator, "a merge operator is not known"),
            Err(Error::MergeOperatorMissing { .. }) if self.withheld.operator => {}
            Err(error) => panic!("a comparator that is given late: {error}"),
        }
        self.set_withheld(Withheld { comparator: false, ..self.withheld });
        self.check_all();
    }

    pub(super) fn set_withheld(&mut self, withheld: Withheld) {
        self.withheld = withheld;
        self.make.closed = std::array::from_fn::<_, SLOTS, _>(|slot| !withheld.allows(slot));
    }
}
