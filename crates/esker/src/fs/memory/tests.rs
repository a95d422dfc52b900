//! Tests of the file system in memory: it does what that of the operating system does.

use super::*;
use crate::fs::{os, wrong_kind};
use crate::wal::memfs::{Rng, seed};

/// A file system and a directory on it.
type Place = (Arc<dyn Fs>, PathBuf);

/// A directory on each of both file systems.
fn both() -> (tempfile::TempDir, [Place; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let (fs, root) = (memory(), PathBuf::from("/root"));
    fs.create_dir(&root).unwrap();
    let systems = [(os(), dir.path().to_owned()), (fs, root)];
    (dir, systems)
}

/// What a call did, for comparison.
fn told<T: std::fmt::Debug>(done: io::Result<T>) -> String {
    match done {
        Ok(done) => format!("{done:?}"),
        Err(error) => match wrong_kind(&error) {
            Some(kind) => format!("is {kind}"),
            None => format!("{:?}", error.kind()),
        },
    }
}

#[test]
fn names_mean_what_they_mean_on_the_operating_systems_file_system() {
    let (_dir, systems) = both();
    let done = systems.map(|(fs, root)| {
        let at = |name: &str| root.join(name);
        let open = |name: &str, mode| told(fs.open(&at(name), mode).map(drop));
        let mut done = vec![
            open("a", OpenMode::Read),
            open("a", OpenMode::CreateNew),
            open("a", OpenMode::CreateNew),
            open("missing/a", OpenMode::CreateNew),
            told(fs.create_dir(&at("d"))),
            told(fs.create_dir(&at("d"))),
            told(fs.create_dir(&at("missing/d"))),
            open("d", OpenMode::Read),
            open("d/b", OpenMode::CreateNew),
            told(fs.remove_dir(&at("d"))),
            told(fs.hard_link(&at("a"), &at("d/c"))),
            told(fs.hard_link(&at("a"), &at("d/c"))),
            told(fs.open(&at("a"), OpenMode::Read).and_then(|file| file.links())),
            told(fs.rename(&at("d/b"), &at("d/c"))),
            told(fs.open(&at("a"), OpenMode::Read).and_then(|file| file.links())),
            told(fs.rename(&at("d/b"), &at("e"))),
            told(fs.rename(&at("d"), &at("f"))),
            told(fs.kind(&at("f/c"))),
            told(fs.kind(&at("d"))),
            told(fs.remove_file(&at("f/b"))),
            told(fs.remove_file(&at("f/c"))),
            told(fs.remove_dir(&at("f"))),
            told(fs.list(&at("f"))),
            told(fs.sync_dir(&root)),
        ];
        let mut list = fs.list(&root).unwrap();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        done.push(format!("{list:?}"));
        done
    });
    assert_eq!(done[0], done[1]);
}

#[test]
fn bytes_are_where_they_were_written_and_zeros_elsewhere() {
    let mut random = Rng::new(seed(7));
    let (_dir, systems) = both();
    let files = systems.map(|(fs, root)| fs.open(&root.join("a"), OpenMode::CreateNew).unwrap());
    for step in 0..2000 {
        let (at, len) = (random.below(5 * PAGE as u64), random.below(2 * PAGE as u64) as usize);
        let what = random.below(6);
        let done = [&files[0], &files[1]].map(|file| match what {
            0 | 1 => told(file.write_at(&vec![step as u8; len], at)),
            2 if step % 7 == 0 => told(file.set_len(at)),
            3 => told(file.allocate(at)),
            // A hole has to lie in the file.
            4 if file.len().unwrap() > at + len as u64 && len > 0 => {
                told(file.punch(at, len as u64))
            }
            _ => {
                let mut bytes = vec![1; len];
                let read = told(file.read_at(&mut bytes, at));
                // What a failed read leaves in the buffer is nobody's business.
                if read == "()" {
                    format!("{:x}", xxhash_rust::xxh3::xxh3_64(&bytes))
                } else {
                    read
                }
            }
        });
        assert_eq!(done[0], done[1], "step {step}, {what}, {len} bytes at {at}");
        assert_eq!(files[0].len().unwrap(), files[1].len().unwrap(), "step {step}, {what}");
    }
}

#[test]
fn space_that_is_only_allocated_takes_no_memory_and_a_hole_frees_it() {
    let fs = memory();
    let file = fs.open("/a".as_ref(), OpenMode::CreateNew).unwrap();
    file.allocate(1 << 40).unwrap();
    assert_eq!((file.len().unwrap(), file.allocated().unwrap()), (1 << 40, 0));
    file.write_at(&[1; 3 * PAGE], 1 << 30).unwrap();
    assert_eq!(file.next_data(0), 1 << 30);
    assert_eq!(file.allocated().unwrap(), 3 * PAGE as u64);
    file.punch((1 << 30) + 1, 3 * PAGE as u64 - 2).unwrap();
    assert_eq!(file.allocated().unwrap(), 2 * PAGE as u64);
    file.set_len(0).unwrap();
    assert_eq!(file.allocated().unwrap(), 0);
}

#[test]
fn a_removed_file_lives_while_it_is_open_and_a_lock_while_it_is_held() {
    let (fs, path) = (memory(), Path::new("/a"));
    let lock = fs.lock(path).unwrap();
    assert_eq!(told(fs.lock(path)), "WouldBlock");
    drop(lock);
    drop(fs.lock(path).unwrap());
    let file = fs.open(path, OpenMode::ReadWrite).unwrap();
    file.write_at(b"text", 0).unwrap();
    fs.remove_file(path).unwrap();
    let mut text = [0; 4];
    file.read_at(&mut text, 0).unwrap();
    assert_eq!((&text, file.links().unwrap()), (b"text", 0));
    assert_eq!(fs.kind(path).unwrap(), None);
}
