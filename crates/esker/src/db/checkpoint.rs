//! Checkpoint: a second database, at another path, with the content of this one at one moment
//! (R23).
//!
//! 1. The memtables are flushed first, so the moment is the position at which the log begins: the
//!    manifest's state describes all entries up to it, over all keyspaces, and no log is needed.
//!    Branches that were made after that moment are left out.
//! 2. Run files never change where something refers to them. So they are linked, or copied if the
//!    target is on another device or the file system has no links. Manifest, superblocks and log
//!    are written anew: from then on the two databases change independently.
//! 3. The linked state is held meanwhile, so nothing that it refers to is freed; and space is freed
//!    only before or after the linking (R22).
//! 4. The superblocks are written last, when everything that they refer to is durable. A crash
//!    before that leaves a directory that is not taken for a database; after an error it is
//!    removed.

use crate::db::core::Core;
use crate::directory::copies::{clear, clear_name, parts_of, sync_new_name, take_over};
use crate::directory::look::occupant;
use crate::directory::{DATA_DIRECTORY, LOCK_NAME};
use crate::error::{Error, IoContext, Result};
use crate::events::EventKind;
use crate::manifest::{Edit, Manifest, Version};
use crate::options::LogKind;
use crate::recovery::create::{begin_log, first_superblocks};
use crate::sync::Point;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Core {
    /// Makes a database with the present content at `target`, where nothing may exist yet.
    pub fn checkpoint(&self, target: &Path) -> Result<()> {
        self.writable()?;
        let since = Instant::now();
        if let Some(found) = occupant(self.fs.as_ref(), target)? {
            return Err(Error::exists(target, found));
        }
        if self.fs.contains(&self.path, target).context("look at", target)? {
            let what = "lies inside of the database that it is made of: name another path";
            return Err(Error::invalid(format!("{} {what}", target.display())));
        }
        let (version, state) = self.durable_moment()?;
        let exists = || Error::exists(target, "a database");
        let fs = self.fs.as_ref();
        fs.create_dir(target).context("create", target)?;
        // A process that creates a database here at the same time, or opens this one too early,
        // finds it locked.
        let lock_path = target.join(LOCK_NAME);
        let lock = match fs.lock(&lock_path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(exists()),
            Err(error) => {
                self.cleared(clear_name(fs, target));
                return Err(Error::io("lock", &lock_path, error));
            }
            Ok(lock) => lock,
        };
        let others = fs
            .list(target)
            .map(|entries| entries.iter().any(|entry| entry.name != LOCK_NAME))
            .context("list", target);
        if !matches!(others, Ok(false)) {
            drop(lock);
            self.cleared(clear_name(fs, target));
            return Err(others.err().unwrap_or_else(exists));
        }
        self.gate(Point::CheckpointChose);
        let made = self.lay_out(target, &version, &state).and_then(|()| sync_new_name(fs, target));
        if made.is_err() {
            self.cleared(clear(fs, target, lock));
            return made;
        }
        let (path, duration) = (target.display().to_string(), since.elapsed());
        self.monitor.emit(EventKind::CheckpointMade { path, duration });
        made
    }

    /// Flushes until the log begins behind everything that the version has. Returns the version, and the
    /// description for the position at which the log begins.
    fn durable_moment(&self) -> Result<(Arc<Version>, Edit)> {
        loop {
            self.flush()?;
            self.gate(Point::CheckpointFlushed);
            // An ingestion holds it until it is in the version.
            let store = self.store.lock();
            let (moment, version) = (store.log_start, self.state_now().version.clone());
            // A compaction takes positions away that nobody needs, so the version alone does not tell
            // what was ingested since the flush. What was ingested before the open needs no look: the
            // flush reached beyond what the log held then.
            let ingested_end = self.ingested_end.load(Ordering::Acquire);
            // Seeded: a checkpoint has what was ingested and lacks what was written before that.
            let none = ingested_end <= moment || bug!("db_checkpoint_of_compacted_ingestions");
            // Seeded: a checkpoint has what was ingested after its moment, and later writes get lost.
            if version.newest() < moment && none || bug!("db_checkpoint_of_what_is_ingested") {
                let state = self.whole_state(&version, moment, true);
                return Ok((version, state));
            }
        }
    }

    /// Reports what could not be removed of a failed checkpoint.
    fn cleared(&self, cleared: Result<()>) {
        if let Err(error) = cleared {
            self.monitor.files_left("files of a failed checkpoint", &error);
        }
    }

    fn lay_out(&self, target: &Path, version: &Version, state: &Edit) -> Result<()> {
        let fs = self.fs.as_ref();
        let data = target.join(DATA_DIRECTORY);
        fs.create_dir(&data).context("create", &data)?;
        // This includes the segments of branches that are left out: their files cost a link each,
        // and the next open removes them.
        let files = parts_of(version.segments());
        self.files.hold_still(|| {
            files.into_iter().try_for_each(|(file, slices)| {
                self.gate(Point::CheckpointLinks);
                self.check_open()?;
                take_over(fs, &file, slices, &data)
            })
        })?;
        // Space that could not be freed during the linking can be freed now.
        self.work.notify();
        self.work.done().notify();
        fs.sync_dir(&data).context("sync", &data)?;
        begin_log(&self.fs, target, (LogKind::Plain, None), state.log_start.unwrap_or_default())?;
        let manifest = Manifest::create(fs, target, 1, state)?;
        first_superblocks(fs, target, &manifest)
    }
}
