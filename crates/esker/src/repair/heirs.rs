//! Finds the keyspaces that read log entries of another keyspace: its copies, which branches made
//! at a later position (R24).

use super::source::Source;
use crate::base::{KeyspaceId, Seq};
use crate::manifest::Home;
use std::collections::{BTreeSet, HashMap};

/// The copies of each keyspace.
#[derive(Debug, Default)]
pub(super) struct Heirs {
    /// By the number of the original: the position up to which it applies, and the copy.
    by_number: HashMap<KeyspaceId, BTreeSet<(Seq, KeyspaceId)>>,
}

/// The numbers that entries of a copy have before it was made, each with the position where the
/// next one takes its place.
fn older(home: &Home) -> impl Iterator<Item = (Seq, KeyspaceId)> + '_ {
    let ends = std::iter::once(home.born).chain(home.older.iter().map(|(born, _)| *born));
    ends.zip(home.older.iter().map(|(_, id)| *id))
}

impl Heirs {
    pub(super) fn new(source: &Source) -> Self {
        let mut heirs = Self::default();
        // Entries before the log start are not in the log.
        let start = source.log_start.unwrap_or_default();
        for (copy, home) in &source.homes {
            for (end, number) in older(home).filter(|(end, _)| *end > start) {
                heirs.by_number.entry(number).or_default().insert((end, *copy));
            }
        }
        heirs
    }

    /// The copies that may read an entry at `position` under `number`.
    pub(super) fn of(
        &self,
        number: KeyspaceId,
        position: Seq,
    ) -> impl Iterator<Item = KeyspaceId> + '_ {
        let copies = self.by_number.get(&number);
        copies.into_iter().flat_map(move |copies| copies.range((position + 1, 0)..)).map(|it| it.1)
    }

    /// A copy was dropped.
    pub(super) fn forget(&mut self, copy: KeyspaceId, home: &Home) {
        for (end, number) in older(home) {
            if let Some(copies) = self.by_number.get_mut(&number) {
                copies.remove(&(end, copy));
            }
        }
    }
}
