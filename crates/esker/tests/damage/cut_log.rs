//! A synced log that is cut off at any byte, also where a record ends: what followed such a place
//! leaves no trace (C4). And a log of another database in the place of one of which nothing is read.

use super::{PATH, files, options, read, replace};
use esker::{Db, Durability, ErrorKind};
use esker_testkit::CrashFs;
use std::path::{Path, PathBuf};

/// Records of each database; the log of its flushed part is gone.
const RECORDS: u8 = 12;

fn key(number: u8) -> String {
    format!("key{number:02}")
}

/// A database whose writes were synced one by one, as a kill leaves it, and the log that holds the
/// later half of them.
fn logged() -> (CrashFs, PathBuf) {
    let disk = CrashFs::new();
    let mut options = options(&disk);
    options.durability = Durability::Disk;
    options.sync_interval = None;
    let db = Db::open_with(PATH, options).unwrap();
    for number in 0..RECORDS {
        if number == RECORDS / 2 {
            db.flush().unwrap();
        }
        db.insert(key(number), vec![number; 10 + 3 * usize::from(number)]).unwrap();
    }
    let killed = disk.kill_clone();
    db.close().unwrap();
    let mut logs = files(&killed, Path::new(PATH));
    logs.retain(|(path, _)| path.parent().is_some_and(|directory| directory.ends_with("wal")));
    let last = key(RECORDS - 1).into_bytes();
    let holds = |(path, _): &&(PathBuf, u64)| {
        read(&killed, path).windows(last.len()).any(|bytes| bytes == last)
    };
    let path = logs.iter().find(holds).unwrap().0.clone();
    (killed, path)
}

/// How many of the records stand at the beginning of what a database holds, and nothing else.
fn records(disk: &CrashFs, path: &str, what: &str) -> Option<u8> {
    let mut options = options(disk);
    options.create_if_missing = false;
    let db = match Db::open_with(path, options) {
        Ok(db) => db,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
            return None;
        }
    };
    let found = db.iter().unwrap().map(|entry| entry.unwrap().0).collect::<Vec<_>>();
    let count = found.len() as u8;
    assert!(found.into_iter().eq((0..count).map(|n| key(n).into_bytes())), "{what}");
    db.close().unwrap();
    Some(count)
}

#[test]
fn a_log_that_is_cut_off_at_any_byte_says_what_may_be_lost() {
    let (disk, path) = logged();
    let bytes = read(&disk, &path);
    let written = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let (mut refused, mut lost) = (0, 0);
    // The file's header takes 4 KiB.
    for cut in (0..4_000).step_by(101).chain(4_000..written + 64) {
        let what = format!("cut at {cut} of {written}");
        let disk = disk.kill_clone();
        replace(&disk, &path, &bytes[..cut]);
        let plan = esker::repair::plan(PATH, &options(&disk)).unwrap();
        esker::repair::salvage(PATH, "/saved", &options(&disk)).unwrap();
        let kept = records(&disk, "/saved", &what).unwrap();
        assert!(kept == RECORDS || plan.has_losses(), "{what}: {kept} are kept: {plan}");
        lost += u32::from(kept < RECORDS);
        match records(&disk, PATH, &what) {
            Some(shown) => assert!(shown == kept && plan.is_whole(), "{what}: {shown}: {plan}"),
            None => refused += 1,
        }
    }
    assert!(refused >= lost && lost > 500, "{refused} refused, {lost} lost");
}

/// A database with `count` records of one length behind `large` long ones, closed or killed, and its log
/// files.
fn filled(count: u8, byte: u8, large: u8, close: bool) -> (CrashFs, Vec<PathBuf>) {
    let disk = CrashFs::new();
    let mut options = options(&disk);
    // A log that is not synced before the database is closed is known from the close alone.
    options.durability = if large > 0 { Durability::Process } else { Durability::Disk };
    (options.log_file_bytes, options.sync_interval) = (4 << 20, None);
    let db = Db::open_with(PATH, options).unwrap();
    for number in 0..large {
        db.insert([number], vec![byte; 10_000]).unwrap();
    }
    for number in 0..count {
        db.insert(key(number), [byte; 20]).unwrap();
    }
    let killed = disk.kill_clone();
    db.close().unwrap();
    let disk = if close { disk } else { killed };
    let logs = files(&disk, Path::new(PATH)).into_iter().map(|(path, _)| path);
    let logs = logs.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    let logs = logs.collect();
    (disk, logs)
}

#[test]
fn the_log_of_another_database_is_noticed_even_if_nothing_of_it_was_to_be_read() {
    // A large log file is replaced by a small one when the database is closed.
    for large in [0, 200] {
        let (disk, paths) = filled(RECORDS, 1, large, true);
        // Its records end where those of the closed one do, and there are more of them.
        let (other, from) = filled(RECORDS + 3, 2, large, false);
        let mut refused = 0;
        for (path, from) in paths.iter().flat_map(|path| from.iter().map(move |from| (path, from)))
        {
            let disk = disk.kill_clone();
            replace(&disk, path, &read(&other, from));
            for read_only in [true, false] {
                let mut options = options(&disk);
                options.read_only = read_only;
                match Db::open_with(PATH, options) {
                    Ok(db) => assert!(db.iter().unwrap().all(|entry| entry.unwrap().1[0] == 1)),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption);
                        assert!(
                            !esker::repair::plan(PATH, &self::options(&disk)).unwrap().is_whole()
                        );
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused >= 2, "{refused} refused, of {} and {} files", paths.len(), from.len());
    }
}
