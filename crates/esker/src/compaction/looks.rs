//! Where looks for what is not due have ended, and when temperatures are looked at next.

use super::key::PartitionKey;
use crate::base::Millis;
use crate::options::settings::Settings;
use std::time::Duration;

/// What an idle worker has looked at: it goes on there.
#[derive(Debug, Default)]
pub struct Looks {
    /// Where the look for raw data ended.
    pub raw: Option<PartitionKey>,
    /// Where the look at temperatures ended.
    pub temperature: Option<PartitionKey>,
    /// When the next look at temperatures begins.
    pub next: Millis,
}

impl Looks {
    /// Whether temperatures are looked at.
    pub fn are_due(&self, settings: &Settings, now: Millis) -> bool {
        settings.cold.is_some() && self.next <= now
    }

    /// How long it takes until they are; `None`: they never are.
    pub fn wait(&self, settings: &Settings, now: Millis) -> Option<Duration> {
        settings.cold.map(|_| Duration::from_millis(self.next.saturating_sub(now).max(10)))
    }
}
