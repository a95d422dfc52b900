//! The durable description of the trees: the manifest, and what its trees refer to.
//!
//! The store counts how many trees have each partition or span, and how many of these refer to each
//! run segment. A run segment with no reference left is *dead*; so is a file without live segments. The
//! owner of the store gives their space back only after the edit that dropped them is synced (R22).

use super::log::Manifest;
use super::{Partition, Tree, Version};
use crate::base::{FileId, KeyspaceId, Seq};
use crate::run::{RunFile, Segment};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The durable description.
#[derive(Debug)]
pub struct Store {
    /// The present manifest.
    pub manifest: Manifest,
    /// Where the log must begin.
    pub log_start: Seq,
    /// How many trees have each partition or span, by its address: branches share them (R24).
    partitions: HashMap<usize, u32>,
    segments: HashMap<(FileId, u64), u32>,
    files: HashMap<FileId, (u32, Arc<RunFile>)>,
    totals: Totals,
}

/// Sums over all partitions and spans, each once.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    /// Bytes of bases.
    pub base_bytes: u64,
    /// Bytes of deltas.
    pub delta_bytes: u64,
    /// Bytes of the pending runs of spans. A run segment counts once for each span that refers to
    /// it.
    pub pending_bytes: u64,
    /// About the memory that describes all of it.
    pub described_bytes: u64,
}

impl Totals {
    fn add(&mut self, tier: usize, partition: &Partition) {
        self.base_bytes += partition.base.bytes();
        *self.above(tier) += partition.delta_bytes();
        self.described_bytes += partition.described_bytes();
    }

    fn remove(&mut self, tier: usize, partition: &Partition) {
        self.base_bytes -= partition.base.bytes();
        *self.above(tier) -= partition.delta_bytes();
        self.described_bytes -= partition.described_bytes();
    }

    fn above(&mut self, tier: usize) -> &mut u64 {
        if tier == 0 { &mut self.delta_bytes } else { &mut self.pending_bytes }
    }
}

impl Store {
    /// The description that `version` and the log from `log_start` make up.
    pub fn new(manifest: Manifest, log_start: Seq, version: &Version) -> Self {
        let mut store = Self {
            manifest,
            log_start,
            partitions: HashMap::new(),
            segments: HashMap::new(),
            files: HashMap::new(),
            totals: Totals::default(),
        };
        for (_, tree) in version.trees() {
            for (tier, row) in tree.rows().iter().enumerate() {
                row.partitions().iter().for_each(|partition| store.add(tier, partition));
            }
        }
        store
    }

    /// Whether some tree refers to a part of a file.
    pub fn refers_to_file(&self, file: &RunFile) -> bool {
        self.files.contains_key(&file.id())
    }

    /// Sums over all partitions and spans.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether some tree refers to a segment.
    pub fn refers_to(&self, segment: &Segment) -> bool {
        self.segments.contains_key(&segment.meta().place())
    }

    /// Whether these partitions and spans are all that refer to a segment, and each is in one tree.
    pub fn is_referred_by(&self, segment: &Segment, partitions: &[Arc<Partition>]) -> bool {
        // Seeded: what a branch shares is written again for its parent, and no space returns.
        bug!("manifest_shared_segment_is_thinned", return true);
        let holders: Vec<_> = partitions.iter().map(|partition| (partition.clone(), 1)).collect();
        self.is_held_by(segment, &holders)
    }

    /// Whether these partitions, each in so many trees, are all that refer to a segment.
    pub fn is_held_by(&self, segment: &Segment, holders: &[(Arc<Partition>, u32)]) -> bool {
        let count = self.segments.get(&segment.meta().place());
        let trees =
            |partition: &Arc<Partition>| self.partitions.get(&Arc::as_ptr(partition).addr());
        count.is_some_and(|count| *count as usize == holders.len())
            && holders.iter().all(|(partition, of)| trees(partition) == Some(of))
    }

    /// Whether another tree may have a partition, or one with the same runs. It costs little to ask,
    /// and in a database without branches the answer is no.
    pub fn may_be_elsewhere(&self, partition: &Arc<Partition>) -> bool {
        let only = std::slice::from_ref(partition);
        partition.segments().next().is_some_and(|first| !self.is_referred_by(first, only))
    }

    /// Whether another tree refers to a partition or to its base. The first and the last segment of
    /// the base tell nothing: a neighbour that was split off may refer to them.
    pub fn shares(&self, partition: &Partition) -> bool {
        // Seeded: tightening gives every branch a copy of what they shared.
        bug!("manifest_shared_parts_are_tightened", return false);
        let trees = self.partitions.get(&std::ptr::from_ref(partition).addr());
        let base = partition.base.segments();
        let mut inner = base.iter().take(base.len().saturating_sub(1)).skip(1).map(|s| s.meta());
        trees.is_none_or(|trees| *trees > 1)
            || inner.any(|meta| self.segments.get(&meta.place()) != Some(&1))
    }

    fn add(&mut self, tier: usize, partition: &Partition) {
        // No other partition has this address as long as some tree has this one.
        let trees = self.partitions.entry(std::ptr::from_ref(partition).addr()).or_default();
        *trees += 1;
        if *trees > 1 {
            return;
        }
        self.totals.add(tier, partition);
        for segment in partition.segments() {
            let count = self.segments.entry(segment.meta().place()).or_default();
            *count += 1;
            if *count == 1 {
                self.totals.described_bytes += segment.described_bytes();
                let new = || (0, segment.file().clone());
                self.files.entry(segment.meta().file).or_insert_with(new).0 += 1;
            }
        }
    }

    /// Takes the references of a partition away and collects what has no reference left.
    fn remove(&mut self, tier: usize, partition: &Partition, dead: &mut Dead) {
        // Seeded: dropping a branch gives back what its parent still refers to.
        bug!(
            "manifest_shared_partitions_not_counted",
            self.partitions.insert(std::ptr::from_ref(partition).addr(), 1)
        );
        let address = std::ptr::from_ref(partition).addr();
        if let Some(trees) = self.partitions.get_mut(&address) {
            *trees -= 1;
            if *trees > 0 {
                return;
            }
            self.partitions.remove(&address);
        }
        self.totals.remove(tier, partition);
        for segment in partition.segments() {
            let key = segment.meta().place();
            let Some(count) = self.segments.get_mut(&key) else { continue };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            self.segments.remove(&key);
            self.totals.described_bytes -= segment.described_bytes();
            dead.segments.push(segment.clone());
            if let Some((live, _)) = self.files.get_mut(&segment.meta().file) {
                *live -= 1;
                if *live == 0 {
                    let gone = self.files.remove(&segment.meta().file);
                    dead.files.extend(gone.map(|(_, file)| file));
                }
            }
        }
    }
}

/// What a change left without references.
#[derive(Debug, Default)]
pub struct Dead {
    /// Run segments.
    pub segments: Vec<Arc<Segment>>,
    /// Files.
    pub files: Vec<Arc<RunFile>>,
}

impl Store {
    /// Moves references from the old trees to the new ones. Returns what nothing refers to any
    /// more, and which partitions moved; `None`: the tree is gone.
    pub fn account(
        &mut self,
        before: &Version,
        trees: &[(KeyspaceId, Option<Arc<Tree>>)],
    ) -> (Dead, Vec<(KeyspaceId, Option<Moved>)>) {
        let mut dead = Dead::default();
        let mut all = Vec::new();
        for (id, tree) in trees {
            let moved = Moved::between_trees(before.tree(*id).map(AsRef::as_ref), tree.as_deref());
            moved.come.iter().for_each(|(tier, partition)| self.add(*tier, partition));
            for (tier, partition) in &moved.gone {
                self.remove(*tier, partition, &mut dead);
            }
            all.push((*id, tree.as_ref().map(|_| moved)));
        }
        (dead, all)
    }
}

/// How the partitions and spans of a tree differ from those of another, each with its row.
#[derive(Debug, Default)]
pub struct Moved {
    /// Those that the first has alone.
    pub gone: Vec<(usize, Arc<Partition>)>,
    /// Those that the second has alone.
    pub come: Vec<(usize, Arc<Partition>)>,
}

impl Moved {
    /// The difference from `old` to `new`, which are partitions.
    pub fn between(old: &[Arc<Partition>], new: &[Arc<Partition>]) -> Self {
        let mut moved = Self::default();
        moved.add_row(0, old, new);
        moved
    }

    /// The difference from tree `old` to tree `new`; `None`: there is no tree.
    pub fn between_trees(old: Option<&Tree>, new: Option<&Tree>) -> Self {
        let rows = |tree: Option<&Tree>| tree.map_or(0, |tree| tree.rows().len());
        let mut moved = Self::default();
        // Seeded: the pending runs of spans are not counted, and their files are removed.
        let all = if bug!("manifest_spans_not_counted") { 1 } else { usize::MAX };
        for tier in 0..rows(old).max(rows(new)).min(all) {
            moved.add_row(tier, partitions_of(old, tier), partitions_of(new, tier));
        }
        moved
    }

    /// The difference of a row. Its common beginning and end are only compared.
    fn add_row(&mut self, tier: usize, old: &[Arc<Partition>], new: &[Arc<Partition>]) {
        let same = |(a, b): &(&Arc<Partition>, &Arc<Partition>)| Arc::ptr_eq(a, b);
        let before = old.iter().zip(new).take_while(same).count();
        let (old, new) = (&old[before..], &new[before..]);
        let behind = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
        let (old, new) = (&old[..old.len() - behind], &new[..new.len() - behind]);
        let alone = |one: &[Arc<Partition>], other: &[Arc<Partition>]| {
            let known: HashSet<_> = other.iter().map(Arc::as_ptr).collect();
            let alone = one.iter().filter(|p| !known.contains(&Arc::as_ptr(p)));
            alone.map(|p| (tier, p.clone())).collect::<Vec<_>>()
        };
        self.gone.extend(alone(old, new));
        self.come.extend(alone(new, old));
    }
}

/// The partitions of a row that may not be there.
fn partitions_of(tree: Option<&Tree>, tier: usize) -> &[Arc<Partition>] {
    tree.and_then(|tree| tree.row(tier)).map_or(&[][..], |row| row.partitions())
}
