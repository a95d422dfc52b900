//! The flags and values that several commands share.
//!
//! They say which database or branch a command works on and how it is opened, and which keyspace and
//! keys it works in. Arguments that stand for keys, values and names are words (see `word`): text as
//! it is, text between double quotes, hexadecimal after `0x`, or Base64 after `0xb64:`.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use esker::internals::base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX};
use esker::{Db, Durability, Error, Keyspace, LogKind, Options, Recovery};
use esker_port::word::{self, Encoding};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The database that a command works on.
#[derive(Debug, Args)]
pub struct Target {
    /// The database's directory
    pub dir: PathBuf,
    #[command(flatten)]
    pub open: OpenFlags,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Target {
    /// Opens an existing database without changing a byte of it.
    pub fn open_read_only(&self) -> Result<Db, Failure> {
        open_read_only(&self.dir, &self.open)
    }

    /// Opens a database for writing; `create` makes it if it is missing.
    pub fn open_to_write(&self, flags: &WriteFlags, create: bool) -> Result<Db, Failure> {
        let mut options = self.open.options();
        flags.apply(&mut options);
        options.create_if_missing = create;
        Ok(Db::open_with(&self.dir, options)?)
    }
}

/// Opens an existing database without changing a byte of it.
pub fn open_read_only(dir: &Path, flags: &OpenFlags) -> Result<Db, Failure> {
    let mut options = flags.options();
    options.read_only = true;
    options.create_if_missing = false;
    Ok(Db::open_with(dir, options)?)
}

/// The branch that a command works on.
#[derive(Debug, Args)]
pub struct BranchFlag {
    /// Work on this branch instead of the database itself; reading commands also take a named
    /// snapshot
    #[arg(long, value_name = "BRANCH", value_parser = branch_name)]
    pub branch: Option<String>,
}

impl BranchFlag {
    /// The branch or named snapshot of an open database, or the database itself if none is named.
    pub fn of(&self, db: Db) -> Result<Db, Failure> {
        let Some(name) = &self.branch else { return Ok(db) };
        match db.open_branch(name) {
            Err(Error::BranchMissing { .. }) => {}
            opened => return Ok(opened?),
        }
        match db.open_named_snapshot(name) {
            Err(Error::BranchMissing { .. }) => Err(no_branch(&db, name)),
            opened => Ok(opened?),
        }
    }

    /// The same for a command that writes: it fails before it has begun if the name is that of a
    /// named snapshot.
    pub fn of_writable(&self, db: Db) -> Result<Db, Failure> {
        let db = self.of(db)?;
        match &self.branch {
            Some(name) if db.named_snapshots()?.contains(name) => Err(Failure::Negative(format!(
                "{name:?} is a named snapshot, which cannot be written to: make a branch of it with \
                 `esker branch --make NEW --branch {}`",
                word::name(name)
            ))),
            _ => Ok(db),
        }
    }
}

/// Says that a database has neither a branch nor a named snapshot of this name.
pub fn no_branch(db: &Db, name: &str) -> Failure {
    Failure::Negative(format!(
        "there is no branch or named snapshot {name:?} in {}: `esker branch` lists them",
        db.path().display()
    ))
}

/// The database, or the branch of one, whose data a command works on.
#[derive(Debug, Args)]
pub struct DataTarget {
    #[command(flatten)]
    pub database: Target,
    #[command(flatten)]
    pub branch: BranchFlag,
}

impl DataTarget {
    /// Whether to print JSON.
    pub fn json(&self) -> bool {
        self.database.json
    }

    /// Opens what exists without changing a byte of it.
    pub fn open_read_only(&self) -> Result<Db, Failure> {
        self.branch.of(self.database.open_read_only()?)
    }

    /// Opens for writing; `create` makes the database if it is missing. A database that is made has
    /// no branches, so none is made for a branch.
    pub fn open_to_write(&self, flags: &WriteFlags, create: bool) -> Result<Db, Failure> {
        let create = create && self.branch.branch.is_none();
        self.branch.of_writable(self.database.open_to_write(flags, create)?)
    }
}

/// How keys and values are printed.
#[derive(Debug, Args)]
pub struct ShowFlags {
    /// Print all keys and values in hexadecimal
    #[arg(long, conflicts_with = "base64")]
    pub hex: bool,
    /// Print all keys and values in Base64
    #[arg(long)]
    pub base64: bool,
}

impl ShowFlags {
    /// What these flags ask for.
    pub fn encoding(&self) -> Encoding {
        match (self.hex, self.base64) {
            (true, _) => Encoding::Hex,
            (_, true) => Encoding::Base64,
            _ => Encoding::Text,
        }
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
    #[arg(long, value_name = "KEY", value_parser = bytes)]
    pub from: Option<Bytes>,
    /// The key to stop before
    #[arg(long, value_name = "KEY", value_parser = bytes)]
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

/// Reads a key or a value. The engine checks its length and fails with its own code; where that would
/// come too late for a key, [`Bytes::fits`] checks first.
pub fn bytes(text: &str) -> Result<Bytes, String> {
    word::decode(text.as_bytes()).map(Bytes).map_err(|error| error.to_string())
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
    name(text, "keyspace")
}

/// Reads the name of a branch or named snapshot.
pub fn branch_name(text: &str) -> Result<String, String> {
    name(text, "branch")
}

fn name(text: &str, what: &str) -> Result<String, String> {
    let name = String::from_utf8(bytes(text)?.0);
    let name = name.map_err(|_| format!("the name of a {what} is UTF-8"))?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!("the name of a {what} has 1 to {NAME_BYTES_MAX} bytes"));
    }
    Ok(name)
}

/// Reads a time to live: a number with one of the units ms, s, m, h and d.
pub fn time_to_live(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!("{text} is not a time to live: write a number with ms, s, m, h or d, such as 90s")
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    match number.checked_mul(unit) {
        Some(0) => Err("a time to live is more than nothing: leave it out, or use del".to_owned()),
        Some(millis) => Ok(Duration::from_millis(millis)),
        None => Err(wrong()),
    }
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
