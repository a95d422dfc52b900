//! Recognizes the files of other stores, so that opening them by mistake fails with an error that
//! says what they are and how to import them. It changes nothing.

use crate::fs::{DirEntry, Fs, OpenMode};
use std::path::Path;

/// A store of another kind: its name, and its name for `esker import --from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The name as people write it.
    pub name: &'static str,
    /// The name as the command takes it.
    pub import: &'static str,
}

const LEVELDB: Foreign = Foreign { name: "LevelDB", import: "leveldb" };
const ROCKSDB: Foreign = Foreign { name: "RocksDB", import: "rocksdb" };
const LMDB: Foreign = Foreign { name: "LMDB", import: "lmdb" };
const FJALL: Foreign = Foreign { name: "fjall", import: "fjall" };
const REDB: Foreign = Foreign { name: "redb", import: "redb" };

/// The first bytes of a file of redb.
const REDB_MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// The number at byte 16 of an LMDB file, in the byte order of the machine that wrote it.
const LMDB_MAGIC: u32 = 0xbeef_c0de;

/// The store that the names in a directory indicate.
pub fn directory(entries: &[DirEntry]) -> Option<Foreign> {
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let begins = |start: &str| entries.iter().any(|entry| entry.name.starts_with(start));
    if has("CURRENT") && begins("MANIFEST-") {
        // RocksDB was derived from LevelDB and shares file names with it.
        let rocks = has("IDENTITY") || begins("OPTIONS-");
        return Some(if rocks { ROCKSDB } else { LEVELDB });
    }
    if has("data.mdb") {
        return Some(LMDB);
    }
    if (has("keyspaces") && has("version")) || (has("partitions") && has("journals")) {
        return Some(FJALL);
    }
    None
}

/// The store that the first bytes of a file indicate.
pub fn file(fs: &dyn Fs, path: &Path) -> Option<Foreign> {
    let file = fs.open(path, OpenMode::Read).ok()?;
    let mut start = [0; 20];
    file.read_at(&mut start, 0).ok()?;
    if start.starts_with(REDB_MAGIC) {
        return Some(REDB);
    }
    let word = start[16..].try_into().ok()?;
    let lmdb = u32::from_le_bytes(word) == LMDB_MAGIC || u32::from_be_bytes(word) == LMDB_MAGIC;
    lmdb.then_some(LMDB)
}
