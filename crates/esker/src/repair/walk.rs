//! The way through a damaged database, the same for a plan and for a salvage.

use super::covers::Cover;
use super::log::replay;
use super::merge::{Input, Merge, Place, Surroundings};
use super::report::{Kept, Plan, State, shown};
use super::source::{self, Source};
use super::target::Sink;
use super::tree::Seen;
use crate::base::{Bytewise, Comparator, CustomOrder, FileId, KeyspaceId, Kind, limits};
use crate::db::ops::Op;
use crate::db::options::Options;
use crate::db::{DATA_DIRECTORY, parse_run_name};
use crate::error::{Error, IoContext, Result};
use crate::fs::Fs;
use crate::manifest::Traits;
use crate::run::{DamagedFile, LostPart, SegmentKind, SegmentMeta, SegmentReader};
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
    /// Files that are open.
    files: HashMap<FileId, Arc<DamagedFile>>,
    /// Files that cannot be opened.
    missing: HashSet<FileId>,
    bad_headers: HashSet<FileId>,
    /// The number with which a name was last made free, by what it began with.
    last_numbers: HashMap<String, u32>,
    /// Segments that were read: several partitions may refer to one.
    read: HashSet<Place>,
    pub seen: Seen,
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
        missing: HashSet::new(),
        bad_headers: HashSet::new(),
        last_numbers: HashMap::new(),
        read: HashSet::new(),
        seen: Seen::default(),
    };
    walk.trees(&source)?;
    if !source.whole {
        walk.strays(&source)?;
    }
    replay(&mut walk, path, &source)?;
    walk.check_orders()?;
    walk.plan.find_refusals(source.refusals)?;
    Ok(walk.plan)
}

impl<S: Sink> Walk<'_, S> {
    fn fs(&self) -> &dyn Fs {
        self.options.fs.as_ref()
    }

    /// A name that no keyspace of the target has.
    fn free_name(&mut self, wanted: &str) -> String {
        if !self.names.contains(wanted) {
            return wanted.to_owned();
        }
        // Longer names than the limit cannot have been read.
        let mut cut = wanted.len().min(limits::NAME_BYTES_MAX - 11);
        while !wanted.is_char_boundary(cut) {
            cut -= 1;
        }
        let stem = &wanted[..cut];
        // Thousands of keyspaces may have one name: each search goes on where the last one ended.
        let number = self.last_numbers.entry(stem.to_owned()).or_insert(1);
        loop {
            *number = number.saturating_add(1);
            let name = format!("{stem}-{number}");
            if !self.names.contains(&name) || *number == u32::MAX {
                return name;
            }
        }
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
                let comparator = comparator.unwrap_or_default();
                let text = format!(
                    "keyspace {name:?} is skipped: give its comparator {comparator:?} in the options"
                );
                self.plan.find(State::Lost, None, text);
                self.plan.skipped.push((name.clone(), comparator.to_owned()));
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

    /// Notes that a segment was read; whether for the first time.
    pub fn note_read(&mut self, meta: &SegmentMeta) -> bool {
        self.read.insert((meta.file, meta.offset))
    }

    pub fn was_read(&self, meta: &SegmentMeta) -> bool {
        self.read.contains(&(meta.file, meta.offset))
    }

    pub fn file(&mut self, meta: &SegmentMeta) -> Option<Arc<DamagedFile>> {
        if self.files.len() > OPEN_FILES_MAX {
            self.files.clear();
        }
        if let Some(file) = self.files.get(&meta.file) {
            return Some(file.clone());
        }
        if self.missing.contains(&meta.file) {
            return None;
        }
        let path = self.data.join(crate::run::file_name(meta.file));
        let file = match DamagedFile::open(self.fs(), &self.data, meta.file) {
            Ok(file) => Arc::new(file),
            Err(error) => {
                let text = format!("all of its segments: {error}");
                self.plan.find(State::Lost, Some(&path), text);
                self.missing.insert(meta.file);
                return None;
            }
        };
        if let Err(error) = file.header().clone()
            && self.bad_headers.insert(meta.file)
        {
            self.plan.find(State::Damaged, Some(&path), format!("its header: {error}"));
        }
        self.files.insert(meta.file, file.clone());
        Some(file)
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
            let Some(id) = parse_run_name(&entry.name).filter(|_| !entry.is_dir()) else {
                continue;
            };
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
                let fragments = self.tombstones(&Bytewise, meta, &mut kept);
                covers.extend(fragments.map(|fragments| Cover { rank: 0, fragments }));
            }
            let saver = &mut Saver { walk: self, number, kept: &mut kept };
            let mut merge = Merge::new(&Bytewise, HashMap::new());
            merge.partition(inputs, covers, (None, None), saver)?;
        } else {
            // Without the comparator nothing can be merged: the newest segment has the last word.
            inputs.sort_by_key(|input| (input.meta.max_seq, input.meta.file, input.meta.offset));
            for input in inputs {
                let saver = &mut Saver { walk: self, number, kept: &mut kept };
                let mut merge = Merge::new(&Bytewise, HashMap::new());
                merge.partition(vec![input], Vec::new(), (None, None), saver)?;
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
pub(super) struct Saver<'w, 'a, S> {
    pub walk: &'w mut Walk<'a, S>,
    pub number: u32,
    pub kept: &'w mut Kept,
}

impl<S: Sink> Surroundings for Saver<'_, '_, S> {
    fn file(&mut self, meta: &SegmentMeta) -> Option<Arc<DamagedFile>> {
        self.walk.file(meta)
    }

    fn ended(&mut self, reader: &SegmentReader) {
        let meta = reader.meta();
        if !self.walk.note_read(meta) {
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
