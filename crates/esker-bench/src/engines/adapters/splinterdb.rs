//! SplinterDB, from the path of its library.
//!
//! *Memory*: `cache_size`, with the bytes given, or a quarter of the machine's. *File*: at most three
//! quarters of the free space. *Durability*: none. SplinterDB has no recovery: data survive a clean
//! close and nothing else, so only class `buffered` is offered.
//!
//! *Batches*: there are none; the writes of a batch are made one by one. *Ranges*: keys are read and
//! deleted one by one. *Compaction*: `splinterdb_optimize`, which leaves the buffer for writes as it is.
//! *Waiting*: no call flushes that buffer or waits for what is queued; closing does both.

use crate::engines::Durability;
use crate::engines::memory::machine_memory;
use crate::engines::native::splinterdb as native;
use crate::engines::pending::Pending;
use crate::engines::{Cursor, Direction, Engine, EngineSpec, OpenOptions, Session};
use crate::{Error, Result};
use std::path::Path;

/// What sizes are multiples of.
const UNIT: u64 = 64 << 20;

/// An open database.
pub struct SplinterEngine {
    db: native::Database,
    version: String,
    settings: Vec<(String, String)>,
}

/// Bytes that the file may take.
fn disk_bytes(dir: &Path) -> Result<u64> {
    let space = nix::sys::statvfs::statvfs(dir)
        .map_err(|errno| Error::io("ask for the free space of", dir, &errno.into()))?;
    #[allow(clippy::useless_conversion, reason = "some systems count blocks in 32 bits")]
    let free = u64::from(space.blocks_available()).saturating_mul(space.fragment_size());
    Ok((free / 4 * 3 / UNIT).max(1) * UNIT)
}

/// Opens or makes the database with the library of the specification.
pub fn open(spec: &EngineSpec, options: &OpenOptions<'_>) -> Result<Box<dyn Engine>> {
    let path = spec.library().unwrap_or(Path::new("libsplinterdb.so"));
    let library = native::Library::load(path).map_err(|cause| spec.missing_library(path, cause))?;
    std::fs::create_dir_all(options.dir).map_err(|error| Error::io("make", options.dir, &error))?;
    let quarter = || machine_memory().unwrap_or(1 << 30) / 4;
    let cache = (options.memory.unwrap_or_else(quarter) / UNIT).max(1) * UNIT;
    let disk = disk_bytes(options.dir)?;
    let version = format!("SplinterDB {}", library.version());
    let db = library.open(&options.dir.join("data.splinterdb"), cache, disk)?;
    let settings = vec![
        ("cache".into(), format!("{cache} bytes")),
        ("file".into(), format!("at most {disk} bytes")),
        ("recovery".into(), "none".into()),
        ("batches".into(), "written one by one".into()),
        ("deletion of a range".into(), "key by key".into()),
        ("everything else".into(), "defaults".into()),
    ];
    Ok(Box::new(SplinterEngine { db, version, settings }))
}

impl Engine for SplinterEngine {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let (db, results, pending) = (&self.db, self.db.results(), Pending::default());
        Ok(Box::new(SplinterSession { db, results, pending }))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.db.optimize()
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn stats(&self) -> String {
        "none: it prints them to its log alone".into()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct SplinterSession<'a> {
    db: &'a native::Database,
    results: native::Results<'a>,
    pending: Pending,
}

impl Session for SplinterSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], _: Durability) -> Result<()> {
        self.db.put(key, value)
    }

    fn delete(&mut self, key: &[u8], _: Durability) -> Result<()> {
        self.db.delete(key)
    }

    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.pending.put(key, value);
    }

    fn batch_delete(&mut self, key: &[u8]) {
        self.pending.delete(key);
    }

    fn batch_commit(&mut self, _: Durability) -> Result<()> {
        for (key, value) in self.pending.iter() {
            match value {
                Some(value) => self.db.put(key, value)?,
                None => self.db.delete(key)?,
            }
        }
        self.pending.clear();
        Ok(())
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.results.get(key, found)
    }

    fn cursor(
        &mut self,
        from: Option<&[u8]>,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + '_>> {
        let back = direction == Direction::Reverse;
        let iter = self.db.iter(from, back)?;
        Ok(Box::new(SplinterCursor { iter, back, started: false }))
    }
}

struct SplinterCursor<'a> {
    iter: native::Iter<'a>,
    back: bool,
    /// Whether the entry under the iterator was handed out.
    started: bool,
}

impl Cursor for SplinterCursor<'_> {
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
    use crate::engines::conformance::conforms;
    use crate::engines::{Durability, EngineSpec};
    use std::process::Command;

    /// SplinterDB is not packaged anywhere, so its library is played by `splinterdb_stub.c`, a sorted
    /// list behind the functions that its headers declare. The test shows that the calls are made as
    /// those headers say: that ranges go by value and arrive whole, that structures have the room they
    /// need, and that iterators are walked within what they allow. It says nothing of SplinterDB itself.
    #[test]
    fn the_calls_are_those_of_the_headers() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libstub.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/engines/adapters/splinterdb_stub.c");
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let built = Command::new(cc)
            .args(["-shared", "-fPIC", "-Wall", "-Werror", "-O1", "-o"])
            .args([library.as_os_str(), source.as_ref()])
            .args(["-lpthread"])
            .status()
            .unwrap();
        assert!(built.success());
        let spec = EngineSpec::parse(&format!("splinterdb:{}", library.display())).unwrap();
        assert!(spec.label().contains("no recovery"), "{}", spec.label());
        assert!(spec.offers(Durability::Process).is_err());
        assert!(spec.offers(Durability::Disk).is_err());
        assert!(conforms(&spec, Durability::Buffered));
    }

    /// SplinterDB itself, where `ESKER_SPLINTERDB` has the path of its library.
    #[test]
    fn the_library_conforms() {
        let Some(library) = std::env::var_os("ESKER_SPLINTERDB") else {
            println!("SKIPPED splinterdb: ESKER_SPLINTERDB is not set");
            return;
        };
        let spec = EngineSpec::parse(&format!("splinterdb:{}", library.display())).unwrap();
        assert!(conforms(&spec, Durability::Buffered));
    }
}
