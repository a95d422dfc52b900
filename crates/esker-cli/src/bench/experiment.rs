//! `esker bench experiment`: the published experiments, each by one command.
//!
//! Results go into a directory step by step. So an experiment of hours can be stopped, and the same
//! command continues it.

use super::args::{Class, bytes, class, count, seconds};
use super::follow::host;
use super::output::print;
use super::page::{self, PageArgs};
use super::{origin, table};
use crate::ctrl_c;
use crate::failure::one_line;
use comfy_table::Table;
use esker_bench::experiments::campaign::{self, Campaign, CampaignReport, Left, Watcher};
use esker_bench::experiments::compare::process::Stop;
use esker_bench::experiments::published::{self, ALL, Experiment};
use esker_bench::{EngineSpec, Error, Result, Settings, WorkloadReport};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Repeat an experiment that others published, and put their figures beside ours
///
/// Every finished step of every engine is written into a directory. The same command continues a
/// stopped experiment, and runs only the new steps if an engine is added. Results of engines and rounds
/// that are not named any more stay in the report. The directory then holds `report.json`, `report.csv`
/// and `report.html`. Exit code: 0, 1 if something failed, 2
/// for a command line that cannot be carried out, 130 if it was interrupted.
#[derive(Debug, Clone, clap::Args)]
pub struct ExperimentArgs {
    /// The experiment (--list explains them)
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// Explain the experiments and their steps, and end
    #[arg(long)]
    pub list: bool,
    /// Engines to run, separated by commas; ratios are of Esker to each other engine
    #[arg(long, default_value = "esker", value_name = "LIST")]
    pub engine: String,
    /// The size: 1M, 10M, … of the unit that the experiment counts (--list)
    #[arg(long, value_parser = count, value_name = "N")]
    pub scale: Option<u64>,
    /// Bytes of a value, in experiments that were published with several sizes
    #[arg(long, value_name = "BYTES")]
    pub value_size: Option<usize>,
    /// Seconds that a step without a natural end lasts; loads run to their end
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<f64>,
    /// What a finished write survives (default: as published)
    #[arg(long, value_enum)]
    pub durability: Option<Class>,
    /// How often each engine runs all steps; rounds interleave, and medians are compared
    #[arg(long, visible_alias = "repeat", default_value_t = 1, value_name = "N")]
    pub rounds: usize,
    /// The seed of all random streams
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Memory budget of the engine, for instance 512M (default: a quarter of the machine's memory,
    /// or of --memory-limit)
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub memory: Option<u64>,
    /// Bytes of memory that the process of a run may use, including the system's cache of its files
    /// (needs administrator rights)
    #[arg(long, value_parser = bytes, value_name = "BYTES")]
    pub memory_limit: Option<u64>,
    /// Empty the system's cache of files before each step (needs administrator rights)
    #[arg(long)]
    pub drop_caches: bool,
    /// Operations of a batch for engines whose single writes are not cheap; their rows say so
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub batch_instead: usize,
    /// The directory of results and databases (default: esker-experiments/NAME-SCALE)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Keep the databases of engines that are done
    #[arg(long)]
    pub keep: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl ExperimentArgs {
    pub(super) fn campaign(&self) -> Result<Campaign> {
        let experiment = published::find(self.name.as_deref().unwrap_or_default())?;
        let defaults = experiment.defaults();
        let num = self.scale.unwrap_or(experiment.scale);
        let settings = experiment.settings(Settings {
            engines: EngineSpec::parse_list(&self.engine)?,
            num,
            value_size: self.value_size.unwrap_or(defaults.value_size),
            duration: self.duration.map(seconds).transpose()?,
            durability: self.durability.map_or(defaults.durability, class),
            rounds: self.rounds,
            seed: self.seed,
            memory: self.memory,
            memory_limit: self.memory_limit,
            drop_caches: self.drop_caches,
            batch_instead: self.batch_instead,
            ..defaults
        });
        if self.value_size.is_some_and(|size| size != settings.value_size) {
            return Err(Error::usage(format!(
                "{} fixes the size of values: leave --value-size out",
                experiment.name
            )));
        }
        let settings = esker_bench::experiments::compare::prepare(settings)?;
        campaign::check(experiment, &settings)?;
        let place =
            || PathBuf::from("esker-experiments").join(format!("{}-{num}", experiment.name));
        let dir = self.dir.clone().unwrap_or_else(place);
        Ok(Campaign { experiment, settings, dir, keep: self.keep, origin: origin::now() })
    }
}

/// A rate was held if no more than a fifth of it is lost.
const HELD: f64 = 0.8;

/// Runs the experiment, or what is left of it, and prints its report.
pub fn execute(args: &ExperimentArgs) -> Result<ExitCode> {
    if args.list {
        print(&if args.json { list_json().to_string() } else { list() })?;
        return Ok(ExitCode::SUCCESS);
    }
    let campaign = args.campaign()?;
    let stop = Stop::default();
    let host = host(campaign.settings.memory_limit, &stop)?;
    let report = campaign::run(&campaign, &host, &mut Follow::new())?;
    print(&if args.json { report.json()? } else { text(&report) })?;
    if report.report.runs.iter().any(|run| !run.workloads.is_empty()) {
        let (files, out) =
            (vec![campaign.dir.join("report.json")], campaign.dir.join("report.html"));
        let args = PageArgs { files, out: Some(out), ..PageArgs::default() };
        page::write(&args)?;
    }
    let _ = writeln!(io::stderr(), "The results are in {}.", campaign.dir.display());
    let Some(stopped) = &report.report.stopped else { return Ok(ExitCode::SUCCESS) };
    let stopped = one_line(stopped);
    let _ = writeln!(io::stderr(), "esker: the experiment is not complete: {stopped}");
    Ok(ExitCode::from(if stop.asked() { ctrl_c::EXIT_CODE } else { 1 }))
}

/// Shows the progress on a terminal.
struct Follow {
    terminal: bool,
}

impl Follow {
    fn new() -> Self {
        Self { terminal: io::stderr().is_terminal() }
    }
}

impl Watcher for Follow {
    fn progress(&self) -> bool {
        self.terminal
    }

    fn begins(&mut self, engine: &EngineSpec, round: usize, finished: usize) {
        if self.terminal && finished == 0 {
            eprintln!("{engine}, round {round}");
        } else if self.terminal {
            eprintln!("{engine}, round {round}, goes on behind step {finished}");
        }
    }

    fn finished(&mut self, report: &WorkloadReport, (step, steps): (usize, usize), left: &Left) {
        if self.terminal {
            eprintln!("  {step}/{steps} {}  {}", table::line(report), time_left(left));
        }
    }
}

fn time_left(left: &Left) -> String {
    let seconds = Duration::from_secs(left.known.as_secs());
    match (left.known.is_zero(), left.unknown) {
        (true, 0) => "nothing left".into(),
        (_, 0) => format!("{} left", table::clock(seconds)),
        (_, unknown) => format!("{} and {unknown} unmeasured steps left", table::clock(seconds)),
    }
}

/// All experiments with what they do.
fn list() -> String {
    let mut out = String::new();
    for experiment in ALL {
        let settings =
            experiment.settings(Settings { num: experiment.scale, ..experiment.defaults() });
        let scale = table::whole(experiment.scale as f64);
        let _ = writeln!(out, "{}\n  {}", experiment.name, experiment.about);
        let _ = writeln!(out, "  Published: {}", experiment.source);
        let _ = writeln!(
            out,
            "  --scale counts {} (default {scale}); durability {}",
            experiment.unit, settings.durability
        );
        for (number, step) in experiment.steps(&settings).iter().enumerate() {
            let _ = writeln!(out, "  {:2}. {:32} {}", number + 1, step.name, step.about);
        }
        for differs in experiment.differs {
            let _ = writeln!(out, "  - {differs}");
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// The same as JSON.
fn list_json() -> Value {
    let of = |experiment: &Experiment| {
        let settings =
            experiment.settings(Settings { num: experiment.scale, ..experiment.defaults() });
        let steps = experiment.steps(&settings);
        let steps = steps.iter().map(|step| json!({ "name": step.name, "about": step.about }));
        json!({
            "name": experiment.name,
            "about": experiment.about,
            "source": experiment.source,
            "unit": experiment.unit,
            "scale": experiment.scale,
            "durability": settings.durability.to_string(),
            "steps": steps.collect::<Vec<_>>(),
            "differs": experiment.differs,
        })
    };
    json!({ "experiments": ALL.iter().map(of).collect::<Vec<_>>() })
}

/// The report as a person reads it.
fn text(report: &CampaignReport) -> String {
    let mut out = format!(
        "{} with {} {}; published by {}\n",
        report.experiment,
        table::whole(report.scale as f64),
        report.unit,
        report.source
    );
    for differs in report.differs {
        let _ = writeln!(out, "- {differs}");
    }
    let _ = writeln!(out, "\n{}", table::compare(&report.report));
    for run in &report.unfinished {
        let _ = writeln!(
            out,
            "{}, round {}, was stopped after {} operations and {:.0} s; its samples are kept.",
            run.engine,
            run.round,
            table::whole(run.operations as f64),
            run.seconds
        );
    }
    for found in &report.figures {
        if let Some(share) = found.figures.get("end_to_1_percent") {
            let held = if *share >= HELD { "held" } else { "did not hold" };
            let _ = writeln!(
                out,
                "{}, round {}: the rate at the end is {share:.2} of that at 1 % of the run: it {held}.",
                found.engine, found.round
            );
        }
    }
    let _ = writeln!(out, "\nDevice and other figures of each step (the device serves others too)");
    let _ = writeln!(out, "{}", figures(report));
    if let Some(requests) = requests(report) {
        let _ = writeln!(out, "\nLatency of each kind of request, in microseconds\n{requests}");
    }
    if !report.published.is_empty() {
        let _ = writeln!(
            out,
            "\nPublished figures beside ours. They come from another machine and year: compare ratios \
             and shapes only. A ratio is the rate of Esker, or of the engine that was published first, divided by \
             the engine's."
        );
        let _ = writeln!(out, "{}", published(report));
    }
    out.trim_end().to_owned()
}

/// Each step: our figures, then the published ones, with ratios within each group: those of the base, or of
/// the first published engine, to each engine.
fn published(report: &CampaignReport) -> Table {
    let columns = ["step", "engine", "at", "ops/s", "ratio", "WA", "device reads/op"];
    let mut rows = table::table(&columns, 2);
    for (place, step) in report.steps.iter().enumerate() {
        let ours = report.report.comparison.get(place).map_or(&[][..], |step| &step.engines);
        let theirs: Vec<_> =
            report.published.iter().filter(|figure| figure.workload == step.name).collect();
        if theirs.is_empty() {
            continue;
        }
        let mut name = step.name.clone();
        for median in ours {
            rows.add_row([
                std::mem::take(&mut name),
                median.engine.to_string(),
                table::whole(report.scale as f64),
                table::whole(median.ops_per_second),
                format!("{:.2}", median.ratio),
                table::optional(median.write_amplification_since_open),
                table::optional(reads_per_op(report, &median.engine, &step.name)),
            ]);
        }
        let base = theirs.first().map_or(1.0, |figure| figure.ops_per_second);
        for figure in theirs {
            rows.add_row([
                std::mem::take(&mut name),
                format!("published: {}", figure.engine),
                table::whole(figure.scale as f64),
                table::whole(figure.ops_per_second),
                format!("{:.2}", base / figure.ops_per_second),
                table::optional(figure.write_amplification),
                table::optional(figure.device_reads_per_op),
            ]);
        }
    }
    rows
}

/// The median over rounds.
fn reads_per_op(report: &CampaignReport, engine: &EngineSpec, step: &str) -> Option<f64> {
    let found =
        report.figures.iter().filter(|found| found.engine == *engine && found.workload == step);
    let reads = found.filter_map(|found| found.figures.get("device_reads_per_op").copied());
    esker_bench::harness::measure::median::median(reads.collect())
}

/// The prefix of the names of figures per kind of request. The kind follows, then the figure.
const REQUEST: &str = "request_";

/// A row for each kind of request, engine and round, if there are any.
fn requests(report: &CampaignReport) -> Option<Table> {
    let columns = ["request", "engine", "round", "requests", "p50", "p99", "p99.9", "max"];
    let mut rows = table::table(&columns, 2);
    let kind = |name: &str| Some(name.strip_prefix(REQUEST)?.split_once('_')?.0.to_owned());
    let names = report.figures.iter().flat_map(|found| found.figures.keys());
    let kinds: BTreeSet<String> = names.filter_map(|name| kind(name)).collect();
    for kind in &kinds {
        let mut shown = kind.clone();
        for found in &report.figures {
            let figure =
                |name: &str| found.figures.get(&format!("{REQUEST}{kind}_{name}")).copied();
            let Some(count) = figure("count") else { continue };
            let mut cells = vec![
                std::mem::take(&mut shown),
                found.engine.to_string(),
                found.round.to_string(),
                table::whole(count),
            ];
            let latencies = ["p50_us", "p99_us", "p999_us", "max_us"];
            cells.extend(latencies.map(|name| table::optional(figure(name))));
            rows.add_row(cells);
        }
    }
    (!kinds.is_empty()).then_some(rows)
}

/// Figures without a field in a workload's report: a row per step and engine, a column per name.
fn figures(report: &CampaignReport) -> Table {
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    for found in &report.figures {
        let shown = found.figures.keys().filter(|name| !name.starts_with(REQUEST));
        names.extend(shown.map(|name| (name.as_str(), ())));
    }
    let readable: Vec<String> = names.keys().map(|name| name.replace('_', " ")).collect();
    let columns: Vec<&str> = ["step", "engine", "round", "seconds", "on disk"]
        .into_iter()
        .chain(readable.iter().map(String::as_str))
        .collect();
    let mut rows = table::table(&columns, 2);
    for (place, step) in report.steps.iter().enumerate() {
        let mut name = step.name.clone();
        for run in &report.report.runs {
            let Some(measured) = run.workloads.get(place) else { continue };
            let mut cells = vec![
                std::mem::take(&mut name),
                run.engine.to_string(),
                run.round.to_string(),
                format!("{:.2}", measured.seconds),
                measured.disk_bytes.map_or(table::dash(), table::size),
            ];
            let found = report.figures_of(run, &step.name);
            let figure = |name: &&str| found.and_then(|found| found.get(*name).copied());
            cells.extend(names.keys().map(|name| table::optional(figure(name))));
            rows.add_row(cells);
        }
    }
    rows
}
