//! What programs of versions 1 and 2 make of what this one writes: they must find a newer version, by name, and
//! never take it for damage. Their checks are rebuilt here and frozen; they call nothing of the engine. The
//! source is `docs/file-formats.md`, compared with what these programs did:
//!
//! - *Version 1* was written by commits 2933a8a to be47986. `Superblock::decode` took at most the first 64
//!   bytes of the file. Fewer bytes, another magic, or another checksum of the first 56 bytes was damage.
//!   Only then it looked at the version, and all but 1 were `UnknownFormat`, before it used anything else.
//!   `Superblock::read` read both files and passed `UnknownFormat` on at once, whatever the other one held.
//!   The first thing that an open did was to call it, before it locked or changed anything. `check_header` in
//!   `manifest/log.rs` was the same for the header of a manifest, and compared its number last.
//!   `LogFileHeader::decode_page` (then `SegmentHeader`) took the first copy with a right checksum, the magic
//!   and version 1. If there was none, two copies with the magic and the same other version were
//!   `UnknownFormat`, and all else was damage.
//! - *Version 2* was written by commits 0a04d58 to f3f588e. It did the same with the same bytes, knew two
//!   versions, and looked at bytes 64 to 512 of a superblock only if the version was 2.

use super::{EARLY, VERSIONS, kinds_options};
use crate::cuts::{PATH, cuts_of};
use crate::interrupted_open::known;
use esker::fs::{Fs, OpenMode};
use esker::{Db, Options};
use esker_testkit::CrashFs;
use esker_testkit::crashfs::Tear;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a program makes of a file, or of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is of this version, which the program knows.
    Known(u32),
    /// It is whole and of this version, which the program does not know.
    Unknown(u32),
    Damaged,
}

/// The versions that an older program knows are those up to one of these.
const OLDER: [u32; 2] = [1, 2];
const LOG_HEADER_SALT: u64 = 0x6573_6B65_722D_6C67;

fn checksum(salt: u64, offset: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, salt ^ offset.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn version(found: u32, knows: u32) -> Verdict {
    if (1..=knows).contains(&found) { Verdict::Known(found) } else { Verdict::Unknown(found) }
}

/// The first 64 bytes of a superblock or of a manifest. It is given nothing else to look at.
fn head(bytes: &[u8; 64], magic: &[u8; 8], knows: u32) -> Verdict {
    if bytes[..8] != magic[..] || checksum(0, 0, &bytes[..56]) != u64_at(bytes, 56) {
        return Verdict::Damaged;
    }
    version(u32_at(bytes, 8), knows)
}

fn superblock(bytes: &[u8], knows: u32) -> Verdict {
    let Some(first) = bytes.first_chunk::<64>() else { return Verdict::Damaged };
    match head(first, b"ESKERSB\n", knows) {
        Verdict::Known(2) if !is_summed_twice(bytes) => Verdict::Damaged,
        verdict => verdict,
    }
}

fn is_summed_twice(superblock: &[u8]) -> bool {
    superblock.len() >= 512 && checksum(1, 0, &superblock[..504]) == u64_at(superblock, 504)
}

fn manifest(bytes: &[u8], number: u64, knows: u32) -> Verdict {
    let Some(first) = bytes.first_chunk::<64>() else { return Verdict::Damaged };
    match head(first, b"ESKERMF\n", knows) {
        Verdict::Known(_) if u64_at(bytes, 16) != number => Verdict::Damaged,
        verdict => verdict,
    }
}

fn log_file(page: &[u8], knows: u32) -> Verdict {
    let copies = [&page[..104], &page[2048..2048 + 104]];
    for copy in copies {
        if checksum(LOG_HEADER_SALT, 0, &copy[..96]) == u64_at(copy, 96)
            && let Verdict::Known(version) = declared(copy, knows)
        {
            return Verdict::Known(version);
        }
    }
    match copies.map(|copy| declared(copy, knows)) {
        [Verdict::Unknown(a), Verdict::Unknown(b)] if a == b => Verdict::Unknown(a),
        _ => Verdict::Damaged,
    }
}

/// The version that a copy of a log file's header declares, whole or not.
fn declared(copy: &[u8], knows: u32) -> Verdict {
    if copy.starts_with(b"ESKERLOG") { version(u32_at(copy, 8), knows) } else { Verdict::Damaged }
}

/// The number of the manifest that takes the place of this one, which is whole up to its last record.
fn successor(manifest: &[u8]) -> Option<u64> {
    let nonce = u64_at(manifest, 24);
    let (mut at, mut named) = (64, None);
    while at + 16 <= manifest.len() {
        let end = at + 16 + u32_at(manifest, at) as usize;
        let Some(payload) = manifest.get(at + 16..end) else { break };
        let covered = [&manifest[at + 4..at + 8], payload].concat();
        if checksum(nonce, at as u64, &covered) != u64_at(manifest, at + 8) {
            break;
        }
        if u32_at(manifest, at + 4) == 2 {
            named = Some(u64_at(payload, 0));
        }
        at = end.next_multiple_of(8);
    }
    named
}

/// What a program does first in an open: both superblocks, then the manifest, and those after it.
fn open(disk: &CrashFs, knows: u32) -> Verdict {
    let mut newest: Option<(u64, u64)> = None;
    for name in ["superblock-A", "superblock-B"] {
        let bytes = read(disk, name);
        match superblock(&bytes, knows) {
            Verdict::Known(_) => {
                let (generation, manifest) = (u64_at(&bytes, 16), u64_at(&bytes, 24));
                newest = newest.max(Some((generation, manifest)));
            }
            // It does not count as long as the other is whole.
            Verdict::Damaged => {}
            unknown => return unknown,
        }
    }
    let Some((_, mut number)) = newest else { return Verdict::Damaged };
    loop {
        let bytes = read(disk, &format!("MANIFEST-{number:06}"));
        let verdict = manifest(&bytes, number, knows);
        let Verdict::Known(_) = verdict else { return verdict };
        match successor(&bytes) {
            Some(next) => number = next,
            None => return verdict,
        }
    }
}

/// The content of a file; nothing if there is no such file.
fn read(disk: &CrashFs, name: &str) -> Vec<u8> {
    let Ok(file) = disk.open(&Path::new(PATH).join(name), OpenMode::Read) else {
        return Vec::new();
    };
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// The files that carry the version of the database: superblocks, manifests, log files.
fn files(disk: &CrashFs) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for (directory, prefix) in [("", ""), ("wal", "wal/")] {
        for entry in disk.list(&Path::new(PATH).join(directory)).unwrap() {
            let name = format!("{prefix}{}", entry.name);
            let bytes = read(disk, &name);
            if judge(&name, &bytes, 1).is_some() {
                found.push((name, bytes));
            }
        }
    }
    found
}

/// What a program makes of a file by itself; `None`: it carries no version of the database.
fn judge(name: &str, bytes: &[u8], knows: u32) -> Option<Verdict> {
    if name.starts_with("superblock-") {
        return Some(superblock(bytes, knows));
    }
    if let Some(number) = name.strip_prefix("MANIFEST-") {
        return number.parse::<u64>().ok().map(|number| manifest(bytes, number, knows));
    }
    // A log file without a header is one that was not prepared yet.
    let page = bytes.get(..4096).filter(|page| page.iter().any(|byte| *byte != 0));
    page.filter(|_| name.ends_with(".log")).map(|page| log_file(page, knows))
}

fn options(disk: &CrashFs) -> Options {
    let mut options = kinds_options(EARLY);
    options.fs = disk.as_fs();
    options.workers = Some(1);
    options.sync_interval = None;
    options
}

/// Opens a database, or makes one, and writes to it. Returns it as it was while it was open, and closed.
fn written(disk: CrashFs) -> [CrashFs; 2] {
    let db = Db::open_with(PATH, options(&disk)).unwrap();
    db.insert("key", "value").unwrap();
    db.flush().unwrap();
    db.insert("key", "of the log").unwrap();
    let open = disk.kill_clone();
    db.close().unwrap();
    [open, disk.kill_clone()]
}

/// The databases that are kept of a version.
fn kept(version: &str) -> [String; 3] {
    ["", "-kinds", "-branches"].map(|what| format!("{version}{what}"))
}

fn number(version: &str) -> u32 {
    version[1..].parse().unwrap()
}

/// What is rebuilt is right: it judges kept databases as the programs did, and no flipped bit of what
/// it looks at turns one version into another.
#[test]
fn the_rebuilt_older_programs_know_their_own_versions_and_tell_damage() {
    for (version, knows) in VERSIONS.into_iter().flat_map(|v| OLDER.map(|knows| (v, knows))) {
        let expected = self::version(number(version), knows);
        for name in kept(version) {
            let disk = known::golden(&name);
            assert_eq!(open(&disk, knows), expected, "{name}, up to version {knows}");
            let files = files(&disk);
            assert!(files.len() >= 4, "{name}: {} files", files.len());
            for (file, mut bytes) in files {
                let what = format!("{name}, {file}, up to version {knows}");
                assert_eq!(judge(&file, &bytes, knows), Some(expected), "{what}");
                // A log file has a second copy of its header, which counts then.
                let bits = if file.ends_with(".log") { 0 } else { 64 * 8 };
                for bit in 0..bits {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    let verdict = judge(&file, &bytes, knows);
                    assert_eq!(verdict, Some(Verdict::Damaged), "{what}, bit {bit}");
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
        }
    }
}

/// The verdict comes from the first 64 bytes alone: whatever follows them, it is the same.
#[test]
fn older_programs_refuse_by_name_what_this_one_writes() {
    let mut disks = vec![("new".to_owned(), CrashFs::new())];
    for name in VERSIONS.into_iter().flat_map(kept).chain(["v3-tiers".to_owned()]) {
        let disk = known::golden(&name);
        disks.push((name, disk));
    }
    for (name, disk) in disks {
        let [open, closed] = written(disk);
        for knows in OLDER {
            let what = format!("{name}, up to version {knows}");
            assert_eq!(self::open(&open, knows), Verdict::Unknown(3), "{what}, open");
            assert_eq!(self::open(&closed, knows), Verdict::Unknown(3), "{what}, closed");
            refuses_each_file(&closed, knows, &what);
        }
    }
}

fn refuses_each_file(disk: &CrashFs, knows: u32, what: &str) {
    let newer = Some(Verdict::Unknown(3));
    let (mut described, mut logs) = (0, 0);
    for (file, mut bytes) in files(disk) {
        let verdict = judge(&file, &bytes, knows);
        if file.ends_with(".log") {
            // One that waits to be used again may still have the header of an older version.
            assert_ne!(verdict, Some(Verdict::Damaged), "{what}, {file}");
            logs += usize::from(verdict == newer);
            continue;
        }
        assert_eq!(verdict, newer, "{what}, {file}");
        bytes[64..].fill(0xA5);
        assert_eq!(judge(&file, &bytes, knows), newer, "{what}, {file}, with another content");
        bytes.truncate(64);
        assert_eq!(judge(&file, &bytes, knows), newer, "{what}, {file}, cut off");
        described += 1;
    }
    assert!(described >= 3 && logs >= 1, "{what}: {described} files and {logs} logs");
}

/// Wherever the conversion of a database is cut off, an older program finds the database that it knows, or
/// a newer version, and no damage.
#[test]
fn older_programs_never_take_a_conversion_that_was_cut_off_for_damage() {
    for name in ["v1", "v2"].into_iter().flat_map(kept) {
        let old = number(&name[..2]);
        let disk = known::golden(&name);
        // A superblock that is written over may be of both versions.
        disk.set_tear(Tear::Bytes);
        let cuts = cuts_of(&disk, || drop(written(disk.clone())));
        let (mut older, mut newer) = (0, 0);
        for (story, cut) in cuts {
            for knows in OLDER {
                match open(&cut, knows) {
                    Verdict::Unknown(3) => newer += 1,
                    verdict => {
                        older += 1;
                        let expected = version(old, knows);
                        assert_eq!(verdict, expected, "{name}, up to version {knows}, {story}");
                    }
                }
            }
        }
        println!("{name}: {older} cuts left the older version, {newer} the newer one");
        assert!(older > 10 && newer > 10, "{name}: {older} and {newer}");
    }
}
