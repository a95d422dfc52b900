//! A comparison under way: rounds, turns, and what ends it early.
//!
//! Whatever ends it, the report holds what was measured until then and says why ([`Report::stopped`]).
//! Only a command that cannot be carried out at all is an error.

use super::disk::disk_is_full;
use super::host::{Event, Host, Order};
use super::turns::turns;
use super::{agree, rules};
use crate::Result;
use crate::experiments::suite::Observer;
use crate::harness::measure::machine::Machine;
use crate::harness::settings::Settings;
use crate::harness::workspace::Workspace;
use crate::report::{self, EngineReport, Origin, Report, RunReport};

/// Runs a comparison. `settings` come from [`prepare`](super::prepare()). The caller knows where the
/// report comes from and fills in [`Report::origin`].
pub fn run(settings: &Settings, host: &dyn Host, observer: &mut dyn Observer) -> Result<Report> {
    let workspace = Workspace::new(settings)?;
    let mut contest = Contest {
        settings,
        host,
        observer,
        engines: settings.engines.iter().map(EngineReport::new).collect(),
        runs: Vec::new(),
        agreements: Vec::new(),
        failures: Vec::new(),
    };
    let stopped = contest.rounds(&workspace)?;
    let Contest { engines, runs, agreements, failures, .. } = contest;
    let stopped = stopped.or_else(|| (!failures.is_empty()).then(|| failures.join("; ")));
    Ok(Report {
        format: report::FORMAT,
        command: "compare".into(),
        complete: stopped.is_none(),
        stopped,
        kept: (!workspace.is_temporary()).then(|| workspace.root().to_owned()),
        rules: rules::of(settings),
        engines,
        agreements,
        origin: Origin::default(),
        machine: Machine::inspect(workspace.root()),
        settings: settings.clone(),
        comparison: report::compare(&settings.engines, &runs),
        runs,
    })
}

/// A comparison under way.
struct Contest<'a> {
    settings: &'a Settings,
    host: &'a dyn Host,
    observer: &'a mut dyn Observer,
    engines: Vec<EngineReport>,
    runs: Vec<RunReport>,
    agreements: Vec<report::Agreement>,
    /// Engines that failed; they are not run again.
    failures: Vec<String>,
}

impl Contest<'_> {
    /// Runs all rounds. Returns why they ended early, if they did.
    fn rounds(&mut self, workspace: &Workspace) -> Result<Option<String>> {
        for round in 1..=self.settings.rounds {
            for (turn, place) in turns(self.settings.engines.len(), round).enumerate() {
                let settings = self.settings;
                let Some(spec) = settings.engines.get(place) else { continue };
                if self.runs.iter().any(|run| run.engine == *spec && run.failure.is_some()) {
                    continue;
                }
                let database = workspace.database(spec)?;
                let order = Order {
                    engine: spec.clone(),
                    round,
                    turn: turn + 1,
                    dir: database.path().to_owned(),
                    progress: self.observer.progress(),
                    settings: settings.clone(),
                    assignment: None,
                };
                let stopped = self.one(&order, place)?;
                let last = stopped.is_some() || round == settings.rounds;
                if workspace.is_temporary() || !last {
                    database.remove()?;
                }
                if stopped.is_some() {
                    self.agree(round);
                    return Ok(stopped);
                }
            }
            if let Some(disagreement) = self.agree(round) {
                return Ok(Some(disagreement));
            }
        }
        Ok(None)
    }

    /// Carries out one run. Returns why the comparison has to end, if it has to.
    fn one(&mut self, order: &Order, place: usize) -> Result<Option<String>> {
        let spec = &order.engine;
        let mut run = RunReport::begun(spec, order.round, order.turn);
        let (observer, engines) = (&mut *self.observer, &mut self.engines);
        let outcome = self.host.run(order, &mut |event| {
            match event {
                Event::Opened { version, settings } => {
                    let dir = spec.has_files().then_some(&*order.dir);
                    observer.opened(spec, order.round, dir, &settings);
                    if let Some(engine) = engines.get_mut(place) {
                        (engine.version, engine.settings) =
                            (Some(version.clone()), settings.clone());
                    }
                    (run.version, run.settings) = (version, settings);
                }
                Event::Step { report, .. } => {
                    observer.finished(spec, order.round, run.workloads.len(), &report)?;
                    run.workloads.push(*report);
                }
                Event::Closed { seconds } => run.close_seconds = seconds,
            }
            Ok(())
        });
        let wrong = agree::with_what_was_written(&run);
        let interrupted = self.host.interrupted();
        let stopped = match outcome {
            _ if interrupted => {
                run.failure = Some("interrupted".into());
                Some("interrupted".to_owned())
            }
            Err(error) => {
                let message = error.to_string();
                let full = disk_is_full(&message, &order.dir);
                run.failure = Some(message.clone());
                self.failures.push(format!("{spec}, round {}: {message}", order.round));
                full.then(|| {
                    format!("the disk is full: {message}: free some of it, or give another --dir")
                })
            }
            Ok(()) => None,
        };
        self.runs.push(run);
        Ok(wrong.or(stopped))
    }

    /// Compares the results of the engines of a round. Returns what differed, in words.
    fn agree(&mut self, round: usize) -> Option<String> {
        let found = agree::between_engines(&self.runs, round);
        let disagreement = found.iter().find(|agreement| !agreement.agree);
        let message = disagreement.map(|found| agree::describe(found, &self.runs));
        self.agreements.extend(found);
        message
    }
}
