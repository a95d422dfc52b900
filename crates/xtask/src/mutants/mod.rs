//! Runs the tests with one deliberate defect at a time, and prints which test noticed it.
//!
//! The defects are in the engine's sources (`bug!`, see `crates/esker/src/base/bugs.rs`). One
//! build has all of them; an environment variable chooses one. Each is tried on the tests of
//! [`suite`], in order, until one fails; a process that dies or hangs counts as noticed, too. A
//! defect that nobody notices means a missing test.
//!
//! A result is stored as soon as it is known, so that an interrupted run continues where it
//! stopped.

mod results;
mod sites;
mod suite;

use crate::programs;
use crate::workspace::{Result, target};
use results::{Outcome, Results};
use sites::Site;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use suite::{Limits, Suite};

/// The arguments.
pub(crate) struct Mutants {
    /// Only defects whose names contain one of these; all if there is none.
    pub only: Vec<String>,
    /// Discards the results of earlier runs about them.
    pub again: bool,
    /// Only lists them.
    pub list: bool,
    /// Prints the table as JSON.
    pub json: bool,
}

/// The share of defects, in percent, that the tests must notice.
const WANTED_PERCENT: usize = 95;

/// Builds, runs what has no result yet, prints the table.
pub(crate) fn run(workspace: &Path, asked: &Mutants) -> Result<()> {
    let mut sites = sites::find(workspace)?;
    let wanted = |site: &Site| asked.only.iter().any(|part| site.name.contains(part));
    sites.retain(|site| asked.only.is_empty() || wanted(site));
    if asked.list {
        sites.iter().for_each(|site| println!("{:40} {}", site.name, site.what));
        println!("{} seeded bugs", sites.len());
        return Ok(());
    }
    let directory = target(workspace).join("mutants");
    let suite = Suite { directory: directory.clone(), programs: build(workspace, &directory)? };
    let mut results = Results::open(&directory.join("results.tsv"))?;
    if asked.again {
        results.forget(&sites)?;
    }
    let limits = baseline(&suite, &mut results)?;
    let missing: Vec<&Site> =
        sites.iter().filter(|site| results.of(&site.name).is_none()).collect();
    for (number, site) in missing.iter().enumerate() {
        eprintln!("[{} of {}] {}: {}", number + 1, missing.len(), site.name, site.what);
        let outcome = suite.try_bug(site, &limits)?;
        eprintln!("    {outcome}");
        results.note(&site.name, outcome)?;
    }
    report(&sites, &results, asked.json)
}

/// The test programs by name, built with all defects in them.
fn build(workspace: &Path, directory: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut cargo = programs::cargo();
    cargo.current_dir(workspace).env("CARGO_TARGET_DIR", directory);
    // Flags in the environment would replace these.
    cargo.env("RUSTFLAGS", "--cfg esker_bugs").env_remove("CARGO_ENCODED_RUSTFLAGS");
    // Each test runs a hundred times, and nobody looks at it in a debugger.
    cargo.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1").env("CARGO_PROFILE_TEST_DEBUG", "0");
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    cargo.args(["test", "--no-run", "--locked", "--package", "esker"]).args(suite::targets());
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|e| format!("no cargo: {e}"))?;
    if !output.status.success() {
        return Err("the build with the seeded bugs failed".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let programs = text.lines().filter_map(|line| {
        let (_, path) = line.split_once("\"executable\":\"")?;
        let path = PathBuf::from(&path[..path.find('"')?]);
        // Cargo adds a dash and a hash to the name of the target.
        let name = path.file_stem()?.to_string_lossy().rsplit_once('-')?.0.to_owned();
        Some((name, path))
    });
    Ok(programs.collect())
}

/// Runs everything without a defect: it must pass, and says how long each part may take.
fn baseline(suite: &Suite, results: &mut Results) -> Result<Limits> {
    let mut limits = Limits::default();
    for part in suite::PARTS {
        let name = format!("none, {}", part.name());
        let outcome = match results.of(&name) {
            Some(known) => known.clone(),
            None => {
                eprintln!("without a bug: {}", part.name());
                let outcome = suite.run(part, "", None)?;
                if let Some(test) = &outcome.test {
                    let log = suite.log_of("");
                    return Err(format!("without a bug, {test} fails: see {}", log.display()));
                }
                results.note(&name, outcome.clone())?;
                outcome
            }
        };
        limits.set(part, outcome.seconds);
    }
    Ok(limits)
}

/// Prints the table; an error if too much was not noticed.
fn report(sites: &[Site], results: &Results, json: bool) -> Result<()> {
    let known: Vec<(&Site, &Outcome)> =
        sites.iter().filter_map(|site| Some((site, results.of(&site.name)?))).collect();
    let caught = known.iter().filter(|(_, outcome)| outcome.test.is_some()).count();
    if json {
        let rows: Vec<String> =
            known.iter().map(|(site, outcome)| results::json(site, outcome)).collect();
        println!("[\n{}\n]", rows.join(",\n"));
    } else {
        println!("| bug | what is wrong | caught by | test | seconds |\n|---|---|---|---|---|");
        for (site, outcome) in &known {
            let by = outcome.part.as_deref().unwrap_or("NOBODY");
            let test = outcome.test.as_deref().unwrap_or("");
            let Site { name, what, .. } = site;
            println!("| {name} | {what} | {by} | {test} | {:.1} |", outcome.seconds);
        }
    }
    eprintln!("{caught} of {} seeded bugs were caught", known.len());
    if caught * 100 < known.len() * WANTED_PERCENT {
        return Err(format!("fewer than {WANTED_PERCENT} % were caught"));
    }
    Ok(())
}
