//! The memory budgets of all open databases of the process.
//!
//! Some memory belongs to the process and to none of its databases: a batch that was not written yet, an error. All
//! databases together give way to it once, each in proportion to its budget ([`Member::part_of`]). Otherwise one large
//! batch would take its size from the cache of every database, and most of a small one.

use std::sync::atomic::{AtomicU64, Ordering};

/// The sum of the budgets of all members.
static ALL: AtomicU64 = AtomicU64::new(0);

/// The budget of one open database.
#[derive(Debug)]
pub struct Member {
    bytes: u64,
}

impl Member {
    /// A database with so many bytes of budget opens.
    pub fn new(bytes: u64) -> Self {
        ALL.fetch_add(bytes, Ordering::Relaxed);
        Self { bytes }
    }

    /// Its part of so many bytes that belong to the process.
    pub fn part_of(&self, bytes: u64) -> u64 {
        // Seeded: every database gives way to all of it.
        bug!("budget_process_counted_by_each", return bytes);
        part(bytes, self.bytes, ALL.load(Ordering::Relaxed))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        ALL.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The part of `bytes` of a member with so much of the budgets of all.
fn part(bytes: u64, own: u64, all: u64) -> u64 {
    let share = u128::from(bytes) * u128::from(own) / u128::from(all.max(own).max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
