//! Where the server keeps tables, InnoDB or MyRocks, and the options that each is given.
//!
//! Sizes follow the memory that was asked for; everything else is what the manuals recommend for many
//! writes.

use crate::engines::Durability;

/// What InnoDB has if nobody says.
const BUFFER_POOL: u64 = 128 << 20;
/// The least that it takes.
const BUFFER_POOL_MIN: u64 = 8 << 20;
/// Its log is as large as the buffer pool, between these.
const LOG_MIN: u64 = 96 << 20;
const LOG_MAX: u64 = 4 << 30;
/// What the block cache has if nobody says, and the least that is useful.
const BLOCK_CACHE: u64 = 512 << 20;
const BLOCK_CACHE_MIN: u64 = 8 << 20;
/// How MyRocks's documentation sets the column families, with the compression that Debian builds.
const COLUMN_FAMILIES: &str = "write_buffer_size=128m;target_file_size_base=32m;\
    max_bytes_for_level_base=512m;level0_file_num_compaction_trigger=4;\
    level0_slowdown_writes_trigger=10;level0_stop_writes_trigger=15;max_write_buffer_number=4;\
    compression=kLZ4Compression;block_based_table_factory={cache_index_and_filter_blocks=1;\
    filter_policy=bloomfilter:10:false;whole_key_filtering=1};\
    level_compaction_dynamic_level_bytes=true;optimize_filters_for_hits=true;\
    compaction_pri=kMinOverlappingRatio";

/// Where the server keeps tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// A B-tree.
    InnoDb,
    /// RocksDB.
    MyRocks,
}

impl Storage {
    /// The name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::InnoDb => "InnoDB",
            Self::MyRocks => "ROCKSDB",
        }
    }

    /// What the server is told, beside what makes it a private one.
    pub fn options(self, memory: Option<u64>, class: Durability) -> Vec<(String, String)> {
        let commit = match class {
            Durability::Buffered => "0",
            Durability::Process => "2",
            Durability::Disk => "1",
        };
        let manual = if class == Durability::Process { "OFF" } else { "ON" };
        let mut options = vec![
            ("transaction-isolation", "READ-COMMITTED".to_owned()),
            ("skip-log-bin", String::new()),
            ("max-connections", "1000".to_owned()),
            ("thread-cache-size", "256".to_owned()),
        ];
        match self {
            Self::InnoDb => {
                let pool = memory.unwrap_or(BUFFER_POOL).max(BUFFER_POOL_MIN);
                options.extend([
                    ("innodb-buffer-pool-size", pool.to_string()),
                    ("innodb-log-file-size", pool.clamp(LOG_MIN, LOG_MAX).to_string()),
                    ("innodb-io-capacity", "1000".to_owned()),
                    ("innodb-flush-log-at-trx-commit", commit.to_owned()),
                ]);
            }
            Self::MyRocks => {
                let cache = memory.unwrap_or(BLOCK_CACHE).max(BLOCK_CACHE_MIN);
                options.extend([
                    ("plugin-load-add", "ha_rocksdb".to_owned()),
                    ("rocksdb-block-cache-size", cache.to_string()),
                    ("rocksdb-flush-log-at-trx-commit", commit.to_owned()),
                    ("rocksdb-manual-wal-flush", manual.to_owned()),
                    ("rocksdb-max-background-jobs", "8".to_owned()),
                    ("rocksdb-max-total-wal-size", (4_u64 << 30).to_string()),
                    ("rocksdb-block-size", "16384".to_owned()),
                    ("rocksdb-default-cf-options", COLUMN_FAMILIES.to_owned()),
                    // InnoDB still keeps a few tables of the server's own.
                    ("innodb-buffer-pool-size", BUFFER_POOL_MIN.to_string()),
                ]);
            }
        }
        options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
