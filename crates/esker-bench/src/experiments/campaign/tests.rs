//! Campaigns of engines in this process: all of them to the end, and stopped wherever they can be.

use super::*;
use crate::Durability;
use crate::experiments::compare::host::InProcess;
use crate::experiments::compare::host::{Event, Host, Order};
use crate::experiments::published::ALL;
use crate::experiments::published::{Experiment, find};
use crate::harness::WorkloadReport;
use crate::report::Origin;
use crate::{EngineSpec, Error, Result, Settings};
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

struct Silent;
impl Watcher for Silent {}

/// Engines that every build can compare; peers where their features are on.
fn engines() -> Vec<EngineSpec> {
    let names = [
        "esker",
        "mem",
        #[cfg(feature = "peer-fjall")]
        "fjall",
        #[cfg(feature = "peer-redb")]
        "redb",
    ];
    EngineSpec::parse_list(&names.join(",")).unwrap()
}

fn campaign(experiment: &'static Experiment, dir: &Path, engines: &str) -> Campaign {
    let settings = Settings {
        engines: EngineSpec::parse_list(engines).unwrap(),
        num: 2_000,
        durability: Durability::Buffered,
        duration: Some(Duration::from_millis(20)),
        ..Settings::default()
    };
    with(experiment, dir, settings)
}

fn with(experiment: &'static Experiment, dir: &Path, settings: Settings) -> Campaign {
    let settings = crate::experiments::compare::prepare(experiment.settings(settings)).unwrap();
    Campaign { experiment, settings, dir: dir.to_owned(), keep: false, origin: Origin::default() }
}

fn done(report: &CampaignReport) -> Vec<usize> {
    report.report.runs.iter().map(|run| run.workloads.len()).collect()
}

#[test]
fn every_experiment_runs_and_all_engines_agree() {
    for experiment in ALL {
        let dir = tempfile::tempdir().unwrap();
        let mut campaign = campaign(experiment, dir.path(), "esker,mem");
        campaign.settings.engines = engines();
        let links = experiment.needs_links(&campaign.settings);
        campaign.settings.engines.retain(|engine| !links || engine.links());
        // All work is counted, so that results can be compared.
        (campaign.settings.duration, campaign.settings.rounds) = (None, 1);
        let report = run(&campaign, &InProcess, &mut Silent).unwrap();
        let name = experiment.name;
        assert!(report.report.complete, "{name}: {:?}", report.report.stopped);
        assert_eq!(done(&report), vec![report.steps.len(); campaign.settings.engines.len()]);
        assert!(!report.report.agreements.is_empty(), "{name}");
        assert!(report.report.agreements.iter().all(|found| found.agree), "{name}");
        for run in &report.report.runs {
            let names: Vec<&str> = run.workloads.iter().map(|step| step.name.as_str()).collect();
            let steps: Vec<&str> = report.steps.iter().map(|step| step.name.as_str()).collect();
            assert_eq!(names, steps, "{name}");
            let checks = run.workloads.iter().filter_map(|step| step.check.as_ref());
            assert!(checks.clone().count() > 0 && checks.clone().all(|check| check.wrong == 0));
        }
        let left: Vec<_> = std::fs::read_dir(dir.path().join("databases")).unwrap().collect();
        assert!(left.is_empty(), "{name}: {left:?}");
        let csv = std::fs::read_to_string(dir.path().join("report.csv")).unwrap();
        let columns = |line: &str| {
            // Commas within quotes separate nothing.
            line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>()
        };
        assert!(csv.lines().all(|line| columns(line) == columns(COLUMNS_LINE)), "{csv}");
        let text = std::fs::read(dir.path().join("report.json")).unwrap();
        let page = crate::report::page::parse("report.json", &text).unwrap();
        assert_eq!(page.experiment.as_deref(), Some(name));
        assert_eq!(page.published.len(), report.published.len());
    }
}

const COLUMNS_LINE: &str = ",,,,,,,,,,,,,,,,,,,,,,";

/// Stops a run when it has told so many events.
struct Stopping {
    after: Cell<usize>,
    runs: Cell<usize>,
}

impl Host for Stopping {
    fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
        self.runs.set(self.runs.get() + 1);
        InProcess.run(order, &mut |event| {
            if self.after.get() == 0 {
                return Err(Error::Failed("stopped".into()));
            }
            self.after.set(self.after.get() - 1);
            seen(event)
        })
    }

    fn interrupted(&self) -> bool {
        self.after.get() == 0
    }
}

/// Wherever a campaign is stopped, the next one runs what is left, and answers the same in the end.
#[test]
fn a_stopped_experiment_goes_on_where_it_was() {
    for experiment in ALL {
        let durabilities = [Durability::Process, Durability::Buffered];
        for durability in durabilities {
            let started = |dir: &Path| {
                let mut campaign = campaign(experiment, dir, "esker");
                (campaign.settings.duration, campaign.settings.durability) = (None, durability);
                campaign.settings.num = 700;
                campaign
            };
            let whole_dir = tempfile::tempdir().unwrap();
            let whole = run(&started(whole_dir.path()), &InProcess, &mut Silent).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let campaign = started(dir.path());
            let mut events = 2;
            loop {
                let host = Stopping { after: Cell::new(events), runs: Cell::new(0) };
                let report = run(&campaign, &host, &mut Silent).unwrap();
                if report.report.complete {
                    break;
                }
                assert!(report.report.stopped.unwrap().starts_with("interrupted"));
                events += 1;
            }
            let host = Stopping { after: Cell::new(usize::MAX), runs: Cell::new(0) };
            let report = run(&campaign, &host, &mut Silent).unwrap();
            assert_eq!(host.runs.get(), 0, "what is done is not run again");
            assert_eq!(done(&report), done(&whole), "{}", experiment.name);
            let checks = |report: &CampaignReport| {
                let steps = report.report.runs[0].workloads.iter();
                let of = |step: &WorkloadReport| {
                    let check = step.check.clone()?;
                    check.comparable.then_some((step.name.clone(), check.checksum))
                };
                steps.filter_map(of).collect::<Vec<_>>()
            };
            // Requests of LinkBench change what they are answered: those of a phase that was stopped
            // are not compared.
            let (again, mut once) = (checks(&report), checks(&whole));
            once.retain(|step| step.0 != "requests" || again.contains(step));
            assert!(again.iter().any(|step| step.0 != "requests"));
            assert_eq!(again, once, "{}", experiment.name);
            let wrong =
                report.report.runs[0].workloads.iter().filter_map(|step| step.check.as_ref());
            assert!(wrong.clone().all(|check| check.wrong == 0), "{}", experiment.name);
        }
    }
}

#[test]
fn an_engine_that_is_added_later_is_the_only_one_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let counting = || Stopping { after: Cell::new(usize::MAX), runs: Cell::new(0) };
    let (first, second) = (counting(), counting());
    run(&campaign(&ALL[0], dir.path(), "mem"), &first, &mut Silent).unwrap();
    let report = run(&campaign(&ALL[0], dir.path(), "esker,mem"), &second, &mut Silent).unwrap();
    assert_eq!((first.runs.get(), second.runs.get()), (1, 1));
    assert!(report.report.complete);
    assert_eq!(done(&report), [8, 8]);
    assert_eq!(
        report.report.engines[1].version.as_deref(),
        Some("BTreeMap of Rust's standard library")
    );
}

#[test]
fn fewer_engines_or_rounds_keep_the_results_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let counting = || Stopping { after: Cell::new(usize::MAX), runs: Cell::new(0) };
    let campaign = |engines: &str, rounds: usize| {
        let mut campaign = campaign(&ALL[0], dir.path(), engines);
        (campaign.settings.rounds, campaign.settings.duration) = (rounds, None);
        campaign
    };
    let whole = run(&campaign("esker,mem", 2), &counting(), &mut Silent).unwrap();
    assert!(whole.stored.is_empty());
    // As if the journal of another command had been written on another day.
    let path = dir.path().join("results/1-mem.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    let dated = journal.replacen("\"date\":null", "\"date\":\"2026-01-02T03:04:05Z\"", 1);
    assert_ne!(journal, dated);
    std::fs::write(&path, dated).unwrap();

    let host = counting();
    let report = run(&campaign("esker", 1), &host, &mut Silent).unwrap();
    assert_eq!(host.runs.get(), 0);
    assert!(report.report.complete);
    let told = |report: &CampaignReport| {
        let runs = report.report.runs.iter();
        let mut told: Vec<_> =
            runs.map(|run| (run.round, run.engine.to_string(), run.workloads.len())).collect();
        told.sort();
        told
    };
    assert_eq!(told(&report), told(&whole));
    assert_eq!(report.report.engines.len(), 2);
    assert_eq!(report.report.comparison[0].engines.len(), 2);
    assert_eq!(report.report.comparison[0].engines[1].rounds, 2);
    assert_eq!(report.report.agreements.len(), whole.report.agreements.len());
    let stored = [
        "mem, round 1: measured by an earlier command on 2026-01-02",
        "esker, round 2: measured by an earlier command",
        "mem, round 2: measured by an earlier command",
    ];
    assert_eq!(report.stored, stored);
    assert!(report.report.rules.iter().any(|rule| *rule == stored[0]));
    let csv = std::fs::read_to_string(dir.path().join("report.csv")).unwrap();
    assert!(csv.contains("leveldb-vs-rocksdb,2000,mem,"), "{csv}");
    let dated = report.report.runs.iter().find(|run| run.round == 1 && run.engine.name() == "mem");
    let date = dated.unwrap().origin.as_ref().unwrap().date.as_deref();
    assert_eq!(date, Some("2026-01-02T03:04:05Z"));
}

/// Neither what is left of it nor what is wrong with it ends a command that does not name it.
#[test]
fn an_engine_that_is_not_named_is_neither_continued_nor_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let host = Stopping { after: Cell::new(4), runs: Cell::new(0) };
    let stopped = run(&campaign(&ALL[0], dir.path(), "mem"), &host, &mut Silent).unwrap();
    assert_eq!(done(&stopped), [3]);
    let wrong = dir.path().join("results/1-faulty-forgets.jsonl");
    let journal = std::fs::read_to_string(dir.path().join("results/1-mem.jsonl")).unwrap();
    // Of an earlier version, which did not write down the name.
    let journal = journal.replace("\"engine\":\"mem\",", "");
    std::fs::write(&wrong, journal.replace("\"checksum\":\"", "\"checksum\":\"f")).unwrap();

    let report = run(&campaign(&ALL[0], dir.path(), "esker"), &InProcess, &mut Silent).unwrap();
    assert!(report.report.complete, "{:?}", report.report.stopped);
    assert_eq!(done(&report), [8, 3, 3]);
    let names: Vec<&str> = report.report.runs.iter().map(|run| run.engine.name()).collect();
    assert_eq!(names, ["esker", "faulty-forgets", "mem"]);
    assert!(report.report.runs[2].failure.as_ref().unwrap().contains("not finished"));
    assert!(report.report.agreements.iter().any(|found| !found.agree), "the report says so");
    let report = run(&campaign(&ALL[0], dir.path(), "mem"), &InProcess, &mut Silent).unwrap();
    assert_eq!(done(&report), [8, 8, 3], "it goes on when it is named");
}

#[test]
fn another_experiment_in_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    run(&campaign(&ALL[0], dir.path(), "mem"), &InProcess, &mut Silent).unwrap();
    let mut other = campaign(&ALL[0], dir.path(), "mem");
    other.settings.num = 3_000;
    let error = run(&other, &InProcess, &mut Silent).unwrap_err();
    assert!(matches!(error, Error::Usage(_)));
    assert!(error.to_string().contains("`num` differs"), "{error}");
}

#[test]
fn half_a_line_is_dropped_and_a_damaged_one_refused() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = campaign(&ALL[0], dir.path(), "mem");
    run(&campaign, &InProcess, &mut Silent).unwrap();
    let path = dir.path().join("results/1-mem.jsonl");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], b"{\"step\":{\"rep"].concat()).unwrap();
    let host = Stopping { after: Cell::new(usize::MAX), runs: Cell::new(0) };
    assert!(run(&campaign, &host, &mut Silent).unwrap().report.complete);
    assert_eq!(host.runs.get(), 0);
    std::fs::write(&path, [b"nonsense\n", &whole[..]].concat()).unwrap();
    let error = run(&campaign, &InProcess, &mut Silent).unwrap_err();
    assert!(error.to_string().contains("line 1 of "), "{error}");
}

/// It drops one key in ten thousand, which the sample of one seed may miss.
#[test]
fn an_engine_with_wrong_answers_ends_it() {
    let stopped = |seed: u64| {
        let dir = tempfile::tempdir().unwrap();
        let mut campaign = campaign(&ALL[1], dir.path(), "mem,faulty-forgets");
        let settings = &mut campaign.settings;
        (settings.num, settings.duration, settings.seed) = (20_000, None, seed);
        run(&campaign, &InProcess, &mut Silent).unwrap().report.stopped
    };
    let found: Vec<String> = (0..8).filter_map(stopped).collect();
    assert!(!found.is_empty());
    assert!(found.iter().all(|stopped| stopped.contains("faulty-forgets")), "{found:?}");
}

#[test]
fn without_a_flush_nothing_of_the_class_buffered_is_sound() {
    let steps = |experiment: &str| {
        let experiment = find(experiment).unwrap();
        experiment.steps(&experiment.settings(Settings::default()))
    };
    assert_eq!(journal::sound(&steps("leveldb-vs-rocksdb")), 0);
    let steps = steps("rocksdb-vs-splinterdb");
    assert_eq!(journal::sound(&steps[..2]), 0, "the flush is the third step");
    assert_eq!(journal::sound(&steps[..3]), 3);
    assert_eq!(journal::sound(&steps), steps.len(), "queries write nothing");
}

/// A run that took samples leaves its course wherever it is stopped.
#[test]
fn a_stopped_run_of_samples_says_how_far_it_came() {
    struct Cut;
    impl Host for Cut {
        fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
            // All but the end: the step is never told.
            InProcess.run(order, &mut |event| match event {
                Event::Opened { .. } => seen(event),
                _ => Err(Error::Failed("cut".into())),
            })
        }

        fn interrupted(&self) -> bool {
            true
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let experiment = find("billion-inserts").unwrap();
    let mut campaign = campaign(experiment, dir.path(), "mem");
    campaign.settings.num = 65_000;
    let report = run(&campaign, &Cut, &mut Silent).unwrap();
    assert_eq!(report.unfinished.len(), 1);
    assert_eq!(report.unfinished[0].operations, 60_000);
    assert!(!report.report.complete);
    for plot in ["rate.svg", "pauses.svg"] {
        assert!(std::fs::read_to_string(dir.path().join(plot)).unwrap().starts_with("<svg"));
    }
    let report = run(&campaign, &InProcess, &mut Silent).unwrap();
    assert!(report.report.complete && report.unfinished.is_empty());
    let step = &report.report.runs[0].workloads[0];
    assert_eq!((step.operations, step.samples.len()), (65_000, 6));
    assert_eq!(step.check.as_ref().unwrap().wrong, 0);
    assert!(report.figures[0].figures.contains_key("longest_pause_ms"));
}
