//! The memory that values in pieces take. A program of its own: it has an allocator that counts.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

#[path = "damage/memory.rs"]
mod memory;

use esker::{Db, Options, repair};
use memory::peak_of;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const MIB: u64 = 1 << 20;

/// Bytes that do not compress, and of which each place has its own.
struct Noise(u64, u64);

impl Read for Noise {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = (self.1 - self.0).min(out.len() as u64);
        for byte in &mut out[..len as usize] {
            *byte = (self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
            self.0 += 1;
        }
        Ok(len as usize)
    }
}

#[test]
fn a_value_of_any_size_is_written_and_read_with_the_memory_of_a_few_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.memory = Some(16 * MIB);
    let db = Db::open_with(dir.path(), options).unwrap();
    let mut peaks = Vec::new();
    for (key, len) in [("small", 8 * MIB), ("large", 160 * MIB)] {
        let (written, done) = peak_of(|| db.insert_reader(key, Noise(0, len)));
        assert_eq!(done.unwrap(), len);
        let (read, ()) = peak_of(|| {
            let mut reader = db.get_reader(key).unwrap().unwrap();
            let (mut expected, mut here, mut there) = (Noise(0, len), [0; 4096], [0; 4096]);
            while expected.read(&mut there).unwrap() > 0 {
                reader.read_exact(&mut here).unwrap();
                assert!(here == there, "before {}", expected.0);
            }
            assert_eq!(reader.read(&mut here).unwrap(), 0);
            reader.seek(SeekFrom::Start(len / 2 + 1)).unwrap();
            reader.read_exact(&mut here).unwrap();
        });
        let (asked, there) = peak_of(|| db.contains_key(key).unwrap());
        assert!(there && asked < MIB / 4, "{asked} bytes to find out that a key is there");
        peaks.push((written, read));
    }
    // Twenty times the value takes no more, but for its index: 13 bytes for each 256 KiB.
    for (written, read) in peaks {
        assert!(written < 3 * MIB, "{written} bytes to write");
        assert!(read < MIB, "{read} bytes to read");
    }
    let most = db.stats().memory.buffers_max;
    assert!(most < 4 * MIB, "{most} bytes of buffers");
}

/// Whether all of a value is there.
fn is_whole(db: &Db, key: &str, len: u64) -> bool {
    let mut reader = db.get_reader(key).unwrap().unwrap();
    let (mut expected, mut here, mut there) = (Noise(0, len), [0; 4096], [0; 4096]);
    while expected.read(&mut there).unwrap() > 0 {
        reader.read_exact(&mut here).unwrap();
        if here != there {
            return false;
        }
    }
    reader.read(&mut here).unwrap() == 0
}

/// Flips a bit in the middle of the largest file below a directory.
fn damage(dir: &Path) {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let largest = files.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut file = std::fs::File::options().read(true).write(true).open(&largest).unwrap();
    let at = SeekFrom::Start(file.metadata().unwrap().len() / 2);
    let mut byte = [0];
    file.seek(at).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(at).unwrap();
    file.write_all(&[byte[0] ^ 1]).unwrap();
}

#[test]
fn a_verify_and_a_repair_of_a_large_value_take_the_memory_of_a_few_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("db"), dir.path().join("saved"));
    let mut options = Options::default();
    options.memory = Some(16 * MIB);
    let len = 256 * MIB;
    let db = Db::open_with(&path, options.clone()).unwrap();
    db.insert_reader("large", Noise(0, len)).unwrap();
    db.insert("small", "value").unwrap();
    let (verified, report) = peak_of(|| db.verify().unwrap());
    assert!(report.problems.is_empty(), "{report:?}");
    db.close().unwrap();

    // Without one of its superblocks it opens, and a repair in place has work to do.
    std::fs::write(path.join("superblock-A"), b"").unwrap();
    let (planned, plan) = peak_of(|| repair::plan(&path, &options).unwrap());
    assert!(!plan.is_whole(), "{plan}");
    let (saved, _) = peak_of(|| repair::salvage(&path, &to, &options).unwrap());
    let (repaired, done) = peak_of(|| Db::repair(&path, &options).unwrap());
    println!("verify {verified}, plan {planned}, salvage {saved}, repair {repaired} bytes");
    assert!(done.kept.is_some());
    for path in [&path, &to] {
        let db = Db::open_with(path, options.clone()).unwrap();
        assert!(is_whole(&db, "large", len));
        assert_eq!(db.get("small").unwrap(), Some(b"value".to_vec()));
        db.close().unwrap();
    }
    assert!(verified < MIB, "{verified} bytes to verify");
    assert!(planned < 2 * MIB, "{planned} bytes for a plan");
    // A database is opened and written to meanwhile.
    assert!(saved < 6 * MIB, "{saved} bytes to save it elsewhere");
    assert!(repaired < 6 * MIB, "{repaired} bytes to repair it in place");

    // With one piece the value is lost, and nothing else.
    damage(&to.join("data"));
    let plan = repair::plan(&to, &options).unwrap();
    let lost = |finding: &repair::Finding| finding.text.contains("the value of key \"large\"");
    assert!(!plan.is_whole() && plan.findings.iter().any(lost), "{plan}");
    Db::repair(&to, &options).unwrap();
    let db = Db::open_with(&to, options.clone()).unwrap();
    assert!(!db.contains_key("large").unwrap());
    assert_eq!(db.get("small").unwrap(), Some(b"value".to_vec()));
}
