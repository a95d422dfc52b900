//! Compaction filters: what a merge may leave out or change.

use crate::error::{Error, Result};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What becomes of an entry that a merge writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It stays as it is.
    Keep,
    /// It goes: from then on the key has no value.
    Remove,
    /// It gets this value; what it expires at stays.
    Change(Vec<u8>),
}

/// Looks at the entries that merges write and may remove or change them.
///
/// It is called in merges only, never in a flush, and only for the newest value of a key that no
/// snapshot sees (R21). When that is, nobody knows: `Keyspace::compact` applies it to everything,
/// the background to what it happens to merge, and an entry may be asked about many times. So it
/// is right for data that nobody needs any more, not for data that must not be seen. It may be
/// called from any thread. If it panics, it is not asked again until the database is reopened, the
/// entries stay, and `compact` says so.
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
/// # let dir = std::env::temp_dir().join(format!("esker-doc-filter-{}", std::process::id()));
/// let mut options = esker::Options::default();
/// options.compaction_filters.push(std::sync::Arc::new(DropDrafts));
/// let db = esker::Db::open_with(&dir, options)?;
/// let pages = db.keyspace_with("pages", esker::KeyspaceOptions::filtered("drop-drafts"))?;
/// pages.insert("draft/1", "...")?;
/// pages.insert("page/1", "...")?;
/// pages.compact()?;
/// assert_eq!(pages.iter()?.count(), 1);
/// # db.close()?; std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), esker::Error>(())
/// ```
pub trait CompactionFilter: Send + Sync + 'static {
    /// The name that is stored with the keyspace; 1 to 255 bytes.
    fn name(&self) -> &str;
    /// What becomes of an entry.
    fn filter(&self, key: &[u8], value: &[u8]) -> Decision;
}

/// A compaction filter behind a guard: what it unwinds with is caught here.
#[derive(Clone)]
pub struct Filter {
    code: Arc<dyn CompactionFilter>,
    panicked: Arc<AtomicBool>,
}

impl Filter {
    /// The filter behind a guard.
    pub fn new(code: Arc<dyn CompactionFilter>) -> Self {
        Self { code, panicked: Arc::default() }
    }

    /// The stored name.
    pub fn name(&self) -> &str {
        self.code.name()
    }

    /// What becomes of an entry; everything stays after a panic.
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
