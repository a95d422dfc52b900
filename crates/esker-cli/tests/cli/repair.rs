//! `esker repair` and `esker inspect` on a database that open refuses.

use crate::support::{Shell, esker, fail, run, succeed, text, tree};
use std::process::Stdio;

#[test]
fn what_open_refuses_is_planned_saved_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (db, new) = (dir.path().join("db"), dir.path().join("new"));
    let mut shell = Shell::start(&db, &["--tiny", "--memory", "8MiB"]);
    for number in 0..50 {
        shell.expect(&format!("put key{number:02} value{number:02}"), &["ok"]);
    }
    shell.close();
    let plan = succeed(["repair", text(&db), "--plan"]);
    assert!(!plan.contains("lost:") && !plan.contains("damaged:"), "{plan}");
    assert!(plan.contains("keeps: keyspace \"default\": 50 entries"), "{plan}");

    for name in ["superblock-A", "superblock-B"] {
        std::fs::write(db.join(name), "nonsense").unwrap();
    }
    fail(["scan", text(&db)], 1, "superblock");
    let before = tree(&db);
    // Superblocks hold nothing that the manifest does not say: nothing would be lost.
    let plan = succeed(["repair", text(&db), "--plan", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert!(plan["report"].is_array(), "{plan}");
    assert_eq!(plan["plan"]["keyspaces"][0]["entries"], 50, "{plan}");
    let report = succeed(["repair", text(&db), "--to", text(&new)]);
    assert!(report.contains("damaged: "), "{report}");
    assert!(tree(&db) == before, "the repair changed the damaged directory");
    let lines = succeed(["scan", text(&new)]);
    assert_eq!(lines.lines().count(), 50);
    fail(["repair", text(&db), "--to", text(&new)], 1, "name another path");

    let shown = succeed(["inspect", text(&new.join("superblock-A"))]);
    let version = |line: &str| line.starts_with("format version ") && line.ends_with(" 3");
    assert!(shown.lines().any(version), "{shown}");
    assert!(succeed(["inspect", text(&db.join("superblock-A"))]).contains("damaged[0]"));
    fail(["inspect", text(&db)], 1, "is a directory");
}

#[test]
fn a_plan_that_loses_something_exits_with_1_and_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let (db, new) = (dir.path().join("db"), dir.path().join("new"));
    let mut shell = Shell::start(&db, &["--tiny", "--memory", "8MiB"]);
    shell.expect("put key value", &["ok"]);
    shell.close();
    let run_file = std::fs::read_dir(db.join("data")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&run_file).unwrap();
    for flags in [&["--plan"][..], &["--plan", "--json"]] {
        let output = run([&["repair", text(&db)], flags].concat());
        assert_eq!(output.status.code(), Some(1));
        let stdout = String::from_utf8(output.stdout).unwrap();
        let name = run_file.file_name().unwrap().to_str().unwrap();
        let named = stdout.split(['\n', ',']).any(|s| s.contains("lost: ") && s.contains(name));
        assert!(named, "{stdout}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("would lose") && stderr.lines().count() == 1, "{stderr}");
    }
    assert!(succeed(["repair", text(&db), "--to", text(&new)]).contains("lost: "));
}

#[test]
fn a_repair_in_place_replaces_a_damaged_database_and_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let mut shell = Shell::start(&db, &["--tiny", "--memory", "8MiB"]);
    for number in 0..50 {
        shell.expect(&format!("put key{number:02} value{number:02}"), &["ok"]);
    }
    // Nobody's database is taken from under them.
    fail(["repair", text(&db), "--in-place"], 1, "is open elsewhere");
    shell.close();
    let whole = tree(dir.path());
    let said = succeed(["repair", text(&db), "--in-place"]);
    assert_eq!(said, "whole: nothing is damaged, and nothing was changed\n");
    let said = succeed(["repair", text(&db), "--in-place", "--json"]);
    assert!(said.contains("\"kept\":null") && said.contains("\"report\":[\"whole: "), "{said}");
    assert!(tree(dir.path()) == whole, "an intact database was changed");

    for (number, json) in [(1, false), (2, true)] {
        std::fs::write(db.join("superblock-B"), "nonsense").unwrap();
        let before = tree(&db);
        let kept = dir.path().join(format!("db.damaged-{number}"));
        let flags = if json { &["--in-place", "--json"][..] } else { &["--in-place"] };
        let said = succeed([&["repair", text(&db)], flags].concat());
        assert!(said.contains("damaged: ") && said.contains("written: "), "{said}");
        assert!(said.contains(&format!("damaged database: {}", text(&kept))), "{said}");
        assert_eq!(json, said.contains(&format!("\"kept\":\"{}\"", text(&kept))), "{said}");
        assert!(tree(&kept) == before, "the damaged database was changed");
        assert_eq!(succeed(["scan", text(&db)]).lines().count(), 50);
        succeed(["verify", text(&db)]);
    }
    let beside = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(beside, 3, "something else is left beside the database");
    fail(["repair", text(&dir.path().join("none")), "--in-place"], 1, "there is no database");
    fail(["repair", text(&db), "--in-place", "--plan"], 2, "cannot be used with");
}

#[test]
fn other_stores_are_refused_by_name_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    // The names of a database of LevelDB, its lock among them.
    let old = dir.path().join("old");
    std::fs::create_dir(&old).unwrap();
    for name in ["CURRENT", "LOCK", "LOG", "MANIFEST-000004", "000005.ldb", "000006.log"] {
        std::fs::write(old.join(name), "what LevelDB wrote").unwrap();
    }
    let before = tree(&old);
    let new = dir.path().join("new");
    for to in [&["--plan"][..], &["--to", text(&new)], &["--in-place"]] {
        fail([&["repair", text(&old)], to].concat(), 1, "it is a database of LevelDB");
        fail([&["repair", text(&old)], to].concat(), 1, "esker import --from leveldb");
    }
    std::fs::remove_file(old.join("CURRENT")).unwrap();
    fail(["repair", text(&old), "--plan"], 1, "it holds no file of one");
    std::fs::write(old.join("CURRENT"), "what LevelDB wrote").unwrap();
    assert!(tree(&old) == before && !new.exists());
}

/// Ended by a signal in the middle: what is there cannot be opened, and the same command begins anew.
#[cfg(unix)]
#[test]
fn an_interrupted_repair_cannot_be_opened_and_begins_anew() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let dir = tempfile::tempdir().unwrap();
    let (db, new) = (dir.path().join("db"), dir.path().join("new"));
    const ENTRIES: usize = 3_000;
    let mut shell = Shell::start(&db, &["--tiny", "--memory", "8MiB"]);
    for number in 0..ENTRIES {
        shell.expect(&format!("put key{number:06} #1000 buffered"), &["ok"]);
    }
    shell.close();
    let repair = || {
        let mut command = esker();
        command.args(["repair", text(&db), "--to", text(&new)]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mark = new.join("INCOMPLETE");
    let mut refused = 0;
    while refused < 3 {
        let mut child = repair().spawn().unwrap();
        while !mark.exists() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        // At once: on a machine that has nothing else to do a repair takes no longer than the start of
        // another program. And not as Ctrl-C does it: what a shell began in the background ignores that,
        // and so does all that it starts.
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
        child.wait().unwrap();
        if !mark.exists() {
            // It was faster.
            std::fs::remove_dir_all(&new).unwrap();
            continue;
        }
        refused += 1;
        for command in ["scan", "verify", "stats", "compact"] {
            fail([command, text(&new)], 1, "a repair that was not finished");
        }
        fail(["put", text(&new), "key", "value"], 1, "a repair that was not finished");
        fail(["repair", text(&new), "--plan"], 1, "a repair that was not finished");
    }
    assert!(repair().status().unwrap().success());
    assert_eq!(succeed(["scan", text(&new)]).lines().count(), ENTRIES);
}
