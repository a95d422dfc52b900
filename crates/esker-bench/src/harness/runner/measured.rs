//! What the threads of a step bring back, before it becomes a report.
//!
//! The measured threads and the writer beside them return an [`Outcome`]. The runner adds what the
//! watching threads saw and what the process used, which makes it [`Measured`].

use crate::engines::EngineBytes;
use crate::harness::measure::meter::Totals;
use crate::harness::measure::probe::Idle;
use crate::harness::measure::process::ProcessUse;
use crate::harness::step_report::RatePoint;
use crate::{Error, Result};

/// What one step yields before it is summarised.
pub struct Measured {
    pub threads: Vec<Totals>,
    pub writer: Option<Totals>,
    pub idle: Idle,
    pub rates: Vec<RatePoint>,
    pub used: ProcessUse,
    pub engine_bytes: Option<EngineBytes>,
    pub text: Option<String>,
}

/// What the threads of a step return.
pub struct Outcome {
    pub threads: Vec<Totals>,
    pub writer: Option<Totals>,
    pub text: Option<String>,
}

/// The result of a thread; a failure if it panicked.
pub fn joined<T>(result: std::thread::Result<T>) -> Result<T> {
    result.map_err(|_| {
        Error::Failed("a thread of the benchmark panicked; its message is above".into())
    })
}
