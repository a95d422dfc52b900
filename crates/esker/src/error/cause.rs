//! What calls wait for.

/// What a call waits for.
///
/// # Example
/// ```
/// let names: Vec<_> = esker::Cause::ALL.iter().map(|cause| cause.as_str()).collect();
/// assert_eq!(names[..3], ["flush_debt", "compaction_debt", "memory"]);
/// assert_eq!(esker::Cause::DiskFull.as_str(), "disk_full");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// Writers are paced because memtables fill faster than flushes empty them.
    FlushDebt,
    /// Writers are paced because deltas arrive faster than compactions rewrite them.
    CompactionDebt,
    /// Writers are stopped because all write buffers are full.
    Memory,
    /// A log file is prepared.
    LogSpace,
    /// The log is synced.
    Sync,
    /// Space is freed on a full device.
    DiskFull,
    /// Another transaction holds a lock.
    Lock,
}

impl Cause {
    /// All causes.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::Cause::ALL.len(), 7);
    /// ```
    pub const ALL: [Self; 7] = [
        Self::FlushDebt,
        Self::CompactionDebt,
        Self::Memory,
        Self::LogSpace,
        Self::Sync,
        Self::DiskFull,
        Self::Lock,
    ];

    /// Whether stalls for this cause are events when they begin and end.
    pub(crate) fn has_stalls(self) -> bool {
        match self {
            Self::FlushDebt | Self::CompactionDebt | Self::Memory | Self::DiskFull => true,
            Self::LogSpace | Self::Sync | Self::Lock => false,
        }
    }

    /// The cause's name in all outputs.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::Cause::LogSpace.as_str(), "log_space");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FlushDebt => "flush_debt",
            Self::CompactionDebt => "compaction_debt",
            Self::Memory => "memory",
            Self::LogSpace => "log_space",
            Self::Sync => "sync",
            Self::DiskFull => "disk_full",
            Self::Lock => "lock",
        }
    }
}
