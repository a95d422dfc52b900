//! `esker import`: copies a database of another engine into a new one.

use crate::failure::Failure;
use crate::flags::{OpenFlags, keyspace_name};
use crate::progress;
use clap::{Args, ValueEnum};
use esker::Db;
use esker_port::{Engine, Import, ImportOptions};
use std::io::Write;
use std::path::PathBuf;

/// Copies a database of another engine into a new one, and changes nothing in the old one
#[derive(Debug, Args)]
#[command(after_help = "What is stored is read back and compared with what was read. Keyspaces \
    keep their names. A kind that this build cannot read is said with the command that makes one \
    that can.\n\nExample:\n  esker import --from leveldb OLD --to NEW")]
pub struct ImportArgs {
    /// The kind of database
    #[arg(long, value_enum, value_name = "KIND")]
    from: Kind,
    /// Its directory or file
    path: PathBuf,
    /// The new database's directory
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The keyspace for entries that are in no named keyspace of the old database
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = keyspace_name)]
    keyspace: String,
    #[command(flatten)]
    open: OpenFlags,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// The kinds of databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum Kind {
    /// LevelDB
    LevelDb,
    /// RocksDB
    RocksDb,
    /// LMDB
    Lmdb,
    /// fjall
    Fjall,
    /// redb
    Redb,
}

impl Kind {
    fn engine(self) -> Engine {
        match self {
            Self::LevelDb => Engine::LevelDb,
            Self::RocksDb => Engine::RocksDb,
            Self::Lmdb => Engine::Lmdb,
            Self::Fjall => Engine::Fjall,
            Self::Redb => Engine::Redb,
        }
    }
}

/// Runs the command.
pub fn run(args: &ImportArgs, out: &mut impl Write) -> Result<(), Failure> {
    let mut options = ImportOptions::default();
    options.keyspace = args.keyspace.clone();
    let import = Import::open(args.from.engine(), &args.path, options)?;
    let db = Db::open_with(&args.to, args.open.options())?;
    let mut line = progress::Line::new("importing");
    let summary = import.run(&db, &mut line)?;
    db.close()?;
    drop(line);
    progress::summary(out, "imported", &summary, args.json)?;
    Ok(())
}
