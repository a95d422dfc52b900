//! Reading a LevelDB directory without touching it.
//!
//! The result is what LevelDB itself would show after opening it: the tables that the manifest
//! names and the logs that it has not seen yet, merged; of each key the version with the highest
//! sequence number, and nothing where that is a deletion. No file is made, renamed or written,
//! not even `LOG`; while it is read, a shared lock on `LOCK` keeps LevelDB from opening it.
//!
//! 1. Every block and record is verified by its CRC-32C before it is used, and every length and
//!    offset is compared with the file.
//! 2. Damage is an error, never a gap: LevelDB would drop a damaged record of the log in silence,
//!    an import must not.
//!
//! The format is that of LevelDB's `doc/log_format.md`, `doc/table_format.md` and
//! `db/version_edit.cc`.

mod checksum;
mod fault;
mod key;
mod log;
pub(crate) mod manifest;
mod memory;
mod merge;
mod table;

use crate::sink::Sink;
use crate::source::{self, ImportOptions};
use crate::stream::KeyspaceInfo;
use crate::{Engine, Error, Result};
use fault::{bad, failed};
use key::{Order, split};
use manifest::Version;
use merge::{Chain, Merge, Source};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The name of LevelDB's byte order.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// A directory that can be read.
pub(crate) struct LevelDb {
    path: PathBuf,
    version: Version,
    order: Order,
    memory: memory::Memory,
    total: u64,
    /// Held while it is read.
    _lock: Option<File>,
}

impl LevelDb {
    /// Reads the description and the logs.
    pub fn open(path: &Path, options: &ImportOptions) -> Result<Self> {
        let source = |detail: &str| Error::Source {
            engine: Engine::LevelDb,
            path: path.to_owned(),
            detail: detail.to_owned(),
        };
        let names = list(path)?;
        if !names.iter().any(|name| name == "CURRENT") {
            return Err(source(
                "there is no file CURRENT: name the directory of a LevelDB database",
            ));
        }
        if names.iter().any(|name| name == "IDENTITY" || name.starts_with("OPTIONS-")) {
            return Err(source("it was made by RocksDB: say --from rocksdb"));
        }
        let lock = crate::lock::shared(Engine::LevelDb, path)?;
        let mut version = Version::read(path)?;
        let order = match version.comparator.as_str() {
            BYTEWISE => Order::Bytewise,
            name => match options.comparators.iter().find(|order| order.name() == name) {
                Some(_) if options.keyspace == "default" => {
                    return Err(source(&format!(
                        "its keys are ordered by {name:?}, those of the keyspace default by their \
                         bytes: name another keyspace for them"
                    )));
                }
                Some(order) => Order::Custom(order.clone()),
                None => {
                    return Err(source(&format!(
                        "its keys are ordered by {name:?}: import it from a program that has \
                         this comparator, with the crate esker-port"
                    )));
                }
            },
        };
        let mut memory = memory::Memory::default();
        let mut logs: Vec<u64> =
            names.iter().filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect();
        logs.retain(|&number| number >= version.log_number || Some(number) == version.previous_log);
        logs.sort_unstable();
        let mut total = 0;
        for number in logs {
            total += memory.replay(&path.join(log_name(&names, number)))?;
        }
        version.last_sequence = version.last_sequence.max(memory.last_sequence());
        memory.sort(&order);
        for files in version.levels.iter_mut().skip(1) {
            files.sort_by(|a, b| {
                let [(key_a, tag_a), (key_b, tag_b)] = [a, b].map(|file| split(&file.smallest));
                order.compare(key_a, key_b).then_with(|| tag_b.cmp(&tag_a))
            });
        }
        total += version.levels.iter().flatten().map(|file| file.size).sum::<u64>();
        Ok(Self { path: path.to_owned(), version, order, memory, total, _lock: lock })
    }

    fn table_path(&self, number: u64) -> Result<PathBuf> {
        for ending in ["ldb", "sst"] {
            let path = self.path.join(format!("{number:06}.{ending}"));
            if path.exists() {
                return Ok(path);
            }
        }
        Err(bad(&self.path.join(format!("{number:06}.ldb")), 0, "the manifest's table is missing"))
    }
}

impl source::Source for LevelDb {
    fn total_bytes(&self) -> Option<u64> {
        Some(self.total)
    }

    fn read(mut self: Box<Self>, options: &ImportOptions, sink: &mut Sink) -> Result<()> {
        let comparator = match &self.order {
            Order::Bytewise => None,
            Order::Custom(order) => Some(order.name()),
        };
        sink.keyspace(KeyspaceInfo::named(&options.keyspace, comparator))?;
        let mut sources = vec![Source::Memory(std::mem::take(&mut self.memory).cursor())];
        for (level, files) in self.version.levels.iter().enumerate() {
            let paths: Vec<PathBuf> =
                files.iter().map(|file| self.table_path(file.number)).collect::<Result<_>>()?;
            if level == 0 {
                // These overlap each other.
                for path in paths {
                    sources.push(Source::Tables(Chain::new(vec![path])));
                }
            } else if !paths.is_empty() {
                sources.push(Source::Tables(Chain::new(paths)));
            }
        }
        Merge::new(sources, self.order.clone(), self.version.last_sequence)?.run(&self.path, sink)
    }
}

fn list(path: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(path).map_err(failed("list", path))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let names = names.collect::<std::io::Result<Vec<_>>>().map_err(failed("list", path))?;
    Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

/// The name of a log: usually six digits, but what stands in the directory counts.
fn log_name(names: &[String], number: u64) -> &str {
    let fits = |name: &&String| {
        name.strip_suffix(".log").and_then(|digits| digits.parse().ok()) == Some(number)
    };
    names.iter().find(fits).map_or("", String::as_str)
}
