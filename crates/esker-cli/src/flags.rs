//! The flags and values that several commands share.
//!
//! They say which database a command works on and how it is opened, and which keyspace and keys it
//! works in. Arguments that stand for keys and values are tokens (see `token`): plain text, or
//! hexadecimal after `0x`.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use esker::internals::base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX};
use esker::{Db, Durability, Keyspace, LogKind, Options, Recovery};
use esker_port::token;
use std::ops::Bound;
use std::path::PathBuf;

#[cfg(test)]
mod tests;

/// The database that a command works on.
#[derive(Debug, Args)]
pub struct Target {
    /// The database's directory
    pub dir: PathBuf,
    #[command(flatten)]
    pub open: OpenFlags,
    /// Print JSON; keys and values in it are tokens, as on the command line
    #[arg(long)]
    pub json: bool,
}

impl Target {
    /// Opens an existing database without changing a byte of it.
    pub fn open_read_only(&self) -> Result<Db, Failure> {
        let mut options = self.open.options();
        options.read_only = true;
        options.create_if_missing = false;
        Ok(Db::open_with(&self.dir, options)?)
    }

    /// Opens a database for writing; `create` makes it if it is missing.
    pub fn open_to_write(&self, flags: &WriteFlags, create: bool) -> Result<Db, Failure> {
        let mut options = self.open.options();
        flags.apply(&mut options);
        options.create_if_missing = create;
        Ok(Db::open_with(&self.dir, options)?)
    }
}

/// The keyspace that a command works in.
#[derive(Debug, Args)]
pub struct KeyspaceFlag {
    /// The keyspace's name
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = keyspace_name)]
    pub keyspace: String,
}

impl KeyspaceFlag {
    /// The keyspace, which must exist: `Db::keyspace` would make it.
    pub fn existing(&self, db: &Db) -> Result<Keyspace, Failure> {
        if self.keyspace == "default" {
            return Ok(db.default_keyspace());
        }
        if !db.keyspaces()?.contains(&self.keyspace) {
            return Err(Failure::Negative(format!(
                "there is no keyspace {:?} in {}: `esker keyspaces` lists them",
                self.keyspace,
                db.path().display()
            )));
        }
        Ok(db.keyspace(&self.keyspace)?)
    }
}

/// The keys that a command works on.
#[derive(Debug, Args)]
pub struct RangeFlags {
    /// The first key
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub from: Option<Bytes>,
    /// The key to stop before
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub to: Option<Bytes>,
}

impl RangeFlags {
    /// Whether no bound was given.
    pub fn is_everything(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// The bounds as the engine takes them.
    pub fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let from = self.from.clone().map_or(Bound::Unbounded, |key| Bound::Included(key.0));
        let to = self.to.clone().map_or(Bound::Unbounded, |key| Bound::Excluded(key.0));
        (from, to)
    }
}

/// How a database is opened.
#[derive(Debug, Args)]
pub struct OpenFlags {
    /// The memory budget, such as 64MiB [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Use memtables, partitions and files so small that little data exercises everything
    #[arg(long, hide = true)]
    pub tiny: bool,
}

impl OpenFlags {
    /// The engine's options for these flags.
    pub fn options(&self) -> Options {
        let mut options = Options::default();
        options.memory = self.memory;
        if self.tiny {
            options.memtable_bytes = Some(256 << 10);
            options.partition_bytes = Some(256 << 10);
            options.segment_bytes = 32 << 10;
            options.block_bytes = 1 << 10;
            options.log_file_bytes = 256 << 10;
        }
        options
    }
}

/// How a database is opened for writing.
#[derive(Debug, Args)]
pub struct WriteFlags {
    /// What a write survives that gives no class
    #[arg(long, value_enum, value_name = "CLASS", default_value = "process")]
    pub durability: Class,
    /// What to do about a damaged log
    #[arg(long, value_enum, value_name = "HOW", default_value = "refuse")]
    pub recovery: OnDamage,
    /// How the log is written
    #[arg(long, value_enum, value_name = "KIND", default_value = "auto", hide = true)]
    pub log: Log,
}

impl WriteFlags {
    /// Enters these flags into the engine's options.
    pub fn apply(&self, options: &mut Options) {
        options.durability = match self.durability {
            Class::Buffered => Durability::Buffered,
            Class::Process => Durability::Process,
            Class::Disk => Durability::Disk,
        };
        options.recovery = match self.recovery {
            OnDamage::Refuse => Recovery::Refuse,
            OnDamage::KeepPrefix => Recovery::KeepPrefix,
        };
        options.log = match self.log {
            Log::Auto => LogKind::Auto,
            Log::Plain => LogKind::Plain,
            Log::Mapped => LogKind::Mapped,
        };
    }
}

/// What a write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Class {
    /// Nothing until it is flushed
    Buffered,
    /// The end of the process
    Process,
    /// Power loss
    Disk,
}

/// What to do about a damaged log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnDamage {
    /// Fail and name the choices
    Refuse,
    /// Keep the records before the damage and discard the rest of the log
    KeepPrefix,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)] // The engine's `LogKind` says what they are.
pub enum Log {
    Auto,
    Plain,
    Mapped,
}

/// Bytes that stand for a key or a value on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// Reads a key. The engine checks its length and fails with its own code; where that would come
/// too late, [`Bytes::fits`] checks first.
pub fn key(text: &str) -> Result<Bytes, String> {
    token::decode(text.as_bytes()).map(Bytes).map_err(|error| error.to_string())
}

impl Bytes {
    /// Whether this can be a key: checked before a command makes a database for it.
    pub fn fits(&self) -> Result<(), Failure> {
        let len = self.0.len();
        if len > KEY_BYTES_MAX {
            return Err(esker::Error::KeyTooLong { len, max: KEY_BYTES_MAX }.into());
        }
        Ok(())
    }
}

/// Reads the name of a keyspace.
pub fn keyspace_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(format!("a keyspace's name has 1 to {NAME_BYTES_MAX} bytes"));
    }
    Ok(text.to_owned())
}

/// Reads a size: bytes, or a number with one of the units K, M, G, T (of 1,024); `KB` and `KiB`
/// are the same as `K`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text} is not a size: write bytes, or a number with KiB, MiB or GiB");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}
