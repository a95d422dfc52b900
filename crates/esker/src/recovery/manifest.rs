//! The beginning of a life of the database: its new manifest, and the files that the last life
//! left.
//!
//! 1. Every open for writing begins a new manifest with the whole state (R7).
//! 2. Orphans are removed only if the manifest is whole, since only then they surely are orphans.
//!    If it has a torn end, they are set aside, because the end may be damage that looks like a
//!    torn end.

use crate::base::FileId;
use crate::directory::LOG_DIRECTORY;
use crate::directory::files::{Files, set_aside};
use crate::directory::reserve::Reserve;
use crate::events::{EventBus, EventKind};
use crate::options::Options;
use crate::recovery::description::Described;

use crate::error::{IoContext, Result};
use crate::fs::Fs;
use crate::manifest::{
    Known, Manifest, Store, Superblock, manifest_name, parse_manifest_name, read_records,
};
use std::path::Path;
use std::sync::Arc;

/// Begins a life of the database; uses the reserve if the device is full. `known`: what is known of
/// the log.
pub fn begin(
    path: &Path,
    options: &Options,
    described: &mut Described,
    files: &Arc<Files>,
    known: Known,
    events: &Arc<EventBus>,
) -> Result<(Arc<Reserve>, Store)> {
    let reserve = Reserve::find(&options.fs, &path.join(LOG_DIRECTORY), events);
    let known = (!options.read_only).then_some(known);
    let fs = options.fs.as_ref();
    let store = reserve.retry(|| begin_manifest(fs, path, described, files, known, events))?;
    Ok((reserve, store))
}

/// Starts a new manifest for this life of the database, and removes files to which nothing refers.
/// `known`: what is known of the log; `None`: the database is only read, and keeps its manifest.
fn begin_manifest(
    fs: &dyn Fs,
    path: &Path,
    described: &mut Described,
    files: &Arc<Files>,
    known: Option<Known>,
    events: &EventBus,
) -> Result<Store> {
    files.raise_next_id(described.next_file);
    let Some(known) = known else {
        let old = Manifest::open_read_only(fs, path, &described.manifest)?;
        return Ok(Store::new(old, described.log_start, &described.version));
    };
    let log_start = described.log_start;
    let live: std::collections::HashSet<FileId> =
        described.version.segments().map(|segment| segment.meta().file).collect();
    let old = described.manifest.number;
    let before = *described.superblocks.current();
    // Seeded: files that a damaged edit may have referred to are removed.
    let torn = torn_manifest(fs, path, described)?.filter(|_| !bug!("recovery_orphans_always_go"));
    // No edit ever referred to these files, and they may be what fills the device.
    let next_file = described.next_file;
    let mut aside = files.remove_orphans(&live, &|id| id >= next_file, torn)?;
    let (catalog, version) = (&described.catalog, &described.version);
    let state = catalog.whole_state(version, log_start, files.peek_next_id(), false);
    // A superblock may already name a later manifest: this step is repeated when space was missing.
    let new = Manifest::create_next(fs, path, old.max(before.manifest), &state)?;
    // Nothing is written to the old manifest, not even its successor's name. A sync of it may have
    // failed, and then a record after the lost one would look like damage (R7). The name is not
    // needed, since both manifests say the same until both superblocks are written.
    // Seeded: open removes old manifests while a superblock may still lead through them.
    bug!("recovery_old_manifests_go_first", remove_old_manifests(fs, path, new.number())?);
    let known = Known { manifest: new.reach(), ..known };
    let next = Superblock { manifest: new.number(), known: Some(known), ..before };
    described.superblocks.write_both(fs, path, next)?;
    // The old manifest may have held edits that were never synced. If the power had failed before
    // the new manifest was synced, these files would have been needed again (R7).
    aside |= files.remove_orphans(&live, &|_| true, torn)?;
    if let Some(torn) = torn.filter(|_| aside) {
        set_aside(fs, &path.join(manifest_name(torn)), torn)?;
        events.emit(EventKind::FilesSetAside { manifest: torn });
    }
    // Old manifests are removed only now: until the superblocks are written, they may name a
    // retired manifest, which leads to the present one (R12).
    remove_old_manifests(fs, path, new.number())?;
    let metas = described.version.segments().map(|segment| segment.meta());
    files.note_gaps(metas.map(|meta| (meta.file, meta.offset, meta.len)));
    Ok(Store::new(new, log_start, &described.version))
}

/// The number of the manifest with a torn end, after which an edit may have been lost that referred
/// to files that now seem to be orphans. It is the present manifest, or one that an interrupted
/// open retired before it had set the files aside: an open removes that manifest last.
fn torn_manifest(fs: &dyn Fs, path: &Path, described: &Described) -> Result<Option<u64>> {
    let present = described.manifest.number;
    let known = described.superblocks.current().known;
    // Nothing was ever written after the end of a manifest that was closed.
    if described.manifest.torn && !known.is_some_and(|known| known.closed) {
        return Ok(Some(present));
    }
    let entries = fs.list(path).context("list", path)?;
    let mut retired: Vec<u64> = entries
        .iter()
        .filter(|entry| entry.is_file())
        .filter_map(|entry| parse_manifest_name(&entry.name))
        .filter(|number| *number < present)
        .collect();
    retired.sort_unstable();
    let torn = |number: &u64| read_records(fs, path, *number).is_ok_and(|(read, _)| read.torn);
    Ok(retired.into_iter().rfind(torn))
}

/// Removes manifests that were retired, and manifests that were begun but never named.
fn remove_old_manifests(fs: &dyn Fs, path: &Path, current: u64) -> Result<()> {
    for entry in fs.list(path).context("list", path)? {
        let retired = |number| number != current;
        if entry.is_file() && parse_manifest_name(&entry.name).is_some_and(retired) {
            let stale = path.join(&entry.name);
            fs.remove_file(&stale).context("remove", &stale)?;
        }
    }
    fs.sync_dir(path).context("sync", path)
}
