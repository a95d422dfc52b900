//! What the harness asks of an engine, and the engines that answer.
//!
//! The trait is the least common denominator of embedded ordered stores: point operations, batches,
//! cursors in both directions, and the maintenance calls that a benchmark needs to be repeatable.
//! A thread works through a [`Session`], which owns whatever buffers its engine can reuse between
//! calls; the harness never makes an engine allocate where its own interface would not.
//!
//! Every adapter opens its engine as that engine's documentation recommends, at the durability class
//! and the memory asked for, and tells what it set ([`Engine::settings`]) so that a reader of the
//! report can judge the comparison.

mod esker;
#[cfg(feature = "peer-fjall")]
mod fjall;
mod mem;
mod null;

use crate::settings::Durability;
use crate::{Error, Result};
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::Path;

/// An engine that this build knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// Esker.
    Esker,
    /// A `BTreeMap` under a lock.
    Mem,
    /// Nothing at all: what the harness itself costs.
    Null,
    /// fjall 3.
    Fjall,
}

const ALL: &[(EngineKind, &str)] = &[
    (EngineKind::Esker, "esker"),
    (EngineKind::Mem, "mem"),
    (EngineKind::Null, "null"),
    (EngineKind::Fjall, "fjall"),
];

impl EngineKind {
    /// Parses a comma list of names.
    pub fn parse_list(list: &str) -> Result<Vec<Self>> {
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(Self::parse).collect()
    }

    fn parse(name: &str) -> Result<Self> {
        let found = ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        found.map(|(kind, _)| *kind).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|(_, known)| *known).collect();
            Error::usage(format!("there is no engine `{name}`: choose from {}", known.join(", ")))
        })
    }

    /// The name that users write.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Whether the engine keeps files.
    pub fn has_files(self) -> bool {
        !matches!(self, Self::Mem | Self::Null)
    }

    /// Fails if this build left the engine out.
    pub fn available(self) -> Result<()> {
        if self == Self::Fjall && !cfg!(feature = "peer-fjall") {
            return Err(Error::usage(
                "this build has no fjall: build again with `--features peer-fjall`",
            ));
        }
        Ok(())
    }

    /// Opens a database in `options.dir`, making it if it is not there.
    pub fn open(self, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
        self.available()?;
        match self {
            Self::Esker => Ok(Box::new(esker::EskerEngine::open(options)?)),
            Self::Mem => Ok(Box::new(mem::MemEngine::default())),
            Self::Null => Ok(Box::new(null::NullEngine)),
            #[cfg(feature = "peer-fjall")]
            Self::Fjall => Ok(Box::new(fjall::FjallEngine::open(options)?)),
            #[cfg(not(feature = "peer-fjall"))]
            Self::Fjall => Err(Error::usage("this build has no fjall")),
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for EngineKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions<'a> {
    /// The directory of the database.
    pub dir: &'a Path,
    /// Bytes of memory, if the user said.
    pub memory: Option<u64>,
    /// What a write survives unless it says otherwise.
    pub durability: Durability,
}

/// Bytes that an engine counted as written since it was opened, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EngineBytes {
    /// Keys and values of users.
    pub user: u64,
    /// Its log.
    pub log: u64,
    /// Flushes of memory to files.
    pub flush: u64,
    /// Merges (compaction).
    pub merge: u64,
    /// Everything else.
    pub other: u64,
}

impl EngineBytes {
    /// What was written between `earlier` and now.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            log: self.log.saturating_sub(earlier.log),
            flush: self.flush.saturating_sub(earlier.flush),
            merge: self.merge.saturating_sub(earlier.merge),
            other: self.other.saturating_sub(earlier.other),
        }
    }
}

/// The direction of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Reverse,
}

/// An open database.
pub trait Engine: Send + Sync {
    /// A session for one thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// Writes memory out to files.
    fn flush(&self) -> Result<()>;

    /// Brings the whole tree into its final shape.
    fn compact(&self) -> Result<()>;

    /// Returns when background work is done.
    fn wait_idle(&self) -> Result<()>;

    /// What was set at open, for the report.
    fn settings(&self) -> Vec<(String, String)>;

    /// Bytes written by cause, if the engine counts them.
    fn bytes_written(&self) -> Option<EngineBytes> {
        None
    }

    /// The engine's own statistics as text.
    fn stats(&self) -> String;

    /// Closes the database and reports what failed.
    fn close(self: Box<Self>) -> Result<()>;
}

/// One thread's access to a database.
pub trait Session {
    /// Writes one entry.
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()>;

    /// Deletes one entry.
    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()>;

    /// Adds a write to the batch under way.
    fn batch_put(&mut self, key: &[u8], value: &[u8]);

    /// Adds a deletion to the batch under way.
    fn batch_delete(&mut self, key: &[u8]);

    /// Commits the batch under way.
    fn batch_commit(&mut self, durability: Durability) -> Result<()>;

    /// Reads one entry; the length of its value, or none.
    fn get(&mut self, key: &[u8]) -> Result<Option<usize>>;

    /// Reads several entries in one call; the length of each value is handed to `found`.
    fn multi_get(&mut self, keys: &[Vec<u8>], found: &mut dyn FnMut(usize)) -> Result<()>;

    /// A cursor that starts at the first key at or behind `from` in its direction, or at the end.
    fn cursor(&mut self, from: Option<&[u8]>, direction: Direction)
    -> Result<Box<dyn Cursor + '_>>;
}

/// Walks over entries.
pub trait Cursor {
    /// The next entry, valid until the next call.
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>>;
}

#[cfg(test)]
mod tests;
