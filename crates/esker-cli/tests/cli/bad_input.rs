//! Whatever the program cannot work with is one line that names the thing, the right exit code,
//! and leaves the disk as it was.

use crate::support::{Shell, fail, succeed, text, tree};
#[cfg(unix)]
use esker_testkit::misfit::Misfit;
use std::path::Path;

/// Every command on `dir`, with arguments that are right.
fn every_command(dir: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["get", dir, "k"],
        vec!["put", dir, "k", "v"],
        vec!["del", dir, "k"],
        vec!["delrange", dir, "--from", "x", "--to", "y"],
        vec!["drop", dir, "ks"],
        vec!["scan", dir],
        vec!["keyspaces", dir],
        vec!["stats", dir],
        vec!["verify", dir],
        vec!["compact", dir],
        vec!["shell", dir],
        vec!["shell", "--read-only", dir],
    ]
}

#[track_caller]
fn every_command_fails(dir: &Path, named: &str) {
    for arguments in every_command(text(dir)) {
        fail(arguments, 1, named);
    }
}

#[test]
fn arguments_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let long_name = "n".repeat(256);
    for (arguments, named) in [
        (vec!["frobnicate"], "frobnicate"),
        (vec!["get", db], "<KEY>"),
        (vec!["get", db, "k", "--nonsense"], "--nonsense"),
        (vec!["put", db, "k"], "<VALUE>"),
        (vec!["put", db, "k", "v", "more"], "more"),
        (vec!["put", db, "0xabc", "v"], "0xabc"),
        (vec!["put", db, "k", "\"v"], "double quote"),
        (vec!["put", db, "k", "--make-up", "many"], "many"),
        (vec!["put", db, "k", "v", "--make-up", "5"], "--make-up"),
        (vec!["put", db, "k", "v", "--ttl", "90"], "such as 90s"),
        (vec!["put", db, "k", "v", "--ttl", "0s"], "more than nothing"),
        (vec!["delrange", db], "--all"),
        (vec!["delrange", db, "--all", "--to", "b"], "--to"),
        (vec!["delrange", db, "--prefix", "a", "--from", "b"], "--prefix"),
        (vec!["delrange", db, "--prefix", ""], "--all"),
        (vec!["drop", db], "<KEYSPACE>"),
        (vec!["get", db, "k", "--hex", "--base64"], "--base64"),
        (vec!["get", db, "k", "--branch", ""], "branch"),
        (vec!["put", db, "k", "v", "--durability", "safe"], "safe"),
        (vec!["put", db, "k", "v", "--keyspace", ""], "keyspace"),
        (vec!["put", db, "k", "v", "--keyspace", &long_name], "keyspace"),
        (vec!["scan", db, "--limit", "-1"], "-1"),
        (vec!["scan", db, "--limit", "ten"], "ten"),
        (vec!["scan", db, "--prefix", "a", "--from", "b"], "--prefix"),
        (vec!["stats", db, "--memory", "lots"], "lots"),
        (vec!["shell"], "<DIR>"),
        (vec!["shell", db, "--read-onyl"], "--read-onyl"),
    ] {
        fail(arguments, 2, named);
        assert!(!path.exists());
    }
}

#[test]
fn keys_and_values_over_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    let long = "k".repeat(65_536);
    fail(["put", db, &long, "v"], 1, "65536");
    fail(["put", db, "k", "--make-up", "1073741825"], 1, "1073741825");
    assert!(!path.exists());
    // The limit of a value follows from the memory number too, and the shell survives both.
    let mut shell = Shell::start(&path, &["--memory", "4MiB"]);
    shell.refuse(&format!("put {long} v"), "key-too-long");
    shell.refuse("put k #4000000", "value-too-large");
    shell.refuse("put k #99999999999", "value-too-large");
    shell.expect(&format!("put {} v", &long[1..]), &["ok"]);
    shell.expect(&format!("get {}", &long[1..]), &["v", "ok 1"]);
    shell.expect("get k", &["ok 0"]);
    shell.close();
}

#[test]
fn a_missing_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = text(&path);
    for arguments in every_command(db) {
        if !matches!(arguments[..], ["put", ..] | ["shell", _]) {
            fail(arguments, 1, db);
            assert_eq!(tree(dir.path()), []);
        }
    }
}

#[test]
fn a_file_in_place_of_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "precious").unwrap();
    every_command_fails(&path, text(&path));
    every_command_fails(&path.join("below"), text(&path));
    assert_eq!(tree(dir.path()), [("file".to_owned(), Some(b"precious".to_vec()))]);
}

#[test]
fn a_directory_of_something_else() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("thesis.txt"), "precious").unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let before = tree(dir.path());
    every_command_fails(dir.path(), "not an Esker database");
    assert_eq!(tree(dir.path()), before);
}

#[cfg(unix)]
#[test]
fn a_directory_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    succeed(["put", text(&path), "k", "v"]);
    let before = tree(&path);
    let allow = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    allow(0o000);
    // The superuser is not stopped by permissions: then there is nothing to see here.
    if std::fs::read_dir(&path).is_err() {
        every_command_fails(&path, text(&path));
    } else {
        println!("left out: this user may do everything");
    }
    allow(0o755);
    assert_eq!(tree(&path), before);
}

/// Where nobody may make anything, the superuser included.
#[cfg(target_os = "linux")]
#[test]
fn a_place_where_nothing_can_be_made() {
    let path = Path::new("/proc/esker-test-database");
    assert!(std::fs::create_dir(path).is_err(), "/proc is expected to refuse directories");
    for command in [&["put", text(path), "k", "v"][..], &["shell", text(path)]] {
        fail(command, 1, text(path));
    }
    assert!(!path.exists());
}

/// Declares another version in a file's header, with a checksum that fits where the format has it
/// at a fixed place (superblock and manifest); the other formats ask for the version first.
fn declare_version(file: &Path, version: u32) {
    let mut bytes = std::fs::read(file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    // The log keeps two copies of its header, half a page apart.
    let copies: &[usize] = if name.ends_with(".log") { &[0, 2048] } else { &[0] };
    for &at in copies {
        assert!(bytes[at..].to_ascii_lowercase().starts_with(b"esker"), "{name} at {at}");
        bytes[at + 8..at + 12].copy_from_slice(&version.to_le_bytes());
    }
    if name.starts_with("superblock") || name.starts_with("MANIFEST") {
        let sum = esker::internals::base::codec::checksum(0, 0, &bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    }
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_format_version_of_the_future() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("good");
    succeed(["put", text(&path), "k", "--make-up", "100"]);
    succeed(["compact", text(&path)]);
    let files: Vec<String> = tree(&path)
        .into_iter()
        .filter(|(name, content)| content.is_some() && name != "LOCK")
        .map(|(name, _)| name)
        .collect();
    for kind in ["superblock-A", "superblock-B", "MANIFEST", "wal/", "data/"] {
        let mut of_kind = files.iter().filter(|name| name.starts_with(kind));
        let name = of_kind.next().unwrap_or_else(|| panic!("no {kind} in {files:?}"));
        let path = dir.path().join(kind.trim_end_matches('/'));
        crate::support::copy(&dir.path().join("good"), &path);
        declare_version(&path.join(name), 77);
        let before = tree(&path);
        for arguments in every_command(text(&path)) {
            // A run is opened when somebody reads it, so commands that read nothing, or lines of
            // a shell that has no input, have no reason to refuse.
            if kind != "data/" || matches!(arguments[0], "get" | "scan") {
                let message = fail(arguments, 1, "version 77");
                assert!(message.contains(name) && message.contains("newer build"), "{message}");
            }
        }
        assert_eq!(tree(&path), before, "{name}");
    }
}

#[test]
fn benchmarks_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bench");
    let db = text(&path);
    for (arguments, named) in [
        (vec!["--num", "many"], "--num"),
        (vec!["--num", "0"], "--num"),
        (vec!["--workloads", "fillsqe"], "fillsqe"),
        (vec!["--workloads", ""], "workload"),
        (vec!["--engine", "oracle"], "oracle"),
        (vec!["--key-size", "2"], "--key-size"),
        (vec!["--key-size", "70000"], "--key-size"),
        (vec!["--value-size", "2000000000"], "--value-size"),
        (vec!["--threads", "0"], "--threads"),
        (vec!["--duration", "-1"], "-1"),
        (vec!["--memory", "lots"], "--memory"),
        (vec!["--nonsense"], "--nonsense"),
    ] {
        let mut line = vec!["bench", "--dir", db];
        line.extend(arguments);
        fail(line, 2, named);
        assert!(!path.exists());
    }
    // Somebody else's directory is not a place for a benchmark.
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("thesis.txt"), "precious").unwrap();
    let before = tree(dir.path());
    let line = ["bench", "--dir", db, "--num", "100", "--workloads", "fillseq"];
    let output = crate::support::run(line);
    // Databases go into directories of their own below it; what was there remains.
    let after = tree(dir.path());
    assert!(before.iter().all(|entry| after.contains(entry)), "{output:?}");
}

#[test]
fn a_database_that_is_open_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut shell = Shell::start(&path, &[]);
    shell.expect("put k v", &["ok"]);
    for arguments in every_command(text(&path)) {
        if matches!(arguments[0], "put" | "del" | "delrange" | "drop" | "compact")
            || arguments[..] == ["shell", text(&path)]
        {
            fail(arguments, 1, "open elsewhere");
        }
    }
    shell.expect("scan - - -", &["k v", "ok 1"]);
    shell.close();
    assert_eq!(succeed(["get", text(&path), "k"]), "v\n");
}

/// A database with a run and a log, and a path of each role in it.
#[cfg(unix)]
fn database_with_roles(path: &Path) -> Vec<String> {
    succeed(["put", text(path), "k", "--make-up", "100"]);
    succeed(["compact", text(path)]);
    let names: Vec<String> = tree(path).into_iter().map(|(name, _)| name).collect();
    let roles =
        ["LOCK", "superblock-A", "superblock-B", "MANIFEST", "wal", "wal/", "data", "data/"];
    let of_role = |role: &str| names.iter().find(|name| name.starts_with(role)).unwrap().clone();
    roles.into_iter().map(of_role).collect()
}

/// Whatever stands in a file's place, no command waits for it, follows it or writes through it.
#[cfg(unix)]
#[test]
fn what_does_not_belong_is_refused_by_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good");
    for (number, role) in database_with_roles(&good).iter().enumerate() {
        for misfit in Misfit::ALL {
            let place = dir.path().join(format!("{number}-{misfit:?}"));
            let (path, outside) = (place.join("db"), place.join("outside"));
            std::fs::create_dir_all(&outside).unwrap();
            crate::support::copy(&good, &path);
            if !misfit.take_the_place(&path.join(role), &outside.join("original")) {
                continue;
            }
            let before = tree(&outside);
            let (db, new) = (text(&path), place.join("new"));
            let mut commands = every_command(db);
            commands.extend([
                vec!["branch", db],
                vec!["branch", db, "--make", "b"],
                vec!["checkpoint", db, "--to", text(&new)],
                vec!["dump", db, "--out", text(&new)],
            ]);
            // A run is opened when somebody reads it, and damage in it refuses no open.
            let refused = misfit != Misfit::HardLink && !role.starts_with("data/");
            // A directory with the name of a segment is not one: the segment is missing.
            let named = if role.starts_with("wal/") { "wal" } else { role };
            for arguments in commands {
                let output = crate::support::run(&arguments);
                let said = String::from_utf8_lossy(&output.stderr);
                let case = format!("{misfit:?} as {role}: {arguments:?}: {said}");
                if refused {
                    assert_eq!(output.status.code(), Some(1), "{case}");
                    assert!(said.contains(named), "{case}");
                } else if misfit == Misfit::HardLink {
                    // There is no keyspace to drop.
                    assert!(output.status.success() || arguments[0] == "drop", "{case}");
                } else if matches!(arguments[0], "get" | "scan" | "dump") {
                    assert!(!output.status.success() && said.contains(role), "{case}");
                }
                if arguments.contains(&text(&new)) && new.exists() {
                    let removed = std::fs::remove_dir_all(&new);
                    removed.or_else(|_| std::fs::remove_file(&new)).unwrap();
                }
            }
            let plan = crate::support::run(["repair", "--plan", db]);
            let plan = String::from_utf8(plan.stdout).unwrap();
            assert!(!refused || plan.contains(named), "{misfit:?} as {role}: {plan}");
            crate::support::run(["repair", db, "--to", text(&new)]);
            crate::support::run(["inspect", text(&path.join(role))]);
            assert_eq!(tree(&outside), before, "{misfit:?} as {role}: written through");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_directory_is_refused_by_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good");
    succeed(["put", text(&good), "k", "v"]);
    for misfit in [Misfit::Dangling, Misfit::Pipe, Misfit::Socket, Misfit::Device] {
        let place = dir.path().join(format!("{misfit:?}"));
        let path = place.join("db");
        std::fs::create_dir_all(&path).unwrap();
        if !misfit.take_the_place(&path, &place.join("original")) {
            continue;
        }
        every_command_fails(&path, text(&path));
        for arguments in [
            vec!["repair", "--plan", text(&path)],
            vec!["repair", text(&good), "--to", text(&path)],
            vec!["checkpoint", text(&good), "--to", text(&path)],
            vec!["dump", text(&good), "--out", text(&path)],
            vec!["inspect", text(&path)],
        ] {
            let message = fail(arguments, 1, text(&path));
            assert!(!message.contains("there already is a database"), "{message}");
        }
        let left: Vec<_> = std::fs::read_dir(&place).unwrap().collect();
        assert_eq!(left.len(), 2, "something was made beside it: {left:?}");
    }
}

/// The original and a copy made by `cp -al` share their files, until one of them is written to.
#[cfg(unix)]
#[test]
fn a_copy_made_of_links_is_a_database_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
    succeed(["put", text(&path), "k", "original"]);
    let linked = std::process::Command::new("cp").arg("-al").args([&path, &copy]).status();
    if !linked.is_ok_and(|status| status.success()) {
        println!("left out: cp -al does not work here");
        return;
    }
    let before = tree(&path);
    succeed(["put", text(&copy), "k", "copied"]);
    assert_eq!(tree(&path), before, "the original was changed through its links");
    succeed(["put", text(&path), "other", "v"]);
    assert_eq!(succeed(["get", text(&path), "k"]), "original\n");
    assert_eq!(succeed(["get", text(&copy), "k"]), "copied\n");
}
