//! What an explained operation returns: plain data.

use crate::waits::Cause;
use std::time::Duration;

/// What one operation did, and where its time went.
///
/// [`crate::Keyspace::explain_get`], [`crate::Keyspace::explain_scan`] and
/// [`crate::Keyspace::explain_put`] return it; [`crate::Stats::slowest`] holds those of the slowest
/// operations. It holds no key and no value. `Display` prints a report of several lines.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// let explanation = db.explain_get("apple")?;
/// assert!(explanation.found);
/// assert_eq!(explanation.steps.len(), 1); // The memtable had it.
/// println!("{explanation}");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// `get`, `scan` or `put`; of [`crate::Stats::slowest`] also `sync`, a wait for a sync that the
    /// program asked for, and `lock`, a wait of a transaction for a lock.
    pub operation: &'static str,
    /// The name of the keyspace.
    pub keyspace: String,
    /// Whether a get found a value, a scan an entry; `true` for a put that succeeded.
    pub found: bool,
    /// How long the operation took.
    pub time: Duration,
    /// What it did, in order: the sources of a read from new to old, the phases of a write.
    /// Empty for a slow operation whose steps were not recorded.
    pub steps: Vec<Step>,
    /// What it waited for.
    pub waits: Vec<WaitTime>,
    /// The blocks that it used.
    pub blocks: BlockCounts,
    /// Bytes that it read from files.
    pub bytes_read: u64,
    /// Entries that a scan returned.
    pub entries: u64,
    /// Entries that a scan passed without returning them: deleted ones, older versions, and entries
    /// that were written after the scan began.
    pub stepped_over: u64,
}

/// One step of an operation.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// db.flush()?;
/// db.remove("apple")?;
/// let explanation = db.explain_get("apple")?;
/// let outcomes: Vec<&str> = explanation.steps.iter().map(|step| step.outcome.as_str()).collect();
/// assert_eq!(outcomes, ["deleted", "not_reached"]);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Where the operation looked, or what it did.
    pub source: StepSource,
    /// How the step ended.
    pub outcome: Outcome,
    /// The blocks that it used.
    pub blocks: BlockCounts,
    /// Bytes that it read from files.
    pub bytes_read: u64,
    /// Entries of blocks that a get compared with its key; entries that a scan took from the
    /// source. Comparisons in memtables are not counted for gets.
    pub entries: u64,
    /// How long it took.
    pub time: Duration,
}

/// Where a step of an operation looked, or what it did.
///
/// # Example
/// ```
/// use esker::StepSource;
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// let step = &db.explain_get("apple")?.steps[0];
/// assert_eq!(step.source, StepSource::Memtable { number: 1, of: 1, sealed: false });
/// assert_eq!(step.source.to_string(), "memtable 1 of 1");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepSource {
    /// A memtable.
    Memtable {
        /// 1 for the newest.
        number: u64,
        /// How many memtables there are.
        of: u64,
        /// Whether it waits for its flush.
        sealed: bool,
    },
    /// A run.
    Run {
        /// The tier; 0: it is a run of a partition.
        tier: u64,
        /// The number of its partition, or of its span in the tier, from 0 in key order.
        partition: u64,
        /// 0: the partition's base; 1: its oldest delta, or the oldest run of a span, and so on.
        age: u64,
        /// The number of the file that holds the run segment; `None` where the step used no single
        /// run segment.
        file: Option<u64>,
        /// The offset of the run segment in that file.
        segment: Option<u64>,
    },
    /// The search of all sources for the operands of one key and the value under them.
    Operands,
    /// A write: the wait until admission let it go on.
    Admission,
    /// A write: the reservation of its place in the log.
    Reservation,
    /// A write: the copy of its record to the log.
    Log,
    /// A write: the insertion into the memtable.
    Apply,
    /// A write: the publication, with the wait for writers that reserved before.
    Publication,
    /// A write of class `Disk`: the sync of the log.
    Sync,
}

impl StepSource {
    /// The name of its kind in JSON and in the file `STATISTICS`, for example `memtable`.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::StepSource::Publication.as_str(), "publication");
    /// ```
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Memtable { .. } => "memtable",
            Self::Run { .. } => "run",
            Self::Operands => "operands",
            Self::Admission => "admission",
            Self::Reservation => "reservation",
            Self::Log => "log",
            Self::Apply => "apply",
            Self::Publication => "publication",
            Self::Sync => "sync",
        }
    }

    /// The source of this name, with the numbers of its fields in their order.
    pub(super) fn named(name: &str, place: &[u64]) -> Option<Self> {
        if let ("memtable", [number, of, sealed, ..]) = (name, place) {
            return Some(Self::Memtable { number: *number, of: *of, sealed: *sealed != 0 });
        }
        if let ("run", [tier, partition, age, rest @ ..]) = (name, place) {
            let (file, segment) = (rest.first().copied(), rest.get(1).copied());
            let (tier, partition, age) = (*tier, *partition, *age);
            return Some(Self::Run { tier, partition, age, file, segment });
        }
        let phases = [
            Self::Operands,
            Self::Admission,
            Self::Reservation,
            Self::Log,
            Self::Apply,
            Self::Publication,
            Self::Sync,
        ];
        phases.into_iter().find(|phase| phase.as_str() == name)
    }
}

/// How a step of an operation ended.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let explanation = db.explain_get("apple")?;
/// assert_eq!(explanation.steps[0].outcome, esker::Outcome::FilterAbsent);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The source had the key.
    Found,
    /// The source had a point delete of the key.
    Deleted,
    /// A range tombstone of the source covers the key.
    RangeDeleted,
    /// The source had a value that has expired.
    Expired,
    /// The source had an operand, so older sources matter too.
    Operand,
    /// No run segment of the run covers the key.
    OutsideSegments,
    /// The source's Bloom filter said that the key is not there, and the source was not searched.
    FilterAbsent,
    /// The source's Bloom filter said that the key may be there, and it was not.
    FalsePositive,
    /// The source was searched and did not have the key. No filter was consulted.
    Absent,
    /// The search had ended before this source.
    NotReached,
    /// A scan took entries from the source, or a phase of a write ended.
    Done,
}

impl Outcome {
    const ALL: [Self; 11] = [
        Self::Found,
        Self::Deleted,
        Self::RangeDeleted,
        Self::Expired,
        Self::Operand,
        Self::OutsideSegments,
        Self::FilterAbsent,
        Self::FalsePositive,
        Self::Absent,
        Self::NotReached,
        Self::Done,
    ];

    /// The outcome of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    /// Its name in reports and JSON, for example `false_positive`.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::Outcome::FalsePositive.as_str(), "false_positive");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Deleted => "deleted",
            Self::RangeDeleted => "range_deleted",
            Self::Expired => "expired",
            Self::Operand => "operand",
            Self::OutsideSegments => "outside_segments",
            Self::FilterAbsent => "filter_absent",
            Self::FalsePositive => "false_positive",
            Self::Absent => "absent",
            Self::NotReached => "not_reached",
            Self::Done => "done",
        }
    }
}

/// Where blocks came from. A read from a file counts as one block of the page cache or the device,
/// told apart by the time that it took: see `docs/operations.md`. A read of a run segment's index
/// counts too.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// db.insert("apple", "red")?;
/// db.flush()?;
/// db.get("apple")?;
/// let blocks = db.explain_get("apple")?.blocks;
/// assert_eq!((blocks.cached, blocks.page_cache, blocks.device), (1, 0, 0));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCounts {
    /// Blocks found in the block cache.
    pub cached: u64,
    /// Reads that were as fast as the system's page cache.
    pub page_cache: u64,
    /// Reads that were slower.
    pub device: u64,
}

/// The time that an operation waited for one cause.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let explanation = db.explain_put("apple", "red")?;
/// for wait in &explanation.waits {
///     println!("{}: {:?}", wait.cause.as_str(), wait.time);
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitTime {
    /// The cause.
    pub cause: Cause,
    /// How long it waited.
    pub time: Duration,
}

impl Explanation {
    /// The explanation of an operation of which only the time is known.
    pub(crate) fn of(operation: &'static str, keyspace: &str, time: Duration) -> Self {
        Self { operation, keyspace: keyspace.to_owned(), time, ..Self::default() }
    }

    /// Takes the steps, and sums up what they used.
    pub(crate) fn with_steps(mut self, steps: Vec<Step>) -> Self {
        for step in &steps {
            self.blocks += step.blocks;
            self.bytes_read += step.bytes_read;
        }
        self.steps = steps;
        self
    }
}

impl std::ops::AddAssign for BlockCounts {
    fn add_assign(&mut self, other: Self) {
        self.cached += other.cached;
        self.page_cache += other.page_cache;
        self.device += other.device;
    }
}
