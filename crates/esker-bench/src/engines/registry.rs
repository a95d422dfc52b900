//! Every engine that can be named, in the order in which lists show them.
//!
//! A new adapter needs its module in `adapters/mod.rs`, its feature in `Cargo.toml`, and an entry here.
//! `built!` leaves the opener out where the feature is off, so that the entry still says which feature
//! brings the engine.

use super::adapters::{esker, faulty, mem, null};
use super::durability::Durability;
use super::spec::{Entry, Tuning};
use std::ops::RangeInclusive;

#[cfg(feature = "peer-berkeleydb")]
use super::adapters::berkeleydb;
#[cfg(feature = "peer-fjall")]
use super::adapters::fjall;
#[cfg(feature = "peer-capi")]
use super::adapters::leveldb;
#[cfg(feature = "peer-lmdb")]
use super::adapters::lmdb;
#[cfg(feature = "peer-mariadb")]
use super::adapters::mariadb;
#[cfg(feature = "peer-redb")]
use super::adapters::redb;
#[cfg(feature = "peer-rocksdb")]
use super::adapters::rocksdb;
#[cfg(feature = "peer-sled")]
use super::adapters::sled;
#[cfg(feature = "peer-splinterdb")]
use super::adapters::splinterdb;
#[cfg(feature = "peer-sqlite")]
use super::adapters::sqlite;
#[cfg(feature = "peer-tidesdb")]
use super::adapters::tidesdb;
#[cfg(feature = "peer-wiredtiger")]
use super::adapters::wiredtiger;

/// The opener, if the feature is on.
macro_rules! built {
    ($feature:literal, $open:expr) => {{
        #[cfg(feature = $feature)]
        let open: Option<super::spec::Opener> = Some($open);
        #[cfg(not(feature = $feature))]
        let open: Option<super::spec::Opener> = None;
        open
    }};
}
#[cfg(test)]
pub(super) use built;

/// All engines.
pub static REGISTRY: &[Entry] = &[
    Entry {
        kind: "esker",
        label: "Esker",
        about: "Esker, through its public interface",
        links: true,
        write_buffers: Some(ESKER_BUFFERS),
        open: Some(esker::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "mem",
        label: "BTreeMap",
        about: "a BTreeMap under a lock, without files",
        has_files: false,
        offers: mem::offers,
        links: true,
        open: Some(mem::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "null",
        label: "nothing",
        about: "nothing at all: what the harness itself costs",
        has_files: false,
        note: Some("the harness's own cost"),
        answers: false,
        open: Some(null::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "fjall",
        label: "fjall",
        about: "fjall 3, an LSM tree in Rust",
        feature: Some("peer-fjall"),
        open: built!("peer-fjall", fjall::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "rocksdb",
        label: "RocksDB",
        about: "RocksDB, its defaults: leveled, statistics off",
        tuned: Some("tuned"),
        open: built!("peer-rocksdb", rocksdb::open),
        ..ROCKSDB
    },
    Entry {
        kind: "rocksdb",
        variant: Some("stats"),
        label: "RocksDB stats",
        about: "RocksDB, its defaults, with statistics on",
        open: built!("peer-rocksdb", rocksdb::open),
        ..ROCKSDB
    },
    Entry {
        kind: "rocksdb",
        variant: Some("tuned"),
        label: "RocksDB tuned",
        about: "RocksDB as its wiki tunes it: leveled",
        tuning: Tuning::Tuned,
        open: built!("peer-rocksdb", rocksdb::open),
        ..ROCKSDB
    },
    Entry {
        kind: "rocksdb",
        variant: Some("universal"),
        label: "RocksDB universal",
        about: "RocksDB as its wiki tunes it, with universal compaction",
        tuning: Tuning::Tuned,
        open: built!("peer-rocksdb", rocksdb::open),
        ..ROCKSDB
    },
    Entry {
        kind: "rocksdb",
        variant: Some("universal-stats"),
        label: "RocksDB universal stats",
        about: "RocksDB as its wiki tunes it, with universal compaction and statistics on",
        tuning: Tuning::Tuned,
        open: built!("peer-rocksdb", rocksdb::open),
        ..ROCKSDB
    },
    Entry {
        kind: "leveldb",
        label: "LevelDB",
        about: "LevelDB, the system's library with its defaults",
        feature: Some("peer-leveldb"),
        install: Some("apt-get install libleveldb1d"),
        tuned: Some("tuned"),
        open: built!("peer-leveldb", leveldb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "leveldb",
        variant: Some("tuned"),
        label: "LevelDB tuned",
        about: "LevelDB with a cache and a Bloom filter",
        feature: Some("peer-leveldb"),
        install: Some("apt-get install libleveldb1d"),
        tuning: Tuning::Tuned,
        open: built!("peer-leveldb", leveldb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "capi",
        label: "C interface",
        about: "any library with LevelDB's C interface, with its defaults",
        feature: Some("peer-capi"),
        takes_library: true,
        tuned: Some("tuned"),
        open: built!("peer-capi", leveldb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "capi",
        variant: Some("tuned"),
        label: "C interface, tuned",
        about: "such a library with a cache and a Bloom filter",
        feature: Some("peer-capi"),
        takes_library: true,
        tuning: Tuning::Tuned,
        open: built!("peer-capi", leveldb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "lmdb",
        label: "LMDB",
        about: "LMDB, a B-tree in a memory map",
        feature: Some("peer-lmdb"),
        cheap_single_writes: false,
        open: built!("peer-lmdb", lmdb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "redb",
        label: "redb",
        about: "redb, a copy-on-write B-tree in Rust",
        feature: Some("peer-redb"),
        cheap_single_writes: false,
        links: true,
        open: built!("peer-redb", redb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "wiredtiger",
        label: "WiredTiger",
        about: "WiredTiger, the engine of MongoDB: its B-tree",
        feature: Some("peer-wiredtiger"),
        install: Some("apt-get install libwiredtiger0"),
        links: true,
        open: built!("peer-wiredtiger", wiredtiger::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "sled",
        label: "sled",
        about: "sled 0.34, a log-structured tree in Rust",
        feature: Some("peer-sled"),
        offers: sled_offers,
        open: built!("peer-sled", sled::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "sqlite",
        label: "SQLite",
        about: "SQLite, one table WITHOUT ROWID, its log ahead",
        feature: Some("peer-sqlite"),
        cheap_single_writes: false,
        open: built!("peer-sqlite", sqlite::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "tidesdb",
        label: "TidesDB",
        about: "TidesDB, an LSM tree in C",
        feature: Some("peer-tidesdb"),
        install: Some("apt-get install cmake"),
        open: built!("peer-tidesdb", tidesdb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "berkeleydb",
        label: "Berkeley DB",
        about: "Berkeley DB 5.3, a B-tree with transactions",
        feature: Some("peer-berkeleydb"),
        install: Some("apt-get install libdb5.3"),
        open: built!("peer-berkeleydb", berkeleydb::open),
        ..Entry::PLAIN
    },
    Entry {
        kind: "splinterdb",
        label: "SplinterDB",
        about: "SplinterDB, from the path of its library",
        feature: Some("peer-splinterdb"),
        takes_library: true,
        note: Some("no recovery"),
        offers: splinterdb_offers,
        open: built!("peer-splinterdb", splinterdb::open),
        ..Entry::PLAIN
    },
    Entry {
        variant: Some("innodb"),
        label: "MariaDB InnoDB",
        about: "MariaDB with InnoDB, a server over a socket: LinkBench only",
        open: built!("peer-mariadb", mariadb::open),
        ..MARIADB
    },
    Entry {
        variant: Some("myrocks"),
        label: "MariaDB MyRocks",
        about: "MariaDB with MyRocks, a server over a socket: LinkBench only",
        open: built!("peer-mariadb", mariadb::open),
        ..MARIADB
    },
    faulty("forgets"),
    faulty("aborts"),
    faulty("full"),
];

/// An engine with a fault.
const fn faulty(variant: &'static str) -> Entry {
    Entry {
        kind: "faulty",
        variant: Some(variant),
        label: "faulty",
        about: "an engine with a fault",
        has_files: false,
        hidden: true,
        offers: faulty::offers,
        open: Some(faulty::open),
        ..Entry::PLAIN
    }
}

/// SplinterDB keeps its data only through a clean close.
fn splinterdb_offers(class: Durability) -> Result<(), &'static str> {
    match class {
        Durability::Buffered => Ok(()),
        Durability::Process | Durability::Disk => {
            Err("it has no recovery: nothing survives but a clean close")
        }
    }
}

/// The classes that sled offers. This is known without the adapter, because a build without sled has to
/// answer too.
fn sled_offers(class: Durability) -> Result<(), &'static str> {
    if class == Durability::Disk && cfg!(target_os = "linux") {
        return Err(
            "its flush ends in sync_file_range on Linux, which does not survive power loss",
        );
    }
    Ok(())
}

/// Esker raises a smaller one without a word.
const ESKER_BUFFERS: RangeInclusive<u64> = 16 << 10..=WRITE_BUFFER_MAX;
/// RocksDB brings others within these bounds without a word.
const ROCKSDB_BUFFERS: RangeInclusive<u64> = 64 << 10..=WRITE_BUFFER_MAX;
const WRITE_BUFFER_MAX: u64 = 64 << 30;

/// What all ways of opening RocksDB have in common.
const ROCKSDB: Entry = Entry {
    links: true,
    write_buffers: Some(ROCKSDB_BUFFERS),
    feature: Some("peer-rocksdb"),
    install: Some("apt-get install g++ libclang-dev"),
    ..Entry::PLAIN
};

/// What both engines of MariaDB have in common.
const MARIADB: Entry = Entry {
    kind: "mariadb",
    feature: Some("peer-mariadb"),
    install: Some("apt-get install mariadb-server mariadb-plugin-rocksdb"),
    tuning: Tuning::Tuned,
    links: true,
    only_links: true,
    ..Entry::PLAIN
};
