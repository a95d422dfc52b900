//! Reading the file `STATISTICS`: the newest whole slot, and whether it is of now.
//!
//! The reader takes no lock and writes nothing. Every length is checked before anything is read
//! into memory: the reader never holds more than one payload.

use super::STATISTICS_NAME;
use super::format::{HEADER_BYTES, Header, SLOT_BYTES, Slot, VERSION, decode};
use super::format::{payload_fits, payload_offset};
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fate, File, Fs, OpenMode, os};
use crate::stats::Stats;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a file without a whole slot is read. A writer overtakes a reader only if it makes two
/// updates while the reader reads one slot.
const TRIES: u32 = 8;
/// The age at which the last update of a process that runs, or may run, is no longer of now: three
/// times the longest pause between two updates.
const SILENT_AFTER: Duration = Duration::from_secs(30);

/// Whether the statistics of another process are of now.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let mut options = esker::Options::default();
/// # options.monitor = Some(true);
/// # esker::Db::open_with(&dir, options)?.close()?;
/// use esker::{Observed, ObservedState};
/// let observed = Observed::read(&dir)?;
/// assert_eq!(observed.state, ObservedState::Closed);
/// assert_eq!(observed.state.as_str(), "closed");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObservedState {
    /// A process has the database open, and the statistics are at most 30 seconds old.
    Live,
    /// The database was closed; these are its statistics at that moment.
    Closed,
    /// The process ended without closing the database; these are its last statistics. Or the file
    /// is a copy of that of an open database.
    Ended,
    /// The process has not written statistics for more than 30 seconds: it was stopped, its device
    /// is full, or it has ended where this process cannot see that.
    Silent,
}

impl ObservedState {
    /// The name of the state, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Closed => "closed",
            Self::Ended => "ended",
            Self::Silent => "silent",
        }
    }
}

/// The statistics that the process which has a database open wrote for other processes.
///
/// A database that is open for writing writes its statistics into the file `STATISTICS` of its
/// directory about once per second; see [`Options::monitor`](crate::Options::monitor).
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let mut options = esker::Options::default();
/// # options.monitor = Some(true);
/// // In one process:
/// let db = esker::Db::open_with(&dir, options)?;
/// db.insert("apple", "red")?;
/// db.close()?;
/// // In another one; before the close, the state would be `Live` from the first second on.
/// let observed = esker::Observed::read(&dir)?;
/// assert_eq!(observed.state, esker::ObservedState::Closed);
/// assert_eq!(observed.stats.puts, 1);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Observed {
    /// The statistics. The shapes of the first 256 trees at most are among them.
    pub stats: Stats,
    /// Whether they are of now.
    pub state: ObservedState,
    /// The id of the process that wrote them.
    pub process: u64,
    /// The random bytes that identify the database.
    pub database: [u8; 16],
    /// When that process opened the database.
    pub opened: SystemTime,
    /// When it wrote these statistics.
    pub updated: SystemTime,
    /// How long ago that was; zero if it lies in the future by this machine's clock.
    pub age: Duration,
    /// The number of the update. Two readings with the same number are the same.
    pub update: u64,
    /// How many keyspaces the database has.
    pub keyspaces: u64,
}

impl Observed {
    /// Reads the statistics of the database in the directory `path`. It takes no lock, writes
    /// nothing, and never waits for the process that has the database open.
    ///
    /// # Errors
    /// [`Error::Io`] with `NotFound` if no process ever wrote statistics there,
    /// [`Error::UnknownFormat`] if a newer build wrote them, [`Error::Corruption`] if they are not
    /// whole.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// assert!(esker::Observed::read(&dir).is_err(), "nothing is there");
    /// ```
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_at(os().as_ref(), path.as_ref(), SystemTime::now())
    }

    /// Like [`Self::read`], on another file system and at another time.
    pub(crate) fn read_at(fs: &dyn Fs, directory: &Path, now: SystemTime) -> Result<Self> {
        let path = directory.join(STATISTICS_NAME);
        let file = fs.open(&path, OpenMode::Read).context("open", &path)?;
        let (header, payload) = newest(file.as_ref(), &path)?;
        let damaged = |what: &str| {
            let offset = payload_offset(header.update);
            Error::corruption(&path, offset, "statistics", what)
        };
        let stats =
            Stats::decode(&payload).ok_or_else(|| damaged("the payload holds no statistics"))?;
        let time = |millis| UNIX_EPOCH.checked_add(Duration::from_millis(millis));
        let (Some(opened), Some(updated)) = (time(header.opened), time(header.updated)) else {
            return Err(damaged("a time is out of range"));
        };
        let age = now.duration_since(updated).unwrap_or_default();
        Ok(Self {
            stats,
            state: state(&header, file.as_ref(), age),
            process: header.process.id,
            database: header.database,
            opened,
            updated,
            age,
            update: header.update,
            keyspaces: u64::from(header.keyspaces),
        })
    }

    /// Whether the shapes of some trees are missing in [`Observed::stats`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let mut options = esker::Options::default();
    /// # options.monitor = Some(true);
    /// # esker::Db::open_with(&dir, options)?.close()?;
    /// assert!(!esker::Observed::read(&dir)?.trees_left_out());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn trees_left_out(&self) -> bool {
        self.keyspaces > self.stats.trees.len() as u64
    }
}

fn state(header: &Header, file: &dyn File, age: Duration) -> ObservedState {
    if header.closed {
        return ObservedState::Closed;
    }
    let here = file.incarnation().0;
    let copied = header.inode != 0 && here != [0; 32] && here[24..] != header.inode.to_le_bytes();
    match header.process.fate() {
        Fate::Ended => ObservedState::Ended,
        _ if copied => ObservedState::Ended,
        _ if age > SILENT_AFTER => ObservedState::Silent,
        Fate::Runs | Fate::Unknown => ObservedState::Live,
    }
}

/// The header and the payload of the newest whole slot.
fn newest(file: &dyn File, path: &Path) -> Result<(Header, Vec<u8>)> {
    for _ in 0..TRIES {
        let mut slots = Vec::new();
        for index in 0..2 {
            match read_header(file, index) {
                Slot::Whole { header, len, sum } => slots.push((header, len, sum)),
                Slot::OtherVersion(found) => {
                    let path = path.to_owned();
                    return Err(Error::UnknownFormat { path, found, supported: VERSION });
                }
                Slot::Unusable => {}
            }
        }
        slots.sort_by_key(|(header, ..)| std::cmp::Reverse(header.update));
        for (header, len, sum) in slots {
            let mut payload = vec![0; len];
            let read = file.read_at(&mut payload, payload_offset(header.update));
            if read.is_ok() && payload_fits(header.update, sum, &payload) {
                return Ok((header, payload));
            }
        }
    }
    Err(Error::corruption(path, 0, "statistics", "neither of its two slots is whole"))
}

fn read_header(file: &dyn File, index: u64) -> Slot {
    let mut bytes = [0; HEADER_BYTES];
    match file.read_at(&mut bytes, index * SLOT_BYTES as u64) {
        Ok(()) => decode(index, &bytes),
        // The file ends before, or it cannot be read now.
        Err(_) => Slot::Unusable,
    }
}
