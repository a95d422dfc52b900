//! The way through a damaged database, the same for a plan and for a salvage.

use super::log::replay;
use super::merge::{Covers, Input, Surroundings, merge};
use super::report::{Kept, Plan, State, shown};
use super::source::{self, Source};
use super::target::Sink;
use crate::base::{Bytewise, Comparator, CustomOrder, FileId, KeyOrder, KeyspaceId, Kind, limits};
use crate::db::ops::Op;
use crate::db::options::Options;
use crate::db::{DATA_DIRECTORY, parse_run_name};
use crate::error::{Error, IoContext, Result};
use crate::fs::Fs;
use crate::manifest::{Partition, Traits};
use crate::run::{DamagedFile, LostPart, Segment, SegmentKind, SegmentMeta, SegmentReader};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that are kept open between their segments.
const OPEN_FILES_MAX: usize = 256;

/// How a keyspace is ordered, as far as the options tell.
#[derive(Clone)]
pub(super) enum SpaceOrder {
    Bytewise,
    Custom(CustomOrder, Arc<dyn Comparator>),
    /// The comparator was not given.
    Missing,
}

/// A keyspace that is saved.
#[derive(Clone)]
pub(super) struct Space {
    /// Its name in the target.
    pub name: String,
    /// Its number in the sink; `None`: it is skipped.
    pub number: Option<u32>,
    pub order: SpaceOrder,
}

/// The state of a walk.
pub(super) struct Walk<'a, S> {
    pub options: &'a Options,
    pub sink: &'a mut S,
    pub plan: Plan,
    pub spaces: HashMap<KeyspaceId, Space>,
    names: BTreeSet<String>,
    data: PathBuf,
    files: HashMap<FileId, Option<Arc<DamagedFile>>>,
    bad_headers: HashSet<FileId>,
    /// Segments that were looked at: several partitions may refer to one.
    seen: HashSet<(FileId, u64)>,
}

/// Walks through the database at `path` and gives everything that can be saved to `sink`.
pub(super) fn run<S: Sink>(path: &Path, options: &Options, sink: &mut S) -> Result<Plan> {
    let mut plan = Plan::default();
    let source = source::read(&options.fs, path, &mut plan)?;
    let mut walk = Walk {
        options,
        sink,
        plan,
        spaces: HashMap::new(),
        names: BTreeSet::new(),
        data: path.join(DATA_DIRECTORY),
        files: HashMap::new(),
        bad_headers: HashSet::new(),
        seen: HashSet::new(),
    };
    walk.trees(&source)?;
    if !source.whole {
        walk.strays(&source)?;
    }
    replay(&mut walk, path, &source)?;
    walk.check_orders()?;
    Ok(walk.plan)
}

impl<S: Sink> Walk<'_, S> {
    fn fs(&self) -> &dyn Fs {
        self.options.fs.as_ref()
    }

    /// A name that no keyspace of the target has.
    fn free_name(&self, wanted: &str) -> String {
        // Longer names than the limit cannot have been read.
        let cut = wanted.len().min(limits::NAME_BYTES_MAX - 8);
        let stem = wanted.get(..cut).unwrap_or("keyspace");
        let numbered = (2u32..).map(|n| format!("{stem}-{n}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names.find(|name| !self.names.contains(name)).unwrap_or_else(|| wanted.to_owned())
    }

    /// Makes a keyspace in the target.
    pub fn space(&mut self, id: KeyspaceId, name: &str, comparator: Option<&str>) -> Result<()> {
        let given = |wanted: &str| {
            self.options.comparators.iter().find(|known| known.name() == wanted).cloned()
        };
        let order = match comparator.map(given) {
            None => SpaceOrder::Bytewise,
            Some(Some(known)) => SpaceOrder::Custom(CustomOrder::new(known.clone()), known),
            Some(None) => SpaceOrder::Missing,
        };
        let name = self.free_name(name);
        let number = match &order {
            SpaceOrder::Bytewise => Some(self.sink.keyspace(&name, None)?),
            SpaceOrder::Custom(_, comparator) => {
                Some(self.sink.keyspace(&name, Some(comparator.clone()))?)
            }
            SpaceOrder::Missing => {
                let text = format!(
                    "keyspace {name:?} is skipped: give its comparator {:?} in the options",
                    comparator.unwrap_or_default()
                );
                self.plan.find(State::Lost, None, text);
                None
            }
        };
        self.names.insert(name.clone());
        self.spaces.insert(id, Space { name, number, order });
        Ok(())
    }

    /// Gives a keyspace its traits; the code that they name is not needed here.
    pub fn set_traits(&mut self, id: KeyspaceId, traits: &Traits) -> Result<()> {
        match self.spaces.get(&id).and_then(|space| space.number) {
            Some(number) => self.sink.set_traits(number, traits),
            None => Ok(()),
        }
    }

    /// Forgets a keyspace that was dropped in the log.
    pub fn drop_space(&mut self, id: KeyspaceId) -> Result<()> {
        let Some(space) = self.spaces.remove(&id) else { return Ok(()) };
        self.names.remove(&space.name);
        if space.number.is_some() {
            self.sink.drop_keyspace(&space.name)?;
        }
        Ok(())
    }

    /// The trees that the description knows.
    fn trees(&mut self, source: &Source) -> Result<()> {
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
            for partition in tree.partitions() {
                match &space.order {
                    SpaceOrder::Bytewise => {
                        self.partition(&Bytewise, number, partition, &mut kept)?;
                    }
                    SpaceOrder::Custom(order, _) => {
                        self.partition(order, number, partition, &mut kept)?;
                    }
                    SpaceOrder::Missing => {}
                }
            }
            self.plan.keyspaces.push(kept);
        }
        Ok(())
    }

    fn partition<O: KeyOrder>(
        &mut self,
        order: &O,
        number: u32,
        partition: &Partition,
        kept: &mut Kept,
    ) -> Result<()> {
        // From old to new: the base, then the deltas.
        let runs: Vec<_> = partition.runs().collect();
        let ranked = || runs.iter().rev().enumerate();
        let metas = |segments: &[Arc<Segment>]| -> Vec<SegmentMeta> {
            segments.iter().map(|segment| segment.meta().clone()).collect()
        };
        let mut covers = Vec::new();
        for (rank, run) in ranked() {
            for meta in metas(run.tombstones()) {
                covers.extend(self.covers(order, rank, &meta, kept));
            }
        }
        let inputs = ranked().flat_map(|(rank, run)| {
            metas(run.segments()).into_iter().map(move |meta| Input { rank, meta })
        });
        let inputs = inputs.collect();
        let bounds = (partition.lower.as_deref(), partition.upper.as_deref());
        merge(order, inputs, &covers, bounds, &mut Saver { walk: self, number, kept })
    }

    /// Reads a segment of range tombstones.
    fn covers<O: KeyOrder>(
        &mut self,
        order: &O,
        rank: usize,
        meta: &SegmentMeta,
        kept: &mut Kept,
    ) -> Option<Covers> {
        let first = self.seen.insert((meta.file, meta.offset));
        kept.segments += u64::from(first);
        let file = self.file(meta)?;
        match file.fragments(order, meta) {
            Ok(fragments) => Some(Covers { rank, fragments }),
            Err(error) if first => {
                let text = format!(
                    "range deletes at {} of keyspace {:?}: {error}; what they removed may be back",
                    meta.offset, kept.keyspace
                );
                self.plan.find(State::Lost, Some(file.path()), text);
                None
            }
            Err(_) => None,
        }
    }

    fn file(&mut self, meta: &SegmentMeta) -> Option<Arc<DamagedFile>> {
        if self.files.len() > OPEN_FILES_MAX {
            self.files.retain(|_, file| file.is_none());
        }
        if let Some(file) = self.files.get(&meta.file) {
            return file.clone();
        }
        let opened = DamagedFile::open(self.fs(), &self.data, meta.file);
        let file = match opened {
            Ok(file) => Some(Arc::new(file)),
            Err(error) => {
                let path = self.data.join(crate::run::file_name(meta.file));
                let text = format!("all of its segments: {error}");
                self.plan.find(State::Lost, Some(&path), text);
                None
            }
        };
        if let Some(Err(error)) = file.as_ref().map(|file| file.header().clone())
            && self.bad_headers.insert(meta.file)
        {
            let path = self.data.join(crate::run::file_name(meta.file));
            self.plan.find(State::Damaged, Some(&path), format!("its header: {error}"));
        }
        self.files.insert(meta.file, file.clone());
        file
    }

    /// Segments that a damaged description does not know, although it may have to.
    fn strays(&mut self, source: &Source) -> Result<()> {
        let known: HashSet<_> =
            source.version.segments().map(|s| (s.meta().file, s.meta().offset)).collect();
        let entries = match self.fs().list(&self.data).context("list", &self.data) {
            Ok(entries) => entries,
            Err(error) => return self.plan.find_error(State::Lost, error),
        };
        let (mut bytewise, mut custom) = (Vec::new(), Vec::new());
        for entry in entries {
            let Some(id) = parse_run_name(&entry.name) else { continue };
            let file = match DamagedFile::open(self.fs(), &self.data, id) {
                Ok(file) => file,
                Err(error) => {
                    self.plan.find_error(State::Lost, error)?;
                    continue;
                }
            };
            let strays = file.segments().into_iter().filter(|m| !known.contains(&(id, m.offset)));
            for meta in strays {
                if meta.bytewise { bytewise.push(meta) } else { custom.push(meta) }
            }
        }
        self.save_strays("recovered", bytewise, true)?;
        self.save_strays("recovered-ordered", custom, false)
    }

    fn save_strays(&mut self, name: &str, metas: Vec<SegmentMeta>, sorted: bool) -> Result<()> {
        if metas.is_empty() {
            return Ok(());
        }
        let name = self.free_name(name);
        let text = format!(
            "{} segments that no readable manifest names are saved in keyspace {name:?}: their \
             keyspaces are not known, and some may hold what was replaced or removed since",
            metas.len()
        );
        self.plan.find(State::Note, None, text);
        self.names.insert(name.clone());
        let number = self.sink.keyspace(&name, None)?;
        let mut kept = Kept { keyspace: name, ..Kept::default() };
        let (data, lists): (Vec<_>, Vec<_>) =
            metas.into_iter().partition(|meta| meta.kind == SegmentKind::Data);
        let mut inputs: Vec<Input> = data.into_iter().map(|meta| Input { rank: 0, meta }).collect();
        if sorted {
            let mut covers = Vec::new();
            for meta in &lists {
                covers.extend(self.covers(&Bytewise, 0, meta, &mut kept));
            }
            let saver = &mut Saver { walk: self, number, kept: &mut kept };
            merge(&Bytewise, inputs, &covers, (None, None), saver)?;
        } else {
            // Without the comparator nothing can be merged: the newest segment has the last word.
            inputs.sort_by_key(|input| (input.meta.max_seq, input.meta.file, input.meta.offset));
            for input in inputs {
                let saver = &mut Saver { walk: self, number, kept: &mut kept };
                merge(&Bytewise, vec![input], &[], (None, None), saver)?;
            }
        }
        self.plan.keyspaces.push(kept);
        Ok(())
    }

    fn check_orders(&self) -> Result<()> {
        for space in self.spaces.values() {
            if let SpaceOrder::Custom(order, _) = &space.order
                && order.panicked()
            {
                let what = format!("the comparator {:?}", order.name());
                return Err(Error::UserCodePanicked { what });
            }
        }
        Ok(())
    }
}

/// Takes the entries of one keyspace.
struct Saver<'w, 'a, S> {
    walk: &'w mut Walk<'a, S>,
    number: u32,
    kept: &'w mut Kept,
}

impl<S: Sink> Surroundings for Saver<'_, '_, S> {
    fn file(&mut self, meta: &SegmentMeta) -> Option<Arc<DamagedFile>> {
        self.walk.file(meta)
    }

    fn ended(&mut self, reader: &SegmentReader) {
        let meta = reader.meta();
        if !self.walk.seen.insert((meta.file, meta.offset)) {
            return;
        }
        self.kept.segments += 1;
        self.kept.blocks += reader.blocks();
        for part in reader.lost() {
            let path = reader.file().path();
            if part.section == "block" {
                self.kept.blocks_lost += 1;
                let text = lost_text(part, &self.kept.keyspace);
                self.walk.plan.find(State::Lost, Some(path), text);
            } else {
                let text = format!("{} at {}: {}", part.section, part.offset, part.detail);
                self.walk.plan.find(State::Damaged, Some(path), text);
            }
        }
    }

    fn entry(&mut self, key: &[u8], kind: Kind, stored: &[u8]) -> Result<()> {
        self.kept.entries += 1;
        let keyspace = self.number;
        self.walk.sink.take(match kind {
            Kind::Put => Op::Put { keyspace, key, value: stored },
            kind => Op::Special { keyspace, kind, key, stored },
        })
    }
}

fn lost_text(part: &LostPart, keyspace: &str) -> String {
    format!(
        "{} bytes of blocks at {}: {}; keyspace {keyspace:?}, keys from {} to {}",
        part.len,
        part.offset,
        part.detail,
        shown(&part.range.0),
        shown(&part.range.1)
    )
}
