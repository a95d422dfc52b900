//! Loading dumps.
//!
//! One thread reads the stream and verifies each frame by its checksum, the calling thread stores
//! it. An interrupted load continues when the same dump is loaded again: the frames that were
//! stored are verified again and skipped.

use crate::dump::QUEUE;
use crate::loader::Loader;
use crate::parts::{Message, Part, Value};
use crate::stream::Part as Streamed;
use crate::stream::{Content, Frame, Reader, Totals, entry_head};
use crate::{Error, Progress, Result, Step, Summary};
use esker::internals::base::codec;
use esker::{Comparator, Db};
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_128;

/// How a dump is loaded.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, LoadOptions, Quiet};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("k", "dumped")?;
/// # let mut stream = Vec::new();
/// # esker_port::dump(&db, &mut stream, "memory", &DumpOptions::default(), &mut Quiet)?;
/// db.insert("k", "later")?;
/// let mut options = LoadOptions::default();
/// options.existing = true; // The database is not empty: replace what the dump has.
/// esker_port::load(&db, stream.as_slice(), "memory", &options, &mut Quiet)?;
/// assert_eq!(db.get("k")?, Some(b"dumped".to_vec()));
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Load into a database that is not empty; entries of the dump replace those with the same
    /// keys. Without this, such a database is refused.
    pub existing: bool,
    /// Custom comparators of keyspaces, found by their names.
    pub comparators: Vec<Arc<dyn Comparator>>,
    /// Only these keyspaces of the dump; `None`: all. The others are still read and verified.
    pub keyspaces: Option<Vec<String>>,
    /// At the end, read the stored entries and compare them with the stream. Not with `existing`.
    pub read_back: bool,
    /// The length of the stream in bytes, if known, to report progress.
    pub stream_bytes: Option<u64>,
}

impl std::fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let comparators: Vec<&str> = self.comparators.iter().map(|order| order.name()).collect();
        f.debug_struct("LoadOptions")
            .field("existing", &self.existing)
            .field("comparators", &comparators)
            .field("keyspaces", &self.keyspaces)
            .field("read_back", &self.read_back)
            .field("stream_bytes", &self.stream_bytes)
            .finish()
    }
}

impl LoadOptions {
    /// Identifies a load that is run again: the dump, and the selected part of it.
    fn source_id(&self, dump: [u8; 16]) -> [u8; 16] {
        let Some(names) = &self.keyspaces else { return dump };
        let mut bytes = dump.to_vec();
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        names.iter().for_each(|name| codec::put_bytes(&mut bytes, name.as_bytes()));
        xxh3_128(&bytes).to_be_bytes()
    }
}

/// Chooses what is loaded of a stream.
struct Selection<'a> {
    names: Option<&'a [String]>,
    /// Those of the names that did not come yet.
    missing: BTreeSet<&'a str>,
    /// Whether the present keyspace is wanted.
    taken: bool,
    content: Content,
}

impl<'a> Selection<'a> {
    fn new(options: &'a LoadOptions) -> Self {
        let names = options.keyspaces.as_deref();
        let missing = names.unwrap_or_default().iter().map(String::as_str).collect();
        Self { names, missing, taken: false, content: Content::default() }
    }

    /// Stores what was handed over, or not; returns how many entries that are, and their bytes.
    fn store(
        &mut self,
        loader: &mut Loader<'_>,
        part: Part,
        parts: &Receiver<Message>,
    ) -> Result<(u64, u64)> {
        match part {
            Part::Frame(Frame::Keyspace(info)) => {
                self.missing.remove(info.name.as_str());
                self.taken = self.names.is_none_or(|names| names.contains(&info.name));
                if self.taken {
                    self.content.keyspace(&info);
                    loader.keyspace(&info)?;
                }
                Ok((0, 0))
            }
            Part::Frame(Frame::Entries(entries)) => {
                if self.taken {
                    self.content.entries(&entries);
                    loader.entries(&entries)?;
                }
                Ok((entries.len(), entries.bytes()))
            }
            Part::Entry { key, len } => {
                self.store_from(loader, (&key, len), parts)?;
                Ok((1, key.len() as u64 + len))
            }
            // Pieces were taken with their entry.
            Part::Frame(Frame::End(_)) | Part::Piece(_) | Part::Proved => Ok((0, 0)),
        }
    }

    /// Stores an entry whose value comes in pieces, or not.
    fn store_from(
        &mut self,
        loader: &mut Loader<'_>,
        (key, len): (&[u8], u64),
        parts: &Receiver<Message>,
    ) -> Result<()> {
        if !self.taken {
            return Value::new(parts, None).finish();
        }
        self.content.piece(&entry_head(key, len));
        self.content.entry(key.len() as u64 + len);
        let mut value = Value::new(parts, Some(&mut self.content));
        loader.entry_from(key, len, &mut value)
    }

    /// What was chosen in all, from a stream with these totals.
    fn totals(&self, what: &str, all: Totals) -> Result<Totals> {
        if let Some(missing) = self.missing.first() {
            let (what, keyspace) = (what.to_owned(), (*missing).to_owned());
            return Err(Error::NotInDump { what, keyspace });
        }
        Ok(if self.names.is_some() { self.content.totals() } else { all })
    }
}

/// Loads a dump of either form. When this returns, all of it is stored and durable, and the
/// stream's checksums and totals were right.
///
/// # Errors
/// Those of reading the stream: [`Error::NotADump`], [`Error::UnknownVersion`],
/// [`Error::Damaged`], [`Error::CutOff`], [`Error::Io`]; then the database is marked as
/// unfinished, holds only verified entries, and the same dump can be loaded again.
/// [`Error::NotInDump`] if the dump lacks a selected keyspace;
/// [`Error::NotEmpty`], [`Error::Unfinished`]; [`Error::Differs`]; [`Error::Engine`]:
/// [`esker::Error::ComparatorMissing`] if the comparator of a keyspace was not given.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, LoadOptions, Quiet};
/// # let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
/// # let (db, copy) = (esker::Db::open(&one)?, esker::Db::open(&other)?);
/// # db.insert("k", "v")?;
/// # let mut stream = Vec::new();
/// # esker_port::dump(&db, &mut stream, "memory", &DumpOptions::default(), &mut Quiet)?;
/// let options = LoadOptions::default();
/// let loaded = esker_port::load(&copy, stream.as_slice(), "memory", &options, &mut Quiet)?;
/// assert_eq!((loaded.keyspaces, loaded.entries), (1, 1));
/// // A stream without its end is told from a whole one.
/// let part = &stream[..stream.len() - 1];
/// assert!(esker_port::load(&copy, part, "memory", &options, &mut Quiet).is_err());
/// # Ok::<(), esker_port::Error>(())
/// ```
pub fn load(
    db: &Db,
    input: impl Read + Send,
    what: &str,
    options: &LoadOptions,
    progress: &mut dyn Progress,
) -> Result<Summary> {
    let started = Instant::now();
    let reader = Reader::new(input, what)?;
    let source = options.source_id(reader.header().dump);
    let mut loader = Loader::new(db, &options.comparators, source, options.existing)?;
    let mut selection = Selection::new(options);
    let (sender, parts) = sync_channel::<Message>(QUEUE);
    let mut end = None;
    let stored = std::thread::scope(|scope| {
        scope.spawn(move || read(reader, &sender));
        // By value, so that the other thread ends when this one fails.
        let parts = parts;
        let mut done = Step::default();
        for part in &parts {
            let (part, offset) = part?;
            if let Part::Frame(Frame::End(totals)) = &part {
                end = Some((*totals, offset));
            }
            let (entries, bytes) = selection.store(&mut loader, part, &parts)?;
            if entries == 0 {
                continue;
            }
            done.entries += entries;
            done.bytes += bytes;
            let part = |all: u64| (offset as f64 / all.max(1) as f64).min(1.0);
            done.fraction = options.stream_bytes.map(part);
            progress.step(done);
        }
        Ok(())
    });
    let resumed = loader.resumed();
    let (totals, stream_bytes) = match (stored, end) {
        (Ok(()), Some((totals, offset))) => match selection.totals(what, totals) {
            Ok(totals) => (totals, offset),
            Err(error) => {
                loader.stop().ok();
                return Err(error);
            }
        },
        (Err(error), _) => {
            // What was proved is kept; that the stream failed is what is reported.
            loader.stop().ok();
            return Err(error);
        }
        // The reader ends with an end frame or an error, so it must have been lost with its thread.
        (Ok(()), None) => return Err(Error::CutOff { what: what.to_owned(), offset: 0 }),
    };
    if options.read_back && !options.existing {
        loader.settle()?;
        loader.read_back(&totals)?;
    }
    loader.finish()?;
    Ok(Summary::of(&totals, resumed, stream_bytes, started))
}

/// Hands over what is read, each part with where it ends in the stream, until there is no more.
fn read(mut reader: Reader<impl Read>, out: &SyncSender<Message>) {
    loop {
        let part = match reader.next_part() {
            Ok(None) => return,
            Ok(Some(Streamed::Frame(frame))) => Part::Frame(frame),
            Ok(Some(Streamed::Entry { key, len })) => {
                let entry = Part::Entry { key, len };
                match send_value(&mut reader, entry, out) {
                    true => continue,
                    false => return,
                }
            }
            Err(error) => {
                let _ = out.send(Err(error));
                return;
            }
        };
        if out.send(Ok((part, reader.offset()))).is_err() {
            return;
        }
    }
}

/// Hands over an entry and its value; returns whether reading goes on.
fn send_value(reader: &mut Reader<impl Read>, entry: Part, out: &SyncSender<Message>) -> bool {
    let mut part = Ok(entry);
    loop {
        let ended = !matches!(part, Ok(Part::Entry { .. } | Part::Piece(_)));
        let failed = part.is_err();
        if out.send(part.map(|part| (part, reader.offset()))).is_err() || failed {
            return false;
        }
        if ended {
            return true;
        }
        let mut piece = Vec::new();
        part = reader.piece(&mut piece).map(|()| match piece.is_empty() {
            true => Part::Proved,
            false => Part::Piece(piece),
        });
    }
}
