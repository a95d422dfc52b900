//! Runs of earlier commands that the present one does not name.
//!
//! The same directory may be used again with other engines, or with fewer rounds. What it holds of the
//! others was measured under the same settings, so the report has it beside what the command asked for.
//! Such runs are neither continued nor removed, and they cannot end the command.

use super::folder::Folder;
use super::journal::Known;
use crate::Result;
use crate::harness::settings::Settings;

/// Reads the journals of all runs that the settings do not name. `steps` is how many an experiment has.
pub fn others(folder: &Folder, settings: &Settings, steps: usize) -> Result<Vec<Known>> {
    let mut others = Vec::new();
    for (round, by_file) in folder.journals()? {
        let named = settings.engines.iter().any(|spec| spec.file_name() == by_file.file_name());
        if named && round <= settings.rounds {
            continue;
        }
        let journal = folder.journal(&by_file, round)?;
        let engine = journal.engine().unwrap_or(&by_file).clone();
        let mut report = journal.report(&engine, round, 0);
        if report.workloads.len() < steps {
            report.failure = Some("not finished: name the engine again to go on with it".into());
        }
        others.push(Known { report, journal });
    }
    Ok(others)
}

/// What a reader of the report has to know of them.
pub fn sentences(others: &[Known]) -> Vec<String> {
    let told = |Known { report, .. }: &Known| {
        let day = report.origin.as_ref().and_then(|origin| origin.day());
        let on = day.map_or(String::new(), |day| format!(" on {day}"));
        let (engine, round) = (&report.engine, report.round);
        format!("{engine}, round {round}: measured by an earlier command{on}")
    };
    others.iter().map(told).collect()
}
