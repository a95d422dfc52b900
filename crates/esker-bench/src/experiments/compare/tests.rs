//! Comparisons of reference engines in this process.

use super::host::{Event, Host, InProcess, Order};
use super::*;
use crate::engines::Tuning;
use crate::engines::lookup::spec;
use crate::harness::step_report::CheckScope;
use crate::report::Verdict;
use crate::{Durability, EngineSpec, Error, Observer, Report, Result, Settings, Workload};
use std::time::Duration;

struct Silent;
impl Observer for Silent {}

fn settings(engines: &str, list: &str, change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings {
        engines: EngineSpec::parse_list(engines).unwrap(),
        workloads: Workload::parse_list(list).unwrap(),
        num: 2_000,
        durability: Durability::Buffered,
        ..Settings::default()
    };
    change(&mut settings);
    prepare(settings).unwrap()
}

fn compare(engines: &str, list: &str, change: impl FnOnce(&mut Settings)) -> Report {
    run(&settings(engines, list, change), &InProcess, &mut Silent).unwrap()
}

#[test]
fn rounds_interleave_and_each_starts_with_the_next_engine() {
    let report = compare("esker,mem,null", "fillrandom,readrandom", |s| s.rounds = 4);
    let order: Vec<String> =
        report.runs.iter().map(|run| format!("{}{}{}", run.round, run.turn, run.engine)).collect();
    let expected = [
        "11esker", "12mem", "13null", "21mem", "22null", "23esker", "31null", "32esker", "33mem",
        "41esker", "42mem", "43null",
    ];
    assert_eq!(order, expected);
    assert!(report.complete && report.stopped.is_none());
    assert_eq!(report.engines[1].version.as_deref(), Some("BTreeMap of Rust's standard library"));
    let step = &report.comparison[1];
    assert_eq!(step.engines.iter().map(|m| m.rounds).collect::<Vec<_>>(), [4, 4, 4]);
    assert_eq!(step.engines[0].verdict, Verdict::Base);
    assert!(step.engines[1..].iter().all(|m| m.verdict != Verdict::Base));
    assert!(report.rules.len() > 6);
}

#[test]
fn engines_that_answer_alike_agree_on_every_step() {
    let list = "fillrandom,overwrite:3,readrandom:3,readmissing,readhot,multireadrandom:2,readseq,\
                readreverse,seekrandom:2,updaterandom,readrandom,deleterandom,readseq,readrandom";
    let report = compare("esker,mem", list, |s| s.rounds = 2);
    assert!(report.complete, "{:?}", report.stopped);
    assert_eq!(report.agreements.len(), 2 * 14);
    assert!(report.agreements.iter().all(|found| found.agree && found.engines.len() == 2));
    let scopes: Vec<CheckScope> = report.agreements[..14].iter().map(|found| found.scope).collect();
    let sampled = |step: usize| scopes[step - 1] == CheckScope::Sample;
    assert!([1, 2, 12].into_iter().all(sampled) && (3..=11).all(|step| !sampled(step)));
    let checks = |run: usize| {
        let steps = report.runs[run].workloads.iter();
        steps.map(|step| step.check.clone().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(checks(0), checks(1));
    assert_ne!(checks(0)[2].checksum, checks(2)[2].checksum, "another round, other keys");
    assert!(checks(0).iter().all(|check| check.wrong == 0));
    assert!(checks(0)[1].compared > 1_000);
}

#[test]
fn batches_do_not_change_what_is_stored() {
    let of = |batch| {
        let report = compare("mem", "fillrandom,readseq", |s| s.batch_size = batch);
        report.runs[0].workloads[1].check.clone().unwrap().checksum
    };
    assert_eq!(of(1), of(64));
}

#[test]
fn what_time_ends_is_checked_against_what_was_written() {
    let list = "fillseq,overwrite:2,readwhilewriting,readrandom";
    let report = compare("esker,mem", list, |s| s.duration = Some(Duration::from_millis(60)));
    assert!(report.complete, "{:?}", report.stopped);
    for run in &report.runs {
        let checks: Vec<_> =
            run.workloads.iter().map(|step| step.check.as_ref().unwrap()).collect();
        assert!(checks[0].comparable, "the fill was done before its time");
        assert!(checks[1..].iter().all(|check| !check.comparable));
        assert!(checks.iter().all(|check| check.scope == CheckScope::Sample));
        assert!(checks.iter().all(|check| check.wrong == 0 && check.compared >= 2_000));
    }
}

/// An engine that drops one key in ten thousand is caught, by its sample or by the others' results,
/// and both engines are named where it is the latter.
#[test]
fn an_engine_that_drops_one_key_in_ten_thousand_is_caught() {
    let mut by_others = 0;
    for seed in 0..8 {
        let report = compare("mem,faulty-forgets", "filluniquerandom,readrandom,readseq", |s| {
            (s.num, s.seed) = (20_000, seed);
        });
        assert!(!report.complete);
        let stopped = report.stopped.unwrap();
        assert!(stopped.contains("faulty-forgets"), "seed {seed}: {stopped}");
        if stopped.contains("mem and faulty-forgets returned different results") {
            assert!(stopped.starts_with("readrandom: ") || stopped.starts_with("readseq: "));
            assert!(report.agreements.iter().any(|found| !found.agree));
            by_others += 1;
        } else {
            assert!(stopped.starts_with("filluniquerandom: ") && stopped.contains("is missing"));
        }
    }
    assert!(by_others > 0, "the comparison between engines was never needed");
}

#[test]
fn without_the_check_it_is_not_caught() {
    let mut settings =
        settings("mem,faulty-forgets", "filluniquerandom,readseq", |s| s.num = 20_000);
    settings.verify = false;
    let report = run(&settings, &InProcess, &mut Silent).unwrap();
    assert!(report.complete && report.agreements.is_empty());
}

#[test]
fn a_failing_engine_leaves_the_others_results() {
    struct Refusing;
    impl Host for Refusing {
        fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
            if order.engine.name() == "esker" {
                return Err(Error::Failed("esker: it broke".into()));
            }
            InProcess.run(order, seen)
        }
    }
    let settings = settings("esker,mem", "fillseq,readrandom", |s| s.rounds = 2);
    let report = run(&settings, &Refusing, &mut Silent).unwrap();
    assert!(!report.complete);
    assert_eq!(report.stopped.as_deref(), Some("esker, round 1: esker: it broke"));
    let names: Vec<&str> = report.runs.iter().map(|run| run.engine.name()).collect();
    assert_eq!(names, ["esker", "mem", "mem"], "what failed is not run again");
    assert_eq!(report.comparison[1].engines.len(), 1);
    assert_eq!(report.comparison[1].engines[0].verdict, Verdict::Unknown, "there is no base");
}

#[test]
fn a_full_disk_ends_it_with_what_there_is() {
    let report = compare("mem,faulty-full,esker", "fillseq,readrandom", |_| ());
    let stopped = report.stopped.unwrap();
    assert!(stopped.starts_with("the disk is full") && stopped.contains("--dir"), "{stopped}");
    let runs: Vec<usize> = report.runs.iter().map(|run| run.workloads.len()).collect();
    assert_eq!(runs, [2, 0], "the third engine is not started");
}

#[test]
fn engines_that_do_not_offer_the_class_are_refused() {
    let settings = Settings {
        engines: EngineSpec::parse_list("esker,mem").unwrap(),
        durability: Durability::Process,
        ..Settings::default()
    };
    let error = prepare(settings).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Usage(_)));
    assert!(
        text.contains("mem has no writes of class `process`") && text.contains("keeps nothing")
    );
}

#[test]
fn tuning_leaves_what_has_no_variants() {
    let engines = EngineSpec::parse_list("esker,mem").unwrap();
    assert_eq!(tuned(engines.clone(), Tuning::Tuned).unwrap(), engines);
}

#[test]
fn reports_survive_their_own_json() {
    let report =
        compare("esker,mem", "fillseq,readwhilewriting,stats", |s| s.sample_ops = Some(500));
    let json = serde_json::to_value(&report).unwrap();
    let back: Report = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&back).unwrap(), json);
    assert_eq!(json["command"], "compare");
    assert_eq!(json["runs"][0]["engine"], "esker");
    assert_eq!(back.runs[0].engine, spec("esker"));
}

#[test]
fn mixed_workloads_and_open_loops_are_checked_too() {
    let list = "ycsb-load,ycsb-a,ycsb-c:2,ycsb-d,ycsb-e,ycsb-f:2,readseq";
    let report = compare("esker,mem", list, |s| s.rate_percent = vec![50.0]);
    assert!(report.complete, "{:?}", report.stopped);
    let scopes: Vec<(String, CheckScope)> =
        report.agreements.iter().map(|found| (found.workload.clone(), found.scope)).collect();
    assert_eq!(scopes.len(), 2 + 2 * 5);
    let scope = |name: &str| scopes.iter().find(|(found, _)| found == name).unwrap().1;
    assert_eq!(scope("ycsb-a"), CheckScope::Results);
    assert_eq!(scope("ycsb-d@50%"), CheckScope::Results);
    assert_eq!(scope("ycsb-f:2"), CheckScope::Sample, "what threads read depends on their turns");
    assert!(report.runs.iter().all(|run| run.workloads.len() == 12));
}
