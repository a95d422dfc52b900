//! Simulates how writers are slowed: the engine's own pacer on a virtual clock, against loads and
//! devices that change.
//!
//! The world is sizes (`pacing/world.rs`); what is decided is decided by the engine
//! (`esker::internals::admission`, `compaction::policy`). The same question has the same answer.
//! docs/pacing.md has the plots and says what they show.

mod answer;
mod load;
mod plot;
mod world;

#[cfg(test)]
mod tests;

use crate::workspace::Result;
use answer::answer;
use comfy_table::{CellAlignment, Table, presets};
use load::Load;
use std::path::Path;
use world::Rule;

/// What to simulate.
#[derive(Debug, clap::Args)]
pub(crate) struct Pacing {
    /// What is written. Several are simulated one after the other; all, if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    load: Vec<Load>,
    /// Seconds of the virtual clock.
    #[arg(long, default_value_t = SECONDS)]
    seconds: u64,
    /// Draws the plots of docs/plots instead.
    #[arg(long)]
    plots: bool,
}

/// Seconds of the virtual clock, unless it is asked for more.
const SECONDS: u64 = 60;

const COLUMNS: [&str; 10] = [
    "load",
    "rule",
    "MB/s",
    "spread of 5 s",
    "limit changes by",
    "stopped",
    "memory, peak",
    "path, peak",
    "longest wait, ms",
    "asked for a put",
];

/// Simulates and prints, or draws.
pub(crate) fn run(workspace: &Path, asked: &Pacing) -> Result<()> {
    if asked.plots {
        return plot::draw(&workspace.join("docs/plots"), asked.seconds);
    }
    let loads = if asked.load.is_empty() { Load::ALL.to_vec() } else { asked.load.clone() };
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(COLUMNS);
    for load in loads {
        for rule in [Rule::Paced, Rule::StopsOnly] {
            table.add_row(answer(load, rule, asked.seconds).cells());
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}
