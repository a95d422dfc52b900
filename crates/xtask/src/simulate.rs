//! Simulates the tree: how often a byte is written, over how many runs a key lies, and how much
//! space is taken, for data of any size and without any data.
//!
//! The clock is virtual, and the tree is sizes and bounds (`simulate/tree.rs`). Everything that is
//! decided is decided by the engine's own policy (`compaction::policy`), so what is tuned here holds
//! there. `docs/compaction.md` has the figures and the plots.

mod clock;
mod load;
mod plot;
mod seen;
mod tree;

#[cfg(test)]
mod tests;

use crate::workspace::Result;
use clock::{Clock, Question};
use comfy_table::{CellAlignment, Table, presets};
use esker::internals::compaction::policy;
pub(crate) use load::Load;
use serde_json::{Value, json};
use std::path::Path;

/// What to simulate.
#[derive(Debug, clap::Args)]
pub(crate) struct Simulate {
    /// Data over the bytes of a flush. Several give a line each.
    #[arg(long, value_delimiter = ',', default_values_t = [30.0, 300.0, 3_000.0, 10_000.0])]
    ratio: Vec<f64>,
    /// What is written. Several are simulated one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Load::Uniform])]
    load: Vec<Load>,
    /// Bytes of a flush.
    #[arg(long, default_value_t = 8 << 20)]
    flush_bytes: u64,
    /// Megabytes per second that writers offer.
    #[arg(long, default_value_t = 120.0)]
    rate: f64,
    /// Threads that push and compact.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Megabytes per second that each of them writes.
    #[arg(long, default_value_t = 150.0)]
    speed: f64,
    /// Without tiers: a row of partitions only.
    #[arg(long)]
    flat: bool,
    /// Data written before it is measured, as a multiple of the data.
    #[arg(long, default_value_t = 2.0)]
    warm: f64,
    /// Data written while it is measured, as a multiple of the data.
    #[arg(long, default_value_t = 2.0)]
    measured: f64,
    /// The seed for the keys at which runs are counted.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Draws the plots of docs/plots instead.
    #[arg(long)]
    plots: bool,
}

/// The answer to one question.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) ratio: f64,
    load: Load,
    calm: bool,
    tiers: usize,
    runs_max: usize,
    rate: f64,
    pub(crate) amplification: f64,
    /// By flushes, pushes and compactions.
    parts: [f64; 3],
    pub(crate) runs: [f64; 2],
    pub(crate) space: [f64; 2],
    disk_max: f64,
    debt: f64,
    pause: f64,
    job_bytes: [f64; 2],
}

/// Simulates until the state is steady, and then measures.
fn answer(question: Question, calm: bool) -> Answer {
    let mut clock = Clock::new(question);
    let data = question.ratio * question.flush_bytes;
    if question.load == Load::Fill {
        clock.write(f64::INFINITY, |clock| clock.world.live_bytes() >= data);
    } else if question.load == Load::Shrink {
        clock.write(f64::INFINITY, |clock| clock.world.live_bytes() <= data / 10.0);
    } else {
        clock.write(question.warm * data, |_| false);
        clock.seen.restart();
        clock.write(question.measured * data, |_| false);
    }
    let seen = &clock.seen;
    let tree = &clock.tree;
    let live = tree.bases as u64;
    Answer {
        ratio: question.ratio,
        load: question.load,
        calm,
        tiers: tree.tiers(),
        runs_max: policy::runs_max(live, question.flush_bytes as u64, tree.tiers()),
        rate: seen.rate(),
        amplification: seen.amplification(),
        parts: [seen.flushes, seen.pushes, seen.compactions].map(|bytes| bytes / seen.user),
        runs: [seen.runs.mean(), seen.path_max as f64],
        space: [seen.space.mean(), seen.space.max],
        disk_max: seen.disk.max,
        debt: seen.debt.mean(),
        pause: seen.pause.max,
        job_bytes: [seen.push_bytes.max, seen.compaction_bytes.max],
    }
}

impl Simulate {
    fn question(&self, load: Load, ratio: f64) -> Question {
        Question {
            load,
            ratio,
            flush_bytes: self.flush_bytes as f64,
            rate: self.rate * 1e6,
            workers: self.workers,
            speed: self.speed * 1e6,
            flat: self.flat,
            warm: self.warm,
            measured: self.measured,
            seed: self.seed,
        }
    }

    /// Full speed, and then an open loop at a tenth of it.
    fn both(&self, load: Load, ratio: f64) -> [Answer; 2] {
        let question = self.question(load, ratio);
        // Above, half of the data must do: a compaction of each partition, and some more.
        let times = if ratio > PLAIN_RATIO { 0.5 } else { f64::INFINITY };
        let (warm, measured) = (question.warm.min(times), question.measured.min(times));
        let question = Question { warm, measured, ..question };
        let full = answer(question, false);
        let calm = answer(Question { rate: full.rate / 10.0, ..question }, true);
        [full, calm]
    }
}

impl Answer {
    fn cells(&self) -> Vec<String> {
        let pair =
            |[mean, max]: [f64; 2], digits: usize| format!("{mean:.digits$} / {max:.digits$}");
        let mib = |bytes: f64| format!("{:.0}", bytes / f64::from(1 << 20));
        let [flushes, pushes, compactions] = self.parts;
        vec![
            format!("{:?}", self.load).to_lowercase(),
            format!("{}", self.ratio),
            if self.calm { "calm" } else { "full" }.to_owned(),
            format!("{} × {}", self.tiers, self.runs_max),
            format!("{:.2}", self.amplification),
            format!("{flushes:.2} + {pushes:.2} + {compactions:.2}"),
            format!("{:.1} / {:.0}", self.runs[0], self.runs[1]),
            pair(self.space, 2),
            format!("{:.2}", self.disk_max),
            format!("{:.3}", self.debt),
            format!("{:.0}", self.pause * 1e3),
            format!("{} / {}", mib(self.job_bytes[0]), mib(self.job_bytes[1])),
            format!("{:.1}", self.rate / 1e6),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "load": format!("{:?}", self.load).to_lowercase(),
            "ratio": self.ratio,
            "calm": self.calm,
            "tiers": self.tiers,
            "runs_max_of_a_span": self.runs_max,
            "amplification": self.amplification,
            "flushes": self.parts[0],
            "pushes": self.parts[1],
            "compactions": self.parts[2],
            "runs_mean": self.runs[0],
            "runs_max": self.runs[1],
            "space_mean": self.space[0],
            "space_max": self.space[1],
            "disk_max": self.disk_max,
            "debt": self.debt,
            "longest_pause": self.pause,
            "push_bytes_max": self.job_bytes[0],
            "compaction_bytes_max": self.job_bytes[1],
            "bytes_per_second": self.rate,
        })
    }
}

/// Up to this r it takes seconds to write all data twice.
const PLAIN_RATIO: f64 = 2e4;

const COLUMNS: [&str; 13] = [
    "load",
    "r",
    "speed",
    "tiers × T",
    "WA",
    "flush + push + compaction",
    "runs mean / max",
    "space mean / peak",
    "disk peak",
    "debt",
    "pause, ms",
    "push / compaction, MiB",
    "MB/s",
];

/// Simulates and prints, or draws.
pub(crate) fn run(workspace: &Path, simulate: &Simulate) -> Result<()> {
    if simulate.plots {
        return plot::draw(&workspace.join("docs/plots"), |ratio| {
            simulate.both(Load::Uniform, ratio)
        });
    }
    let mut answers = Vec::new();
    for load in &simulate.load {
        for ratio in &simulate.ratio {
            answers.extend(simulate.both(*load, *ratio));
        }
    }
    if simulate.json {
        println!("{}", Value::Array(answers.iter().map(Answer::json).collect()));
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(COLUMNS);
    for answer in &answers {
        table.add_row(answer.cells());
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}
