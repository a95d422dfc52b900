//! What runs of the machine come to, so that a test can tell whether they try what they are there for.
//!
//! The statistics of a database end with its life, so they are added up when it is closed or killed. What no
//! statistic has is watched: events tell why compactions begin, looks between two steps whether the governor
//! has changed the limit of the cache, and looks into value segments whether a value lies elsewhere.

use super::Machine;
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
/// Steps between two looks at the limit of the cache.
const STEPS_PER_LOOK: u64 = 20;

/// A value segment, by its file and its offset.
type Place = (u64, u64);

/// What runs came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// The most tiers that a tree had when a database was closed or killed.
    pub tiers: usize,
    /// Pushes from tier to tier.
    pub pushes: u64,
    /// Entries that compaction filters removed or changed.
    pub filtered: u64,
    /// How often iterators let their blocks go.
    pub let_go: u64,
    /// Changes of the cache's limit that looks have found.
    pub limits: u64,
    /// Compactions that were done because dead space could be given back.
    pub for_space: u64,
    /// Values that were found in another value segment than before.
    pub moved: u64,
    /// Ingestions that were committed.
    pub ingestions: u64,
    /// Bytes that were compressed more strongly because nobody read them.
    pub cooled: u64,
    /// Writes that did not wait and were done.
    pub unwaited: u64,
    /// Writes that would have had to wait, and were refused.
    pub refused: u64,
}

impl Reached {
    /// What both together came to.
    pub fn and(self, other: Self) -> Self {
        Self {
            tiers: self.tiers.max(other.tiers),
            pushes: self.pushes + other.pushes,
            filtered: self.filtered + other.filtered,
            let_go: self.let_go + other.let_go,
            limits: self.limits + other.limits,
            for_space: self.for_space + other.for_space,
            moved: self.moved + other.moved,
            ingestions: self.ingestions + other.ingestions,
            cooled: self.cooled + other.cooled,
            unwaited: self.unwaited + other.unwaited,
            refused: self.refused + other.refused,
        }
    }

    /// What nothing came to, by name.
    pub fn missing(&self) -> Vec<&'static str> {
        let counts = [
            ("tiers", self.tiers as u64),
            ("pushes", self.pushes),
            ("filtered", self.filtered),
            ("let_go", self.let_go),
            ("limits", self.limits),
            ("for_space", self.for_space),
            ("moved", self.moved),
            ("ingestions", self.ingestions),
            ("cooled", self.cooled),
            ("unwaited", self.unwaited),
            ("refused", self.refused),
        ];
        counts.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect()
    }
}

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

    /// Takes over where values lie now; how many of them lay elsewhere before, and only there.
    fn replace_values(&mut self, now: HashMap<u64, HashSet<Place>>) -> u64 {
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

impl Machine {
    /// Notes what this life of the database has come to, at its end.
    pub(super) fn note_reached(&mut self) {
        let stats = self.db().stats();
        let life = Reached {
            tiers: stats.trees.iter().map(|tree| tree.tiers.len()).max().unwrap_or(0),
            pushes: stats.pushes,
            filtered: stats.entries_filtered,
            let_go: stats.pins_let_go,
            ingestions: stats.ingestions,
            cooled: stats.bytes_cooled,
            ..Reached::default()
        };
        self.reached = self.reached.and(life);
    }

    /// Looks whether the governor has changed the limit of the cache.
    pub(super) fn watch_limit(&mut self) {
        if !self.steps.is_multiple_of(STEPS_PER_LOOK) {
            return;
        }
        let limit = self.db().stats().memory.cache_limit;
        self.reached.limits += u64::from(![0, limit].contains(&self.watched.limit));
        self.watched.limit = limit;
    }

    /// Looks which values have moved; the value segments to which the manifest refers are these.
    pub(super) fn watch_values(&mut self, segments: &HashMap<Place, SegmentMeta>) {
        let fs: Arc<dyn Fs> = self.disk.as_fs();
        let now = values_of(&fs, &self.path.join("data"), segments);
        self.reached.moved += self.watched.replace_values(now);
    }

    /// What all lives of the database have come to, at the end of the last one.
    pub(super) fn all_reached(&self) -> Reached {
        let for_space = self.watched.for_space.load(Ordering::Relaxed);
        Reached { for_space, ..self.reached }
    }
}
