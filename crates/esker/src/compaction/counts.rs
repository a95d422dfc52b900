//! The counts of one compaction.
//!
//! A compaction counts every entry that it reads once as read. The entry is then handed over, or
//! dropped for one of the reasons that have a counter here. A delete that replaces a dropped entry
//! has its own counter, so that the sums agree.

/// What a compaction read, wrote and dropped so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionCounts {
    /// Entries read.
    pub entries_in: u64,
    /// Entries handed over.
    pub entries_out: u64,
    /// Entries dropped because a newer version shadows them.
    pub shadowed: u64,
    /// Entries dropped because a range tombstone hides them.
    pub covered: u64,
    /// Deletes dropped because nothing older is left for them to hide.
    pub spent: u64,
    /// Operands, and values under them, that were combined into a value or another operand.
    pub folded: u64,
    /// Entries that had expired for every reader. If such an entry hides something, a delete
    /// replaced it.
    pub expired: u64,
    /// Entries that the compaction filter removed; deletes replace them in the same way.
    pub filtered: u64,
    /// Entries that the compaction filter changed.
    pub filtered_changed: u64,
    /// Deletes handed over in place of entries that are counted as expired or filtered.
    pub deletes_made: u64,
}

impl CompactionCounts {
    /// Entries dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.shadowed + self.covered + self.spent + self.folded + self.expired + self.filtered
            - self.deletes_made
    }
}
