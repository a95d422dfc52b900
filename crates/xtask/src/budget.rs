//! What a memory budget buys: the rates of loads and reads under several budgets, on data of one size.
//!
//! docs/operations.md has the table and the plot, and says how to choose a budget by them.

use crate::programs::{call, cargo};
use crate::workspace::{Result, target};
use clap::Args;
use comfy_table::Table;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::{
    ChartBuilder, Circle, Color, IntoDrawingArea, LineSeries, PathElement, RGBColor, SVGBackend,
    SeriesLabelPosition, ShapeStyle, WHITE,
};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const WORKLOADS: &str = "fillrandom,waitforidle,readrandom,seekrandom";
/// What is shown of them, and by which colour: told apart by colour-blind people too (Okabe and Ito, 2008).
const SHOWN: [(&str, &str, RGBColor); 3] = [
    ("fillrandom", "puts in random order", RGBColor(0, 114, 178)),
    ("readrandom", "gets, settled", RGBColor(213, 94, 0)),
    ("seekrandom", "seeks with 10 entries, settled", RGBColor(0, 158, 115)),
];
const GREY: RGBColor = RGBColor(110, 110, 110);
const SIZE: (u32, u32) = (800, 400);
const TEXT: (&str, u32) = ("sans-serif", 14);
const ENTRY_BYTES: u64 = 116;

#[derive(Debug, Args)]
pub(crate) struct Budget {
    /// Entries of 16 + 100 bytes.
    #[arg(long, default_value_t = 10_000_000)]
    num: u64,
    /// Gets and seeks, each.
    #[arg(long, default_value_t = 300_000)]
    reads: u64,
    /// Budgets in MiB, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096])]
    mib: Vec<u64>,
    /// Also draws the plot of docs/plots.
    #[arg(long)]
    plot: bool,
}

/// What was measured under one budget.
struct Row {
    mib: u64,
    /// Operations a second of the workloads that are shown.
    rates: Vec<f64>,
    /// The most that was resident.
    peak_mib: f64,
}

/// Measures, prints, and perhaps draws.
pub(crate) fn run(workspace: &Path, asked: &Budget) -> Result<()> {
    let mut build = cargo();
    call(build.current_dir(workspace).args(["build", "--quiet", "--release", "-p", "esker-cli"]))?;
    let program = target(workspace).join("release/esker");
    let rows: Vec<Row> =
        asked.mib.iter().map(|mib| measure(&program, asked, *mib)).collect::<Result<_>>()?;
    let data = (asked.num * ENTRY_BYTES) as f64 / f64::from(1 << 20);
    let mut table = Table::new();
    let names = SHOWN.iter().map(|(_, name, _)| *name);
    table.set_header(
        ["MiB", "data ÷ budget"].into_iter().chain(names).chain(["most resident, MiB"]),
    );
    for row in &rows {
        let rates = row.rates.iter().map(|rate| format!("{rate:.0}"));
        let first = [row.mib.to_string(), format!("{:.1}", data / row.mib as f64)];
        table.add_row(first.into_iter().chain(rates).chain([format!("{:.0}", row.peak_mib)]));
    }
    println!("{table}");
    if asked.plot {
        let image = image(&rows, data).map_err(|cause| format!("cannot draw: {cause}"))?;
        let path = workspace.join("docs/plots/budget.svg");
        std::fs::write(&path, image)
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

fn measure(program: &Path, asked: &Budget, mib: u64) -> Result<Row> {
    let mut bench = Command::new(program);
    bench.args(["bench", "--json", "--workloads", WORKLOADS, "--memory", &format!("{mib}M")]);
    bench.args(["--num", &asked.num.to_string(), "--reads", &asked.reads.to_string()]);
    let output = bench.output().map_err(|e| format!("cannot run esker: {e}"))?;
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|e| {
        format!("the report of esker: {e}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let workloads = report["runs"][0]["workloads"].as_array().cloned().unwrap_or_default();
    let number = |workload: &Value, field: &str| workload[field].as_f64().unwrap_or(0.0);
    let rate = |(name, ..): &(&str, _, _)| {
        let found = workloads.iter().find(|workload| workload["name"] == *name);
        let rate = found.map(|workload| number(workload, "ops_per_second"));
        rate.filter(|rate| *rate > 0.0).ok_or_else(|| format!("{name} is not in the report"))
    };
    let peak = workloads.iter().map(|workload| number(workload, "peak_memory_bytes"));
    Ok(Row {
        mib,
        rates: SHOWN.iter().map(rate).collect::<Result<_>>()?,
        peak_mib: peak.fold(0.0, f64::max) / f64::from(1 << 20),
    })
}

fn image(rows: &[Row], data_mib: f64) -> std::result::Result<String, Box<dyn std::error::Error>> {
    let mut drawing = String::new();
    {
        let root = SVGBackend::with_string(&mut drawing, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let rates = || rows.iter().flat_map(|row| &row.rates).copied();
        let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
        let budgets = rows.iter().map(|row| row.mib as f64);
        let (first, last) = (budgets.clone().fold(f64::MAX, f64::min), budgets.fold(0.0, f64::max));
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(
                (first * 0.9..last * 1.1).log_scale(),
                (least * 0.7..most * 1.4).log_scale(),
            )?;
        chart
            .configure_mesh()
            .label_style(TEXT)
            .x_desc(format!("memory budget, MiB, for {data_mib:.0} MiB of data"))
            .y_desc("operations per second")
            .x_label_formatter(&|mib| format!("{mib:.0}"))
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .light_line_style(GREY.mix(0.08))
            .bold_line_style(GREY.mix(0.25))
            .draw()?;
        for (which, (_, name, colour)) in SHOWN.into_iter().enumerate() {
            let style = ShapeStyle::from(colour).stroke_width(2);
            let points: Vec<_> =
                rows.iter().map(|row| (row.mib as f64, row.rates[which])).collect();
            let series = chart.draw_series(LineSeries::new(points.clone(), style))?;
            series.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            let dots = points.into_iter().map(|point| Circle::new(point, 3, colour.filled()));
            chart.draw_series(dots)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .label_font(TEXT)
            .draw()?;
        root.present()?;
    }
    Ok(drawing)
}
