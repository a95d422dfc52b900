//! What a user wants of a campaign, and whether the engines can carry it out.
//!
//! The settings are complete here: the experiment and the rules of comparisons have filled in what the
//! user left open.

use crate::engines::with_links;
use crate::experiments::published::Experiment;
use crate::harness::settings::Settings;
use crate::report::Origin;
use crate::{Error, Result};
use std::path::PathBuf;

/// What a user wants of a campaign.
#[derive(Debug)]
pub struct Campaign {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// What [`Experiment::settings`] and [`crate::experiments::compare::prepare`] made of the user's
    /// wishes.
    pub settings: Settings,
    /// The directory of results and databases.
    pub dir: PathBuf,
    /// Whether databases of engines that are done are kept.
    pub keep: bool,
    /// The command that wants it, and its build.
    pub origin: Origin,
}

/// Refuses engines that cannot carry out an experiment.
pub fn check(experiment: &Experiment, settings: &Settings) -> Result<()> {
    if let Some(engine) = settings.engines.iter().find(|engine| !engine.answers()) {
        return Err(Error::usage(format!(
            "{engine} returns nothing: name an engine that keeps what it is given"
        )));
    }
    let links = experiment.needs_links(settings);
    if let Some(engine) = settings.engines.iter().find(|engine| links && !engine.links()) {
        return Err(Error::usage(format!(
            "{engine} has no transactions that {} could run in: choose from {}",
            experiment.name,
            with_links().join(", "),
        )));
    }
    if let Some(engine) = settings.engines.iter().find(|engine| !links && engine.only_links()) {
        return Err(Error::usage(format!(
            "{engine} answers for LinkBench's tables only: name it with linkbench-load"
        )));
    }
    Ok(())
}
