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

#[test]
fn options_reach_the_family_that_holds_the_data() {
    let leveled = "compaction_style=kCompactionStyleLevel";
    let cases: [(&str, &[&str]); 3] = [
        ("rocksdb", &[leveled, "filter_policy=nullptr"]),
        ("rocksdb-tuned", &[leveled, "filter_policy=bloomfilter", "compression=kLZ4Compression"]),
        ("rocksdb-universal", &["compaction_style=kCompactionStyleUniversal"]),
    ];
    for transactions in [false, true] {
        for (name, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            let memory = Some(48 << 20);
            let durability = Durability::Process;
            let options = OpenOptions { dir: dir.path(), memory, durability, transactions };
            let engine = spec(name).open(&options).unwrap();
            let text = written_down(dir.path());
            for option in expected {
                assert!(text.contains(option), "{name}: {option} is not in\n{text}");
            }
            if !transactions {
                let stats = engine.stats();
                assert!(stats.contains(" of 50331648 bytes"), "{name}: {stats}");
            }
            engine.close().unwrap();
        }
    }
}
