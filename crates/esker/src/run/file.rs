//! Files that hold segments.
//!
//! A file is opened when something is read from it, and may be closed to make room for others
//! (`open_files`): a database may have tens of thousands.
//! Dropping the last reference to an obsolete file notifies the database, which unlinks the file
//! after the manifest edit that dropped it is durable (R22).

use super::open_files::OpenFiles;
use crate::base::codec::{Reader, checksum};
use crate::base::{FileId, NumberedName};
use crate::error::{Error, Result};
use crate::fs::{Advice, File, Fs, OpenMode, is_out_of_descriptors, part};
use parking_lot::{Mutex, RwLock};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Bytes of a run file before its first segment.
pub const HEADER_BYTES: usize = 64;
/// The newest version of the format, and the only one.
pub const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"eskerrun";

const NAME: NumberedName = NumberedName { prefix: "", digits: 10, suffix: ".run" };

/// The name of the file with this id in the data directory.
pub fn file_name(id: FileId) -> String {
    NAME.of(id)
}

/// The number in a run file's name.
pub fn parse_run_name(name: &str) -> Option<FileId> {
    NAME.number(name)
}

/// Is notified of files and segments that nothing refers to any more. Called where the last
/// reference is dropped, on any thread: it should only take a note.
pub trait Reclaim: Send + Sync + fmt::Debug {
    /// An obsolete file can be unlinked.
    fn file(&self, id: FileId);
    /// An obsolete segment of a file that is not obsolete can be punched out.
    fn slice(&self, id: FileId, offset: u64, len: u64);
}

/// The header of a run file.
pub(super) fn header(id: FileId) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&id.to_le_bytes());
    let sum = checksum(id, 0, &header[..56]);
    header[56..].copy_from_slice(&sum.to_le_bytes());
    header
}

pub(super) fn check_header(header: &[u8; HEADER_BYTES], id: FileId, path: &Path) -> Result<()> {
    let corrupt = |detail: &str| Error::corruption(path, 0, "run header", detail);
    let mut reader = Reader::new(header);
    let mut parse = || {
        let magic = reader.take(8)?;
        let (version, reserved, found) = (reader.u32()?, reader.u32()?, reader.u64()?);
        reader.take(32)?;
        Ok((magic, version, reserved, found, reader.u64()?))
    };
    let (magic, version, _, found, sum) =
        parse().map_err(|error: crate::base::codec::DecodeError| corrupt(error.0))?;
    if magic != MAGIC {
        return Err(corrupt("this is not a run file"));
    }
    // A later version may arrange everything else differently, its checksum included.
    if version != VERSION {
        return Err(Error::UnknownFormat { path: path.into(), found: version, supported: VERSION });
    }
    if sum != checksum(id, 0, &header[..56]) || found != id {
        return Err(corrupt("the checksum or the file id does not match"));
    }
    Ok(())
}

/// A run file.
pub struct RunFile {
    id: FileId,
    path: PathBuf,
    fs: Arc<dyn Fs>,
    me: Weak<Self>,
    table: Option<Arc<OpenFiles>>,
    /// The open file, if it is open.
    file: RwLock<Option<Arc<dyn File>>>,
    opening: Mutex<()>,
    /// Whether something was read since the table last asked.
    used: AtomicBool,
    /// Whether the header was checked.
    checked: AtomicBool,
    obsolete: AtomicBool,
    reclaim: Option<Arc<dyn Reclaim>>,
}

impl fmt::Debug for RunFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RunFile {
    /// The file with this id in the data directory `dir`; not opened yet. Once it is open, `table`
    /// may close it again.
    pub fn new(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        id: FileId,
        reclaim: Option<Arc<dyn Reclaim>>,
        table: Option<Arc<OpenFiles>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            id,
            path: dir.join(file_name(id)),
            fs: Arc::clone(fs),
            me: me.clone(),
            table,
            file: RwLock::new(None),
            opening: Mutex::new(()),
            used: AtomicBool::new(false),
            checked: AtomicBool::new(false),
            obsolete: AtomicBool::new(false),
            reclaim,
        })
    }

    /// Its number.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Where it stands.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, which stays open while it is held; opened if it is not, and its header
    /// checked the first time.
    pub fn file(&self) -> Result<Arc<dyn File>> {
        if let Some(file) = self.opened() {
            return Ok(file);
        }
        let _opening = self.opening.lock();
        if let Some(file) = self.opened() {
            return Ok(file);
        }
        let turn = self.table.as_ref().map(|table| table.turn());
        let mut file = self.fs.open(&self.path, OpenMode::Read);
        if let (Err(error), Some(table)) = (&file, &self.table)
            && is_out_of_descriptors(error)
        {
            table.close_all();
            file = self.fs.open(&self.path, OpenMode::Read);
        }
        let file = part(file, &self.path, "run header")?;
        if !self.checked.load(Ordering::Relaxed) {
            let mut header = [0; HEADER_BYTES];
            read(&*file, &self.path, &mut header, 0, "run header")?;
            check_header(&header, self.id, &self.path)?;
            self.checked.store(true, Ordering::Relaxed);
        }
        file.advise(Advice::Random);
        *self.file.write() = Some(Arc::clone(&file));
        if let Some(turn) = turn {
            turn.opened(&self.me);
        }
        Ok(file)
    }

    fn opened(&self) -> Option<Arc<dyn File>> {
        let file = self.file.read().clone()?;
        // Written only where it changes something, so that readers share the line.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(file)
    }

    /// Whether something was read since the last call.
    pub(super) fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.file.read().is_some()
    }

    /// Takes the open file away; readers that use it keep it until they are done.
    pub(super) fn take(&self) -> Option<Arc<dyn File>> {
        self.file.write().take()
    }

    /// Fills `buffer` from `offset`; a file that ends before is damaged.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64, section: &'static str) -> Result<()> {
        read(&*self.file()?, &self.path, buffer, offset, section)
    }

    /// Says that no durable state refers to the file: the last reference reports it.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// Whether [`Self::mark_obsolete`] was called.
    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }

    pub(super) fn reclaim_slice(&self, offset: u64, len: u64) {
        if let Some(reclaim) = &self.reclaim
            && !self.is_obsolete()
        {
            reclaim.slice(self.id, offset, len);
        }
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if !self.is_obsolete() {
            return;
        }
        // Closed first: some systems refuse to remove an open file.
        *self.file.get_mut() = None;
        if let Some(reclaim) = &self.reclaim {
            reclaim.file(self.id);
        }
    }
}

fn read(
    file: &dyn File,
    path: &Path,
    buffer: &mut [u8],
    offset: u64,
    section: &'static str,
) -> Result<()> {
    match file.read_at(buffer, offset) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Error::corruption(path, offset, section, "the file ends before its contents"))
        }
        Err(error) => Err(Error::io("read", path, error)),
    }
}
