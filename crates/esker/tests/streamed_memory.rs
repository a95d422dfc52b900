//! The memory that values in pieces take. A program of its own: it has an allocator that counts.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

#[path = "damage/memory.rs"]
mod memory;

use esker::{Db, Options};
use memory::peak_of;
use std::io::{self, Read, Seek, SeekFrom};

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
