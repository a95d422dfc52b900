//! The samples of runs: how far an unfinished run came, and two plots.
//!
//! Everything is read from the files of samples, so a run that was stopped is drawn as far as it came.

use super::folder::Folder;
use crate::harness::step_report::Sample;
use crate::report::RunReport;
use crate::report::plot::{self, Panel};
use crate::{EngineSpec, Result};
use serde::Serialize;
use std::path::Path;

/// A run that took samples and is not done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unfinished {
    /// The engine.
    pub engine: EngineSpec,
    /// The round, from 1.
    pub round: usize,
    /// How long it ran, until its last sample.
    pub seconds: f64,
    /// How far it came.
    pub operations: u64,
}

/// The samples of a run.
#[derive(Debug)]
pub struct Course {
    engine: EngineSpec,
    round: usize,
    samples: Vec<Sample>,
}

/// The zoom shows at least so many seconds on either side of a pause.
const AROUND: f64 = 2.0;
/// It shows at least so many times the length of the pause.
const PAUSES_AROUND: f64 = 3.0;

impl Course {
    /// The samples of all runs that took some.
    pub fn all<'a>(folder: &Folder, runs: impl Iterator<Item = &'a RunReport>) -> Vec<Self> {
        let of = |run: &RunReport| Self {
            engine: run.engine.clone(),
            round: run.round,
            samples: read(&folder.samples(&run.engine, run.round)),
        };
        runs.map(of).filter(|course| !course.samples.is_empty()).collect()
    }

    /// How far it came.
    pub fn reached(&self) -> Unfinished {
        let last = self.samples.last().copied().unwrap_or_default();
        Unfinished {
            engine: self.engine.clone(),
            round: self.round,
            seconds: last.seconds,
            operations: last.operations,
        }
    }

    /// Whether this is the course of that run.
    pub fn is_of(&self, run: &RunReport) -> bool {
        self.engine == run.engine && self.round == run.round
    }

    /// Seconds, and operations a second since the sample before.
    fn rates(&self) -> Vec<(f64, f64)> {
        let mut last = Sample::default();
        let rate = |sample: &Sample| {
            let seconds = (sample.seconds - last.seconds).max(1e-9);
            let operations = sample.operations.saturating_sub(last.operations);
            last = *sample;
            (sample.seconds, operations as f64 / seconds)
        };
        self.samples.iter().map(rate).collect()
    }

    /// The stretch around the longest time between two samples, counted from where it begins.
    fn zoom(&self) -> Panel {
        let mut longest = (0.0, 0.0);
        let mut last = 0.0;
        for sample in &self.samples {
            if sample.seconds - last > longest.1 {
                longest = (last, sample.seconds - last);
            }
            last = sample.seconds;
        }
        let (at, length) = longest;
        let around = AROUND.max(PAUSES_AROUND * length);
        let (from, to) = ((at - around).max(0.0), at + length + around);
        let inside = self.rates().into_iter().filter(|(seconds, _)| (from..=to).contains(seconds));
        let points = inside.map(|(seconds, rate)| (seconds - from, rate)).collect();
        let title = format!("{}, round {}: from {from:.1} s", self.engine, self.round);
        Panel { title, courses: vec![(self.engine.clone(), points)] }
    }
}

/// The rate over the whole run, and the stretch around the longest pause of each.
pub fn plots(courses: &[Course], engines: &[EngineSpec]) -> Result<(String, String)> {
    let all = courses.iter().map(|course| (course.engine.clone(), course.rates())).collect();
    let whole = Panel { title: "the whole run".into(), courses: all };
    let zooms: Vec<Panel> = courses.iter().map(Course::zoom).collect();
    Ok((plot::draw_panels(&[whole], engines)?, plot::draw_panels(&zooms, engines)?))
}

/// Every whole line of a file of samples; nothing if there is no such file.
fn read(path: &Path) -> Vec<Sample> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let sample = |line: &str| {
        let mut cells = line.split(',');
        let (seconds, operations) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
        Some(Sample { seconds, operations })
    };
    whole.lines().filter_map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::lookup::spec;
    use crate::experiments::published::SAMPLES_HEAD;

    #[test]
    fn a_line_that_was_cut_short_is_no_sample() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        std::fs::write(&path, format!("{SAMPLES_HEAD}\n0.5,10000,0.5,2\n1.5,20000,1,1\n2.5,300"))
            .unwrap();
        let samples = read(&path);
        assert_eq!(samples.len(), 2);
        let course = Course { engine: spec("mem"), round: 1, samples };
        assert_eq!((course.reached().operations, course.reached().seconds), (20_000, 1.5));
        assert!(read(&dir.path().join("nothing")).is_empty());
    }

    #[test]
    fn the_zoom_lies_around_the_longest_pause() {
        let second = |i: u64| i as f64 * 0.1 + if i > 500 { 5.0 } else { 0.0 };
        let samples =
            (1..=1_000).map(|i| Sample { seconds: second(i), operations: i * 10_000 }).collect();
        let course = Course { engine: spec("mem"), round: 1, samples };
        let Panel { title, courses } = course.zoom();
        assert!(title.contains("from 34.7 s"), "{title}");
        let points = &courses[0].1;
        let slow = points.iter().filter(|(_, rate)| *rate < 10_000.0).count();
        assert_eq!(slow, 1);
        assert!(points.len() < 400, "{}", points.len());
        let (rate, pauses) = plots(&[course], &[spec("mem")]).unwrap();
        assert!(rate.starts_with("<svg") && pauses.contains("from 34.7 s"));
    }
}
