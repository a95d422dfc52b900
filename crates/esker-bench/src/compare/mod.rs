//! Engines side by side, under rules that the harness keeps and not the reader.
//!
//! Every run of an engine has a process of its own ([`process`]), so that peak memory, CPU time, the
//! allocator's state and a crash are its own. Rounds interleave the engines, and each round starts
//! with another one, so that a drift of the machine and the traces of a neighbour fall on all alike.
//! What engines returned must agree ([`agree`]); a comparison of wrong answers is refused.
//!
//! Whatever ends a comparison early, the report holds what was measured until then and says why:
//! [`Report::stopped`]. Only a command that cannot be carried out at all is an error.
//!
//! Invariants:
//! 1. All engines of a report were opened at one durability class, which each of them offers.
//! 2. All engines of a round got the same operations: the seeds depend on the round, the step and
//!    the thread alone.
//! 3. No run shares a process with another, and none is left behind when the comparison ends.

pub mod agree;
pub mod child;
pub mod host;
pub mod process;
pub(crate) mod rules;

use crate::measure::machine::{self, Machine};
use crate::report::{self, EngineReport, Report, RunReport};
use crate::settings::Settings;
use crate::suite::Observer;
use crate::workspace::Workspace;
use crate::{EngineSpec, Error, Result};
use host::{Event, Host, Order};
use std::path::Path;

/// The share of the memory that an engine gets where nobody says: as in `esker bench`.
const MEMORY_SHARE: u64 = 4;
/// With less room than this, a failure is put down to the disk.
const FULL_DISK: u64 = 16 << 20;

/// Fills in what a comparison does not leave to each engine, and refuses what it cannot carry out.
pub fn prepare(mut settings: Settings) -> Result<Settings> {
    settings.verify = true;
    settings.whole_loads = true;
    let memory = settings.memory_limit.or_else(machine::memory_bytes).unwrap_or(4 << 30);
    settings.memory = Some(settings.memory.unwrap_or(memory / MEMORY_SHARE));
    settings.check()?;
    settings.engines.iter().try_for_each(|engine| settings.offered_by(engine))?;
    if settings.drop_caches {
        crate::measure::caches::can_drop()?;
    }
    Ok(settings)
}

/// Runs a comparison. `settings` come from [`prepare`].
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
        machine: Machine::inspect(),
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
    /// All rounds; why they were ended early, if they were.
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

    /// One run; why the comparison has to end, if it has to.
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

    /// Compares what the engines of a round returned; what differed.
    fn agree(&mut self, round: usize) -> Option<String> {
        let found = agree::between_engines(&self.runs, round);
        let disagreement = found.iter().find(|agreement| !agreement.agree);
        let message = disagreement.map(|found| agree::describe(found, &self.runs));
        self.agreements.extend(found);
        message
    }
}

/// The places of the engines in the order of a round: each round starts with the next one.
pub(crate) fn turns(engines: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..engines).map(move |turn| (turn + round - 1) % engines)
}

/// Whether a full disk caused a failure. Engines word it differently, so the disk is checked too.
pub(crate) fn disk_is_full(message: &str, dir: &Path) -> bool {
    let told = ["No space left", "os error 28", "ENOSPC", "disk is full", "disk full"];
    told.iter().any(|words| message.contains(words))
        || room(dir).is_some_and(|room| room < FULL_DISK)
}

/// Bytes that can still be written in a directory.
#[cfg(unix)]
fn room(dir: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(dir).ok()?;
    Some(disk.blocks_available() as u64 * disk.fragment_size() as u64)
}

#[cfg(not(unix))]
fn room(_: &Path) -> Option<u64> {
    None
}

/// The engines as `--tuning` wants them.
pub fn tuned(engines: Vec<EngineSpec>, tuning: crate::engine::Tuning) -> Result<Vec<EngineSpec>> {
    let tuned: Vec<EngineSpec> =
        engines.into_iter().map(|engine| engine.tuned(tuning)).collect::<Result<_>>()?;
    for (i, engine) in tuned.iter().enumerate() {
        if tuned[..i].contains(engine) {
            return Err(Error::usage(format!(
                "--tuning makes {engine} appear twice: name it once"
            )));
        }
    }
    Ok(tuned)
}

#[cfg(test)]
mod tests;
