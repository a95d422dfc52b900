//! What the manifest of a database says: its superblocks, its catalog and its trees.
//!
//! The edits are applied in order. Each run file and each run segment has one object, however often
//! the manifest names it.

use crate::base::{Bytewise, FileId, Seq};
use crate::catalog::{Catalog, Order};
use crate::directory::files::Files;
use crate::error::Result;
use crate::events::{EventBus, EventKind};
use crate::fs::Fs;
use crate::manifest::{self, Superblocks, Trees, Version, check_tree, misfit};
use crate::options::Options;
use crate::recovery::consistency;
use crate::run::{RunFile, Segment, SegmentMeta};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What the manifest of a database says.
pub struct Described {
    /// The superblocks.
    pub superblocks: Superblocks,
    /// The manifest, as it was read.
    pub manifest: manifest::Recovered,
    /// The trees.
    pub version: Version,
    /// The keyspaces and branches.
    pub catalog: Catalog,
    /// Where the log begins.
    pub log_start: Seq,
    /// The first file number that was never given out.
    pub next_file: FileId,
}

/// Reads the content of the manifest, and checks that it is consistent.
pub fn describe(
    fs: &Arc<dyn Fs>,
    path: &Path,
    files: &Arc<Files>,
    options: &Options,
    events: &EventBus,
) -> Result<Described> {
    let since = Instant::now();
    let (superblocks, mut manifest) = consistency::read(fs.as_ref(), path)?;
    let manifest_path = path.join(manifest::manifest_name(manifest.number));
    let mut catalog = Catalog::new(options.comparators.clone())
        .with_code(options.merge_operators.clone(), &options.compaction_filters);
    let mut trees = Trees::default();
    let (mut log_start, mut next_file) = (None, 1);
    let mut objects = Objects { files, by_id: HashMap::new(), segments: HashMap::new() };
    // Each edit is freed once it is applied: until then its content is in memory twice.
    for edit in std::mem::take(&mut manifest.edits) {
        log_start = edit.log_start.or(log_start);
        next_file = edit.next_file.unwrap_or(next_file).max(next_file);
        catalog.apply(&edit).map_err(|what| misfit(&manifest_path, what))?;
        trees
            .apply(&edit, &mut |meta| objects.segment(meta))
            .map_err(|what| misfit(&manifest_path, what))?;
    }
    let version = trees.version();
    check_trees(&manifest_path, &version, &catalog)?;
    let log_start =
        log_start.ok_or_else(|| misfit(&manifest_path, "it does not say where the log begins"))?;
    events.emit(EventKind::ManifestRead {
        manifest: manifest.number,
        trees: version.trees().len() as u64,
        segments: version.segments().count() as u64,
        torn: manifest.torn,
        duration: since.elapsed(),
    });
    for (keyspace, filter) in catalog.missing_filters() {
        events.emit(EventKind::FilterMissing { keyspace, filter });
    }
    Ok(Described { superblocks, manifest, version, catalog, log_start, next_file })
}

fn check_trees(path: &Path, version: &Version, catalog: &Catalog) -> Result<()> {
    for (id, tree) in version.trees() {
        let keyspace =
            catalog.by_id(*id).ok_or_else(|| misfit(path, "a tree belongs to no keyspace"))?;
        match &keyspace.order {
            Order::Bytewise => check_tree(&Bytewise, tree),
            Order::Custom(order) => check_tree(order, tree),
            // Without the comparator the order cannot be checked; the keyspace cannot be opened
            // anyway.
            Order::Missing(_) => Ok(()),
        }
        .map_err(|what| misfit(path, what))?;
    }
    Ok(())
}

/// Creates one object per file and segment, however often the manifest names it.
struct Objects<'f> {
    files: &'f Arc<Files>,
    by_id: HashMap<FileId, Arc<RunFile>>,
    segments: HashMap<(FileId, u64), Arc<Segment>>,
}

impl Objects<'_> {
    /// It and the value segments to which it refers.
    fn segment(&mut self, meta: &SegmentMeta) -> Arc<Segment> {
        let files = self.files;
        Segment::of(meta, |meta, values| {
            let file = self.by_id.entry(meta.file).or_insert_with(|| files.run_file(meta.file));
            let new = || Segment::with_values(meta.clone(), file.clone(), values);
            self.segments.entry(meta.place()).or_insert_with(new).clone()
        })
    }
}
