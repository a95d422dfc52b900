//! The receiver of the keyspaces and entries that the reader of a store finds.
//!
//! 1. Names are checked here, for all stores alike: each comes once, and none is invalid in Esker
//!    or used by Esker itself.
//! 2. Entries arrive in the order in which they will be stored, so that the checksum of what was
//!    read can be compared with that of what is stored. A reader that cannot promise this has it
//!    checked by [`Sink::ordered`].

use crate::loader::MARK_KEYSPACE;
use crate::parts::{Message, Part};
use crate::stream::{
    Content, Entries, FRAME_BYTES, Frame, KeyspaceInfo, Totals, WHOLE_BYTES_MAX, entry_head,
};
use crate::{Engine, Error, Result};
use esker::internals::base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

/// The end of the reading thread.
pub(crate) struct Sink {
    path: PathBuf,
    engine: Engine,
    out: SyncSender<Message>,
    entries: Entries,
    content: Content,
    names: BTreeSet<String>,
    /// The last key that came through `ordered`.
    last: Option<Vec<u8>>,
    read: Arc<AtomicU64>,
}

impl Sink {
    pub fn new(
        engine: Engine,
        path: &Path,
        out: SyncSender<Message>,
        read: Arc<AtomicU64>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            engine,
            out,
            entries: Entries::with_frame_capacity(),
            content: Content::default(),
            names: BTreeSet::new(),
            last: None,
            read,
        }
    }

    /// What follows belongs to this keyspace; each comes once.
    pub fn keyspace(&mut self, info: KeyspaceInfo) -> Result<()> {
        let name = &info.name;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name == MARK_KEYSPACE {
            return Err(self.refuse(format!(
                "it has a keyspace with the name {name:?}, which Esker cannot have: names have 1 \
                 to {NAME_BYTES_MAX} bytes, and {MARK_KEYSPACE:?} is its own; rename it there"
            )));
        }
        if !self.names.insert(name.clone()) {
            return Err(self.refuse(format!(
                "two of its keyspaces would be {name:?}: choose another name for what has none \
                 there, with --keyspace"
            )));
        }
        self.last = None;
        self.hand_over()?;
        self.content.keyspace(&info);
        self.send(Part::Frame(Frame::Keyspace(info)))
    }

    /// The next entry of the keyspace, in its order.
    #[inline]
    pub fn entry(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > KEY_BYTES_MAX || value.len() as u64 > VALUE_BYTES_MAX {
            return Err(self.too_large(key.len(), value.len()));
        }
        if value.len() > WHOLE_BYTES_MAX {
            return self.large(key, value);
        }
        self.entries.push(key, value);
        if self.entries.is_full() { self.hand_over() } else { Ok(()) }
    }

    /// The next entry of the keyspace, whose keys have to be in byte order, each once; `named` is
    /// what the store calls the keyspace.
    #[inline]
    pub fn ordered(&mut self, named: &str, key: &[u8], value: &[u8]) -> Result<()> {
        match &mut self.last {
            Some(last) if key <= last.as_slice() => {
                let several = key == last.as_slice();
                return Err(self.out_of_order(named, several));
            }
            Some(last) => {
                last.clear();
                last.extend_from_slice(key);
            }
            None => self.last = Some(key.to_vec()),
        }
        self.entry(key, value)
    }

    /// How many bytes of the source were read so far.
    pub fn read_bytes(&self, bytes: u64) {
        self.read.store(bytes, Ordering::Relaxed);
    }

    /// An error about the store as a whole.
    pub fn refuse(&self, detail: impl Into<String>) -> Error {
        Error::Source { engine: self.engine, path: self.path.clone(), detail: detail.into() }
    }

    fn out_of_order(&self, named: &str, several: bool) -> Error {
        self.refuse(if several {
            format!(
                "a key in {named} has several values, a keyspace holds one of each: import it \
                 with a program of your own that makes keys of them"
            )
        } else {
            format!(
                "{named} keeps its keys in another order than that of their bytes: import it \
                 with a program that has this order as a comparator"
            )
        })
    }

    fn too_large(&self, key: usize, value: usize) -> Error {
        self.refuse(format!(
            "an entry has a key of {key} and a value of {value} bytes, the limits are \
             {KEY_BYTES_MAX} and {VALUE_BYTES_MAX}: remove it, or import with a program of your own"
        ))
    }

    fn hand_over(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        self.content.entries(&self.entries);
        let entries = std::mem::replace(&mut self.entries, Entries::with_frame_capacity());
        self.send(Part::Frame(Frame::Entries(entries)))
    }

    /// Hands a large value over in pieces, so that only the other store's library has all of it.
    fn large(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.hand_over()?;
        let len = value.len() as u64;
        self.content.piece(&entry_head(key, len));
        self.content.piece(value);
        self.content.entry(key.len() as u64 + len);
        self.send(Part::Entry { key: key.to_vec(), len })?;
        for piece in value.chunks(FRAME_BYTES) {
            self.send(Part::Piece(piece.to_vec()))?;
        }
        self.send(Part::Proved)
    }

    fn send(&self, part: Part) -> Result<()> {
        // The storing thread failed, and reports its error.
        let gone = std::io::ErrorKind::BrokenPipe;
        let sent = self.out.send(Ok((part, 0)));
        sent.map_err(|_| Error::io("hand over", "entries", gone.into()))
    }

    /// All is read: what it was.
    pub fn finish(mut self) -> Result<Totals> {
        self.hand_over()?;
        Ok(self.content.totals())
    }
}

/// Runs what calls another store's library. Such a library may panic over a damaged file.
#[cfg(any(feature = "import-fjall", feature = "import-redb", feature = "import-rocksdb"))]
pub(crate) fn contained<R>(
    engine: Engine,
    path: &Path,
    run: impl FnOnce() -> Result<R>,
) -> Result<R> {
    // What it was working on is not used again: the import ends.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        let detail = format!("its library gave up ({said}): get another copy");
        Err(Error::Source { engine, path: path.to_owned(), detail })
    })
}
