//! `esker repair` and `esker inspect` on a database that open refuses.

#![allow(clippy::unwrap_used, reason = "a test stops where something is unexpected")]

mod support;

use support::{Shell, fail, succeed, text, tree};

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
    let plan = succeed(["repair", text(&db), "--plan", "--json"]);
    assert!(plan.starts_with("{\"report\":["), "{plan}");
    let report = succeed(["repair", text(&db), "--to", text(&new)]);
    assert!(report.contains("damaged: "), "{report}");
    assert!(tree(&db) == before, "the repair changed the damaged directory");
    let lines = succeed(["scan", text(&new)]);
    assert_eq!(lines.lines().count(), 50);
    fail(["repair", text(&db), "--to", text(&new)], 1, "name another path");

    let shown = succeed(["inspect", text(&new.join("superblock-A"))]);
    assert!(shown.contains("format version 1\n"), "{shown}");
    assert!(succeed(["inspect", text(&db.join("superblock-A"))]).contains("damaged[0]"));
    fail(["inspect", text(&db)], 1, "is a directory");
}
