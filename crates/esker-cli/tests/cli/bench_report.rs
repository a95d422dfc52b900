//! `esker bench report`: from what `esker bench --json` printed to a page in a file.

use crate::support::{esker, fail, succeed, text};
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
    assert!(fs::read_to_string(&out).unwrap().contains("Measurement 2 of 2"));
}

#[test]
fn a_report_is_compared_with_its_baseline() {
    let dir = tempfile::tempdir().unwrap();
    let now = measure(dir.path(), "now.json", "esker,mem", &["--rounds", "2"]);
    let then = measure(dir.path(), "then.json", "esker", &["--rounds", "3"]);
    let out = dir.path().join("page.html");
    let report = ["bench", "report", text(&now), "--out", text(&out)];
    let with = |more: &[&'static str], file: &Path| -> Vec<String> {
        let all = report.iter().chain(more).map(|one| (*one).to_owned());
        all.chain([text(file).to_owned()]).collect()
    };
    assert_eq!(succeed(with(&["--baseline"], &then)), "");
    let page = fs::read_to_string(&out).unwrap();
    for expected in
        ["Change against the baseline", "then.json", "BTreeMap</b>: not in the baseline"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    let other = measure(dir.path(), "other.json", "esker", &["--value-size", "10"]);
    let line = fail(with(&["--baseline"], &other), 2, "other conditions");
    assert!(line.contains("other.json") && line.contains("value size 10 before"), "{line}");
    fail(with(&["--baseline"], &now), 2, "hold the same runs");
    fail(with(&["--markdown", "--baseline"], &then), 2, "--markdown");
    fail(with(&["--baseline"], &dir.path().join("missing.json")), 1, "check the name");
    assert_eq!(fs::read_to_string(&out).unwrap(), page, "the page stays as it was");
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

/// One command makes the page and the tables of reports, and both say where the figures come from.
#[test]
fn a_page_and_its_tables_say_how_they_are_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (bench, compared) = (path("bench.json"), path("compared.json"));
    let small = ["--num", "200", "--workloads", "fillseq,readrandom", "--durability", "buffered"];
    let small = || small.into_iter().chain(["--engine", "mem,esker", "--out"]);
    succeed(["bench"].into_iter().chain(small()).chain([text(&bench)]));
    succeed(
        ["bench", "compare", "--repeat", "2"].into_iter().chain(small()).chain([text(&compared)]),
    );
    let mut experiment = esker();
    experiment.args(["bench", "experiment", "influxdb", "--scale", "2000", "--json", "--dir"]);
    let tried = experiment.arg(path("experiment")).output().unwrap().stdout;
    let tried: serde_json::Value = serde_json::from_slice(&tried).unwrap();
    let mut reports = vec![tried.clone()];
    for file in [&bench, &compared] {
        reports.push(serde_json::from_slice(&fs::read(file).unwrap()).unwrap());
    }
    for report in &reports {
        let origin = &report["origin"];
        let line = origin["command_line"].as_str().unwrap();
        assert!(line.starts_with("esker bench "), "{line}");
        let date = origin["date"].as_str().unwrap();
        assert!(date.len() == 20 && date.ends_with('Z'), "{date}");
        assert!(origin["compiler"].as_str().unwrap().starts_with("rustc "), "{origin}");
        // Where the source is not a checkout, nobody knows the commit.
        let commit =
            origin["commit"].as_str().map(|commit| commit.split(' ').next().unwrap().len());
        assert!(commit.is_none_or(|len| len >= 40), "{origin}");
        if cfg!(target_os = "linux") {
            assert!(report["machine"]["file_system"].is_string(), "{}", report["machine"]);
        }
    }
    assert_eq!(tried["runs"][0]["origin"], tried["origin"]);

    let (out, made) = (path("report.html"), path("tables.md"));
    let files = [text(&bench), text(&compared), "--out", text(&out), "--tables", text(&made)];
    assert_eq!(succeed(["bench", "report"].into_iter().chain(files)), "");
    let (page, tables) = (fs::read_to_string(&out).unwrap(), fs::read_to_string(&made).unwrap());
    assert!(page.starts_with("<!DOCTYPE html>") && tables.starts_with("# Results\n\nMeasured on "));
    assert!(tables.contains("(report.html)"), "{tables}");
    for report in &reports[1..] {
        let origin = &report["origin"];
        let line = origin["command_line"].as_str().unwrap();
        assert!(tables.contains(&format!("\n    {line}\n")), "{line} is not in {tables}");
        for fact in ["date", "compiler", "commit"] {
            let Some(fact) = origin[fact].as_str() else { continue };
            assert!(page.contains(fact), "{fact} is not on the page");
        }
    }
    let elsewhere = path("other/page.html");
    fs::create_dir(path("other")).unwrap();
    let files = [text(&bench), "--out", text(&elsewhere), "--tables", text(&made)];
    succeed(["bench", "report"].into_iter().chain(files));
    assert!(!fs::read_to_string(&made).unwrap().contains("page.html"), "it may move");
    fail(["bench", "report", text(&bench), "--markdown", "--tables", "x.md"], 2, "--markdown");
}

/// The terminal's table, the JSON, the page and the tables in Markdown have one direction: above 1 is better
/// for Esker, wherever it was named.
#[test]
fn ratios_have_one_direction_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (json, page) = (dir.path().join("r.json"), dir.path().join("r.html"));
    let flags = ["--engine", "null,esker", "--num", "20000", "--workloads", "fillrandom"];
    let printed = succeed(["bench"].into_iter().chain(flags).chain([
        "--out",
        text(&json),
        "--page",
        text(&page),
    ]));
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let medians = &report["comparison"][0]["engines"];
    let rate = |place: usize| medians[place]["ops_per_second"].as_f64().unwrap();
    let ratio = medians[0]["ratio"].as_f64().unwrap();
    assert!(rate(0) > rate(1) && ratio < 1.0, "an engine that does nothing is faster");
    assert!((ratio / (rate(1) / rate(0)) - 1.0).abs() < 1e-9, "{medians}");
    assert_eq!((&medians[1]["ratio"], &medians[1]["verdict"]), (&1.0.into(), &"base".into()));
    let row = printed.lines().find(|line| line.contains(" null ")).unwrap();
    assert!(row.split_whitespace().any(|cell| cell == format!("{ratio:.2}")), "{row}");
    assert!(printed.contains("above 1 is better for esker"), "{printed}");
    let shown = fs::read_to_string(&page).unwrap();
    let shown =
        shown.split("class=\"ratio\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let shown: f64 = shown.unwrap().parse().unwrap();
    assert!((shown / ratio - 1.0).abs() < 1e-9, "{shown} on the page, {ratio} in JSON");
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

/// What is published follows from the JSON beside it, so that nobody has to trust a page that somebody made
/// once. If a change of the page or of the tables is meant, the directory's command makes both again, as
/// docs/results/README.md says; the JSON stays.
#[test]
fn published_results_are_what_their_json_gives() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let mut count = 0;
    for directory in fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path()) {
        let inside = fs::read_dir(&directory).into_iter().flatten();
        let mut reports: Vec<PathBuf> = inside.map(|entry| entry.unwrap().path()).collect();
        reports.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        if reports.is_empty() {
            continue;
        }
        reports.sort();
        count += 1;
        let made = tempfile::tempdir().unwrap();
        let [page, tables] = ["report.html", "README.md"].map(|name| made.path().join(name));
        let given = reports.iter().map(|path| text(path));
        let outputs = ["--out", text(&page), "--tables", text(&tables)];
        succeed(["bench", "report"].into_iter().chain(given).chain(outputs));
        for made in [page, tables] {
            let kept = directory.join(made.file_name().unwrap());
            let (now, then) = (fs::read(&made).unwrap(), fs::read(&kept).unwrap());
            assert!(now == then, "{} is not what its JSON gives", kept.display());
        }
    }
    assert!(count > 0, "no directory of results has its JSON");
}
