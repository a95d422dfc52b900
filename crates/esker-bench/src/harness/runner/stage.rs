//! Steps with a loop of their own: those of experiments, measured like workloads.
//!
//! A stage brings only its loop; threads, clock, monitor and counters are the runner's. A runner can
//! also *pass* a workload that an earlier process finished on this database: the steps that follow then
//! draw the same numbers, and are checked, as if the workload had just been run.

use super::measured::{Outcome, joined};
use super::plan::Plan;
use super::run::Runner;
use crate::harness::check::Checksum;
use crate::harness::measure::meter::{Meter, Shared, Totals};
use crate::harness::step_report::WorkloadReport;
use crate::{Kind, Result, Workload};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A step with a loop of its own.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    /// Its name in reports.
    pub name: String,
    /// Measured threads.
    pub threads: usize,
    /// Operations of all threads.
    pub operations: u64,
    /// How long it lasts, if that is what ends it.
    pub length: Option<Duration>,
    /// Operations of one call.
    pub batch: usize,
    /// Whether it writes in batches only because the engine's single writes are not cheap.
    pub batched_instead: bool,
    /// Operations that one latency spans.
    pub per_latency: u64,
    /// Whether it is one call on the database.
    pub maintenance: bool,
}

/// What a thread of a stage does with its meter. The number is the thread's.
pub type Loop<'a> = &'a (dyn Fn(usize, &mut Meter<'_>) -> Result<()> + Sync);

impl Runner<'_> {
    /// Runs a stage; returns its report and the checksum of its threads' results, which the caller
    /// checks.
    pub fn stage(&mut self, stage: &Stage, body: Loop<'_>) -> Result<(WorkloadReport, Checksum)> {
        let kind = if stage.maintenance { Kind::Compact } else { Kind::FillRandom };
        let workload = Workload { kind, threads: None };
        let plan = Plan {
            threads: stage.threads.max(1),
            operations: stage.length.is_none().then_some(stage.operations),
            length: stage.length,
            batch: stage.batch.max(1),
            batched_instead: stage.batched_instead,
            per_latency: stage.per_latency.max(1),
            sample_every: None,
            label: Some(stage.name.clone()),
            ..Plan::new(self.state.settings, workload, true)
        };
        let measured = self.account(&plan, &|shared| threads(plan.threads, shared, body))?;
        self.step += 1;
        let mut checksum = Checksum::default();
        measured.threads.iter().for_each(|thread| checksum.merge(thread.checksum));
        Ok((self.state.summarise(&plan, measured), checksum))
    }

    /// Notes that a stage was finished by an earlier process.
    pub fn pass_stage(&mut self) {
        self.step += 1;
    }

    /// Notes that a workload was finished by an earlier process. `settled` tells whether what it wrote
    /// is known. Amplification counts from where this process opened the database.
    pub fn pass(&mut self, workload: Workload, settled: bool) {
        let kind = workload.kind;
        match kind {
            Kind::FillSeq | Kind::FillUniqueRandom => {
                (0..self.state.settings.num).for_each(|number| self.state.live.insert(number));
            }
            // Keys that were all present before.
            Kind::Overwrite | Kind::UpdateRandom => (),
            _ if kind.writes() => self.state.truth.forget(),
            _ => (),
        }
        if kind.writes() || kind.has_background_writer() {
            let seed = self.stream().shared_seed();
            self.state.truth.wrote(seed, !settled);
        }
        self.step += 1;
    }
}

fn threads(count: usize, shared: &Shared, body: Loop<'_>) -> Result<Outcome> {
    let run = |thread: usize| -> Result<Totals> {
        let mut meter = Meter::new(shared, Some(thread));
        let done = body(thread, &mut meter);
        if done.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        done.map(|()| meter.finish())
    };
    let run = &run;
    let threads = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|thread| scope.spawn(move || run(thread))).collect();
        let joined = threads.into_iter().map(|thread| joined(thread.join())?);
        joined.collect::<Result<Vec<Totals>>>()
    })?;
    Ok(Outcome { threads, writer: None, text: None })
}
