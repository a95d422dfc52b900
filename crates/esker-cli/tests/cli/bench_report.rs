//! `esker bench report`: from what `esker bench --json` printed to a page in a file.

use crate::support::{fail, succeed, text};
use std::fs;
use std::path::{Path, PathBuf};

/// Measures a little, and keeps what was printed.
fn measure(dir: &Path, name: &str, engine: &str, more: &[&str]) -> PathBuf {
    let base = ["bench", "--json", "--num", "200", "--workloads", "fillseq,readrandom", "--engine"];
    let report = succeed(base.iter().chain([&engine]).chain(more));
    let path = dir.join(name);
    fs::write(&path, report).unwrap();
    path
}

#[test]
fn reports_become_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let ours = measure(dir.path(), "ours.json", "esker", &["--rounds", "2"]);
    let theirs = measure(dir.path(), "theirs.json", "mem", &["--rounds", "2"]);
    let out = dir.path().join("page.html");
    assert_eq!(succeed(["bench", "report", text(&ours), text(&theirs), "--out", text(&out)]), "");
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    for expected in
        ["Benchmark of Esker and BTreeMap", "against BTreeMap", "readrandom", "ours.json"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    // Measured with other keys, it is another comparison.
    let other = measure(dir.path(), "other.json", "esker", &["--value-size", "10"]);
    succeed(["bench", "report", text(&ours), text(&other), "--out", text(&out)]);
    assert!(fs::read_to_string(&out).unwrap().contains("Comparison 2 of 2"));
}

#[test]
fn a_wrong_file_is_named_and_the_older_page_stays() {
    let dir = tempfile::tempdir().unwrap();
    let good = measure(dir.path(), "good.json", "mem", &[]);
    let out = dir.path().join("page.html");
    succeed(["bench", "report", text(&good), "--out", text(&out)]);
    let before = fs::read(&out).unwrap();

    let half = dir.path().join("half.json");
    let whole = fs::read(&good).unwrap();
    fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    let other = dir.path().join("other.json");
    fs::write(&other, "{\"name\": \"something else\"}").unwrap();
    let missing = dir.path().join("missing.json");
    for (file, named) in
        [(&half, "not JSON"), (&other, "not a report"), (&missing, "check the name")]
    {
        let line =
            fail(["bench", "report", text(&good), text(file), "--out", text(&out)], 1, named);
        assert!(line.contains(text(file)), "{line}");
    }
    fail(["bench", "report", text(&good), text(&good)], 2, "hold the same runs");
    fail(["bench", "report"], 2, "FILES");
    let nowhere = dir.path().join("no/such/page.html");
    fail(["bench", "report", text(&good), "--out", text(&nowhere)], 1, "page.html");
    assert_eq!(fs::read(&out).unwrap(), before);
}

#[test]
fn a_run_and_a_comparison_leave_their_report_and_its_page() {
    let dir = tempfile::tempdir().unwrap();
    let (json, page) = (dir.path().join("r.json"), dir.path().join("r.html"));
    let flags = ["--engine", "esker,mem", "--num", "200", "--workloads", "fillseq,readrandom"];
    // A map in memory is compared only where nothing is promised.
    let flags = flags.into_iter().chain(["--durability", "buffered"]);
    let outputs = ["--out", text(&json), "--page", text(&page)];
    for command in [&["bench"][..], &["bench", "compare", "--repeat", "2"]] {
        let printed = succeed(command.iter().copied().chain(flags.clone()).chain(outputs));
        assert!(printed.contains("readrandom"), "{printed}");
        assert!(fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"));
        let again = dir.path().join("again.html");
        succeed(["bench", "report", text(&json), "--out", text(&again)]);
        let named = |path| fs::read_to_string(path).unwrap().replace("r.json", "this run");
        assert_eq!(named(&page), named(&again), "the same page, but for the name of the file");
        fs::remove_file(&json).unwrap();
        fs::remove_file(&page).unwrap();
    }
    let nowhere = dir.path().join("no/such/r.json");
    fail(["bench", "--out", text(&nowhere)], 1, "r.json");
}
