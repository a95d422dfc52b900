//! The lines of a workload: latencies by percentile, and rates over time.
//!
//! Rates may have a point for every second of many hours. If there are more points than the picture has
//! columns, each column shows its lowest and its highest point, so neither a pause nor a burst
//! disappears.

use super::chart::{Axis, Line, Picture, decades, lines, round_ticks};
use super::error::PageError;
use super::group::Workload;
use super::input::Step;

/// Where the axis of percentiles begins, in nines: left of the median.
const START: f64 = 0.2;
/// Columns of a course.
const COLUMNS: usize = 200;
/// The lowest latency drawn, in microseconds: nothing is measured below the clock's grain.
const LATENCY_MIN_US: f64 = 0.01;

/// Both forms of a picture of rates.
#[derive(Debug, Clone)]
pub struct Rates {
    /// With a logarithmic axis.
    pub logarithmic: Picture,
    /// With a linear axis that begins at zero.
    pub linear: Picture,
}

/// How far right a quantile stands: one step for each nine.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-12).log10()
}

/// Quantiles below one, in ascending order: of the whole curve if the report has it.
fn quantiles(step: &Step) -> Vec<(f64, f64)> {
    let curve = step.latency_curve.iter().map(|(percentile, us)| (percentile.0 / 100.0, us.0));
    let curve: Vec<(f64, f64)> =
        curve.filter(|(quantile, _)| (0.0..1.0).contains(quantile)).collect();
    if curve.len() > 1 {
        return curve;
    }
    let Some(latency) = &step.latency else { return Vec::new() };
    let mut points = vec![(0.5, latency.p50_us.0)];
    points.extend(latency.p90_us.map(|figure| (0.9, figure.0)));
    points.push((0.99, latency.p99_us.0));
    points.extend(latency.p999_us.map(|figure| (0.999, figure.0)));
    points.extend(latency.p9999_us.map(|figure| (0.9999, figure.0)));
    points
}

/// The latencies of one round: at each quantile, and the longest at quantile 1.
fn curve(step: &Step) -> Option<Vec<(f64, f64)>> {
    let mut curve = quantiles(step);
    curve.push((1.0, step.latency.as_ref()?.max_us.0));
    Some(curve)
}

/// The curve of the typical round of each column that has latencies.
pub fn curves(workload: &Workload) -> Vec<(usize, Vec<(f64, f64)>)> {
    let columns = workload.rounds.iter().enumerate();
    let curves = columns
        .filter_map(|(column, rounds)| Some((column, curve(rounds.get(typical(rounds)?)?)?)));
    curves.collect()
}

/// Draws latencies by percentile; nothing if there are none.
pub fn latencies(workload: &Workload) -> Result<Option<Picture>, PageError> {
    let curves = curves(workload);
    let all = || curves.iter().flat_map(|(_, curve)| curve);
    let values = || all().map(|(_, value)| value.max(LATENCY_MIN_US));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if curves.is_empty() {
        return Ok(None);
    }
    // The longest stands one step behind the last quantile.
    let last = all().map(|(q, _)| *q).filter(|q| *q < 1.0).fold(0.5, f64::max);
    let end = nines(last).round().clamp(1.0, 6.0) + 1.0;
    let mut ticks = vec![(nines(0.5), "50".to_owned())];
    // With many nines there is room for every second label.
    let every = if end > 6.0 { 2 } else { 1 };
    for nines in (every..end as usize).step_by(every) {
        let text = match nines {
            1 => "90".to_owned(),
            2 => "99".to_owned(),
            more => format!("99.{}", "9".repeat(more - 2)),
        };
        ticks.push((nines as f64, text));
    }
    ticks.push((end, "max".into()));
    let x =
        Axis { name: "percent of operations that took no longer", low: START, high: end, ticks };
    let (bottom, top) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let top = top.max(bottom + 1);
    let y = Axis {
        name: "microseconds",
        low: f64::from(bottom),
        high: f64::from(top),
        ticks: decades(bottom, top),
    };
    let drawn: Vec<Line> = curves
        .iter()
        .map(|(column, curve)| {
            let place = |q: f64| if q < 1.0 { nines(q) } else { end };
            // What lies between the last label and the longest, and left of the axis, is not drawn.
            let drawn = |q: f64| q >= 1.0 || (nines(q) >= START && nines(q) <= end - 1.0);
            let points = curve.iter().filter(|(q, _)| drawn(*q));
            let points = points.map(|(q, us)| (place(*q), us.max(LATENCY_MIN_US).log10()));
            Line {
                series: *column,
                faint: false,
                marked: curve.len() < 8,
                points: points.collect(),
            }
        })
        .collect();
    lines(&x, &y, &drawn).map(Some)
}

/// A course with few enough points to draw: those of the lowest and the highest rate of each
/// column.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= 2 * COLUMNS {
        return points.to_vec();
    }
    let chunks = points.chunks(points.len().div_ceil(COLUMNS));
    let ends = chunks.flat_map(|chunk| {
        let by_rate = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let mut ends: Vec<(f64, f64)> =
            [chunk.iter().min_by(by_rate), chunk.iter().max_by(by_rate)]
                .into_iter()
                .flatten()
                .copied()
                .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends
    });
    ends.collect()
}

/// Seconds and operations a second: of the samples, if they were asked for.
pub fn points(step: &Step) -> Vec<(f64, f64)> {
    if step.samples.len() > 1 {
        let mut last = (0.0, 0.0);
        let samples = step.samples.iter().map(|sample| {
            let (seconds, operations) = (sample.seconds.0, sample.operations.0);
            let length = (seconds - last.0).max(1e-9);
            let rate = (operations - last.1).max(0.0) / length;
            last = (seconds, operations);
            (seconds, rate.min(1e12))
        });
        return samples.collect();
    }
    step.rates.iter().map(|point| (point.seconds.0, point.ops_per_second.0)).collect()
}

/// Which round of a column has the median rate; it is drawn in full, the others faintly.
fn typical(rounds: &[Step]) -> Option<usize> {
    let mut order: Vec<usize> = (0..rounds.len()).collect();
    order.sort_by(|a, b| rounds[*a].ops_per_second.0.total_cmp(&rounds[*b].ops_per_second.0));
    order.get(rounds.len() / 2).copied()
}

/// Draws rates over time; nothing if no round lasted for two seconds.
pub fn rates(workload: &Workload) -> Result<Option<Rates>, PageError> {
    let mut courses = Vec::new();
    for (series, rounds) in workload.rounds.iter().enumerate() {
        let typical = typical(rounds);
        for (round, step) in rounds.iter().enumerate() {
            let points = thinned(&points(step));
            if points.len() > 1 {
                let faint = typical != Some(round);
                courses.push(Line { series, faint, marked: false, points });
            }
        }
    }
    if courses.is_empty() {
        return Ok(None);
    }
    let all = || courses.iter().flat_map(|course| &course.points);
    let end = all().map(|(seconds, _)| *seconds).fold(1e-3, f64::max);
    let high = all().map(|(_, rate)| *rate).fold(1.0, f64::max);
    let low = all().map(|(_, rate)| *rate).filter(|rate| *rate > 0.0).fold(high, f64::min);
    let stalled = all().any(|(_, rate)| *rate <= 0.0);
    // Whole decades, and one more below where something stood still.
    let bottom = low.log10().floor() as i32 - i32::from(stalled);
    let top = (high.log10().ceil() as i32).max(bottom + 1);
    let x = Axis { name: "seconds", low: 0.0, high: end, ticks: round_ticks(end) };
    let logarithmic = Axis {
        name: "operations a second",
        low: f64::from(bottom),
        high: f64::from(top),
        ticks: decades(bottom, top),
    };
    let linear =
        Axis { name: "operations a second", low: 0.0, high: high * 1.05, ticks: round_ticks(high) };
    let on_decades: Vec<Line> = courses
        .iter()
        .map(|course| {
            let logarithm = |rate: f64| rate.max(10_f64.powi(bottom)).log10();
            let points = course.points.iter().map(|(x, rate)| (*x, logarithm(*rate))).collect();
            Line { points, ..course.clone() }
        })
        .collect();
    Ok(Some(Rates {
        logarithmic: lines(&x, &logarithmic, &on_decades)?,
        linear: lines(&x, &linear, &courses)?,
    }))
}

/// The mean rate in each tenth of the typical round; nothing if it is too short.
pub fn tenths(rounds: &[Step]) -> Option<Vec<f64>> {
    let points = points(rounds.get(typical(rounds)?)?);
    let end = points.last().filter(|_| points.len() >= 2)?.0;
    let mut operations = [0.0; 10];
    let mut from = 0.0_f64;
    for (to, rate) in points {
        // What was completed since the point before, spread evenly over that time.
        for (tenth, sum) in operations.iter_mut().enumerate() {
            let (start, stop) = (end * tenth as f64 / 10.0, end * (tenth + 1) as f64 / 10.0);
            *sum += rate * (to.min(stop) - from.max(start)).max(0.0);
        }
        from = to;
    }
    Some(operations.iter().map(|sum| sum / (end / 10.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_pauses_and_bursts() {
        let mut course: Vec<(f64, f64)> = (1..=50_000).map(|i| (f64::from(i), 1_000.0)).collect();
        course[17_001].1 = 0.0;
        course[33_333].1 = 9_000.0;
        let thin = thinned(&course);
        assert!(thin.len() <= 2 * COLUMNS + 2);
        assert!(thin.iter().any(|(_, rate)| *rate == 0.0));
        assert!(thin.iter().any(|(_, rate)| *rate == 9_000.0));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }
}
