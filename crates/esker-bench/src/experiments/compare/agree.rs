//! Whether engines returned the same results.
//!
//! Within one run, the results of samples were compared with what was written; a wrong one is the fault
//! of this engine, whatever the others returned. Between the engines of a round, checksums of the same
//! step must be equal if the step was the same work for all.

use crate::harness::step_report::{CheckScope, StepCheck};
use crate::report::{Agreement, RunReport};

/// The first step of a run whose sample held something that was not written, in words.
pub fn with_what_was_written(run: &RunReport) -> Option<String> {
    run.workloads.iter().find_map(|step| {
        let check = step.check.as_ref().filter(|check| check.wrong > 0)?;
        let first = check.first_wrong.as_deref().unwrap_or("a result");
        Some(format!(
            "{}: {} returned wrong results in round {}: {first} ({} of {} were wrong)",
            step.name, run.engine, run.round, check.wrong, check.compared,
        ))
    })
}

/// Compares the steps of one round that all its runs completed.
pub fn between_engines(runs: &[RunReport], round: usize) -> Vec<Agreement> {
    let runs: Vec<&RunReport> = runs.iter().filter(|run| run.round == round).collect();
    let steps = runs.iter().map(|run| run.workloads.len()).max().unwrap_or(0);
    let mut found = Vec::new();
    for step in 0..steps {
        for scope in [CheckScope::Results, CheckScope::Sample] {
            let checks: Vec<(&RunReport, &StepCheck)> =
                runs.iter().filter_map(|run| Some((*run, check_of(run, step, scope)?))).collect();
            let [(first, reference), others @ ..] = &checks[..] else { continue };
            if others.is_empty() {
                continue;
            }
            found.push(Agreement {
                round,
                step: step + 1,
                workload: first.workloads.get(step).map_or("", |step| &step.name).to_owned(),
                scope,
                engines: checks.iter().map(|(run, _)| run.engine.to_string()).collect(),
                agree: others.iter().all(|(_, check)| check.checksum == reference.checksum),
            });
        }
    }
    found
}

fn check_of(run: &RunReport, step: usize, scope: CheckScope) -> Option<&StepCheck> {
    let check = run.workloads.get(step)?.check.as_ref()?;
    Some(check).filter(|check| check.comparable && check.scope == scope)
}

/// A disagreement in words: the workload, and which engines returned what.
pub fn describe(found: &Agreement, runs: &[RunReport]) -> String {
    let of = |name: &str| {
        let mut round = runs.iter().filter(|run| run.round == found.round);
        let run = round.find(|run| run.engine.name() == name)?;
        check_of(run, found.step - 1, found.scope).map(|check| check.checksum.as_str())
    };
    let first = found.engines.first().map_or("", String::as_str);
    let other = found.engines.iter().find(|name| of(name) != of(first)).map_or("", String::as_str);
    let sums: Vec<String> = found
        .engines
        .iter()
        .map(|name| format!("{name} {}", of(name).unwrap_or("nothing")))
        .collect();
    format!(
        "{}: {first} and {other} returned different results in round {} (checksums: {}): a comparison \
         of different answers is worth nothing",
        found.workload,
        found.round,
        sums.join(", "),
    )
}
