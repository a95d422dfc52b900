//! The life of a thread of a step: which loop it runs, and how it ends.
//!
//! Measured threads run the loop of the workload. The writer beside them puts random keys at a fixed rate
//! until they are done. A thread that fails tells the others to stop.

use super::job::Job;
use crate::engines::Direction;
use crate::harness::measure::meter::{Meter, Totals};
use crate::harness::measure::probe::Bell;
use crate::{Kind, Result};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<'a> Job<'a> {
    /// The whole life of measured thread `thread`.
    pub fn run(&'a self, thread: usize) -> Result<Totals> {
        let result = self.run_kind(thread);
        if result.is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        result
    }

    fn run_kind(&'a self, thread: usize) -> Result<Totals> {
        let mut hand = self.hand(thread)?;
        let share = self.plan.share(thread);
        let left = share.end - share.start;
        let mut meter = Meter::new(self.shared, Some(thread));
        if let Some(pace) = &self.plan.pace {
            meter.follow(pace.turns(thread, self.plan));
        }
        match self.plan.workload.kind {
            Kind::DeleteRandom | Kind::DeleteSeq => hand.write(&mut meter, left, true)?,
            Kind::UpdateRandom => hand.update(&mut meter, left)?,
            Kind::ReadMissing => hand.read(&mut meter, left, true)?,
            Kind::ReadRandom | Kind::ReadHot | Kind::ReadWhileWriting => {
                hand.read(&mut meter, left, false)?;
            }
            Kind::MultiReadRandom => hand.multi_read(&mut meter, left)?,
            Kind::SeekRandom | Kind::SeekRandomWhileWriting => hand.seek(&mut meter, left)?,
            Kind::ReadSeq => hand.iterate(&mut meter, left, Direction::Forward)?,
            Kind::ReadReverse => hand.iterate(&mut meter, left, Direction::Reverse)?,
            kind if kind.is_mix() => hand.mixed(&mut meter, left)?,
            _ => hand.write(&mut meter, left, false)?,
        }
        Ok(meter.finish())
    }

    /// The writer beside the measured threads: random puts at a fixed rate, until they are done.
    pub fn write_beside(&'a self, done: &Bell) -> Result<Totals> {
        let result = self.write_paced(done);
        if result.is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        result
    }

    fn write_paced(&'a self, done: &Bell) -> Result<Totals> {
        let mut hand = self.hand(self.plan.threads)?;
        let mut meter = Meter::new(self.shared, None);
        let rate = self.settings.write_rate;
        let turn = (rate > 0).then(|| Duration::from_secs_f64(1.0 / rate as f64));
        let mut next = meter.restart();
        loop {
            if let Some(turn) = turn {
                // A writer that fell behind catches up without waiting.
                next += turn;
                let wait = next.saturating_duration_since(meter.restart());
                if !wait.is_zero() && done.wait(wait) {
                    return Ok(meter.finish());
                }
                meter.restart();
            }
            let number = hand.next();
            hand.put(number, &mut meter.totals)?;
            if !meter.lap(1) {
                return Ok(meter.finish());
            }
        }
    }
}
