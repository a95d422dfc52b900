//! What a search for damage read and found.

use super::Error;
use std::path::PathBuf;

/// Something that [`crate::Db::verify`] found wrong.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.flush()?;
/// # let run = std::fs::read_dir(dir.path().join("data")).unwrap().next().unwrap().unwrap().path();
/// # let mut bytes = std::fs::read(&run).unwrap();
/// bytes[64..].fill(0); // Of the only run file.
/// # std::fs::write(&run, bytes).unwrap();
/// let problems = db.verify()?.problems;
/// assert_eq!(problems[0].path, run);
/// assert_eq!(problems[0].error.kind(), esker::ErrorKind::Corruption);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub error: Error,
}

/// What [`crate::Db::verify`] read and found.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("key", "value")?; db.flush()?;
/// let report = db.verify()?;
/// assert!(report.files > 0 && report.entries > 0);
/// for problem in &report.problems {
///     println!("{}: {}", problem.path.display(), problem.error);
/// }
/// # assert!(report.problems.is_empty());
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Files that were read.
    pub files: u64,
    /// Blocks whose checksums were checked.
    pub blocks: u64,
    /// Entries whose order was checked.
    pub entries: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// The problems; empty: nothing is wrong in what was read.
    pub problems: Vec<Problem>,
    /// Whether the program ended the search ([`crate::Db::verify_until`]), so that not everything was read.
    pub interrupted: bool,
}
