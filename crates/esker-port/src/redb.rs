//! Reading a redb file without touching it.
//!
//! redb repairs a file that was not closed properly when it opens it, and verifies checksums only
//! in a check that may repair the file as well. So it gets the file through [`Overlay`]: reads come
//! from the file, what redb writes stays in memory. Then
//!
//! 1. a file that a crash left is read as redb would repair it,
//! 2. every page is verified before an entry is used,
//! 3. no byte of the file changes, and while it is read no redb opens it for writing.

mod overlay;

use crate::sink::Sink;
use crate::source::{ImportOptions, Source};
use crate::stream::KeyspaceInfo;
use crate::{Engine, Error, Result};
use overlay::Overlay;
use redb::{
    DatabaseError, Key, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    StorageError, TableDefinition, TableError, TableHandle, TypeName, Value,
};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// For redb's own cache: entries are read once.
const CACHE_BYTES: usize = 32 << 20;
/// Entries between two reports of how far reading has come.
const REPORT_ENTRIES: u64 = 4096;

/// A file that can be read.
pub(crate) struct Redb {
    path: PathBuf,
    db: redb::Database,
    bytes: u64,
}

impl Redb {
    /// Opens and proves it.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |operation| {
            let what = path.display().to_string();
            move |error| Error::io(operation, what, error)
        };
        let mut file = crate::foreign::open(path).map_err(failed("open"))?;
        let mut start = Vec::new();
        (&mut file).take(MAGIC.len() as u64).read_to_end(&mut start).map_err(failed("read"))?;
        if start != MAGIC {
            return Err(source(path, "it does not begin like one: name the file of a database"));
        }
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                return Err(source(path, "the database is open elsewhere: close it first"));
            }
            // File systems without locks: redb cannot use them there either.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let bytes = file.metadata().map_err(failed("look at"))?.len();
        let db = crate::sink::contained(Engine::Redb, path, || checked(path, file))?;
        Ok(Self { path: path.to_owned(), db, bytes })
    }
}

fn checked(path: &Path, file: File) -> Result<redb::Database> {
    let overlay = Overlay::new(file)
        .map_err(|error| Error::io("look at", path.display().to_string(), error))?;
    let mut builder = redb::Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let wrong = |error: DatabaseError| match error {
        DatabaseError::UpgradeRequired(version) => source(
            path,
            format!(
                "it has the older file format {version}: open it once with redb 2.6 and call \
                 Database::upgrade, then import it"
            ),
        ),
        other => damaged(path, &other.to_string()),
    };
    let mut db = builder.create_with_backend(overlay).map_err(wrong)?;
    if db.check_integrity().map_err(wrong)? {
        return Ok(db);
    }
    Err(damaged(path, "pages do not match their checksums"))
}

fn source(path: &Path, detail: impl Into<String>) -> Error {
    Error::Source { engine: Engine::Redb, path: path.to_owned(), detail: detail.into() }
}

fn damaged(path: &Path, what: &str) -> Error {
    source(path, format!("{what}: get another copy of it"))
}

impl Source for Redb {
    fn total_bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }

    fn read(self: Box<Self>, _: &ImportOptions, sink: &mut Sink) -> Result<()> {
        let Self { path, db, bytes } = *self;
        crate::sink::contained(Engine::Redb, &path, || {
            let storage = |error: StorageError| damaged(&path, &error.to_string());
            let reading = db.begin_read().map_err(|error| damaged(&path, &error.to_string()))?;
            if let Some(table) = reading.list_multimap_tables().map_err(storage)?.next() {
                let name = redb::MultimapTableHandle::name(&table).to_owned();
                return Err(source(
                    &path,
                    format!(
                        "its table {name:?} has several values for a key (a multimap), a keyspace holds \
                     one of each: import it with a program of your own that makes keys of them"
                    ),
                ));
            }
            let mut names: Vec<String> = reading
                .list_tables()
                .map_err(storage)?
                .map(|table| table.name().to_owned())
                .collect();
            names.sort();
            let mut reader = Tables { path: &path, reading: &reading, bytes, done: 0, all: 0 };
            // All tables are judged before the first entry is stored.
            for name in &names {
                reader.all += reader.open(name)?.len().map_err(storage)?;
            }
            names.iter().try_for_each(|name| reader.read(name, sink))
        })
    }
}

/// Reads tables.
struct Tables<'a> {
    path: &'a Path,
    reading: &'a ReadTransaction,
    bytes: u64,
    /// Entries that were read.
    done: u64,
    /// Entries of all tables.
    all: u64,
}

impl Tables<'_> {
    /// Opens a table whose keys and values are bytes.
    fn open(&self, name: &str) -> Result<redb::ReadOnlyTable<Keys, Values>> {
        KEYS.set(None);
        VALUES.set(None);
        // Types of which redb has none are asked for, and it says which there are.
        let stored = match self.reading.open_table(TableDefinition::<Keys, Values>::new(name)) {
            Err(TableError::TableTypeMismatch { key, value, .. }) => (key, value),
            Err(error) => return Err(damaged(self.path, &error.to_string())),
            Ok(_) => return Err(damaged(self.path, &format!("its table {name:?} has no types"))),
        };
        let (Some(key), Some(value)) = (bytes_of(&stored.0), bytes_of(&stored.1)) else {
            return Err(source(
                self.path,
                format!(
                    "its table {name:?} has keys of type {} and values of type {}, of which only redb \
                 knows the bytes and their order (&[u8], [u8; N], &str and String can be read): \
                 import it with a program of your own",
                    stored.0.name(),
                    stored.1.name()
                ),
            ));
        };
        KEYS.set(Some((stored.0, key)));
        VALUES.set(Some((stored.1, value)));
        let table = self.reading.open_table(TableDefinition::<Keys, Values>::new(name));
        table.map_err(|error| damaged(self.path, &error.to_string()))
    }

    fn read(&mut self, name: &str, sink: &mut Sink) -> Result<()> {
        let storage = |error: StorageError| damaged(self.path, &error.to_string());
        let table = self.open(name)?;
        sink.keyspace(KeyspaceInfo::named(name, None))?;
        let what = format!("its table {name:?}");
        for entry in table.iter().map_err(storage)? {
            let (key, value) = entry.map_err(storage)?;
            sink.ordered(&what, key.value(), value.value())?;
            self.done += 1;
            if self.done.is_multiple_of(REPORT_ENTRIES) {
                let part = self.done as f64 / self.all.max(1) as f64;
                sink.read_bytes((self.bytes as f64 * part) as u64);
            }
        }
        Ok(())
    }
}

/// The width of a type that is stored as plain bytes and ordered by them, where it is fixed.
/// `None`: it is not such a type.
fn bytes_of(stored: &TypeName) -> Option<Option<usize>> {
    let name = stored.name();
    if TypeName::new(name) == *stored {
        // Somebody's own type, whatever its name.
        return None;
    }
    match name {
        "&[u8]" | "&str" | "String" => Some(None),
        "()" => Some(Some(0)),
        _ => {
            let width = name.strip_prefix("[u8;")?.strip_suffix(']')?;
            width.trim().parse().ok().map(Some)
        }
    }
}

/// A type as the table has it, and its width where that is fixed.
type Stored = RefCell<Option<(TypeName, Option<usize>)>>;

// redb asks types, not values, what they are, and it asks on the thread that calls it. Which type
// stands in a table is known only when that is open, so the answer is kept here.
thread_local! {
    static KEYS: Stored = const { RefCell::new(None) };
    static VALUES: Stored = const { RefCell::new(None) };
}

/// Keys of whatever type the present table has.
#[derive(Debug)]
struct Keys;
/// Values of whatever type the present table has.
#[derive(Debug)]
struct Values;

macro_rules! stored {
    ($type:ty, $slot:ident) => {
        impl Value for $type {
            type SelfType<'a> = &'a [u8];
            type AsBytes<'a> = &'a [u8];

            fn fixed_width() -> Option<usize> {
                $slot.with_borrow(|stored| stored.as_ref().and_then(|(_, width)| *width))
            }

            fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
            where
                Self: 'a,
            {
                data
            }

            fn as_bytes<'a, 'b: 'a>(value: &'a &'b [u8]) -> &'a [u8]
            where
                Self: 'b,
            {
                value
            }

            fn type_name() -> TypeName {
                let stored =
                    $slot.with_borrow(|stored| stored.as_ref().map(|(name, _)| name.clone()));
                stored.unwrap_or_else(|| TypeName::new("esker: not known yet"))
            }
        }
    };
}

stored!(Keys, KEYS);
stored!(Values, VALUES);

impl Key for Keys {
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}
