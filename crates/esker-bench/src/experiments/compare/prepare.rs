//! From a user's settings to those of a comparison.
//!
//! What a plain run leaves to each engine is fixed here for all of them: the memory, the check of
//! results, and loads that run to their end.

use crate::engines::memory::machine_memory;
use crate::engines::{EngineSpec, Tuning};
use crate::harness::measure::caches;
use crate::harness::settings::Settings;
use crate::{Error, Result};

/// An engine gets this share of the memory if the user gave no number, as in `esker bench`.
const MEMORY_SHARE: u64 = 4;
/// Fills in what a comparison does not leave to each engine, and refuses what it cannot carry out.
pub fn prepare(mut settings: Settings) -> Result<Settings> {
    settings.verify = true;
    settings.whole_loads = true;
    let memory = settings.memory_limit.or_else(machine_memory).unwrap_or(4 << 30);
    settings.memory = Some(settings.memory.unwrap_or(memory / MEMORY_SHARE));
    settings.check()?;
    settings.engines.iter().try_for_each(|engine| settings.offered_by(engine))?;
    if settings.drop_caches {
        caches::can_drop()?;
    }
    Ok(settings)
}

/// The engines as `--tuning` wants them.
pub fn tuned(engines: Vec<EngineSpec>, tuning: Tuning) -> Result<Vec<EngineSpec>> {
    let tuned: Vec<EngineSpec> =
        engines.into_iter().map(|engine| engine.tuned(tuning)).collect::<Result<_>>()?;
    for (i, engine) in tuned.iter().enumerate() {
        if tuned[..i].contains(engine) {
            return Err(Error::usage(format!(
                "--tuning makes {engine} appear twice: name it once"
            )));
        }
    }
    Ok(tuned)
}
