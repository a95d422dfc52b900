//! Executes workloads on one open database, one after the other.
//!
//! A step has a plan (`plan`): how many threads, how many operations or how long. The measured
//! threads work (`job`) while two more watch: one samples their counters for the rates of single
//! seconds and the progress bar (`monitor`), one is idle to know the machine's own pauses. When
//! the measured threads have ended, everything is merged into a report (`summary`).
//!
//! The runner also remembers what lies between steps: which keys are present, and how much was
//! written to the device and by users since open.

mod job;
mod monitor;
mod plan;
mod stage;
mod summary;
mod verify;
mod ycsb;

use crate::dist::Stream;
use crate::engine::{Engine, EngineBytes};
use crate::keys::KeyFormat;
use crate::live::LiveKeys;
use crate::measure::caches;
use crate::measure::meter::{Meter, Shared, Totals};
use crate::measure::probe::{self, Bell, Idle};
use crate::measure::process::ProcessUse;
use crate::measure::server::Workers;
use crate::report::{RatePoint, WorkloadReport};
use crate::settings::Settings;
use crate::values::ValuePool;
use crate::{EngineSpec, Error, Interrupt, Kind, Result, Workload};
use job::Job;
use plan::{Pace, Plan};
pub use stage::Stage;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use verify::Truth;

/// Runs workloads on one database.
pub struct Runner<'a> {
    settings: &'a Settings,
    engine: &'a dyn Engine,
    spec: &'a EngineSpec,
    /// The directory of the database, if it has files.
    dir: Option<&'a Path>,
    truth: Truth,
    keys: KeyFormat,
    pool: ValuePool,
    live: LiveKeys,
    live_large: LiveKeys,
    records: AtomicU64,
    inserted: AtomicU64,
    round: u64,
    step: u64,
    progress: bool,
    interrupt: Interrupt,
    workers: Workers,
    opened: ProcessUse,
    user_bytes_written: u64,
}

/// What one step yields before it is summarised.
struct Measured {
    threads: Vec<Totals>,
    writer: Option<Totals>,
    idle: Idle,
    rates: Vec<RatePoint>,
    used: ProcessUse,
    engine_bytes: Option<EngineBytes>,
    text: Option<String>,
}

impl<'a> Runner<'a> {
    /// For a database that was just opened.
    pub fn new(
        settings: &'a Settings,
        spec: &'a EngineSpec,
        engine: &'a dyn Engine,
        dir: Option<&'a Path>,
        round: u64,
        progress: bool,
    ) -> Result<Self> {
        let workers = Workers::new(engine.server());
        Ok(Self {
            settings,
            engine,
            spec,
            dir,
            truth: Truth::new(settings.use_existing_db),
            keys: settings.key_format()?,
            pool: ValuePool::new(
                settings.largest_value(),
                settings.compression_ratio,
                settings.seed,
            ),
            live: LiveKeys::new(settings.capacity()),
            records: AtomicU64::new(settings.num),
            inserted: AtomicU64::new(settings.num),
            live_large: LiveKeys::new(settings.large_keys()),
            round,
            step: 0,
            progress,
            interrupt: Interrupt::default(),
            opened: workers.now(),
            workers,
            user_bytes_written: 0,
        })
    }

    /// Has steps end as soon as `interrupt` is asked, with an error in place of their reports.
    pub fn end_when(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Runs the next workload: as fast as it goes, or in an open loop at the rate that was asked for,
    /// or as fast as it goes and then once for each share of the rate that it kept up.
    pub fn run(
        &mut self,
        workload: Workload,
        seen: &mut dyn FnMut(WorkloadReport) -> Result<()>,
    ) -> Result<()> {
        let settings = self.settings;
        let plan = Plan::new(settings, workload, self.spec.cheap_single_writes());
        if !workload.kind.can_be_paced() {
            return seen(self.step(plan)?);
        }
        if let Some(rate) = settings.rate {
            return seen(self.step(plan.paced(Pace { rate, share: None }))?);
        }
        let closed = self.step(plan.clone())?;
        let sustained = closed.ops_per_second;
        seen(closed)?;
        for percent in &settings.rate_percent {
            let rate = sustained * percent / 100.0;
            let pace = Pace { rate, share: Some((sustained, *percent)) };
            seen(self.step(plan.clone().paced(pace))?)?;
        }
        Ok(())
    }

    fn step(&mut self, plan: Plan) -> Result<WorkloadReport> {
        let kind = plan.workload.kind;
        let measured = self.account(&plan, &|shared| {
            if kind.is_maintenance() {
                let (totals, text) = self.maintain(kind, shared)?;
                return Ok(Outcome { threads: vec![totals], writer: None, text });
            }
            self.work(&plan, shared)
        })?;
        if self.interrupt.asked() {
            // It ended before its time, so neither its figures nor its results can be judged.
            return Err(Error::Failed(crate::suite::INTERRUPTED.into()));
        }
        let stream = self.stream();
        self.step += 1;
        let beside = measured.writer.is_some();
        let check = match self.spec.answers() {
            true => self.check(&plan, &stream, &measured.threads, beside)?,
            false => None,
        };
        Ok(WorkloadReport { check, ..self.summarise(&plan, measured) })
    }

    /// Runs the step and counts what it used.
    fn account(&self, plan: &Plan, work: &dyn Fn(&Shared) -> Result<Outcome>) -> Result<Measured> {
        if self.settings.drop_caches {
            caches::drop_now()?;
        }
        self.workers.reset_peak_memory();
        let engine_before = self.engine.bytes_written();
        let before = self.workers.now();
        let shared = Shared::new(plan.threads, plan.length, plan.sample_every);
        let mut measured = self.measure(plan, &shared, work)?;
        measured.used = self.workers.now().since(&before).without(&measured.idle.own);
        measured.engine_bytes =
            engine_before.and_then(|before| Some(self.engine.bytes_written()?.since(&before)));
        Ok(measured)
    }

    /// The stream of the first thread of the step under way.
    fn stream(&self) -> Stream {
        Stream { seed: self.settings.seed, round: self.round, step: self.step, thread: 0 }
    }

    /// Starts the watchers, runs the step, and collects what everybody saw.
    fn measure(
        &self,
        plan: &Plan,
        shared: &Shared,
        work: &dyn Fn(&Shared) -> Result<Outcome>,
    ) -> Result<Measured> {
        let bell = Bell::default();
        let bar = monitor::progress_bar(plan, self.progress);
        std::thread::scope(|scope| {
            let probe = scope.spawn(|| probe::watch(&bell));
            let (workers, rung, bar) = (&self.workers, &bell, bar.as_ref());
            let watched = monitor::Watched { shared, plan, interrupt: &self.interrupt };
            let monitor = scope.spawn(move || monitor::watch(&watched, workers, rung, bar));
            let outcome = work(shared);
            bell.ring();
            let idle = joined(probe.join())?;
            let rates = joined(monitor.join())?;
            let Outcome { threads, writer, text } = outcome?;
            let (used, engine_bytes) = (ProcessUse::default(), None);
            Ok(Measured { threads, writer, idle, rates, used, engine_bytes, text })
        })
    }

    /// Runs the measured threads and the writer beside them.
    fn work(&self, plan: &Plan, shared: &Shared) -> Result<Outcome> {
        let done = Bell::default();
        let job = Job {
            settings: self.settings,
            engine: self.engine,
            keys: self.keys,
            pool: &self.pool,
            live: &self.live,
            records: &self.records,
            inserted: &self.inserted,
            live_large: &self.live_large,
            shared,
            plan,
            stream: self.stream(),
        };
        std::thread::scope(|scope| {
            let beside = plan.workload.kind.has_background_writer();
            let writer = beside.then(|| scope.spawn(|| job.write_beside(&done)));
            let job = &job;
            let threads: Vec<_> =
                (0..plan.threads).map(|thread| scope.spawn(move || job.run(thread))).collect();
            let threads: Vec<Result<Totals>> =
                threads.into_iter().map(|thread| joined(thread.join())?).collect();
            shared.stop.store(true, Ordering::Relaxed);
            done.ring();
            let writer = writer.map(|writer| joined(writer.join())?).transpose();
            // The writer's failure comes first: it stopped the others.
            let writer = writer?;
            Ok(Outcome { threads: threads.into_iter().collect::<Result<_>>()?, writer, text: None })
        })
    }

    /// One call on the database, timed as one operation.
    fn maintain(&self, kind: Kind, shared: &Shared) -> Result<(Totals, Option<String>)> {
        let mut meter = Meter::new(shared, Some(0));
        let mut text = None;
        match kind {
            Kind::Flush => self.engine.flush()?,
            Kind::Compact => self.engine.compact()?,
            Kind::WaitForIdle => self.engine.wait_idle()?,
            _ => text = Some(self.engine.stats()),
        }
        meter.lap(1);
        Ok((meter.finish(), text))
    }
}

/// What the threads of a step return.
struct Outcome {
    threads: Vec<Totals>,
    writer: Option<Totals>,
    text: Option<String>,
}

fn joined<T>(result: std::thread::Result<T>) -> Result<T> {
    result.map_err(|_| {
        Error::Failed("a thread of the benchmark panicked; its message is above".into())
    })
}

#[cfg(test)]
mod tests;
