//! What runs of the machine come to, so that a test can tell whether they try what they are there for.
//!
//! The statistics of a database end with its life, so they are added up when it is closed or killed. What no
//! statistic has is watched (`watched`).

use super::Machine;
use super::watched::Place;
use crate::harness::read_some;
use crate::model::Model;
use esker::fs::Fs;
use esker::internals::run::SegmentMeta;
use std::collections::HashMap;
use std::sync::Arc;

/// Steps between two looks at the limit of the cache.
const STEPS_PER_LOOK: u64 = 20;

/// What runs came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// The most tiers that a tree had when a database was closed or killed.
    pub tiers: usize,
    /// Pushes from tier to tier.
    pub pushes: u64,
    /// Entries that compaction filters removed or changed.
    pub filtered: u64,
    /// How often iterators let their blocks go.
    pub let_go: u64,
    /// Changes of the cache's limit that looks have found.
    pub limits: u64,
    /// Compactions that were done because dead space could be given back.
    pub for_space: u64,
    /// Values that were found in another value segment than before.
    pub moved: u64,
    /// Ingestions that were committed.
    pub ingestions: u64,
    /// Bytes that were compressed more strongly because nobody read them.
    pub cooled: u64,
    /// Writes that did not wait and were done.
    pub unwaited: u64,
    /// Writes that would have had to wait, and were refused.
    pub refused: u64,
    /// Walks of cursors.
    pub cursors: u64,
    /// How often blocks left the cache for others.
    pub blocks_left: u64,
    /// How often indexes did.
    pub indexes_left: u64,
    /// Blocks that were read from files right after all blocks had been read.
    pub blocks_again: u64,
    /// Indexes that were.
    pub indexes_again: u64,
    /// Steps of the background in the middle of a read that has missed or evicted something.
    pub mid_reads: u64,
}

impl Reached {
    /// What both together came to.
    pub fn and(self, other: Self) -> Self {
        Self {
            tiers: self.tiers.max(other.tiers),
            pushes: self.pushes + other.pushes,
            filtered: self.filtered + other.filtered,
            let_go: self.let_go + other.let_go,
            limits: self.limits + other.limits,
            for_space: self.for_space + other.for_space,
            moved: self.moved + other.moved,
            ingestions: self.ingestions + other.ingestions,
            cooled: self.cooled + other.cooled,
            unwaited: self.unwaited + other.unwaited,
            refused: self.refused + other.refused,
            cursors: self.cursors + other.cursors,
            blocks_left: self.blocks_left + other.blocks_left,
            indexes_left: self.indexes_left + other.indexes_left,
            blocks_again: self.blocks_again + other.blocks_again,
            indexes_again: self.indexes_again + other.indexes_again,
            mid_reads: self.mid_reads + other.mid_reads,
        }
    }

    /// What nothing came to, by name.
    pub fn missing(&self) -> Vec<&'static str> {
        let counts = [
            ("tiers", self.tiers as u64),
            ("pushes", self.pushes),
            ("filtered", self.filtered),
            ("let_go", self.let_go),
            ("limits", self.limits),
            ("for_space", self.for_space),
            ("moved", self.moved),
            ("ingestions", self.ingestions),
            ("cooled", self.cooled),
            ("unwaited", self.unwaited),
            ("refused", self.refused),
            ("cursors", self.cursors),
            ("blocks_left", self.blocks_left),
            ("indexes_left", self.indexes_left),
            ("blocks_again", self.blocks_again),
            ("indexes_again", self.indexes_again),
            ("mid_reads", self.mid_reads),
        ];
        counts.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect()
    }
}

impl Machine {
    /// Notes what this life of the database has come to, at its end.
    pub(super) fn note_reached(&mut self) {
        let stats = self.db().stats();
        let cache = self.keeper.cache();
        let life = Reached {
            tiers: stats.trees.iter().map(|tree| tree.tiers.len()).max().unwrap_or(0),
            pushes: stats.pushes,
            filtered: stats.entries_filtered,
            let_go: stats.pins_let_go,
            ingestions: stats.ingestions,
            cooled: stats.bytes_cooled,
            blocks_left: cache.blocks_left,
            indexes_left: cache.indexes_left,
            mid_reads: self.keeper.mid_reads(),
            ..Reached::default()
        };
        self.reached = self.reached.and(life);
    }

    /// Right after all was read, reads all of it once more: where the cache is smaller than the data, blocks and indexes
    /// have left it and are read again. `first`: what was found.
    pub(super) fn read_again(&mut self, first: &Model, which: impl Fn(usize) -> bool + Copy) {
        if !self.small_cache {
            return;
        }
        self.keeper.moves_in_reads(None);
        let now = || (self.db().stats().cache_misses, self.keeper.cache().index_loads);
        let before = now();
        let again = read_some(self.db(), which).unwrap_or_else(|e| panic!("second read: {e}"));
        let after = now();
        // A filter may have changed something since.
        let difference = self.model.see_all(&again, which).or_else(|| first.difference(&again));
        let unchanged = difference.is_none() || self.model.has_filters();
        assert!(unchanged, "the second of two reads: {difference:?}");
        self.reached.blocks_again += after.0 - before.0;
        self.reached.indexes_again += after.1 - before.1;
    }

    /// Looks whether the governor has changed the limit of the cache.
    pub(super) fn watch_limit(&mut self) {
        if !self.steps.is_multiple_of(STEPS_PER_LOOK) {
            return;
        }
        let limit = self.db().stats().memory.cache_limit;
        self.reached.limits += u64::from(self.watched.see_limit(limit));
    }

    /// Looks which values have moved; the value segments to which the manifest refers are these.
    pub(super) fn watch_values(&mut self, segments: &HashMap<Place, SegmentMeta>) {
        let fs: Arc<dyn Fs> = self.disk.as_fs();
        self.reached.moved += self.watched.see_values(&fs, &self.path.join("data"), segments);
    }

    /// What all lives of the database have come to, at the end of the last one.
    pub(super) fn all_reached(&self) -> Reached {
        Reached { for_space: self.watched.for_space(), ..self.reached }
    }
}
