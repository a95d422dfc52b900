use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use crate::fs::{Advice, DirEntry, File, Incarnation, OpenMode, PathKind, os};

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().to_owned();
    (dir, path)
}

fn contents(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().expect("len") as usize];
    file.read_at(&mut bytes, 0).expect("read");
    bytes
}

#[test]
fn bytes_come_back_where_they_were_written() {
    let (_guard, dir) = fresh();
    let fs = os();
    let file = fs.open(&dir.join("f"), OpenMode::CreateNew).expect("create");
    assert!(file.is_empty().expect("len"));
    file.write_at(b"world", 7).expect("write");
    file.write_at(b"hello, ", 0).expect("write");
    assert_eq!(contents(file.as_ref()), b"hello, world");
    let mut buffer = [0; 6];
    assert_eq!(
        file.read_at(&mut buffer, 7).map_err(|error| error.kind()),
        Err(ErrorKind::UnexpectedEof)
    );
    file.sync_data().expect("sync");
    fs.sync_dir(&dir).expect("sync of the directory");
    file.set_len(5).expect("cut");
    file.set_len(8).expect("extend");
    assert_eq!(contents(file.as_ref()), b"hello\0\0\0");
    assert_eq!(file.links().expect("links"), 1);
    for advice in [Advice::Sequential, Advice::Random, Advice::DontNeed] {
        file.advise(advice);
    }
    let reader = fs.open(&dir.join("f"), OpenMode::Read).expect("open");
    assert_eq!(contents(reader.as_ref()), b"hello\0\0\0");
    assert!(reader.write_at(b"x", 0).is_err(), "the mode forbids it");
}

#[test]
fn modes_keep_to_what_exists() {
    let (_guard, dir) = fresh();
    let fs = os();
    let path = dir.join("f");
    for mode in [OpenMode::Read, OpenMode::ReadWrite] {
        let answer = fs.open(&path, mode).map(drop).map_err(|error| error.kind());
        assert_eq!(answer, Err(ErrorKind::NotFound));
    }
    fs.open(&path, OpenMode::CreateNew).expect("create");
    let answer = fs.open(&path, OpenMode::CreateNew).map(drop).map_err(|error| error.kind());
    assert_eq!(answer, Err(ErrorKind::AlreadyExists));
    fs.open(&path, OpenMode::ReadWrite).expect("open").write_at(b"1", 0).expect("write");
}

#[test]
fn directories_list_rename_and_remove() {
    let (_guard, dir) = fresh();
    let fs = os();
    let sub = dir.join("sub");
    fs.create_dir(&sub).expect("create");
    fs.create_dir(&sub).expect("it is there already");
    fs.open(&sub.join("a"), OpenMode::CreateNew).expect("create").write_at(b"aa", 0).expect("w");
    fs.open(&sub.join("b"), OpenMode::CreateNew).expect("create");
    fs.rename(&sub.join("a"), &sub.join("b")).expect("rename");
    let entry = DirEntry { name: "b".into(), len: 2, kind: PathKind::File };
    assert_eq!(fs.list(&sub).expect("list"), [entry]);
    let entry = DirEntry { name: "sub".into(), len: 0, kind: PathKind::Directory };
    assert_eq!(fs.list(&dir).expect("list"), [entry]);
    assert_eq!(fs.kind(&sub).expect("kind"), Some(PathKind::Directory));
    assert_eq!(fs.kind(&sub.join("b")).expect("kind"), Some(PathKind::File));
    assert_eq!(fs.kind(&sub.join("a")).expect("kind"), None);
    assert!(fs.create_dir(&sub.join("b")).is_err(), "a file stands there");
    assert!(fs.sync_dir(&sub.join("b")).is_err());
    fs.remove_file(&sub.join("b")).expect("remove");
    assert_eq!(fs.list(&sub).expect("list"), []);
    assert!(fs.list(&dir.join("none")).is_err());
    assert!(fs.free_bytes(&dir).expect("free") > 0);
}

#[test]
fn allocation_is_real_and_keeps_contents() {
    let (_guard, dir) = fresh();
    let file = os().open(&dir.join("f"), OpenMode::CreateNew).expect("create");
    file.write_at(b"head", 0).expect("write");
    file.allocate(1 << 20).expect("allocate");
    assert_eq!(file.len().expect("len"), 1 << 20);
    assert!(file.allocated().expect("allocated") >= 1 << 20, "the space is sparse");
    file.allocate(4096).expect("less than there is");
    assert_eq!(file.len().expect("len"), 1 << 20, "allocating never shortens");
    let bytes = contents(file.as_ref());
    assert_eq!(&bytes[..4], b"head");
    assert!(bytes[4..].iter().all(|&byte| byte == 0));
    match file.punch(0, 512 << 10) {
        Ok(()) => {
            assert!(file.allocated().expect("allocated") < 1 << 20);
            assert_eq!(file.len().expect("len"), 1 << 20);
            assert_eq!(contents(file.as_ref())[..4], [0; 4]);
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
    }
}

#[test]
fn a_second_lock_fails_at_once_until_the_first_is_dropped() {
    let (_guard, dir) = fresh();
    let fs = os();
    let path = dir.join("LOCK");
    let held = fs.lock(&path).expect("lock");
    let second = || fs.lock(&path).map(drop).map_err(|error| error.kind());
    assert_eq!(second(), Err(ErrorKind::WouldBlock));
    // Closing another descriptor of the file must not release it, as it would with fcntl.
    drop(fs.open(&path, OpenMode::ReadWrite).expect("open"));
    assert_eq!(second(), Err(ErrorKind::WouldBlock));
    drop(held);
    assert_eq!(second(), Ok(()));
    assert_eq!(second(), Ok(()));
}

/// The hook of a command runs in a forked child that owns copies of both locks and descriptors.
#[cfg(unix)]
#[test]
#[allow(unsafe_code, reason = "the only way of the standard library to run code after a fork")]
fn a_forked_child_neither_releases_nor_keeps_a_lock() {
    use std::io::{Read, Write, pipe};
    use std::os::unix::process::CommandExt;
    use std::sync::{Arc, Mutex};

    let (_guard, dir) = fresh();
    let fs = os();
    let (kept, released) = (dir.join("kept"), dir.join("released"));
    let attempt = |path| fs.lock(path).map(drop).map_err(|error| error.kind());
    let ours = Arc::new(Mutex::new(Some(fs.lock(&kept).expect("lock"))));
    let theirs = fs.lock(&released).expect("lock");
    let copy = Arc::clone(&ours);
    let (mut arrived, mut arrive) = pipe().expect("pipe");
    let (mut resume, mut resumed) = pipe().expect("pipe");
    let mut command = Command::new("true");
    // SAFETY: nobody in the parent holds the mutex while it forks, and the rest of the hook loads
    // a byte, frees memory (which the C library allows here), and writes and reads pipes.
    unsafe {
        command.pre_exec(move || {
            // The destructor as a child that exits would run it.
            drop(copy.try_lock().ok().and_then(|mut slot| slot.take()));
            arrive.write_all(&[1])?;
            // The copy of the other descriptor stays open until the parent says so.
            resume.read_exact(&mut [0])
        });
    }
    let child = std::thread::spawn(move || command.status());
    arrived.read_exact(&mut [0]).expect("the child is there");
    let while_held = (attempt(&kept), attempt(&released));
    drop(theirs);
    let after_release = (attempt(&kept), attempt(&released));
    resumed.write_all(&[1]).expect("resume");
    assert!(child.join().expect("no panic").expect("run").success());
    let blocked = Err(ErrorKind::WouldBlock);
    assert_eq!(while_held, (blocked, blocked), "the child released a lock of its parent");
    assert_eq!(after_release, (blocked, Ok(())), "the child's copy kept a released lock");
    drop(ours);
}

#[cfg(unix)]
#[test]
fn a_mapped_window_writes_through_to_the_file() {
    let (_guard, dir) = fresh();
    let file = os().open(&dir.join("log"), OpenMode::CreateNew).expect("create");
    file.allocate(3 << 20).expect("allocate");
    let kind = |len| file.map(len).map(drop).map_err(|error| error.kind());
    assert_eq!(kind((3 << 20) + 1), Err(ErrorKind::InvalidInput), "past the end of the file");
    assert_eq!(kind(0), Err(ErrorKind::InvalidInput));
    let map = file.map(2 << 20).expect("map");
    assert_eq!(map.len(), 2 << 20);
    assert!(map.write(5, b"mapped"));
    assert!(map.write((2 << 20) - 3, b"end"));
    let mut read = [0; 6];
    file.read_at(&mut read, 5).expect("read");
    assert_eq!(&read, b"mapped");
    for (offset, len) in [((2 << 20) - 2, 3), (2 << 20, 1), (u64::MAX, 1), (u64::MAX - 1, 4)] {
        assert!(!map.write(offset, &vec![1; len]), "{offset} + {len} is outside");
    }
    assert!(map.write(2 << 20, b""));
    for (offset, len) in [(0, 1), (4095, 2), (1 << 20, u64::MAX), (5 << 20, 1), (u64::MAX, 9)] {
        map.populate(offset, len);
    }
    file.sync_data().expect("sync");
    drop(map);
    let bytes = contents(file.as_ref());
    assert_eq!(&bytes[(2 << 20) - 3..(2 << 20) + 1], b"end\0");
}

#[cfg(target_os = "linux")]
#[test]
fn children_do_not_inherit_a_window() {
    let (_guard, dir) = fresh();
    let path = dir.join("inherited.log");
    let file = os().open(&path, OpenMode::CreateNew).expect("create");
    file.allocate(1 << 16).expect("allocate");
    let _map = file.map(1 << 16).expect("map");
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let ours = maps.split("inherited.log").nth(1).expect("the mapping is listed");
    let flags = ours.lines().find(|line| line.starts_with("VmFlags")).expect("flags");
    assert!(flags.split_whitespace().any(|flag| flag == "dc"), "not marked: {flags}");
}

#[test]
fn an_incarnation_is_that_of_one_file() {
    let (_guard, dir) = fresh();
    let fs = os();
    let first = fs.open(&dir.join("1"), OpenMode::CreateNew).expect("create");
    let second = fs.open(&dir.join("2"), OpenMode::CreateNew).expect("create");
    let known = first.incarnation();
    assert!(!known.same_life(&second.incarnation()));
    assert!(!Incarnation::default().same_life(&Incarnation::default()));
    // A rename and a second handle do not change it.
    fs.rename(&dir.join("1"), &dir.join("3")).expect("rename");
    let again = fs.open(&dir.join("3"), OpenMode::Read).expect("open");
    assert_eq!(known, again.incarnation());
    if known != Incarnation::default() {
        assert!(known.same_life(&again.incarnation()));
    }
}

/// What must not be opened, each under a name of its own in `dir`, with the kind that it is told
/// to be. Links lead to `outside`, which stands in another directory.
#[cfg(unix)]
fn misfits(dir: &std::path::Path, outside: &std::path::Path) -> Vec<(PathBuf, PathKind)> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let at = |name: &str| dir.join(name);
    let pipe = |name: &str| mknodat(CWD, at(name), FileType::Fifo, Mode::RWXU, 0).expect("pipe");
    std::os::unix::fs::symlink(outside, at("link")).expect("link");
    std::os::unix::fs::symlink(outside.with_extension("none"), at("dangling")).expect("link");
    pipe("pipe");
    std::os::unix::net::UnixListener::bind(at("socket")).expect("socket");
    std::fs::create_dir(at("directory")).expect("directory");
    vec![
        (at("link"), PathKind::Link),
        (at("dangling"), PathKind::Link),
        (at("pipe"), PathKind::Pipe),
        (at("socket"), PathKind::Socket),
        (at("directory"), PathKind::Directory),
        // Making one needs rights that a test may lack; this one is everywhere.
        (PathBuf::from("/dev/null"), PathKind::Device),
    ]
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_opened_or_locked() {
    use crate::fs::{within, wrong_kind};
    let (_guard, dir) = fresh();
    let (inside, outside) = (dir.join("db"), dir.join("outside"));
    std::fs::create_dir(&inside).expect("directory");
    std::fs::write(&outside, "mine").expect("write");
    for rooted in [false, true] {
        let fs = if rooted { within(&os(), &inside).expect("root") } else { os() };
        let misfits = misfits(&inside, &outside);
        for (path, kind) in &misfits {
            let refused = |answer: std::io::Result<()>| {
                let error = answer.expect_err("it was taken for a file");
                assert_eq!(wrong_kind(&error), Some(*kind), "{}: {error}", path.display());
                assert!(error.to_string().contains(&kind.to_string()), "{error}");
            };
            refused(fs.open(path, OpenMode::Read).map(drop));
            refused(fs.open(path, OpenMode::ReadWrite).map(drop));
            refused(fs.lock(path).map(drop));
            refused(fs.hard_link(path, &dir.join("other")));
            let created =
                fs.open(path, OpenMode::CreateNew).map(drop).map_err(|error| error.kind());
            assert_eq!(created, Err(ErrorKind::AlreadyExists), "{}", path.display());
        }
        for entry in fs.list(&inside).expect("list") {
            let told = misfits.iter().find(|(path, _)| path.ends_with(&entry.name));
            assert_eq!(told.map(|(_, kind)| *kind), Some(entry.kind), "{entry:?}");
            assert_eq!(entry.len, 0);
        }
        std::fs::remove_dir_all(&inside).expect("remove");
        std::fs::create_dir(&inside).expect("directory");
    }
    assert_eq!(std::fs::read(&outside).expect("read"), b"mine");
    let left: Vec<_> = std::fs::read_dir(&dir).expect("list").collect();
    assert_eq!(left.len(), 2, "something was made outside: {left:?}");
}

#[cfg(unix)]
#[test]
fn below_a_root_no_link_is_followed() {
    use crate::fs::{within, wrong_kind};
    let (_guard, dir) = fresh();
    let (inside, outside) = (dir.join("db"), dir.join("outside"));
    std::fs::create_dir(&inside).expect("directory");
    std::fs::create_dir(&outside).expect("directory");
    std::fs::write(outside.join("f"), "mine").expect("write");
    std::os::unix::fs::symlink(&outside, inside.join("wal")).expect("link");
    let fs = within(&os(), &inside).expect("root");
    let wal = inside.join("wal");
    let (file, new) = (wal.join("f"), wal.join("g"));
    let refused = |answer: std::io::Result<()>| {
        let error = answer.expect_err("the link was followed");
        assert_eq!(wrong_kind(&error), Some(PathKind::Link), "{error}");
    };
    refused(fs.open(&file, OpenMode::Read).map(drop));
    refused(fs.open(&file, OpenMode::ReadWrite).map(drop));
    refused(fs.open(&new, OpenMode::CreateNew).map(drop));
    refused(fs.lock(&new).map(drop));
    refused(fs.create_dir(&wal));
    refused(fs.create_dir(&new));
    refused(fs.list(&wal).map(drop));
    refused(fs.kind(&file).map(drop));
    refused(fs.rename(&file, &inside.join("f")));
    refused(fs.remove_file(&file));
    refused(fs.remove_dir(&new));
    refused(fs.hard_link(&file, &inside.join("f")));
    refused(fs.sync_dir(&wal));
    refused(fs.free_bytes(&wal).map(drop));
    assert_eq!(fs.kind(&wal).expect("kind"), Some(PathKind::Link));
    // What leads out again was not found in the database, and is a path like any other.
    assert!(fs.open(&inside.join("../outside/f"), OpenMode::Read).is_ok());
    assert_eq!(std::fs::read(outside.join("f")).expect("read"), b"mine");
    assert_eq!(std::fs::read_dir(&outside).expect("list").count(), 1);
    // Elsewhere, and of the path itself, links are what the system makes of them.
    assert_eq!(os().kind(&wal).expect("kind"), Some(PathKind::Directory));
    assert!(within(&os(), &wal).expect("root").open(&file, OpenMode::Read).is_ok());
}

#[cfg(unix)]
#[test]
fn a_root_stays_the_same_directory_when_it_is_renamed() {
    let (_guard, dir) = fresh();
    let path = dir.join("db");
    std::fs::create_dir(&path).expect("directory");
    let fs = crate::fs::within(&os(), &path).expect("root");
    fs.create_dir(&path.join("data")).expect("create");
    std::fs::rename(&path, dir.join("moved")).expect("rename");
    std::fs::create_dir(&path).expect("directory");
    fs.open(&path.join("data/f"), OpenMode::CreateNew).expect("create");
    fs.sync_dir(&path.join("data")).expect("sync");
    fs.sync_dir(&path).expect("sync");
    assert_eq!(fs.kind(&path).expect("kind"), Some(PathKind::Directory));
    assert!(dir.join("moved/data/f").exists());
    assert_eq!(std::fs::read_dir(&path).expect("list").count(), 0);
    fs.rename(&path.join("data/f"), &path.join("g")).expect("rename");
    fs.hard_link(&path.join("g"), &dir.join("h")).expect("link");
    fs.remove_file(&path.join("g")).expect("remove");
    fs.remove_dir(&path.join("data")).expect("remove");
    assert_eq!(fs.list(&path).expect("list"), []);
    assert_eq!(fs.kind(&dir.join("h")).expect("kind"), Some(PathKind::File));
}

#[test]
fn what_lies_in_a_directory_is_told_whatever_the_path() {
    let (_guard, dir) = fresh();
    let fs = os();
    for name in ["db", "db/data", "db2"] {
        fs.create_dir(&dir.join(name)).expect("create");
    }
    let db = dir.join("db");
    let within = |path: &str| fs.contains(&db, &dir.join(path)).expect("look");
    for path in ["db", "db/", "db/data", "db/new", "db/new/er", "db2/../db/x", "db/data/../x"] {
        assert!(within(path), "{path}");
    }
    for path in ["", "db2", "db2/new", "db3", "db/../x", "db/../db2/x"] {
        assert!(!within(path), "{path}");
    }
    assert!(fs.contains(&dir.join("none"), &db).is_err());
}
