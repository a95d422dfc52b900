//! Which figures stand side by side.
//!
//! Reports belong to one comparison if they agree on everything that decides a figure: machine,
//! experiment, and every setting except those in [`FREE`]. What disagrees becomes a comparison of
//! its own on the same page, so that engines of different durability, on different machines or
//! with other keys never share a table.
//!
//! In a comparison, runs of one engine are rounds of one column if version and settings of the
//! engine agree too, whichever file they come from. Where they do not, or where the reader asked to
//! keep files apart, there are several columns of that engine, told apart by version or file. A
//! workload is matched by its name and by how often the name came before in the same list.

use super::error::PageError;
use super::input::{Document, Engine, Input, Published, Run, Step};
use super::words;
use crate::report::Origin;
use serde_json::{Map, Value};

/// Settings in which reports of one comparison may differ: they decide how often something runs and
/// where, not what it does.
pub const FREE: [&str; 5] = ["engines", "rounds", "dir", "sample_ops", "keep"];

/// Engines that are no stores: they show what the harness costs, and win nothing.
const YARDSTICKS: [&str; 2] = ["mem", "null"];

/// How files become comparisons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merge {
    /// Whether the runs of each file are columns of their own.
    pub by_file: bool,
}

/// One comparison.
#[derive(Debug, Clone)]
pub struct Group {
    /// The files that it comes from.
    pub files: Vec<String>,
    /// Where each comes from, and runs in them that come from somewhere else.
    pub origins: Vec<(String, Origin)>,
    /// The machine of all of them.
    pub machine: Map<String, Value>,
    /// The settings of all of them, without those in which they may differ.
    pub settings: Map<String, Value>,
    /// The experiment, if it was one.
    pub experiment: Option<String>,
    /// Why suites were stopped before their end.
    pub partial: Vec<String>,
    /// What the figures rest on, in sentences.
    pub rules: Vec<String>,
    /// Steps whose results were compared between engines.
    pub agreed: usize,
    /// Steps for which engines returned different results, or wrong ones.
    pub disagreed: Vec<String>,
    /// What others published.
    pub published: Vec<Published>,
    /// The engines; the first is the one that the others are compared with.
    pub columns: Vec<Column>,
    /// The workloads, in order.
    pub workloads: Vec<Workload>,
}

/// One engine as it was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// As users name it.
    pub engine: String,
    /// The engine that it is a variant of.
    pub kind: String,
    /// As the page names it.
    pub label: String,
    /// How much was set by hand.
    pub tuning: Option<String>,
    /// Its name and version, as it says itself.
    pub version: Option<String>,
    /// What a reader has to know about it.
    pub note: Option<String>,
    /// How it was opened.
    pub settings: Vec<(String, String)>,
    /// The file of its first run.
    pub file: String,
    /// How often it ran.
    pub rounds: usize,
}

impl Column {
    /// Whether it is no store.
    pub fn is_yardstick(&self) -> bool {
        YARDSTICKS.contains(&self.kind.as_str())
    }

    fn is(&self, run: &Run, file: &str, merge: Merge) -> bool {
        self.engine == run.engine
            && self.version == run.version.clone().filter(|version| !version.is_empty())
            && self.settings == run.settings
            && (!merge.by_file || self.file == file)
    }
}

/// One workload of all engines.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// How often the name came before in the list.
    pub before: usize,
    /// Its rounds, for each column.
    pub rounds: Vec<Vec<Step>>,
}

impl Workload {
    /// As a heading.
    pub fn title(&self) -> String {
        match self.before {
            0 => self.name.clone(),
            before => format!("{} (time {})", self.name, before + 1),
        }
    }

    /// Whether it asked engines for text, of which the time says nothing.
    pub fn is_text(&self) -> bool {
        self.rounds.iter().flatten().all(|step| step.maintenance && step.text.is_some())
    }

    /// Any round of any engine.
    pub fn any(&self) -> Option<&Step> {
        self.rounds.iter().flatten().next()
    }
}

/// Sorts reports into comparisons.
pub fn group(inputs: &[Input], merge: Merge) -> Result<Vec<Group>, PageError> {
    if inputs.is_empty() {
        return Err(PageError::Empty);
    }
    distinct(inputs.iter())?;
    let mut groups: Vec<Group> = Vec::new();
    for input in inputs {
        let settings = binding(&input.document);
        let document = &input.document;
        let found = groups.iter().position(|group| {
            group.settings == settings
                && same_machine(&group.machine, &document.machine)
                && group.experiment == document.experiment
        });
        let at = found.unwrap_or_else(|| {
            groups.push(Group {
                files: Vec::new(),
                origins: Vec::new(),
                machine: document.machine.clone(),
                settings,
                experiment: document.experiment.clone(),
                partial: Vec::new(),
                rules: Vec::new(),
                agreed: 0,
                disagreed: Vec::new(),
                published: Vec::new(),
                columns: Vec::new(),
                workloads: Vec::new(),
            });
            groups.len() - 1
        });
        groups[at].add(input, merge);
    }
    for group in &mut groups {
        group.put_base_first();
        group.label();
    }
    Ok(groups)
}

/// Whether facts are of one machine: what both reports know is the same. Earlier versions knew less.
pub fn same_machine(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.iter().all(|(name, fact)| {
        let found = other.get(name).filter(|found| !found.is_null());
        fact.is_null() || found.is_none_or(|found| found == fact)
    })
}

/// Refuses the same report given twice.
pub fn distinct<'a>(inputs: impl Iterator<Item = &'a Input> + Clone) -> Result<(), PageError> {
    for (i, second) in inputs.clone().enumerate() {
        let mut earlier = inputs.clone().take(i);
        if let Some(first) = earlier.find(|first| first.document == second.document) {
            let (first, second) = (first.file.clone(), second.file.clone());
            return Err(PageError::Twice { first, second });
        }
    }
    Ok(())
}

/// The settings that reports of one comparison share.
fn binding(document: &Document) -> Map<String, Value> {
    let settings = document.settings.iter();
    let settings = settings.filter(|(name, _)| !FREE.contains(&name.as_str()));
    settings.map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Group {
    /// Whether it has engines to compare; a report may be of one alone.
    pub fn compares(&self) -> bool {
        self.columns.len() > 1
    }

    fn add(&mut self, input: &Input, merge: Merge) {
        self.files.push(input.file.clone());
        for (name, fact) in &input.document.machine {
            if self.machine.get(name).is_none_or(Value::is_null) {
                self.machine.insert(name.clone(), fact.clone());
            }
        }
        self.trace(input);
        let because = |why| format!("{}: {why}", input.file);
        self.partial.extend(input.document.partial().map(because));
        let rules = input.document.rules.iter();
        let new: Vec<String> = rules.filter(|rule| !self.rules.contains(rule)).cloned().collect();
        self.rules.extend(new);
        for agreement in &input.document.agreements {
            if agreement.agree {
                self.agreed += 1;
            } else {
                let engines = words::listed(&agreement.engines);
                self.disagreed.push(format!("{} ({engines})", agreement.workload));
            }
        }
        for published in &input.document.published {
            if !self.published.contains(published) {
                self.published.push(published.clone());
            }
        }
        for run in input.document.runs.iter().filter(|run| !run.workloads.is_empty()) {
            let column = self.column(run, input, merge);
            self.columns[column].rounds += 1;
            for (i, step) in run.workloads.iter().enumerate() {
                let same = |other: &&Step| other.name == step.name;
                let before = run.workloads[..i].iter().filter(same).count();
                let workload = self.workload(&step.name, before);
                let rounds = &mut self.workloads[workload].rounds;
                rounds.resize(rounds.len().max(column + 1), Vec::new());
                rounds[column].push(step.clone());
                if step.check.as_ref().is_some_and(|check| check.wrong > 0) {
                    self.disagreed.push(format!("{} ({} alone)", step.name, run.engine));
                }
            }
        }
        let columns = self.columns.len();
        for workload in &mut self.workloads {
            workload.rounds.resize(columns, Vec::new());
        }
    }

    /// Notes where a file comes from, and each of its runs that comes from somewhere else.
    fn trace(&mut self, input: &Input) {
        let own = &input.document.origin;
        if *own != Origin::default() {
            self.origins.push((input.file.clone(), own.clone()));
        }
        for run in &input.document.runs {
            let origin =
                run.origin.as_ref().filter(|origin| !run.workloads.is_empty() && *origin != own);
            let what = format!("{}, round {}, in {}", run.engine, run.round, input.file);
            self.origins.extend(origin.map(|origin| (what, origin.clone())));
        }
    }

    /// The column of a run, made if it is new.
    fn column(&mut self, run: &Run, input: &Input, merge: Merge) -> usize {
        let file = &input.file;
        if let Some(at) = self.columns.iter().position(|column| column.is(run, file, merge)) {
            return at;
        }
        let about = input.document.engines.iter().find(|engine| engine.name == run.engine);
        let of =
            |field: fn(&Engine) -> &Option<String>| about.and_then(|about| field(about).clone());
        self.columns.push(Column {
            engine: run.engine.clone(),
            kind: of(|about| &about.kind).unwrap_or_else(|| run.engine.clone()),
            label: of(|about| &about.label).unwrap_or_else(|| run.engine.clone()),
            tuning: of(|about| &about.tuning),
            version: run.version.clone().filter(|version| !version.is_empty()),
            note: of(|about| &about.note),
            settings: run.settings.clone(),
            file: file.clone(),
            rounds: 0,
        });
        self.columns.len() - 1
    }

    /// The place of a workload, made if it is new.
    fn workload(&mut self, name: &str, before: usize) -> usize {
        let found = self.workloads.iter().position(|w| w.name == name && w.before == before);
        found.unwrap_or_else(|| {
            self.workloads.push(Workload { name: name.to_owned(), before, rounds: Vec::new() });
            self.workloads.len() - 1
        })
    }

    /// Esker is compared with the others; without it, the engine that was named first.
    fn put_base_first(&mut self) {
        let base = self.columns.iter().position(|column| column.kind == "esker").unwrap_or(0);
        let column = self.columns.remove(base);
        self.columns.insert(0, column);
        for workload in &mut self.workloads {
            let rounds = workload.rounds.remove(base);
            workload.rounds.insert(0, rounds);
        }
    }

    /// Tells columns of one engine apart.
    fn label(&mut self) {
        let labels: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let others = || {
                    let others = self.columns.iter().enumerate().filter(move |(j, _)| *j != i);
                    others.map(|(_, other)| other).filter(|other| other.label == column.label)
                };
                let engine = &column.label;
                if others().next().is_none() {
                    return engine.clone();
                }
                match &column.version {
                    Some(version) if others().all(|other| other.version != column.version) => {
                        format!("{engine} ({version})")
                    }
                    _ if others().all(|other| other.file != column.file) => {
                        format!("{engine} ({})", column.file)
                    }
                    _ => format!("{engine} (variant {})", i + 1),
                }
            })
            .collect();
        for (column, label) in self.columns.iter_mut().zip(labels) {
            column.label = label;
        }
    }
}
