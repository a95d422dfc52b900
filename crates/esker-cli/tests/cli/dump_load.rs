//! `esker dump` and `esker load` as a person and a script use them.

use crate::support::{Shell, esker, fail, random, run, succeed, succeed_with, text, tree};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// A database with two keyspaces, of which one has so many entries.
fn example(path: &Path, entries: usize) {
    let mut shell = Shell::start(path, &[]);
    shell.expect("put first one", &["ok"]);
    shell.expect("put 0x00ff 0x", &["ok"]);
    shell.ask("use more");
    for number in 0..entries {
        shell.ask(&format!("put key{number:08} #100"));
    }
    shell.close();
}

fn scan(path: &Path) -> String {
    let names = succeed(["keyspaces", text(path)]);
    let scans = names.lines().filter_map(|line| line.split_whitespace().next());
    scans.map(|name| succeed(["scan", text(path), "--keyspace", name])).collect()
}

#[test]
fn a_database_goes_through_a_file_and_through_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    example(&at("db"), 500);
    let before = tree(&at("db"));
    for (form, flags) in
        [("binary", vec![]), ("packed", vec!["--compress"]), ("text", vec!["--text"])]
    {
        let (db, file, copy) = (at("db"), at(form), at(&format!("{form}.db")));
        let mut line = vec!["dump", text(&db), "--out", text(&file)];
        line.extend(&flags);
        let said = succeed(line.clone());
        assert!(said.starts_with("dumped 502 entries"), "{said}");
        let said = succeed(["load", text(&copy), text(&file), "--read-back", "--json"]);
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["entries"], &said["keyspaces"]), (&502.into(), &2.into()));
        assert_eq!(scan(&copy), scan(&db));
        // A file that is there is not written over.
        fail(line, 1, "already is a file");
        // The same through pipes.
        let mut line = vec!["dump", text(&db)];
        line.extend(&flags);
        let output = run(line);
        assert!(output.status.success() && output.stderr.is_empty());
        let piped = at(&format!("{form}.piped"));
        let mut child = esker()
            .args(["load", text(&piped)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&output.stdout).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert_eq!(scan(&piped), scan(&db));
    }
    assert_eq!(tree(&at("db")), before, "a dump changed its database");
}

#[test]
fn ranges_and_keyspaces_are_selected() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    example(&db, 50);
    let out = succeed([
        "dump",
        text(&db),
        "--text",
        "--keyspace",
        "more",
        "--from",
        "key00000010",
        "--to",
        "key00000012",
    ]);
    let lines: Vec<&str> = out.lines().filter(|line| line.starts_with("+ ")).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("+ key00000010 0x"));
    assert!(out.contains("\nkeyspace more\n") && !out.contains("default"), "{out}");
}

#[test]
fn a_load_brings_back_only_what_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (db, file, one, none) = (at("db"), at("dump"), at("one"), at("none"));
    example(&db, 30_000);
    succeed(["dump", text(&db), "--out", text(&file)]);
    let more = |db: &Path| succeed(["scan", text(db), "--keyspace", "more"]);
    // One that is cut off, and gone on with, knows what was asked for.
    let bytes = std::fs::read(&file).unwrap();
    let cut = at("cut");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    fail(["load", text(&one), text(&cut), "--keyspace", "more"], 1, "ends after");
    fail(["load", text(&one), text(&file)], 1, "not finished");
    let line = ["load", text(&one), text(&file), "--keyspace", "more", "--read-back", "--json"];
    let said: serde_json::Value = serde_json::from_str(&succeed(line)).unwrap();
    assert_eq!((&said["entries"], &said["keyspaces"]), (&30_000.into(), &1.into()));
    assert!(said["resumed"].as_u64() > Some(0), "{said}");
    assert_eq!(more(&one), more(&db));
    let said = "the keyspace default is empty, others are not";
    assert_eq!(succeed_with(["scan", text(&one)], said), "");
    // What is in the keyspaces that were left out is proved all the same.
    let mut damaged = bytes.clone();
    let place = bytes.windows(3).position(|window| window == b"one").unwrap();
    damaged[place] ^= 1;
    std::fs::write(&cut, &damaged).unwrap();
    fail(["load", text(&none), text(&cut), "--keyspace", "more"], 1, "damaged");
    std::fs::remove_dir_all(&none).unwrap();
    fail(["load", text(&none), text(&file), "--keyspace", "other"], 1, "\"other\"");
    std::fs::remove_dir_all(&none).unwrap();
    succeed(["load", text(&none), text(&file), "--keyspace", "default", "--keyspace", "more"]);
    assert_eq!(scan(&none), scan(&db));
}

#[test]
fn a_load_that_is_killed_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file, copy) =
        (dir.path().join("db"), dir.path().join("dump"), dir.path().join("copy"));
    example(&db, 30_000);
    succeed(["dump", text(&db), "--out", text(&file)]);
    let bytes = std::fs::read(&file).unwrap();
    let mut random = random();
    for _ in 0..4 {
        let mut child = esker()
            .args(["load", text(&copy), "--tiny"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let len = random.below(bytes.len() as u64) as usize;
        input.write_all(&bytes[..len]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    succeed(["load", text(&copy), text(&file), "--read-back"]);
    assert_eq!(scan(&copy), scan(&db));
    assert!(!succeed(["keyspaces", text(&copy)]).contains("esker:load"));
}

#[test]
fn command_lines_and_files_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let db = at("db");
    succeed(["put", &db, "k", "v"]);
    let (file, new) = (at("file"), at("new"));
    std::fs::write(&file, "precious").unwrap();
    for (arguments, named) in [
        (vec!["dump"], "<DIR>"),
        (vec!["dump", &db, "--json"], "--out"),
        (vec!["dump", &db, "--resume"], "--out"),
        (vec!["dump", &db, "--text", "--compress"], "--compress"),
        (vec!["dump", &db, "--keyspace", ""], "keyspace"),
        (vec!["load"], "<DIR>"),
        (vec!["load", &new, "--existing", "--read-back"], "--read-back"),
    ] {
        fail(arguments, 2, named);
    }
    for (arguments, named) in [
        (vec!["dump", &new], "no database"),
        (vec!["dump", &db, "--keyspace", "none"], "no keyspace \"none\""),
        (vec!["dump", &db, "--out", &file], "already is a file"),
        (vec!["dump", &db, "--out", "/no/such/dir/file"], "/no/such/dir/file"),
        (vec!["load", &new, &file], "not a dump"),
        (vec!["load", &new, "/no/such/file"], "/no/such/file"),
        (vec!["load", &new, dir.path().to_str().unwrap()], "cannot read"),
    ] {
        fail(arguments, 1, named);
        assert!(!Path::new(&new).exists());
    }
    // Nothing on standard input.
    fail(["load", &new], 1, "not a dump");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    // Loading into what holds something.
    let dump = at("dump");
    succeed(["dump", &db, "--out", &dump]);
    fail(["load", &db, &dump], 1, "--existing");
    succeed(["load", &db, &dump, "--existing"]);
}

#[test]
fn a_dump_says_what_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (db, trial) = (at("db"), at("trial.dump"));
    succeed(["put", &db, "k", "main"]);
    let last = |said: String| said.lines().last().unwrap().to_owned();
    let always = "expired entries, the times at which entries expire, earlier versions of entries, \
        compaction filters, statistics";
    let said = last(succeed(["dump", &db, "--out", &at("whole.dump")]));
    assert_eq!(said, format!("left out: {always}"));
    // Nothing else is left out, so a pipe hears nothing.
    assert_eq!(run(["dump", &db]).stderr, b"");

    succeed(["branch", &db, "--make", "trial"]);
    succeed(["branch", &db, "--make", "two words"]);
    succeed(["branch", &db, "--snapshot", "monday"]);
    succeed(["put", &db, "k", "trial", "--branch", "trial"]);
    succeed(["put", &db, "k", "more", "--keyspace", "more"]);
    let said = last(succeed(["dump", &db, "--out", &at("main.dump")]));
    let others = "branch trial, branch \"two words\", named snapshot monday";
    assert_eq!(said, format!("left out: {others}, {always}"));
    // Who pipes it on is told of what a copy would lack.
    let said = String::from_utf8(run(["dump", &db]).stderr).unwrap();
    assert_eq!(said, format!("esker: left out: {others}, {always}\n"));
    let flags = ["--keyspace", "more", "--from", "a", "--json"];
    let said = succeed([&["dump", &db, "--out", &at("part.dump")][..], &flags].concat());
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["entries"], 1);
    let mut left_out = said["left_out"].clone();
    assert_eq!(left_out["always"].as_array().unwrap().len(), 5);
    left_out.as_object_mut().unwrap().remove("always");
    let expected = serde_json::json!({
        "database": false,
        "branches": ["trial", "two words"],
        "snapshots": ["monday"],
        "keyspaces": ["default"],
        "keys_outside_the_range": true,
    });
    assert_eq!(left_out, expected);

    let said = last(succeed(["dump", &db, "--branch", "trial", "--out", &trial]));
    let others = "the database outside of this branch, branch \"two words\", named snapshot monday";
    assert_eq!(said, format!("left out: {others}, {always}"));
    assert_eq!(run(["dump", &db, "--branch", "trial"]).stderr, b"", "it was asked for");
    for (branch, value) in [("trial", "trial\n"), ("monday", "main\n")] {
        let (file, copy) = (at(&format!("{branch}.again")), at(branch));
        succeed(["dump", &db, "--out", &file, "--branch", branch]);
        succeed(["load", &copy, &file]);
        assert_eq!(succeed(["get", &copy, "k"]), value);
    }
    // Into a branch.
    fail(["load", &db, &trial, "--branch", "two words"], 1, "--existing");
    succeed(["load", &db, &trial, "--branch", "two words", "--existing"]);
    assert_eq!(succeed(["get", &db, "k", "--branch", "two words"]), "trial\n");
    assert_eq!(succeed(["get", &db, "k"]), "main\n");
    fail(["load", &at("new"), &trial, "--branch", "trial"], 1, "no database");
    assert!(!Path::new(&at("new")).exists());
}

#[test]
fn an_empty_dump_is_one_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let db = at("db");
    succeed(["put", &db, "k", "v"]);
    let said = succeed_with(
        ["dump", &db, "--from", "x", "--out", &at("part")],
        "the dump has no entries: there is none in what was asked for",
    );
    assert!(said.starts_with("dumped 0 entries"), "{said}");
    succeed(["del", &db, "k"]);
    let named = "the dump has no entries: the database is empty";
    succeed_with(["dump", &db, "--out", &at("whole")], named);
    succeed_with(["dump", &db, "--text"], named);
}
