//! The run files of a database are those to which its manifest refers: none is missing, and none is left.

use esker::Db;
use esker::fs::Fs;
use esker::internals::manifest::{self, Superblocks, Version};
use esker::internals::run::{RunFile, Segment, SegmentKind, SegmentMeta};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the background is asked to finish before what is left counts as forgotten, each time
/// after a longer pause: a call that the system has put to sleep keeps old states of the tree until
/// it goes on, and does not tell.
const ATTEMPTS: u32 = 14;
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The stretches of run files that a manifest refers to, by file.
type Live = BTreeMap<u64, BTreeSet<(u64, u64)>>;

/// Value segments, by their places.
pub type ValueSegments = HashMap<(u64, u64), SegmentMeta>;

/// Waits until a database has nothing left to do, and checks that its run files are those that its manifest names. No
/// iterator may be there that holds others, and no gates that hold a thread. Returns the value segments.
///
/// # Panics
/// If a file is missing, or is left to which nothing refers.
pub fn check(db: &Db, fs: &Arc<dyn Fs>, path: &Path) -> ValueSegments {
    let mut left = Vec::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(FIRST_PAUSE * (1 << attempt));
        }
        db.wait_until_idle().unwrap_or_else(|e| panic!("idle: {e}"));
        esker::internals::sync::pin().flush();
        let (live, values) = live(fs, path);
        let there = files(fs, path);
        let missing: Vec<_> = live.keys().filter(|file| !there.contains(file)).collect();
        assert!(missing.is_empty(), "files are missing: {missing:?}");
        left = there.into_iter().filter(|file| !live.contains_key(file)).collect();
        if left.is_empty() {
            return values;
        }
    }
    panic!("files that nothing refers to and nobody removes: {left:?}");
}

fn files(fs: &Arc<dyn Fs>, path: &Path) -> BTreeSet<u64> {
    let entries = fs.list(&path.join("data")).unwrap_or_else(|e| panic!("list: {e}"));
    entries.iter().filter_map(|entry| entry.name.strip_suffix(".run")?.parse().ok()).collect()
}

/// What the manifest on the disk refers to, and the value segments in it.
fn live(fs: &Arc<dyn Fs>, path: &Path) -> (Live, ValueSegments) {
    let superblocks = Superblocks::read(fs.as_ref(), path);
    let superblocks = superblocks.unwrap_or_else(|e| panic!("superblocks: {e}"));
    let number = superblocks.map_or(1, |superblocks| superblocks.current().manifest);
    let manifest = manifest::read(fs.as_ref(), path, number, None);
    let manifest = manifest.unwrap_or_else(|e| panic!("manifest: {e}"));
    let data = path.join("data");
    let object = |meta: &SegmentMeta, values| {
        let file = RunFile::new(fs, &data, meta.file, None, None);
        Segment::with_values(meta.clone(), file, values)
    };
    let mut segment = |meta: &SegmentMeta| Segment::of(meta, object);
    let mut version = Version::default();
    for edit in &manifest.edits {
        let next = version.apply(edit, &mut segment);
        version = next.unwrap_or_else(|what| panic!("manifest: {what}"));
    }
    let (mut live, mut values) = (Live::new(), ValueSegments::new());
    for segment in version.segments() {
        let meta = segment.meta();
        live.entry(meta.file).or_default().insert((meta.offset, meta.len));
        if meta.kind == SegmentKind::Values {
            values.insert(meta.place(), meta.clone());
        }
    }
    (live, values)
}
