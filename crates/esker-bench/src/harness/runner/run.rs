//! Runs workloads on one open database, one after the other.
//!
//! A step has a plan (`plan`): how many threads, how many operations or how long. The measured threads
//! work (`thread`) while two more watch: one samples their counters for the rates of single seconds and
//! the progress bar (`monitor`), one is idle and so sees the machine's own pauses. When the measured
//! threads have ended, their results are checked (`verify`) and merged into a report (`summary`).

use super::job::Job;
use super::measured::{Measured, Outcome, joined};
use super::monitor;
use super::plan::{Pace, Plan};
use super::state::State;
use crate::engines::{Engine, EngineSpec};
use crate::harness::dist::Stream;
use crate::harness::interrupt::{INTERRUPTED, Interrupt};
use crate::harness::measure::caches;
use crate::harness::measure::meter::{Meter, Shared, Totals};
use crate::harness::measure::probe::{self, Bell};
use crate::harness::measure::process::ProcessUse;
use crate::harness::settings::Settings;
use crate::harness::step_report::WorkloadReport;
use crate::harness::workload::{Kind, Workload};
use crate::{Error, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs workloads on one database.
pub struct Runner<'a> {
    pub(super) state: State<'a>,
    spec: &'a EngineSpec,
    records: AtomicU64,
    inserted: AtomicU64,
    round: u64,
    pub(super) step: u64,
    progress: bool,
    interrupt: Interrupt,
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
        Ok(Self {
            state: State::new(settings, engine, dir)?,
            spec,
            records: AtomicU64::new(settings.num),
            inserted: AtomicU64::new(settings.num),
            round,
            step: 0,
            progress,
            interrupt: Interrupt::default(),
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
        let settings = self.state.settings;
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
            return Err(Error::Failed(INTERRUPTED.into()));
        }
        let stream = self.stream();
        self.step += 1;
        let beside = measured.writer.is_some();
        let check = match self.spec.answers() {
            true => self.state.check(&plan, &stream, &measured.threads, beside)?,
            false => None,
        };
        Ok(WorkloadReport { check, ..self.state.summarise(&plan, measured) })
    }

    /// Runs the step and counts what it used.
    pub(super) fn account(
        &self,
        plan: &Plan,
        work: &dyn Fn(&Shared) -> Result<Outcome>,
    ) -> Result<Measured> {
        if self.state.settings.drop_caches {
            caches::drop_now()?;
        }
        self.state.workers.reset_peak_memory();
        let engine_before = self.state.engine.bytes_written();
        let before = self.state.workers.now();
        let shared = Shared::new(plan.threads, plan.length, plan.sample_every);
        let mut measured = self.measure(plan, &shared, work)?;
        measured.used = self.state.workers.now().since(&before).without(&measured.idle.own);
        measured.engine_bytes = engine_before
            .and_then(|before| Some(self.state.engine.bytes_written()?.since(&before)));
        Ok(measured)
    }

    /// The stream of the first thread of the step under way.
    pub(super) fn stream(&self) -> Stream {
        Stream { seed: self.state.settings.seed, round: self.round, step: self.step, thread: 0 }
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
            let (workers, rung, bar) = (&self.state.workers, &bell, bar.as_ref());
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
            settings: self.state.settings,
            engine: self.state.engine,
            keys: self.state.keys,
            pool: &self.state.pool,
            live: &self.state.live,
            records: &self.records,
            inserted: &self.inserted,
            live_large: &self.state.live_large,
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
            Kind::Flush => self.state.engine.flush()?,
            Kind::Compact => self.state.engine.compact()?,
            Kind::WaitForIdle => self.state.engine.wait_idle()?,
            _ => text = Some(self.state.engine.stats()),
        }
        meter.lap(1);
        Ok((meter.finish(), text))
    }
}
