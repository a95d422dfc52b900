//! Branches and named snapshots of a database.

use crate::manifest::BranchKind;
use crate::{Db, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Branches and named snapshots.
///
/// A branch is a `Db` of its own inside the same directory: its keyspaces begin as copies of all
/// keyspaces of the handle that it was made from, as they were at one moment, and go their own way
/// from there. Making one copies no data, however much there is: branches share files until they
/// rewrite them. All branches share one log, one cache and the background work, so
///
/// - a batch over keyspaces of several branches is atomic, and [`Db::snapshot`] shows all of them;
/// - [`Db::sync`], [`Db::flush`] and [`Db::close`] act on all of them, whichever handle they are
///   called on; counters of [`Db::stats`] count all of them, its trees are those of the branch.
///
/// A named snapshot is a branch that cannot be written to. Both survive reopening, and names are
/// unique among both.
///
/// Space that was shared returns when nobody refers to it: no branch, snapshot or iterator.
/// Partitions that are due for a merge when a branch is made are merged once for each.
impl Db {
    /// Makes a branch of this database (or branch) as it is now. When it returns, the branch is
    /// durable, with everything that was written before the call.
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
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-branch-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("price", "10")?;
    /// let trial = db.branch("trial")?;
    /// trial.insert("price", "12")?;
    /// assert_eq!(db.get("price")?.as_deref(), Some(&b"10"[..]));
    /// assert_eq!(trial.get("price")?.as_deref(), Some(&b"12"[..]));
    /// assert_eq!(db.branches()?, ["trial"]);
    /// db.drop_branch("trial")?;
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn branch(&self, name: &str) -> Result<Self> {
        let branch = self.core().make_branch(self.branch_state(), name, BranchKind::Branch)?;
        self.at_branch(branch)
    }

    /// A branch that was made before, also in an earlier life of the database.
    ///
    /// # Errors
    /// [`crate::Error::BranchMissing`], [`crate::Error::Closed`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-openb-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// db.branch("trial")?.insert("k", "v")?;
    /// assert!(db.open_branch("trial")?.contains_key("k")?);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn open_branch(&self, name: &str) -> Result<Self> {
        self.at_branch(self.core().find_branch(name, BranchKind::Branch)?)
    }

    /// The names of all branches of the directory, whichever branch this handle is, in order.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// See [`Db::branch`].
    pub fn branches(&self) -> Result<Vec<String>> {
        self.names(BranchKind::Branch)
    }

    /// Drops a branch with all it holds; says whether there was one. Handles on it are refused
    /// from then on; iterators that are open go on. Its branches, and the one that it was made
    /// from, keep what they share with it. Space returns in the background.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::DiskFull`], [`crate::Error::Poisoned`].
    ///
    /// # Example
    /// See [`Db::branch`].
    pub fn drop_branch(&self, name: &str) -> Result<bool> {
        self.core().drop_branch(name, BranchKind::Branch)
    }

    /// Keeps the present state of this database (or branch) under a name: a branch that cannot be
    /// written to. When it returns, it is durable.
    ///
    /// # Errors
    /// As [`Db::branch`].
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-named-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// db.insert("stock", "100")?;
    /// db.snapshot_named("monday")?;
    /// db.insert("stock", "40")?;
    /// let monday = db.open_named_snapshot("monday")?;
    /// assert_eq!(monday.get("stock")?.as_deref(), Some(&b"100"[..]));
    /// assert!(monday.insert("stock", "0").is_err());
    /// assert_eq!(db.named_snapshots()?, ["monday"]);
    /// assert!(db.drop_named_snapshot("monday")?);
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn snapshot_named(&self, name: &str) -> Result<()> {
        self.core().make_branch(self.branch_state(), name, BranchKind::Snapshot).map(drop)
    }

    /// A named snapshot, to read from. Writes to it fail with [`crate::Error::ReadOnly`]; a branch
    /// can be made of it.
    ///
    /// # Errors
    /// [`crate::Error::BranchMissing`], [`crate::Error::Closed`].
    ///
    /// # Example
    /// See [`Db::snapshot_named`].
    pub fn open_named_snapshot(&self, name: &str) -> Result<Self> {
        self.at_branch(self.core().find_branch(name, BranchKind::Snapshot)?)
    }

    /// The names of all named snapshots of the directory, in order.
    ///
    /// # Errors
    /// [`crate::Error::Closed`].
    ///
    /// # Example
    /// See [`Db::snapshot_named`].
    pub fn named_snapshots(&self) -> Result<Vec<String>> {
        self.names(BranchKind::Snapshot)
    }

    /// Drops a named snapshot; says whether there was one.
    ///
    /// # Errors
    /// As [`Db::drop_branch`].
    ///
    /// # Example
    /// See [`Db::snapshot_named`].
    pub fn drop_named_snapshot(&self, name: &str) -> Result<bool> {
        self.core().drop_branch(name, BranchKind::Snapshot)
    }

    /// When this branch or named snapshot was made, by the system's clock then; `None` for the
    /// database itself.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-made-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.made_at(), None);
    /// assert!(db.branch("trial")?.made_at().is_some());
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn made_at(&self) -> Option<SystemTime> {
        let branch = self.branch_state();
        let made_at = UNIX_EPOCH.checked_add(Duration::from_millis(branch.made_at));
        made_at.filter(|_| branch.id != crate::db::catalog::DEFAULT_KEYSPACE_ID)
    }

    /// The name of the branch or named snapshot that this handle is of; `None` for the database
    /// itself.
    ///
    /// # Example
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-bname-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.branch("trial")?.branch_name(), Some("trial"));
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
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
