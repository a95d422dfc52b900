//! Rates over time as an SVG image.
//!
//! There is one panel for each workload that lasted long enough, with one line for each run, coloured
//! by engine. The rate has a logarithmic axis, so that a drop from a hundred thousand operations a
//! second to ten is visible at its full size. A second (or a sample) in which nothing was completed is
//! drawn at the bottom of the panel, so a pause is a spike and not a hole.
//!
//! The points are those of `--sample-ops` if they were asked for, else one a second.

use crate::harness::step_report::WorkloadReport;
use crate::report::{Report, RunReport};
use crate::{EngineSpec, Error, Result};
use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::{
    ChartBuilder, Color, DrawingArea, IntoDrawingArea, IntoFont, LineSeries, PathElement, RGBColor,
    SVGBackend, SeriesLabelPosition, ShapeStyle, WHITE,
};

const WIDTH: u32 = 1_000;
const HEIGHT: u32 = 300;
const TEXT: (&str, u32) = ("sans-serif", 14);
const TITLE: (&str, u32) = ("sans-serif", 18);
/// Blue, orange, green, purple: told apart by colour-blind people too (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
const GREY: RGBColor = RGBColor(110, 110, 110);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One run's course through one workload: seconds and operations a second.
struct Course {
    engine: EngineSpec,
    points: Vec<(f64, f64)>,
}

/// A plot of its own among others.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// Lines: the engine, and pairs of seconds and operations a second.
    pub courses: Vec<(EngineSpec, Vec<(f64, f64)>)>,
}

/// Draws all workloads of all runs; the text of an SVG file.
pub fn draw(report: &Report) -> Result<String> {
    image(&panels(&report.runs), &report.settings.engines)
}

/// Draws these panels, one below the other; the text of an SVG file. `engines` decides on colours.
pub fn draw_panels(panels: &[Panel], engines: &[EngineSpec]) -> Result<String> {
    let course = |(engine, points): &(EngineSpec, Vec<(f64, f64)>)| Course {
        engine: engine.clone(),
        points: points.clone(),
    };
    let of = |panel: &Panel| (panel.title.clone(), panel.courses.iter().map(course).collect());
    image(&panels.iter().map(of).collect::<Vec<_>>(), engines)
}

fn image(panels: &[(String, Vec<Course>)], engines: &[EngineSpec]) -> Result<String> {
    let mut drawing = String::new();
    {
        let size = (WIDTH, HEIGHT * panels.len().max(1) as u32);
        let root = SVGBackend::with_string(&mut drawing, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        if panels.is_empty() {
            let text = "Every workload ended within two seconds: ask for more operations.";
            root.draw_text(text, &TEXT.into_font().color(&GREY), (40, 40)).map_err(failed)?;
        }
        let areas = root.split_evenly((panels.len().max(1), 1));
        for ((name, courses), area) in panels.iter().zip(&areas) {
            panel(area, name, courses, engines)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(drawing)
}

fn failed(cause: impl std::fmt::Display) -> Error {
    Error::Failed(format!("cannot draw the plot: {cause}"))
}

/// Workloads with a course, in order.
fn panels(runs: &[RunReport]) -> Vec<(String, Vec<Course>)> {
    let Some(first) = runs.first() else { return Vec::new() };
    let steps = first.workloads.iter().enumerate();
    steps
        .map(|(step, workload)| {
            let reports =
                runs.iter().filter_map(|run| Some((run.engine.clone(), run.workloads.get(step)?)));
            let courses = reports.map(|(engine, report)| Course { engine, points: points(report) });
            let lasting = courses.filter(|course| course.points.len() > 1).collect();
            (format!("{}. {}", step + 1, workload.name), lasting)
        })
        .filter(|(_, courses): &(_, Vec<_>)| !courses.is_empty())
        .collect()
}

fn points(report: &WorkloadReport) -> Vec<(f64, f64)> {
    if report.samples.len() < 2 {
        let rates = report.rates.iter();
        return rates.map(|point| (point.seconds, point.ops_per_second)).collect();
    }
    let mut last = (0.0, 0);
    let mut points = Vec::with_capacity(report.samples.len());
    for sample in &report.samples {
        let length = (sample.seconds - last.0).max(1e-9);
        points.push((sample.seconds, (sample.operations - last.1) as f64 / length));
        last = (sample.seconds, sample.operations);
    }
    points
}

fn panel(area: &Area<'_>, name: &str, courses: &[Course], engines: &[EngineSpec]) -> Result<()> {
    let all = || courses.iter().flat_map(|course| &course.points);
    let end = all().map(|(seconds, _)| *seconds).fold(1e-3, f64::max);
    let high = all().map(|(_, rate)| *rate).fold(1.0, f64::max);
    let low = all().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0).fold(high, f64::min);
    let stalled = all().any(|(_, rate)| *rate <= 0.0);
    // Whole decades, and one more below where something stood still.
    let bottom = 10_f64.powf(low.log10().floor() - f64::from(u8::from(stalled)));
    let top = 10_f64.powf((high * 1.01).log10().ceil());

    let mut chart = ChartBuilder::on(area)
        .caption(name, TITLE)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..end, (bottom..top).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .label_style(TEXT)
        .x_desc("seconds")
        .y_desc("operations a second")
        .x_label_formatter(&|seconds| match end {
            end if end < 0.1 => format!("{seconds:.3}"),
            end if end < 10.0 => format!("{seconds:.1}"),
            _ => format!("{seconds:.0}"),
        })
        .y_label_formatter(&|rate| short(*rate))
        .light_line_style(GREY.mix(0.08))
        .bold_line_style(GREY.mix(0.25))
        .draw()
        .map_err(failed)?;
    for (i, engine) in engines.iter().enumerate() {
        let style = ShapeStyle::from(COLOURS[i % COLOURS.len()].mix(0.85)).stroke_width(1);
        let mut labelled = false;
        for course in courses.iter().filter(|course| course.engine == *engine) {
            let line = course.points.iter().map(|(x, y)| (*x, y.max(bottom)));
            let series = chart.draw_series(LineSeries::new(line, style)).map_err(failed)?;
            if !std::mem::replace(&mut labelled, true) {
                series
                    .label(engine.name())
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            }
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .label_font(TEXT)
        .draw()
        .map_err(failed)
}

fn short(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.0}M", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.0}K", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::lookup::spec;
    use crate::experiments::suite::{Observer, run};
    use crate::{Settings, Workload};

    struct Silent;
    impl Observer for Silent {}

    fn report(sample_ops: Option<u64>) -> Report {
        let settings = Settings {
            engines: vec![spec("mem")],
            workloads: Workload::parse_list("fillseq,readrandom:2").unwrap(),
            num: 1_000,
            sample_ops,
            ..Settings::default()
        };
        run(&settings, &mut Silent).unwrap()
    }

    #[test]
    fn each_workload_with_a_course_is_a_panel() {
        let drawing = draw(&report(Some(50))).unwrap();
        assert!(drawing.starts_with("<svg"), "{drawing}");
        for expected in ["1. fillseq", "2. readrandom:2", "mem", "seconds", "<polyline"] {
            assert!(drawing.contains(expected), "no {expected} in {drawing}");
        }
    }

    #[test]
    fn a_short_run_says_so() {
        assert!(draw(&report(None)).unwrap().contains("ask for more operations"));
    }

    #[test]
    fn standing_still_is_drawn_at_the_bottom() {
        let mut report = report(Some(50));
        let samples = &mut report.runs[0].workloads[0].samples;
        let last = *samples.last().unwrap();
        samples.push(crate::harness::step_report::Sample { seconds: last.seconds + 5.0, ..last });
        assert!(draw(&report).unwrap().contains("<polyline"));
    }
}
