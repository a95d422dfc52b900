//! What a run needs to know, and what it tells while it goes.
//!
//! A comparison does not care where its runs happen: in processes of their own ([`super::process`]),
//! as users get it, or in this one ([`InProcess`]), as its unit tests have it.

use crate::experiments::published::{self, Assignment, Figures, Listener};
use crate::experiments::suite::{self, Observer};
use crate::harness::settings::Settings;
use crate::harness::step_report::WorkloadReport;
use crate::{EngineSpec, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One run that is to be made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Of which engine.
    pub engine: EngineSpec,
    /// In which round, from 1.
    pub round: usize,
    /// At which turn of the round, from 1.
    pub turn: usize,
    /// In which directory, which is there and empty unless an existing database is asked for.
    pub dir: PathBuf,
    /// Whether a progress bar is wanted.
    pub progress: bool,
    /// Everything else.
    pub settings: Settings,
    /// The experiment that it is part of, if it is.
    #[serde(default)]
    pub assignment: Option<Assignment>,
}

/// What a run tells.
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
        /// What else, in an experiment.
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
    /// Makes a run to its end, or to its failure.
    fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()>;

    /// Whether somebody asked for the end of it all.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Makes the run that an order asks for in this process, and tells how it goes.
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

/// Makes all runs in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

impl Host for InProcess {
    fn run(&self, order: &Order, seen: &mut dyn FnMut(Event) -> Result<()>) -> Result<()> {
        carry_out(order, seen)
    }
}
