//! What a keyspace is made with, beside its name.

use crate::base::Millis;
use crate::db::catalog::check_name;
use crate::db::keyspaces::Asked;
use crate::{Comparator, Error, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a keyspace is made with, or opened with, beside its name. All of it is stored with the
/// keyspace; what is `None` stays as it is in one that is there, and is absent from a new one.
///
/// # Example
/// ```
/// use esker::{CounterU64, KeyspaceOptions};
/// use std::time::Duration;
/// # let dir = std::env::temp_dir().join(format!("esker-doc-traits-{}", std::process::id()));
/// let db = esker::Db::open(&dir)?;
/// let mut options = KeyspaceOptions::merging(CounterU64::NAME);
/// options.ttl = Some(Duration::from_secs(3600));
/// // Each visit counts for an hour.
/// let visits = db.keyspace_with("visits", options)?;
/// visits.merge("home", CounterU64::encode(1))?;
/// # db.close()?; std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct KeyspaceOptions {
    /// The order of the keys; a keyspace that is there must have it. Default: byte order.
    pub comparator: Option<Arc<dyn Comparator>>,
    /// The name of the merge operator: one that comes with the engine, or one in
    /// [`crate::Options::merge_operators`]. A keyspace without one may get one later; one that has
    /// one keeps it. Default: none, and [`crate::Keyspace::merge`] is refused.
    pub merge_operator: Option<String>,
    /// The name of the compaction filter, which must be in
    /// [`crate::Options::compaction_filters`]. It may be changed. Default: none.
    pub compaction_filter: Option<String>,
    /// How long writes live that do not say it themselves. It may be changed, here or by
    /// [`crate::Keyspace::set_ttl`], and holds for later writes. Default: for ever.
    pub ttl: Option<Duration>,
}

impl KeyspaceOptions {
    /// With a merge operator.
    pub fn merging(operator: impl Into<String>) -> Self {
        Self { merge_operator: Some(operator.into()), ..Self::default() }
    }

    /// With a compaction filter.
    pub fn filtered(filter: impl Into<String>) -> Self {
        Self { compaction_filter: Some(filter.into()), ..Self::default() }
    }

    /// With a time that writes live.
    pub fn expiring(ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..Self::default() }
    }

    /// With an order of its own.
    pub fn ordered(comparator: Arc<dyn Comparator>) -> Self {
        Self { comparator: Some(comparator), ..Self::default() }
    }

    pub(super) fn asked(&self) -> Result<Asked> {
        let ttl = self.ttl.map(keyspace_ttl).transpose()?;
        let (operator, filter) = (self.merge_operator.clone(), self.compaction_filter.clone());
        Ok(Asked { operator, filter, ttl })
    }
}

impl fmt::Debug for KeyspaceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyspaceOptions")
            .field("comparator", &self.comparator.as_ref().map(|comparator| comparator.name()))
            .field("merge_operator", &self.merge_operator)
            .field("compaction_filter", &self.compaction_filter)
            .field("ttl", &self.ttl)
            .finish()
    }
}

/// Checks the names of user code that is given in the options.
pub(super) fn check_names(options: &crate::Options) -> Result<()> {
    for comparator in &options.comparators {
        check_name("name of the comparator", comparator.name())?;
    }
    for operator in &options.merge_operators {
        check_name("name of the merge operator", operator.name())?;
    }
    for filter in &options.compaction_filters {
        check_name("name of the compaction filter", filter.name())?;
    }
    Ok(())
}

/// A time to live in milliseconds, rounded up.
pub(super) fn millis(ttl: Duration) -> Millis {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The time to live of a keyspace, which cannot be nothing.
pub(super) fn keyspace_ttl(ttl: Duration) -> Result<Millis> {
    match millis(ttl) {
        0 => Err(Error::invalid("the ttl is zero: give how long writes live, or none")),
        ttl => Ok(ttl),
    }
}
