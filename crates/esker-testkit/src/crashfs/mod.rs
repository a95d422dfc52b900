//! A disk in memory that forgets what was not synced.
//!
//! Each file has a live state, which reads see, and a durable state, which is on the platter;
//! they differ per 4 KiB block, by length, and per directory entry. [`CrashFs::crash_clone`] makes
//! the file system that a power cut at this moment leaves behind, by letting each difference
//! survive or not at random; [`CrashFs::kill_clone`] makes what `kill -9` leaves, which is the
//! live state. Clones share their blocks, so thousands of them are cheap, and the original goes
//! on undisturbed. The idea is that of Pebble's `MemFS.CrashClone` and, before it, of LevelDB's
//! `FaultInjectionTestEnv`.
//!
//! Between 4 KiB blocks any subset survives. What survives of a block that was being written is
//! set by [`Tear`]: sectors in any combination, as disks write them, or everything before one byte
//! and nothing after it (or the other way round), as a transfer that was cut short. A kernel also
//! writes back by itself: [`CrashFs::set_write_back`] makes unsynced changes durable now and then,
//! in any order.
//!
//! The model is harsher than a journaling file system in that it may persist a later change of a
//! directory and lose an earlier one, and in that syncing a file says nothing about its name. It
//! is as kind as one in that a rename is atomic, and that changes of one name keep their order.
//!
//! 1. A clone is a consistent snapshot: it is taken under the one lock that every change takes.
//! 2. The same operations in the same order, and the same seed, give the same clone.
//! 3. The hook runs before its operation changes anything and while no lock is held.

mod disk;
mod fate;
mod file;
mod image;
mod state;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use esker::fs::{DirEntry, File, FileLock, Fs, Incarnation, OpenMode, PathKind};
use parking_lot::Mutex;

use crate::rng::Rng;
use disk::{Disk, inode_of};
use fate::Random;
use state::{FileNode, Node, State};

pub use disk::Hook;
pub use fate::{Fate, Tear};

/// Too many open files, by the number that all Unix systems give it.
const EMFILE: i32 = 24;

/// A simulated disk. Clones of this value are handles of the same disk.
#[derive(Clone)]
pub struct CrashFs(Arc<Disk>);

impl fmt::Debug for CrashFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashFs").field("operations", &self.ops()).finish_non_exhaustive()
    }
}

impl Default for CrashFs {
    fn default() -> Self {
        Self::new()
    }
}

impl CrashFs {
    /// An empty disk with a root directory.
    pub fn new() -> Self {
        Self::with_state(State::new())
    }

    fn with_state(state: State) -> Self {
        Self(Arc::new(Disk { state: Mutex::new(state), hook: Mutex::new(None) }))
    }

    /// This disk as the engine's file system.
    pub fn as_fs(&self) -> Arc<dyn Fs> {
        Arc::new(self.clone())
    }

    /// What a power cut at this moment leaves: each unsynced block, length and directory entry
    /// survives in `survive_percent` of 100 cases. It is another boot: incarnations differ. The
    /// hook stays behind, the settings come along.
    pub fn crash_clone(&self, seed: u64, survive_percent: u32) -> Self {
        let tear = self.0.state.lock().settings.tear;
        self.crash_clone_with(&mut Random { rng: Rng::new(seed), percent: survive_percent, tear })
    }

    /// Like [`crash_clone`](Self::crash_clone), with a fate of the caller's choice.
    pub fn crash_clone_with(&self, fate: &mut dyn Fate) -> Self {
        let mut state = self.snapshot();
        state.persist(fate);
        state.lose_unsynced();
        state.boot += 1;
        Self::with_state(state)
    }

    /// What `kill -9` leaves: the live state with all that is still unsynced, in the same boot.
    /// Locks are free and files without a name are gone.
    pub fn kill_clone(&self) -> Self {
        let mut state = self.snapshot();
        state.close_all();
        Self::with_state(state)
    }

    /// The counters and the log of a clone start anew.
    fn snapshot(&self) -> State {
        let mut state = self.0.state.lock().clone();
        state.operations = 0;
        state.log.clear();
        state
    }

    /// Lets the background write part of what is unsynced to the platter, as kernels do at times
    /// of their own choice: a block written again later then has three possible contents.
    pub fn write_back(&self, seed: u64, percent: u32) {
        let fate = &mut Random { rng: Rng::new(seed), percent, tear: Tear::Never };
        self.0.state.lock().persist(fate);
    }

    /// Lets the background write back by itself, before about one in `every` mutating operations
    /// (`None`: never), each time with another share of what is unsynced. Clones inherit it.
    pub fn set_write_back(&self, seed: u64, every: Option<u64>) {
        let rng = Rng::new(seed);
        self.0.state.lock().settings.write_back = every.map(|every| (rng, every.max(1)));
    }

    /// Sets what may survive of a block that a power cut meets on its way to the platter. Clones
    /// inherit it.
    pub fn set_tear(&self, tear: Tear) {
        self.0.state.lock().settings.tear = tear;
    }

    /// How many mutating operations have begun: creations, writes (a mapped write counts once per
    /// chunk), changes of length or allocation, renames, removals and syncs.
    pub fn ops(&self) -> u64 {
        self.0.state.lock().operations
    }

    /// Sets or removes the hook.
    pub fn set_hook(&self, hook: Option<Hook>) {
        *self.0.hook.lock() = hook;
    }

    /// The latest operations, one a line, with their numbers; those that wait for the platter
    /// stand out as barriers.
    pub fn log(&self) -> Vec<String> {
        self.0.state.lock().log.iter().cloned().collect()
    }

    /// The changes of directories that a crash may lose, in order.
    pub fn unsynced_entries(&self) -> Vec<String> {
        self.0.state.lock().pending()
    }

    /// Flips a bit of a file, as damage to the medium does.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let file = self.open(path, OpenMode::ReadWrite)?;
        let mut byte = [0];
        file.read_at(&mut byte, bit / 8)?;
        byte[0] ^= 1 << (bit % 8);
        file.write_at(&byte, bit / 8)?;
        Ok(())
    }

    /// Bytes that files take up.
    pub fn used(&self) -> u64 {
        self.0.state.lock().used()
    }

    /// Limits the space, in bytes, counted in whole blocks; `None` lifts the limit. What is there
    /// already stays.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.0.state.lock().settings.capacity = bytes;
    }

    /// Limits how many handles of files may be open at once, as a process's limit does.
    pub fn set_handles_max(&self, handles: Option<u64>) {
        self.0.state.lock().settings.handles_max = handles;
    }

    /// How many handles of files are open.
    pub fn handles(&self) -> u64 {
        self.0.state.lock().handles()
    }

    /// Lets nothing more be stored than there is now, as if another program took the rest.
    pub fn fill_up(&self) {
        self.0.state.lock().fill_up();
    }

    /// Sets the error for missing space; `StorageFull` by default.
    pub fn set_shortage(&self, kind: io::ErrorKind) {
        self.0.state.lock().settings.shortage = kind;
    }

    /// Limits the length of each file, in bytes; what is longer already stays.
    pub fn set_file_bytes_max(&self, bytes: u64) {
        self.0.state.lock().settings.file_bytes_max = bytes;
    }

    /// Copies blocks when they are written to, as btrfs does: writing over what was written before
    /// needs a free block, and nothing can be mapped.
    pub fn set_copies_on_write(&self, copies: bool) {
        self.0.state.lock().settings.copies_on_write = copies;
    }

    /// Whether blocks are copied when they are written to.
    pub fn copies_on_write(&self) -> bool {
        self.0.state.lock().settings.copies_on_write
    }

    /// Makes `sync_dir` do nothing, to prove that a test notices.
    pub fn ignore_sync_dir(&self, ignore: bool) {
        self.0.state.lock().settings.ignore_sync_dir = ignore;
    }

    /// Makes `sync_data` do nothing, to prove that a test notices.
    pub fn ignore_sync_data(&self, ignore: bool) {
        self.0.state.lock().settings.ignore_sync_data = ignore;
    }

    /// Makes everything under `/name` lie on another device, to which no hard link leads.
    pub fn set_other_device(&self, name: Option<&str>) {
        self.0.state.lock().settings.other_device = name.map(str::to_owned);
    }

    /// Cuts mapped writes at multiples of `bytes` (4096 by default), each piece an operation of
    /// its own, so that a kill between them leaves a torn record.
    pub fn set_mapped_chunk(&self, bytes: u64) {
        self.0.state.lock().settings.mapped_chunk = bytes.max(1);
    }

    /// Does to a file what a failing sync does to the page cache: unsynced blocks count as clean,
    /// so that no later sync writes them, and either stay readable (ext4, XFS) or revert to what
    /// is durable (btrfs). See Rebello and others, "Can applications recover from fsync
    /// failures?", ATC 2020.
    pub fn fail_sync(&self, file: &Incarnation, revert: bool) -> io::Result<()> {
        self.0.state.lock().mark_clean(inode_of(file), revert)
    }
}

impl Fs for CrashFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let what = format!("create {}", path.display());
        if mode == OpenMode::CreateNew {
            self.0.begin(&what);
        }
        let mut state = self.0.state.lock();
        let place = state.place(path)?;
        if state.settings.handles_max.is_some_and(|max| state.handles() >= max) {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        let inode = match (mode, place.inode) {
            (OpenMode::CreateNew, Some(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (OpenMode::CreateNew, None) => {
                state.create(place, Node::File(FileNode::default()), what)?
            }
            (_, inode) => inode.ok_or(io::ErrorKind::NotFound)?,
        };
        state.file(inode)?.open += 1;
        drop(state);
        let handle = file::Handle { disk: Arc::clone(&self.0), inode, path: path.to_owned() };
        Ok(Arc::new(file::CrashFile::new(handle, mode != OpenMode::Read)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let what = format!("create_dir {}", path.display());
        match self.kind(path)? {
            Some(PathKind::Directory) => return Ok(()),
            Some(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            None => self.0.begin(&what),
        }
        let mut state = self.0.state.lock();
        let place = state.place(path)?;
        if place.inode.is_none() {
            state.create(place, Node::directory(), what)?;
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut state = self.0.state.lock();
        let dir = state.lookup(path)?.ok_or(io::ErrorKind::NotFound)?;
        let names: Vec<_> = state.dir(dir)?.live.clone().into_iter().collect();
        let entry = |(name, inode)| match state.nodes.get(&inode) {
            Some(Node::File(file)) => DirEntry { name, len: file.live.len(), kind: PathKind::File },
            _ => DirEntry { name, len: 0, kind: PathKind::Directory },
        };
        Ok(names.into_iter().map(entry).collect())
    }

    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>> {
        let mut state = self.0.state.lock();
        let Some(inode) = state.lookup(path)? else { return Ok(None) };
        Ok(Some(match state.nodes.get(&inode) {
            Some(Node::Dir(_)) => PathKind::Directory,
            _ => PathKind::File,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let what = format!("rename {} to {}", from.display(), to.display());
        self.0.begin(&what);
        let mut state = self.0.state.lock();
        let below = to.starts_with(from);
        let (from, to) = (state.place(from)?, state.place(to)?);
        let inode = from.inode.ok_or(io::ErrorKind::NotFound)?;
        if state.dir(inode).is_ok() {
            if to.inode.is_some() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if below {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        } else if let Some(target) = to.inode {
            state.file(target)?;
        }
        if to.inode == Some(inode) {
            return Ok(());
        }
        state.rename(from, to, what)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let what = format!("remove {}", path.display());
        self.0.begin(&what);
        let mut state = self.0.state.lock();
        let place = state.place(path)?;
        let inode = place.inode.ok_or(io::ErrorKind::NotFound)?;
        state.file(inode)?;
        state.remove(place, what)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let what = format!("link {} to {}", from.display(), to.display());
        self.0.begin(&what);
        let mut state = self.0.state.lock();
        if state.is_elsewhere(from)? != state.is_elsewhere(to)? {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        let (from, to) = (state.place(from)?, state.place(to)?);
        let inode = from.inode.ok_or(io::ErrorKind::NotFound)?;
        state.file(inode)?;
        if to.inode.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.link(inode, to, what)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let what = format!("remove_dir {}", path.display());
        self.0.begin(&what);
        let mut state = self.0.state.lock();
        let place = state.place(path)?;
        let inode = place.inode.ok_or(io::ErrorKind::NotFound)?;
        if !state.dir(inode)?.live.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.remove(place, what)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.begin(&format!("======== sync_dir {}", path.display()));
        let mut state = self.0.state.lock();
        let dir = state.lookup(path)?.ok_or(io::ErrorKind::NotFound)?;
        state.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let what = format!("create {}", path.display());
        if self.kind(path)?.is_none() {
            self.0.begin(&what);
        }
        let mut state = self.0.state.lock();
        let place = state.place(path)?;
        let inode = match place.inode {
            Some(inode) => inode,
            None => state.create(place, Node::File(FileNode::default()), what)?,
        };
        state.file(inode)?;
        if !state.locks.insert(inode) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.file(inode)?.open += 1;
        drop(state);
        let handle = file::Handle { disk: Arc::clone(&self.0), inode, path: path.to_owned() };
        Ok(Box::new(file::CrashLock(handle)))
    }

    /// A quarter of the limit, as on the operating system.
    fn open_files_max(&self) -> usize {
        let max = self.0.state.lock().settings.handles_max;
        max.map_or(usize::MAX, |max| max as usize / 4)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.0.state.lock();
        state.lookup(path)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(state.free())
    }
}
