//! The options of a keyspace.

use crate::base::Millis;
use crate::catalog::Asked;
use crate::catalog::check_name;
use crate::{Comparator, Error, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The options with which a keyspace is created or opened. They are stored with the keyspace.
/// `None` leaves the option of an existing keyspace as it is, and unset in a new one.
///
/// # Example
/// ```
/// use esker::{CounterU64, KeyspaceOptions};
/// use std::time::Duration;
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// // Each visit counts for an hour.
/// let options = KeyspaceOptions::merging(CounterU64::NAME).ttl(Duration::from_secs(3600));
/// let visits = db.keyspace_with("visits", options)?;
/// visits.merge("home", CounterU64::encode(1))?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct KeyspaceOptions {
    /// A custom comparator, which an existing keyspace must have too. Default: byte order.
    pub comparator: Option<Arc<dyn Comparator>>,
    /// The name of the merge operator: a built-in one, or one in
    /// [`crate::Options::merge_operators`]. It can be set later, but not changed. Default: none,
    /// and [`crate::Keyspace::merge`] is refused.
    pub merge_operator: Option<String>,
    /// The name of the compaction filter, which must be in
    /// [`crate::Options::compaction_filters`]. It can be changed. Default: none.
    pub compaction_filter: Option<String>,
    /// The default time to live of writes. It can be changed, here or by
    /// [`crate::Keyspace::set_ttl`], for later writes. Default: writes never expire.
    pub ttl: Option<Duration>,
}

/// Methods that set a field and give the options back.
impl KeyspaceOptions {
    /// The default options: each option of an existing keyspace stays as it is.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let users = db.keyspace_with("users", esker::KeyspaceOptions::new())?;
    /// assert_eq!(users.ttl(), None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the field [`comparator`](KeyspaceOptions#structfield.comparator).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # struct Reverse;
    /// # impl esker::Comparator for Reverse {
    /// # fn name(&self) -> &str { "reverse" }
    /// # fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering { b.cmp(a) }
    /// # }
    /// use esker::KeyspaceOptions;
    /// use std::{sync::Arc, time::Duration};
    /// let week = Duration::from_secs(7 * 24 * 3600);
    /// let news = db.keyspace_with("news", KeyspaceOptions::expiring(week).comparator(Arc::new(Reverse)))?;
    /// assert_eq!((news.comparator_name(), news.ttl()), (Some("reverse"), Some(week)));
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn comparator(mut self, comparator: Arc<dyn Comparator>) -> Self {
        self.comparator = Some(comparator);
        self
    }

    /// Sets the field [`merge_operator`](KeyspaceOptions#structfield.merge_operator) to this name.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::{CounterU64, KeyspaceOptions};
    /// let visits = KeyspaceOptions::new().merge_operator(CounterU64::NAME);
    /// db.keyspace_with("visits", visits)?.merge("home", CounterU64::encode(1))?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn merge_operator(mut self, operator: impl Into<String>) -> Self {
        self.merge_operator = Some(operator.into());
        self
    }

    /// Sets the field [`compaction_filter`](KeyspaceOptions#structfield.compaction_filter) to this name.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let options = esker::KeyspaceOptions::new().compaction_filter("drop-drafts");
    /// // The options of the database have no filter of this name.
    /// assert!(db.keyspace_with("pages", options).is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn compaction_filter(mut self, filter: impl Into<String>) -> Self {
        self.compaction_filter = Some(filter.into());
        self
    }

    /// Sets the field [`ttl`](KeyspaceOptions#structfield.ttl).
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use std::time::Duration;
    /// let minute = Duration::from_secs(60);
    /// let cache = db.keyspace_with("cache", esker::KeyspaceOptions::new().ttl(minute))?;
    /// assert_eq!(cache.ttl(), Some(minute));
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

impl KeyspaceOptions {
    /// Options with a merge operator.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::{Append, KeyspaceOptions};
    /// let tags = KeyspaceOptions::merging(Append::new(" ").name());
    /// assert!(db.keyspace_with("tags", tags)?.merge_operator().is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn merging(operator: impl Into<String>) -> Self {
        Self { merge_operator: Some(operator.into()), ..Self::default() }
    }

    /// Options with a compaction filter.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// let options = esker::KeyspaceOptions::filtered("drop-drafts");
    /// // The options of the database have no filter of this name.
    /// let refused = db.keyspace_with("pages", options);
    /// assert!(matches!(refused, Err(esker::Error::InvalidArgument { .. })));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn filtered(filter: impl Into<String>) -> Self {
        Self { compaction_filter: Some(filter.into()), ..Self::default() }
    }

    /// Options with a time to live.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # use std::time::Duration;
    /// let hour = Duration::from_secs(3600);
    /// let cache = db.keyspace_with("cache", esker::KeyspaceOptions::expiring(hour))?;
    /// assert_eq!(cache.ttl(), Some(hour));
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn expiring(ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..Self::default() }
    }

    /// Options with a custom comparator.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// # struct Reverse;
    /// # impl esker::Comparator for Reverse {
    /// # fn name(&self) -> &str { "reverse" }
    /// # fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering { b.cmp(a) }
    /// # }
    /// let options = esker::KeyspaceOptions::ordered(std::sync::Arc::new(Reverse));
    /// let news = db.keyspace_with("news", options)?;
    /// assert_eq!(news.comparator_name(), Some("reverse"));
    /// # Ok::<(), esker::Error>(())
    /// ```
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

/// Checks the names of the user code in the options.
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

/// The time to live of a keyspace, which must not be zero.
pub(super) fn keyspace_ttl(ttl: Duration) -> Result<Millis> {
    match millis(ttl) {
        0 => Err(Error::invalid("the ttl is zero: give how long writes live, or none")),
        ttl => Ok(ttl),
    }
}
