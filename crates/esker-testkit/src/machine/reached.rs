//! What runs of the machine come to, so that a test can tell whether they try what they are there for.

use super::Machine;

/// What runs came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// The most tiers that a tree had when a database was closed or killed.
    pub tiers: usize,
    /// Pushes from tier to tier.
    pub pushes: u64,
    /// Entries that compaction filters removed or changed.
    pub filtered: u64,
}

impl Reached {
    /// What both together came to.
    pub fn and(self, other: Self) -> Self {
        Self {
            tiers: self.tiers.max(other.tiers),
            pushes: self.pushes + other.pushes,
            filtered: self.filtered + other.filtered,
        }
    }
}

impl Machine {
    /// Notes what this life of the database has come to, at its end.
    pub(super) fn note_reached(&mut self) {
        let stats = self.db().stats();
        let life = Reached {
            tiers: stats.trees.iter().map(|tree| tree.tiers.len()).max().unwrap_or(0),
            pushes: stats.pushes,
            filtered: stats.entries_filtered,
        };
        self.reached = self.reached.and(life);
    }
}
