//! LevelDB, and any other library with its C interface, loaded at run time.
//!
//! `leveldb` is the library of the system, `capi:PATH` any other. Both are opened with the library's
//! defaults. The tuned variants get what LevelDB's documentation recommends for speed: a cache of the
//! bytes given and a Bloom filter of 10 bits a key.
//!
//! *Durability*: a write goes through the log to the operating system before it returns (class
//! `process`, its default); `sync` adds the fsync (class `disk`). The log cannot be left out, so class
//! `buffered` is the same as `process`. *Ranges*: no call deletes a range, so keys are read and deleted
//! in batches. *Waiting*: no call waits, so the adapter polls the shape of the tree until no level is
//! too large and nothing changes.

use crate::Result;
use crate::engines::Durability;
use crate::engines::memory::machine_memory;
use crate::engines::native::leveldb::{Batch, Database, Iter, Library};
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session, Tuning};
use std::time::Duration;

/// The names under which systems know LevelDB, Debian's first.
pub const NAMES: &[&str] =
    &["libleveldb.so.1d", "libleveldb.so.1", "libleveldb.so", "libleveldb.1.dylib"];
const BLOOM_BITS: i32 = 10;
/// Bytes of the cache that LevelDB makes for itself.
const CACHE_DEFAULT: &str = "8 MiB (its default)";
/// Files in level 0 and bytes in level 1 at which LevelDB compacts; each level has ten times more.
const LEVEL0_FILES: f64 = 4.0;
const LEVEL1_MIB: f64 = 10.0;
const LEVELS: usize = 7;
/// Behind every key of the harness.
const BEHIND_ALL: [u8; 64] = [0xFF; 64];

const PAUSE: Duration = Duration::from_millis(50);
/// Pauses without a change after which a tree within its limits is at rest.
const RESTED: u32 = 5;
/// Pauses without a change after which any tree is: other libraries have other limits.
const RESTED_ANYWAY: u32 = 200;

/// An open database.
pub struct LevelEngine {
    db: Database,
    version: String,
    settings: Vec<(String, String)>,
}

/// Opens or makes the database with the library of the specification, or the system's.
pub fn open(spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let (library, path) = match spec.library() {
        Some(path) => (Library::load(&[path]), path),
        None => (Library::load(NAMES), NAMES[0].as_ref()),
    };
    let library = library.map_err(|cause| spec.missing_library(path, cause))?;
    let (major, minor) = library.version();
    let version = match spec.library() {
        Some(path) => format!("{} (LevelDB's interface, {major}.{minor})", path.display()),
        None => format!("LevelDB {major}.{minor}"),
    };
    let tuned = spec.tuning() == Tuning::Tuned;
    let quarter = || machine_memory().unwrap_or(1 << 30) / 4;
    let cache = options.memory.or_else(|| tuned.then(quarter));
    let cache = cache.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let bloom = tuned.then_some(BLOOM_BITS);
    let db = library.open(options.dir, cache, bloom)?;
    let log = match options.durability {
        Durability::Buffered => "written to the operating system (it cannot be left out)",
        Durability::Process => "written to the operating system by every write (its default)",
        Durability::Disk => "synced by every write (sync)",
    };
    let filter =
        bloom.map_or("none (its default)".into(), |bits| format!("Bloom, {bits} bits a key"));
    let settings = vec![
        ("cache".into(), cache.map_or(CACHE_DEFAULT.into(), |bytes| format!("{bytes} bytes"))),
        ("filter".into(), filter),
        ("log".into(), log.into()),
        ("deletion of a range".into(), "key by key, in batches".into()),
        ("everything else".into(), "defaults".into()),
    ];
    Ok(Box::new(LevelEngine { db, version, settings }))
}

/// Whether no level is so large that LevelDB would compact it, by its table of levels: the number,
/// files, and MiB in the first columns.
fn within_limits(table: &str) -> bool {
    table.lines().all(|line| {
        let mut columns = line.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(level)), Some(Ok(files)), Some(Ok(size))) =
            (columns.next(), columns.next(), columns.next())
        else {
            return true;
        };
        if level == 0.0 {
            files < LEVEL0_FILES
        } else {
            size < LEVEL1_MIB * 10_f64.powf(level - 1.0)
        }
    })
}

impl LevelEngine {
    /// Files of every level, and the table of levels.
    fn shape(&self) -> (Vec<Option<String>>, String) {
        let files = |level| self.db.property(&format!("leveldb.num-files-at-level{level}"));
        ((0..LEVELS).map(files).collect(), self.db.property("leveldb.stats").unwrap_or_default())
    }
}

impl Engine for LevelEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LevelSession { db: &self.db, batch: self.db.batch() }))
    }

    fn flush(&self) -> Result<()> {
        // A compaction begins with the memtable; of a range that nobody uses, it ends there.
        self.db.compact_at(&BEHIND_ALL);
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.db.compact();
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        let mut rested = 0;
        let mut seen = self.shape();
        loop {
            std::thread::sleep(PAUSE);
            let now = self.shape();
            rested = if now == seen { rested + 1 } else { 0 };
            if rested >= RESTED && within_limits(&now.1) || rested >= RESTED_ANYWAY {
                return Ok(());
            }
            seen = now;
        }
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn stats(&self) -> String {
        self.db.property("leveldb.stats").unwrap_or_else(|| "none".into())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct LevelSession<'a> {
    db: &'a Database,
    batch: Batch<'a>,
}

impl Session for LevelSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.db.put(key, value, durability == Durability::Disk)
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.db.delete(key, durability == Durability::Disk)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.delete(key);
    }

    fn batch_commit(&mut self, durability: Durability) -> Result<()> {
        self.batch.commit(durability == Durability::Disk)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.db.get(key, found)
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let mut iter = self.db.iter();
        let back = direction == Direction::Reverse;
        match from {
            None => iter.seek_to_end(back),
            Some(from) => {
                iter.seek(from);
                if back {
                    before_or_at(&mut iter, from)?;
                }
            }
        }
        Ok(Box::new(LevelCursor { iter, back, started: false }))
    }
}

/// Moves from the first entry at or behind `from` to the last at or before it.
fn before_or_at(iter: &mut Iter<'_>, from: &[u8]) -> Result<()> {
    match iter.entry()?.map(|(key, _)| key == from) {
        Some(true) => {}
        Some(false) => iter.step(true),
        None => iter.seek_to_end(true),
    }
    Ok(())
}

struct LevelCursor<'a> {
    iter: Iter<'a>,
    back: bool,
    /// Whether the entry under the iterator was handed out.
    started: bool,
}

impl Cursor for LevelCursor<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if self.started {
            self.iter.step(self.back);
        }
        self.started = true;
        self.iter.entry()
    }
}

#[cfg(test)]
mod tests {
    use super::within_limits;

    #[test]
    fn the_table_of_levels_tells_whether_work_is_left() {
        let head = "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n-------------------\n";
        assert!(within_limits(&format!(
            "{head}  0        3        9         0        0         9"
        )));
        assert!(!within_limits(&format!(
            "{head}  0        4        9         0        0         9"
        )));
        assert!(!within_limits(&format!(
            "{head}  1        9       10         0        0         9"
        )));
        assert!(within_limits(&format!(
            "{head}  2       90       99         0        0         9"
        )));
        assert!(!within_limits(&format!(
            "{head}  2       90      100         0        0         9"
        )));
    }
}
