//! `esker bench compare` from outside: its report, and every way in which it can end early.

use crate::support::{esker, fail, text};
use std::path::Path;
use std::process::Output;

const TINY: &[&str] = &["--durability", "buffered", "--json"];

fn compare(temporary: &Path, arguments: &[&str]) -> Output {
    let mut command = esker();
    command.env("TMPDIR", temporary).args(["bench", "compare"]).args(TINY).args(arguments);
    if !arguments.contains(&"--num") {
        command.args(["--num", "2000"]);
    }
    command.output().unwrap()
}

/// The report, and what was said on standard error.
fn report(temporary: &Path, arguments: &[&str], code: i32) -> (serde_json::Value, String) {
    let output = compare(temporary, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    let left: Vec<_> = std::fs::read_dir(temporary).unwrap().collect();
    assert!(left.is_empty(), "databases were left: {left:?}");
    (serde_json::from_slice(&output.stdout).expect(&said), said)
}

fn names(runs: &serde_json::Value) -> Vec<&str> {
    runs.as_array().unwrap().iter().map(|run| run["engine"].as_str().unwrap()).collect()
}

#[test]
fn engines_are_compared_in_processes_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let peer = if cfg!(feature = "peer-fjall") { ",fjall" } else { "" };
    let engines = format!("esker,mem,null{peer}");
    let list = "fillrandom,readrandom:2,seekrandom,readseq,multireadrandom,deleterandom,stats";
    let arguments = ["--engine", &engines, "--workloads", list, "--repeat", "2"];
    let (report, said) = report(dir.path(), &arguments, 0);
    assert_eq!(said, "");
    assert_eq!(report["complete"], true);
    let expected: Vec<&str> = engines.split(',').collect();
    let runs = names(&report["runs"]);
    assert_eq!(runs[..expected.len()], expected);
    assert_eq!(runs[expected.len()], "mem", "the second round starts with the second engine");
    for run in report["runs"].as_array().unwrap() {
        assert_eq!(run["workloads"].as_array().unwrap().len(), 7);
        let step = &run["workloads"][1];
        assert_eq!(step["operations"], 2_000);
        assert_eq!(step["check"].is_null(), run["engine"] == "null");
        if cfg!(target_os = "linux") {
            let peak = step["peak_memory_bytes"].as_u64().unwrap();
            assert!(peak > 1 << 20, "{peak}");
        }
    }
    let agreements = report["agreements"].as_array().unwrap();
    assert_eq!(agreements.len(), 2 * 6);
    assert!(agreements.iter().all(|found| found["agree"] == true), "{agreements:?}");
    let medians = report["comparison"][0]["engines"].as_array().unwrap();
    assert_eq!(medians.len(), expected.len());
    assert_eq!(medians[0]["verdict"], "base");
}

#[test]
fn the_table_has_the_rules_and_the_verdicts() {
    let arguments = ["bench", "compare", "--engine", "esker,mem", "--workloads", "fillseq,readseq"];
    let mut command = esker();
    command.args(arguments).args(["--num", "1000", "--durability", "buffered", "--repeat", "2"]);
    let output = command.output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let expected = [
        "survives nothing, in every engine alike",
        "Rounds interleave",
        "no step is warmed up",
        "esker: Esker ",
        "structure: BTreeMap",
        "Medians over rounds",
        "4 of 4 steps whose results were compared",
        "0 of them were wrong",
    ];
    for text in expected {
        assert!(table.contains(text), "{text} is not in\n{table}");
    }
    assert!(["faster", "slower", "tie"].iter().any(|word| table.contains(word)), "{table}");
}

#[test]
fn an_open_loop_is_measured_at_shares_of_the_rate_that_was_sustained() {
    let dir = tempfile::tempdir().unwrap();
    let list = "ycsb-load,ycsb-a,ycsb-e";
    let arguments =
        ["--engine", "mem,esker", "--workloads", list, "--rate-percent", "50,80", "--reads", "500"];
    let (report, _) = report(dir.path(), &arguments, 0);
    let steps = report["runs"][1]["workloads"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    let expected =
        ["ycsb-load", "ycsb-a", "ycsb-a@50%", "ycsb-a@80%", "ycsb-e", "ycsb-e@50%", "ycsb-e@80%"];
    assert_eq!(names, expected);
    assert_eq!(report["settings"]["value_size"], 1_000);
    let open = &steps[2]["open_loop"];
    assert_eq!(open["percent"], 50.0);
    assert_eq!(open["sustained"], steps[1]["ops_per_second"]);
    let latency = &steps[2]["latency"];
    assert!(latency["p50_us"].as_f64().unwrap() <= latency["p9999_us"].as_f64().unwrap());
    assert_eq!(report["comparison"].as_array().unwrap().len(), 7);
    let agreements = report["agreements"].as_array().unwrap();
    assert!(agreements.len() == 7 && agreements.iter().all(|found| found["agree"] == true));
}

/// Over rounds, every figure of an open loop has a median, and the lowest and highest round.
#[test]
fn an_open_loop_over_rounds_has_medians_of_every_figure() {
    const FIGURES: [&str; 9] = [
        "latency/p50_us",
        "latency/p90_us",
        "latency/p99_us",
        "latency/p999_us",
        "latency/p9999_us",
        "latency/max_us",
        "longest_pause_ms",
        "rate_min",
        "rate_median",
    ];
    let (dir, pages) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let page = pages.path().join("page.html");
    let list = "ycsb-load,ycsb-a";
    let flags = ["--engine", "esker,mem", "--workloads", list, "--rate-percent", "50"];
    let flags = [&flags[..], &["--reads", "300", "--repeat", "3"]].concat();
    let (report, _) = report(dir.path(), &[&flags[..], &["--page", text(&page)]].concat(), 0);
    for (place, engine) in ["esker", "mem"].into_iter().enumerate() {
        let runs = report["runs"].as_array().unwrap().iter();
        let rounds: Vec<_> =
            runs.filter(|run| run["engine"] == engine).map(|run| &run["workloads"][2]).collect();
        assert_eq!(rounds.len(), 3);
        let median = &report["comparison"][2]["engines"][place];
        let expect = |path: &str, found: &serde_json::Value| {
            let of = |round: &&serde_json::Value| round.pointer(path).unwrap().as_f64().unwrap();
            let mut figures: Vec<f64> = rounds.iter().map(of).collect();
            figures.sort_by(f64::total_cmp);
            let expected = serde_json::json!({
                "median": figures[1], "min": figures[0], "max": figures[2],
            });
            assert_eq!(*found, expected, "{engine}: {path}");
        };
        for figure in FIGURES {
            let name = figure.rsplit('/').next().unwrap();
            expect(&format!("/{figure}"), &median["evenness"][name]);
        }
        expect("/open_loop/rate", &median["open_loop"]["rate"]);
        assert_eq!(median["open_loop"]["percent"], 50.0);
        let kept_up = rounds.iter().filter(|round| round["open_loop"]["kept_up"] == true);
        assert_eq!(median["open_loop"]["kept_up"], kept_up.count());
        let shown = |name: &str| {
            format!("<data value=\"{}\">", median["evenness"][name]["median"].as_f64().unwrap())
        };
        let page = std::fs::read_to_string(&page).unwrap();
        for name in ["p50_us", "p9999_us", "max_us", "longest_pause_ms", "rate_min", "rate_median"]
        {
            assert!(page.contains(&shown(name)), "{engine}: {name} is not on the page");
        }
    }
    let mut command = esker();
    command.args(["bench", "compare", "--num", "2000", "--durability", "buffered"]).args(&flags);
    let table = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let (_, loops) = table.split_once("Open loops").unwrap();
    let lines = |word: &str| loops.lines().filter(|line| line.contains(word)).count();
    // The heads of two columns among them: "lowest 1 s" and "median 1 s".
    assert_eq!(["  median ", "  lowest ", "  highest "].map(lines), [2 + 1, 2 + 1, 2], "{loops}");
    assert_eq!(lines(" of 3 "), 2, "{loops}");
}

#[test]
fn an_engine_that_returns_something_else_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["--engine", "esker,faulty-forgets", "--workloads", "fillseq,readrandom,readseq"];
    let (report, said) = report(dir.path(), &[&arguments[..], &["--num", "20000"]].concat(), 1);
    assert!(said.contains("not complete") && said.contains("faulty-forgets"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(report["complete"], false);
    assert_eq!(names(&report["runs"]), ["esker", "faulty-forgets"]);
}

#[test]
fn a_crash_of_one_engine_leaves_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "--engine",
        "mem,faulty-aborts,esker",
        "--workloads",
        "fillseq,readrandom",
        "--repeat",
        "2",
    ];
    let (report, said) = report(dir.path(), &arguments, 1);
    assert!(said.contains("faulty-aborts, round 1: its process ended without a result"), "{said}");
    assert_eq!(names(&report["runs"]), ["mem", "faulty-aborts", "esker", "esker", "mem"]);
    assert!(report["runs"][1]["failure"].as_str().unwrap().contains("without a result"));
    assert_eq!(report["comparison"][1]["engines"].as_array().unwrap().len(), 2);
}

#[test]
fn a_full_disk_ends_it_with_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--engine", "esker,faulty-full,mem", "--workloads", "fillseq,readrandom"];
    let (report, said) = report(dir.path(), &arguments, 1);
    assert!(said.contains("the disk is full") && said.contains("--dir"), "{said}");
    assert_eq!(report["runs"][0]["workloads"].as_array().unwrap().len(), 2);
    assert_eq!(names(&report["runs"]), ["esker", "faulty-full"]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["--engine", "esker,oracle"], "choose from esker, mem, null"),
        (&["--engine", "esker,mem"], "mem has no writes of class `process`"),
        (&["--engine", "esker,esker"], "twice"),
        (&["--workloads", "fillsqe"], "did you mean `fillseq`"),
        (&["--rounds", "0"], "--rounds"),
        (&["--batch-instead", "0"], "--batch-instead"),
        (&["--tuning", "wild"], "wild"),
        (&["--rate", "0"], "--rate"),
        (&["--rate", "5", "--rate-percent", "50"], "--rate"),
        (&["--workloads", "fillseq", "--rate", "5"], "that time can end"),
        (&["--workloads", "ycsb-b"], "ycsb-load"),
    ];
    for (arguments, named) in cases {
        fail([&["bench", "compare"], *arguments].concat(), 2, named);
    }
}

/// Where the system does not let us limit memory or empty its cache, the reason is told.
#[test]
fn memory_is_limited_and_caches_are_emptied_or_the_reason_told() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--engine", "esker", "--workloads", "fillseq,readrandom"];
    let flags: [(&[&str], &str); 2] = [
        (&["--memory-limit", "256M"], "a control group"),
        (&["--drop-caches"], "cache of files is emptied"),
    ];
    for (flag, rule) in flags {
        let output = compare(dir.path(), &[&arguments[..], flag].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        if !output.status.success() {
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(flag[0]) && said.contains("administrator's rights"), "{said}");
            continue;
        }
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rules = report["rules"].as_array().unwrap();
        assert!(rules.iter().any(|told| told.as_str().unwrap().contains(rule)), "{rules:?}");
        if flag[0] == "--memory-limit" {
            assert_eq!(report["settings"]["memory"], 64 << 20, "a quarter of the limit");
        }
    }
}

#[test]
fn what_is_kept_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--engine", "esker", "--workloads", "fillseq", "--keep"];
    let output = compare(dir.path(), &arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kept = Path::new(report["kept"].as_str().unwrap()).join("esker-bench-esker");
    assert!(said.contains("The databases are in"), "{said}");
    crate::support::succeed(["verify", text(&kept)]);
}

#[cfg(unix)]
mod signals {
    use super::*;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::io::Read;
    use std::process::Stdio;

    /// Starts a comparison that would go on for long, and returns when its first run is under way.
    fn under_way(temporary: &Path, flags: &[&str]) -> std::process::Child {
        let mut command = esker();
        command.env("TMPDIR", temporary).args(["bench", "compare"]).args(TINY);
        command.args(["--engine", "esker,mem", "--workloads", "fillseq,readrandom"]);
        command.args(["--num", "2000", "--duration", "100000"]).args(flags);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let database = || {
            let root = std::fs::read_dir(temporary).unwrap().next()?.unwrap().path();
            std::fs::read_dir(root.join("esker-bench-esker")).ok()?.next()
        };
        while database().is_none() {
            std::thread::yield_now();
        }
        child
    }

    /// The processes whose command line has this word.
    fn runs_of(parent: u32) -> Vec<u32> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let child_of = |process: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            rest.split(' ').nth(1) == Some(&parent.to_string())
        };
        numbers.filter(child_of).collect()
    }

    #[test]
    fn ctrl_c_ends_the_run_and_keeps_what_was_measured() {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let dir = tempfile::tempdir().unwrap();
            let mut child = under_way(dir.path(), &[]);
            kill(Pid::from_raw(child.id() as i32), signal).unwrap();
            let (mut printed, mut said) = (String::new(), String::new());
            child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
            let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(report["stopped"], "interrupted");
            assert_eq!(names(&report["runs"]), ["esker"]);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "databases were left");
        }
    }

    /// Starts a plain run whose second step would take a day, and returns when the first is over.
    fn plain(temporary: &Path, more: &[&str]) -> std::process::Child {
        let samples = temporary.join("samples");
        let mut command = esker();
        command.args(["bench", "--num", "2000", "--duration", "100000"]);
        command.args(["--workloads", "fillseq,readrandom", "--sample-ops", "1000"]);
        command.arg("--sample-dir").arg(&samples).args(more).env("TMPDIR", temporary);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // They are written behind each step.
        while !samples.join("esker-1-1-fillseq.csv").exists() {
            std::thread::yield_now();
        }
        child
    }

    /// What it printed, and what it said on standard error.
    fn ended(mut child: std::process::Child) -> (String, String) {
        let (mut printed, mut said) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
        (printed, said)
    }

    fn no_database_in(temporary: &Path) {
        let left: Vec<_> =
            std::fs::read_dir(temporary).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["samples"], "a database was left");
    }

    /// A plain run is one process: it ends behind the step under way, and its database with it.
    #[test]
    fn ctrl_c_ends_a_plain_run_and_keeps_what_was_measured() {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let dir = tempfile::tempdir().unwrap();
            let child = plain(dir.path(), &["--json"]);
            kill(Pid::from_raw(child.id() as i32), signal).unwrap();
            let (printed, said) = ended(child);
            let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(
                (&report["stopped"], &report["complete"]),
                (&"interrupted".into(), &false.into())
            );
            let steps = report["runs"][0]["workloads"].as_array().unwrap();
            let names: Vec<_> = steps.iter().map(|step| &step["name"]).collect();
            assert_eq!(names, ["fillseq"], "the step under way has no figures");
            assert_eq!(steps[0]["operations"], 2_000);
            assert!(said.contains("the report is not complete: interrupted"), "{said}");
            no_database_in(dir.path());
        }
    }

    #[test]
    fn ctrl_c_prints_the_table_of_what_was_measured() {
        let dir = tempfile::tempdir().unwrap();
        let child = plain(dir.path(), &[]);
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let (printed, _) = ended(child);
        assert!(printed.contains("\n fillseq "), "{printed}");
        assert!(printed.ends_with("Not complete: interrupted\n"), "{printed}");
        no_database_in(dir.path());
    }

    /// Whoever asks twice does not want to wait for the step, and still finds no database.
    #[test]
    fn a_second_ctrl_c_ends_a_plain_run_at_once_and_removes_its_database() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = plain(dir.path(), &[]);
        let id = Pid::from_raw(child.id() as i32);
        kill(id, Signal::SIGINT).unwrap();
        let mut told = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut told, &mut line).unwrap();
        assert!(line.contains("once more ends the program at once"), "{line}");
        // It may be over by itself.
        let _ = kill(id, Signal::SIGINT);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        no_database_in(dir.path());
    }

    /// A comparison that is killed cannot end its run, so the run has to notice.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_killed_comparison_leaves_no_run_behind() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = under_way(dir.path(), &[]);
        let runs = runs_of(child.id());
        assert_eq!(runs.len(), 1);
        child.kill().unwrap();
        // Its standard error, which the run has too, ends when both have.
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap();
    }
}
