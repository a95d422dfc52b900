//! Where looks for what is not due have ended, and when temperatures are looked at next.

use super::key::PartitionKey;
use crate::base::Millis;
use crate::options::settings::Settings;
use std::time::Duration;

/// The shortest time after which a worker looks whether entries have expired.
const EXPIRY_WAIT_MIN: Duration = Duration::from_secs(1);
/// The longest. A snapshot may still see expired entries, or a checkpoint keep space: their ends give no
/// signal.
pub const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How long an idle worker may wait for entries that expire at some time.
pub fn expiry_wait(expiry: Millis, now: Millis) -> Duration {
    let left = expiry.saturating_sub(now);
    let wait = if left == 0 { LOOK_AGAIN } else { Duration::from_millis(left) };
    wait.clamp(EXPIRY_WAIT_MIN, LOOK_AGAIN)
}

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
