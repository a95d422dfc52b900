//! A small file system in memory for the tests of the log: live and durable contents per block,
//! failing syncs, a full device, process death and power cuts.

use crate::fs::{Advice, DirEntry, File, FileLock, Fs, Incarnation, LogMap, OpenMode, PathKind};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const BLOCK: usize = 4096;

/// A seeded generator (xorshift64*).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// The seed of a randomised test: `ESKER_SEED`, or this one.
pub(crate) fn seed(otherwise: u64) -> u64 {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(otherwise);
    println!("ESKER_SEED={seed}");
    seed
}

#[derive(Debug, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// What was released of its mappings: offsets and lengths.
    released: Vec<(u64, u64)>,
    inode: u64,
}

impl Content {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / BLOCK..end.div_ceil(BLOCK));
    }
}

/// Knobs and counters of one file system.
#[derive(Debug)]
pub(crate) struct Knobs {
    /// Bytes that can still be allocated.
    pub(crate) free: AtomicU64,
    /// Data syncs fail from now on.
    pub(crate) fail_sync: AtomicBool,
    /// Changes of lengths fail from now on.
    pub(crate) fail_set_len: AtomicBool,
    /// Writes fail from now on.
    pub(crate) fail_write: AtomicBool,
    /// Reads at this offset or later fail.
    pub(crate) fail_reads_from: AtomicU64,
    /// Mapping is not supported.
    pub(crate) no_map: AtomicBool,
    pub(crate) syncs: AtomicU64,
    /// Syncs on a file whose sync failed before: must stay 0.
    pub(crate) syncs_after_failure: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct MemFs {
    files: Mutex<BTreeMap<PathBuf, Arc<Mutex<Content>>>>,
    durable_names: Mutex<BTreeMap<PathBuf, Arc<Mutex<Content>>>>,
    boot: u64,
    next_inode: AtomicU64,
    pub(crate) knobs: Arc<Knobs>,
}

impl MemFs {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::with(1, BTreeMap::new()))
    }

    fn with(boot: u64, files: BTreeMap<PathBuf, Arc<Mutex<Content>>>) -> Self {
        let next_inode = files.values().map(|file| file.lock().inode).max().unwrap_or(0) + 1;
        let knobs = Knobs {
            free: AtomicU64::new(1 << 40),
            fail_sync: AtomicBool::new(false),
            fail_set_len: AtomicBool::new(false),
            fail_write: AtomicBool::new(false),
            fail_reads_from: AtomicU64::new(u64::MAX),
            no_map: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            syncs_after_failure: AtomicU64::new(0),
        };
        Self {
            files: Mutex::new(files.clone()),
            durable_names: Mutex::new(files),
            boot,
            next_inode: AtomicU64::new(next_inode),
            knobs: Arc::new(knobs),
        }
    }

    /// What a new process finds after this one was killed: everything that was written.
    pub(crate) fn killed(&self) -> Arc<Self> {
        let copy = |file: &Arc<Mutex<Content>>| {
            let file = file.lock();
            Arc::new(Mutex::new(Content {
                released: Vec::new(),
                live: file.live.clone(),
                durable: file.durable.clone(),
                dirty: file.dirty.clone(),
                inode: file.inode,
            }))
        };
        let files = self.files.lock().clone();
        let files = files.iter().map(|(path, file)| (path.clone(), copy(file)));
        let next = Self::with(self.boot, files.collect());
        // Names that were not durable still are not.
        let durable = self.durable_names.lock().keys().cloned().collect::<BTreeSet<_>>();
        next.durable_names.lock().retain(|path, _| durable.contains(path));
        Arc::new(next)
    }

    /// What the machine finds after a power cut: each unsynced block and name at random.
    pub(crate) fn power_cut(&self, rng: &mut Rng, survive_percent: u64) -> Arc<Self> {
        let live = self.files.lock().clone();
        let durable = self.durable_names.lock().clone();
        let mut survivors = BTreeMap::new();
        for path in live.keys().chain(durable.keys()).collect::<BTreeSet<_>>() {
            let survives = rng.below(100) < survive_percent;
            let file = match (live.get(path), durable.get(path)) {
                (Some(a), Some(b)) if Arc::ptr_eq(a, b) => Some(a),
                (now, before) => {
                    if survives {
                        now
                    } else {
                        before
                    }
                }
            };
            let Some(file) = file else { continue };
            let file = file.lock();
            let mut content = file.durable.clone();
            for block in &file.dirty {
                if rng.below(100) >= survive_percent {
                    continue;
                }
                let from = block * BLOCK;
                let until = (from + BLOCK).min(file.live.len());
                if content.len() < until {
                    content.resize(until, 0);
                }
                content[from..until].copy_from_slice(&file.live[from..until]);
            }
            let content = Content {
                released: Vec::new(),
                live: content.clone(),
                durable: content,
                dirty: BTreeSet::new(),
                inode: file.inode,
            };
            survivors.insert(path.clone(), Arc::new(Mutex::new(content)));
        }
        Arc::new(Self::with(self.boot + 1, survivors))
    }

    /// The same contents as another machine's copy.
    pub(crate) fn copied(&self) -> Arc<Self> {
        let files = self.killed().files.lock().clone();
        Arc::new(Self::with(self.boot + 100, files))
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.lock().keys().cloned().collect()
    }

    pub(crate) fn read(&self, path: &Path) -> Vec<u8> {
        self.files.lock()[path].lock().live.clone()
    }

    pub(crate) fn overwrite(&self, path: &Path, bytes: Vec<u8>) {
        let file = Arc::clone(&self.files.lock()[path]);
        let mut file = file.lock();
        file.durable = bytes.clone();
        file.live = bytes;
        file.dirty.clear();
    }

    /// Changes bytes in place, without copying the file.
    pub(crate) fn patch(&self, path: &Path, offset: usize, xor: u8) {
        let file = Arc::clone(&self.files.lock()[path]);
        file.lock().live[offset] ^= xor;
    }

    /// What was released of the mappings of a file.
    pub(crate) fn released(&self, path: &Path) -> Vec<(u64, u64)> {
        self.files.lock()[path].lock().released.clone()
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.files.lock().values().map(|file| file.lock().live.len() as u64).sum()
    }
}

#[derive(Debug)]
struct MemFile {
    content: Arc<Mutex<Content>>,
    boot: u64,
    knobs: Arc<Knobs>,
    failed: Arc<AtomicBool>,
}

impl Fs for MemFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        let content = match (files.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(content), _) => Arc::clone(content),
            (None, OpenMode::CreateNew) => {
                let inode = self.next_inode.fetch_add(1, Ordering::Relaxed);
                let content = Arc::new(Mutex::new(Content { inode, ..Content::default() }));
                files.insert(path.to_owned(), Arc::clone(&content));
                content
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        let knobs = Arc::clone(&self.knobs);
        Ok(Arc::new(MemFile { content, boot: self.boot, knobs, failed: Arc::default() }))
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let files = self.files.lock();
        let inside = files.iter().filter(|(name, _)| name.parent() == Some(path));
        let entries = inside.map(|(name, file)| DirEntry {
            name: name.file_name().unwrap().to_string_lossy().into_owned(),
            len: file.lock().live.len() as u64,
            kind: PathKind::File,
        });
        Ok(entries.collect())
    }

    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>> {
        Ok(self.files.lock().contains_key(path).then_some(PathKind::File))
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let removed = self.files.lock().remove(path).ok_or(io::ErrorKind::NotFound)?;
        self.knobs.free.fetch_add(removed.lock().live.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let files = self.files.lock();
        let mut durable = self.durable_names.lock();
        durable.retain(|name, _| name.parent() != Some(path));
        let inside = files.iter().filter(|(name, _)| name.parent() == Some(path));
        durable.extend(inside.map(|(name, file)| (name.clone(), Arc::clone(file))));
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn FileLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.knobs.free.load(Ordering::Relaxed))
    }
}

impl File for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if offset >= self.knobs.fail_reads_from.load(Ordering::Relaxed) {
            return Err(io::Error::other("injected read failure"));
        }
        let content = self.content.lock();
        let from = offset as usize;
        let bytes = content.live.get(from..from + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.knobs.fail_write.load(Ordering::Relaxed) {
            // Half of it gets there, as a real failing write would have it.
            self.content.lock().write(&bytes[..bytes.len() / 2], offset as usize);
            return Err(io::Error::other("injected write failure"));
        }
        self.content.lock().write(bytes, offset as usize);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().live.len() as u64)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.knobs.fail_set_len.load(Ordering::Relaxed) {
            return Err(io::Error::other("injected failure of a change of length"));
        }
        let mut content = self.content.lock();
        let gone = (content.live.len() as u64).saturating_sub(len);
        content.live.resize(len as usize, 0);
        self.knobs.free.fetch_add(gone, Ordering::Relaxed);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut content = self.content.lock();
        let more = len.saturating_sub(content.live.len() as u64);
        let take = |free: u64| free.checked_sub(more);
        let taken = self.knobs.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map_err(|_| io::ErrorKind::StorageFull)?;
        let from = content.live.len();
        content.live.resize(len as usize, 0);
        content.dirty.extend(from / BLOCK..(len as usize).div_ceil(BLOCK));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.knobs.syncs.fetch_add(1, Ordering::Relaxed);
        if self.failed.load(Ordering::Relaxed) {
            self.knobs.syncs_after_failure.fetch_add(1, Ordering::Relaxed);
        }
        let mut content = self.content.lock();
        if self.knobs.fail_sync.load(Ordering::Relaxed) {
            self.failed.store(true, Ordering::Relaxed);
            // The pages are marked clean and never written: what a real kernel does.
            content.dirty.clear();
            return Err(io::Error::other("injected sync failure"));
        }
        let content = &mut *content;
        let len = content.live.len();
        content.durable.resize(len, 0);
        for block in std::mem::take(&mut content.dirty) {
            let from = (block * BLOCK).min(len);
            let until = (from + BLOCK).min(len);
            content.durable[from..until].copy_from_slice(&content.live[from..until]);
        }
        Ok(())
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }

    fn incarnation(&self) -> Incarnation {
        let mut bytes = [1; 32];
        bytes[..8].copy_from_slice(&self.boot.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.content.lock().inode.to_le_bytes());
        Incarnation(bytes)
    }

    fn map(&self, len: u64) -> io::Result<Box<dyn LogMap>> {
        if self.knobs.no_map.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        assert!(self.content.lock().live.len() as u64 >= len, "mapped beyond the file");
        Ok(Box::new(MemMap { content: Arc::clone(&self.content), len }))
    }

    fn advise(&self, _: Advice) {}
}

#[derive(Debug)]
struct MemMap {
    content: Arc<Mutex<Content>>,
    len: u64,
}

impl LogMap for MemMap {
    fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        if offset + bytes.len() as u64 > self.len {
            return false;
        }
        self.content.lock().write(bytes, offset as usize);
        true
    }

    fn populate(&self, offset: u64, len: u64) {
        assert!(offset + len <= self.len, "populated beyond the mapping");
    }

    fn release(&self, offset: u64, len: u64) {
        self.content.lock().released.push((offset, len));
    }

    fn len(&self) -> u64 {
        self.len
    }
}
