//! Which files are open when more are wanted than may be.

use super::*;
use crate::fs::File;
use crate::run::OpenFiles;

/// So many files of one segment each, in one table.
fn files(count: u64, max: usize) -> (World, Vec<Arc<RunFile>>, Arc<OpenFiles>) {
    let fixture = World::new(1 << 20);
    let table = OpenFiles::new(max);
    let files = (1..=count).map(|id| {
        fixture.write(&Bytewise, id, TINY, &numbered(0..10));
        RunFile::new(&fixture.fs, &fixture.dir, id, None, Some(Arc::clone(&table)))
    });
    let files = files.collect();
    (fixture, files, table)
}

fn open_now(files: &[Arc<RunFile>]) -> Vec<u64> {
    files.iter().filter(|file| file.is_open()).map(|file| file.id()).collect()
}

#[test]
fn no_more_are_open_than_the_bound_allows() {
    let (_fixture, files, table) = files(10, 4);
    for file in &files {
        assert!(file.file().is_ok());
        assert!(open_now(&files).len() <= 4);
    }
    assert_eq!((open_now(&files), table.counts()), (vec![7, 8, 9, 10], (10, 6)));
    // Those that are open cost nothing; the others take each other's place.
    files[9].file().unwrap();
    assert_eq!(table.counts(), (10, 6));
    for _ in 0..3 {
        files.iter().for_each(|file| drop(file.file().unwrap()));
    }
    assert_eq!(open_now(&files).len(), 4);
}

#[test]
fn what_is_read_from_stays_open() {
    let (_fixture, files, table) = files(100, 8);
    for file in &files[1..] {
        files[0].file().unwrap();
        file.file().unwrap();
    }
    assert!(open_now(&files).contains(&1));
    assert_eq!(table.counts(), (100, 92), "the first was opened once");
}

#[test]
fn a_reader_keeps_the_file_that_it_holds() {
    let (_fixture, files, _table) = files(3, 1);
    let held: Arc<dyn File> = files[0].file().unwrap();
    let weak = Arc::downgrade(&held);
    files[1].file().unwrap();
    assert_eq!(open_now(&files), [2]);
    let mut bytes = [0; HEADER_BYTES];
    held.read_at(&mut bytes, 0).unwrap();
    drop(held);
    drop(weak);
    files[0].file().unwrap();
    assert_eq!(open_now(&files), [1]);
}

#[test]
fn a_file_that_is_gone_leaves_its_place() {
    let (_fixture, mut files, table) = files(200, 70);
    for file in files.drain(..100) {
        file.file().unwrap();
    }
    files.iter().for_each(|file| drop(file.file().unwrap()));
    assert_eq!(open_now(&files).len(), 70);
    assert_eq!(table.counts().0, 200);
}

#[test]
fn a_damaged_file_takes_no_place() {
    let (fixture, files, table) = files(3, 2);
    files[0].file().unwrap();
    files[1].file().unwrap();
    fixture.mem.file(&fixture.path(3)).bytes.lock()[20] ^= 1;
    // Only the place that was made for it is empty.
    for _ in 0..5 {
        assert!(files[2].file().is_err());
    }
    assert_eq!((open_now(&files), table.counts()), (vec![2], (2, 1)));
}
