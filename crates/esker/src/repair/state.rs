//! The state of a walk through a damaged database: its keyspaces, its files and the plan.
//!
//! The trees, the run segments that no description names and the log all add to it. A keyspace gets
//! a name that is free in the target; a file is opened once and reported once, however many of its
//! segments are damaged.

use super::merge::{Place, Reference, Stored, Surroundings};
use super::report::{Kept, Plan, State, shown};
use super::seen::Seen;
use super::sink::Sink;
use crate::base::codec::DecodeError;
use crate::base::{Comparator, CustomOrder, FileId, KeyspaceId, Kind, limits};
use crate::directory::DATA_DIRECTORY;
use crate::error::Result;
use crate::fs::Fs;
use crate::manifest::Traits;
use crate::options::Options;
use crate::run::{
    DamagedFile, LostPart, SegmentMeta, SegmentReader, Source, ValueRef, ValueUse, ValuesMeta,
};
use crate::wal::ops::Op;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Value segments whose indexes are kept between their values.
const VALUE_SEGMENTS_MAX: usize = 64;
/// Files that are kept open between their segments.
const OPEN_FILES_MAX: usize = 256;

/// The key order of a keyspace, as far as the options give it.
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
    pub names: BTreeSet<String>,
    pub data: PathBuf,
    /// Files that are open.
    files: HashMap<FileId, Arc<DamagedFile>>,
    /// Files that cannot be opened.
    missing: HashSet<FileId>,
    bad_headers: HashSet<FileId>,
    /// The last number that made a name unique, by the beginning of the name.
    last_numbers: HashMap<String, u32>,
    /// Segments that were read: several partitions may refer to one.
    read: HashSet<Place>,
    /// Value segments that are being read.
    values: HashMap<Place, SegmentReader>,
    pub seen: Seen,
}

impl<'a, S: Sink> Walk<'a, S> {
    /// A walk that has seen nothing yet, through the database at `path`.
    pub fn new(path: &Path, options: &'a Options, sink: &'a mut S, plan: Plan) -> Self {
        Self {
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
            values: HashMap::new(),
            seen: Seen::default(),
        }
    }

    pub fn fs(&self) -> &dyn Fs {
        self.options.fs.as_ref()
    }

    /// A name that no keyspace of the target has.
    pub fn free_name(&mut self, wanted: &str) -> String {
        if !self.names.contains(wanted) {
            return wanted.to_owned();
        }
        // A name that was read is not longer than the limit.
        let mut cut = wanted.len().min(limits::NAME_BYTES_MAX - 11);
        while !wanted.is_char_boundary(cut) {
            cut -= 1;
        }
        let stem = &wanted[..cut];
        // Thousands of keyspaces may have one name, so each search continues where the last one
        // ended.
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

    /// Sets the traits of a keyspace; the operator and filter that they name are not needed here.
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

    /// Records that a segment was read; returns whether this is the first time.
    pub fn note_read(&mut self, meta: &SegmentMeta) -> bool {
        self.read.insert(meta.place())
    }

    pub fn was_read(&self, meta: &SegmentMeta) -> bool {
        self.read.contains(&meta.place())
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
            // Nobody knows here whether a lost value was dead, so it counts as lost.
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

    fn separated(
        &mut self,
        meta: &SegmentMeta,
        key: &[u8],
        reference: Reference<'_>,
    ) -> Option<Stored> {
        self.value(meta, reference).map_err(|lost| self.lose(key, lost)).ok()
    }

    fn entry(&mut self, key: &[u8], kind: Kind, stored: &Stored) -> Result<()> {
        let stored = match stored {
            Stored::Whole(stored) => stored,
            Stored::InPieces(reference, values) => {
                return self.entry_from((key, kind), *reference, *values);
            }
        };
        self.kept.entries += 1;
        let keyspace = self.number;
        self.walk.sink.take(match kind {
            Kind::Put => Op::Put { keyspace, key, value: stored },
            kind => Op::Special { keyspace, kind, key, stored },
        })
    }
}

/// Where a value should be, and what is wrong.
type LostValue = (Option<Place>, DecodeError);

impl<S: Sink> Saver<'_, '_, S> {
    /// Reports that the value of a key is lost.
    fn lose(&mut self, key: &[u8], (place, error): LostValue) {
        let path = place.map(|(file, _)| self.walk.data.join(crate::run::file_name(file)));
        let (key, keyspace) = (shown(key), &self.kept.keyspace);
        let text = format!("the value of key {key} of keyspace {keyspace:?}: {error}");
        self.walk.plan.find(State::Lost, path.as_deref(), text);
    }

    /// Saves an entry whose value is read once more, a piece at a time.
    fn entry_from(
        &mut self,
        entry: (&[u8], Kind),
        reference: ValueRef,
        values: ValuesMeta,
    ) -> Result<()> {
        let found = self.open_values(values).map(drop);
        let walk = &mut *self.walk;
        let (Ok(()), Some(reader)) = (found, walk.values.get_mut(&reference.place())) else {
            let gone = DecodeError("its value segment is not open");
            self.lose(entry.0, (Some(reference.place()), gone));
            return Ok(());
        };
        let mut value = reader.saved(reference);
        let saved = walk.sink.take_from(self.number, entry, &mut value);
        if value.has_failed() {
            let gone = DecodeError("the device gave it back once, and not again");
            self.lose(entry.0, (Some(reference.place()), gone));
            return Ok(());
        }
        self.kept.entries += 1;
        saved
    }

    /// The value to which an entry of a segment refers, or that it is whole if it is in pieces.
    fn value(
        &mut self,
        meta: &SegmentMeta,
        (kind, stored): Reference<'_>,
    ) -> Result<Stored, LostValue> {
        let reference = ValueRef::decode(kind, stored).map_err(|error| (None, error))?;
        let place = reference.place();
        let used = meta.values.binary_search_by_key(&place, ValueUse::place);
        let used = used.map_err(|_| (Some(place), DecodeError("its segment does not name it")))?;
        let values = meta.values[used].values;
        let reader = self.open_values(values)?;
        let found = match reference.is_in_pieces() {
            // Seeded: a repair finds out that a value has lost a piece when it writes it.
            true if bug!("repair_pieces_not_checked") => Ok(Stored::InPieces(reference, values)),
            true => reader.check_value(reference).map(|()| Stored::InPieces(reference, values)),
            false => reader.value(reference).map(Stored::Whole),
        };
        found.map_err(|error| (Some(place), error))
    }

    /// The reader of a value segment.
    fn open_values(&mut self, values: ValuesMeta) -> Result<&mut SegmentReader, LostValue> {
        let values = SegmentMeta::of_values(values);
        let place = values.place();
        if !self.walk.values.contains_key(&place) {
            let gone = || (Some(place), DecodeError("its file cannot be opened"));
            let reader = self.walk.file(&values).ok_or_else(gone)?.blocks(&values);
            if self.walk.values.len() >= VALUE_SEGMENTS_MAX {
                self.walk.values.clear();
            }
            self.walk.values.insert(place, reader);
        }
        let reader = self.walk.values.get_mut(&place);
        reader.ok_or((Some(place), DecodeError("its value segment is not open")))
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
