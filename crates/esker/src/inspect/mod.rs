//! Showing any file of a database to a human, field by field, without opening the database.
//!
//! The result is a list of fields and values. A field is a path of names and offsets, such as
//! `record[64].kind`, and no two are the same. Damage is shown as such, with its offset, and
//! what stands behind it is still shown. Nothing is changed and nothing is locked: the
//! file of a running database is shown as it is at that moment. Numbers are decimal, nonces and
//! checksums hexadecimal, keys escaped and cut where they are long.

mod fields;
mod log;
mod manifest;
mod run;
mod statistics;
#[cfg(test)]
mod tests;

use crate::directory::LOCK_NAME;
use crate::error::{Error, IoContext, Result};
use crate::fs::{Fs, OpenMode, PathKind};
use crate::manifest::{SUPERBLOCK_NAMES, Superblock, parse_manifest_name};
use crate::monitor::statistics::STATISTICS_NAME;
use crate::run::parse_run_name;
use crate::wal;
use fields::{Fields, size};
use std::path::Path;

/// Shows a file of a database: a superblock, a manifest, a log file, a run file, the statistics or
/// the lock.
/// Names tell the kind of a file; the first bytes tell it of a file that was renamed.
///
/// # Errors
/// [`Error::Io`] if it cannot be read, [`Error::UnknownFormat`] if a newer build wrote it, and
/// [`Error::InvalidArgument`] if it is not a file of a database.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// esker::Db::open(&dir)?.close()?;
/// let fields = esker::internals::inspect::file(dir.path().join("superblock-A"))?;
/// assert!(fields.contains(&("file".to_owned(), "superblock".to_owned())));
/// # Ok::<(), esker::Error>(())
/// ```
pub fn file(path: impl AsRef<Path>) -> Result<Vec<(String, String)>> {
    let path = path.as_ref();
    let fs = crate::fs::os();
    let mut fields = Fields::default();
    match kind_of(fs.as_ref(), path)? {
        What::Superblock => superblock(fs.as_ref(), path, &mut fields)?,
        What::Manifest(number) => manifest::show(fs.as_ref(), path, number, &mut fields)?,
        What::Log => log::show(fs.as_ref(), path, &mut fields)?,
        What::Run(id) => run::show(fs.as_ref(), path, id, &mut fields)?,
        What::Statistics => statistics::show(fs.as_ref(), path, &mut fields)?,
        What::Lock => {
            fields.add("file", "lock");
            fields.add("bytes", size(fs.as_ref(), path)?);
            fields.add("content", "none: only its lock means something");
        }
    }
    Ok(fields.list)
}

/// What a file is, and the number that its name gives it.
enum What {
    Superblock,
    Manifest(Option<u64>),
    Log,
    Run(Option<u64>),
    Lock,
    Statistics,
}

fn kind_of(fs: &dyn Fs, path: &Path) -> Result<What> {
    match fs.kind(path).context("look at", path)? {
        Some(PathKind::File) => {}
        Some(found) => return Err(foreign(path, &format!("is {found}"))),
        None => {
            let missing = std::io::ErrorKind::NotFound.into();
            return Err(Error::io("open", path, missing));
        }
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let numbers = (parse_manifest_name(name), parse_run_name(name));
    match numbers {
        (Some(number), _) => return Ok(What::Manifest(Some(number))),
        (_, Some(id)) => return Ok(What::Run(Some(id))),
        _ if SUPERBLOCK_NAMES.contains(&name) => return Ok(What::Superblock),
        _ if wal::file_number(name).is_some() => return Ok(What::Log),
        _ if name == LOCK_NAME => return Ok(What::Lock),
        _ if name == STATISTICS_NAME => return Ok(What::Statistics),
        _ => {}
    }
    let file = fs.open(path, OpenMode::Read).context("open", path)?;
    let mut magic = [0; 8];
    if file.read_at(&mut magic, 0).is_err() {
        return Err(foreign(path, "is no file of an Esker database"));
    }
    match &magic {
        b"ESKERSB\n" => Ok(What::Superblock),
        b"ESKERMF\n" => Ok(What::Manifest(None)),
        b"eskerrun" => Ok(What::Run(None)),
        b"ESKERST\n" => Ok(What::Statistics),
        magic if *magic == wal::format::MAGIC => Ok(What::Log),
        _ => Err(foreign(path, "is no file of an Esker database")),
    }
}

fn foreign(path: &Path, what: &str) -> Error {
    Error::invalid(format!(
        "{} {what}: name a superblock, a MANIFEST, a file of `wal` or `data`, or the LOCK",
        path.display()
    ))
}

fn superblock(fs: &dyn Fs, path: &Path, fields: &mut Fields) -> Result<()> {
    fields.add("file", "superblock");
    fields.add("bytes", size(fs, path)?);
    match Superblock::read_file(fs, path) {
        Ok(Some(superblock)) => {
            fields.add("format version", superblock.version);
            fields.add("generation", superblock.generation);
            fields.add("manifest", crate::manifest::manifest_name(superblock.manifest));
            let id: String = superblock.database.iter().map(|b| format!("{b:02x}")).collect();
            fields.add("database", id);
            fields.add("checksum", "right");
            let Some(known) = superblock.known else { return Ok(()) };
            fields.add("known.manifest.nonce", format!("{:#018x}", known.manifest.nonce));
            fields.add("known.manifest.bytes", known.manifest.len);
            fields.add("known.manifest.hash", format!("{:#018x}", known.manifest.hash));
            fields.add("known.log.position", known.log.position);
            fields.add("known.log.segment", format!("{:#018x}", known.log.nonce));
            fields.add("known.closed", known.closed);
        }
        Ok(None) => fields.add("damaged[0]", "the file is empty"),
        Err(error) => fields.damage("damaged[0]", error)?,
    }
    Ok(())
}
