//! The plots of docs/plots: write amplification, runs over a key and space over the data in flushes.

use super::answer::Answer;
use crate::workspace::Result;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::{
    ChartBuilder, Color, DashedLineSeries, IntoDrawingArea, LineSeries, PathElement, RGBColor,
    SVGBackend, SeriesLabelPosition, ShapeStyle, WHITE,
};
use std::path::Path;

const SIZE: (u32, u32) = (800, 360);
const TEXT: (&str, u32) = ("sans-serif", 14);
/// Blue and orange: told apart by colour-blind people too (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 2] = [RGBColor(0, 114, 178), RGBColor(213, 94, 0)];
const GREY: RGBColor = RGBColor(110, 110, 110);
/// Points for each tenfold of r.
const POINTS: i32 = 3;
const DECADES: std::ops::RangeInclusive<i32> = 1..=6;

/// A figure that is drawn: the file, the label of its axis, and its mean and greatest value.
struct Figure {
    file: &'static str,
    label: &'static str,
    values: fn(&Answer) -> (f64, Option<f64>),
}

const FIGURES: [Figure; 3] = [
    Figure {
        file: "amplification.svg",
        label: "bytes written for a user byte",
        values: |answer| (answer.amplification, None),
    },
    Figure {
        file: "runs.svg",
        label: "runs over a key: mean, dashed: most",
        values: |answer| (answer.runs[0], Some(answer.runs[1])),
    },
    Figure {
        file: "space.svg",
        label: "space ÷ live: mean, dashed: peak",
        values: |answer| (answer.space[0], Some(answer.space[1])),
    },
];

fn failed(cause: impl std::fmt::Display) -> String {
    format!("cannot draw: {cause}")
}

/// Draws all figures into a directory. `answers` simulates full speed and a calm rate at an r.
pub(super) fn draw(directory: &Path, answers: impl Fn(f64) -> [Answer; 2]) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(failed)?;
    let last = (DECADES.end() - DECADES.start()) * POINTS;
    let ratio = |step| 10_f64.powf(f64::from(DECADES.start() * POINTS + step) / f64::from(POINTS));
    let all: Vec<_> = (0..=last).map(|step| answers(ratio(step).round())).collect();
    for figure in FIGURES {
        let text = image(&figure, &all)?;
        std::fs::write(directory.join(figure.file), text).map_err(failed)?;
    }
    Ok(())
}

fn image(figure: &Figure, all: &[[Answer; 2]]) -> Result<String> {
    let mut drawing = String::new();
    {
        let root = SVGBackend::with_string(&mut drawing, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let most = |answer: &Answer| {
            let (mean, most) = (figure.values)(answer);
            most.unwrap_or(mean)
        };
        let top = all.iter().flatten().map(most).fold(1.0, f64::max) * 1.1;
        let decades = 10_f64.powi(*DECADES.start())..10_f64.powi(*DECADES.end());
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(decades.log_scale(), 0.0..top)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .label_style(TEXT)
            .x_desc("data ÷ flush (r)")
            .y_desc(figure.label)
            .x_label_formatter(&|ratio| format!("{ratio:.0}"))
            .light_line_style(GREY.mix(0.08))
            .bold_line_style(GREY.mix(0.25))
            .draw()
            .map_err(failed)?;
        for (which, name) in ["full speed", "a tenth of it"].into_iter().enumerate() {
            let style = ShapeStyle::from(COLOURS[which]).stroke_width(2);
            let point = |pair: &[Answer; 2]| (pair[which].ratio, (figure.values)(&pair[which]));
            let line = all.iter().map(point).map(|(ratio, (mean, _))| (ratio, mean));
            let series = chart.draw_series(LineSeries::new(line, style)).map_err(failed)?;
            series.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            let dashed: Vec<_> = all
                .iter()
                .map(point)
                .filter_map(|(ratio, (_, most))| Some((ratio, most?)))
                .collect();
            let dashed = DashedLineSeries::new(dashed, 6, 4, style.stroke_width(1));
            chart.draw_series(dashed).map_err(failed)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .label_font(TEXT)
            .draw()
            .map_err(failed)?;
        root.present().map_err(failed)?;
    }
    Ok(drawing)
}
