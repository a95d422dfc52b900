//! `esker bench experiment` from outside: its report, its directory, and what it refuses.

use crate::support::{esker, succeed};
use std::path::Path;
use std::process::{Command, Output};

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = esker();
    command.args(["bench", "experiment"]).args(arguments).arg("--dir").arg(dir);
    command
}

fn run(dir: &Path, arguments: &[&str], code: i32) -> (serde_json::Value, String) {
    let output: Output = command(dir, arguments).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    (serde_json::from_slice(&output.stdout).expect(&said), said)
}

const LEVELDB: &[&str] = &["leveldb-vs-rocksdb", "--scale", "2000", "--durability", "buffered"];

#[test]
fn an_experiment_leaves_its_report_in_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [LEVELDB, &["--engine", "esker,mem", "--repeat", "2"]].concat();
    let (report, said) = run(dir.path(), &arguments, 0);
    assert!(said.starts_with("The results are in "), "{said}");
    assert_eq!(report["command"], "experiment");
    assert_eq!(report["experiment"], "leveldb-vs-rocksdb");
    assert_eq!(report["complete"], true);
    assert_eq!(report["scale"], 2_000);
    assert_eq!(report["settings"]["value_size"], 800);
    assert_eq!(report["runs"].as_array().unwrap().len(), 4);
    assert_eq!(report["comparison"].as_array().unwrap().len(), 8);
    assert_eq!(report["published"].as_array().unwrap().len(), 24);
    for name in ["report.json", "report.csv", "report.html"] {
        assert!(dir.path().join(name).metadata().unwrap().len() > 1_000, "{name}");
    }
    let printed = command(dir.path(), &arguments).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    for expected in ["Published figures beside ours", "published: LevelDB", "overwrite, 16 threads"]
    {
        assert!(printed.contains(expected), "{expected} is not in\n{printed}");
    }
}

#[test]
fn the_list_names_every_step() {
    let listed = succeed(["bench", "experiment", "--list"]);
    assert!(
        listed.contains("leveldb-vs-rocksdb") && listed.contains("readwhilewriting, 16 readers")
    );
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["leveldb"], "choose from leveldb-vs-rocksdb"),
        (&["leveldb-vs-rocksdb", "--value-size", "7"], "fixes the size of values"),
        (&["leveldb-vs-rocksdb", "--engine", "mem"], "keeps nothing"),
        (&["leveldb-vs-rocksdb", "--engine", "null"], "returns nothing"),
        (&["leveldb-vs-rocksdb", "--scale", "0"], "--num must be"),
        (&[], "required"),
    ];
    for (arguments, expected) in cases {
        let output = command(dir.path(), arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[cfg(unix)]
mod stopped {
    use super::*;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::io::Read;
    use std::process::Stdio;

    /// Starts an experiment, and ends it when the journal of its first engine has so many lines.
    fn stopped_after(dir: &Path, arguments: &[&str], lines: usize, signal: Signal) -> Option<i32> {
        let mut command = command(dir, arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let journal = dir.join("results/1-esker.jsonl");
        let written = || {
            std::fs::read(&journal).map_or(0, |b| b.iter().filter(|byte| **byte == b'\n').count())
        };
        while written() < lines && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let _ = kill(Pid::from_raw(child.id() as i32), signal);
        // Its standard error, which the run has too, ends when both have.
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        child.wait().unwrap().code()
    }

    #[test]
    fn the_same_command_goes_on_where_it_was_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let arguments = ["leveldb-vs-rocksdb", "--scale", "20000", "--duration", "0.3"];
        // Three steps are in the journal, behind the line of opening.
        let code = stopped_after(dir.path(), &arguments, 4, Signal::SIGINT);
        assert_eq!(code, Some(130));
        let kept = std::fs::read_to_string(dir.path().join("report.json")).unwrap();
        assert!(kept.contains("interrupted"));
        stopped_after(dir.path(), &arguments, 7, Signal::SIGKILL);
        let (report, _) = run(dir.path(), &arguments, 0);
        assert_eq!(report["complete"], true);
        let run = &report["runs"][0];
        assert_eq!(run["workloads"].as_array().unwrap().len(), 8);
        assert_eq!(report["resumed"].as_array().unwrap().len(), 2, "{}", report["resumed"]);
        let wrong = run["workloads"].as_array().unwrap().iter().map(|step| &step["check"]["wrong"]);
        assert!(wrong.into_iter().all(|wrong| wrong == 0));
    }
}
