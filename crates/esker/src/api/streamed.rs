//! Values that are written and read in pieces.

use super::ingestion::Ingestion;
use super::value::failed_reader;
use super::value_reader::ValueReader;
use crate::{Db, Durability, Keyspace, Result};
use std::io::Read;

impl Keyspace {
    /// Inserts a value that comes from a reader, which is read to its end; returns its bytes. The value may have up to
    /// 1 GiB, whatever the memory budget: no more than two pieces of it, of 256 KiB, are in memory.
    /// [`Keyspace::get_reader`] reads it in pieces, too.
    ///
    /// It is durable when the call returns. A value of more than one piece is an ingestion of one entry (see
    /// [`crate::Ingestion`]), which costs three syncs, and not a write through the log: use it for what is large.
    /// Nothing is visible before all of the value has come. The keyspace's time to live counts from the call.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the reader fails, then nothing is written; [`crate::Error::ValueTooLarge`] above 1 GiB; others as
    /// [`Keyspace::insert`] and [`crate::Ingestion::commit`].
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use std::io::{Read, Seek, SeekFrom};
    /// let images = db.keyspace("images")?;
    /// let file = std::io::repeat(b'x').take(3_000_000); // A file, or what comes over a network.
    /// assert_eq!(images.insert_reader("disk.img", file)?, 3_000_000);
    ///
    /// let mut reader = images.get_reader("disk.img")?.unwrap();
    /// assert_eq!(reader.len(), 3_000_000);
    /// reader.seek(SeekFrom::End(-3)).unwrap();
    /// let mut end = String::new();
    /// reader.read_to_string(&mut end).unwrap();
    /// assert_eq!(end, "xxx");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_reader(&self, key: impl AsRef<[u8]>, mut reader: impl Read) -> Result<u64> {
        let piece = u64::from(self.handle.core.settings.value_piece_bytes());
        let mut first = Vec::new();
        (&mut reader).take(piece + 1).read_to_end(&mut first).map_err(failed_reader)?;
        if first.len() as u64 <= piece {
            self.insert_with(key, &first, Durability::Disk)?;
            return Ok(first.len() as u64);
        }
        let mut ingestion = Ingestion::new(&self.handle);
        let len = ingestion.insert_reader(self, key, first.as_slice().chain(reader))?;
        ingestion.commit()?;
        Ok(len)
    }

    /// A reader of the value under a key; `None` if there is no value. A value that was written by
    /// [`Keyspace::insert_reader`] is read in pieces of 256 KiB, past the cache, one at a time; another one is in memory
    /// while the reader lives.
    ///
    /// The reader sees the value as of the call, whatever is written later. Until it is dropped, the space of its
    /// value is not given back, and the database stays open.
    ///
    /// # Errors
    /// As [`Keyspace::get`]. Reading and seeking fail with an [`std::io::Error`] that has a [`crate::Error`] as its source.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "red")?;
    /// let reader = fruit.get_reader("apple")?.unwrap();
    /// assert_eq!(std::io::read_to_string(reader).unwrap(), "red");
    /// assert!(fruit.get_reader("kiwi")?.is_none());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        ValueReader::find(self, key.as_ref(), None)
    }
}

impl Db {
    /// [`Keyspace::insert_reader`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// assert_eq!(db.insert_reader("letter", &b"Dear reader"[..])?, 11);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn insert_reader(&self, key: impl AsRef<[u8]>, reader: impl Read) -> Result<u64> {
        self.default_keyspace().insert_reader(key, reader)
    }

    /// [`Keyspace::get_reader`] on `default`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// db.insert("letter", "Dear reader")?;
    /// assert_eq!(db.get_reader("letter")?.map(|reader| reader.len()), Some(11));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        self.default_keyspace().get_reader(key)
    }
}
