//! What an earlier report has of the same measurement.
//!
//! A baseline belongs to a comparison if it agrees with it on experiment, settings and machine, as
//! the files of one comparison do. It may differ in what changes on the same machine with time,
//! [`CHANGING`]; the page says so. An engine is found again by its name, whatever its version: to
//! compare versions is what a baseline is for.

use super::error::PageError;
use super::group::{Column, Group, Merge, Workload, group, same_machine};
use super::input::{Input, Step};
use super::words;
use serde_json::{Map, Value};

/// Facts about a machine that may differ between a report and its baseline.
const CHANGING: [&str; 2] = ["system", "memory"];

/// The baseline of one comparison.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// The files that it comes from.
    pub files: Vec<String>,
    /// What differs between the machines, in words.
    pub machine: Vec<String>,
    /// What the baseline has of each engine of the comparison.
    pub columns: Vec<Option<Column>>,
    /// Rounds of the baseline, for each workload of the comparison and each of its engines.
    rounds: Vec<Vec<Vec<Step>>>,
}

impl Baseline {
    /// The rounds of an engine in a workload, both by their place in the comparison.
    pub fn rounds(&self, workload: usize, column: usize) -> &[Step] {
        &self.rounds[workload][column]
    }

    fn of(now: &Group, then: &Group) -> Self {
        let places: Vec<Option<usize>> =
            now.columns.iter().map(|column| place(column, then)).collect();
        let rounds = |workload: &Workload| {
            let same =
                |other: &&Workload| other.name == workload.name && other.before == workload.before;
            let found = then.workloads.iter().find(same);
            let rounds = |at: &Option<usize>| Some(found?.rounds[(*at)?].clone());
            places.iter().map(|at| rounds(at).unwrap_or_default()).collect()
        };
        Self {
            files: then.files.clone(),
            machine: differences(&then.machine, &now.machine),
            columns: places.iter().map(|at| at.map(|at| then.columns[at].clone())).collect(),
            rounds: now.workloads.iter().map(rounds).collect(),
        }
    }
}

/// Where an engine stands in a baseline: the only one of its name, or of several the one that was
/// opened in the same way.
fn place(column: &Column, then: &Group) -> Option<usize> {
    let named = |other: &Column| other.engine == column.engine;
    let alike = |other: &Column| named(other) && other.settings == column.settings;
    let same = |other: &Column| alike(other) && other.version == column.version;
    let only = |is: &dyn Fn(&Column) -> bool| {
        let mut found = then.columns.iter().enumerate().filter(|(_, other)| is(other));
        let first = found.next().map(|(at, _)| at);
        first.filter(|_| found.next().is_none())
    };
    only(&named).or_else(|| only(&alike)).or_else(|| only(&same))
}

/// Finds the baseline of each comparison.
///
/// # Errors
///
/// [`PageError::OtherConditions`] if no comparison has one: then a reader has named the wrong file.
pub fn find(groups: &[Group], earlier: &[Input]) -> Result<Vec<Option<Baseline>>, PageError> {
    if earlier.is_empty() {
        return Ok(vec![None; groups.len()]);
    }
    let earlier = group(earlier, Merge::default())?;
    let lasting = |machine: &Map<String, Value>| {
        let facts = machine.iter().filter(|(name, _)| !CHANGING.contains(&name.as_str()));
        facts.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
    };
    let belongs = |now: &Group, then: &&Group| {
        now.settings == then.settings
            && now.experiment == then.experiment
            && same_machine(&lasting(&now.machine), &lasting(&then.machine))
    };
    let found: Vec<Option<Baseline>> = groups
        .iter()
        .map(|now| {
            let mut fitting = earlier.iter().filter(|then| belongs(now, then));
            let exact = fitting.clone().find(|then| then.machine == now.machine);
            exact.or_else(|| fitting.next()).map(|then| Baseline::of(now, then))
        })
        .collect();
    if found.iter().any(Option::is_some) {
        return Ok(found);
    }
    let (now, then) = (&groups[0], &earlier[0]);
    let mut differences = differences(&lasting(&then.machine), &lasting(&now.machine));
    differences.extend(self::differences(&then.settings, &now.settings));
    if now.experiment != then.experiment {
        differences.push("experiment".into());
    }
    Err(PageError::OtherConditions {
        file: words::listed(&then.files),
        differences: differences.join("; "),
    })
}

/// The names that have different values, with both.
fn differences(then: &Map<String, Value>, now: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<&String> = then.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    let shown = |facts: &Map<String, Value>, name: &str| {
        facts.get(name).map_or("not known".into(), |value| words::value(name, value))
    };
    let differs = names.into_iter().filter(|name| then.get(*name) != now.get(*name));
    let told = differs.map(|name| {
        format!("{} {} before, {} now", words::name(name), shown(then, name), shown(now, name))
    });
    told.collect()
}
