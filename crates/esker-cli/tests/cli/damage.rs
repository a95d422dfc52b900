//! Damage to any file of a database gives the right answer or a one-line error, never a wrong
//! answer and never a panic (C3, C4, C5).

use crate::support::{Shell, copy, random, run, text, tree};
use std::path::Path;

/// A database of a few files, all of whose data is in runs.
fn build(db: &Path) -> String {
    let mut shell = Shell::start(db, &["--tiny", "--memory", "8MiB"]);
    for round in 0..3 {
        for number in 0..200 {
            shell.expect(&format!("put key{:04} #{}", number * 3 + round, 50 + number), &["ok"]);
        }
        shell.expect("use other", &["ok"]);
        shell.expect(&format!("put only{round} v"), &["ok"]);
        shell.expect("use default", &["ok"]);
        shell.expect("flush", &["ok"]);
    }
    shell.close();
    let output = run(["scan", text(db)]);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn answers_are_right_or_refused() {
    let mut random = random();
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good");
    let answer = build(&good);
    assert_eq!(answer.lines().count(), 600);
    let files = tree(&good);
    for (index, (name, content)) in files.iter().enumerate() {
        let Some(content) = content else { continue };
        for round in 0..6 {
            let bad = dir.path().join(format!("bad-{index}-{round}"));
            copy(&good, &bad);
            let file = bad.join(name);
            let mut bytes = content.clone();
            let at = random.below(bytes.len().max(1) as u64) as usize;
            let what = match round {
                0 => {
                    std::fs::remove_file(&file).unwrap();
                    "removed".to_owned()
                }
                1 | 2 => {
                    let keep = if round == 1 { 0 } else { at };
                    bytes.truncate(keep);
                    std::fs::write(&file, &bytes).unwrap();
                    format!("cut to {keep} bytes")
                }
                _ => {
                    // The first bytes, where magic numbers and versions stand, and any others.
                    let at = if round == 3 { at % 16 } else { at };
                    let Some(byte) = bytes.get_mut(at) else { continue };
                    *byte ^= 1 << random.below(8);
                    std::fs::write(&file, &bytes).unwrap();
                    format!("a bit flipped at {at}")
                }
            };
            check(&bad, &format!("{name} {what}"), &answer);
            std::fs::remove_dir_all(&bad).unwrap();
        }
    }
}

fn check(db: &Path, what: &str, answer: &str) {
    let before = tree(db);
    for command in ["scan", "verify"] {
        let output = run([command, text(db), "--memory", "8MiB"]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {
                assert!(stderr.is_empty(), "{what}: {stderr}");
                assert!(command != "scan" || stdout == answer, "{what}: a wrong answer");
            }
            Some(1) => {
                assert!(stderr.starts_with("esker: "), "{what}: {stderr}");
                assert_eq!(stderr.lines().count(), 1, "{what}: {stderr}");
                // What was printed before the damage was met is right as far as it goes.
                assert!(command != "scan" || answer.starts_with(&*stdout), "{what}: {stderr}");
            }
            other => panic!("{what}: {command} ended with {other:?}: {stderr}"),
        }
        assert!(tree(db) == before, "{what}: {command} changed the directory");
    }
}

/// A database of which a part is in runs and the newest puts are in the log of a killed writer.
/// Keys ascend, so that the states that it went through are the beginnings of one scan.
fn build_killed(db: &Path) -> String {
    let mut shell = Shell::start(db, &["--tiny", "--memory", "8MiB"]);
    for number in 0..400 {
        let class = if number % 50 == 7 { " disk" } else { "" };
        shell.expect(&format!("put key{number:04} #{}{class}", 20 + number), &["ok"]);
        if number == 100 {
            shell.expect("flush", &["ok"]);
        }
    }
    shell.child.kill().unwrap();
    shell.child.wait().unwrap();
    let output = run(["scan", text(db)]);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// C4: a log that nobody closed may lose its damaged last record and nothing else. The damage is
/// done and undone in place, because a copied log tells less about what had been published (R6).
#[test]
fn a_damaged_log_is_refused_or_loses_its_last_record() {
    let mut random = random();
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let answer = build_killed(&db);
    let last = answer[..answer.len() - 1].rfind('\n').unwrap() + 1;
    let (mut right, mut refused) = (0, 0);
    for (name, content) in tree(&db) {
        let Some(content) = content.filter(|_| name.ends_with(".log")) else { continue };
        // Most of a log file is room for later records: damage is sought where there are bytes.
        let used: Vec<usize> = (0..content.len()).filter(|&at| content[at] != 0).collect();
        for _ in 0..60 {
            let at = used[random.below(used.len() as u64) as usize];
            let what = format!("{name} flipped at {at}");
            flip(&db.join(&name), at, content[at] ^ (1 << random.below(8)));
            let before = tree(&db);
            let output = run(["scan", text(&db)]);
            let stdout = String::from_utf8(output.stdout).unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            if output.status.code() == Some(0) {
                assert!(stdout == answer || stdout == answer[..last], "{what}: a wrong answer");
                right += 1;
            } else {
                assert_eq!(output.status.code(), Some(1), "{what}: {stderr}");
                assert_eq!((&*stdout, stderr.lines().count()), ("", 1), "{what}: {stderr}");
                assert!(stderr.contains("repair") && stderr.contains("wal"), "{what}: {stderr}");
                refused += 1;
            }
            assert!(tree(&db) == before, "{what}: scan changed the directory");
            flip(&db.join(&name), at, content[at]);
        }
    }
    println!("{right} answered, {refused} refused");
    assert!(refused > 0);
}

fn flip(file: &Path, at: usize, byte: u8) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(&[byte]).unwrap();
}
