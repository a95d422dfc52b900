//! What no statistic says: events tell why compactions are done, looks between two steps whether the governor
//! has changed the limit of the cache, and looks into value segments whether a value lies elsewhere than before.

use esker::fs::Fs;
use esker::internals::run::{DamagedFile, SegmentMeta};
use esker::{Event, EventKind, Options};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shorter values may be equal to a piece of another one by chance.
const TELLING_BYTES_MIN: usize = 24;

/// A value segment, by its file and its offset.
pub(super) type Place = (u64, u64);

/// What is watched while a database is open.
#[derive(Default)]
pub(super) struct Watched {
    for_space: Arc<AtomicU64>,
    /// The limit of the cache at the last look; 0: there was none in this life.
    limit: u64,
    /// Where values lay at the last look, by a hash of the value: no two writes have the same one.
    values: HashMap<u64, HashSet<Place>>,
}

impl Watched {
    /// Listens to the events of a database that is about to be opened.
    pub(super) fn listen(&mut self, options: &mut Options) {
        self.limit = 0;
        let count = self.for_space.clone();
        options.on_event = Some(Arc::new(move |event: &Event| {
            if let EventKind::CompactionEnd { cause: "space", outcome: "done", .. } = event.kind {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }

    /// How many compactions for space are done.
    pub(super) fn for_space(&self) -> u64 {
        self.for_space.load(Ordering::Relaxed)
    }

    /// Whether the limit of the cache is another one than at the look before, in the same life.
    pub(super) fn see_limit(&mut self, now: u64) -> bool {
        let before = std::mem::replace(&mut self.limit, now);
        ![0, now].contains(&before)
    }

    /// Looks where the values of these value segments lie; how many of them lay elsewhere before, and only there.
    pub(super) fn see_values(
        &mut self,
        fs: &Arc<dyn Fs>,
        data: &Path,
        segments: &HashMap<Place, SegmentMeta>,
    ) -> u64 {
        let now = values_of(fs, data, segments);
        let moved = now.iter().filter(|(value, places)| {
            let before = self.values.get(*value);
            before.is_some_and(|before| !before.is_empty() && before.is_disjoint(places))
        });
        let count = moved.count() as u64;
        self.values = now;
        count
    }
}

/// Where the values of these value segments lie.
fn values_of(
    fs: &Arc<dyn Fs>,
    data: &Path,
    segments: &HashMap<Place, SegmentMeta>,
) -> HashMap<u64, HashSet<Place>> {
    let mut values: HashMap<u64, HashSet<Place>> = HashMap::new();
    for (place, meta) in segments {
        let file = DamagedFile::open(fs.as_ref(), data, meta.file);
        let file = Arc::new(file.unwrap_or_else(|e| panic!("a file of values: {e}")));
        let mut blocks = file.blocks(meta);
        while blocks.advance() {
            let value = blocks.block().map(|block| block.value(0)).unwrap_or_default();
            // Pieces of a long value do not begin like a value, and may be equal.
            if value.len() >= TELLING_BYTES_MIN && value[0] == b'v' && value[1].is_ascii_digit() {
                let mut hasher = DefaultHasher::new();
                value.hash(&mut hasher);
                values.entry(hasher.finish()).or_default().insert(*place);
            }
        }
        assert!(blocks.lost().is_empty(), "a value segment is damaged: {:?}", blocks.lost());
    }
    values
}
