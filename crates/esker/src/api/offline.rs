//! Operations on a closed database: repairing it in place, and destroying it.
//!
//! Both take the path of a directory and the file system of the options. They take the database's
//! lock, so no handle of this or another process has it open meanwhile.

use crate::repair::Repaired;
use crate::{Db, Options, Result};
use std::path::Path;

impl Db {
    /// Repairs a database in place. An intact one is not changed. Of a damaged one, everything that
    /// can be read is saved into a new database, which takes its place; the damaged one is kept
    /// beside it as `NAME.damaged-1`, or with the next number that is free. The comparators of all
    /// keyspaces must be in the options; merge operators and filters are not needed.
    ///
    /// The new database is written as `NAME.repaired-1` first, so there must be room for it, and
    /// both names must be on one device. What the system cannot read at that time counts as lost;
    /// the damaged database still has it. [`crate::repair::plan`] says beforehand what will be
    /// lost, and [`crate::repair::salvage`] leaves the damaged database where it is.
    ///
    /// If the repair is interrupted, by a kill or a power cut, call it again: it begins anew, or
    /// does what is left. Nothing is lost at any moment. In one moment, between two renames,
    /// nothing stands at the path; an open with [`Options::create_if_missing`] then makes an empty
    /// database. If the interruption falls into the moment before, a whole `NAME.repaired-1` may be
    /// left over.
    ///
    /// # Errors
    /// [`crate::Error::Missing`] and [`crate::Error::NotADatabase`] if there is none,
    /// [`crate::Error::Locked`] if it is open, [`crate::Error::UnknownFormat`] if a newer build
    /// wrote it, [`crate::Error::Unfinished`] if a salvage into it was interrupted,
    /// [`crate::Error::ComparatorMissing`], and what writing the new database and renaming can fail
    /// with. After an error the damaged database stands where it stood, unless taking back a rename
    /// failed too; then the next repair goes on.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-repair-{}", std::process::id()));
    /// use esker::{Db, Options};
    /// let db = Db::open(&dir)?;
    /// db.insert("key", "value")?;
    /// db.close()?;
    /// assert!(!Db::repair(&dir, &Options::default())?.is_changed());
    ///
    /// std::fs::write(dir.join("superblock-A"), "nonsense").unwrap();
    /// let repaired = Db::repair(&dir, &Options::default())?;
    /// println!("{repaired}");
    /// let db = Db::open(&dir)?;
    /// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
    /// db.close()?;
    /// // When nothing of the damaged one is needed any more:
    /// Db::destroy(repaired.kept.unwrap(), &Options::default())?;
    /// # Db::destroy(&dir, &Options::default())?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<Repaired> {
        crate::repair::repair(path.as_ref(), options)
    }

    /// Destroys a database: removes its files, and its directory if nothing else is in it. A
    /// damaged database, an unfinished one, and an empty directory go in the same way. If nothing
    /// stands at the path, there is nothing to do.
    ///
    /// Only regular files with the names of a database's files are removed; all others stay, and
    /// so do links and what they lead to. What was removed does not come back after a power cut.
    /// If the call is interrupted, what is left cannot be opened; call it again, and it goes on.
    ///
    /// # Errors
    /// [`crate::Error::NotADatabase`] if something else stands at the path, or the directory also
    /// holds files of another store; [`crate::Error::Locked`] if the database is open. Nothing is
    /// changed then. [`crate::Error::Io`] if a file cannot be removed.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-destroy-{}", std::process::id()));
    /// use esker::{Db, Options};
    /// let db = Db::open(&dir)?;
    /// db.insert("key", "value")?;
    /// db.close()?;
    /// Db::destroy(&dir, &Options::default())?;
    /// assert!(!dir.exists());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn destroy(path: impl AsRef<Path>, options: &Options) -> Result<()> {
        crate::repair::destroy(path.as_ref(), &options.fs)
    }
}
