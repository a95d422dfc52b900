//! Reading a fjall directory without touching it.
//!
//! fjall has no way to open a directory without writing to it: it cuts journals, makes files and
//! removes others. So it gets a separate directory:
//!
//! 1. Journals and descriptions, which it may write to, are copied.
//! 2. Tables and blobs, which are written once and never changed, are symbolic links (or copies
//!    where links are impossible): reads follow the link, removal removes only the link.
//! 3. It gets no background threads, so that it merges nothing.
//! 4. While it is read, a shared lock keeps fjall from opening the original.
//! 5. Each tree's `current` file names a version and carries the checksum of its file, which fjall
//!    does not check when it opens: a damaged number can name an older version, without an error.
//!    It is checked here first.

use crate::foreign;
use crate::sink::{Sink, contained};
use crate::source::{ImportOptions, Source};
use crate::stream::KeyspaceInfo;
use crate::{Engine, Error, Result};
use fjall::{Database, KeyspaceCreateOptions};
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_128;

/// Directories of files that never change.
const FIXED: [&str; 2] = ["tables", "blobs"];
/// For fjall's own cache: entries are read once.
const CACHE_BYTES: u64 = 16 << 20;
/// Entries between two reports of how far reading has come.
const REPORT_ENTRIES: u64 = 4096;
/// Deeper than fjall's directories are.
const DEPTH_MAX: usize = 8;
/// Each tree's file that names its present version.
const CURRENT: &str = "current";
/// What that file holds: the version's number (8 bytes), the XXH3 of its file (16), and the kind of
/// that checksum (1), of which there is one, 0. All little-endian.
const CURRENT_BYTES: usize = 8 + 16 + 1;

/// A directory that can be read.
pub(crate) struct Fjall {
    path: PathBuf,
    bytes: u64,
    // In this order: the stand-in is removed when nobody uses it any more.
    db: Database,
    _place: TempDir,
    _lock: Option<File>,
}

impl Fjall {
    /// Makes the stand-in and opens it.
    pub fn open(path: &Path) -> Result<Self> {
        let path = path.canonicalize().map_err(|error| failed("open", path, error))?;
        if path.join("partitions").is_dir() {
            return Err(source(
                &path,
                "it is of fjall 2 or older: bring it to fjall 3 with the tool at \
                 https://github.com/fjall-rs/migrate-v2-v3 and import the result",
            ));
        }
        if !path.join("version").is_file() || !path.join("keyspaces").is_dir() {
            return Err(source(
                &path,
                "it does not look like one: name the directory of a database",
            ));
        }
        let lock = lock(&path)?;
        check_versions(&path.join("keyspaces"))?;
        let place = tempfile::Builder::new().prefix("esker-import-").tempdir();
        let place =
            place.map_err(|error| failed("make a directory in", &std::env::temp_dir(), error))?;
        let mut bytes = 0;
        stand_in(&path, place.path(), false, 0, &mut bytes)?;
        let db = contained(Engine::Fjall, &path, || {
            let builder = Database::builder(place.path()).cache_size(CACHE_BYTES);
            let opened = builder.worker_threads_unchecked(0).open();
            opened.map_err(|error| wrong(&path, &error))
        })?;
        Ok(Self { path, bytes, db, _place: place, _lock: lock })
    }
}

/// Fills `to`; `fixed`: with links where there are some. Adds up the bytes of all files.
fn stand_in(from: &Path, to: &Path, fixed: bool, depth: usize, bytes: &mut u64) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(source(from, "it has more directories than fjall makes: name a database"));
    }
    for entry in std::fs::read_dir(from).map_err(|error| failed("list", from, error))? {
        let entry = entry.map_err(|error| failed("list", from, error))?;
        let (path, name) = (entry.path(), entry.file_name());
        let place = to.join(&name);
        let meta = path.metadata().map_err(|error| failed("look at", &path, error))?;
        if meta.is_dir() {
            std::fs::create_dir(&place).map_err(|error| failed("make", &place, error))?;
            let fixed = FIXED.iter().any(|fixed| name == *fixed);
            stand_in(&path, &place, fixed, depth + 1, bytes)?;
            continue;
        }
        // Neither a pipe nor a device is copied, nor shown to fjall.
        foreign::expect_file_or_directory(&meta).map_err(|error| failed("read", &path, error))?;
        *bytes += meta.len();
        if fixed {
            link(&path, &place).map_err(|error| failed("make", &place, error))?;
        } else {
            std::fs::copy(&path, &place).map_err(|error| failed("copy", &path, error))?;
        }
    }
    Ok(())
}

/// Refuses a directory of trees with one that is not in the version that it means.
fn check_versions(trees: &Path) -> Result<()> {
    for entry in std::fs::read_dir(trees).map_err(|error| failed("list", trees, error))? {
        let tree = entry.map_err(|error| failed("list", trees, error))?.path();
        // Without that file, fjall takes a tree for one that it has not finished making.
        if tree.join(CURRENT).exists() {
            check_version(&tree)?;
        }
    }
    Ok(())
}

/// Refuses a tree whose version file is not the one that its `current` file means.
fn check_version(tree: &Path) -> Result<()> {
    let path = tree.join(CURRENT);
    let damaged = |detail: String| {
        Err(source(&path, format!("{detail}: it is damaged, get another copy of the database")))
    };
    let current = read_whole(&path)?;
    let Ok(current) = <[u8; CURRENT_BYTES]>::try_from(current.as_slice()) else {
        return damaged(format!("it has {} bytes, not {CURRENT_BYTES}", current.len()));
    };
    let [a, b, c, d, e, f, g, h, checksum @ .., kind] = current;
    if kind != 0 {
        return damaged(format!("it names a checksum of kind {kind}, and there is kind 0 only"));
    }
    let name = format!("v{}", u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    if xxh3_128(&read_whole(&tree.join(&name))?) != u128::from_le_bytes(checksum) {
        return damaged(format!("it has another checksum than the version that it names, {name}"));
    }
    Ok(())
}

fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = foreign::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| failed("read", path, error))?;
    Ok(bytes)
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to).map(|_| ())
}

/// Keeps fjall from opening the directory while it is read, and checks whether fjall has it open.
fn lock(path: &Path) -> Result<Option<File>> {
    let path = path.join("lock");
    let opened = foreign::open_if_there(&path).map_err(|error| failed("open", &path, error))?;
    let Some(file) = opened else { return Ok(None) };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            Err(source(&path, "the database is open elsewhere: close it first"))
        }
        // File systems without locks: fjall cannot use them there either.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn failed(operation: &'static str, path: &Path, error: std::io::Error) -> Error {
    Error::io(operation, path.display().to_string(), error)
}

fn source(path: &Path, detail: impl Into<String>) -> Error {
    Error::Source { engine: Engine::Fjall, path: path.to_owned(), detail: detail.into() }
}

fn wrong(path: &Path, error: &fjall::Error) -> Error {
    match error {
        fjall::Error::InvalidVersion(version) => source(
            path,
            format!(
                "it has a format that fjall 3 does not read ({version:?}): bring it to that of \
                 fjall 3 with fjall's own tools, and import the result"
            ),
        ),
        other => source(path, format!("{other}: get another copy, or let fjall open a copy of it")),
    }
}

impl Source for Fjall {
    fn total_bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn read(self: Box<Self>, _: &ImportOptions, sink: &mut Sink) -> Result<()> {
        let Self { path, bytes, db, _place, _lock } = *self;
        contained(Engine::Fjall, &path, || {
            // It ends before its directory does.
            let db = db;
            let mut names: Vec<String> =
                db.list_keyspace_names().iter().map(|name| name.to_string()).collect();
            names.sort();
            let open = |name: &String| {
                let keyspace = db.keyspace(name, KeyspaceCreateOptions::default);
                keyspace.map_err(|error| wrong(&path, &error))
            };
            let keyspaces = names.iter().map(open).collect::<Result<Vec<_>>>()?;
            let all: u64 = keyspaces.iter().map(|keyspace| keyspace.approximate_len() as u64).sum();
            let mut done = 0;
            for (name, keyspace) in names.iter().zip(&keyspaces) {
                sink.keyspace(KeyspaceInfo::named(name, None))?;
                let what = format!("its keyspace {name:?}");
                for entry in keyspace.iter() {
                    let (key, value) = entry.into_inner().map_err(|error| wrong(&path, &error))?;
                    sink.ordered(&what, &key, &value)?;
                    done += 1;
                    if done % REPORT_ENTRIES == 0 {
                        sink.read_bytes(
                            (bytes as f64 * (done as f64 / all.max(done) as f64)) as u64,
                        );
                    }
                }
            }
            Ok(())
        })
    }
}
