//! What repair reports, and its form as lines.

use std::fmt;
use std::path::PathBuf;

/// What a finding says.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// use esker::repair::State;
/// let lost = plan.findings.iter().filter(|finding| finding.state == State::Lost);
/// assert_eq!(lost.count(), 0);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// This is whole.
    Whole,
    /// This is damaged, but nothing is lost.
    Damaged,
    /// This is lost.
    Lost,
    /// This is worth knowing.
    Note,
}

/// One thing that was found.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// for finding in &plan.findings {
///     println!("{finding}");
/// }
/// assert!(plan.findings.iter().all(|finding| !finding.text.is_empty()));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finding {
    /// What it says.
    pub state: State,
    /// The file, where there is one.
    pub path: Option<PathBuf>,
    /// The finding as text.
    pub text: String,
}

/// What is saved of one keyspace's tree, without the entries of the log.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// let kept = &plan.keyspaces[0];
/// assert_eq!((kept.keyspace.as_str(), kept.entries, kept.blocks_lost), ("default", 1, 0));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Kept {
    /// Its name.
    pub keyspace: String,
    /// Entries: one for each key.
    pub entries: u64,
    /// Whether there may be fewer: parts of it belong to other keyspaces too (those of branches),
    /// and a plan reads nothing twice.
    pub at_most: bool,
    /// Segments that were read.
    pub segments: u64,
    /// Blocks that were read.
    pub blocks: u64,
    /// Blocks, or stretches of blocks, that are lost.
    pub blocks_lost: u64,
}

/// What is saved of the log.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// // The database was closed, so all its entries are in runs.
/// assert_eq!((plan.log.batches, plan.log.lost), (0, 0));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct KeptLog {
    /// Batches.
    pub batches: u64,
    /// Operations in them.
    pub operations: u64,
    /// Records, or stretches of the log, that are lost.
    pub lost: u64,
}

/// What can be saved, and what is lost.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.close()?;
/// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
/// println!("{plan}");
/// assert!(!plan.has_losses());
/// assert_eq!(plan.keyspaces[0].keyspace, "default");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Plan {
    /// All findings, in the order of the walk.
    pub findings: Vec<Finding>,
    /// What is saved of each keyspace.
    pub keyspaces: Vec<Kept>,
    /// What is saved of the log.
    pub log: KeptLog,
    /// The keyspaces that are skipped because their comparators were not given, and these.
    pub(super) skipped: Vec<(String, String)>,
}

/// What [`super::salvage`] did.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.close()?;
/// # let new = tempfile::tempdir().unwrap();
/// let salvaged = esker::repair::salvage(&dir, &new, &esker::Options::default())?;
/// assert_eq!(salvaged.operations, 1);
/// assert!(salvaged.plan.is_whole());
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Salvaged {
    /// What was found and saved.
    pub plan: Plan,
    /// The new database.
    pub to: PathBuf,
    /// Operations that were written into it.
    pub operations: u64,
}

/// What [`crate::Db::repair`] did.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); esker::Db::open(&dir)?.close()?;
/// let repaired = esker::Db::repair(&dir, &esker::Options::default())?;
/// // An intact database is not changed.
/// assert!(!repaired.is_changed() && repaired.kept.is_none());
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Repaired {
    /// Where the damaged database is kept; `None`: nothing was damaged, and nothing was changed.
    pub kept: Option<PathBuf>,
    /// What was found and saved. `None`: nothing was damaged; or an earlier repair had saved
    /// everything and was cut off between its two renames, and this one did the second.
    pub salvaged: Option<Salvaged>,
}

impl Repaired {
    /// Whether another database stands at the path now.
    pub fn is_changed(&self) -> bool {
        self.kept.is_some()
    }
}

impl Plan {
    /// Whether nothing is damaged or lost.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # db.insert("key", "value")?; db.close()?;
    /// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
    /// assert!(plan.is_whole());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn is_whole(&self) -> bool {
        self.findings.iter().all(|f| !matches!(f.state, State::Damaged | State::Lost))
    }

    /// Whether nothing is damaged or lost but what a comparator that was not given hides.
    pub(super) fn is_whole_but_for_orders(&self) -> bool {
        let bad = |finding: &&Finding| matches!(finding.state, State::Damaged | State::Lost);
        self.findings.iter().filter(bad).count() == self.skipped.len()
    }

    /// Whether something is lost.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # db.insert("key", "value")?; db.close()?;
    /// let plan = esker::repair::plan(&dir, &esker::Options::default())?;
    /// if plan.has_losses() {
    ///     println!("a salvage would save only a part");
    /// }
    /// # assert!(!plan.has_losses());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn has_losses(&self) -> bool {
        self.findings.iter().any(|finding| finding.state == State::Lost)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole",
            Self::Damaged => "damaged",
            Self::Lost => "lost",
            Self::Note => "note",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.state)?;
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        f.write_str(&self.text)
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyspace, entries, at_most, segments, blocks, blocks_lost } = self;
        let at_most = if *at_most { "at most " } else { "" };
        write!(
            f,
            "keeps: keyspace {keyspace:?}: {at_most}{entries} entries from {segments} segments \
             ({blocks} blocks, {blocks_lost} lost)"
        )
    }
}

impl fmt::Display for KeptLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batches, operations, lost } = self;
        write!(f, "keeps: log: {operations} operations in {batches} batches ({lost} lost)")
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        for kept in &self.keyspaces {
            writeln!(f, "{kept}")?;
        }
        write!(f, "{}", self.log)
    }
}

impl fmt::Display for Salvaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.plan)?;
        write!(f, "written: {}: {} operations", self.to.display(), self.operations)
    }
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(kept) = &self.kept else {
            return write!(f, "whole: nothing is damaged, and nothing was changed");
        };
        match &self.salvaged {
            Some(salvaged) => writeln!(f, "{salvaged}")?,
            None => {
                writeln!(f, "note: an interrupted repair had saved everything; it is in place")?
            }
        }
        write!(f, "damaged database: {}", kept.display())
    }
}

/// A key for display: escaped, and cut if it is long.
pub(super) fn shown(key: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    let cut = &key[..key.len().min(BYTES_MAX)];
    let more = if cut.len() < key.len() { "…" } else { "" };
    format!("\"{}{more}\"", cut.escape_ascii())
}
