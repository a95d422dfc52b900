//! Reads the trees of a damaged database.
//!
//! A description may name one run segment many times: neighbouring partitions share segments after
//! a split, branches share all of theirs, and a crafted description may name one a million times.
//! In any case,
//!
//! 1. a plan reads each segment once, in the first tree that names it, and
//! 2. a salvage reads each segment once for every tree that is saved.
//!
//! So a plan does not merge a partition whose segments another tree has: it adds the counts in the
//! descriptions of the segments and reports *at most* that many entries.
//!
//! A partition is read together with the pending runs of the spans above it. Each row is newer than
//! the rows below it, so its runs have greater ranks.

use super::covers::Cover;
use super::merge::{Input, Merge, Place, judge};
use super::report::{Kept, State};
use super::sink::Sink;
use super::source::Source;
use super::state::{Saver, SpaceOrder, Walk};
use crate::base::rangedel::Fragments;
use crate::base::{Bytewise, KeyOrder};
use crate::error::Result;
use crate::manifest::{Partition, Tree, check_tree};
use crate::run::{SegmentKind, SegmentMeta};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Range tombstones that are kept in memory between the partitions that name them.
const KEPT_TOMBSTONES_MAX: usize = 1 << 20;

/// Ranks of a row begin at a multiple of this.
const ROW_RANKS: usize = 1 << 24;

/// What is read as one: the spans above a partition and the partition, each with its row. If the
/// tree is not in order, it is all of the tree.
type Group<'t> = Vec<(usize, &'t Arc<Partition>)>;

/// A partition to read, with what the tiers hold of its keys: its segments from new to old, each
/// once.
struct Part<'t> {
    group: Group<'t>,
    data: Vec<Input>,
    tombstones: Vec<Input>,
    /// Whether its entries are merged; otherwise only the damage of segments that no other tree
    /// reads is found.
    merged: bool,
}

impl<'t> Part<'t> {
    /// The partition.
    fn partition(&self) -> Option<&'t Arc<Partition>> {
        self.group.last().map(|(_, partition)| *partition)
    }

    /// Names the part: branches share partitions and spans by address.
    fn addresses(&self) -> Vec<*const Partition> {
        self.group.iter().map(|(_, partition)| Arc::as_ptr(partition)).collect()
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.data.iter().chain(&self.tombstones).map(Input::place)
    }
}

impl<S: Sink> Walk<'_, S> {
    /// Saves the trees of the description.
    pub(super) fn trees(&mut self, source: &Source) -> Result<()> {
        for record in source.keyspaces.values() {
            let branch = source.homes.get(&record.id).map_or(0, |home| home.branch);
            let name = source.saved_name(&record.name, branch);
            self.space(record.id, &name, record.comparator.as_deref())?;
        }
        for (id, traits) in &source.traits {
            self.set_traits(*id, traits)?;
        }
        for (id, tree) in source.version.trees() {
            if !self.spaces.contains_key(id) {
                let name = format!("keyspace-{id}");
                let text = format!("a tree belongs to no keyspace: it is saved as {name:?}");
                self.plan.find(State::Damaged, None, text);
                self.space(*id, &name, None)?;
            }
            let space = self.spaces[id].clone();
            let Some(number) = space.number else { continue };
            let mut kept = Kept { keyspace: space.name.clone(), ..Kept::default() };
            match &space.order {
                SpaceOrder::Bytewise => self.tree(&Bytewise, number, tree, &mut kept)?,
                SpaceOrder::Custom(order, _) => self.tree(order, number, tree, &mut kept)?,
                SpaceOrder::Missing => {}
            }
            self.values(number, tree, &mut kept);
            self.plan.keyspaces.push(kept);
        }
        Ok(())
    }

    /// Finds the damage of the value segments to which a tree refers.
    fn values(&mut self, number: u32, tree: &Tree, kept: &mut Kept) {
        for segment in tree.all().flat_map(|partition| partition.segments()) {
            if segment.meta().kind == SegmentKind::Values && !self.was_read(segment.meta()) {
                judge(segment.meta(), &mut Saver { walk: self, number, kept });
            }
        }
    }

    fn tree<O: KeyOrder>(
        &mut self,
        order: &O,
        number: u32,
        tree: &Tree,
        kept: &mut Kept,
    ) -> Result<()> {
        self.seen.tree += 1;
        // If the bounds are not in order, all partitions are read as one, in which each run keeps
        // its rank.
        let ordered = check_tree(order, tree).is_ok();
        if !ordered {
            let text = format!("the partitions of keyspace {:?} are not in order", kept.keyspace);
            self.plan.find(State::Damaged, None, text);
        }
        let parts: Vec<Part<'_>> = groups(order, tree, ordered)
            .into_iter()
            .map(|group| self.part(order, (group, ordered), kept))
            .collect();
        let mut named: HashMap<Place, usize> = HashMap::new();
        for part in parts.iter().filter(|part| part.merged) {
            part.data.iter().for_each(|input| *named.entry(input.place()).or_default() += 1);
        }
        let mut merge = Merge::new(order, named);
        for part in parts {
            let Some(partition) = part.partition() else { continue };
            let addresses = part.addresses();
            if !part.merged {
                self.count(order, &part, number, kept);
                continue;
            }
            let before = kept.entries;
            let mut covers = Vec::new();
            for input in &part.tombstones {
                let fragments = self.tombstones(order, &input.meta, kept);
                covers.extend(fragments.map(|fragments| Cover { rank: input.rank, fragments }));
            }
            let bounds = (partition.lower.as_deref(), partition.upper.as_deref());
            let bounds = if ordered { bounds } else { (None, None) };
            merge.partition(part.data, covers, bounds, &mut Saver { walk: self, number, kept })?;
            self.seen.entries.insert(addresses, kept.entries - before);
        }
        Ok(())
    }

    /// The segments to read for some partitions and spans. A segment gets the rank of the first
    /// partition and run that name it.
    fn part<'t, O: KeyOrder>(
        &mut self,
        order: &O,
        (group, ordered): (Group<'t>, bool),
        kept: &Kept,
    ) -> Part<'t> {
        let below = group.last().map(|(_, partition)| *partition).filter(|_| ordered);
        let (mut data, mut tombstones) = (Vec::new(), Vec::new());
        let (mut here, mut doubled, mut overlapping) = (HashSet::new(), 0u64, 0u64);
        for (tier, partition) in &group {
            // Seeded: what a tier holds counts as older than what lies below it.
            let tier_rank = if bug!("repair_tiers_are_older") { 0 } else { tier * ROW_RANKS };
            let newest = tier_rank + partition.deltas.len();
            for (age, run) in partition.runs_in(*tier).enumerate() {
                for segment in run.segments().iter().chain(run.tombstones()) {
                    // A span has many partitions below it: each reads what it needs.
                    let apart = |below: &Arc<Partition>| !reaches(order, segment.meta(), below);
                    if *tier > 0 && below.is_some_and(apart) {
                        continue;
                    }
                    let input = Input { rank: newest - age, meta: segment.meta().clone() };
                    if !here.insert(input.place()) {
                        doubled += 1;
                    } else if !self.seen.claim(&input.meta) {
                        overlapping += 1;
                    } else if input.meta.kind == SegmentKind::Data {
                        data.push(input);
                    } else {
                        tombstones.push(input);
                    }
                }
            }
        }
        let name = &kept.keyspace;
        if doubled > 0 {
            let text = format!(
                "a partition of keyspace {name:?} names segments again, {doubled} times: each \
                 counts once"
            );
            self.plan.find(State::Damaged, None, text);
        }
        if overlapping > 0 {
            let text = format!(
                "{overlapping} segments of keyspace {name:?} overlap others in their files: they \
                 are not read"
            );
            self.plan.find(State::Lost, None, text);
        }
        let mut part = Part { group, data, tombstones, merged: true };
        let (readers, tree) = (&mut self.seen.readers, self.seen.tree);
        if !S::KEEPS {
            let elsewhere = |place| readers.get(&place).is_some_and(|reader| *reader != tree);
            let shared = part.places().any(elsewhere);
            part.merged = !shared;
        }
        let reader = if part.merged { tree } else { 0 };
        for input in part.data.iter().chain(&part.tombstones) {
            readers.entry(input.place()).or_insert(reader);
        }
        part
    }

    /// Counts the entries that a partition holds at most, and finds the damage of the segments that
    /// no other tree reads.
    fn count<O: KeyOrder>(&mut self, order: &O, part: &Part<'_>, number: u32, kept: &mut Kept) {
        let merged = self.seen.entries.get(&part.addresses()).copied();
        kept.entries += merged.unwrap_or_else(|| {
            kept.at_most = true;
            let entries = |input: &Input| input.meta.entries.saturating_sub(input.meta.deletes);
            part.data.iter().map(entries).fold(0, u64::saturating_add)
        });
        for input in &part.data {
            if self.seen.readers.get(&input.place()) == Some(&0) && !self.was_read(&input.meta) {
                judge(&input.meta, &mut Saver { walk: self, number, kept });
            }
        }
        for input in &part.tombstones {
            if !self.was_read(&input.meta) {
                self.tombstones(order, &input.meta, kept);
            }
        }
    }

    /// Reads a segment of range tombstones.
    pub(super) fn tombstones<O: KeyOrder>(
        &mut self,
        order: &O,
        meta: &SegmentMeta,
        kept: &mut Kept,
    ) -> Option<Arc<Fragments>> {
        let place = meta.place();
        if let Some(known) = self.seen.tombstones.get(&place) {
            return known.clone();
        }
        let first = self.note_read(meta);
        kept.segments += u64::from(first);
        let file = self.file(meta)?;
        let fragments = match file.fragments(order, meta) {
            Ok(fragments) => Some(Arc::new(fragments)),
            Err(error) => {
                let text = format!(
                    "range deletes at {} of keyspace {:?}: {error}; what they removed may be back",
                    meta.offset, kept.keyspace
                );
                if first {
                    self.plan.find(State::Lost, Some(file.path()), text);
                }
                None
            }
        };
        let seen = &mut self.seen;
        if seen.tombstones_kept > KEPT_TOMBSTONES_MAX {
            seen.tombstones.clear();
            seen.tombstones_kept = 0;
        }
        seen.tombstones_kept += fragments.as_ref().map_or(0, |fragments| fragments.len()) + 1;
        seen.tombstones.insert(place, fragments.clone());
        fragments
    }
}

/// What is read as one. If the bounds of the tree are not in order, that is all of it.
fn groups<'t, O: KeyOrder>(order: &O, tree: &'t Tree, ordered: bool) -> Vec<Group<'t>> {
    let rows = || tree.rows().iter().enumerate().rev();
    if !ordered {
        let all = rows().flat_map(|(tier, row)| row.partitions().iter().map(move |p| (tier, p)));
        return vec![all.collect()];
    }
    let path = |partition: &'t Arc<Partition>| {
        let mut group: Group<'t> = Vec::new();
        for (tier, row) in rows().filter(|(tier, _)| *tier > 0) {
            let at = partition.lower.as_deref().map_or(0, |lower| row.find(order, lower));
            group.push((tier, &row.partitions()[at]));
        }
        group.push((0, partition));
        group
    };
    tree.partitions().iter().map(path).collect()
}

/// Whether a segment may hold something of the keys of a partition.
fn reaches<O: KeyOrder>(order: &O, meta: &SegmentMeta, partition: &Partition) -> bool {
    let tombstones = meta.kind == SegmentKind::Tombstones;
    // An empty bound of a tombstone is none.
    let open = |key: &[u8]| tombstones && key.is_empty();
    let begins = partition
        .upper
        .as_deref()
        .is_none_or(|upper| open(&meta.min_key) || order.compare(&meta.min_key, upper).is_lt());
    let ends = partition
        .lower
        .as_deref()
        .is_none_or(|lower| open(&meta.max_key) || order.compare(&meta.max_key, lower).is_ge());
    begins && ends
}
