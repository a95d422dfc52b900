//! Branches and named snapshots of a database.

use crate::manifest::BranchKind;
use crate::{Db, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Branches and named snapshots.
///
/// A branch is a separate `Db` in the same directory. Its keyspaces begin as copies of all
/// keyspaces of the handle that it was made from, as they were at one moment, and then change
/// independently. Making a branch copies no data: branches share files until they rewrite them.
/// All branches share one log, one cache and the background work, so
///
/// - a batch over keyspaces of several branches is atomic, and [`Db::snapshot`] shows all of them;
/// - [`Db::sync`], [`Db::flush`] and [`Db::close`] act on all of them, on whichever handle they are
///   called; the counters of [`Db::stats`] count all of them, its trees are those of the branch.
///
/// A named snapshot is a branch that cannot be written to. Both survive reopening, and names are
/// unique among both.
///
/// Shared space is freed when no branch, snapshot or iterator refers to it any more. What
/// branches share is compacted once for all of them.
impl Db {
    /// Makes a branch of this database (or branch) as it is now. The branch holds everything that
    /// was written before the call and is durable when the call returns.
    ///
    /// # Errors
    /// [`crate::Error::BranchExists`] if there is a branch or named snapshot of this name,
    /// [`crate::Error::BranchMissing`] if this handle's branch was dropped,
    /// [`crate::Error::InvalidArgument`] unless the name has 1 to 255 bytes, and
    /// [`crate::Error::ReadOnly`], [`crate::Error::DiskFull`], [`crate::Error::Poisoned`]. Nothing
    /// is changed then.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("price", "10")?;
    /// let trial = db.branch("trial")?;
    /// trial.insert("price", "12")?;
    /// assert_eq!(db.get("price")?.as_deref(), Some(&b"10"[..]));
    /// assert_eq!(trial.get("price")?.as_deref(), Some(&b"12"[..]));
    /// assert_eq!(db.branches()?, ["trial"]);
    /// db.drop_branch("trial")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn branch(&self, name: &str) -> Result<Self> {
        let branch = self.core().make_branch(self.branch_state(), name, BranchKind::Branch)?;
        self.at_branch(branch)
    }

    /// Opens an existing branch, also one that was made before the database was last opened.
    ///
    /// # Errors
    /// [`crate::Error::BranchMissing`], [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// db.branch("trial")?.insert("k", "v")?;
    /// assert!(db.open_branch("trial")?.contains_key("k")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open_branch(&self, name: &str) -> Result<Self> {
        self.at_branch(self.core().find_branch(name, BranchKind::Branch)?)
    }

    /// The names of all branches of the directory, in order, whichever branch this handle is.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.branch("trial")?;
    /// db.branch("draft")?;
    /// assert_eq!(db.branches()?, ["draft", "trial"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn branches(&self) -> Result<Vec<String>> {
        self.names(BranchKind::Branch)
    }

    /// Drops a branch and its data, and returns whether it existed. Handles on it return errors
    /// from then on; open iterators go on. Branches made from it, and the one that it was made
    /// from, keep what they share with it. The background frees the space.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::DiskFull`], [`crate::Error::Poisoned`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let trial = db.branch("trial")?;
    /// assert!(db.drop_branch("trial")?);
    /// assert!(trial.insert("k", "v").is_err());
    /// assert!(!db.drop_branch("trial")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn drop_branch(&self, name: &str) -> Result<bool> {
        self.core().drop_branch(name, BranchKind::Branch)
    }

    /// Makes a named snapshot of this database (or branch) as it is now: a branch that cannot be
    /// written to. It is durable when the call returns.
    ///
    /// # Errors
    /// As [`Db::branch`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("stock", "100")?;
    /// db.snapshot_named("monday")?;
    /// db.insert("stock", "40")?;
    /// let monday = db.open_named_snapshot("monday")?;
    /// assert_eq!(monday.get("stock")?.as_deref(), Some(&b"100"[..]));
    /// assert!(monday.insert("stock", "0").is_err());
    /// assert_eq!(db.named_snapshots()?, ["monday"]);
    /// assert!(db.drop_named_snapshot("monday")?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn snapshot_named(&self, name: &str) -> Result<()> {
        self.core().make_branch(self.branch_state(), name, BranchKind::Snapshot).map(drop)
    }

    /// Opens a named snapshot. Writes to it fail with [`crate::Error::ReadOnly`]; branches can be
    /// made from it.
    ///
    /// # Errors
    /// [`crate::Error::BranchMissing`], [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.snapshot_named("monday")?;
    /// let monday = db.open_named_snapshot("monday")?;
    /// assert!(matches!(monday.insert("k", "v"), Err(esker::Error::ReadOnly)));
    /// // To go on from it, make a branch of it.
    /// monday.branch("from monday")?.insert("k", "v")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open_named_snapshot(&self, name: &str) -> Result<Self> {
        self.at_branch(self.core().find_branch(name, BranchKind::Snapshot)?)
    }

    /// The names of all named snapshots of the directory, in order.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.snapshot_named("tuesday")?;
    /// db.snapshot_named("monday")?;
    /// assert_eq!(db.named_snapshots()?, ["monday", "tuesday"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn named_snapshots(&self) -> Result<Vec<String>> {
        self.names(BranchKind::Snapshot)
    }

    /// Drops a named snapshot, and returns whether it existed.
    ///
    /// # Errors
    /// As [`Db::drop_branch`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.snapshot_named("monday")?;
    /// assert!(db.drop_named_snapshot("monday")?);
    /// assert!(db.open_named_snapshot("monday").is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn drop_named_snapshot(&self, name: &str) -> Result<bool> {
        self.core().drop_branch(name, BranchKind::Snapshot)
    }

    /// When this branch or named snapshot was made, by the system's clock at that time; `None` for
    /// the database itself.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.made_at(), None);
    /// assert!(db.branch("trial")?.made_at().is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn made_at(&self) -> Option<SystemTime> {
        let branch = self.branch_state();
        let made_at = UNIX_EPOCH.checked_add(Duration::from_millis(branch.made_at));
        made_at.filter(|_| branch.id != crate::catalog::DEFAULT_KEYSPACE_ID)
    }

    /// The name of this handle's branch or named snapshot; `None` for the database itself.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.branch("trial")?.branch_name(), Some("trial"));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn branch_name(&self) -> Option<&str> {
        Some(self.branch_state().name.as_str()).filter(|name| !name.is_empty())
    }

    fn names(&self, kind: BranchKind) -> Result<Vec<String>> {
        let found = self.core().branches(kind)?;
        Ok(found.iter().map(|branch| branch.name.clone()).collect())
    }
}
