//! Makes the files of a new database.
//!
//! The superblocks are written last: a directory without them, and without data, holds an
//! interrupted creation, and the database is created anew.

use crate::base::Seq;
use crate::commit::{LogConfig, Pipeline};
use crate::directory::{DATA_DIRECTORY, LOG_DIRECTORY};
use crate::error::{Error, IoContext, Result};
use crate::fs::Fs;
use crate::manifest::{Edit, FORMAT_VERSION, Known, Manifest, Superblock, Superblocks};
use crate::options::{LogKind, Options};
use crate::sync::Latch;
use crate::wal::FIRST_POSITION;
use std::path::Path;
use std::sync::Arc;

/// Creates a new, empty database in a directory that is ours and holds none.
pub fn create(fs: &Arc<dyn Fs>, path: &Path, options: &Options) -> Result<()> {
    let data = path.join(DATA_DIRECTORY);
    fs.create_dir(&data).context("create", &data)?;
    // The manifest says that the log begins here, so the first log file must exist before the
    // manifest becomes valid (R11).
    let file_bytes_max = u64::from(options.log_file_bytes);
    begin_log(fs, path, (options.log, Some(file_bytes_max)), FIRST_POSITION)?;
    let fs = fs.as_ref();
    let state = Edit { log_start: Some(FIRST_POSITION), next_file: Some(1), ..Edit::default() };
    let manifest = Manifest::create(fs, path, 1, &state)?;
    first_superblocks(fs, path, &manifest)
}

/// Makes the log of a new database, which begins at this position.
pub fn begin_log(
    fs: &Arc<dyn Fs>,
    path: &Path,
    (kind, file_bytes_max): (LogKind, Option<u64>),
    first: Seq,
) -> Result<()> {
    let mut config = LogConfig::new(fs.clone(), path.join(LOG_DIRECTORY));
    config.kind = kind;
    config.file_bytes_max = file_bytes_max.unwrap_or(config.file_bytes_max);
    Pipeline::create(config, first, Arc::new(Latch::new())).map(drop)
}

/// Writes the superblocks of a new database, with random bytes that identify it.
pub fn first_superblocks(fs: &dyn Fs, path: &Path, manifest: &Manifest) -> Result<()> {
    let mut database = [0; 16];
    getrandom::fill(&mut database)
        .map_err(|error| Error::io("draw random bytes for", path, std::io::Error::other(error)))?;
    let known = Known { manifest: manifest.reach(), ..Known::default() };
    let (generation, manifest, known) = (0, manifest.number(), Some(known));
    let version = FORMAT_VERSION;
    let first = Superblock { version, generation, manifest, database, known };
    Superblocks::create(fs, path, first).map(drop)
}
