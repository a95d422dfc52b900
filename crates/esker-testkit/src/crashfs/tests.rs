use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use esker::fs::{File, Fs, OpenMode, PathKind};
use parking_lot::Mutex;

use super::{CrashFs, Fate, Tear};

const BLOCK: usize = 4096;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn create(fs: &CrashFs, name: &str) -> Arc<dyn File> {
    fs.open(path(name), OpenMode::CreateNew).expect("create")
}

fn read(fs: &CrashFs, name: &str) -> Option<Vec<u8>> {
    let file = fs.open(path(name), OpenMode::Read).ok()?;
    let mut bytes = vec![0; file.len().expect("len") as usize];
    file.read_at(&mut bytes, 0).expect("read");
    Some(bytes)
}

fn names(fs: &CrashFs, dir: &str) -> Vec<String> {
    fs.list(path(dir)).expect("list").into_iter().map(|entry| entry.name).collect()
}

/// A file with durable contents and a durable name.
fn durable(fs: &CrashFs, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = create(fs, name);
    file.write_at(bytes, 0).expect("write");
    file.sync_data().expect("sync");
    fs.sync_dir(path("/")).expect("sync_dir");
    file
}

/// Keeps the directory changes in a bit mask and nothing or everything else.
struct Mask {
    entries: u64,
    rest: bool,
}

impl Fate for Mask {
    fn entry(&mut self, number: usize, _what: &str) -> bool {
        self.entries >> number & 1 == 1
    }
    fn length(&mut self, _inode: u64, durable: u64, live: u64) -> u64 {
        if self.rest { live } else { durable }
    }
    fn block(&mut self, _inode: u64, _index: usize) -> bool {
        self.rest
    }
}

#[test]
fn it_is_a_file_system() {
    let fs = CrashFs::new();
    fs.create_dir(path("/db")).expect("create");
    fs.create_dir(path("/db")).expect("again");
    assert_eq!(
        fs.open(path("/none/f"), OpenMode::CreateNew).map(drop).map_err(|e| e.kind()),
        Err(ErrorKind::NotFound)
    );
    let file = create(&fs, "/db/f");
    assert_eq!(
        fs.open(path("/db/f"), OpenMode::CreateNew).map(drop).map_err(|e| e.kind()),
        Err(ErrorKind::AlreadyExists)
    );
    file.write_at(b"abc", 5000).expect("write");
    assert_eq!((file.len().expect("len"), file.allocated().expect("allocated")), (5003, 4096));
    let mut bytes = [9; 5];
    file.read_at(&mut bytes, 4998).expect("read");
    assert_eq!(&bytes, b"\0\0abc");
    let past = file.read_at(&mut bytes, 4999).map_err(|e| e.kind());
    assert_eq!(past, Err(ErrorKind::UnexpectedEof));
    file.set_len(5001).expect("cut");
    file.set_len(5003).expect("extend");
    file.read_at(&mut bytes, 4998).expect("read");
    assert_eq!(&bytes, b"\0\0a\0\0", "what was cut off does not come back");
    file.allocate(10_000).expect("allocate");
    assert_eq!((file.len().expect("len"), file.allocated().expect("got")), (10_000, 3 * 4096));
    file.punch(4096, 5904).expect("punch");
    assert_eq!((file.len().expect("len"), file.allocated().expect("got")), (10_000, 4096));
    fs.rename(path("/db/f"), path("/g")).expect("rename");
    assert_eq!((names(&fs, "/db"), fs.kind(path("/db")).expect("kind")), {
        (vec![], Some(PathKind::Directory))
    });
    assert_eq!(fs.kind(path("/g")).expect("kind"), Some(PathKind::File));
    assert_eq!(fs.kind(path("/db/f")).expect("kind"), None);
    assert_eq!(file.links().expect("links"), 1);
    fs.remove_file(path("/g")).expect("remove");
    assert_eq!(file.links().expect("links"), 0);
    file.write_at(b"still open", 0).expect("write");
    assert!(fs.remove_file(path("/db")).is_err());
    fs.create_dir(path("/db/in")).expect("create");
    create(&fs, "/db/in/f").write_at(b"moved", 0).expect("write");
    assert!(fs.rename(path("/db"), path("/db/in/db")).is_err(), "into itself");
    create(&fs, "/taken");
    for taken in ["/taken", "/db/in"] {
        assert!(fs.rename(path("/db"), path(taken)).is_err(), "{taken}");
    }
    fs.create_dir(path("/y")).expect("create");
    assert!(fs.rename(path("/db"), path("/y")).is_err(), "only to a free name");
    fs.rename(path("/db"), path("/x")).expect("rename");
    assert_eq!((names(&fs, "/x"), fs.kind(path("/db")).expect("kind")), (vec!["in".into()], None));
    assert_eq!(read(&fs, "/x/in/f").expect("there"), b"moved");
}

#[test]
fn a_renamed_directory_has_one_of_its_names_after_a_crash() {
    let fs = CrashFs::new();
    fs.create_dir(path("/db")).expect("create");
    durable(&fs, "/db/f", b"1");
    fs.sync_dir(path("/db")).expect("sync_dir");
    fs.rename(path("/db"), path("/old")).expect("rename");
    fs.create_dir(path("/db")).expect("create");
    let mut seen = BTreeSet::new();
    for entries in 0..4 {
        let after = fs.crash_clone_with(&mut Mask { entries, rest: false });
        let found = names(&after, "/");
        let name = if found.contains(&"old".into()) { "/old/f" } else { "/db/f" };
        assert_eq!(read(&after, name).expect("there"), b"1", "{found:?}");
        seen.insert(found);
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    fs.sync_dir(path("/")).expect("sync_dir");
    let after = fs.crash_clone(0, 0);
    assert_eq!((names(&after, "/"), names(&after, "/db")), {
        (vec!["db".into(), "old".into()], vec![])
    });
}

#[test]
fn a_read_only_handle_does_not_write() {
    let fs = CrashFs::new();
    durable(&fs, "/f", b"1");
    let file = fs.open(path("/f"), OpenMode::Read).expect("open");
    assert!(file.write_at(b"2", 0).is_err());
    assert!(file.map(1).is_err());
    assert_eq!(read(&fs, "/f").expect("there"), b"1");
}

#[test]
fn a_power_cut_keeps_exactly_what_was_synced() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", &[1; 3 * BLOCK]);
    file.write_at(&[2; 2 * BLOCK], BLOCK as u64).expect("write");
    file.write_at(&[3; 10], 3 * BLOCK as u64).expect("write");
    create(&fs, "/unsynced");
    let lost = fs.crash_clone(1, 0);
    assert_eq!(read(&lost, "/f").expect("there"), [1; 3 * BLOCK]);
    assert_eq!(names(&lost, "/"), ["f"]);
    let kept = fs.crash_clone(1, 100);
    assert_eq!(read(&kept, "/f"), read(&fs, "/f"));
    assert_eq!(names(&kept, "/"), ["f", "unsynced"]);
    file.sync_data().expect("sync");
    assert_eq!(read(&fs.crash_clone(1, 0), "/f"), read(&fs, "/f"));
}

#[test]
fn contents_without_a_durable_name_are_lost_and_the_reverse() {
    let fs = CrashFs::new();
    let unnamed = create(&fs, "/unnamed");
    unnamed.write_at(b"data", 0).expect("write");
    unnamed.sync_data().expect("sync");
    assert_eq!(names(&fs.crash_clone(1, 0), "/"), [""; 0]);
    fs.sync_dir(path("/")).expect("sync_dir");
    assert_eq!(read(&fs.crash_clone(1, 0), "/unnamed").expect("there"), b"data");
    let empty = create(&fs, "/empty");
    fs.sync_dir(path("/")).expect("sync_dir");
    empty.write_at(b"data", 0).expect("write");
    assert_eq!(read(&fs.crash_clone(1, 0), "/empty").expect("there"), b"");
}

#[test]
fn blocks_survive_one_by_one() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", &[1; 8 * BLOCK]);
    file.write_at(&[2; 8 * BLOCK], 0).expect("write");
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let bytes = read(&fs.crash_clone(seed, 50), "/f").expect("there");
        let blocks: Vec<u8> = bytes
            .chunks(BLOCK)
            .map(|block| {
                assert!(block.iter().all(|&byte| byte == block[0]), "seed {seed}: torn block");
                block[0]
            })
            .collect();
        assert!(blocks.iter().all(|block| [1, 2].contains(block)));
        seen.insert(blocks);
    }
    assert!(seen.len() > 100, "only {} outcomes", seen.len());
    assert_eq!(read(&fs.crash_clone(7, 50), "/f"), read(&fs.crash_clone(7, 50), "/f"));
}

#[test]
fn an_append_survives_whole_in_part_with_holes_or_not_at_all() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", b"");
    file.write_at(&[5; 3 * BLOCK + 100], 0).expect("write");
    let (mut part, mut hole, mut none, mut whole) = (false, false, false, false);
    for seed in 0..300 {
        let bytes = read(&fs.crash_clone(seed, 60), "/f").expect("there");
        assert!(bytes.len() <= 3 * BLOCK + 100);
        none |= bytes.is_empty();
        part |= !bytes.is_empty() && bytes.len() < 3 * BLOCK;
        let zeros = bytes.iter().filter(|&&byte| byte == 0).count();
        hole |= zeros > 0;
        whole |= zeros == 0 && bytes.len() == 3 * BLOCK + 100;
    }
    assert!(part && hole && none && whole);
}

#[test]
fn truncation_may_be_lost_but_mixes_nothing() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", &[1; 3 * BLOCK]);
    file.set_len(BLOCK as u64).expect("cut");
    for seed in 0..50 {
        let bytes = read(&fs.crash_clone(seed, 50), "/f").expect("there");
        assert!([BLOCK, 3 * BLOCK].contains(&bytes.len()));
        assert!(bytes.iter().all(|&byte| byte == 1), "seed {seed}");
    }
}

#[test]
fn every_subset_of_directory_changes_can_survive() {
    let fs = CrashFs::new();
    durable(&fs, "/a", b"a");
    durable(&fs, "/b", b"b");
    create(&fs, "/c");
    fs.remove_file(path("/a")).expect("remove");
    fs.rename(path("/b"), path("/d")).expect("rename");
    assert_eq!(fs.unsynced_entries().len(), 3);
    let mut seen = BTreeSet::new();
    for entries in 0..8 {
        let after = fs.crash_clone_with(&mut Mask { entries, rest: false });
        let found = names(&after, "/");
        // A rename is atomic: the file has one of its two names.
        assert_eq!(found.contains(&"b".into()), !found.contains(&"d".into()));
        let name = if found.contains(&"b".into()) { "/b" } else { "/d" };
        assert_eq!(read(&after, name).expect("there"), b"b");
        seen.insert(found);
    }
    assert_eq!(seen.len(), 8, "a later removal survives without an earlier creation, too");
    fs.sync_dir(path("/")).expect("sync_dir");
    assert_eq!(names(&fs.crash_clone(0, 0), "/"), ["c", "d"]);
    assert!(fs.unsynced_entries().is_empty());
}

#[test]
fn changes_of_one_name_keep_their_order() {
    let fs = CrashFs::new();
    durable(&fs, "/log", b"old");
    // The file moves away and its name is taken by another one.
    fs.rename(path("/log"), path("/recycled")).expect("rename");
    create(&fs, "/log");
    for entries in 0..4 {
        let after = fs.crash_clone_with(&mut Mask { entries, rest: false });
        let held: Vec<_> = names(&after, "/")
            .into_iter()
            .filter(|name| read(&after, &format!("/{name}")).as_deref() == Some(b"old"))
            .collect();
        assert_eq!(held.len(), 1, "the old file has {held:?} with {entries:b}");
    }
}

#[test]
fn replacing_by_rename_gives_the_old_or_the_new_file() {
    let fs = CrashFs::new();
    durable(&fs, "/current", b"old");
    let new = create(&fs, "/tmp");
    new.write_at(b"new", 0).expect("write");
    new.sync_data().expect("sync");
    fs.rename(path("/tmp"), path("/current")).expect("rename");
    let mut seen = BTreeSet::new();
    for seed in 0..40 {
        seen.insert(read(&fs.crash_clone(seed, 70), "/current").expect("never absent"));
    }
    assert_eq!(seen, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
}

#[test]
fn a_rename_across_directories_is_durable_with_either() {
    for synced in ["/x", "/y"] {
        let fs = CrashFs::new();
        fs.create_dir(path("/x")).expect("create");
        fs.create_dir(path("/y")).expect("create");
        fs.sync_dir(path("/")).expect("sync_dir");
        create(&fs, "/x/f");
        fs.rename(path("/x/f"), path("/y/g")).expect("rename");
        fs.sync_dir(path(synced)).expect("sync_dir");
        let after = fs.crash_clone(3, 0);
        assert_eq!((names(&after, "/x"), names(&after, "/y")), (vec![], vec!["g".into()]));
    }
}

#[test]
fn a_directory_whose_name_is_lost_takes_its_files_along() {
    let fs = CrashFs::new();
    fs.create_dir(path("/db")).expect("create");
    create(&fs, "/db/f").sync_data().expect("sync");
    fs.sync_dir(path("/db")).expect("sync_dir");
    assert_eq!(fs.crash_clone(0, 0).kind(path("/db")).expect("kind"), None);
    fs.sync_dir(path("/")).expect("sync_dir");
    assert_eq!(names(&fs.crash_clone(0, 0), "/db"), ["f"]);
}

#[test]
fn an_unsynced_removal_brings_the_durable_file_back() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", b"1234");
    file.write_at(b"x", 0).expect("write");
    drop(file);
    fs.remove_file(path("/f")).expect("remove");
    create(&fs, "/g");
    assert_eq!(read(&fs.crash_clone(0, 0), "/f").expect("back"), b"1234");
    let again = fs.kill_clone().crash_clone(0, 0);
    assert_eq!(read(&again, "/f").expect("back"), b"1234");
    assert_eq!(read(&fs.crash_clone(0, 100), "/f"), None);
    fs.sync_dir(path("/")).expect("sync_dir");
    assert_eq!(names(&fs.crash_clone(0, 0), "/"), ["g"]);
}

#[test]
fn a_kill_keeps_all_that_is_live_and_what_is_unsynced_stays_so() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", b"old");
    file.write_at(b"new", 0).expect("write");
    let held = fs.lock(path("/LOCK")).expect("lock");
    let gone = create(&fs, "/gone");
    fs.remove_file(path("/gone")).expect("remove");
    let killed = fs.kill_clone();
    assert_eq!(read(&killed, "/f").expect("there"), b"new");
    assert!(killed.lock(path("/LOCK")).is_ok());
    let cut = killed.crash_clone(0, 0);
    assert_eq!(read(&cut, "/f").expect("there"), b"old");
    assert_eq!(names(&cut, "/"), ["f"]);
    // Same boot and inode before and after a kill, another boot after a crash.
    let life = |fs: &CrashFs| fs.open(path("/f"), OpenMode::Read).expect("open").incarnation();
    assert!(life(&fs).same_life(&life(&killed)));
    assert!(!life(&fs).same_life(&life(&cut)));
    assert!(!file.incarnation().same_life(&gone.incarnation()));
    drop(held);
}

#[test]
fn clones_and_their_original_do_not_affect_each_other() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", &[1; BLOCK]);
    let clone = fs.kill_clone();
    file.write_at(&[2; BLOCK], 0).expect("write");
    let other = clone.open(path("/f"), OpenMode::ReadWrite).expect("open");
    other.write_at(&[3], 1).expect("write");
    assert_eq!(read(&fs, "/f").expect("there"), [2; BLOCK]);
    assert_eq!(read(&clone, "/f").expect("there")[..3], [1, 3, 1]);
    assert_eq!(read(&clone.crash_clone(0, 0), "/f").expect("there"), [1; BLOCK]);
}

#[test]
fn a_lock_is_exclusive_until_dropped() {
    let fs = CrashFs::new();
    let held = fs.lock(path("/LOCK")).expect("lock");
    let again = fs.lock(path("/LOCK")).map(drop).map_err(|e| e.kind());
    assert_eq!(again, Err(ErrorKind::WouldBlock));
    drop(fs.open(path("/LOCK"), OpenMode::Read).expect("open"));
    assert!(fs.lock(path("/LOCK")).is_err());
    drop(held);
    assert!(fs.lock(path("/LOCK")).is_ok());
}

#[test]
fn mapped_writes_are_live_at_once_and_durable_by_sync() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/log", b"");
    file.set_len(8192).expect("extend");
    assert!(file.map(8192).is_err(), "sparse space must not be mapped");
    file.allocate(8192).expect("allocate");
    assert!(file.map(8193).is_err());
    file.sync_data().expect("sync");
    let map = file.map(8192).expect("map");
    let before = fs.ops();
    assert!(map.write(4090, b"across pages"));
    assert_eq!(fs.ops() - before, 2, "one operation per page");
    assert!(!map.write(8190, b"abc") && !map.write(u64::MAX, b"a"));
    assert_eq!(&read(&fs.kill_clone(), "/log").expect("there")[4090..4102], b"across pages");
    assert!(read(&fs.crash_clone(0, 0), "/log").expect("there").iter().all(|&byte| byte == 0));
    file.sync_data().expect("sync");
    assert_eq!(&read(&fs.crash_clone(0, 0), "/log").expect("there")[4090..4102], b"across pages");
    fs.set_mapped_chunk(4);
    let before = fs.ops();
    assert!(map.write(2, b"0123456789"));
    assert_eq!(fs.ops() - before, 3);
}

#[test]
#[should_panic(expected = "no space behind it")]
fn a_mapped_store_past_a_truncation_is_noticed() {
    let fs = CrashFs::new();
    let file = create(&fs, "/log");
    file.allocate(8192).expect("allocate");
    let map = file.map(8192).expect("map");
    file.set_len(4096).expect("cut");
    map.write(5000, b"x");
}

#[test]
fn the_hook_may_clone_before_each_operation() {
    let fs = CrashFs::new();
    let clones = Arc::new(Mutex::new(Vec::new()));
    let (disk, kept) = (fs.clone(), Arc::clone(&clones));
    fs.set_hook(Some(Arc::new(move |number, what| {
        kept.lock().push((number, what.to_owned(), disk.kill_clone(), disk.crash_clone(0, 0)));
    })));
    let file = create(&fs, "/f");
    file.allocate(4096).expect("allocate");
    let map = file.map(4096).expect("map");
    map.write(0, b"1");
    file.write_at(b"2", 0).expect("write");
    file.sync_data().expect("sync");
    file.set_len(1).expect("cut");
    fs.sync_dir(path("/")).expect("sync_dir");
    fs.rename(path("/f"), path("/g")).expect("rename");
    file.punch(0, 1).expect("punch");
    fs.remove_file(path("/g")).expect("remove");
    fs.set_hook(None);
    fs.create_dir(path("/d")).expect("create");
    let clones = clones.lock();
    let numbers: Vec<_> = clones.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    assert_eq!(fs.ops(), 11);
    assert_eq!(names(&clones[0].2, "/"), [""; 0], "the creation has not happened yet");
    assert_eq!(read(&clones[3].2, "/f").expect("there")[0], b'1');
    assert_eq!(read(&clones[5].2, "/f").expect("there").len(), 4096);
    assert_eq!(names(&clones[6].3, "/"), [""; 0]);
    assert_eq!(read(&clones[7].3, "/f").expect("there").len(), 4096);
    assert_eq!(fs.log().len(), 11);
    assert!(fs.log()[4].starts_with("4 ======== sync_data of /f"), "{:?}", fs.log());
    assert_eq!(clones[7].1, "rename /f to /g");
}

#[test]
fn a_full_disk_says_so_and_space_comes_back() {
    let fs = CrashFs::new();
    fs.set_capacity(Some(4 * BLOCK as u64));
    let file = create(&fs, "/f");
    file.write_at(&[1; 2 * BLOCK], 0).expect("write");
    assert_eq!(fs.free_bytes(path("/")).expect("free"), 2 * BLOCK as u64);
    let full = |answer: std::io::Result<()>| answer.map_err(|e| e.kind());
    assert_eq!(full(file.allocate(5 * BLOCK as u64)), Err(ErrorKind::StorageFull));
    assert_eq!(file.len().expect("len"), 2 * BLOCK as u64, "a failed allocation leaves nothing");
    let more = file.write_at(&[2; 3 * BLOCK], 2 * BLOCK as u64);
    assert_eq!(full(more), Err(ErrorKind::StorageFull));
    assert_eq!(file.len().expect("len"), 4 * BLOCK as u64, "a write ends short");
    file.write_at(&[3; BLOCK], 0).expect("overwriting needs no space");
    fs.remove_file(path("/f")).expect("remove");
    assert_eq!(fs.free_bytes(path("/")).expect("free"), 0, "an open file keeps its space");
    assert_eq!(fs.kill_clone().free_bytes(path("/")).expect("free"), 4 * BLOCK as u64);
    drop(file);
    assert_eq!(fs.free_bytes(path("/")).expect("free"), 4 * BLOCK as u64);
    let file = create(&fs, "/g");
    file.allocate(4 * BLOCK as u64).expect("allocate");
    file.punch(0, BLOCK as u64).expect("punch");
    file.set_len(3 * BLOCK as u64).expect("cut");
    assert_eq!(fs.free_bytes(path("/")).expect("free"), 2 * BLOCK as u64);
    fs.set_capacity(None);
    file.allocate(100 * BLOCK as u64).expect("allocate");
}

#[test]
fn ignored_syncs_make_nothing_durable() {
    let fs = CrashFs::new();
    fs.ignore_sync_dir(true);
    durable(&fs, "/f", b"1");
    assert_eq!(names(&fs.crash_clone(0, 0), "/"), [""; 0]);
    fs.ignore_sync_dir(false);
    fs.ignore_sync_data(true);
    durable(&fs, "/g", b"2");
    assert_eq!(read(&fs.crash_clone(0, 0), "/f").expect("there"), b"1");
    assert_eq!(read(&fs.crash_clone(0, 0), "/g").expect("there"), b"");
}

#[test]
fn a_failed_sync_cannot_be_mended_by_another() {
    for revert in [false, true] {
        let fs = CrashFs::new();
        let file = durable(&fs, "/f", &[1; 2 * BLOCK]);
        file.write_at(&[2; 2 * BLOCK], 0).expect("write");
        fs.fail_sync(&file.incarnation(), revert).expect("fail");
        file.sync_data().expect("the second sync finds nothing to do");
        let cached = read(&fs, "/f").expect("there");
        assert_eq!(cached, vec![if revert { 1 } else { 2 }; 2 * BLOCK]);
        assert_eq!(read(&fs.crash_clone(0, 100), "/f").expect("there"), [1; 2 * BLOCK]);
        // What is written anew is dirty anew.
        file.write_at(&[3; BLOCK], 0).expect("write");
        file.sync_data().expect("sync");
        let after = read(&fs.crash_clone(0, 0), "/f").expect("there");
        assert_eq!((after[0], after[BLOCK]), (3, 1));
    }
}

#[test]
fn background_writing_leaves_intermediate_versions() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", &[1; 4 * BLOCK]);
    file.write_at(&[2; 4 * BLOCK], 0).expect("write");
    fs.write_back(5, 50);
    file.write_at(&[3; 4 * BLOCK], 0).expect("write");
    let lost = read(&fs.crash_clone(0, 0), "/f").expect("there");
    let blocks: BTreeSet<u8> = lost.chunks(BLOCK).map(|block| block[0]).collect();
    assert_eq!(blocks, BTreeSet::from([1, 2]));
    file.sync_data().expect("sync");
    assert_eq!(read(&fs.crash_clone(0, 0), "/f").expect("there"), [3; 4 * BLOCK]);
}

/// Random operations against the obvious model: at survival 0 a crash shows the synced copy, at
/// 100 and after a kill the live one.
#[test]
fn random_operations_agree_with_two_plain_copies() {
    let seed = std::env::var("ESKER_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0xe5e5);
    println!("ESKER_SEED={seed}");
    let mut rng = crate::rng::Rng::new(seed);
    let mut fs = CrashFs::new();
    let mut file = durable(&fs, "/f", b"");
    let (mut live, mut synced) = (Vec::new(), Vec::new());
    for step in 0..20_000 {
        let offset = rng.below(40_000);
        let len = 1 + rng.below(9_000);
        let end = (offset + len) as usize;
        match rng.below(20) {
            0..8 => {
                let bytes: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
                file.write_at(&bytes, offset).expect("write");
                live.resize(live.len().max(end), 0);
                live[offset as usize..end].copy_from_slice(&bytes);
            }
            8..10 => {
                file.set_len(offset).expect("set_len");
                live.resize(offset as usize, 0);
            }
            10 => {
                file.allocate(offset).expect("allocate");
                live.resize(live.len().max(offset as usize), 0);
            }
            11 => {
                file.punch(offset, len).expect("punch");
                let end = end.min(live.len());
                live[(offset as usize).min(end)..end].fill(0);
            }
            12..16 => {
                file.sync_data().expect("sync");
                synced.clone_from(&live);
            }
            16 => {
                fs = fs.kill_clone();
                file = fs.open(path("/f"), OpenMode::ReadWrite).expect("open");
            }
            17 => {
                let percent = [0, 100][rng.below(2) as usize];
                if percent == 100 {
                    synced.clone_from(&live);
                }
                live.clone_from(&synced);
                fs = fs.crash_clone(step, percent);
                file = fs.open(path("/f"), OpenMode::ReadWrite).expect("open");
            }
            _ => {
                let cut = fs.crash_clone(step, 0);
                assert!(read(&cut, "/f").expect("there") == synced, "seed {seed}, step {step}");
                let blocks = file.allocated().expect("allocated") / BLOCK as u64;
                assert_eq!(fs.free_bytes(path("/")).expect("free"), (1 << 44) - (blocks << 12));
            }
        }
        assert!(read(&fs, "/f").expect("there") == live, "seed {seed}, step {step}");
    }
}

#[test]
fn an_append_that_arrived_in_part_shows_zeros_when_extended() {
    struct Part;
    impl Fate for Part {
        fn entry(&mut self, _number: usize, _what: &str) -> bool {
            true
        }
        fn length(&mut self, _inode: u64, _durable: u64, _live: u64) -> u64 {
            50
        }
        fn block(&mut self, _inode: u64, _index: usize) -> bool {
            true
        }
    }
    let fs = CrashFs::new();
    create(&fs, "/f").write_at(&[1; 100], 0).expect("write");
    let after = fs.crash_clone_with(&mut Part);
    assert_eq!(read(&after, "/f").expect("there"), [1; 50]);
    let file = after.open(path("/f"), OpenMode::ReadWrite).expect("open");
    file.set_len(100).expect("extend");
    assert_eq!(read(&after, "/f").expect("there")[50..], [0; 50]);
}

#[test]
fn files_that_nothing_can_bring_back_take_no_memory() {
    let fs = CrashFs::new();
    for _ in 0..100 {
        drop(durable(&fs, "/f", &[1; BLOCK]));
        fs.remove_file(path("/f")).expect("remove");
    }
    fs.sync_dir(path("/")).expect("sync_dir");
    assert_eq!(fs.0.state.lock().nodes.len(), 1, "only the root directory is left");
}

#[test]
fn clones_share_their_blocks() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", &vec![1; 10 << 20]);
    let clones: Vec<_> = (0..1_000)
        .map(|step| {
            file.write_at(&[2], step * 4096).expect("write");
            if step % 2 == 0 { fs.crash_clone(step, 50) } else { fs.kill_clone() }
        })
        .collect();
    // Copies would take 20 GB.
    assert!(clones.iter().all(|clone| read(clone, "/f").is_some_and(|b| b.len() == 10 << 20)));
}

#[test]
fn a_clone_is_one_moment_while_others_write() {
    let fs = CrashFs::new();
    let (first, second) = (durable(&fs, "/1", &[0; 8]), durable(&fs, "/2", &[0; 8]));
    let number = |fs: &CrashFs, name: &str| {
        let bytes = read(fs, name).expect("there");
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for count in 1..=20_000_u64 {
                first.write_at(&count.to_le_bytes(), 0).expect("write");
                second.write_at(&count.to_le_bytes(), 0).expect("write");
            }
        });
        while !writer.is_finished() {
            let clone = fs.kill_clone();
            let (first, second) = (number(&clone, "/1"), number(&clone, "/2"));
            assert!(first == second || first == second + 1, "{first} and {second}");
        }
    });
}

#[test]
fn a_link_is_a_second_name_until_the_last_goes() {
    let fs = CrashFs::new();
    let file = durable(&fs, "/a", b"shared");
    assert_eq!(file.links().expect("links"), 1);
    fs.hard_link(path("/a"), path("/b")).expect("link");
    assert_eq!(file.links().expect("links"), 2);
    assert_eq!(fs.hard_link(path("/a"), path("/b")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    // A name that no directory sync made durable goes with the power.
    assert_eq!(names(&fs.crash_clone(1, 0), "/"), ["a"]);
    fs.sync_dir(path("/")).expect("sync_dir");
    let crashed = fs.crash_clone(1, 0);
    assert_eq!(read(&crashed, "/b").as_deref(), Some(&b"shared"[..]));
    fs.remove_file(path("/a")).expect("remove");
    assert_eq!((file.links().expect("links"), read(&fs, "/b").is_some()), (1, true));
    // What is written through one name is read through the other.
    crashed.open(path("/a"), OpenMode::ReadWrite).expect("open").write_at(b"S", 0).expect("write");
    assert_eq!(read(&crashed, "/b").as_deref(), Some(&b"Shared"[..]));
}

#[test]
fn no_link_leads_to_another_device() {
    let fs = CrashFs::new();
    durable(&fs, "/a", b"x");
    fs.create_dir(path("/far")).expect("create_dir");
    fs.set_other_device(Some("far"));
    let error = fs.hard_link(path("/a"), path("/far/a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CrossesDevices);
    fs.hard_link(path("/a"), path("/b")).expect("on this device");
}

#[test]
fn only_empty_directories_are_removed() {
    let fs = CrashFs::new();
    fs.create_dir(path("/d")).expect("create_dir");
    create(&fs, "/d/f");
    assert_eq!(fs.remove_dir(path("/d")).unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    fs.remove_file(path("/d/f")).expect("remove");
    fs.remove_dir(path("/d")).expect("remove_dir");
    assert_eq!(fs.kind(path("/d")).expect("kind"), None);
}

/// A block of ones that was written over with twos, as `seed` leaves it after a power cut.
fn torn(tear: Tear, seed: u64, percent: u32) -> Vec<u8> {
    let fs = CrashFs::new();
    let file = durable(&fs, "/f", &[1; BLOCK]);
    fs.set_tear(tear);
    file.write_at(&[2; BLOCK], 0).expect("write");
    read(&fs.crash_clone(seed, percent), "/f").expect("there")
}

#[test]
fn a_block_is_torn_at_sectors_or_at_one_byte_if_asked() {
    let pieces = |block: &[u8]| block.chunk_by(|a, b| a == b).count();
    let (mut sectors, mut bytes) = (0, 0);
    for seed in 0..200 {
        assert_eq!(pieces(&torn(Tear::Never, seed, 30)), 1, "seed {seed}");
        let block = torn(Tear::Sectors, seed, 30);
        assert!(block.chunks(512).all(|sector| pieces(sector) == 1), "seed {seed}");
        sectors += usize::from(pieces(&block) > 3);
        let block = torn(Tear::Bytes, seed, 30);
        assert!(pieces(&block) <= 2, "seed {seed}");
        bytes += usize::from(block.partition_point(|byte| *byte == block[0]) % 512 != 0);
        assert_eq!(torn(Tear::Bytes, seed, 0), [1; BLOCK], "seed {seed}");
    }
    assert!(sectors > 20 && bytes > 20, "{sectors} and {bytes} torn blocks");
}

#[test]
fn what_is_torn_behind_the_end_of_a_file_stays_zero() {
    for seed in 0..100 {
        let fs = CrashFs::new();
        let file = durable(&fs, "/f", &[1; 100]);
        fs.set_tear(Tear::Bytes);
        file.write_at(&[2; BLOCK], 0).expect("write");
        let after = fs.crash_clone(seed, 20);
        let file = after.open(path("/f"), OpenMode::ReadWrite).expect("open");
        let len = file.len().expect("len") as usize;
        file.set_len(BLOCK as u64).expect("extend");
        let block = read(&after, "/f").expect("there");
        assert!(block[len..].iter().all(|byte| *byte == 0), "seed {seed}");
    }
}

#[test]
fn the_background_writes_back_in_any_order_and_clones_inherit_it() {
    let (mut early, mut late) = (false, false);
    for seed in 0..50 {
        let fs = CrashFs::new();
        let file = durable(&fs, "/f", &[0; 2 * BLOCK]);
        fs.set_write_back(seed, Some(2));
        for round in 1..=4 {
            file.write_at(&[round; BLOCK], 0).expect("write");
            file.write_at(&[round; BLOCK], BLOCK as u64).expect("write");
        }
        let left = read(&fs.crash_clone(1, 0), "/f").expect("there");
        early |= left[0] > left[BLOCK];
        late |= left[0] < left[BLOCK];
        let killed = fs.kill_clone();
        assert!(killed.0.state.lock().settings.write_back.is_some());
        fs.set_write_back(0, None);
        file.write_at(&[9; BLOCK], 0).expect("write");
        assert_eq!(read(&fs.crash_clone(1, 0), "/f").expect("there"), left, "seed {seed}");
    }
    assert!(early && late, "either block came first at times");
}
