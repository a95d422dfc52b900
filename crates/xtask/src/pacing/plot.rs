//! The plots of docs/plots about pacing: what is written over time, and the fills that decide.

use super::answer::{Answer, answer};
use super::load::Load;
use super::world::{Rule, Sample};
use crate::workspace::Result;
use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Color, DrawingArea, IntoDrawingArea, LineSeries, PathElement, RGBColor,
    SVGBackend, SeriesLabelPosition, ShapeStyle, WHITE,
};
use std::path::Path;

const SIZE: (u32, u32) = (800, 420);
const TEXT: (&str, u32) = ("sans-serif", 14);
/// Blue, orange and green: told apart by colour-blind people too (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 3] = [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115)];
const GREY: RGBColor = RGBColor(110, 110, 110);
/// A point is the mean of so many samples.
const BINNED: usize = 20;

/// A line: its name, and its value at a sample.
type Line = (&'static str, fn(&Sample) -> f64);

const ABOVE: [Line; 2] = [
    ("written, MB/s", |sample| sample.written / 1e6),
    ("limit, MB/s", |sample| sample.limit.map_or(f64::NAN, |limit| limit / 1e6)),
];
const BELOW: [Line; 3] = [
    ("memtables over their budget", |sample| sample.memory),
    ("fill of the fullest path", |sample| sample.path.max(0.0)),
    ("longest wait, s", |sample| sample.wait),
];

/// The file and the load of each plot.
const FIGURES: [(&str, Load); 5] = [
    ("pacing-overload.svg", Load::Overload),
    ("pacing-bursts.svg", Load::Bursts),
    ("pacing-slow-disk.svg", Load::SlowDisk),
    ("pacing-stall.svg", Load::Stall),
    ("pacing-recorded.svg", Load::Recorded),
];

fn failed(cause: impl std::fmt::Display) -> String {
    format!("cannot draw: {cause}")
}

/// Draws all figures into a directory.
pub(super) fn draw(directory: &Path, seconds: u64) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(failed)?;
    for (file, load) in FIGURES {
        let text = image(&answer(load, Rule::Paced, seconds))?;
        std::fs::write(directory.join(file), text).map_err(failed)?;
    }
    Ok(())
}

fn image(answer: &Answer) -> Result<String> {
    let mut drawing = String::new();
    {
        let root = SVGBackend::with_string(&mut drawing, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let (above, below) = root.split_vertically(SIZE.1 / 2);
        chart(&above, answer, &ABOVE, "")?;
        chart(&below, answer, &BELOW, "seconds")?;
        root.present().map_err(failed)?;
    }
    Ok(drawing)
}

/// The means of each bin; a bin without any value has none.
fn points(samples: &[Sample], value: fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let bins = samples.chunks(BINNED).filter_map(|bin| {
        let values: Vec<f64> = bin.iter().map(value).filter(|value| value.is_finite()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some((bin.first()?.at, mean)).filter(|_| !values.is_empty())
    });
    bins.collect()
}

fn chart(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    answer: &Answer,
    lines: &[Line],
    below: &str,
) -> Result<()> {
    let all: Vec<_> =
        lines.iter().map(|(name, value)| (*name, points(&answer.samples, *value))).collect();
    let top = all.iter().flat_map(|(_, points)| points).map(|(_, value)| *value);
    let top = top.fold(1.0, f64::max) * 1.1;
    let end = answer.samples.last().map_or(1.0, |sample| sample.at);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(if below.is_empty() { 22 } else { 38 })
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..end, 0.0..top)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .label_style(TEXT)
        .x_desc(below)
        .light_line_style(GREY.mix(0.08))
        .bold_line_style(GREY.mix(0.25))
        .draw()
        .map_err(failed)?;
    for ((name, points), colour) in all.into_iter().zip(COLOURS) {
        let style = ShapeStyle::from(colour).stroke_width(1);
        let series = chart.draw_series(LineSeries::new(points, style)).map_err(failed)?;
        series.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .label_font(TEXT)
        .draw()
        .map_err(failed)
}
