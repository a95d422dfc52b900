//! Reading a RocksDB directory without touching it.
//!
//! RocksDB opens it read-only: it replays its logs into memory and writes no file, not even its
//! info log. It takes no lock for that, so a shared lock is taken here, which keeps a writing
//! RocksDB from opening it.
//!
//! 1. Logs that a crash cut are read to the cut; damage before it is an error, where RocksDB's
//!    default would leave out what follows.
//! 2. The manifest is verified to its end first, and one with a torn end is refused: RocksDB would
//!    show the state before it.
//! 3. Blocks are verified by their checksums, and the options that the directory keeps are used as
//!    far as this build of RocksDB knows them: they may name comparators, merge operators and
//!    places of files.

use crate::foreign;
use crate::leveldb::manifest;
use crate::sink::{Sink, contained};
use crate::source::{ImportOptions, Source};
use crate::stream::KeyspaceInfo;
use crate::{Engine, Error, Result};
use rocksdb::{Cache, ColumnFamilyDescriptor, DB, DBRecoveryMode, Env, Options, ReadOptions};
use std::fs::File;
use std::path::{Path, PathBuf};

/// For RocksDB's own cache: entries are read once.
const CACHE_BYTES: usize = 16 << 20;
/// Read ahead by iterators.
const READ_BYTES: usize = 2 << 20;
/// Entries between two reports of how far reading has come.
const REPORT_ENTRIES: u64 = 4096;

/// A directory that can be read.
pub(crate) struct RocksDb {
    path: PathBuf,
    db: DB,
    names: Vec<String>,
    bytes: u64,
    _lock: Option<File>,
}

impl RocksDb {
    /// Opens all column families.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join("CURRENT").is_file() {
            return Err(source(path, "there is no file CURRENT: name the directory of a database"));
        }
        let bytes = files_bytes(path)?;
        let lock = crate::lock::shared(Engine::RocksDb, path)?;
        manifest::prove(Engine::RocksDb, path)?;
        let wrong = |error| wrong(path, &error);
        let (names, db) = contained(Engine::RocksDb, path, || {
            let (options, families) = described(path)?;
            let names: Vec<String> =
                families.iter().map(|family| family.name().to_owned()).collect();
            let db = DB::open_cf_descriptors_read_only(&options, path, families, false);
            Ok((names, db.map_err(wrong)?))
        })?;
        Ok(Self { path: path.to_owned(), db, names, bytes, _lock: lock })
    }
}

/// The options that the directory keeps, or the usual ones, and the column families.
fn described(path: &Path) -> Result<(Options, Vec<ColumnFamilyDescriptor>)> {
    let wrong = |error| wrong(path, &error);
    let cache = Cache::new_lru_cache(CACHE_BYTES);
    let env = Env::new().map_err(wrong)?;
    let names = DB::list_cf(&Options::default(), path).map_err(wrong)?;
    let (mut options, mut families) =
        Options::load_latest(path, env, true, cache).unwrap_or_default();
    // The file of options may be older than the last column family.
    families.retain(|family| names.iter().any(|name| name == family.name()));
    for name in names {
        if !families.iter().any(|family| family.name() == name) {
            families.push(ColumnFamilyDescriptor::new(name, Options::default()));
        }
    }
    options.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
    options.set_max_open_files(512);
    options.create_if_missing(false);
    Ok((options, families))
}

/// Bytes of all files in the directory, which holds nothing but files and directories.
fn files_bytes(path: &Path) -> Result<u64> {
    let failed = |path: &Path, error| Error::io("look at", path.display().to_string(), error);
    let mut bytes = 0;
    for entry in std::fs::read_dir(path).map_err(|error| failed(path, error))? {
        let entry = entry.map_err(|error| failed(path, error))?.path();
        // Links are followed, as RocksDB does it; it would wait for a pipe for ever.
        let meta = entry.metadata().map_err(|error| failed(&entry, error))?;
        foreign::expect_file_or_directory(&meta).map_err(|error| failed(&entry, error))?;
        bytes += meta.len();
    }
    Ok(bytes)
}

fn source(path: &Path, detail: impl Into<String>) -> Error {
    Error::Source { engine: Engine::RocksDb, path: path.to_owned(), detail: detail.into() }
}

fn wrong(path: &Path, error: &rocksdb::Error) -> Error {
    let said = error.to_string();
    let remedy = if said.to_ascii_lowercase().contains("comparator") {
        "import it with a program that has its comparator"
    } else if said.to_ascii_lowercase().contains("merge") {
        "let the program that has its merge operator compact it first"
    } else {
        "get another copy, or let RocksDB's own repair mend a copy of it"
    };
    source(path, format!("{said}: {remedy}"))
}

impl Source for RocksDb {
    fn total_bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn read(self: Box<Self>, _: &ImportOptions, sink: &mut Sink) -> Result<()> {
        let Self { path, db, mut names, bytes, _lock } = *self;
        names.sort();
        let wrong = |error| wrong(&path, &error);
        contained(Engine::RocksDb, &path, || {
            let family = |name: &String| {
                db.cf_handle(name).ok_or_else(|| source(&path, format!("{name:?} went away")))
            };
            let mut all = 0;
            for name in &names {
                let estimate = "rocksdb.estimate-num-keys";
                let keys = db.property_int_value_cf(family(name)?, estimate).map_err(wrong)?;
                all += keys.unwrap_or_default();
            }
            let mut done = 0;
            for name in &names {
                sink.keyspace(KeyspaceInfo::named(name, None))?;
                let what = format!("its column family {name:?}");
                let mut iter = db.raw_iterator_cf_opt(family(name)?, reading());
                iter.seek_to_first();
                while let Some((key, value)) = iter.item() {
                    sink.ordered(&what, key, value)?;
                    iter.next();
                    done += 1;
                    if done % REPORT_ENTRIES == 0 {
                        let part = done as f64 / all.max(done) as f64;
                        sink.read_bytes((bytes as f64 * part) as u64);
                    }
                }
                iter.status().map_err(wrong)?;
            }
            Ok(())
        })
    }
}

fn reading() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(true);
    options.fill_cache(false);
    options.set_readahead_size(READ_BYTES);
    // Whatever prefixes its filters were made for: everything, in order.
    options.set_total_order_seek(true);
    options
}
