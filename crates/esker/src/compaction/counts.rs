//! The counts of one compaction.
//!
//! Every entry that a compaction reads is counted once as read. It is then handed over, or dropped
//! for one of the reasons that have a counter here; a delete that takes the place of a dropped
//! entry is counted apart, so that the sums agree.

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
    /// Deletes dropped because nothing is left for them to hide.
    pub spent: u64,
    /// Operands, and values under them, that went into a value or another operand.
    pub folded: u64,
    /// Entries that had expired for every reader. Where one hides something, a delete took its
    /// place.
    pub expired: u64,
    /// Entries that the compaction filter removed, with deletes in their place likewise.
    pub filtered: u64,
    /// Entries that the compaction filter changed.
    pub filtered_changed: u64,
    /// Deletes handed over in the place of entries that are counted as expired or filtered.
    pub deletes_made: u64,
}

impl CompactionCounts {
    /// Entries dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.shadowed + self.covered + self.spent + self.folded + self.expired + self.filtered
            - self.deletes_made
    }
}
