//! Where databases are made, and who removes them.
//!
//! All databases of a suite lie in one directory: the one that the user named, or a new one in the
//! system's temporary directory.
//!
//! Invariants:
//! 1. A directory is removed only if this process made it.
//! 2. Nothing is written to a directory that was there before, unless the user asked to use the
//!    database in it.
//! 3. Without `--dir` nothing remains, also after a failure.

use crate::harness::settings::Settings;
use crate::{EngineSpec, Error, Result};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A directory for the databases of one suite.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Made by us in the system's temporary directory.
    temporary: bool,
    use_existing: bool,
}

impl Workspace {
    /// Finds or makes the directory, and refuses what would fail later for any of the engines.
    pub fn new(settings: &Settings) -> Result<Self> {
        let use_existing = settings.use_existing_db;
        if let Some(root) = &settings.dir {
            let workspace = Self { root: root.clone(), temporary: false, use_existing };
            settings.engines.iter().try_for_each(|engine| workspace.check(engine))?;
            std::fs::create_dir_all(root).map_err(|e| Error::io("make", root, &e))?;
            return Ok(workspace);
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("esker-bench-{}-{}", std::process::id(), since.as_nanos());
        let root = std::env::temp_dir().join(name);
        std::fs::create_dir(&root).map_err(|e| Error::io("make", &root, &e))?;
        Ok(Self { root, temporary: !settings.keep, use_existing })
    }

    fn path(&self, engine: &EngineSpec) -> PathBuf {
        self.root.join(format!("esker-bench-{}", engine.file_name()))
    }

    fn check(&self, engine: &EngineSpec) -> Result<()> {
        let path = self.path(engine);
        if self.use_existing && engine.has_files() && !path.is_dir() {
            return Err(Error::usage(format!(
                "there is no database in {}: run once with --dir and without --use-existing-db",
                path.display()
            )));
        }
        if !self.use_existing && path.symlink_metadata().is_ok() {
            return Err(Error::usage(format!(
                "{} is there already: add --use-existing-db, remove it, or give another --dir",
                path.display()
            )));
        }
        Ok(())
    }

    /// A place for one engine's database.
    pub fn database(&self, engine: &EngineSpec) -> Result<Database> {
        self.check(engine)?;
        let path = self.path(engine);
        if !self.use_existing {
            // Fails if somebody else made it meanwhile.
            std::fs::create_dir(&path).map_err(|e| Error::io("make", &path, &e))?;
        }
        Ok(Database { path, ours: !self.use_existing })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether databases are to be removed once they are closed.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.temporary {
            // Nothing to tell anybody: the report is done, and the system clears this place too.
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }
}

/// The directory of one database.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    ours: bool,
}

impl Database {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, if this process made it.
    pub fn remove(self) -> Result<()> {
        if !self.ours {
            return Ok(());
        }
        std::fs::remove_dir_all(&self.path).map_err(|e| Error::io("remove", &self.path, &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::lookup::spec;

    fn settings(dir: &Path, use_existing_db: bool) -> Settings {
        let dir = Some(dir.to_owned());
        Settings { engines: vec![spec("mem")], dir, use_existing_db, ..Settings::default() }
    }

    #[test]
    fn a_directory_that_was_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("esker-bench-mem");
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("precious"), "data").unwrap();
        let error = Workspace::new(&settings(dir.path(), false)).unwrap_err();
        assert!(error.to_string().contains("--use-existing-db"), "{error}");

        let workspace = Workspace::new(&settings(dir.path(), true)).unwrap();
        workspace.database(&spec("mem")).unwrap().remove().unwrap();
        drop(workspace);
        assert!(place.join("precious").exists());
    }

    #[test]
    fn what_we_made_can_be_removed_and_stays_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(&settings(dir.path(), false)).unwrap();
        let first = workspace.database(&spec("mem")).unwrap();
        let path = first.path().to_owned();
        first.remove().unwrap();
        assert!(!path.exists());
        drop(workspace.database(&spec("mem")).unwrap());
        drop(workspace);
        assert!(path.exists());
    }

    #[test]
    fn temporary_workspaces_vanish() {
        let workspace = Workspace::new(&Settings::default()).unwrap();
        let database = workspace.database(&spec("mem")).unwrap();
        std::fs::write(database.path().join("file"), "x").unwrap();
        let path = database.path().to_owned();
        drop(workspace);
        assert!(!path.exists());
    }

    #[test]
    fn an_existing_database_has_to_exist() {
        let dir = tempfile::tempdir().unwrap();
        let engines = vec![spec("mem"), spec("esker")];
        let settings = Settings { engines, ..settings(&dir.path().join("nothing"), true) };
        let error = Workspace::new(&settings).unwrap_err();
        assert!(error.to_string().contains("no database"), "{error}");
        assert!(!dir.path().join("nothing").exists(), "nothing is made before the refusal");
    }
}
