//! Storing the frames of a stream: what loads and imports share.
//!
//! 1. Sorted entries are ingested, a piece of the stream at a time: nothing is logged, and each byte is
//!    written once.
//! 2. A mark in a separate keyspace says which stream is being stored and how many of its entries
//!    are stored. It is ingested with them, so after a crash all entries that it counts exist. The
//!    keyspace is dropped at the end: if it exists, a load was not finished.

use crate::parts::Value;
use crate::stream::{Content, Entries, KeyspaceInfo, Totals};
use crate::walk::digest;
use crate::{Error, Result};
use esker::{Comparator, Db, Durability, Ingestion, Keyspace, KeyspaceOptions};
use std::sync::Arc;

/// The keyspace of the mark.
pub(crate) const MARK_KEYSPACE: &str = "esker:load";
const MARK_KEY: &[u8] = b"mark";
/// Bytes of a piece that is ingested as a whole, about: what an interruption costs.
const PIECE_BYTES: u64 = 64 << 20;
/// What counts for an entry besides its key and value.
const ENTRY_OVERHEAD: u64 = 16;

/// Stores a stream.
pub(crate) struct Loader<'a> {
    db: &'a Db,
    comparators: &'a [Arc<dyn Comparator>],
    source: [u8; 16],
    mark: Keyspace,
    keyspace: Option<Keyspace>,
    stored: Vec<Keyspace>,
    ingestion: Option<Ingestion>,
    /// Bytes in the ingestion.
    piece_bytes: u64,
    /// Entries of the stream that are in, or in the ingestion.
    entries: u64,
    /// Entries at the start of the stream that were in before.
    resumed: u64,
}

impl<'a> Loader<'a> {
    /// Begins a load, or continues an interrupted one.
    pub fn new(
        db: &'a Db,
        comparators: &'a [Arc<dyn Comparator>],
        source: [u8; 16],
        existing: bool,
    ) -> Result<Self> {
        let unfinished = db.keyspaces()?.iter().any(|name| name == MARK_KEYSPACE);
        if !unfinished && !existing && !is_empty(db)? {
            return Err(Error::NotEmpty { path: db.path().to_owned() });
        }
        let mark = db.keyspace(MARK_KEYSPACE)?;
        let resumed = match mark.get(MARK_KEY)?.as_deref().and_then(read_mark) {
            Some((of, entries)) if of == source => entries,
            _ if !unfinished || existing || is_empty(db)? => 0,
            _ => return Err(Error::Unfinished { path: db.path().to_owned() }),
        };
        let loader = Self {
            db,
            comparators,
            source,
            mark,
            keyspace: None,
            stored: Vec::new(),
            ingestion: None,
            piece_bytes: 0,
            entries: 0,
            resumed,
        };
        // From here on the database is known to be unfinished, and whose it is. This one is
        // logged, so that it is there before anything else can be.
        let bytes = loader.mark_bytes(resumed);
        loader.mark.insert_with(MARK_KEY, bytes, Durability::Disk)?;
        Ok(loader)
    }

    /// Entries that were in before.
    pub fn resumed(&self) -> u64 {
        self.resumed
    }

    /// The entries that follow belong to this keyspace.
    pub fn keyspace(&mut self, info: &KeyspaceInfo) -> Result<()> {
        let mut options = KeyspaceOptions::default();
        if let Some(name) = &info.comparator {
            let order = self.comparators.iter().find(|order| order.name() == name);
            let order = order.ok_or_else(|| esker::Error::ComparatorMissing {
                keyspace: info.name.clone(),
                comparator: name.clone(),
            })?;
            options.comparator = Some(order.clone());
        }
        options.merge_operator = info.merge_operator.clone();
        options.ttl = info.ttl;
        let keyspace = self.db.keyspace_with(&info.name, options)?;
        if keyspace.comparator_name() != info.comparator.as_deref() {
            let asked = info.comparator.clone().unwrap_or_else(|| "byte order".to_owned());
            return Err(Error::Engine(esker::Error::ComparatorMismatch {
                keyspace: info.name.clone(),
                stored: keyspace.comparator_name().unwrap_or("byte order").to_owned(),
                asked,
            }));
        }
        self.stored.push(keyspace.clone());
        self.keyspace = Some(keyspace);
        Ok(())
    }

    /// Stores entries of the last keyspace.
    pub fn entries(&mut self, entries: &Entries) -> Result<()> {
        let known = self.resumed.saturating_sub(self.entries).min(entries.len());
        self.entries += known;
        for (key, value) in entries.iter().skip(known as usize) {
            let bytes = (key.len() + value.len()) as u64 + ENTRY_OVERHEAD;
            let Some(keyspace) = self.keyspace.clone() else { continue };
            self.ingest(&keyspace, key, value)?;
            self.piece_bytes += bytes;
            self.entries += 1;
        }
        Ok(())
    }

    /// Stores an entry of the last keyspace whose value of `len` bytes comes in pieces. The ingestion goes on without
    /// it if not all of it came and was proved.
    pub fn entry_from(&mut self, key: &[u8], len: u64, value: &mut Value<'_>) -> Result<()> {
        let keyspace = self.keyspace.clone().filter(|_| self.entries >= self.resumed);
        if let Some(keyspace) = keyspace {
            self.ingest_from(&keyspace, key, value)?;
            self.piece_bytes += key.len() as u64 + len + ENTRY_OVERHEAD;
        }
        if let Err(error) = value.finish() {
            // Whoever stored it did not read it to its end.
            self.ingestion = None;
            return Err(error);
        }
        self.entries += 1;
        Ok(())
    }

    fn ingest_from(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        value: &mut Value<'_>,
    ) -> Result<()> {
        let mut piece = self.piece()?;
        let mut added = piece.insert_reader(keyspace, key, &mut *value);
        self.ingestion = Some(piece);
        if let Err(esker::Error::OutOfOrder { .. }) = added {
            // Nothing of the value was read.
            self.write()?;
            let piece = self.ingestion.insert(self.db.ingest()?);
            added = piece.insert_reader(keyspace, key, &mut *value);
        }
        match added {
            Ok(_) => Ok(()),
            // Why the value did not come says more.
            Err(error) => Err(value.take_failure().unwrap_or(Error::Engine(error))),
        }
    }

    /// The ingestion that the next entry goes to.
    fn piece(&mut self) -> Result<Ingestion> {
        if self.piece_bytes >= PIECE_BYTES {
            self.write()?;
        }
        match self.ingestion.take() {
            Some(piece) => Ok(piece),
            None => Ok(self.db.ingest()?),
        }
    }

    /// Adds an entry to the piece that is ingested.
    fn ingest(&mut self, keyspace: &Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        let mut piece = self.piece()?;
        let added = piece.insert(keyspace, key, value);
        self.ingestion = Some(piece);
        if let Err(esker::Error::OutOfOrder { .. }) = added {
            // Of a stream that is not sorted, the later entry counts.
            self.write()?;
            let piece = self.ingestion.insert(self.db.ingest()?);
            return Ok(piece.insert(keyspace, key, value)?);
        }
        Ok(added?)
    }

    /// Commits the piece that is ingested.
    fn write(&mut self) -> Result<()> {
        self.piece_bytes = 0;
        if let Some(mut piece) = self.ingestion.take() {
            piece.insert(&self.mark, MARK_KEY, self.mark_bytes(self.entries))?;
            piece.commit()?;
        }
        Ok(())
    }

    /// Makes everything durable and removes the mark.
    pub fn finish(mut self) -> Result<()> {
        self.write()?;
        self.db.sync()?;
        self.db.drop_keyspace(MARK_KEYSPACE)?;
        self.db.sync()?;
        Ok(())
    }

    /// Writes what is there, so that as much as possible survives a failure of the stream.
    pub fn stop(mut self) -> Result<()> {
        self.write()?;
        self.db.sync()?;
        Ok(())
    }

    /// Reads what is stored in the keyspaces of the stream and compares it with what was read.
    pub fn read_back(&self, read: &Totals) -> Result<()> {
        let mut content = Content::default();
        let snapshot = self.db.snapshot()?;
        for keyspace in &self.stored {
            content.keyspace(&KeyspaceInfo::of(keyspace));
            digest(&mut content, &snapshot, keyspace, snapshot.iter(keyspace)?)?;
        }
        let stored = content.totals();
        if stored == *read {
            return Ok(());
        }
        let detail = format!(
            "{} entries with checksum {:016x} were read, {} with {:016x} are stored",
            read.entries, read.content, stored.entries, stored.content
        );
        Err(Error::Differs { path: self.db.path().to_owned(), detail })
    }

    /// Commits what is still in the piece, without the end.
    pub fn settle(&mut self) -> Result<()> {
        self.write()
    }

    fn mark_bytes(&self, entries: u64) -> Vec<u8> {
        [&self.source[..], &entries.to_le_bytes()].concat()
    }
}

fn read_mark(bytes: &[u8]) -> Option<([u8; 16], u64)> {
    let (source, entries) = bytes.split_at_checked(16)?;
    Some((source.try_into().ok()?, u64::from_le_bytes(entries.try_into().ok()?)))
}

/// Whether a database holds nothing but, perhaps, a mark.
fn is_empty(db: &Db) -> Result<bool> {
    let others = db.keyspaces()?;
    let others = others.iter().any(|name| name != "default" && name != MARK_KEYSPACE);
    Ok(!others && db.first_key_value()?.is_none())
}
