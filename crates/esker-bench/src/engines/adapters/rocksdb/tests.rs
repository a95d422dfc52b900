//! What is set is what the database runs with.

use crate::engines::Durability;
use crate::engines::OpenOptions;
use crate::engines::lookup::spec;
use std::path::Path;

/// The options that RocksDB wrote down for the family that holds the data.
fn written_down(dir: &Path) -> String {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let newest = names.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    let text = std::fs::read_to_string(newest).unwrap();
    text.split("[CFOptions \"default\"]").nth(1).unwrap().to_owned()
}

/// Checks that RocksDB, open in this directory as the engine `name`, has written down these options.
fn assert_written_down(name: &str, dir: &Path, expected: &[&str]) {
    let text = written_down(dir);
    for option in expected {
        assert!(text.contains(option), "{name}: {option} is not in\n{text}");
    }
}

fn options(dir: &Path, write_buffer_bytes: Option<u64>, transactions: bool) -> OpenOptions<'_> {
    let (memory, durability) = (Some(48 << 20), Durability::Process);
    OpenOptions { dir, memory, write_buffer_bytes, durability, transactions }
}

#[test]
fn a_write_buffer_comes_with_files_and_levels_in_proportion() {
    let scaled = [
        "write_buffer_size=65536\n",
        "target_file_size_base=65536\n",
        "max_bytes_for_level_base=262144\n",
    ];
    let default = ["write_buffer_size=67108864\n", "max_bytes_for_level_base=268435456\n"];
    for name in ["rocksdb", "rocksdb-stats", "rocksdb-tuned", "rocksdb-universal-stats"] {
        let cases: [(Option<u64>, &[&str]); 2] = [(Some(64 << 10), &scaled), (None, &default)];
        for (bytes, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            let engine = spec(name).open(&options(dir.path(), bytes, false)).unwrap();
            assert_written_down(name, dir.path(), expected);
            engine.close().unwrap();
        }
    }
}

/// The registry refuses what RocksDB would change without a word.
#[test]
fn the_least_write_buffer_is_that_of_the_library() {
    let dir = tempfile::tempdir().unwrap();
    let engine = spec("rocksdb").open(&options(dir.path(), Some(32 << 10), false)).unwrap();
    assert_written_down("rocksdb", dir.path(), &["write_buffer_size=65536\n"]);
    engine.close().unwrap();
}

#[test]
fn bytes_are_counted_by_cause_where_statistics_are_on() {
    let names = ["rocksdb", "rocksdb-stats", "rocksdb-universal", "rocksdb-universal-stats"];
    for name in names {
        let dir = tempfile::tempdir().unwrap();
        let engine = spec(name).open(&options(dir.path(), None, false)).unwrap();
        engine.session().unwrap().put(b"key", b"value", Durability::Process).unwrap();
        engine.flush().unwrap();
        let flushed = engine.bytes_written().map(|bytes| bytes.flush > 0);
        assert_eq!(flushed, name.ends_with("stats").then_some(true), "{name}");
        engine.close().unwrap();
    }
}

#[test]
fn options_reach_the_family_that_holds_the_data() {
    let leveled = "compaction_style=kCompactionStyleLevel";
    let universal = "compaction_style=kCompactionStyleUniversal";
    let cases: [(&str, &[&str]); 4] = [
        ("rocksdb", &[leveled, "filter_policy=nullptr"]),
        ("rocksdb-tuned", &[leveled, "filter_policy=bloomfilter", "compression=kLZ4Compression"]),
        ("rocksdb-universal", &[universal]),
        ("rocksdb-universal-stats", &[universal, "filter_policy=bloomfilter"]),
    ];
    for transactions in [false, true] {
        for (name, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            let engine = spec(name).open(&options(dir.path(), None, transactions)).unwrap();
            assert_written_down(name, dir.path(), expected);
            if !transactions {
                let stats = engine.stats();
                assert!(stats.contains(" of 50331648 bytes"), "{name}: {stats}");
            }
            engine.close().unwrap();
        }
    }
}
