use crate::*;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[allow(missing_docs)]
#[derive(Debug, Clone)]
pub struct Db {}
#[allow(missing_docs)]
#[derive(Debug, Clone)]
pub struct Problem {
    pub path: PathBuf,
    pub error: Error,
}
#[allow(missing_docs)]
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    pub files: u64,
    pub blocks: u64,
    pub entries: u64,
    pub bytes: u64,
    pub problems: Vec<Problem>,
}
#[allow(missing_docs, unused_variables)]
impl Db {
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        unimplemented!()
    }
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        unimplemented!()
    }
    /// Makes it on first use. Keyspace names: 1..=255 bytes of UTF-8. "default" always exists.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        unimplemented!()
    }
    pub fn keyspace_ordered(&self, name: &str, order: Arc<dyn Comparator>) -> Result<Keyspace> {
        unimplemented!()
    }
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        unimplemented!()
    }
    /// Whether it was there.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        unimplemented!()
    }
    // The default keyspace, directly:
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        unimplemented!()
    }
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        unimplemented!()
    }
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        unimplemented!()
    }
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        unimplemented!()
    }
    pub fn remove_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        unimplemented!()
    }
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Iter> {
        unimplemented!()
    }
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        unimplemented!()
    }
    pub fn iter(&self) -> Result<Iter> {
        unimplemented!()
    }
    pub fn default_keyspace(&self) -> Keyspace {
        unimplemented!()
    }
    /// Commits atomically; returns the log position to wait on with `wait_durable`.
    pub fn write(&self, batch: Batch) -> Result<u64> {
        unimplemented!()
    }
    pub fn write_with(&self, batch: Batch, durability: Durability) -> Result<u64> {
        unimplemented!()
    }
    /// Blocks until everything up to the position (returned by `write`) survives power loss.
    pub fn wait_durable(&self, position: u64) -> Result<()> {
        unimplemented!()
    }
    pub fn sync(&self) -> Result<()> {
        unimplemented!()
    }
    pub fn snapshot(&self) -> Result<Snapshot> {
        unimplemented!()
    }
    pub fn flush(&self) -> Result<()> {
        unimplemented!()
    }
    pub fn compact(&self) -> Result<()> {
        unimplemented!()
    }
    pub fn wait_until_idle(&self) -> Result<()> {
        unimplemented!()
    }
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }
    pub fn verify(&self) -> Result<VerifyReport> {
        unimplemented!()
    }
    pub fn path(&self) -> &Path {
        unimplemented!()
    }
    /// Closes for all clones; reports the first error of what was still under way.
    pub fn close(&self) -> Result<()> {
        unimplemented!()
    }
}
