//! The content of an error about missing space: what has run out, and what holds space.

use std::fmt;

/// What has run out when there is no space left.
///
/// # Example
/// ```
/// use esker::{Error, Shortage};
/// let error = Error::io("write", "log".as_ref(), std::io::ErrorKind::QuotaExceeded.into());
/// if let Error::DiskFull { shortage, .. } = &error {
///     assert_eq!(*shortage, Shortage::Quota);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shortage {
    /// The device.
    Device,
    /// The quota of the user, group or project.
    Quota,
    /// The limit of this process or of the file system on the size of one file.
    FileSize,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "free some on the device, writes then go on by themselves",
            Self::Quota => "the quota is used up: raise it or free some, writes then go on",
            Self::FileSize => "it would exceed the file-size limit: raise it (ulimit -f)",
        })
    }
}

/// What holds space in a database.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// fn what_to_drop(error: &esker::Error) -> Option<&str> {
///     let esker::Error::DiskFull { held: Some(held), .. } = error else { return None };
///     // The branch that holds the most comes first.
///     held.branches.first().map(|(name, _bytes)| name.as_str())
/// }
/// assert_eq!(what_to_drop(&esker::Error::Closed), None);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceHeld {
    /// Bytes of runs, including those below.
    pub data: u64,
    /// Bytes of log files.
    pub log: u64,
    /// Open snapshots, including those of iterators and transactions. They keep old versions.
    pub snapshots: usize,
    /// Bytes of runs that were replaced or removed, and that calls or iterators still read.
    pub replaced: u64,
    /// Branches and named snapshots, the largest first, each with the bytes of runs to which only
    /// it refers.
    pub branches: Vec<(String, u64)>,
    /// Bytes of runs that checkpoints share: freed only when the checkpoints are removed too.
    pub checkpoints: u64,
}

impl fmt::Display for SpaceHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(f, "data holds {:.1} MiB, the log {:.1} MiB", mib(self.data), mib(self.log))?;
        if self.snapshots > 0 {
            write!(f, "; {} open snapshots keep old versions", self.snapshots)?;
        }
        if self.replaced > 0 {
            let replaced = mib(self.replaced);
            write!(f, "; calls and iterators under way read {replaced:.1} MiB of old runs")?;
        }
        if let Some((name, bytes)) = self.branches.first() {
            let count = self.branches.len();
            write!(f, "; {count} branches and named snapshots hold data of their own, ")?;
            write!(f, "the most {name:?} with {:.1} MiB", mib(*bytes))?;
        }
        if self.checkpoints > 0 {
            write!(f, "; checkpoints share {:.1} MiB", mib(self.checkpoints))?;
        }
        Ok(())
    }
}
