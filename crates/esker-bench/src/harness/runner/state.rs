//! What a runner remembers of its database between steps.
//!
//! Which keys are present, which steps wrote their values, and how much was written to the device and by
//! users since open. Results are checked with it (`verify`), and amplification is computed with it
//! (`summary`).

use crate::Result;
use crate::engines::Engine;
use crate::harness::keys::KeyFormat;
use crate::harness::live::LiveKeys;
use crate::harness::measure::process::ProcessUse;
use crate::harness::measure::server::Workers;
use crate::harness::settings::Settings;
use crate::harness::values::ValuePool;
use std::path::Path;

/// What is known about the contents of a database.
#[derive(Debug, Default)]
pub struct Truth {
    /// The seeds of the steps that wrote values under the small keys.
    pub(super) writers: Vec<u64>,
    /// Whether the database was there before, so that nothing is known of it.
    pub(super) unknown: bool,
    /// Whether a step was ended by time while it wrote.
    pub(super) unsettled: bool,
}

impl Truth {
    /// Of a database that is empty, or was there before.
    pub fn new(unknown: bool) -> Self {
        Self { unknown, ..Self::default() }
    }

    /// Notes a step that wrote, and whether time or a writer's speed decided how much.
    pub fn wrote(&mut self, seed: u64, unsettled: bool) {
        self.writers.push(seed);
        self.unsettled |= unsettled;
    }

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        self.unknown = true;
    }
}

/// The database under test, with everything that lies between steps.
pub struct State<'a> {
    pub settings: &'a Settings,
    pub engine: &'a dyn Engine,
    /// The directory of the database, if it has files.
    pub dir: Option<&'a Path>,
    pub truth: Truth,
    pub keys: KeyFormat,
    pub pool: ValuePool,
    pub live: LiveKeys,
    /// The keys of `fill100K`.
    pub live_large: LiveKeys,
    /// The processes that work for the run.
    pub workers: Workers,
    /// What they had used when the database was open.
    pub opened: ProcessUse,
    /// Bytes of keys and values since then.
    pub user_bytes_written: u64,
}

impl<'a> State<'a> {
    /// Of a database that was just opened.
    pub fn new(
        settings: &'a Settings,
        engine: &'a dyn Engine,
        dir: Option<&'a Path>,
    ) -> Result<Self> {
        let workers = Workers::new(engine.server());
        Ok(Self {
            settings,
            engine,
            dir,
            truth: Truth::new(settings.use_existing_db),
            keys: settings.key_format()?,
            pool: ValuePool::new(
                settings.largest_value(),
                settings.compression_ratio,
                settings.seed,
            ),
            live: LiveKeys::new(settings.capacity()),
            live_large: LiveKeys::new(settings.large_keys()),
            opened: workers.now(),
            workers,
            user_bytes_written: 0,
        })
    }
}
