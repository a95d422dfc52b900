//! The command on the in-memory engine.

use super::args::{BenchFlags, CompareArgs};
use super::command::BenchCommand;
use super::experiment::ExperimentArgs;
use super::follow::Follow;
use super::output::json;
use super::*;
use clap::Parser;
use esker_bench::{EngineSpec, Error, Interrupt, Report, Result, Settings};
use std::fs;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    bench: BenchArgs,
}

fn settings(line: &[&str]) -> Result<Settings> {
    let line = ["bench"].iter().chain(line);
    Cli::try_parse_from(line).unwrap().bench.flags.settings()
}

/// Whether a command line can be carried out as far as its settings tell, without carrying it out.
/// Its engines must be known; this build need not have them.
pub fn settled(args: &BenchArgs) -> Result<()> {
    let known = |flags: &BenchFlags| {
        EngineSpec::parse_list(&flags.engine)?;
        Ok(BenchFlags { engine: "esker".to_owned(), ..flags.clone() })
    };
    match &args.command {
        None => known(&args.flags)?.settings()?.check(),
        Some(BenchCommand::Compare(args)) => {
            let flags = known(&args.flags)?;
            CompareArgs { flags, ..(**args).clone() }.settings().map(drop)
        }
        Some(BenchCommand::Experiment(args)) if args.list => Ok(()),
        Some(BenchCommand::Experiment(args)) => {
            EngineSpec::parse_list(&args.engine)?;
            ExperimentArgs { engine: "esker".to_owned(), ..(**args).clone() }.campaign().map(drop)
        }
        Some(BenchCommand::Report(_) | BenchCommand::Child) => Ok(()),
    }
}

fn run(line: &[&str]) -> Report {
    let settings = settings(line).unwrap();
    esker_bench::run(
        &settings,
        &mut Follow { terminal: false, interrupt: Interrupt::default(), samples: None },
    )
    .unwrap()
}

#[test]
fn without_arguments_the_standard_list_runs_within_a_limit() {
    let settings = settings(&[]).unwrap();
    settings.check().unwrap();
    assert_eq!(settings.workloads.len(), 9);
    assert_eq!(settings.num, 1_000_000);
    let limit = settings.limit.unwrap();
    assert!(limit.as_secs() * settings.workloads.len() as u64 <= 110);
}

#[test]
fn a_named_list_has_no_hidden_limit() {
    let settings = settings(&["--benchmarks", "fillseq,readrandom:4", "--num", "10M"]).unwrap();
    assert_eq!(settings.limit, None);
    assert_eq!(settings.num, 10_000_000);
    assert_eq!(settings.workloads[1].threads, Some(4));
}

#[test]
fn mistakes_are_usage_errors() {
    let cases: &[&[&str]] = &[
        &["--workloads", "fillsqe"],
        &["--engine", "oracle"],
        &["--duration=-1"],
        &["--duration", "NaN"],
    ];
    for line in cases {
        assert!(matches!(settings(line), Err(Error::Usage(_))), "{line:?}");
    }
}

#[test]
fn a_write_buffer_is_part_of_the_report() {
    let line = ["--write-buffer", "64K", "--num", "500", "--workloads", "fillseq"];
    let text = table::report(&run(&line));
    assert!(text.contains("write buffer (memtable_bytes): 65536 bytes"), "{text}");
    assert!(text.contains("partition_bytes: 524288 bytes"), "{text}");
    let error = settings(&[&line[..], &["--engine", "mem"]].concat()).unwrap().check();
    assert!(error.unwrap_err().to_string().contains("mem takes no --write-buffer"));
}

#[test]
fn the_tables_hold_every_workload() {
    let list = "fillseq,readwhilewriting:2,readseq,stats";
    let report = run(&["--engine", "mem", "--num", "500", "--workloads", list, "--rounds", "2"]);
    let text = table::report(&report);
    for expected in ["fillseq", "readwhilewriting:2", "its writer", "readseq (of 64)", "round 2"] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(text.contains("500 of 500"));
    assert!(text.contains("entries: 500"), "the engine's statistics are shown");
}

#[test]
fn time_series_are_written_where_asked() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(&[
        "--engine",
        "mem",
        "--num",
        "400",
        "--workloads",
        "fillseq,overwrite:2",
        "--sample-ops",
        "100",
    ])
    .unwrap();
    let samples = dir.path().join("series");
    let mut follow =
        Follow { terminal: false, interrupt: Interrupt::default(), samples: Some(samples.clone()) };
    esker_bench::run(&settings, &mut follow).unwrap();
    for name in ["mem-1-1-fillseq.csv", "mem-1-2-overwritex2.csv"] {
        let csv = fs::read_to_string(samples.join(name)).unwrap();
        assert_eq!(csv.lines().count(), 5, "{name}:\n{csv}");
    }
}

#[test]
fn json_is_one_line() {
    let report = run(&["--engine", "mem", "--num", "100", "--workloads", "fillseq"]);
    let text = json(&report).unwrap();
    assert_eq!(text.lines().count(), 1);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["runs"][0]["engine"], "mem");
    assert_eq!(value["runs"][0]["workloads"][0]["name"], "fillseq");
}
