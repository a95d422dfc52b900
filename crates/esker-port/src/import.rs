//! Importing from other stores.
//!
//! One thread reads the source and passes entries on in frames, the calling thread stores them. At
//! the end everything stored is read back: its checksum must equal that of the source's entries.

use crate::dump::QUEUE;
use crate::loader::Loader;
use crate::parts::{Message, Part, Value};
use crate::sink::Sink;
use crate::source::{ImportOptions, Source};
use crate::stream::Frame;
use crate::{Engine, Error, Progress, Result, Step, Summary};
use esker::Db;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_128;

fn open(engine: Engine, path: &Path, options: &ImportOptions) -> Result<Box<dyn Source>> {
    Ok(match engine {
        Engine::LevelDb => Box::new(crate::leveldb::LevelDb::open(path, options)?),
        Engine::Lmdb => Box::new(crate::lmdb::Lmdb::open(path)?),
        #[cfg(feature = "import-fjall")]
        Engine::Fjall => Box::new(crate::fjall::Fjall::open(path)?),
        #[cfg(feature = "import-redb")]
        Engine::Redb => Box::new(crate::redb::Redb::open(path)?),
        #[cfg(feature = "import-rocksdb")]
        Engine::RocksDb => Box::new(crate::rocksdb::RocksDb::open(path)?),
        #[allow(unreachable_patterns, reason = "a build may have all of them")]
        other => return Err(Error::NotBuiltIn { engine: other }),
    })
}

/// A store to import from that was opened, and not yet read.
///
/// # Example
/// ```
/// use esker_port::{Engine, Import, ImportOptions, Quiet};
/// # let dir = tempfile::tempdir().unwrap();
/// # let (old, new) = (std::path::Path::new("tests/fixtures/leveldb/db"), dir.path());
/// let import = Import::open(Engine::LevelDb, old, ImportOptions::default())?;
/// let db = esker::Db::open(new)?;
/// let imported = import.run(&db, &mut Quiet)?;
/// println!("{} entries, {} bytes", imported.entries, imported.bytes);
/// # assert_eq!(db.iter()?.count() as u64, imported.entries);
/// # Ok::<(), esker_port::Error>(())
/// ```
pub struct Import {
    engine: Engine,
    path: PathBuf,
    options: ImportOptions,
    source: Box<dyn Source>,
}

impl Import {
    /// Opens a store of another engine for reading, without changing a byte of it. Do this before
    /// you make the database to import into: most mistakes show here.
    ///
    /// # Errors
    /// [`Error::Source`] if it is not a store of this kind, is open elsewhere, is damaged, or
    /// needs something that is missing here; [`Error::NotBuiltIn`]; [`Error::Io`].
    ///
    /// # Example
    /// ```
    /// use esker_port::{Engine, Error, Import, ImportOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let letter = dir.path().join("letter.txt");
    /// std::fs::write(&letter, "Dear reader").unwrap();
    /// let opened = Import::open(Engine::Lmdb, &letter, ImportOptions::default());
    /// assert!(matches!(opened, Err(Error::Source { engine: Engine::Lmdb, .. })));
    /// ```
    pub fn open(engine: Engine, path: &Path, options: ImportOptions) -> Result<Self> {
        let source = open(engine, path, &options)?;
        Ok(Self { engine, path: path.to_owned(), options, source })
    }

    /// Imports all entries that the store shows, and reads them back.
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::Io`]; [`Error::NotEmpty`], [`Error::Unfinished`];
    /// [`Error::Differs`]; [`Error::Engine`]. The database is then marked as unfinished, and the
    /// same import can be run again.
    ///
    /// # Example
    /// ```
    /// use esker_port::{Engine, Import, ImportOptions, Step};
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # let old = std::path::Path::new("tests/fixtures/leveldb/db");
    /// let import = Import::open(Engine::LevelDb, old, ImportOptions::default())?;
    /// let mut seen = 0;
    /// let imported = import.run(&db, &mut |step: Step| seen = step.entries)?;
    /// assert!(seen <= imported.entries);
    /// # Ok::<(), esker_port::Error>(())
    /// ```
    pub fn run(self, db: &Db, progress: &mut dyn Progress) -> Result<Summary> {
        let started = Instant::now();
        let Self { engine, path, options, source } = self;
        let id = source_id(engine, &path);
        let mut loader = Loader::new(db, &options.comparators, id, false)?;
        let (out, parts) = sync_channel(QUEUE);
        let read = Arc::new(AtomicU64::new(0));
        let total = source.total_bytes();
        let sink = Sink::new(engine, &path, out, read.clone());
        let options = &options;
        let (stored, given) = std::thread::scope(|scope| {
            let reading = scope.spawn(move || {
                let mut sink = sink;
                source.read(options, &mut sink)?;
                sink.finish()
            });
            let stored = store(&mut loader, parts, &read, total, progress);
            let given = match reading.join() {
                Ok(given) => given,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            (stored, given)
        });
        let resumed = loader.resumed();
        let totals = match stored.and(given) {
            Ok(totals) => totals,
            Err(error) => {
                loader.stop().ok();
                return Err(error);
            }
        };
        loader.settle()?;
        loader.read_back(&totals)?;
        loader.finish()?;
        Ok(Summary::of(&totals, resumed, total.unwrap_or_default(), started))
    }
}

/// Stores what is handed over until there is no more.
fn store(
    loader: &mut Loader<'_>,
    parts: Receiver<Message>,
    read: &AtomicU64,
    total: Option<u64>,
    progress: &mut dyn Progress,
) -> Result<()> {
    let mut done = Step::default();
    for part in &parts {
        let (entries, bytes) = match part?.0 {
            Part::Frame(Frame::Keyspace(info)) => {
                loader.keyspace(&info)?;
                continue;
            }
            Part::Frame(Frame::Entries(entries)) => {
                loader.entries(&entries)?;
                (entries.len(), entries.bytes())
            }
            Part::Entry { key, len } => {
                loader.entry_from(&key, len, &mut Value::new(&parts, None))?;
                (1, key.len() as u64 + len)
            }
            Part::Frame(Frame::End(_)) | Part::Piece(_) | Part::Proved => continue,
        };
        done.entries += entries;
        done.bytes += bytes;
        let read = read.load(Ordering::Relaxed) as f64;
        done.fraction = total.map(|total| (read / total.max(1) as f64).min(0.99));
        progress.step(done);
    }
    Ok(())
}

/// Identifies an import that is run again.
fn source_id(engine: Engine, path: &Path) -> [u8; 16] {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    xxh3_128(format!("{} {}", engine.word(), path.display()).as_bytes()).to_be_bytes()
}
