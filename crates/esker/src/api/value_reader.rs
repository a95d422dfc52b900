//! A reader of one value.

use super::handle::Handle;
use super::in_place::ValueInPlace;
use crate::base::Moment;
use crate::catalog::KeyspaceState;
use crate::db::{Held, Seen};
use crate::run::{Pieces, PiecesReader};
use crate::{Keyspace, Result};
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::sync::Arc;

/// Reads one value, from [`Keyspace::get_reader`] or [`crate::Snapshot::get_reader`].
///
/// Its pieces are buffered already: wrap it into no other buffer.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// use std::io::BufRead;
/// db.insert("poem", "roses\nviolets\n")?;
/// let reader = db.get_reader("poem")?.unwrap();
/// let lines: Vec<String> = reader.lines().collect::<Result<_, _>>().unwrap();
/// assert_eq!(lines, ["roses", "violets"]);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
pub struct ValueReader {
    handle: Arc<Handle>,
    keyspace: Arc<KeyspaceState>,
    value: Value,
    at: u64,
}

impl Drop for ValueReader {
    fn drop(&mut self) {
        // Freeing what it reads may take locks, which in a forked child may be held by a thread that does not exist there (R26).
        if self.handle.core.is_forked() {
            let gone = Value::Whole(ValueInPlace::default());
            std::mem::forget(std::mem::replace(&mut self.value, gone));
        }
    }
}

#[derive(Debug)]
enum Value {
    Whole(ValueInPlace),
    Pieces(PiecesReader),
}

impl ValueReader {
    /// The reader of the value under a key, as of a registered snapshot's moment or now.
    pub(super) fn find(
        keyspace: &Keyspace,
        key: &[u8],
        at: Option<Moment>,
    ) -> Result<Option<Self>> {
        let (handle, state) = (&keyspace.handle, keyspace.state());
        let take = |seen: Seen<'_>| match seen.pieces() {
            Some(pieces) => Ok(pieces.clone()),
            None => Err(seen.hold()),
        };
        let found: Option<Result<Pieces, Held>> =
            handle.core.get_as((state, key, at), true, take)?;
        let value = match found {
            None => return Ok(None),
            Some(Err(held)) => Value::Whole(ValueInPlace::new(held, &handle.core)),
            Some(Ok(pieces)) => Value::Pieces(
                pieces.reader().map_err(|error| error.in_keyspace(&state.name, None))?,
            ),
        };
        Ok(Some(Self { handle: handle.clone(), keyspace: state.clone(), value, at: 0 }))
    }

    /// The bytes of the whole value.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "open")?;
    /// assert_eq!(db.get_reader("door")?.unwrap().len(), 4);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn len(&self) -> u64 {
        match &self.value {
            Value::Whole(value) => value.bytes().len() as u64,
            Value::Pieces(pieces) => pieces.value_len(),
        }
    }

    /// Whether the value has no bytes.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("door", "")?;
    /// assert!(db.get_reader("door")?.unwrap().is_empty());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl BufRead for ValueReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let core = &self.handle.core;
        core.check_open().map_err(io::Error::other)?;
        match &mut self.value {
            Value::Whole(value) => {
                let at = usize::try_from(self.at).unwrap_or(usize::MAX);
                Ok(value.bytes().get(at..).unwrap_or(&[]))
            }
            Value::Pieces(pieces) => pieces.bytes_at(self.at).map_err(|error| {
                let error = error.in_keyspace(&self.keyspace.name, None);
                core.monitor.damage(&error);
                io::Error::other(error)
            }),
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes as u64);
    }
}

impl Read for ValueReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl Seek for ValueReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "a place before the value");
        self.at = at.ok_or_else(before)?;
        Ok(self.at)
    }
}
