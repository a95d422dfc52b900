//! Everything a simulated disk holds, live and durable.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Component, Path};

use super::fate::{Fate, Random, Tear};
use super::image::{BLOCK, Image};
use crate::rng::Rng;

/// The root directory's inode.
const ROOT: u64 = 1;

/// How many lines of the log are kept.
const LOG_MAX: usize = 20_000;

/// A file: what processes see, what is on the platter, and which blocks are on their way there.
#[derive(Debug, Clone, Default)]
pub(super) struct FileNode {
    pub(super) live: Image,
    pub(super) durable: Image,
    /// Blocks that the next sync has to write. A block that differs and is not here was marked
    /// clean by a failed sync: no later sync writes it.
    pub(super) dirty: BTreeSet<usize>,
    /// Open handles.
    pub(super) open: u64,
    /// Names in live directories.
    pub(super) names: u64,
    /// Whether the file has neither a name nor a handle: only a crash brings it back, as it was
    /// on the platter.
    durable_only: bool,
}

/// A directory's entries, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct DirNode {
    pub(super) live: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

impl Node {
    /// An empty directory.
    pub(super) fn directory() -> Self {
        Self::Dir(DirNode::default())
    }
}

/// One change of directory entries that is atomic: a creation, a removal, or both halves of a
/// rename.
#[derive(Debug, Clone)]
struct EntryChange {
    what: String,
    /// Directory, name and the inode it has from then on.
    entries: Vec<(u64, String, Option<u64>)>,
}

/// Switches that clones inherit.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) capacity: Option<u64>,
    pub(super) ignore_sync_dir: bool,
    pub(super) ignore_sync_data: bool,
    pub(super) mapped_chunk: u64,
    pub(super) tear: Tear,
    /// Where the background's chances come from, and how seldom it writes.
    pub(super) write_back: Option<(Rng, u64)>,
    /// How many handles of files may be open at once.
    pub(super) handles_max: Option<u64>,
    /// Whether blocks are copied when they are written to, as on btrfs.
    pub(super) copies_on_write: bool,
    /// What is said when there is no space.
    pub(super) shortage: io::ErrorKind,
    /// Bytes that a file may have.
    pub(super) file_bytes_max: u64,
    /// The first name of the paths that lie on a device of their own.
    pub(super) other_device: Option<String>,
}

/// 1. An entry change stays in `pending` until it is durable, and changes of one name become
///    durable in their order, so a file with a durable name keeps that or the one it got later.
/// 2. `used` is the sum of the live blocks of all files that have a name or an open handle.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<u64, Node>,
    next_inode: u64,
    pub(super) boot: u64,
    pending: Vec<EntryChange>,
    pub(super) locks: BTreeSet<u64>,
    used: u64,
    pub(super) settings: Settings,
    pub(super) operations: u64,
    pub(super) log: VecDeque<String>,
}

/// Where a path leads: its directory, its last name, and what stands there.
pub(super) struct Place {
    pub(super) dir: u64,
    pub(super) name: String,
    pub(super) inode: Option<u64>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]),
            next_inode: ROOT + 1,
            boot: 1,
            pending: Vec::new(),
            locks: BTreeSet::new(),
            used: 0,
            settings: Settings {
                capacity: None,
                ignore_sync_dir: false,
                ignore_sync_data: false,
                mapped_chunk: BLOCK,
                tear: Tear::Never,
                write_back: None,
                handles_max: None,
                copies_on_write: false,
                shortage: io::ErrorKind::StorageFull,
                file_bytes_max: u64::MAX,
                other_device: None,
            },
            operations: 0,
            log: VecDeque::new(),
        }
    }

    /// Makes part of what is unsynced durable, if it is time for that.
    pub(super) fn write_back(&mut self) {
        let Some((rng, every)) = &mut self.settings.write_back else { return };
        if rng.below(*every) == 0 {
            let percent = 1 + rng.below(100) as u32;
            let seed = rng.next();
            self.persist(&mut Random { rng: Rng::new(seed), percent, tear: Tear::Never });
        }
    }

    /// Counts a mutating operation and notes it.
    pub(super) fn begin(&mut self, what: &str) -> u64 {
        let number = self.operations;
        self.operations += 1;
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back(format!("{number} {what}"));
        number
    }

    pub(super) fn file(&mut self, inode: u64) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn dir(&mut self, inode: u64) -> io::Result<&mut DirNode> {
        match self.nodes.get_mut(&inode) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
                Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
                Component::ParentDir => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        "the simulation has no parent links",
                    ));
                }
            }
        }
        Ok(names)
    }

    /// Whether a path lies on the other device.
    pub(super) fn is_elsewhere(&self, path: &Path) -> io::Result<bool> {
        let first = Self::names(path)?.into_iter().next();
        Ok(first.is_some() && first == self.settings.other_device)
    }

    /// The inode at a path, if there is one. Relative paths start at the root.
    pub(super) fn lookup(&mut self, path: &Path) -> io::Result<Option<u64>> {
        let mut at = ROOT;
        for name in Self::names(path)? {
            match self.dir(at)?.live.get(&name) {
                Some(&next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Resolves a path whose directory must exist.
    pub(super) fn place(&mut self, path: &Path) -> io::Result<Place> {
        let mut names = Self::names(path)?;
        let Some(name) = names.pop() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is the root directory"));
        };
        let mut dir = ROOT;
        for parent in names {
            dir = *self.dir(dir)?.live.get(&parent).ok_or(io::ErrorKind::NotFound)?;
        }
        let inode = self.dir(dir)?.live.get(&name).copied();
        Ok(Place { dir, name, inode })
    }

    /// Adds a node under a name that is free.
    pub(super) fn create(&mut self, place: Place, node: Node, what: String) -> io::Result<u64> {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.nodes.insert(inode, node);
        self.change(EntryChange { what, entries: vec![(place.dir, place.name, Some(inode))] })?;
        Ok(inode)
    }

    pub(super) fn remove(&mut self, place: Place, what: String) -> io::Result<()> {
        self.change(EntryChange { what, entries: vec![(place.dir, place.name, None)] })
    }

    /// Gives a file another name, which is free.
    pub(super) fn link(&mut self, inode: u64, to: Place, what: String) -> io::Result<()> {
        self.change(EntryChange { what, entries: vec![(to.dir, to.name, Some(inode))] })
    }

    pub(super) fn rename(&mut self, from: Place, to: Place, what: String) -> io::Result<()> {
        let entries = vec![(from.dir, from.name, None), (to.dir, to.name, from.inode)];
        self.change(EntryChange { what, entries })
    }

    fn change(&mut self, change: EntryChange) -> io::Result<()> {
        // What goes is uncounted before what comes is counted, so that a rename nets to nothing.
        let mut unnamed = Vec::new();
        for (dir, name, inode) in &change.entries {
            let dir = self.dir(*dir)?;
            let old = match inode {
                Some(inode) => dir.live.insert(name.clone(), *inode),
                None => dir.live.remove(name),
            };
            if let Some(old) = old
                && let Ok(file) = self.file(old)
            {
                file.names -= 1;
                unnamed.push(old);
            }
            if let Some(inode) = inode
                && let Ok(file) = self.file(*inode)
            {
                file.names += 1;
            }
        }
        self.pending.push(change);
        unnamed.into_iter().for_each(|inode| self.uncount(inode));
        Ok(())
    }

    /// Stops counting the space of a file that no process can reach any more.
    fn uncount(&mut self, inode: u64) {
        if let Some(Node::File(file)) = self.nodes.get_mut(&inode)
            && file.names == 0
            && file.open == 0
        {
            self.used -= file.live.held();
            file.live = Image::default();
            file.dirty.clear();
            file.durable_only = true;
        }
    }

    /// How many handles of files are open.
    pub(super) fn handles(&self) -> u64 {
        let files = self.nodes.values().filter_map(|node| match node {
            Node::File(file) => Some(file.open),
            Node::Dir(_) => None,
        });
        files.sum()
    }

    pub(super) fn close(&mut self, inode: u64) {
        if let Ok(file) = self.file(inode) {
            file.open -= 1;
        }
        self.uncount(inode);
    }

    /// Changes a file's live image with what room there is, and keeps the count of used blocks.
    pub(super) fn change_file<R>(
        &mut self,
        inode: u64,
        change: impl FnOnce(&mut Image, u64, &mut BTreeSet<usize>) -> R,
    ) -> io::Result<R> {
        let room = self.settings.capacity.map_or(u64::MAX, |all| all / BLOCK);
        let room = room.saturating_sub(self.used);
        let file = self.file(inode)?;
        let before = file.live.held();
        let answer = change(&mut file.live, room, &mut file.dirty);
        let after = file.live.held();
        self.used = self.used + after - before;
        Ok(answer)
    }

    /// Bytes that are taken up.
    pub(super) fn used(&self) -> u64 {
        self.used * BLOCK
    }

    /// Lets nothing more be stored than there is now.
    pub(super) fn fill_up(&mut self) {
        self.settings.capacity = Some(self.used * BLOCK);
    }

    /// An error if a file may not be so long.
    pub(super) fn limit(&self, len: u64) -> io::Result<()> {
        if len > self.settings.file_bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(())
    }

    /// The error of a change, as this disk puts it.
    pub(super) fn put(&self, error: io::Error) -> io::Error {
        match error.kind() {
            io::ErrorKind::StorageFull => self.settings.shortage.into(),
            _ => error,
        }
    }

    /// Bytes that the capacity leaves.
    pub(super) fn free(&self) -> u64 {
        let all = self.settings.capacity.unwrap_or(1 << 44);
        all.saturating_sub(self.used * BLOCK)
    }

    pub(super) fn sync_data(&mut self, inode: u64) -> io::Result<()> {
        if self.settings.ignore_sync_data {
            return Ok(());
        }
        let FileNode { live, durable, dirty, .. } = self.file(inode)?;
        durable.set_len(live.len(), &mut BTreeSet::new());
        for index in std::mem::take(dirty) {
            durable.adopt(index, live);
        }
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, inode: u64) -> io::Result<()> {
        self.dir(inode)?;
        if self.settings.ignore_sync_dir {
            return Ok(());
        }
        // Backwards, because a change needs the earlier ones of the same names (invariant 1).
        let mut names = BTreeSet::new();
        let mut wanted = vec![false; self.pending.len()];
        for (number, change) in self.pending.iter().enumerate().rev() {
            wanted[number] = change
                .entries
                .iter()
                .any(|(dir, name, _)| *dir == inode || names.contains(&(*dir, name.as_str())));
            if wanted[number] {
                names.extend(change.entries.iter().map(|(dir, name, _)| (*dir, name.as_str())));
            }
        }
        let mut wanted = wanted.into_iter();
        self.persist_entries(&mut |_, _| wanted.next() == Some(true));
        self.collect();
        Ok(())
    }

    /// Makes those pending changes durable that `survives` (asked in order) picks and that do not
    /// rest on one that is not durable.
    fn persist_entries(&mut self, survives: &mut dyn FnMut(usize, &str) -> bool) {
        let mut blocked = BTreeSet::new();
        let mut rest = Vec::new();
        for (number, change) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            let survives = survives(number, &change.what);
            let held_up =
                change.entries.iter().any(|(dir, name, _)| blocked.contains(&(*dir, name.clone())));
            if !survives || held_up {
                blocked.extend(change.entries.iter().map(|(dir, name, _)| (*dir, name.clone())));
                rest.push(change);
                continue;
            }
            for (dir, name, inode) in change.entries {
                // A directory that is gone takes its entries with it.
                let Ok(dir) = self.dir(dir) else { continue };
                match inode {
                    Some(inode) => dir.durable.insert(name, inode),
                    None => dir.durable.remove(&name),
                };
            }
        }
        self.pending = rest;
    }

    /// Lets part of what is unsynced reach the platter, as the fate decides.
    pub(super) fn persist(&mut self, fate: &mut dyn Fate) {
        self.persist_entries(&mut |number, what| fate.entry(number, what));
        for (&inode, node) in &mut self.nodes {
            let Node::File(file) = node else { continue };
            let FileNode { live, durable, dirty, .. } = file;
            if file.durable_only {
                continue;
            }
            let (old, new) = (durable.len(), live.len());
            if old != new {
                let len = fate.length(inode, old, new).clamp(old.min(new), old.max(new));
                durable.set_len(len, &mut BTreeSet::new());
            }
            dirty.retain(|&index| {
                // A block that truncation cut off goes or stays with the length.
                let cut_off = index >= live.blocks();
                if index >= durable.blocks() || cut_off {
                    return true;
                }
                if fate.block(inode, index) {
                    return !durable.adopt(index, live);
                }
                durable.adopt_pieces(index, live, &fate.pieces(inode, index));
                true
            });
        }
    }

    /// Forgets everything that is not durable: the power is gone.
    pub(super) fn lose_unsynced(&mut self) {
        self.pending.clear();
        self.locks.clear();
        for node in self.nodes.values_mut() {
            match node {
                Node::Dir(dir) => dir.live = dir.durable.clone(),
                Node::File(file) => {
                    file.live = file.durable.clone();
                    file.dirty.clear();
                    file.durable_only = false;
                }
            }
        }
        self.close_all();
    }

    /// Ends all processes: no handle, no lock.
    pub(super) fn close_all(&mut self) {
        self.locks.clear();
        let mut named: BTreeMap<u64, u64> = BTreeMap::new();
        for node in self.nodes.values() {
            if let Node::Dir(dir) = node {
                dir.live.values().for_each(|&inode| *named.entry(inode).or_default() += 1);
            }
        }
        let mut files = Vec::new();
        for (&inode, node) in &mut self.nodes {
            if let Node::File(file) = node {
                file.open = 0;
                file.names = named.get(&inode).copied().unwrap_or(0);
                files.push(inode);
            }
        }
        self.used = 0;
        for inode in files {
            if let Ok(file) = self.file(inode) {
                let held = file.live.held();
                self.used += held;
                self.uncount(inode);
            }
        }
        self.collect();
    }

    /// Frees nodes that neither a process nor a crash can bring back.
    fn collect(&mut self) {
        let mut reachable = BTreeSet::from([ROOT]);
        for node in self.nodes.values() {
            if let Node::Dir(dir) = node {
                reachable.extend(dir.live.values().chain(dir.durable.values()));
            }
        }
        for change in &self.pending {
            reachable.extend(change.entries.iter().filter_map(|(_, _, inode)| *inode));
        }
        self.nodes.retain(|inode, node| {
            reachable.contains(inode) || matches!(node, Node::File(file) if file.open > 0)
        });
    }

    /// What happens to the cache when a sync failed: the dirty blocks count as clean, and are
    /// kept in the cache or go back to what is durable.
    pub(super) fn mark_clean(&mut self, inode: u64, revert: bool) -> io::Result<()> {
        let file = self.file(inode)?;
        let dirty = std::mem::take(&mut file.dirty);
        let before = file.live.held();
        if revert {
            let FileNode { live, durable, .. } = file;
            for index in dirty {
                live.adopt(index, durable);
            }
        }
        let after = file.live.held();
        self.used = self.used + after - before;
        Ok(())
    }

    /// What is pending among the directory entries, in order.
    pub(super) fn pending(&self) -> Vec<String> {
        self.pending.iter().map(|change| change.what.clone()).collect()
    }
}
