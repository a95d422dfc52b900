//! What came out of a simulation.

use super::load::Load;
use super::world::{Rule, Sample, World};
use esker::internals::admission::PaceMode;

/// The part of the time after which a load has settled.
const SETTLED: f64 = 1.0 / 6.0;
/// Throughput is compared over windows of so many seconds.
const WINDOW: f64 = 5.0;

/// The figures of a simulation, once it has settled.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) load: Load,
    pub(super) rule: Rule,
    pub(super) samples: Vec<Sample>,
    pub(super) puts: Vec<u64>,
    pub(super) asked: u64,
    /// Bytes per second.
    pub(super) rate: f64,
    /// The fastest window less the slowest, over the mean.
    pub(super) spread: f64,
    /// By how much the limit in force changes from one sample to the next, over its mean, on average.
    pub(super) unrest: f64,
    /// The part of the time in which writers are stopped.
    pub(super) stopped: f64,
    /// The greatest fills of the memtables and of a path.
    pub(super) memory: f64,
    pub(super) path: f64,
    /// The longest wait of a put, in seconds, also before it settled.
    pub(super) wait: f64,
}

/// Simulates so many seconds.
pub(super) fn answer(load: Load, rule: Rule, seconds: u64) -> Answer {
    let mut world = World::new(load, rule);
    world.run(seconds);
    let samples = std::mem::take(&mut world.samples);
    let settled = &samples[(samples.len() as f64 * SETTLED) as usize..];
    let count = settled.len().max(1) as f64;
    let mean = |what: &dyn Fn(&Sample) -> f64| settled.iter().map(what).sum::<f64>() / count;
    let most = |what: &dyn Fn(&Sample) -> f64| settled.iter().map(what).fold(0.0, f64::max);
    let rate = mean(&|sample| sample.written);
    let windows = windows(settled);
    let (least, greatest) =
        windows.iter().fold((f64::MAX, 0.0_f64), |(a, b), it| (a.min(*it), b.max(*it)));
    let limits: Vec<f64> = settled.iter().filter_map(|sample| sample.limit).collect();
    let changes: f64 = limits.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    Answer {
        load,
        rule,
        rate,
        spread: (greatest - least).max(0.0) / rate.max(1.0),
        unrest: changes.abs() / limits.iter().sum::<f64>().max(1.0),
        stopped: mean(&|sample| f64::from(sample.mode == PaceMode::Stopped)),
        memory: most(&|sample| sample.memory),
        path: most(&|sample| sample.path),
        wait: samples.iter().map(|sample| sample.wait).fold(0.0, f64::max),
        puts: world.puts,
        asked: world.asked,
        samples,
    }
}

/// The mean throughput of each window.
pub(super) fn windows(samples: &[Sample]) -> Vec<f64> {
    let Some(first) = samples.first() else { return Vec::new() };
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for sample in samples {
        let window = ((sample.at - first.at) / WINDOW) as usize;
        if sums.len() <= window {
            sums.push((0.0, 0.0));
        }
        if let Some((sum, count)) = sums.last_mut() {
            (*sum, *count) = (*sum + sample.written, *count + 1.0);
        }
    }
    // The last one is cut off.
    sums.pop();
    sums.into_iter().map(|(sum, count)| sum / count).collect()
}

impl Answer {
    pub(super) fn cells(&self) -> [String; 10] {
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        [
            self.load.name().to_owned(),
            match self.rule {
                Rule::Paced => "paced",
                Rule::StopsOnly => "stops only",
            }
            .to_owned(),
            format!("{:.1}", self.rate / 1e6),
            percent(self.spread),
            format!("{:.1} %", self.unrest * 100.0),
            percent(self.stopped),
            percent(self.memory),
            format!("{:.2}", self.path),
            format!("{:.0}", self.wait * 1e3),
            format!("{:.1}", self.asked as f64 / self.puts.iter().sum::<u64>().max(1) as f64),
        ]
    }
}
