//! Where a run takes place, what it has to know, and what it reports.
//!
//! A comparison works the same whether its runs have processes of their own ([`super::process`]), as
//! users get it, or take place in this process ([`InProcess`]), as in unit tests.

use crate::experiments::published::{self, Assignment, Figures, Listener};
use crate::experiments::suite::{self, Observer};
use crate::harness::settings::Settings;
use crate::harness::step_report::WorkloadReport;
use crate::{EngineSpec, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One run that is to be carried out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The engine.
    pub engine: EngineSpec,
    /// The round, from 1.
    pub round: usize,
    /// Its turn in the round, from 1.
    pub turn: usize,
    /// The directory of the database. It exists, and is empty unless an existing database is used.
    pub dir: PathBuf,
    /// Whether a progress bar is wanted.
    pub progress: bool,
    /// The settings of the suite.
    pub settings: Settings,
    /// The experiment that the run belongs to, if any.
    #[serde(default)]
    pub assignment: Option<Assignment>,
}

/// What a run reports while it goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "event")]
pub enum Event {
    /// The database was opened.
    Opened {
        /// The engine's name and version.
        version: String,
        /// What was set.
        settings: Vec<(String, String)>,
    },
    /// A workload ended.
    Step {
        /// What was measured.
        report: Box<WorkloadReport>,
        /// Further figures, in an experiment.
        #[serde(default)]
        figures: Figures,
    },
    /// The database was closed.
    Closed {
        /// How long that took.
        seconds: f64,
    },
}

/// Where runs happen.
pub trait Host {
    /// Carries out a run to its end or to its failure.
    fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()>;

    /// Whether somebody asked to end the whole comparison.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Carries out an order in this process, and reports its progress.
pub fn carry_out(order: &Order, tell: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
    let settings = &order.settings;
    if let Some(assignment) = &order.assignment {
        let Order { engine, round, dir, progress, .. } = order;
        let mut teller = StepTeller { tell };
        let seconds =
            published::perform(assignment, settings, engine, *round, dir, *progress, &mut teller)?;
        return tell(Event::Closed { seconds });
    }
    let mut teller = Teller { progress: order.progress, tell, failed: None };
    let run = suite::run_one(settings, &order.engine, order.round, &order.dir, &mut teller)?;
    let Teller { tell, failed, .. } = teller;
    failed.map_or(Ok(()), Err)?;
    tell(Event::Closed { seconds: run.close_seconds })
}

/// Turns the steps of an experiment into events.
struct StepTeller<'a> {
    tell: &'a mut dyn FnMut(Event) -> Result<()>,
}

impl Listener for StepTeller<'_> {
    fn opened(&mut self, version: &str, settings: &[(String, String)]) -> Result<()> {
        let (version, settings) = (version.to_owned(), settings.to_vec());
        (self.tell)(Event::Opened { version, settings })
    }

    fn finished(&mut self, report: &WorkloadReport, figures: &Figures) -> Result<()> {
        let (report, figures) = (Box::new(report.clone()), figures.clone());
        (self.tell)(Event::Step { report, figures })
    }
}

/// Turns what an observer sees into events.
struct Teller<'a> {
    progress: bool,
    tell: &'a mut dyn FnMut(Event) -> Result<()>,
    failed: Option<crate::Error>,
}

impl Observer for Teller<'_> {
    fn progress(&self) -> bool {
        self.progress
    }

    fn version(&mut self, version: &str, settings: &[(String, String)]) {
        let event = Event::Opened { version: version.to_owned(), settings: settings.to_vec() };
        // Opening cannot be refused; the run ends at its first step.
        self.failed = (self.tell)(event).err();
    }

    fn finished(
        &mut self,
        _: &EngineSpec,
        _: usize,
        _: usize,
        report: &WorkloadReport,
    ) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        (self.tell)(Event::Step { report: Box::new(report.clone()), figures: Figures::new() })
    }
}

/// Carries out all runs in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Host for InProcess {
    fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
        carry_out(order, seen)
    }
}
