//! The options of RocksDB's variants, and what the report says of them.
//!
//! `rocksdb` gets the cache and the durability that every engine is given, and nothing else. The tuned
//! variants follow the wiki.

use crate::engines::memory::machine_memory;
use crate::engines::{Durability, EngineSpec, OpenOptions, Tuning};
use rocksdb::{
    BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, Options,
    UniversalCompactOptions,
};

/// Background jobs that the wiki's page starts from.
const TUNED_JOBS: i32 = 6;
const TUNED_BLOCK: usize = 16 << 10;
const TUNED_BYTES_PER_SYNC: u64 = 1 << 20;
const BLOOM_BITS: f64 = 10.0;
/// Write buffers of the first level behind level 0, by RocksDB's defaults.
const LEVEL_PER_BUFFER: u64 = 4;

/// What the report says was set.
pub type Settings = Vec<(String, String)>;

pub fn note(settings: &mut Settings, name: &str, value: impl Into<String>) {
    settings.push((name.into(), value.into()));
}

/// The cache for those who set nothing else.
fn untuned(set: &mut Options, memory: Option<u64>, settings: &mut Settings) {
    match memory {
        Some(bytes) => {
            let mut table = BlockBasedOptions::default();
            table.set_block_cache(&Cache::new_lru_cache(clamp(bytes)));
            set.set_block_based_table_factory(&table);
            note(settings, "block cache", format!("{bytes} bytes, LRU"));
        }
        None => note(settings, "block cache", "32 MiB (its default)"),
    }
    note(settings, "statistics", "off (its default)");
    note(settings, "everything else", "defaults");
}

/// What the wiki recommends.
fn tuned(set: &mut Options, memory: Option<u64>, settings: &mut Settings) {
    // The wiki gives a third of the memory to the cache where nothing else was decided.
    let bytes = memory.unwrap_or_else(|| machine_memory().unwrap_or(1 << 30) / 3);
    let mut table = BlockBasedOptions::default();
    // A charge of 0 lets RocksDB size the entries itself.
    table.set_block_cache(&Cache::new_hyper_clock_cache(clamp(bytes), 0));
    table.set_bloom_filter(BLOOM_BITS, false);
    table.set_block_size(TUNED_BLOCK);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    set.set_block_based_table_factory(&table);
    set.set_level_compaction_dynamic_level_bytes(true);
    set.set_compression_type(DBCompressionType::Lz4);
    set.set_bottommost_compression_type(DBCompressionType::Zstd);
    set.set_max_background_jobs(TUNED_JOBS);
    set.set_bytes_per_sync(TUNED_BYTES_PER_SYNC);
    set.set_compaction_pri(rocksdb::CompactionPri::MinOverlappingRatio);
    note(settings, "block cache", format!("{bytes} bytes, HyperClockCache"));
    note(settings, "filter", "Bloom, 10 bits a key");
    note(settings, "block", format!("{TUNED_BLOCK} bytes"));
    note(settings, "index and filters", "in the cache, those of level 0 pinned");
    note(settings, "compression", "LZ4, Zstandard on the last level");
    note(settings, "max_background_jobs", TUNED_JOBS.to_string());
    note(settings, "bytes_per_sync", format!("{TUNED_BYTES_PER_SYNC} bytes"));
    note(settings, "compaction_pri", "kMinOverlappingRatio");
    note(settings, "level_compaction_dynamic_level_bytes", "on");
}

/// The write buffer that was asked for, with files and levels in the proportions of RocksDB's defaults
/// (64, 64 and 256 MiB), so that the tree has as many levels as a large database has.
fn buffered(set: &mut Options, bytes: u64, settings: &mut Settings) {
    let level = bytes.saturating_mul(LEVEL_PER_BUFFER);
    set.set_write_buffer_size(clamp(bytes));
    set.set_target_file_size_base(bytes);
    set.set_max_bytes_for_level_base(level);
    note(settings, "write buffer (write_buffer_size)", format!("{bytes} bytes"));
    note(settings, "target_file_size_base", format!("{bytes} bytes"));
    note(settings, "max_bytes_for_level_base", format!("{level} bytes"));
}

fn clamp(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// The options of the variant, whether statistics are counted, and what the report says of it.
pub fn configured(spec: &EngineSpec, options: &OpenOptions<'_>) -> (Options, bool, Settings) {
    let mut set = Options::default();
    let mut settings = Vec::new();
    set.create_if_missing(true);
    if spec.tuning() == Tuning::Tuned {
        tuned(&mut set, options.memory, &mut settings);
    } else {
        untuned(&mut set, options.memory, &mut settings);
    }
    if let Some(bytes) = options.write_buffer_bytes {
        buffered(&mut set, bytes, &mut settings);
    }
    let counted = matches!(spec.variant(), Some("stats" | "universal-stats"));
    if counted {
        set.enable_statistics();
        settings.retain(|(name, _)| name != "statistics");
        note(&mut settings, "statistics", "on, at their default level");
    }
    let style = if matches!(spec.variant(), Some("universal" | "universal-stats")) {
        set.set_compaction_style(DBCompactionStyle::Universal);
        set.set_universal_compaction_options(&UniversalCompactOptions::default());
        "universal"
    } else {
        "leveled"
    };
    note(&mut settings, "compaction", style);
    let log = match options.durability {
        Durability::Buffered => "left out (disableWAL)",
        Durability::Process => "written to the operating system by every write (its default)",
        Durability::Disk => "synced by every write (sync)",
    };
    note(&mut settings, "log", log);
    (set, counted, settings)
}
