//! The description of a damaged database, from its superblocks and manifests as far as they are
//! readable.

use super::report::{Finding, Plan, State};
use crate::base::{FileId, KeyspaceId, Seq};
use crate::catalog::{DEFAULT_KEYSPACE, DEFAULT_KEYSPACE_ID};
use crate::directory::{DATA_DIRECTORY, LOCK_NAME};
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, PathKind};
use crate::manifest::{
    self, Content, Edit, Home, KeyspaceRecord, SUPERBLOCK_NAMES, Scan, Superblock, Traits, Trees,
    Version, manifest_name, parse_manifest_name,
};
use crate::recovery::consistency;
use crate::run::{RunFile, Segment, SegmentMeta};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The description of the database.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Keyspaces by number, including the default one, which always exists.
    pub keyspaces: BTreeMap<KeyspaceId, KeyspaceRecord>,
    /// Traits of keyspaces that have any.
    pub traits: BTreeMap<KeyspaceId, Traits>,
    /// The names of branches, by number.
    pub branches: BTreeMap<KeyspaceId, String>,
    /// Where keyspaces of branches belong.
    pub homes: BTreeMap<KeyspaceId, Home>,
    /// The trees.
    pub version: Version,
    /// Where the log must begin; `None`: not known.
    pub log_start: Option<Seq>,
    /// Whether the description is complete; then anything that it does not name is obsolete.
    pub whole: bool,
    /// Why open refuses.
    pub refusals: Vec<Error>,
}

impl Plan {
    pub(super) fn find(&mut self, state: State, path: Option<&Path>, text: impl Into<String>) {
        let path = path.map(Path::to_owned);
        self.findings.push(Finding { state, path, text: text.into() });
    }

    /// Records why an open refuses, unless a finding says it already: something that was durable is
    /// missing.
    pub(super) fn find_refusals(&mut self, refusals: Vec<Error>) -> Result<()> {
        for error in refusals {
            let before = self.findings.len();
            self.find_error(State::Lost, error)?;
            let found = self.findings.split_off(before);
            let is_new = |new: &Finding| {
                !self.findings.iter().any(|old| old.path == new.path && old.text == new.text)
            };
            let found: Vec<_> = found.into_iter().filter(is_new).collect();
            self.findings.extend(found);
        }
        Ok(())
    }

    /// Records an error; an unknown version ends the work (C9).
    pub(super) fn find_error(&mut self, state: State, error: Error) -> Result<()> {
        match error {
            error @ Error::UnknownFormat { .. } => return Err(error),
            Error::Corruption(damage) => {
                let text = format!("{} at {}: {}", damage.section, damage.offset, damage.detail);
                self.find(state, Some(&damage.path), text);
            }
            error => self.find(state, None, error.to_string()),
        }
        Ok(())
    }
}

/// Reads as much of the description as possible.
pub(super) fn read(fs: &Arc<dyn Fs>, path: &Path, plan: &mut Plan) -> Result<Source> {
    let lock = path.join(LOCK_NAME);
    if let Some(found) = fs.kind(&lock).context("look at", &lock)?
        && found != PathKind::File
    {
        plan.find(State::Damaged, Some(&lock), format!("it is {found}: no open gets past it"));
    }
    let named = superblocks(fs.as_ref(), path, plan)?;
    let verdict = match consistency::check(fs.as_ref(), path) {
        Err(error @ Error::UnknownFormat { .. }) => return Err(error),
        // Other errors occur again, and are reported, when the parts are read one by one.
        other => other.unwrap_or_default(),
    };
    let mut source = Source { refusals: verdict.damage, ..Source::default() };
    let always = KeyspaceRecord {
        id: DEFAULT_KEYSPACE_ID,
        name: DEFAULT_KEYSPACE.to_owned(),
        comparator: None,
    };
    source.keyspaces.insert(always.id, always);
    let Some((number, scan)) = choose(fs.as_ref(), path, named, plan)? else {
        plan.find(
            State::Lost,
            None,
            "no manifest can be read: names of keyspaces, dropped segments and the order of \
             runs are not known",
        );
        return Ok(source);
    };
    source.apply(fs, path, number, &scan, plan);
    source.whole &= verdict.manifest == Some(number);
    Ok(source)
}

/// The number of the manifest that the superblocks name.
fn superblocks(fs: &dyn Fs, path: &Path, plan: &mut Plan) -> Result<Option<u64>> {
    let mut newest: Option<Superblock> = None;
    for name in SUPERBLOCK_NAMES {
        let file = path.join(name);
        match Superblock::read_file(fs, &file) {
            Ok(Some(found)) => {
                let text = format!("names {}", manifest_name(found.manifest));
                plan.find(State::Whole, Some(&file), text);
                if newest.is_none_or(|newest| newest.generation < found.generation) {
                    newest = Some(found);
                }
            }
            Ok(None) => plan.find(State::Damaged, Some(&file), "it is missing or empty"),
            Err(error) => plan.find_error(State::Damaged, error)?,
        }
    }
    Ok(newest.map(|superblock| superblock.manifest))
}

/// The manifest to use: the one that the superblocks name, or its successor, or else the newest one
/// with a whole state.
fn choose(
    fs: &dyn Fs,
    path: &Path,
    named: Option<u64>,
    plan: &mut Plan,
) -> Result<Option<(u64, Scan)>> {
    let mut chosen = None;
    let mut next = named;
    while let Some(number) = next {
        let Some(scan) = scan(fs, path, number, plan)? else { break };
        next = scan.successor().filter(|successor| *successor > number);
        chosen = Some((number, scan));
    }
    if chosen.is_some() {
        return Ok(chosen);
    }
    let entries = fs.list(path).context("list", path)?;
    let mut numbers: Vec<u64> =
        entries.iter().filter_map(|entry| parse_manifest_name(&entry.name)).collect();
    numbers.sort_unstable();
    while let Some(number) = numbers.pop() {
        // The manifest that the superblocks name was tried already.
        if Some(number) == named {
            continue;
        }
        if let Some(scan) = scan(fs, path, number, plan)? {
            let file = path.join(manifest_name(number));
            let text = "is taken because no superblock names a better one; it may be older";
            plan.find(State::Note, Some(&file), text);
            return Ok(Some((number, scan)));
        }
    }
    Ok(None)
}

/// Reads a manifest; `None` if it holds no whole state.
fn scan(fs: &dyn Fs, path: &Path, number: u64, plan: &mut Plan) -> Result<Option<Scan>> {
    let file = path.join(manifest_name(number));
    let scan = match manifest::scan(fs, &file, number) {
        Ok(scan) => scan,
        Err(error) => return plan.find_error(State::Lost, error).map(|()| None),
    };
    if let Err(error) = &scan.header {
        plan.find_error(State::Damaged, error.clone())?;
    }
    let last = scan.pieces.iter().rposition(|p| !matches!(p.content, Content::Damage));
    for (i, piece) in scan.pieces.iter().enumerate() {
        let at = format!("{} bytes at {}", piece.len, piece.offset);
        match &piece.content {
            Content::Damage if last.is_some_and(|last| i > last) => {
                let text = format!("{at} behind the last record: an edit that was not finished");
                plan.find(State::Note, Some(&file), text);
            }
            Content::Damage => {
                plan.find(State::Lost, Some(&file), format!("{at} are no record: edits are lost"));
            }
            Content::Senseless(what) => {
                plan.find(State::Lost, Some(&file), format!("record at {}: {what}", piece.offset));
            }
            _ => {}
        }
    }
    if !scan.has_state() {
        plan.find(State::Lost, Some(&file), "its first record, the whole state, is not there");
        return Ok(None);
    }
    Ok(Some(scan))
}

impl Source {
    fn apply(&mut self, fs: &Arc<dyn Fs>, path: &Path, number: u64, scan: &Scan, plan: &mut Plan) {
        let file = path.join(manifest_name(number));
        let data: PathBuf = path.join(DATA_DIRECTORY);
        // One object per file and segment, however often the manifest names it.
        let mut files: HashMap<FileId, Arc<RunFile>> = HashMap::new();
        let mut segments: HashMap<(FileId, u64), Arc<Segment>> = HashMap::new();
        let mut object = |meta: &SegmentMeta, values: Box<[Arc<Segment>]>| -> Arc<Segment> {
            let file = files.entry(meta.file);
            let new = || RunFile::new(fs, &data, meta.file, None, None);
            let file = file.or_insert_with(new).clone();
            let known = segments.entry(meta.place());
            known.or_insert_with(|| Segment::with_values(meta.clone(), file, values)).clone()
        };
        let mut segment = |meta: &SegmentMeta| Segment::of(meta, &mut object);
        let (mut edits, mut trees) = (0, Trees::default());
        self.whole = true;
        for (offset, edit) in scan.edits() {
            self.names(edit);
            // An edit applies completely or not at all; behind lost edits, some do not apply.
            match trees.apply(edit, &mut segment) {
                Ok(()) => {
                    self.log_start = edit.log_start.or(self.log_start);
                    edits += 1;
                }
                Err(what) => {
                    self.whole = false;
                    let text = format!("the edit at {offset} does not fit: {what}");
                    plan.find(State::Lost, Some(&file), text);
                }
            }
        }
        self.version = trees.version();
        self.whole &= scan.header.is_ok();
        let partitions: usize =
            self.version.trees().iter().map(|(_, t)| t.partitions().len()).sum();
        let all: usize = self.version.trees().iter().map(|(_, t)| t.all().count()).sum();
        let spans = match all - partitions {
            0 => String::new(),
            spans => format!(", {spans} spans above them"),
        };
        let text = format!(
            "{edits} edits: {} keyspaces, {partitions} partitions{spans}, log from {}",
            self.keyspaces.len(),
            self.log_start.map_or_else(|| "an unknown position".to_owned(), |at| at.to_string()),
        );
        let state = if self.whole { State::Whole } else { State::Damaged };
        plan.find(state, Some(&file), text);
    }

    fn names(&mut self, edit: &Edit) {
        for branch in &edit.branches {
            self.branches.insert(branch.id, branch.name.clone());
            for (copy, original) in &branch.copies {
                let home = self.homes.get(original).cloned().unwrap_or_default();
                self.homes.insert(*copy, home.of_copy(*original, branch.id, branch.point));
                if let Some(record) = self.keyspaces.get(original).cloned() {
                    self.keyspaces.insert(*copy, KeyspaceRecord { id: *copy, ..record });
                }
            }
        }
        self.homes.extend(edit.homes.iter().cloned());
        for record in &edit.created {
            self.keyspaces.insert(record.id, record.clone());
        }
        for (id, traits) in &edit.traits {
            self.traits.insert(*id, traits.clone());
        }
        for id in &edit.dropped {
            self.traits.remove(id);
            self.keyspaces.remove(id);
            self.homes.remove(id);
        }
        for id in &edit.branches_dropped {
            self.branches.remove(id);
        }
    }

    /// The name under which a keyspace is saved; for a keyspace of a branch it contains the name of
    /// the branch.
    pub fn saved_name(&self, name: &str, branch: KeyspaceId) -> String {
        match self.branches.get(&branch) {
            Some(branch) => format!("{name}@{branch}"),
            None => name.to_owned(),
        }
    }
}
