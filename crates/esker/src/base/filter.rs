//! Compaction filters: user code that drops or changes entries during compactions.

use crate::error::{Error, Result};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a compaction does with an entry.
///
/// # Example
/// ```
/// use esker::Decision;
/// /// Drops empty values and cuts long ones.
/// fn tidy(value: &[u8]) -> Decision {
///     match value.len() {
///         0 => Decision::Remove,
///         1..=100 => Decision::Keep,
///         _ => Decision::Change(value[..100].to_vec()),
///     }
/// }
/// assert_eq!(tidy(b""), Decision::Remove);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The entry stays as it is.
    Keep,
    /// The entry is removed: from then on the key has no value.
    Remove,
    /// The entry gets this value and keeps its expiry.
    Change(Vec<u8>),
}

/// Removes or changes entries that compactions write.
///
/// A filter is called in compactions only, never in a flush, and only for the newest value of a key
/// that no snapshot sees (R21), as far as the compaction knows: a newer value or delete that still waits in
/// memory or in a tier hides what the filter made of the older one, and an operand that is still in memory is
/// applied to it. There is no promise when that is: `Keyspace::compact` applies the
/// filter to everything, background compactions to what they rewrite, and the filter may be called
/// many times for an entry. So it suits data that nobody needs any more, not data that must not be
/// seen. It may be called from any thread. If it panics, it is not called again until the database
/// is reopened, the entries stay, and `compact` returns an error.
///
/// # Example
/// ```
/// use esker::{CompactionFilter, Decision};
/// struct DropDrafts;
/// impl CompactionFilter for DropDrafts {
///     fn name(&self) -> &str { "drop-drafts" }
///     fn filter(&self, key: &[u8], _value: &[u8]) -> Decision {
///         if key.starts_with(b"draft/") { Decision::Remove } else { Decision::Keep }
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap();
/// let mut options = esker::Options::default();
/// options.compaction_filters.push(std::sync::Arc::new(DropDrafts));
/// let db = esker::Db::open_with(&dir, options)?;
/// let pages = db.keyspace_with("pages", esker::KeyspaceOptions::filtered("drop-drafts"))?;
/// pages.insert("draft/1", "...")?;
/// pages.insert("page/1", "...")?;
/// pages.compact()?;
/// assert_eq!(pages.iter()?.count(), 1);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait CompactionFilter: Send + Sync + 'static {
    /// The name that is stored with the keyspace; 1 to 255 bytes.
    fn name(&self) -> &str;
    /// Decides what happens to an entry.
    fn filter(&self, key: &[u8], value: &[u8]) -> Decision;
}

/// A compaction filter behind a guard that catches its panics.
#[derive(Clone)]
pub struct Filter {
    code: Arc<dyn CompactionFilter>,
    panicked: Arc<AtomicBool>,
}

impl Filter {
    /// A guard around a filter.
    pub fn new(code: Arc<dyn CompactionFilter>) -> Self {
        Self { code, panicked: Arc::default() }
    }

    /// The stored name.
    pub fn name(&self) -> &str {
        self.code.name()
    }

    /// Decides what happens to an entry; after a panic every entry stays.
    pub fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        if self.panicked.load(Ordering::Acquire) {
            return Decision::Keep;
        }
        let call = AssertUnwindSafe(|| self.code.filter(key, value));
        std::panic::catch_unwind(call).unwrap_or_else(|_| {
            self.panicked.store(true, Ordering::Release);
            log::error!("compaction filter {:?} panicked and is not used any more", self.name());
            Decision::Keep
        })
    }

    /// An error if it has panicked.
    pub fn check(&self) -> Result<()> {
        if self.panicked.load(Ordering::Acquire) {
            let what = format!("compaction filter {:?}", self.name());
            return Err(Error::UserCodePanicked { what });
        }
        Ok(())
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.name()).finish()
    }
}
