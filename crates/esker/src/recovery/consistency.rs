//! Checks whether the files of a database agree with what is known about them. An open for writing
//! or for reading, `verify` and a repair all use this one check.
//!
//! 1. The valid superblock names the manifest, which reaches at least as far as is known.
//! 2. The log reaches at least as far as is known, from the position at which the manifest says
//!    that it begins.
//! 3. The manifest is not older than the log.
//!
//! The rules for torn ends (R6, R11) apply to what is not known, because no superblock records it
//! (version 1) or the process was killed before one could.

use crate::base::Seq;
use crate::directory::LOG_DIRECTORY;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::manifest::{self, Recovered, Superblock, Superblocks};
use crate::wal;
use std::path::Path;

/// What [`check`] found.
#[derive(Debug, Default)]
pub struct Consistency {
    /// What is damaged, missing or older than is known, so that open refuses; empty: nothing.
    pub damage: Vec<Error>,
    /// The number of the manifest, after successors, if it is what the superblocks say.
    pub manifest: Option<u64>,
}

impl Consistency {
    fn note(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Corruption(_) => self.damage.push(error),
            error => return Err(error),
        }
        Ok(())
    }
}

/// Checks superblocks, manifest and log of a database that is not open. Changes nothing.
///
/// # Errors
/// [`Error::Missing`] if there is no superblock, [`Error::UnknownFormat`] if a newer build wrote
/// it, and the errors of reading. Damage is part of the result.
pub fn check(fs: &dyn Fs, directory: &Path) -> Result<Consistency> {
    let mut found = Consistency::default();
    let (superblocks, manifest) = match read(fs, directory) {
        Ok(files) => files,
        Err(error) => return found.note(error).map(|()| found),
    };
    found.manifest = Some(manifest.number);
    let starts = manifest.edits.iter().rev();
    let Some(log_start) = starts.filter_map(|edit| edit.log_start).next() else {
        let path = directory.join(manifest::manifest_name(manifest.number));
        found.note(manifest::misfit(&path, "it does not say where the log begins"))?;
        return Ok(found);
    };
    let log = directory.join(LOG_DIRECTORY);
    let read = wal::recover(fs, &log, log_start, wal::Policy::Refuse, |_, _, _| Ok(()));
    let checked = read.and_then(|read| {
        check_age(directory, &manifest, &read)?;
        check_reach(directory, superblocks.current(), log_start, &read)
    });
    checked.or_else(|error| found.note(error))?;
    Ok(found)
}

/// Reads the superblocks and the manifest that they name, which must reach at least as far as is
/// known.
///
/// # Errors
/// [`Error::Missing`] if there is no superblock; what is damaged or older than is known.
pub fn read(fs: &dyn Fs, directory: &Path) -> Result<(Superblocks, Recovered)> {
    let superblocks = Superblocks::read(fs, directory)?
        .ok_or_else(|| Error::Missing { path: directory.to_owned() })?;
    let superblock = superblocks.current();
    let known = superblock.known.map(|known| known.manifest);
    let manifest = manifest::read(fs, directory, superblock.manifest, known)?;
    Ok((superblocks, manifest))
}

/// Refuses superblocks and a manifest that are older than the log.
pub fn check_age(directory: &Path, manifest: &Recovered, log: &wal::Recovered) -> Result<()> {
    manifest.check_log(directory, log)
}

/// Refuses a log that, read from `log_start`, does not reach as far as is known.
pub fn check_reach(
    directory: &Path,
    superblock: &Superblock,
    log_start: Seq,
    log: &wal::Recovered,
) -> Result<()> {
    let Some(known) = superblock.known else { return Ok(()) };
    log.check_reach(&directory.join(LOG_DIRECTORY), log_start, known.log)
}
