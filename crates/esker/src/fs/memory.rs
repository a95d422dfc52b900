//! A file system in memory, for databases that need not outlive the process.
//!
//! Names lie in one map behind one lock; each file has a lock of its own. The bytes of a file lie in pages that are
//! made when something is written to them, so that space which is only allocated takes no memory.
//!
//! 1. A file lives as long as it has a name or is open, like a file of the operating system.
//! 2. Mutexes are taken in this order: that of the names, then that of the locked files or of one file's bytes.
//! 3. Every sync succeeds, since there is nothing below that could lose anything. Nothing is mapped; the log is
//!    written with plain writes.

use super::file::{Advice, File, Incarnation, LogMap};
use super::file_system::{DirEntry, FileLock, Fs, OpenMode};
use super::kind::{PathKind, expect_kind};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]
mod tests;

const PAGE: usize = 64 << 10;

/// A new, empty file system in memory. A database on it is gone with the last handle of the file system; every
/// durability class is as good as the process. The files count towards no memory budget.
///
/// # Example
/// ```
/// use esker::{Db, Options};
/// let options = Options::new().fs(esker::fs::memory());
/// let db = Db::open_with("/catalogue", options.clone())?;
/// db.insert("key", "value")?;
/// db.close()?;
/// // The same file system still has it.
/// let db = Db::open_with("/catalogue", options)?;
/// assert_eq!(db.get("key")?.as_deref(), Some(&b"value"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
pub fn memory() -> Arc<dyn Fs> {
    Arc::new(MemoryFs::default())
}

/// What names mean.
#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<PathBuf, Arc<Content>>,
    directories: BTreeSet<PathBuf>,
    locked: Arc<Mutex<BTreeSet<PathBuf>>>,
}

#[derive(Debug, Default)]
struct MemoryFs {
    names: Mutex<Names>,
}

/// The bytes of a file.
#[derive(Debug, Default)]
struct Content {
    pages: RwLock<Pages>,
    /// How many names it has.
    links: AtomicU64,
}

#[derive(Debug, Default)]
struct Pages {
    len: u64,
    /// Pages of [`PAGE`] bytes by number; those that are missing hold zeros.
    pages: BTreeMap<u64, Box<[u8]>>,
}

/// The parts of `len` bytes from `offset` that lie in one page each: the page, where it begins there, and how long it is.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE as u64) as usize;
        let part = (len - done).min(PAGE - within);
        done += part;
        (part > 0).then_some((at / PAGE as u64, within, part))
    })
}

impl Pages {
    fn read(&self, mut buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (page, from, len) in parts(offset, buffer.len()) {
            let (part, rest) = buffer.split_at_mut(len);
            match self.pages.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[from..from + len]),
                None => part.fill(0),
            }
            buffer = rest;
        }
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        for (page, from, len) in parts(offset, bytes.len()) {
            let (part, rest) = bytes.split_at(len);
            let page = self.pages.entry(page).or_insert_with(|| vec![0; PAGE].into());
            page[from..from + len].copy_from_slice(part);
            bytes = rest;
        }
        self.len = self.len.max(end);
        Ok(())
    }

    /// Makes zeros of `len` bytes from `offset`, and frees the pages that lie in them as a whole.
    fn clear(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let (first, last) = (offset / PAGE as u64, end / PAGE as u64);
        let touched: Vec<u64> = self.pages.range(first..=last).map(|(number, _)| *number).collect();
        for number in touched {
            let start = number * PAGE as u64;
            let from = offset.saturating_sub(start).min(PAGE as u64) as usize;
            let until = (end - start).min(PAGE as u64) as usize;
            if from == 0 && until == PAGE {
                self.pages.remove(&number);
            } else if let Some(page) = self.pages.get_mut(&number) {
                page[from..until].fill(0);
            }
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.clear(len, self.len - len);
        }
        self.len = len;
    }
}

impl File for Content {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.pages.read().read(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.pages.write().write(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.pages.read().len)
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.pages.read().pages.len() as u64 * PAGE as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.pages.write().set_len(len);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut pages = self.pages.write();
        pages.len = pages.len.max(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.pages.write().clear(offset, len);
        Ok(())
    }

    fn next_data(&self, offset: u64) -> u64 {
        let pages = self.pages.read();
        let next = pages.pages.range(offset / PAGE as u64..).next();
        next.map_or(pages.len, |(number, _)| number * PAGE as u64).max(offset)
    }

    fn links(&self) -> io::Result<u64> {
        Ok(self.links.load(Ordering::Relaxed))
    }

    fn incarnation(&self) -> Incarnation {
        Incarnation::default()
    }

    fn map(&self, _: u64) -> io::Result<Box<dyn LogMap>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn advise(&self, _: Advice) {}
}

/// The name of a path, whatever the working directory is when it is used.
fn name(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

impl Names {
    fn kind(&self, name: &Path) -> Option<PathKind> {
        let file = || self.files.contains_key(name).then_some(PathKind::File);
        // The root is always there.
        let is_directory = name.parent().is_none() || self.directories.contains(name);
        is_directory.then_some(PathKind::Directory).or_else(file)
    }

    /// Checks that something can get this name.
    fn check_free(&self, name: &Path) -> io::Result<()> {
        if self.kind(name).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        match name.parent().and_then(|parent| self.kind(parent)) {
            Some(PathKind::Directory) => Ok(()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn file(&self, name: &Path) -> io::Result<&Arc<Content>> {
        if let Some(kind) = self.kind(name) {
            expect_kind(kind, PathKind::File)?;
        }
        self.files.get(name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&mut self, name: PathBuf) -> io::Result<Arc<Content>> {
        self.check_free(&name)?;
        let content = Arc::new(Content { links: AtomicU64::new(1), ..Content::default() });
        self.files.insert(name, content.clone());
        Ok(content)
    }

    fn remove(&mut self, name: &Path) -> io::Result<Arc<Content>> {
        self.file(name)?;
        let removed = self.files.remove(name).ok_or(io::ErrorKind::NotFound)?;
        removed.links.fetch_sub(1, Ordering::Relaxed);
        Ok(removed)
    }

    fn rename_directory(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_free(to)?;
        if to.starts_with(from) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let moved = |path: &Path| match path.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
            Ok(rest) => to.join(rest),
            Err(_) => path.to_owned(),
        };
        let files = std::mem::take(&mut self.files).into_iter();
        self.files = files.map(|(path, file)| (moved(&path), file)).collect();
        let directories = std::mem::take(&mut self.directories).into_iter();
        self.directories = directories.map(|path| moved(&path)).collect();
        Ok(())
    }
}

impl Fs for MemoryFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let (name, mut names) = (name(path)?, self.names.lock());
        match mode {
            OpenMode::CreateNew => Ok(names.create(name)?),
            OpenMode::Read | OpenMode::ReadWrite => Ok(names.file(&name)?.clone()),
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (name, mut names) = (name(path)?, self.names.lock());
        if names.kind(&name) == Some(PathKind::Directory) {
            return Ok(());
        }
        names.check_free(&name)?;
        names.directories.insert(name);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let (directory, names) = (name(path)?, self.names.lock());
        match names.kind(&directory) {
            Some(PathKind::Directory) => {}
            Some(_) => return Err(io::ErrorKind::NotADirectory.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        let called = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let inside = |path: &&PathBuf| path.parent() == Some(&directory);
        let files =
            names.files.iter().filter(|(path, _)| inside(path)).filter_map(|(path, file)| {
                Some(DirEntry {
                    name: called(path)?,
                    len: file.pages.read().len,
                    kind: PathKind::File,
                })
            });
        let directories = names.directories.iter().filter(inside).filter_map(|path| {
            Some(DirEntry { name: called(path)?, len: 0, kind: PathKind::Directory })
        });
        Ok(files.chain(directories).collect())
    }

    fn kind(&self, path: &Path) -> io::Result<Option<PathKind>> {
        Ok(self.names.lock().kind(&name(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to, mut names) = (name(from)?, name(to)?, self.names.lock());
        if names.kind(&from) == Some(PathKind::Directory) {
            return names.rename_directory(&from, &to);
        }
        names.file(&from)?;
        if from == to {
            return Ok(());
        }
        match names.kind(&to) {
            Some(PathKind::File) => drop(names.remove(&to)?),
            _ => names.check_free(&to)?,
        }
        let file = names.files.remove(&from).ok_or(io::ErrorKind::NotFound)?;
        names.files.insert(to, file);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.names.lock().remove(&name(path)?).map(drop)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to, mut names) = (name(from)?, name(to)?, self.names.lock());
        names.check_free(&to)?;
        let file = names.file(&from)?.clone();
        file.links.fetch_add(1, Ordering::Relaxed);
        names.files.insert(to, file);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        if !self.list(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.names.lock().directories.remove(&name(path)?);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.list(path).map(drop)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let (name, mut names) = (name(path)?, self.names.lock());
        if names.kind(&name).is_none() {
            names.create(name.clone())?;
        }
        names.file(&name)?;
        let locked = names.locked.clone();
        if !locked.lock().insert(name.clone()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Lock { name, locked }))
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        // As much as memory has, which nobody knows; enough that nothing is refused for it.
        Ok(1 << 50)
    }
}

/// A held lock of a file.
#[derive(Debug)]
struct Lock {
    name: PathBuf,
    locked: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl FileLock for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        self.locked.lock().remove(&self.name);
    }
}
