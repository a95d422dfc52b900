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

use super::covers::Cover;
use super::merge::{Input, Merge, Place, judge};
use super::report::{Kept, State};
use super::source::Source;
use super::state::{Saver, SpaceOrder, Walk};
use super::target::Sink;
use crate::base::rangedel::Fragments;
use crate::base::{Bytewise, KeyOrder};
use crate::error::Result;
use crate::manifest::{Partition, Tree, check_tree};
use crate::run::{SegmentKind, SegmentMeta};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Range tombstones that are kept in memory between the partitions that name them.
const KEPT_TOMBSTONES_MAX: usize = 1 << 20;

/// A partition to read: its segments from old to new, each once.
struct Part<'t> {
    partition: &'t Arc<Partition>,
    data: Vec<Input>,
    tombstones: Vec<Input>,
    /// Whether its entries are merged; otherwise only the damage of segments that no other tree
    /// reads is found.
    merged: bool,
}

impl Part<'_> {
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
            self.plan.keyspaces.push(kept);
        }
        Ok(())
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
        let groups: Vec<&[Arc<Partition>]> =
            tree.partitions().chunks(if ordered { 1 } else { usize::MAX }).collect();
        let parts: Vec<Part<'_>> =
            groups.into_iter().filter_map(|group| self.part(group, kept)).collect();
        let mut named: HashMap<Place, usize> = HashMap::new();
        for part in parts.iter().filter(|part| part.merged) {
            part.data.iter().for_each(|input| *named.entry(input.place()).or_default() += 1);
        }
        let mut merge = Merge::new(order, named);
        for part in parts {
            let address = Arc::as_ptr(part.partition);
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
            let partition = part.partition;
            let bounds = (partition.lower.as_deref(), partition.upper.as_deref());
            let bounds = if ordered { bounds } else { (None, None) };
            merge.partition(part.data, covers, bounds, &mut Saver { walk: self, number, kept })?;
            self.seen.entries.insert(address, kept.entries - before);
        }
        Ok(())
    }

    /// The segments to read for some partitions. A segment gets the rank of the first partition and
    /// run that name it.
    fn part<'t>(&mut self, group: &'t [Arc<Partition>], kept: &Kept) -> Option<Part<'t>> {
        let (mut data, mut tombstones) = (Vec::new(), Vec::new());
        let (mut here, mut doubled, mut overlapping) = (HashSet::new(), 0u64, 0u64);
        for partition in group {
            let newest = partition.deltas.len();
            for (age, run) in partition.runs().enumerate() {
                for segment in run.segments().iter().chain(run.tombstones()) {
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
        let mut part = Part { partition: group.first()?, data, tombstones, merged: true };
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
        Some(part)
    }

    /// Counts the entries that a partition holds at most, and finds the damage of the segments that
    /// no other tree reads.
    fn count<O: KeyOrder>(&mut self, order: &O, part: &Part<'_>, number: u32, kept: &mut Kept) {
        let merged = self.seen.entries.get(&Arc::as_ptr(part.partition)).copied();
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
        let place = (meta.file, meta.offset);
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
