//! Simulates the tree: how often a byte is written, over how many runs a key lies, and how much
//! space is taken, for data of any size and without any data.
//!
//! The clock is virtual, and the tree is sizes and bounds (`simulate/tree.rs`). Everything that is
//! decided is decided by the engine's own policy (`compaction::policy`), so what is tuned here holds
//! there. `docs/tiers.md` has the figures, `docs/compaction.md` the plots.

mod answer;
mod clock;
mod load;
mod plot;
mod seen;
mod tree;

#[cfg(test)]
mod tests;

use crate::workspace::Result;
use answer::{Answer, answer};
use clock::Question;
use comfy_table::{CellAlignment, Table, presets};
pub(crate) use load::Load;
use serde_json::Value;
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
