//! A file system in memory whose bytes the tests can damage.

use crate::fs::{Advice, DirEntry, File, FileLock, Fs, Incarnation, LogMap, OpenMode, PathKind};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct MemFs {
    files: Mutex<BTreeMap<PathBuf, Arc<MemFile>>>,
}

#[derive(Debug, Default)]
pub struct MemFile {
    pub bytes: Mutex<Vec<u8>>,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub syncs: AtomicU64,
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl MemFs {
    pub fn file(&self, path: &Path) -> Arc<MemFile> {
        Arc::clone(&self.files.lock()[path])
    }
}

impl Fs for MemFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        match (files.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(Arc::clone(file) as Arc<dyn File>),
            (None, OpenMode::CreateNew) => {
                let file = Arc::<MemFile>::default();
                files.insert(path.into(), Arc::clone(&file));
                Ok(file)
            }
            (None, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, _: &Path) -> io::Result<Vec<DirEntry>> {
        unsupported()
    }
    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>> {
        Ok(self.files.lock().contains_key(path).then_some(PathKind::File))
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        unsupported()
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.files.lock().remove(path).map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn FileLock>> {
        unsupported()
    }
    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

impl File for MemFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.lock();
        let range = offset as usize..(offset as usize).saturating_add(buffer.len());
        let found = bytes.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
    fn write_at(&self, new: &[u8], offset: u64) -> io::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let mut bytes = self.bytes.lock();
        let end = offset as usize + new.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(new);
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }
    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().resize(len as usize, 0);
        Ok(())
    }
    fn allocate(&self, _: u64) -> io::Result<()> {
        unsupported()
    }
    fn sync_data(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        unsupported()
    }
    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }
    fn incarnation(&self) -> Incarnation {
        Incarnation::default()
    }
    fn map(&self, _: u64) -> io::Result<Box<dyn LogMap>> {
        unsupported()
    }
    fn advise(&self, _: Advice) {}
}
