//! Samples the counters of the measured threads: rates of single seconds, and the progress bar.
//!
//! The bar is drawn on standard error and only on a terminal; in a pipe nothing is drawn and the
//! monitor wakes once a second.

use super::plan::Plan;
use crate::Interrupt;
use crate::harness::measure::meter::Shared;
use crate::harness::measure::probe::Bell;
use crate::harness::measure::process::ProcessUse;
use crate::harness::measure::server::Workers;
use crate::harness::step_report::RatePoint;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const POINT: Duration = Duration::from_secs(1);
/// What is left at the end counts as a second if no more than this is missing.
const SHORTEST: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(100);

/// A bar for the step, if one is wanted and there is a terminal.
pub fn progress_bar(plan: &Plan, wanted: bool) -> Option<ProgressBar> {
    if !wanted || plan.workload.kind.is_maintenance() {
        return None;
    }
    // A step that time ends is measured in milliseconds.
    let (length, template) = match (plan.operations, plan.length) {
        (Some(operations), _) => {
            (operations, "{msg:22} {wide_bar} {percent:>3} %  {prefix}  {eta} left")
        }
        (None, Some(length)) => {
            (length.as_millis() as u64, "{msg:22} {wide_bar} {percent:>3} %  {prefix}  {eta} left")
        }
        (None, None) => return None,
    };
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.set_message(plan.name());
    Some(bar)
}

/// A step under way.
pub struct Watched<'a> {
    pub shared: &'a Shared,
    pub plan: &'a Plan,
    /// Ends the step.
    pub interrupt: &'a Interrupt,
}

/// Watches until the bell rings; the points of whole seconds.
pub fn watch(
    watched: &Watched<'_>,
    workers: &Workers,
    bell: &Bell,
    bar: Option<&ProgressBar>,
) -> Vec<RatePoint> {
    let Watched { shared, plan, interrupt } = *watched;
    let mut points = Vec::new();
    let mut series = Series::new(shared, workers);
    loop {
        let now = Instant::now();
        let to_point = series.next.saturating_duration_since(now);
        let nap = if bar.is_some() { to_point.min(REDRAW) } else { to_point };
        let rung = bell.wait(nap);
        if interrupt.asked() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        let now = Instant::now();
        if now >= series.next || rung && now + SHORTEST >= series.next {
            points.push(series.point(shared));
        }
        if let Some(bar) = bar {
            draw(bar, shared, plan);
            if rung {
                bar.finish_and_clear();
            }
        }
        if rung {
            return points;
        }
    }
}

fn draw(bar: &ProgressBar, shared: &Shared, plan: &Plan) {
    let operations = shared.operations();
    let elapsed = shared.start.elapsed();
    let rate = operations as f64 / elapsed.as_secs_f64().max(1e-9);
    bar.set_prefix(format!("{rate:.0} ops/s"));
    bar.set_position(match plan.operations {
        Some(_) => operations,
        None => elapsed.as_millis() as u64,
    });
}

/// Differences between one second and the next.
struct Series<'a> {
    workers: &'a Workers,
    next: Instant,
    last: RatePoint,
    used: ProcessUse,
}

impl<'a> Series<'a> {
    fn new(shared: &Shared, workers: &'a Workers) -> Self {
        let (next, used) = (shared.start + POINT, workers.now());
        Self { workers, next, last: RatePoint::default(), used }
    }

    fn point(&mut self, shared: &Shared) -> RatePoint {
        let used = self.workers.now();
        let seconds = shared.start.elapsed().as_secs_f64();
        let operations = shared.operations();
        let length = (seconds - self.last.seconds).max(1e-9);
        let change = used.since(&self.used);
        let point = RatePoint {
            seconds,
            operations,
            ops_per_second: (operations - self.last.operations) as f64 / length,
            device_written_per_second: change.device_written.map(|bytes| bytes as f64 / length),
            device_read_per_second: change.device_read.map(|bytes| bytes as f64 / length),
        };
        // Seconds that passed while this thread did not run are not made up for.
        while self.next <= Instant::now() {
            self.next += POINT;
        }
        (self.last, self.used) = (point, used);
        point
    }
}
