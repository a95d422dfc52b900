//! Imports from LevelDB. A small directory that LevelDB made is checked in; where Debian's
//! `python3-plyvel` is there, LevelDB makes more, and says what it shows of them.

use crate::support::{copy, import_as, options, tree};
use esker::Db;
use esker_port::{Engine, Error, Import, ImportOptions, Summary};
use esker_testkit::orders::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/leveldb")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Lines `HEXKEY HEXVALUE`.
fn listing(text: &str) -> Content {
    let lines = text.lines().map(|line| line.split_once(' ').unwrap());
    lines.map(|(key, value)| (bytes(key), bytes(value))).collect()
}

fn expected() -> Content {
    listing(&std::fs::read_to_string(fixtures().join("expected.txt")).unwrap())
}

fn import_options() -> ImportOptions {
    let mut options = ImportOptions::default();
    options.comparators = vec![Arc::new(Reverse)];
    options
}

fn import(from: &Path, to: &Path) -> Result<Summary, Error> {
    import_into("default", from, to)
}

fn import_into(keyspace: &str, from: &Path, to: &Path) -> Result<Summary, Error> {
    import_as(Engine::LevelDb, from, to, keyspace)
}

fn content(path: &Path) -> Content {
    let db = Db::open_with(path, options()).unwrap();
    let content = db.iter().unwrap().map(Result::unwrap).collect();
    db.close().unwrap();
    content
}

/// What a directory shows, or why it cannot be read.
fn shown(from: &Path) -> Result<Content, Error> {
    let place = tempfile::tempdir().unwrap();
    import(from, &place.path().join("db"))?;
    Ok(content(&place.path().join("db")))
}

/// Runs the script beside the fixture. `None`: this machine has no LevelDB for it.
fn leveldb(arguments: &[&str]) -> Option<String> {
    let script = fixtures().join("leveldb.py");
    let output = Command::new("/usr/bin/python3").arg(&script).args(arguments).output().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        if errors.contains("No module named") {
            println!("left out: there is no python3-plyvel here");
            return None;
        }
        // LevelDB refused, which is an answer too.
        return Some(format!("error {errors}"));
    }
    Some(String::from_utf8(output.stdout).unwrap())
}

fn seed() -> u64 {
    let seed = std::env::var("ESKER_SEED").ok().map(|text| text.parse().unwrap());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("replay with ESKER_SEED={seed}");
    seed
}

fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn the_directory_that_leveldb_made_is_read_as_it_reads_it() {
    let from = fixtures().join("db");
    let before = tree(&from);
    let kinds = [".ldb", ".log"].map(|kind| {
        before.iter().filter(|(path, ..)| path.to_string_lossy().ends_with(kind)).count()
    });
    assert!(kinds[0] >= 3 && kinds[1] >= 1, "the fixture holds too little: {kinds:?}");
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("db");
    let summary = import(&from, &to).unwrap();
    let expected = expected();
    assert_eq!(summary.entries, expected.len() as u64);
    assert_eq!(content(&to), expected);
    assert_eq!(tree(&from), before, "the source was changed");
    // There is no trace of the import left, and no second one goes over it.
    assert_eq!(Db::open(&to).unwrap().keyspaces().unwrap(), ["default"]);
    assert!(matches!(import(&from, &to), Err(Error::NotEmpty { .. })));
}

#[test]
fn damage_anywhere_is_an_error_or_does_not_matter() {
    let expected = expected();
    let before = tree(&fixtures().join("db"));
    let mut state = seed();
    let (mut refused, mut harmless) = (0, 0);
    for (path, content, _) in &before {
        let name = path.file_name().unwrap();
        let step = (content.len() / 40).max(1);
        let mut at = random(&mut state) % step;
        while at < content.len() {
            let place = tempfile::tempdir().unwrap();
            let from = place.path().join("source");
            copy(&fixtures().join("db"), &from);
            let mut damaged = content.clone();
            damaged[at] ^= 1 << (random(&mut state) % 8);
            std::fs::write(from.join(name), &damaged).unwrap();
            // Where the length of a log's last record is damaged, the log looks as if that record
            // had not been written whole.
            let in_last = name.to_string_lossy().ends_with(".log") && content.len() - at < 4096;
            match shown(&from) {
                Ok(_) if in_last => {}
                Ok(found) => {
                    harmless += 1;
                    assert!(found == expected, "{name:?} at {at}: another content, no error");
                }
                Err(Error::Source { .. } | Error::Io { .. }) => refused += 1,
                Err(other) => panic!("{name:?} at {at}: {other}"),
            }
            at += step;
        }
    }
    println!("{refused} refused, {harmless} harmless");
    assert!(refused > 100);
}

#[test]
fn missing_and_short_files_are_errors() {
    let (expected, mut refused) = (expected(), 0);
    for (path, content, _) in tree(&fixtures().join("db")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".ldb") && name != "CURRENT" && !name.starts_with("MANIFEST") {
            continue;
        }
        for len in [None, Some(0), Some(content.len() / 2), Some(content.len() - 1)] {
            let place = tempfile::tempdir().unwrap();
            let from = place.path().join("source");
            copy(&fixtures().join("db"), &from);
            match len {
                None => std::fs::remove_file(from.join(&name)).unwrap(),
                Some(len) => std::fs::write(from.join(&name), &content[..len]).unwrap(),
            }
            let result = shown(&from);
            // One table is of no use: LevelDB was closed before it was done with it.
            let fits = result.as_ref().map_or(true, |found| *found == expected);
            assert!(fits, "{name} {len:?}");
            refused += u32::from(result.is_err());
        }
    }
    assert!(refused >= 16, "only {refused} were refused");
}

#[test]
fn what_is_not_a_leveldb_directory_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let refused = |named: &str| {
        let error = import(&from, &to).unwrap_err().to_string();
        assert!(error.contains(named), "{named:?} is not in {error:?}");
        assert!(!to.exists());
    };
    refused("list");
    std::fs::create_dir(&from).unwrap();
    refused("CURRENT");
    std::fs::write(from.join("CURRENT"), "MANIFEST-../../etc/passwd\n").unwrap();
    refused("names no manifest");
    std::fs::write(from.join("CURRENT"), "MANIFEST-000001\n").unwrap();
    refused("MANIFEST-000001");
    std::fs::write(from.join("OPTIONS-000007"), "").unwrap();
    refused("--from rocksdb");
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_open_elsewhere_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("source");
    copy(&fixtures().join("db"), &from);
    // LevelDB's lock belongs to a process, so another one has to take it.
    let script = "import fcntl, sys\nf = open(sys.argv[1], 'r+')\nfcntl.lockf(f, fcntl.LOCK_EX)\n\
                  print('held', flush=True)\nsys.stdin.read()";
    let child = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .arg(from.join("LOCK"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return println!("left out: there is no python3 here") };
    let mut held = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut held).unwrap();
    let error = shown(&from).unwrap_err().to_string();
    assert!(error.contains("open elsewhere"), "{error}");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(shown(&from).unwrap(), expected());
}

#[test]
fn directories_that_leveldb_makes_now_are_read_as_it_reads_them() {
    let seed = seed();
    for round in 0..6 {
        let place = tempfile::tempdir().unwrap();
        let (from, copied) = (place.path().join("source"), place.path().join("copy"));
        let order: &[&str] = if round % 3 == 2 { &["reverse"] } else { &[] };
        let operations = [100, 30_000, 300, 60_000, 3000, 200][round as usize];
        let seed = (seed + round).to_string();
        let made = ["make", from.to_str().unwrap(), &seed, &operations.to_string()];
        if leveldb(&[&made[..], order].concat()).is_none() {
            return;
        }
        copy(&from, &copied);
        let list = leveldb(&[&["list", copied.to_str().unwrap()], order].concat()).unwrap();
        let before = tree(&from);
        let to = place.path().join("db");
        let keyspace = if order.is_empty() { "default" } else { "backwards" };
        import_into(keyspace, &from, &to).unwrap();
        let db = Db::open_with(&to, options()).unwrap();
        let stored = db.keyspace(keyspace).unwrap();
        let found: Content = stored.iter().unwrap().map(Result::unwrap).collect();
        assert!(found == listing(&list), "round {round}: it does not show what LevelDB shows");
        assert_eq!(tree(&from), before, "the source was changed");
        if !order.is_empty() {
            let result = Import::open(Engine::LevelDb, &from, ImportOptions::default());
            let error = result.err().unwrap().to_string();
            assert!(error.contains("\"reverse\""), "{error}");
            assert_eq!(stored.comparator_name(), Some("reverse"));
            let into_default = Import::open(Engine::LevelDb, &from, import_options());
            assert!(into_default.err().unwrap().to_string().contains("another keyspace"));
        }
    }
}

/// Logs that were cut anywhere: what LevelDB finds in them is what there is.
#[test]
fn cut_logs_are_read_as_leveldb_reads_them() {
    let mut state = seed();
    for (path, content, _) in tree(&fixtures().join("db")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".log") {
            continue;
        }
        for _ in 0..12 {
            let len = random(&mut state) % content.len();
            let place = tempfile::tempdir().unwrap();
            let (from, copied) = (place.path().join("source"), place.path().join("copy"));
            copy(&fixtures().join("db"), &from);
            std::fs::write(from.join(&name), &content[..len]).unwrap();
            copy(&from, &copied);
            let Some(list) = leveldb(&["list", copied.to_str().unwrap()]) else { return };
            assert!(!list.starts_with("error"), "{list}");
            assert!(shown(&from).unwrap() == listing(&list), "{name} cut to {len}");
        }
    }
}

#[test]
fn an_import_that_stopped_is_run_again() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("source"), place.path().join("db"));
    copy(&fixtures().join("db"), &from);
    // The last table is damaged, so that the first blocks of it are read.
    let last = from.join("000017.ldb");
    let whole = std::fs::read(&last).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    std::fs::write(&last, &damaged).unwrap();
    let error = import(&from, &to).unwrap_err();
    assert!(matches!(error, Error::Source { .. }), "{error}");
    let db = Db::open_with(&to, options()).unwrap();
    assert!(db.keyspaces().unwrap().contains(&"esker:load".to_owned()));
    db.close().unwrap();
    std::fs::write(&last, &whole).unwrap();
    import(&from, &to).unwrap();
    assert_eq!(content(&to), expected());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    crate::support::intruders_are_not_waited_for(Engine::LevelDb, &fixtures().join("db"));
}
