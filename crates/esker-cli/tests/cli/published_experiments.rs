//! Every published experiment, small, by its one command: Esker beside redb, a store by other hands
//! that is in every build of these tests.
//!
//! redb offers all durability classes, so each experiment runs in the class that was published. Its
//! single writes are not cheap, so it writes in batches where Esker writes one by one, and the
//! reports say so.

use crate::support::{esker, succeed, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// The experiments that this file runs.
const HERE: [&str; 6] = [
    "leveldb-vs-rocksdb",
    "rocksdb-vs-splinterdb",
    "influxdb",
    "billion-inserts",
    "linkbench-load",
    "linkbench-load-8",
];

/// An experiment that was run: its report, and what was printed.
struct Ran {
    report: Value,
    printed: String,
    dir: tempfile::TempDir,
}

/// Runs an experiment and checks what is true of all of them.
fn run(name: &str, flags: &[&str]) -> Ran {
    assert!(HERE.contains(&name), "{name} is not in the list above");
    let dir = tempfile::tempdir().unwrap();
    let mut command = esker();
    command.args(["bench", "experiment", name, "--engine", "esker,redb"]).args(flags);
    let output = command.args(["--dir", text(dir.path())]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let report = std::fs::read(dir.path().join("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let ran = Ran { report, printed, dir };
    ran.is_whole(name);
    ran.has_its_files();
    ran
}

impl Ran {
    fn list(&self, name: &str) -> &Vec<Value> {
        self.report[name].as_array().unwrap()
    }

    fn steps(&self) -> Vec<&str> {
        self.list("steps").iter().map(|step| step["name"].as_str().unwrap()).collect()
    }

    /// The reports of a step, of each engine.
    fn step(&self, name: &str) -> Vec<&Value> {
        let place = self.steps().iter().position(|step| *step == name).unwrap();
        self.list("runs").iter().map(|run| &run["workloads"][place]).collect()
    }

    /// The other figures of a step, of each engine.
    fn figures(&self, step: &str) -> Vec<&Value> {
        let found = self.list("figures").iter().filter(|found| found["workload"] == step);
        found.map(|found| &found["figures"]).collect()
    }

    /// Everything was run by both, all of it in order, and nothing that was returned was wrong.
    fn is_whole(&self, name: &str) {
        assert_eq!(self.report["complete"], true, "{}", self.report["stopped"]);
        assert_eq!(self.report["experiment"], name);
        let runs = self.list("runs");
        let engines: Vec<&Value> = runs.iter().map(|run| &run["engine"]).collect();
        assert_eq!(engines, ["esker", "redb"]);
        for run in runs {
            assert!(run["failure"].is_null(), "{run}");
            let steps = run["workloads"].as_array().unwrap();
            let names: Vec<&str> =
                steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
            assert_eq!(names, self.steps());
            for step in steps {
                assert!(step["operations"].as_u64().unwrap() > 0, "{}", step["name"]);
                let wrong = &step["check"]["wrong"];
                assert!(wrong.is_null() || wrong == 0, "{}: {}", step["name"], step["check"]);
            }
            let checked = |step: &&Value| {
                let check = &step["check"];
                check["scope"] == "results" || check["compared"].as_u64().is_some_and(|n| n > 0)
            };
            assert!(steps.iter().any(|step| checked(&step)), "nothing was checked");
        }
        let agreements = self.list("agreements");
        assert!(!agreements.is_empty(), "nothing was compared between the engines");
        for found in agreements {
            assert_eq!(found["agree"], true, "{found}");
            assert_eq!(found["engines"].as_array().unwrap().len(), 2);
        }
        assert_eq!(self.list("comparison").len(), self.steps().len());
    }

    /// The same in all forms.
    fn has_its_files(&self) {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap();
        let (csv, page) = (read("report.csv"), read("report.html"));
        let lines: Vec<&str> = csv.lines().collect();
        let published = self.list("published").len();
        assert_eq!(lines.len(), 1 + 2 * self.steps().len() + published, "{csv}");
        assert!(page.starts_with("<!DOCTYPE html>"));
        for engine in ["Esker", "redb"] {
            assert!(page.contains(engine), "{engine} is not on the page");
        }
        for step in self.steps() {
            assert!(csv.contains(step) && page.contains(step), "{step} is missing");
            assert!(self.printed.contains(step), "{step} was not printed:\n{}", self.printed);
        }
    }

    /// Each published figure stands in the report, in the table and in the file of values.
    fn stands_beside(&self, systems: &[&str]) {
        let published = self.list("published");
        let found: BTreeSet<&str> =
            published.iter().map(|figure| figure["engine"].as_str().unwrap()).collect();
        assert_eq!(found, systems.iter().copied().collect());
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap();
        let (csv, page) = (read("report.csv"), read("report.html"));
        for figure in published {
            assert!(self.steps().contains(&figure["workload"].as_str().unwrap()), "{figure}");
            let system = figure["engine"].as_str().unwrap();
            let said = format!("published: {system}");
            assert!(self.printed.contains(&said), "{said} is not in\n{}", self.printed);
            assert!(page.contains(&said), "{said} is not on the page");
            let rate = figure["ops_per_second"].as_f64().unwrap();
            let line = |line: &str| {
                line.contains(system)
                    && line.contains(&format!(",{rate},"))
                    && line.ends_with("yes")
            };
            assert!(csv.lines().any(line), "{figure} is not in\n{csv}");
        }
    }
}

fn positive(figure: &Value) -> bool {
    figure.as_f64().is_some_and(|figure| figure > 0.0)
}

#[test]
fn leveldb_vs_rocksdb() {
    let ran = run("leveldb-vs-rocksdb", &["--scale", "2000"]);
    assert_eq!(ran.report["settings"]["durability"], "process");
    ran.stands_beside(&["LevelDB", "RocksDB, statistics on", "RocksDB, statistics off"]);
    for threads in [1, 16] {
        for step in ran.step(&format!("readwhilewriting, {threads} reader{}", plural(threads))) {
            assert_eq!(step["threads"], threads);
            // The readers may be done before the first of a thousand writes a second is due.
            assert!(step["writer"]["operations"].is_u64(), "{}", step["writer"]);
        }
    }
    let [ours, theirs] = ran.step("overwrite, 16 threads")[..] else { panic!() };
    assert_eq!(
        (&ours["batched_instead"], &theirs["batched_instead"]),
        (&false.into(), &true.into())
    );
    for step in ran.step("readrandom, 16 threads") {
        assert_eq!(step["found"], 2_000, "every key that was read is there");
        assert!(positive(&step["latency"]["p99_us"]) && positive(&step["disk_bytes"]));
    }
}

fn plural(threads: u64) -> &'static str {
    if threads == 1 { "" } else { "s" }
}

#[test]
fn rocksdb_vs_splinterdb() {
    let ran = run("rocksdb-vs-splinterdb", &["--scale", "20000", "--duration", "0.2"]);
    assert_eq!(ran.report["settings"]["durability"], "buffered", "as it was published");
    ran.stands_beside(&["SplinterDB", "RocksDB leveled", "RocksDB universal"]);
    let published = ran.list("published");
    assert!(published.iter().any(|figure| positive(&figure["write_amplification"])));
    for step in ran.step("flush") {
        // What reached the device since open, where the system counts it.
        assert!(
            positive(&step["write_amplification_since_open"])
                || step["device_bytes_written"].is_null(),
            "{step}"
        );
        assert!(positive(&step["disk_bytes"]));
    }
    for step in ran.step("range queries") {
        assert!(step["seconds"].as_f64().unwrap() >= 0.2, "each query step lasts the same time");
        assert!(positive(&step["found"]));
    }
    for step in ran.step("shape") {
        assert!(step["text"].as_str().unwrap().len() > 20, "{}", step["text"]);
    }
    let page = std::fs::read_to_string(ran.dir.path().join("report.html")).unwrap();
    assert_eq!(page.matches(" printed (shape)</summary>").count(), 2);
}

#[test]
fn influxdb() {
    let ran = run("influxdb", &["--scale", "20000"]);
    assert!(ran.list("published").is_empty(), "no figures of single steps were kept");
    assert!(!ran.printed.contains("Published figures beside ours"));
    let names = ["write", "query", "delete half", "compact", "query half", "write half"];
    assert_eq!(ran.steps(), names);
    for name in names {
        for step in ran.step(name) {
            assert!(positive(&step["seconds"]) && positive(&step["disk_bytes"]), "{name}: {step}");
        }
        for figures in ran.figures(name) {
            assert_eq!(figures["series"], 1_000.0);
            assert!(positive(&figures["live_bytes"]), "{figures}");
        }
    }
    let live = |step: &str| ran.figures(step)[0]["live_bytes"].as_f64().unwrap();
    let left = live("delete half") / live("write");
    assert!((0.45..0.55).contains(&left), "half of the points is left: {left}");
    let points = |step: &str| ran.step(step)[0]["operations"].as_u64().unwrap();
    assert_eq!((points("query"), points("query half")), (20_000, 10_000));
}

#[test]
fn billion_inserts() {
    let ran = run("billion-inserts", &["--scale", "50000"]);
    for engine in ["esker", "redb"] {
        let path = ran.dir.path().join(format!("samples/1-{engine}.csv"));
        let samples = std::fs::read_to_string(&path).unwrap();
        // A head, and a sample for every 10,000.
        assert_eq!(samples.lines().count(), 6, "{samples}");
        assert!(samples.lines().nth(1).unwrap().split(',').nth(1) == Some("10000"), "{samples}");
    }
    for step in ran.step("inserts") {
        assert_eq!(step["operations"], 50_000);
        assert_eq!(step["samples"].as_array().unwrap().len(), 5);
    }
    for figures in ran.figures("inserts") {
        assert!(positive(&figures["longest_pause_ms"]), "{figures}");
    }
    assert_eq!(ran.figures("inserts").len(), 2);
    for plot in ["rate.svg", "pauses.svg"] {
        let plot = std::fs::read_to_string(ran.dir.path().join(plot)).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("esker") && plot.contains("redb"));
    }
}

const REQUESTS: [&str; 6] = ["add", "count", "delete", "list", "multiget", "update"];

/// Both phases were run by so many threads, and what only they have is there.
fn links(ran: &Ran, ids: f64, threads: u64) {
    assert_eq!(ran.steps(), ["load", "requests"]);
    for step in ran.list("runs").iter().flat_map(|run| run["workloads"].as_array().unwrap()) {
        assert_eq!(step["threads"], threads);
        assert!(step["check"]["compared"].as_u64().unwrap() > 1_000, "{}", step["check"]);
    }
    for figures in ran.figures("load") {
        assert_eq!(figures["ids"], ids);
        assert!(positive(&figures["links_per_id"]) && positive(&figures["cpu_us_per_insert"]));
        assert!(figures["context_switches_per_insert"].is_number());
    }
    for (step, figures) in ran.step("requests").iter().zip(ran.figures("requests")) {
        assert_eq!(step["operations"].as_f64().unwrap(), ids);
        let figure = |kind: &str, name: &str| &figures[format!("request_{kind}_{name}")];
        let counted: f64 =
            REQUESTS.iter().map(|kind| figure(kind, "count").as_f64().unwrap()).sum();
        assert_eq!(counted, ids);
        for kind in REQUESTS {
            assert!(positive(figure(kind, "p50_us")) && positive(figure(kind, "p99_us")), "{kind}");
        }
        // Two of three requests ask for a list.
        assert!(figure("list", "count").as_f64().unwrap() > 0.6 * ids);
        assert!(positive(&figures["links_per_list"]));
    }
    assert!(ran.printed.contains("Latency of each kind of request"), "{}", ran.printed);
}

#[test]
fn linkbench_with_one_loader() {
    let ran = run("linkbench-load", &["--scale", "3000"]);
    links(&ran, 3_000.0, 1);
    // With one thread every answer to a request is the same for both.
    let compared: Vec<&Value> =
        ran.list("agreements").iter().map(|found| &found["scope"]).collect();
    assert_eq!(compared, ["sample", "results"]);
}

#[test]
fn linkbench_with_eight_loaders() {
    let ran = run("linkbench-load-8", &["--scale", "3000"]);
    links(&ran, 3_000.0, 8);
    // What requests are answered depends on their order; that rows, index and counts tell the same
    // was compared within each engine.
    let compared: Vec<&Value> =
        ran.list("agreements").iter().map(|found| &found["workload"]).collect();
    assert_eq!(compared, ["load"]);
}

#[test]
fn linkbench_lasts_as_long_as_it_is_told() {
    let ran = run("linkbench-load", &["--scale", "1000", "--duration", "0.3"]);
    for step in ran.step("requests") {
        assert!(step["seconds"].as_f64().unwrap() >= 0.3, "{}", step["seconds"]);
        assert_eq!(step["check"]["comparable"], false);
    }
}

#[test]
fn linkbench_needs_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = esker();
    command.args(["bench", "experiment", "linkbench-load", "--durability", "buffered"]);
    command.args(["--engine", "faulty-forgets", "--dir", text(dir.path())]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let right = said.contains("faulty-forgets has no transactions");
    assert!(right && said.contains("choose from esker, mem, redb"), "{said}");
}

#[test]
fn no_experiment_is_left_out() {
    let listed = succeed(["bench", "experiment", "--list"]);
    let indented = |line: &&str| line.is_empty() || line.starts_with(' ');
    let names: Vec<&str> = listed.lines().filter(|line| !indented(line)).collect();
    assert_eq!(names, HERE);
}
