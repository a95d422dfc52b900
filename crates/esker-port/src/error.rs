//! Errors: each names the thing that failed and, in its one-line message, the remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The result of every fallible call of this crate.
///
/// # Example
/// ```
/// use esker_port::{DumpOptions, Quiet};
/// fn text_of(db: &esker::Db) -> esker_port::Result<String> {
///     let mut options = DumpOptions::default();
///     options.form = esker_port::Form::Text;
///     let mut text = Vec::new();
///     esker_port::dump(db, &mut text, "memory", &options, &mut Quiet)?;
///     Ok(String::from_utf8_lossy(&text).into_owned())
/// }
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # db.insert("apple", "red")?;
/// assert!(text_of(&db)?.contains("apple"));
/// # Ok::<(), esker_port::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A store that an import reads.
///
/// # Example
/// ```
/// let engine = esker_port::Engine::Lmdb;
/// assert_eq!((engine.name(), engine.word()), ("LMDB", "lmdb"));
/// assert!(engine.is_built_in());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// LevelDB: a directory.
    LevelDb,
    /// RocksDB: a directory.
    RocksDb,
    /// LMDB: a directory or a file.
    Lmdb,
    /// fjall: a directory.
    Fjall,
    /// redb: a file.
    Redb,
}

impl Engine {
    /// The name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::LevelDb => "LevelDB",
            Self::RocksDb => "RocksDB",
            Self::Lmdb => "LMDB",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
        }
    }

    /// The name as `esker import --from` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::LevelDb => "leveldb",
            Self::RocksDb => "rocksdb",
            Self::Lmdb => "lmdb",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
        }
    }

    /// Whether this build can read it. If not, it lacks the feature `import-` with this word, of
    /// this crate and of the program.
    ///
    /// # Example
    /// ```
    /// assert!(esker_port::Engine::LevelDb.is_built_in());
    /// ```
    pub fn is_built_in(self) -> bool {
        match self {
            Self::LevelDb | Self::Lmdb => true,
            Self::RocksDb => cfg!(feature = "import-rocksdb"),
            Self::Fjall => cfg!(feature = "import-fjall"),
            Self::Redb => cfg!(feature = "import-redb"),
        }
    }
}

/// Why a dump, a load or an import failed.
///
/// # Example
/// ```
/// use esker_port::{Error, LoadOptions, Quiet};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let stream = &b"something else"[..];
/// match esker_port::load(&db, stream, "memory", &LoadOptions::default(), &mut Quiet) {
///     Ok(loaded) => println!("{} entries", loaded.entries),
///     Err(Error::NotADump { what }) => assert_eq!(what, "memory"),
///     Err(other) => return Err(other),
/// }
/// # Ok::<(), esker_port::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused or failed.
    Engine(esker::Error),
    /// The operating system refused an operation on a file or stream.
    Io {
        /// What was attempted, as a verb.
        operation: &'static str,
        /// The file or stream.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The stream does not begin like a dump.
    NotADump {
        /// The file or stream.
        what: String,
    },
    /// The stream is of a version that this build does not know.
    UnknownVersion {
        /// The file or stream.
        what: String,
        /// The version that it declares.
        found: u32,
    },
    /// Bytes of the stream differ from what was written.
    Damaged {
        /// The file or stream.
        what: String,
        /// Where the damaged part begins, in bytes.
        offset: u64,
        /// What is wrong.
        detail: String,
    },
    /// The stream ends before its end mark.
    CutOff {
        /// The file or stream.
        what: String,
        /// How many bytes there were.
        offset: u64,
    },
    /// An unfinished dump cannot continue: it is of another database or selection, or holds what the database no
    /// longer shows.
    CannotResume {
        /// The unfinished file.
        what: PathBuf,
        /// What is different.
        detail: &'static str,
    },
    /// The file to which the dump would be written exists.
    FileExists {
        /// The file.
        path: PathBuf,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A keyspace selected for a dump does not exist.
    NoKeyspace {
        /// Its name.
        keyspace: String,
    },
    /// The dump lacks a keyspace selected for a load.
    NotInDump {
        /// The file or stream.
        what: String,
        /// Its name.
        keyspace: String,
    },
    /// The database to write to is not empty.
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// The database holds an unfinished load or import.
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// The stored entries differ from what was read.
    Differs {
        /// The directory.
        path: PathBuf,
        /// What does not agree.
        detail: String,
    },
    /// A store to import from cannot be read.
    Source {
        /// Which kind of store.
        engine: Engine,
        /// The file or directory.
        path: PathBuf,
        /// What is wrong and what to do.
        detail: String,
    },
    /// This build has no reader for that kind of store.
    NotBuiltIn {
        /// Which kind of store.
        engine: Engine,
    },
}

impl Error {
    /// The error of reading a value from the database.
    pub(crate) fn of_value(error: io::Error) -> Self {
        let engine = error.get_ref().and_then(|inner| inner.downcast_ref::<esker::Error>());
        match engine {
            Some(engine) => Self::Engine(engine.clone()),
            None => Self::io("read", "a value of the database", error),
        }
    }

    pub(crate) fn io(operation: &'static str, what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { operation, what: what.into(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => write!(f, "{error}"),
            Self::Io { operation, what, source } => {
                write!(f, "cannot {operation} {what}: {source}")
            }
            Self::NotADump { what } => {
                write!(
                    f,
                    "{what} is not a dump of an Esker database: name one made by `esker dump`"
                )
            }
            Self::UnknownVersion { what, found } => {
                write!(f, "{what} has dump version {found}, this build reads 1: use a newer build")
            }
            Self::Damaged { what, offset, detail } => write!(
                f,
                "{what} is damaged at offset {offset} ({detail}): get another copy, or make the dump again"
            ),
            Self::CutOff { what, offset } => write!(
                f,
                "{what} ends after {offset} bytes, before its end mark: get the whole of it; \
                 a load goes on where it stopped"
            ),
            Self::CannotResume { what, detail } => write!(
                f,
                "{} cannot be gone on with ({detail}): remove it and dump from the start",
                what.display()
            ),
            Self::FileExists { path, remedy } => {
                write!(f, "there already is a file at {}: {remedy}", path.display())
            }
            Self::NoKeyspace { keyspace } => {
                write!(f, "there is no keyspace {keyspace:?}: `esker keyspaces` lists them")
            }
            Self::NotInDump { what, keyspace } => write!(
                f,
                "there is no keyspace {keyspace:?} in {what}: `esker load` without --keyspace loads \
                 all that there are; remove the new database and start anew"
            ),
            Self::NotEmpty { path } => write!(
                f,
                "{} holds data already: name a new directory; a load adds to it with --existing",
                path.display()
            ),
            Self::Unfinished { path } => write!(
                f,
                "{} holds a load or import that was not finished: run that again, \
                 or remove the directory",
                path.display()
            ),
            Self::Differs { path, detail } => write!(
                f,
                "what is stored in {} is not what was read ({detail}): remove it, check the \
                 device and start anew",
                path.display()
            ),
            Self::Source { engine, path, detail } => {
                write!(f, "cannot read {} as {}: {detail}", path.display(), engine.name())
            }
            Self::NotBuiltIn { engine } => write!(
                f,
                "this build cannot read {}: make one that can with `cargo build --release \
                 --features import-{}`, and import with target/release/esker",
                engine.name(),
                engine.word(),
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Engine(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<esker::Error> for Error {
    fn from(error: esker::Error) -> Self {
        Self::Engine(error)
    }
}
