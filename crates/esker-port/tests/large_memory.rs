//! The memory that a dump and a load of a large value take. A program of its own: it is measured in a process that
//! does nothing else, by what the system says was resident. Several threads work, and a compressor that the
//! allocator does not know.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]
#![cfg(target_os = "linux")]

use esker::{Db, Options};
use esker_port::{DumpOptions, Form, LoadOptions, Quiet, Summary, dump_to_file, load};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 16 * MIB;
const VALUE: u64 = 256 * MIB;
/// What may come on top of what is there: a dozen pieces of 256 KiB between two threads, a MiB of the stream, what
/// compressing takes, what opening a database takes, and what the allocator keeps of it all. As much as half of it
/// was seen.
const MORE: u64 = 16 * MIB;

/// Bytes of which each place has its own.
struct Noise(u64, u64);

impl Read for Noise {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = (self.1 - self.0).min(out.len() as u64) as usize;
        for byte in &mut out[..len] {
            *byte = ((self.0 | 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (8 * (self.0 % 8))) as u8;
            self.0 += 1;
        }
        Ok(len)
    }
}

fn open(path: &Path) -> Db {
    let mut options = Options::default();
    options.memory = Some(BUDGET);
    options.monitor = Some(false);
    Db::open_with(path, options).unwrap()
}

/// Bytes in a field of the process's status.
fn resident(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    found.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The most that was resident during a call, beyond what was before.
fn peak_of<T>(call: impl FnOnce() -> T) -> (u64, T) {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = resident("VmRSS:");
    let done = call();
    (resident("VmHWM:").saturating_sub(before), done)
}

#[test]
fn a_dump_and_a_load_take_no_more_memory_for_a_large_value() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    db.insert("a", "small").unwrap();
    assert_eq!(db.insert_reader("large", Noise(0, VALUE)).unwrap(), VALUE);
    db.insert("z", "small").unwrap();
    for form in [Form::Binary, Form::Compressed] {
        let file = dir.path().join("dump");
        let mut options = DumpOptions::default();
        options.form = form;
        let (peak, dumped) =
            peak_of(|| dump_to_file(&db, &file, &options, false, &mut Quiet).unwrap());
        assert!(peak < MORE, "{form:?}: {} KiB to dump", peak >> 10);
        println!("{form:?}: {} KiB to dump", peak >> 10);

        let path = dir.path().join("copy");
        let (peak, loaded) = peak_of(|| loaded(&path, &file));
        assert!(peak < MORE, "{form:?}: {} KiB to load", peak >> 10);
        println!("{form:?}: {} KiB to load", peak >> 10);
        assert_eq!((loaded.content, loaded.entries), (dumped.content, 3));
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
}

/// Loads a dump and reads it back.
fn loaded(path: &Path, file: &Path) -> Summary {
    let copy = open(path);
    let mut options = LoadOptions::default();
    options.read_back = true;
    let stream = File::open(file).unwrap();
    let loaded = load(&copy, stream, "dump", &options, &mut Quiet).unwrap();
    copy.close().unwrap();
    loaded
}
