//! A campaign under way: it takes up the journals, runs what is left, and reports on all of it.
//!
//! Every finished step goes to the journal before the next one starts. What ends a campaign early leaves
//! the journals, the databases of unfinished runs, and a report of everything that was measured.

use super::estimate::{Estimate, Left};
use super::folder::Folder;
use super::journal::{self, Known, Line};
use super::report::{self, CampaignReport};
use super::samples;
use super::stored;
use super::wanted::Campaign;
use crate::experiments::compare::host::{Event, Host, Order};
use crate::experiments::compare::{agree, disk_is_full, turns};
use crate::experiments::published::{Assignment, Finished, Step};
use crate::harness::step_report::WorkloadReport;
use crate::report::RunReport;
use crate::{EngineSpec, Result};
use std::path::Path;

/// Follows a campaign.
pub trait Watcher {
    /// Whether a progress bar is wanted.
    fn progress(&self) -> bool {
        false
    }

    /// A run begins, or continues after steps that were finished earlier.
    fn begins(&mut self, _engine: &EngineSpec, _round: usize, _finished: usize) {}

    /// A step ended. `left` is how long the rest will take, as far as one can know.
    fn finished(&mut self, _report: &WorkloadReport, _step: (usize, usize), _left: &Left) {}
}

/// Runs what is left of a campaign, and reports on all of it.
pub fn run(
    campaign: &Campaign,
    host: &dyn Host,
    watcher: &mut dyn Watcher,
) -> Result<CampaignReport> {
    let Campaign { experiment, settings, dir, .. } = campaign;
    let folder = Folder::open(dir, experiment, settings)?;
    let steps = experiment.steps(settings);
    if !steps.iter().all(|step| step.action.is_of_links()) {
        settings.engines.iter().try_for_each(EngineSpec::answers_keys)?;
    }
    let mut course = Course {
        campaign,
        folder: &folder,
        steps: &steps,
        host,
        watcher,
        runs: Vec::new(),
        failures: Vec::new(),
    };
    course.read_all()?;
    // Read now: what cannot be read must not be found out after hours.
    let others = stored::others(&folder, settings, steps.len())?;
    let stopped = course.rounds()?;
    let Course { mut runs, failures, .. } = course;
    let stopped = stopped.or_else(|| (!failures.is_empty()).then(|| failures.join("; ")));
    let said = stored::sentences(&others);
    runs.extend(others);
    runs.retain(|run| !run.report.workloads.is_empty() || run.report.failure.is_some());
    let courses = samples::Course::all(&folder, runs.iter().map(|known| &known.report));
    let open = |known: &&Known| known.report.workloads.len() < steps.len();
    let unfinished = runs.iter().filter(open).filter_map(|known| {
        courses.iter().find(|course| course.is_of(&known.report)).map(samples::Course::reached)
    });
    let unfinished = unfinished.collect();
    let report = report::of(campaign, &steps, runs, said, stopped);
    let report = CampaignReport { unfinished, ..report };
    folder.write("report.json", &report.json()?)?;
    folder.write("report.csv", &report.csv())?;
    if !courses.is_empty() {
        let (rate, pauses) = samples::plots(&courses, &report.report.settings.engines)?;
        folder.write("rate.svg", &rate)?;
        folder.write("pauses.svg", &pauses)?;
    }
    Ok(report)
}

/// A campaign under way.
struct Course<'a> {
    campaign: &'a Campaign,
    folder: &'a Folder,
    steps: &'a [Step],
    host: &'a dyn Host,
    watcher: &'a mut dyn Watcher,
    /// In the order of rounds and turns.
    runs: Vec<Known>,
    failures: Vec<String>,
}

impl Course<'_> {
    /// Reads the journals of all runs.
    fn read_all(&mut self) -> Result<()> {
        let settings = &self.campaign.settings;
        for round in 1..=settings.rounds {
            for (turn, place) in turns(settings.engines.len(), round).enumerate() {
                let Some(spec) = settings.engines.get(place) else { continue };
                let journal = self.folder.journal(spec, round)?;
                let report = journal.report(spec, round, turn + 1);
                self.runs.push(Known { report, journal });
            }
        }
        Ok(())
    }

    /// Carries out all runs that are not done. Returns why the campaign ended early, if it did.
    fn rounds(&mut self) -> Result<Option<String>> {
        for round in 1..=self.campaign.settings.rounds {
            for place in 0..self.runs.len() {
                let known = &self.runs[place];
                if known.report.round != round {
                    continue;
                }
                if known.journal.complete() {
                    // It may have been stopped before its database was removed.
                    let database = self.folder.database(&known.report.engine, round);
                    self.folder.remove(&database, self.campaign.keep)?;
                    continue;
                }
                let engine = &known.report.engine;
                let failed = |other: &Known| {
                    other.report.engine == *engine && other.report.failure.is_some()
                };
                if self.runs[..place].iter().any(failed) {
                    continue;
                }
                let stopped = self.one(place)?;
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

    /// Continues one run. Returns why the campaign has to end, if it has to.
    fn one(&mut self, place: usize) -> Result<Option<String>> {
        let settings = &self.campaign.settings;
        let (spec, round) = (self.runs[place].report.engine.clone(), self.runs[place].report.round);
        let database = self.folder.database(&spec, round);
        let sound = self.sound(place, &database);
        if sound == 0 {
            self.folder.renew(&database)?;
        }
        self.runs[place].report.workloads.truncate(sound);
        self.runs[place].journal.figures.truncate(sound);
        self.runs[place].report.failure = None;
        let finished = self.runs[place].report.workloads.iter().map(Finished::of).collect();
        let order = Order {
            engine: spec.clone(),
            round,
            turn: self.runs[place].report.turn,
            dir: database.clone(),
            progress: self.watcher.progress(),
            settings: settings.clone(),
            assignment: Some(Assignment {
                experiment: self.campaign.experiment.name.into(),
                finished,
                samples: Some(self.folder.samples(&spec, round)),
            }),
        };
        self.watcher.begins(&spec, round, sound);
        let host = self.host;
        let outcome = host.run(&order, &mut |event| self.note(place, sound, event));
        let report = &mut self.runs[place].report;
        let wrong = agree::with_what_was_written(report);
        let stopped = match outcome {
            _ if host.interrupted() => {
                report.failure = Some("interrupted".into());
                Some("interrupted; the same command goes on where this one was stopped".to_owned())
            }
            Err(error) => {
                let message = error.to_string();
                report.failure = Some(message.clone());
                self.failures.push(format!("{spec}, round {round}: {message}"));
                disk_is_full(&message, &database)
                    .then(|| format!("the disk is full: {message}: free some and go on"))
            }
            Ok(()) => {
                self.folder.remove(&database, self.campaign.keep)?;
                None
            }
        };
        Ok(wrong.or(stopped))
    }

    /// How many steps of a run are finished for good (invariant 2).
    fn sound(&self, place: usize, database: &Path) -> usize {
        let Known { report, .. } = &self.runs[place];
        if !report.engine.has_files() || !database.is_dir() {
            return 0;
        }
        let done = report.workloads.len();
        if self.campaign.settings.durability != crate::Durability::Buffered {
            return done;
        }
        journal::sound(&self.steps[..done.min(self.steps.len())])
    }

    /// Records what a run reports.
    fn note(&mut self, place: usize, sound: usize, event: Event) -> Result<()> {
        let known = &mut self.runs[place];
        match event {
            Event::Opened { version, settings } => {
                let line = Line::Opened {
                    version: version.clone(),
                    settings: settings.clone(),
                    behind: sound,
                    engine: Some(known.report.engine.clone()),
                    origin: Some(self.campaign.origin.clone()),
                };
                known.journal.append(&line)?;
                (known.report.version, known.report.settings) = (version, settings);
                known.report.origin = Some(self.campaign.origin.clone());
            }
            Event::Step { report, figures } => {
                known
                    .journal
                    .append(&Line::Step { report: report.clone(), figures: figures.clone() })?;
                known.journal.figures.push(figures);
                known.report.workloads.push(*report);
                let step = (known.report.workloads.len(), self.steps.len());
                let left = Estimate::of(self.campaign, self.steps, &self.runs).left();
                if let Some(report) = self.runs[place].report.workloads.last() {
                    self.watcher.finished(report, step, &left);
                }
            }
            Event::Closed { seconds } => {
                known.journal.append(&Line::Closed { seconds })?;
                known.report.close_seconds = seconds;
            }
        }
        Ok(())
    }

    /// Compares the results of the engines of a round. Returns what differed, in words.
    fn agree(&self, round: usize) -> Option<String> {
        let runs: Vec<RunReport> = self.runs.iter().map(|known| known.report.clone()).collect();
        let found = agree::between_engines(&runs, round);
        found.iter().find(|found| !found.agree).map(|found| agree::describe(found, &runs))
    }
}
