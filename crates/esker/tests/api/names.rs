//! Files that do not belong: links, pipes and the like where files of the database stand, files
//! that others have under a name of their own, and names that look like ours.

use super::*;
use esker::{ErrorKind, repair};
use esker_testkit::misfit::Misfit;
use std::os::unix::fs::{MetadataExt, symlink};

/// Entries of the database that the tests here begin with; the last of them are only in the log.
const ENTRIES: usize = 400;
const FLUSHED: usize = 300;

/// What a process that died leaves: runs, and a log with records.
fn template() -> Place {
    let (place, db) = fresh();
    fill(&db, 0..FLUSHED, 1);
    db.flush().unwrap();
    fill(&db, FLUSHED..ENTRIES, 1);
    as_after_a_crash(&place)
}

/// One path of each role, relative to the database, with whether it is a directory.
fn roles(db: &Path) -> Vec<(String, bool)> {
    let first = |directory: &str, start: &str| {
        let mut names = names_in(&db.join(directory));
        names.retain(|name| name.starts_with(start));
        Path::new(directory).join(&names[0]).to_str().unwrap().to_owned()
    };
    let fixed = ["LOCK", "superblock-A", "superblock-B"].map(|name| (name.to_owned(), false));
    let found = [first("", "MANIFEST-"), first("wal", "0"), first("data", "0")];
    let found = found.map(|name| (name, false));
    let directories = ["wal", "data"].map(|name| (name.to_owned(), true));
    fixed.into_iter().chain(found).chain(directories).collect()
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Everything below a directory: path, inode, length, and the content of files.
fn tree(directory: &Path) -> Vec<(PathBuf, u64, u64, Vec<u8>)> {
    let mut found = Vec::new();
    for name in names_in(directory) {
        let path = directory.join(name);
        let meta = path.symlink_metadata().unwrap();
        let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        let len = if meta.is_dir() { 0 } else { meta.len() };
        found.push((path.clone(), meta.ino(), len, content));
        if meta.is_dir() {
            found.extend(tree(&path));
        }
    }
    found
}

/// A copy of the template in which something of the wrong kind has a role.
fn misplaced(template: &Place, role: &str, misfit: Misfit) -> Option<Place> {
    let place = Place::new();
    copy(&template.path(), &place.path());
    let outside = place.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let made = misfit.take_the_place(&place.path().join(role), &outside.join("original"));
    made.then_some(place)
}

fn read_only() -> Options {
    let mut options = small();
    options.read_only = true;
    options
}

/// Reads everything, and says which error it met.
fn read_all(db: &Db) -> Option<esker::Error> {
    let mut error = None;
    for number in 0..ENTRIES {
        match db.get(key(number)) {
            Ok(found) => assert_eq!(text(found), Some(value(number, 1))),
            Err(met) => error = Some(met),
        }
    }
    error
}

#[test]
fn what_is_no_file_is_refused_by_name_and_never_waited_for() {
    let template = template();
    for (role, _) in roles(&template.path()) {
        // A hard link is a file, and has a test of its own.
        for misfit in Misfit::ALL.into_iter().filter(|misfit| *misfit != Misfit::HardLink) {
            let Some(place) = misplaced(&template, &role, misfit) else { continue };
            let outside = place.dir.path().join("outside");
            let before = (tree(&place.path()), tree(&outside));
            let case = format!("{misfit:?} as {role}");
            // Damage in a run keeps nothing from opening (C3).
            let is_run = role.starts_with("data/");
            for options in [read_only(), small()] {
                if is_run {
                    let db = Db::open_with(place.path(), options).unwrap();
                    let error = read_all(&db).expect(&case);
                    assert!(error.to_string().contains(&role), "{case}: {error}");
                    let report = db.verify().unwrap();
                    let named = |problem: &esker::Problem| problem.path.ends_with(&role);
                    assert!(report.problems.iter().any(named), "{case}");
                    db.close().unwrap();
                    continue;
                }
                let error = Db::open_with(place.path(), options).expect_err(&case);
                // A directory with the name of a segment is not one: the segment is missing.
                let named = if role.starts_with("wal/") { "wal" } else { &role };
                assert!(error.to_string().contains(named), "{case}: {error}");
                assert_eq!((tree(&place.path()), tree(&outside)), before, "{case}");
            }
            let plan = repair::plan(place.path(), &small()).expect(&case);
            assert!(!plan.is_whole(), "{case}: {plan}");
            let to = place.dir.path().join("saved");
            repair::salvage(place.path(), &to, &small()).expect(&case);
            assert_eq!(tree(&outside), before.1, "{case}: something outside was changed");
        }
    }
}

#[test]
fn the_path_itself_is_looked_at_before_it_is_opened() {
    for misfit in [Misfit::Dangling, Misfit::Pipe, Misfit::Socket, Misfit::Device] {
        let place = Place::new();
        std::fs::create_dir(place.path()).unwrap();
        if !misfit.take_the_place(&place.path(), &place.dir.path().join("outside")) {
            continue;
        }
        let before = tree(place.dir.path());
        for options in [read_only(), small()] {
            let error = Db::open_with(place.path(), options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotADatabase, "{misfit:?}: {error}");
        }
        let error = repair::plan(place.path(), &small()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADatabase, "{misfit:?}: {error}");
        let other = Place::new();
        let error = other.open().checkpoint(place.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists, "{misfit:?}: {error}");
        assert_eq!(tree(place.dir.path()), before, "{misfit:?}");
    }
    // A link to a directory is a path like any other.
    let place = template();
    let alias = place.dir.path().join("alias");
    symlink(place.path(), &alias).unwrap();
    let db = Db::open_with(&alias, small()).unwrap();
    assert!(read_all(&db).is_none());
    db.close().unwrap();
}

/// Works with a database until every kind of file was written anew.
fn work_with(path: &Path) {
    for _ in 0..2 {
        let db = Db::open_with(path, small()).unwrap();
        assert!(read_all(&db).is_none());
        fill(&db, 0..ENTRIES, 2);
        db.flush().unwrap();
        fill(&db, 0..ENTRIES, 1);
        db.compact().unwrap();
        db.close().unwrap();
    }
}

#[test]
fn a_file_with_another_name_is_never_changed_in_place() {
    let template = template();
    for (role, directory) in roles(&template.path()) {
        if directory {
            continue;
        }
        let place = Place::new();
        copy(&template.path(), &place.path());
        let outside = place.dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::hard_link(place.path().join(&role), outside.join("other")).unwrap();
        let before = tree(&outside);
        work_with(&place.path());
        assert_eq!(tree(&outside), before, "{role} was changed in place");
    }
}

/// `cp -al`.
fn link_directory(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for name in names_in(from) {
        let (source, target) = (from.join(&name), to.join(&name));
        if source.is_dir() {
            link_directory(&source, &target);
        } else {
            std::fs::hard_link(source, target).unwrap();
        }
    }
}

#[test]
fn a_copy_made_of_hard_links_and_its_original_go_their_own_ways() {
    for closed in [false, true] {
        for copy_first in [false, true] {
            let place = template();
            if closed {
                place.open().close().unwrap();
            }
            let copy = place.dir.path().join("copy");
            link_directory(&place.path(), &copy);
            let paths = [place.path(), copy];
            let (first, second) =
                (&paths[usize::from(copy_first)], &paths[usize::from(!copy_first)]);
            let before: Vec<_> = tree(second).into_iter().map(|(_, _, _, bytes)| bytes).collect();
            work_with(first);
            let after: Vec<_> = tree(second).into_iter().map(|(_, _, _, bytes)| bytes).collect();
            assert!(before == after, "the other's files were changed");
            work_with(second);
            work_with(first);
        }
    }
}

#[test]
fn names_like_ours_refuse_nothing_and_move_no_number() {
    let place = template();
    let at = |name: &str| place.path().join(name);
    let manifests = names_in(&place.path()).into_iter();
    let mut numbers = manifests.filter_map(|name| name.strip_prefix("MANIFEST-")?.parse().ok());
    let next_manifest = format!("MANIFEST-{:06}", numbers.next().map(|it: u64| it + 1).unwrap());
    let files = [
        "data/00000000042.run",
        "data/18446744073709551614.run",
        "data/18446744073709551615.run",
        "data/99999999999999999999999.run",
        "wal/00000000042.log",
        "MANIFEST-0000001",
    ];
    let directories = [
        "data/0000000042.run",
        "data/18446744073709551613.run",
        "wal/0000000042.log",
        "wal/18446744073709551614.log",
        &next_manifest,
        "MANIFEST-18446744073709551615",
    ];
    for name in files {
        std::fs::write(at(name), "mine").unwrap();
    }
    for name in directories {
        std::fs::create_dir(at(name)).unwrap();
    }
    // An empty segment is what an interrupted preparation leaves.
    std::fs::write(at("wal/18446744073709551615.log"), "").unwrap();
    Misfit::Pipe.take_the_place(&at("data/00000000042.run"), &at("data/0000000077.run"));
    std::fs::rename(at("data/00000000042.run"), at("data/0000000078.run")).unwrap();
    std::fs::rename(at("data/0000000077.run"), at("data/00000000042.run")).unwrap();
    for _ in 0..2 {
        work_with(&place.path());
        let db = Db::open_with(place.path(), read_only()).unwrap();
        assert!(read_all(&db).is_none() && db.verify().unwrap().problems.is_empty());
        db.close().unwrap();
        assert!(repair::plan(place.path(), &small()).unwrap().is_whole());
    }
    for name in files {
        assert_eq!(std::fs::read(at(name)).unwrap(), b"mine", "{name}");
    }
    assert!(directories.iter().all(|name| at(name).is_dir()));
    let numbers = |directory: &str, ending: &str| -> Vec<u64> {
        let names = names_in(&at(directory)).into_iter();
        names.filter_map(|name| name.strip_suffix(ending)?.parse().ok()).collect()
    };
    let foreign = |number: &u64| *number < 10_000 || *number > u64::MAX - 3;
    assert!(numbers("data", ".run").iter().all(foreign), "{:?}", numbers("data", ".run"));
    assert!(numbers("wal", ".log").iter().all(foreign), "{:?}", numbers("wal", ".log"));
}
