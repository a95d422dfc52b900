//! The time by which entries expire.

use crate::base::Seq;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the beginning of 1970 (UTC).
pub type Millis = u64;

/// What a reader sees: the writes before a position, and expiry as of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The reader sees smaller sequence numbers.
    pub seq: Seq,
    /// The reader does not see entries that expire at this time or earlier.
    pub time: Millis,
}

/// A clock for expiry in place of the system's clock, for tests or for programs with their own
/// time.
///
/// It should not go back; if it does, the latest time that it returned counts until it catches up.
/// It may be called from any thread.
///
/// # Example
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// #[derive(Default)]
/// struct Stopped(AtomicU64);
/// impl esker::Clock for Stopped {
///     fn now_millis(&self) -> u64 { self.0.load(Ordering::SeqCst) }
/// }
/// # let dir = tempfile::tempdir().unwrap();
/// let clock = Arc::new(Stopped::default());
/// let mut options = esker::Options::default();
/// options.clock = clock.clone();
/// let db = esker::Db::open_with(&dir, options)?;
/// let sessions = db.default_keyspace();
/// sessions.insert_with_ttl("anna", "here", std::time::Duration::from_secs(60))?;
/// assert!(sessions.contains_key("anna")?);
/// clock.0.store(60_000, Ordering::SeqCst);
/// assert!(!sessions.contains_key("anna")?);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the beginning of 1970 (UTC).
    fn now_millis(&self) -> u64;
}

/// The system's clock.
///
/// # Example
/// ```
/// use esker::{Clock, SystemClock};
/// let year_2020 = 1_577_836_800_000;
/// assert!(SystemClock.now_millis() > year_2020);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that does not go back: an expired entry stays expired while the database is open. A
/// compaction may have removed it already, so a reader with an earlier time would see only a part
/// of the past.
pub struct SteadyClock {
    clock: Arc<dyn Clock>,
    latest: AtomicU64,
}

impl SteadyClock {
    /// A steady clock that reads another clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, latest: AtomicU64::new(0) }
    }

    /// The time. If the user's clock panics, the last time that it returned counts.
    pub fn now(&self) -> Millis {
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| self.clock.now_millis()));
        let told = told.unwrap_or(0);
        let latest = self.latest.load(Ordering::Acquire);
        if told > latest { self.latest.fetch_max(told, Ordering::AcqRel).max(told) } else { latest }
    }
}

impl fmt::Debug for SteadyClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteadyClock").field("latest", &self.latest).finish_non_exhaustive()
    }
}
