//! The two phases of LinkBench, and how one is carried out.
//!
//! Both return the report of a step and figures of their own, and read some of their outcome back.

use super::graph::Graph;
use super::place::Place;
use super::{load, requests};
use crate::Result;
use crate::experiments::published::figures::Figures;
use crate::harness::runner::Runner;
use crate::harness::step_report::WorkloadReport;

/// What a phase does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Writes every link and count.
    Load,
    /// Answers requests.
    Requests,
}

/// Carries out a phase and reads some of its outcome back.
pub fn run(
    graph: &Graph,
    runner: &mut Runner<'_>,
    place: &Place<'_>,
    phase: Phase,
) -> Result<(WorkloadReport, Figures)> {
    match phase {
        Phase::Load => load::run(graph, runner, place),
        Phase::Requests => requests::run(graph, runner, place),
    }
}
