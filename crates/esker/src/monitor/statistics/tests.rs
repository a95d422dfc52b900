use super::format::{FILE_BYTES, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, SLOT_BYTES, VERSION};
use super::format::{Slot, decode, payload_offset, slot_offset};
use super::*;
use crate::base::codec::checksum;
use crate::error::{Error, Result};
use crate::fs::{Fs, OpenMode, Process, os};
use crate::stats::{Stats, TreeShape};
use crate::wal::memfs::MemFs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DATABASE: [u8; 16] = [7; 16];

fn directory() -> &'static Path {
    Path::new("/db")
}

fn path() -> PathBuf {
    directory().join(STATISTICS_NAME)
}

fn stats(puts: u64) -> Stats {
    let tree = TreeShape { keyspace: "default".to_owned(), ..TreeShape::default() };
    Stats { puts, trees: vec![tree], ..Stats::default() }
}

fn at(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis)
}

/// A disk, and the file after `updates` updates: update `n` at time `1000 n` has `n` puts.
fn scene(updates: u64) -> (Arc<MemFs>, StatisticsFile) {
    let disk = MemFs::new();
    let fs: Arc<dyn Fs> = disk.clone();
    let mut file = StatisticsFile::new(&fs, directory(), DATABASE);
    for number in 1..=updates {
        assert!(file.update(stats(number), 1, number * 1_000, false));
    }
    (disk, file)
}

fn read(disk: &Arc<MemFs>, now: u64) -> Result<Observed> {
    Observed::read_at(disk.as_ref(), directory(), at(now))
}

/// The file with other bytes.
fn read_bytes(bytes: &[u8], now: u64) -> Result<Observed> {
    let (disk, _) = scene(1);
    disk.overwrite(&path(), bytes.to_vec());
    read(&disk, now)
}

#[test]
fn what_was_written_is_read() {
    let (disk, mut file) = scene(3);
    let observed = read(&disk, 3_250).unwrap();
    assert_eq!(observed.stats, stats(3));
    assert_eq!((observed.update, observed.keyspaces, observed.database), (3, 1, [7; 16]));
    assert_eq!(observed.updated, at(3_000));
    assert!(observed.opened <= SystemTime::now() && observed.opened > at(1_000_000_000_000));
    assert_eq!(observed.age, Duration::from_millis(250));
    assert_eq!(observed.process, u64::from(std::process::id()));
    assert_eq!(observed.state, ObservedState::Live);
    assert!(!observed.trees_left_out());
    assert_eq!(disk.read(&path()).len(), FILE_BYTES);
    assert!(file.update(stats(9), 1, 4_000, true));
    let observed = read(&disk, 900_000).unwrap();
    assert_eq!((observed.state, observed.stats.puts), (ObservedState::Closed, 9));
    // A clock that was set back makes nothing fail.
    assert_eq!(read(&disk, 0).unwrap().age, Duration::ZERO);
}

/// The bytes of the file after update 2, and the two writes of update 3.
fn torn_scene() -> (Vec<u8>, [(u64, Vec<u8>); 2]) {
    let (disk, mut file) = scene(2);
    let before = disk.read(&path());
    assert!(file.update(stats(3), 1, 3_000, false));
    let after = disk.read(&path());
    let (slot, payload) = (slot_offset(3), payload_offset(3));
    let part = |from: u64, len: usize| after[from as usize..][..len].to_vec();
    let Slot::Whole { len, .. } = decode(1, &part(slot, HEADER_BYTES)) else { panic!("no slot") };
    (before, [(payload, part(payload, len)), (slot, part(slot, HEADER_BYTES))])
}

#[test]
fn a_write_torn_at_any_byte_leaves_the_update_before() {
    let (before, [payload, header]) = torn_scene();
    let expect = |bytes: &[u8], update: u64, what: &str| {
        let observed = read_bytes(bytes, 3_000).unwrap();
        assert_eq!((observed.update, observed.stats.puts), (update, update), "{what}");
    };
    let mut bytes = before.clone();
    for (index, byte) in payload.1.iter().enumerate() {
        expect(&bytes, 2, &format!("{index} bytes of the payload"));
        bytes[payload.0 as usize + index] = *byte;
    }
    for (index, byte) in header.1.iter().enumerate() {
        let whole = bytes[header.0 as usize..][..HEADER_BYTES] == header.1[..];
        expect(&bytes, if whole { 3 } else { 2 }, &format!("{index} bytes of the header"));
        bytes[header.0 as usize + index] = *byte;
    }
    expect(&bytes, 3, "all");
    // After a power cut, the header may be there without the payload, or with a part of it.
    let mut bytes = before;
    bytes[header.0 as usize..][..HEADER_BYTES].copy_from_slice(&header.1);
    for (index, byte) in payload.1.iter().enumerate() {
        let whole = bytes[payload.0 as usize..][..payload.1.len()] == payload.1[..];
        expect(&bytes, if whole { 3 } else { 2 }, &format!("header and {index} bytes"));
        bytes[payload.0 as usize + index] = *byte;
    }
}

#[test]
fn any_flipped_byte_is_noticed() {
    let (disk, _) = scene(2);
    let bytes = disk.read(&path());
    let len = stats(2).encode().len();
    for offset in 0..HEADER_BYTES + len {
        disk.patch(&path(), offset, 0x41);
        match read(&disk, 2_000) {
            // Update 2 is in the first slot, and the other slot is still there.
            Ok(observed) => assert_eq!(observed.update, 1, "byte {offset}"),
            // A damaged version means another version.
            Err(Error::UnknownFormat { .. }) => assert!((8..12).contains(&offset)),
            Err(error) => panic!("byte {offset}: {error}"),
        }
        disk.patch(&path(), offset, 0x41);
    }
    assert_eq!(disk.read(&path()), bytes);
}

/// A header that checks, with `len` as the length of its payload.
fn crafted(update: u64, len: u32) -> Vec<u8> {
    let header = Header { update, ..Header::default() };
    let mut bytes = header.encode(&[]);
    bytes[108..112].copy_from_slice(&len.to_le_bytes());
    let sum = checksum(update, slot_offset(update), &bytes[..120]);
    bytes[120..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn crafted_lengths_and_places_are_refused() {
    let max = PAYLOAD_BYTES_MAX as u32;
    for len in [1, max - 1, max, max + 1, SLOT_BYTES as u32, u32::MAX] {
        for file in [HEADER_BYTES, SLOT_BYTES, FILE_BYTES, 2 * FILE_BYTES] {
            let mut bytes = crafted(2, len);
            bytes.resize(file, 0);
            assert!(matches!(read_bytes(&bytes, 0), Err(Error::Corruption(_))), "{len} {file}");
        }
    }
    // Slot 0 has updates with even numbers only.
    let mut bytes = Header { update: 3, ..Header::default() }.encode(&stats(3).encode());
    bytes.extend_from_slice(&stats(3).encode());
    assert!(matches!(read_bytes(&bytes, 0), Err(Error::Corruption(_))));
    // A payload that checks and is none.
    let mut bytes = Header { update: 2, ..Header::default() }.encode(b"no statistics");
    bytes.extend_from_slice(b"no statistics");
    assert!(matches!(read_bytes(&bytes, 0), Err(Error::Corruption(_))));
    // Times that no clock shows.
    let far = Header { update: 2, opened: u64::MAX, updated: u64::MAX, ..Header::default() };
    let mut bytes = far.encode(&stats(3).encode());
    bytes.extend_from_slice(&stats(3).encode());
    let _ = read_bytes(&bytes, 0);
    // The greatest number.
    let last = Header { update: u64::MAX - 1, ..Header::default() };
    let mut bytes = last.encode(&stats(3).encode());
    bytes.extend_from_slice(&stats(3).encode());
    assert_eq!(read_bytes(&bytes, 0).unwrap().update, u64::MAX - 1);
    for len in 0..HEADER_BYTES {
        assert!(matches!(read_bytes(&bytes[..len], 0), Err(Error::Corruption(_))), "{len}");
    }
}

#[test]
fn another_version_is_named() {
    for version in [0, VERSION + 1, u32::MAX] {
        let (disk, _) = scene(2);
        let mut bytes = disk.read(&path());
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let Err(Error::UnknownFormat { found, supported, .. }) = read_bytes(&bytes, 0) else {
            panic!("version {version} is read");
        };
        assert_eq!((found, supported), (version, VERSION));
    }
}

#[test]
fn a_later_opening_goes_on_counting_over_whatever_is_there() {
    let (disk, _) = scene(5);
    let fs: Arc<dyn Fs> = disk.clone();
    let five = disk.read(&path());
    let huge = Header { update: u64::MAX - 1, ..Header::default() };
    let mut crafted_end = huge.encode(&stats(3).encode());
    crafted_end.extend_from_slice(&stats(3).encode());
    let mut newer = five.clone();
    newer[8] = 9;
    newer[SLOT_BYTES + 8] = 9;
    let mut long = five.clone();
    long.resize(5 * FILE_BYTES, 1);
    for (what, bytes, next) in [
        ("five updates", five.clone(), 6),
        ("half of it", five[..SLOT_BYTES / 2].to_vec(), 5),
        ("nothing", Vec::new(), 1),
        ("junk", vec![0xee; 300_000], 1),
        ("numbers at their end", crafted_end, 1),
        ("a newer version", newer, 1),
        ("more than the file", long, 6),
    ] {
        disk.overwrite(&path(), bytes);
        let mut file = StatisticsFile::new(&fs, directory(), DATABASE);
        assert!(file.update(stats(100), 1, 50_000, false), "{what}");
        let observed = read(&disk, 50_000).unwrap();
        assert_eq!((observed.update, observed.stats.puts), (next, 100), "{what}");
        assert_eq!(disk.read(&path()).len(), FILE_BYTES, "{what}");
        assert!(file.update(stats(101), 1, 51_000, false), "{what}");
        assert_eq!(read(&disk, 51_000).unwrap().stats.puts, 101, "{what}");
    }
}

#[test]
fn a_full_or_failing_disk_is_counted_and_passes() {
    let (disk, mut file) = scene(2);
    disk.knobs.fail_write.store(true, Ordering::Relaxed);
    assert!(!file.update(stats(3), 1, 3_000, false));
    assert!(!file.update(stats(3), 1, 3_500, false));
    assert_eq!(file.failures(), 2);
    assert_eq!(read(&disk, 3_000).unwrap().update, 2);
    disk.knobs.fail_write.store(false, Ordering::Relaxed);
    assert!(file.update(stats(4), 1, 4_000, false));
    assert_eq!(read(&disk, 4_000).unwrap().stats.puts, 4);
    // No space for the whole file: the slots are written as far as they can be.
    let full = MemFs::new();
    full.knobs.free.store(100, Ordering::Relaxed);
    let fs: Arc<dyn Fs> = full.clone();
    let mut file = StatisticsFile::new(&fs, directory(), DATABASE);
    assert!(file.update(stats(1), 1, 1_000, false));
    assert_eq!(read(&full, 1_000).unwrap().stats.puts, 1);
}

#[test]
fn the_state_tells_whether_the_figures_are_of_now() {
    let here = Process::current();
    let state = |process: Process, inode: u64, age: u64| {
        let header = Header { process, inode, update: 2, updated: 5_000, ..Header::default() };
        let mut bytes = header.encode(&stats(1).encode());
        bytes.extend_from_slice(&stats(1).encode());
        read_bytes(&bytes, 5_000 + age).unwrap().state
    };
    let unknown = Process { id: 1, ..Process::default() };
    assert_eq!(state(unknown, 0, 30_000), ObservedState::Live);
    assert_eq!(state(unknown, 0, 30_001), ObservedState::Silent);
    // The inode is another one: a copy of the file.
    assert_eq!(state(unknown, 99_999, 0), ObservedState::Ended);
    if cfg!(target_os = "linux") {
        assert_eq!(state(here, 0, 0), ObservedState::Live);
        assert_eq!(state(here, 0, 30_001), ObservedState::Silent);
        assert_eq!(
            state(Process { started: here.started + 1, ..here }, 0, 0),
            ObservedState::Ended
        );
    }
}

#[test]
fn many_trees_are_bounded() {
    let (disk, mut file) = scene(0);
    for (trees, name_bytes) in [(10_usize, 8), (300, 8), (5_000, 255)] {
        let shape = |number: usize| TreeShape {
            keyspace: format!("{number:0name_bytes$}"),
            deltas: vec![Default::default(); 3],
            ..TreeShape::default()
        };
        let stats = Stats { puts: 5, trees: (0..trees).map(shape).collect(), ..Stats::default() };
        assert!(file.update(stats.clone(), trees, 1_000, false));
        let observed = read(&disk, 1_000).unwrap();
        let shown = observed.stats.trees.len();
        assert!(shown > 0 && shown <= TREES_MAX && observed.stats.puts == 5, "{shown}");
        assert_eq!(observed.keyspaces, trees as u64);
        assert_eq!(observed.trees_left_out(), shown < trees);
        assert_eq!(observed.trees_left_out(), trees > 10);
        assert_eq!(observed.stats.trees[..], stats.trees[..shown]);
    }
}

#[cfg(unix)]
#[test]
fn what_occupies_the_place_disturbs_nothing() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join(STATISTICS_NAME);
    let outside = dir.path().join("outside");
    std::fs::write(&outside, b"mine").unwrap();
    let mut file = StatisticsFile::new(&os(), dir.path(), DATABASE);
    std::fs::create_dir(&place).unwrap();
    assert!(!file.update(stats(1), 1, 1, false));
    assert!(Observed::read(dir.path()).is_err());
    std::fs::remove_dir(&place).unwrap();
    symlink(&outside, &place).unwrap();
    assert!(!file.update(stats(1), 1, 1, false));
    assert!(Observed::read(dir.path()).is_err());
    std::fs::remove_file(&place).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(&place).status().unwrap();
    assert!(pipe.success());
    assert!(!file.update(stats(1), 1, 1, false));
    assert!(Observed::read(dir.path()).is_err());
    std::fs::remove_file(&place).unwrap();
    assert_eq!(file.failures(), 3);
    // The place is free again.
    assert!(file.update(stats(1), 1, 1, false));
    // A file that was removed, or is another's too, is made anew.
    std::fs::remove_file(&place).unwrap();
    assert!(file.update(stats(2), 1, 1, false));
    assert_eq!(Observed::read(dir.path()).unwrap().stats.puts, 2);
    std::fs::hard_link(&place, dir.path().join("copy")).unwrap();
    let copy = std::fs::read(dir.path().join("copy")).unwrap();
    assert!(file.update(stats(3), 1, 1, false));
    assert_eq!(Observed::read(dir.path()).unwrap().stats.puts, 3);
    assert_eq!(std::fs::read(dir.path().join("copy")).unwrap(), copy);
    assert_eq!(std::fs::read(&outside).unwrap(), b"mine");
}

#[test]
fn a_reader_beside_a_writer_sees_whole_updates_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = StatisticsFile::new(&os(), dir.path(), DATABASE);
    assert!(file.update(stats(1), 1, 1, false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 2..3_000 {
                assert!(file.update(stats(number), 1, number, number == 2_999));
            }
        });
        let mut last = 0;
        loop {
            // A writer without a pause may overtake every try.
            let Ok(observed) = Observed::read(dir.path()) else { continue };
            assert!(observed.update >= last);
            assert_eq!(observed.stats.puts, observed.update);
            last = observed.update;
            if observed.state == ObservedState::Closed {
                break;
            }
        }
    });
}

#[test]
fn a_reader_needs_only_reading() {
    let (disk, _) = scene(2);
    let before = disk.read(&path());
    disk.knobs.fail_write.store(true, Ordering::Relaxed);
    read(&disk, 2_000).unwrap();
    assert!(disk.open(&path(), OpenMode::Read).is_ok());
    assert_eq!(disk.read(&path()), before);
    assert_eq!(disk.paths(), [path()]);
}

#[test]
fn each_call_writes_and_the_last_one_closes() {
    let (disk, mut file) = scene(0);
    for puts in 1..=2 {
        file.keep(false, true, || (stats(puts), 1));
        assert_eq!(read(&disk, 0).unwrap().stats.puts, puts);
    }
    file.keep(true, true, || (stats(3), 1));
    let last = read(&disk, 0).unwrap();
    assert_eq!((last.stats.puts, last.state), (3, ObservedState::Closed));
}

#[test]
fn on_a_full_device_only_a_file_with_its_space_is_written() {
    let (disk, mut file) = scene(0);
    file.keep(false, false, || panic!("there is no space for it"));
    assert!(disk.paths().is_empty());
    file.keep(true, true, || (stats(1), 1));
    file.keep(true, false, || (stats(2), 1));
    assert_eq!(read(&disk, 0).unwrap().stats.puts, 2);
}

#[test]
fn the_slowest_operations_are_in_the_file_and_leave_space_for_the_rest() {
    let (disk, mut file) = scene(0);
    let dir = tempfile::tempdir().unwrap();
    let db = crate::Db::open(&dir).unwrap();
    let mut explanation = db.explain_put("secret-key", "secret-value").unwrap();
    db.close().unwrap();
    let slow = crate::SlowOperation { when: at(7), explanation: explanation.clone() };
    let one = Stats { slowest: vec![slow], ..stats(1) };
    assert!(file.update(one.clone(), 1, 1_000, false));
    assert_eq!(read(&disk, 1_000).unwrap().stats, one);
    assert!(!disk.read(&path()).windows(6).any(|part| part == b"secret"));
    // As many as there can be, with the longest names and many steps.
    explanation.keyspace = "k".repeat(255);
    explanation.steps = explanation.steps.into_iter().cycle().take(500).collect();
    let mut slowest = Vec::new();
    for operation in ["get", "scan", "put", "sync", "lock"] {
        let explanation = crate::Explanation { operation, ..explanation.clone() };
        slowest.extend(vec![crate::SlowOperation { when: at(7), explanation }; 16]);
    }
    let shape = |number| TreeShape { keyspace: format!("{number}"), ..TreeShape::default() };
    let trees: Vec<_> = (0..100).map(shape).collect();
    let full = Stats { slowest, trees, ..stats(2) };
    assert!(file.update(full.clone(), 100, 2_000, false));
    let observed = read(&disk, 2_000).unwrap();
    assert!(!observed.trees_left_out() && observed.stats.trees == full.trees);
    let shown = observed.stats.slowest.len();
    assert!((5..80).contains(&shown), "{shown}");
}
