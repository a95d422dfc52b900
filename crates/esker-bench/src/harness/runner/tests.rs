//! Workloads on the reference engine, whose answers are known.

use crate::engines::lookup::spec;
use crate::experiments::suite::{Observer, run};
use crate::harness::step_report::WorkloadReport;
use crate::report::RunReport;
use crate::{Report, Settings, Workload};
use std::time::Duration;

struct Silent;
impl Observer for Silent {}

fn report(list: &str, change: impl FnOnce(&mut Settings)) -> Report {
    let mut settings = Settings {
        engines: vec![spec("mem")],
        workloads: Workload::parse_list(list).unwrap(),
        num: 2_000,
        ..Settings::default()
    };
    change(&mut settings);
    run(&settings, &mut Silent).unwrap()
}

fn only_run(report: Report) -> RunReport {
    assert_eq!(report.runs.len(), 1);
    report.runs.into_iter().next().unwrap()
}

fn steps(list: &str, change: impl FnOnce(&mut Settings)) -> Vec<WorkloadReport> {
    only_run(report(list, change)).workloads
}

#[test]
fn every_workload_runs_and_counts_what_it_did() {
    let every: Vec<&str> = crate::harness::workload::ALL.iter().map(|(_, name, _)| *name).collect();
    let list = format!("fillseq,{}", every.join(","));
    let steps = steps(&list, |_| ());
    assert_eq!(steps.len(), every.len() + 1);
    for step in &steps {
        let expected = match step.name.as_str() {
            "flush" | "compact" | "waitforidle" | "stats" => 1,
            "fillsync" | "fill100K" => 2,
            "readseq" | "readreverse" => step.operations.max(1),
            _ => 2_000,
        };
        assert_eq!(step.operations, expected, "{}", step.name);
        assert!(step.ops_per_second > 0.0 && step.seconds > 0.0, "{}", step.name);
        assert!(step.latency.p50_us <= step.latency.max_us, "{}", step.name);
        assert!(step.rate_min <= step.rate_median, "{}", step.name);
        assert_eq!(step.writer.is_some(), step.name.ends_with("whilewriting"));
        assert_eq!(step.text.is_some(), step.name == "stats");
    }
}

#[test]
fn bytes_by_cause_are_weighed_against_keys_and_values() {
    let steps = steps("fillseq,overwrite,waitforidle", |s| {
        (s.engines, s.num) = (vec![spec("esker")], 20_000);
        s.write_buffer_bytes = Some(16 << 10);
    });
    let overwrite = &steps[1];
    assert_eq!(overwrite.user_bytes_written, 20_000 * 116);
    let bytes = overwrite.engine_bytes.unwrap();
    let rewritten = (bytes.flush + bytes.compaction) as f64;
    assert!(rewritten > 0.0);
    assert_eq!(overwrite.engine_write_amplification(), Some(rewritten / (20_000.0 * 116.0)));
    assert_eq!(steps[2].engine_write_amplification(), None, "nobody wrote");
}

#[test]
fn reads_find_what_fills_wrote() {
    let steps =
        steps("fillseq,readrandom:3,readmissing,readhot:2,multireadrandom,seekrandom", |_| ());
    for step in &steps[1..] {
        let expected = if step.name == "readmissing" { (0, 2_000) } else { (2_000, 0) };
        assert_eq!((step.found, step.missing), expected, "{}", step.name);
    }
}

#[test]
fn unique_fills_write_each_key_once_and_random_fills_do_not() {
    let unique = steps("filluniquerandom:3,readseq,readreverse", |_| ());
    assert_eq!(unique[1].found, 2_000);
    assert_eq!(unique[2].found, 2_000);
    let random = steps("fillrandom,readseq", |_| ());
    // 1 - 1/e of the keys are hit.
    assert!((1_150..1_400).contains(&random[1].found), "{}", random[1].found);
}

#[test]
fn deletes_delete() {
    let steps = steps("fillseq,deleterandom,readseq,deleteseq:2,readseq", |s| s.batch_size = 7);
    assert!((600..900).contains(&steps[2].found), "{}", steps[2].found);
    assert_eq!(steps[4].found, 0);
}

#[test]
fn batches_and_scan_lengths_count() {
    let steps = steps("fillseq,seekrandom", |s| (s.batch_size, s.scan_length) = (30, 5));
    assert_eq!(steps[0].latency.samples, 67);
    assert_eq!(steps[0].latency.operations_per_sample, 30);
    assert_eq!(steps[0].user_bytes_written, 2_000 * 116);
    let entries = steps[1].mb_per_second * 1e6 * steps[1].seconds / 116.0;
    assert!((9_900.0..=10_000.5).contains(&entries), "{entries}");
}

#[test]
fn duration_ends_a_workload_and_the_writer_keeps_its_rate() {
    let steps = steps("fillseq,readwhilewriting:2", |s| {
        s.duration = Some(Duration::from_millis(400));
        s.write_rate = 200;
    });
    let step = &steps[1];
    assert!(step.seconds >= 0.4);
    let writer = step.writer.unwrap();
    assert!(writer.operations >= 1 && writer.operations <= (step.seconds * 200.0) as u64 + 2);
    assert_eq!(step.found, step.operations);
}

#[test]
fn samples_are_a_table() {
    let steps = steps("fillseq,overwrite:4", |s| s.sample_ops = Some(500));
    for step in &steps {
        let csv = step.samples_csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 5, "{csv}");
        assert_eq!(lines[0], "seconds,operations,seconds_since_last,ops_per_second");
        let operations = |line: &str| line.split(',').nth(1).unwrap().to_owned();
        assert_eq!(
            lines[1..].iter().map(|l| operations(l)).collect::<Vec<_>>(),
            ["500", "1000", "1500", "2000"]
        );
    }
}

#[test]
fn rounds_interleave_and_medians_compare() {
    let report = report("fillseq,readrandom", |s| s.rounds = 3);
    assert_eq!(report.runs.iter().map(|run| run.round).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(report.comparison.len(), 2);
    let median = &report.comparison[1].engines[0];
    assert_eq!(median.ratio, 1.0);
    assert!(median.spread.0 <= median.ops_per_second && median.ops_per_second <= median.spread.1);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["settings"]["workloads"][1], "readrandom");
    assert_eq!(json["runs"][0]["workloads"][0]["operations"], 2_000);
    assert!(json["machine"]["cores"].as_u64().unwrap() >= 1);
}

#[test]
fn the_same_seed_gives_the_same_keys_in_a_step_and_others_in_the_next() {
    let found = |seed| {
        let steps = steps("fillrandom,readrandom,readrandom", |s| s.seed = seed);
        (steps[1].found, steps[2].found)
    };
    let (first, second) = found(5);
    assert_eq!((first, second), found(5));
    assert!(first != second || found(6) != (first, second), "streams are independent");
}

#[test]
fn mixed_workloads_do_what_they_say() {
    let list = "ycsb-load:2,ycsb-a,ycsb-b:3,ycsb-c,ycsb-f,ycsb-d,ycsb-e,readseq";
    let steps = steps(list, |s| s.num = 4_000);
    let of = |name: &str| steps.iter().find(|step| step.name == name).unwrap();
    let written = |name: &str| of(name).user_bytes_written / 116;
    assert_eq!(written("ycsb-load:2"), 4_000);
    // Half of 4,000, give or take five standard deviations.
    assert!((1_840..2_160).contains(&written("ycsb-a")), "{}", written("ycsb-a"));
    assert!((130..270).contains(&written("ycsb-b:3")), "{}", written("ycsb-b:3"));
    assert_eq!(written("ycsb-c"), 0);
    assert!((1_840..2_160).contains(&written("ycsb-f")), "{}", written("ycsb-f"));
    assert_eq!(of("ycsb-f").found, 4_000, "every record is read, and half of them written");
    assert_eq!((of("ycsb-c").found, of("ycsb-c").missing), (4_000, 0));
    assert!(steps.iter().all(|step| step.missing == 0), "every record that is asked for is there");
    // What was inserted is there, beside what was loaded.
    let inserted = written("ycsb-d") + written("ycsb-e");
    assert!((260..540).contains(&inserted), "{inserted}");
    assert_eq!(of("readseq").found, 4_000);
    let all = self::steps("ycsb-load,ycsb-d,readseq", |s| s.reads = Some(5_000));
    assert_eq!(all[2].found, 2_000 + all[1].user_bytes_written / 116);
}

#[test]
fn scans_of_ycsb_e_have_uniform_lengths() {
    let steps = steps("ycsb-load,ycsb-e", |s| s.num = 4_000);
    let entries = steps[1].mb_per_second * 1e6 * steps[1].seconds / 116.0;
    // 3,800 scans of 50.5 records, some of them cut by the end of the data.
    assert!((170_000.0..205_000.0).contains(&entries), "{entries}");
}

#[test]
fn mixed_workloads_need_their_records() {
    let refused = |list: &str| {
        let workloads = Workload::parse_list(list).unwrap();
        Settings { workloads, ..Settings::default() }.check().unwrap_err().to_string()
    };
    for list in ["ycsb-a", "fillseq,ycsb-c", "ycsb-e:2,ycsb-load"] {
        assert!(refused(list).contains("put that before it"), "{list}");
    }
}

#[test]
fn an_open_loop_follows_its_rate() {
    let steps = steps("fillseq,readrandom:2", |s| (s.rate, s.reads) = (Some(4_000.0), Some(800)));
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["fillseq", "readrandom:2@4000/s"], "a fill has an end of its own");
    assert!(steps[0].open_loop.is_none());
    let step = &steps[1];
    let open = step.open_loop.unwrap();
    assert_eq!((open.rate, open.percent), (4_000.0, None));
    // 800 operations, one every quarter of a millisecond.
    assert!(step.seconds >= 0.199, "{}", step.seconds);
    assert_eq!((step.operations, step.found), (800, 800));
}

#[test]
fn shares_are_of_the_rate_that_was_sustained() {
    let steps = steps("fillseq,readrandom,stats", |s| {
        (s.rate_percent, s.reads) = (vec![50.0, 80.0], Some(2_000));
    });
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["fillseq", "readrandom", "readrandom@50%", "readrandom@80%", "stats"]);
    let sustained = steps[1].ops_per_second;
    let open = steps[2].open_loop.unwrap();
    assert_eq!((open.sustained, open.percent), (Some(sustained), Some(50.0)));
    assert!((open.rate / sustained - 0.5).abs() < 1e-9);
    assert!(steps[2].ops_per_second <= sustained * 0.51);
}
