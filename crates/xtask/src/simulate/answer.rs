//! What the simulator says: the figures of one question.

use super::clock::{Clock, Question};
use super::load::Load;
use esker::internals::compaction::policy;
use serde_json::{Value, json};

/// The answer to one question.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) ratio: f64,
    pub(crate) load: Load,
    pub(crate) calm: bool,
    pub(crate) tiers: usize,
    pub(crate) runs_max: usize,
    pub(crate) rate: f64,
    pub(crate) amplification: f64,
    /// By flushes, pushes and compactions.
    pub(crate) parts: [f64; 3],
    pub(crate) runs: [f64; 2],
    pub(crate) space: [f64; 2],
    pub(crate) disk_max: f64,
    pub(crate) debt: f64,
    pub(crate) pause: f64,
    pub(crate) job_bytes: [f64; 2],
}

/// Simulates until the state is steady, and then measures.
pub(crate) fn answer(question: Question, calm: bool) -> Answer {
    let mut clock = Clock::new(question);
    let data = question.ratio * question.flush_bytes;
    if question.load == Load::Fill {
        clock.write(f64::INFINITY, |clock| clock.world.live_bytes() >= data);
    } else if question.load == Load::Shrink {
        clock.write(f64::INFINITY, |clock| clock.world.live_bytes() <= data / 10.0);
    } else {
        clock.write(question.warm * data, |_| false);
        clock.seen.restart();
        clock.write(question.measured * data, |_| false);
    }
    let seen = &clock.seen;
    let tree = &clock.tree;
    let live = tree.bases as u64;
    Answer {
        ratio: question.ratio,
        load: question.load,
        calm,
        tiers: tree.tiers(),
        runs_max: policy::runs_max(live, question.flush_bytes as u64, tree.tiers()),
        rate: seen.rate(),
        amplification: seen.amplification(),
        parts: [seen.flushes, seen.pushes, seen.compactions].map(|bytes| bytes / seen.user),
        runs: [seen.runs.mean(), seen.path_max as f64],
        space: [seen.space.mean(), seen.space.max],
        disk_max: seen.disk.max,
        debt: seen.debt.mean(),
        pause: seen.pause.max,
        job_bytes: [seen.push_bytes.max, seen.compaction_bytes.max],
    }
}

impl Answer {
    pub(crate) fn cells(&self) -> Vec<String> {
        let pair =
            |[mean, max]: [f64; 2], digits: usize| format!("{mean:.digits$} / {max:.digits$}");
        let mib = |bytes: f64| format!("{:.0}", bytes / f64::from(1 << 20));
        let [flushes, pushes, compactions] = self.parts;
        vec![
            format!("{:?}", self.load).to_lowercase(),
            format!("{}", self.ratio),
            if self.calm { "calm" } else { "full" }.to_owned(),
            format!("{} × {}", self.tiers, self.runs_max),
            format!("{:.2}", self.amplification),
            format!("{flushes:.2} + {pushes:.2} + {compactions:.2}"),
            format!("{:.1} / {:.0}", self.runs[0], self.runs[1]),
            pair(self.space, 2),
            format!("{:.2}", self.disk_max),
            format!("{:.3}", self.debt),
            format!("{:.0}", self.pause * 1e3),
            format!("{} / {}", mib(self.job_bytes[0]), mib(self.job_bytes[1])),
            format!("{:.1}", self.rate / 1e6),
        ]
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "load": format!("{:?}", self.load).to_lowercase(),
            "ratio": self.ratio,
            "calm": self.calm,
            "tiers": self.tiers,
            "runs_max_of_a_span": self.runs_max,
            "amplification": self.amplification,
            "flushes": self.parts[0],
            "pushes": self.parts[1],
            "compactions": self.parts[2],
            "runs_mean": self.runs[0],
            "runs_max": self.runs[1],
            "space_mean": self.space[0],
            "space_max": self.space[1],
            "disk_max": self.disk_max,
            "debt": self.debt,
            "longest_pause": self.pause,
            "push_bytes_max": self.job_bytes[0],
            "compaction_bytes_max": self.job_bytes[1],
            "bytes_per_second": self.rate,
        })
    }
}
