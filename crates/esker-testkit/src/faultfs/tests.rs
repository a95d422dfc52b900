use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::fs::{File, Fs, Incarnation, OpenMode};

use super::{Effect, FaultFs, Op, Rule};
use crate::CrashFs;

fn setup() -> (CrashFs, FaultFs, Arc<dyn File>) {
    let disk = CrashFs::new();
    let fs = FaultFs::over(&disk);
    fs.create_dir(Path::new("/wal")).expect("create");
    let file = fs.open(Path::new("/wal/1"), OpenMode::CreateNew).expect("create");
    file.write_at(b"0123456789", 0).expect("write");
    fs.sync_dir(Path::new("/wal")).expect("sync_dir");
    fs.sync_dir(Path::new("/")).expect("sync_dir");
    file.sync_data().expect("sync");
    (disk, fs, file)
}

fn kind<T>(answer: std::io::Result<T>) -> Result<(), ErrorKind> {
    answer.map(drop).map_err(|error| error.kind())
}

fn contents(file: &Arc<dyn File>) -> Vec<u8> {
    let mut bytes = vec![0; file.len().expect("len") as usize];
    file.read_at(&mut bytes, 0).expect("read");
    bytes
}

#[test]
fn without_rules_everything_passes_and_is_counted() {
    let (_disk, fs, file) = setup();
    assert_eq!(contents(&file), b"0123456789");
    let counted: Vec<_> = fs.counts().into_iter().collect();
    let expected = [
        (Op::Create, 1),
        (Op::CreateDir, 1),
        (Op::SyncDir, 2),
        (Op::Read, 1),
        (Op::Write, 1),
        (Op::Len, 1),
        (Op::SyncData, 1),
    ];
    assert_eq!(counted, expected);
    assert_eq!((fs.count(Op::SyncDir), fs.count(Op::Punch)), (2, 0));
    assert!(fs.fired().is_empty() && fs.violations().is_empty());
}

#[test]
fn every_kind_of_call_can_fail_and_then_does_nothing() {
    for op in Op::ALL {
        let (disk, fs, file) = setup();
        fs.add(Rule::new(op, Effect::Error(ErrorKind::StorageFull)).path("wal").persistent());
        let before = crate::digest::Tree::read(&disk, Path::new("/")).expect("read");
        let (wal, name) = (Path::new("/wal"), Path::new("/wal/1"));
        let answer = match op {
            Op::Open => kind(fs.open(name, OpenMode::Read)),
            Op::Create => kind(fs.open(Path::new("/wal/2"), OpenMode::CreateNew)),
            Op::CreateDir => kind(fs.create_dir(Path::new("/wal/d"))),
            Op::List => kind(fs.list(wal)),
            Op::Kind => kind(fs.kind(wal)),
            Op::Rename => kind(fs.rename(name, Path::new("/x"))),
            Op::Remove => kind(fs.remove_file(name)),
            Op::RemoveDir => kind(fs.remove_dir(Path::new("/wal/d"))),
            Op::Link => kind(fs.hard_link(name, Path::new("/wal/2"))),
            Op::SyncDir => kind(fs.sync_dir(wal)),
            Op::Lock => kind(fs.lock(Path::new("/wal/LOCK"))),
            Op::FreeBytes => kind(fs.free_bytes(wal)),
            Op::Read => kind(file.read_at(&mut [0], 0)),
            Op::Write => kind(file.write_at(b"x", 0)),
            Op::Len => kind(file.len()),
            Op::Allocated => kind(file.allocated()),
            Op::SetLen => kind(file.set_len(0)),
            Op::Allocate => kind(file.allocate(4096)),
            Op::SyncData => kind(file.sync_data()),
            Op::Punch => kind(file.punch(0, 4096)),
            Op::Links => kind(file.links()),
            Op::Map => kind(file.map(1)),
        };
        assert_eq!(answer, Err(ErrorKind::StorageFull), "{op:?}");
        assert_eq!(fs.fired().len(), 1, "{op:?}");
        let after = crate::digest::Tree::read(&disk, Path::new("/")).expect("read");
        assert_eq!(before.differences(&after), [""; 0], "{op:?}");
    }
}

#[test]
fn a_rule_picks_the_path_and_the_occurrence() {
    let (_disk, fs, file) = setup();
    let other = fs.open(Path::new("/other"), OpenMode::CreateNew).expect("create");
    fs.add(Rule::new(Op::Write, Effect::Errno(5)).path("wal/").after(1));
    for _ in 0..3 {
        other.write_at(b"x", 0).expect("another path");
    }
    file.write_at(b"a", 0).expect("the first passes");
    let error = file.write_at(b"b", 0).expect_err("the second fails");
    assert_eq!(error.raw_os_error(), Some(5));
    file.write_at(b"c", 0).expect("the third passes");
    let fired = fs.fired();
    assert_eq!(fired.len(), 1);
    assert_eq!((fired[0].rule, fired[0].op, fired[0].occurrence), (0, Op::Write, 1));
    assert_eq!(fired[0].path, Path::new("/wal/1"));
    // A rename counts with either of its paths.
    fs.add(Rule::new(Op::Rename, Effect::Error(ErrorKind::Other)).path("target"));
    assert!(fs.rename(Path::new("/other"), Path::new("/target")).is_err());
    fs.rename(Path::new("/other"), Path::new("/target")).expect("only once");
}

#[test]
fn a_persistent_rule_lasts_until_cleared() {
    let (_disk, fs, file) = setup();
    fs.add(Rule::new(Op::Write, Effect::Error(ErrorKind::StorageFull)).after(1).persistent());
    file.write_at(b"a", 0).expect("before");
    for _ in 0..3 {
        assert!(file.write_at(b"b", 0).is_err());
    }
    fs.clear();
    file.write_at(b"c", 0).expect("after");
    assert_eq!(fs.fired().len(), 3);
}

#[test]
fn a_short_write_leaves_its_first_bytes() {
    let (_disk, fs, file) = setup();
    fs.add(Rule::new(Op::Write, Effect::ShortWrite(3, ErrorKind::StorageFull)));
    fs.add(Rule::new(Op::Write, Effect::ShortWrite(100, ErrorKind::StorageFull)));
    assert_eq!(kind(file.write_at(b"abcdef", 0)), Err(ErrorKind::StorageFull));
    assert_eq!(contents(&file), b"abc3456789");
    // The second rule has met the first call only if the first rule had let it through.
    assert_eq!(kind(file.write_at(b"ABCDEF", 0)), Err(ErrorKind::StorageFull));
    assert_eq!(contents(&file), b"ABCDE56789", "never all of them");
}

#[test]
fn a_flipped_bit_is_in_the_answer_only() {
    let (_disk, fs, file) = setup();
    fs.add(Rule::new(Op::Read, Effect::FlipBit(8 * 12 + 1)));
    let damaged = contents(&file);
    assert_eq!(damaged, b"0103456789", "bit 97 of 80 is bit 1 of byte 2");
    assert_eq!(contents(&file), b"0123456789");
}

#[test]
fn a_skipped_sync_lies() {
    let (disk, fs, file) = setup();
    fs.add(Rule::new(Op::SyncData, Effect::Skip));
    fs.add(Rule::new(Op::Remove, Effect::Skip));
    file.write_at(b"lost", 0).expect("write");
    file.sync_data().expect("it says so");
    fs.remove_file(Path::new("/wal/1")).expect("it says so");
    let after = disk.crash_clone(0, 0);
    let file = after.open(Path::new("/wal/1"), OpenMode::Read).expect("open");
    assert_eq!(contents(&file), b"0123456789");
    assert!(fs.violations().is_empty());
}

#[test]
fn a_failed_sync_loses_data_and_must_not_be_repeated() {
    for revert in [false, true] {
        let (disk, fs, file) = setup();
        fs.add(Rule::new(Op::SyncData, Effect::FailSync { revert }).path("wal/1"));
        file.write_at(b"new", 0).expect("write");
        assert!(file.sync_data().is_err());
        assert!(fs.violations().is_empty(), "failing is no violation");
        let expected: &[u8] = if revert { b"0123456789" } else { b"new3456789" };
        assert_eq!(contents(&file), expected);
        // Through another handle and under another name it is still that file.
        fs.rename(Path::new("/wal/1"), Path::new("/wal/2")).expect("rename");
        let again = fs.open(Path::new("/wal/2"), OpenMode::ReadWrite).expect("open");
        again.sync_data().expect("the kernel says yes");
        assert_eq!(fs.violations().len(), 1);
        let after = disk.crash_clone(0, 100);
        let after = after.open(Path::new("/wal/2"), OpenMode::Read).expect("open");
        assert_eq!(contents(&after), b"0123456789");
        // A new file is another one, and a reboot forgets.
        let fresh = fs.open(Path::new("/wal/1"), OpenMode::CreateNew).expect("create");
        fresh.sync_data().expect("sync");
        fs.forget_failed_syncs();
        again.sync_data().expect("sync");
        assert_eq!(fs.violations().len(), 1);
    }
}

#[test]
fn a_callback_runs_before_the_call_and_later_rules_still_apply() {
    let (_disk, fs, file) = setup();
    let called = Arc::new(AtomicU64::new(0));
    let (seen, inside) = (Arc::clone(&called), fs.clone());
    fs.add(Rule::new(
        Op::SyncData,
        Effect::Call(Arc::new(move || {
            // The file system can be used from here.
            seen.fetch_add(inside.count(Op::SyncData), Ordering::SeqCst);
        })),
    ));
    fs.add(Rule::new(Op::SyncData, Effect::Error(ErrorKind::TimedOut)));
    assert_eq!(kind(file.sync_data()), Err(ErrorKind::TimedOut));
    assert_eq!(called.load(Ordering::SeqCst), 2);
    assert_eq!(fs.fired().len(), 2);
}

#[test]
fn mapped_windows_and_incarnations_pass_through() {
    let (disk, fs, file) = setup();
    fs.add(Rule::new(Op::Write, Effect::Error(ErrorKind::Other)).persistent());
    let map = file.map(10).expect("map");
    assert!(map.write(0, b"map"));
    assert_eq!(contents(&file), b"map3456789");
    let same = disk.open(Path::new("/wal/1"), OpenMode::Read).expect("open");
    assert!(file.incarnation().same_life(&same.incarnation()));
    fs.hide_incarnations(true);
    assert_eq!(file.incarnation(), Incarnation::default());
    fs.add(Rule::new(Op::Map, Effect::Error(ErrorKind::Unsupported)));
    assert_eq!(kind(file.map(10)), Err(ErrorKind::Unsupported));
}

#[test]
fn it_wraps_any_file_system() {
    let fs = FaultFs::new(CrashFs::new().as_fs());
    let file = fs.open(Path::new("/f"), OpenMode::CreateNew).expect("create");
    fs.add(Rule::new(Op::SyncData, Effect::FailSync { revert: true }));
    file.write_at(b"x", 0).expect("write");
    assert!(file.sync_data().is_err());
    assert_eq!(contents(&file), b"x", "there is no cache to revert");
    assert!(fs.as_fs().kind(Path::new("/f")).expect("kind").is_some());
}
