//! The report of a campaign: that of a comparison, and what only experiments have.
//!
//! The fields of experiments stand beside those of every report, in the same JSON object. The same
//! figures are written as comma-separated values, one line for each step of each run.

use super::journal::Known;
use super::samples::Unfinished;
use super::wanted::Campaign;
use crate::experiments::compare::{agree, rules};
use crate::experiments::published::{Figures, Published, Step};
use crate::harness::measure::machine::Machine;
use crate::harness::settings::Settings;
use crate::harness::step_report::WorkloadReport;
use crate::report::{self, EngineReport, Report, RunReport};
use crate::{EngineSpec, Error, Result};
use serde::Serialize;
use std::fmt::Write as _;

/// Everything about one experiment.
#[derive(Debug, Clone, Serialize)]
pub struct CampaignReport {
    /// What is the same in every report.
    #[serde(flatten)]
    pub report: Report,
    /// The experiment's name.
    pub experiment: &'static str,
    /// Who published it.
    pub source: &'static str,
    /// What differs from the published one.
    pub differs: &'static [&'static str],
    /// How much of what `unit` counts.
    pub scale: u64,
    /// What the scale counts.
    pub unit: &'static str,
    /// The steps.
    pub steps: Vec<StepAbout>,
    /// What others published.
    pub published: Vec<Published>,
    /// Figures that a workload's report has no place for.
    pub figures: Vec<StepFigures>,
    /// Runs that were stopped and continued, in sentences.
    pub resumed: Vec<String>,
    /// Runs of earlier commands that this one did not name, in sentences.
    pub stored: Vec<String>,
    /// Runs that took samples and are not done.
    pub unfinished: Vec<Unfinished>,
}

/// What a step does.
#[derive(Debug, Clone, Serialize)]
pub struct StepAbout {
    /// Its name.
    pub name: String,
    /// What it does.
    pub about: &'static str,
}

/// Figures of one step of one run.
#[derive(Debug, Clone, Serialize)]
pub struct StepFigures {
    /// The engine.
    pub engine: EngineSpec,
    /// The round, from 1.
    pub round: usize,
    /// The step.
    pub workload: String,
    /// By name; units are in the names.
    pub figures: Figures,
}

/// The settings with the engines and rounds of all runs: those of the command, then the others.
fn settings_of(campaign: &Campaign, runs: &[Known]) -> Settings {
    let mut settings = campaign.settings.clone();
    for Known { report, .. } in runs {
        if !settings.engines.contains(&report.engine) {
            settings.engines.push(report.engine.clone());
        }
        settings.rounds = settings.rounds.max(report.round);
    }
    settings
}

/// The engines as their last runs opened them.
fn engines_of(settings: &Settings, runs: &[Known]) -> Vec<EngineReport> {
    let mut engines: Vec<EngineReport> = settings.engines.iter().map(EngineReport::new).collect();
    for Known { report, .. } in runs.iter().filter(|run| !run.report.version.is_empty()) {
        let engine = engines.iter_mut().find(|engine| engine.name == report.engine.name());
        if let Some(engine) = engine {
            (engine.version, engine.settings) =
                (Some(report.version.clone()), report.settings.clone());
        }
    }
    engines
}

/// Makes the report of what is known.
pub(super) fn of(
    campaign: &Campaign,
    steps: &[Step],
    runs: Vec<Known>,
    stored: Vec<String>,
    stopped: Option<String>,
) -> CampaignReport {
    let Campaign { experiment, dir, keep, origin, .. } = campaign;
    let settings = &settings_of(campaign, &runs);
    let engines = engines_of(settings, &runs);
    let (mut figures, mut resumed, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for Known { report, journal } in runs {
        let steps = report.workloads.iter().zip(journal.figures);
        figures.extend(steps.filter(|(_, figures)| !figures.is_empty()).map(|(step, figures)| {
            StepFigures {
                engine: report.engine.clone(),
                round: report.round,
                workload: step.name.clone(),
                figures,
            }
        }));
        resumed.extend(journal.taken_up.iter().map(|behind| {
            let (engine, round) = (&report.engine, report.round);
            format!(
                "{engine}, round {round}: another process took up the database behind step {behind}"
            )
        }));
        reports.push(report);
    }
    let mut rules = rules::of(settings);
    rules.extend(resumed.iter().chain(&stored).cloned());
    let agreements =
        (1..=settings.rounds).flat_map(|round| agree::between_engines(&reports, round));
    let agreements = agreements.collect();
    let kept = *keep || reports.iter().any(|run: &RunReport| run.failure.is_some());
    let report = Report {
        format: report::FORMAT,
        command: "experiment".into(),
        complete: stopped.is_none(),
        stopped,
        kept: kept.then(|| dir.clone()),
        rules,
        engines,
        agreements,
        origin: origin.clone(),
        machine: Machine::inspect(dir),
        settings: settings.clone(),
        comparison: report::compare(&settings.engines, &reports),
        runs: reports,
    };
    CampaignReport {
        report,
        experiment: experiment.name,
        source: experiment.source,
        differs: experiment.differs,
        scale: settings.num,
        unit: experiment.unit,
        steps: steps
            .iter()
            .map(|step| StepAbout { name: step.name.clone(), about: step.about })
            .collect(),
        published: experiment.published(settings),
        figures,
        resumed,
        stored,
        unfinished: Vec::new(),
    }
}

const COLUMNS: &str = "experiment,scale,engine,version,round,step,seconds,operations,ops_per_second,\
                       mb_per_second,p50_us,p99_us,p999_us,max_us,longest_pause_ms,cpu_us_per_op,\
                       context_switches_per_op,write_amplification,write_amplification_since_open,\
                       space_amplification,disk_bytes,device_reads_per_op,published";

impl CampaignReport {
    /// As one JSON object.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::Failed(format!("cannot write the report as JSON: {error}")))
    }

    /// As comma-separated values with a head: a line for each step of each run, then one for each
    /// published figure.
    pub fn csv(&self) -> String {
        let mut csv = format!("{COLUMNS}\n");
        for run in &self.report.runs {
            for step in &run.workloads {
                let _ = writeln!(csv, "{}", self.line(run, step));
            }
        }
        for figure in &self.published {
            let cells = [
                self.experiment.to_owned(),
                figure.scale.to_string(),
                quoted(&figure.engine),
                String::new(),
                String::new(),
                quoted(&figure.workload),
                String::new(),
                String::new(),
                figure.ops_per_second.to_string(),
            ];
            let mut cells = cells.to_vec();
            cells.extend(std::iter::repeat_n(String::new(), 8));
            let empty = String::new;
            cells.extend([empty(), cell(figure.write_amplification), empty(), empty()]);
            cells.extend([cell(figure.device_reads_per_op), "yes".into()]);
            let _ = writeln!(csv, "{}", cells.join(","));
        }
        csv
    }

    fn line(&self, run: &RunReport, step: &WorkloadReport) -> String {
        let latency = &step.latency;
        let reads =
            self.figures_of(run, &step.name).and_then(|f| f.get("device_reads_per_op").copied());
        let mut cells = vec![
            self.experiment.to_owned(),
            self.scale.to_string(),
            quoted(run.engine.name()),
            quoted(&run.version),
            run.round.to_string(),
            quoted(&step.name),
        ];
        let figures = [
            step.seconds,
            step.operations as f64,
            step.ops_per_second,
            step.mb_per_second,
            latency.p50_us,
            latency.p99_us,
            latency.p999_us,
            latency.max_us,
            step.longest_pause_ms,
            step.cpu_us_per_op,
            step.context_switches_per_op,
        ];
        cells.extend(figures.map(|figure| figure.to_string()));
        cells.extend([
            cell(step.write_amplification),
            cell(step.write_amplification_since_open),
            cell(step.space_amplification),
            cell(step.disk_bytes.map(|bytes| bytes as f64)),
            cell(reads),
            "no".into(),
        ]);
        cells.join(",")
    }

    /// The other figures of a step.
    pub fn figures_of(&self, run: &RunReport, step: &str) -> Option<&Figures> {
        let found = self.figures.iter().find(|found| {
            found.engine == run.engine && found.round == run.round && found.workload == step
        });
        found.map(|found| &found.figures)
    }
}

fn cell(figure: Option<f64>) -> String {
    figure.map_or(String::new(), |figure| figure.to_string())
}

/// A text that may hold commas.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
