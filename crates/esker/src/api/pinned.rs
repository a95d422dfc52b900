//! Values that are read where they lie.

use crate::Result;
use crate::base::Moment;
use crate::catalog::KeyspaceState;
use crate::db::{Core, Held, ShortValue};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value that [`crate::Keyspace::get_pinned`] or [`crate::Snapshot::get_pinned`] found: its bytes, where they lie.
///
/// It shows the value as it was when it was read, whatever happens to the key. It keeps the block of the value in memory, which
/// may be much larger than the value. While all of these and all iterators keep more than an eighth of
/// [`crate::Options::memory`], a new one is a copy. Drop one soon, or copy what is needed for long.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// # let fruit = db.keyspace("fruit")?;
/// fruit.insert("apple", "red")?;
/// let before = fruit.get_pinned("apple")?.unwrap();
/// fruit.insert("apple", "green")?;
/// assert_eq!(&*before, b"red");
/// assert!(before.starts_with(b"r"));
/// # Ok::<(), esker::Error>(())
/// ```
pub struct PinnedValue<'a> {
    /// There until it is dropped.
    held: Option<Held>,
    core: &'a Core,
}

impl<'a> PinnedValue<'a> {
    /// The value under a key, as of a registered snapshot's moment or now.
    pub(super) fn find(
        core: &'a Arc<Core>,
        keyspace: &Arc<KeyspaceState>,
        key: &[u8],
        at: Option<Moment>,
    ) -> Result<Option<Self>> {
        let held = core.get(keyspace, key, at, |value| value.hold())?;
        // It counts from here on: a get may still fail after it has found a value.
        Ok(held.map(|held| Self { held: Some(held.keep(core.cache.pins())), core }))
    }
}

/// Calls `take` with the value under a key, as of a registered snapshot's moment or now, outside of the search.
#[inline]
pub(super) fn lend<R>(
    core: &Arc<Core>,
    keyspace: &Arc<KeyspaceState>,
    key: &[u8],
    at: Option<Moment>,
    take: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    let mut short = [0; size_of::<ShortValue>()];
    let lent = core.get(keyspace, key, at, |value| value.lend(&mut short))?;
    Ok(lent.map(|lent| take(lent.bytes(&short))))
}

impl Deref for PinnedValue<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.held.as_ref().map_or(&[], Held::bytes)
    }
}

impl Drop for PinnedValue<'_> {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // Freeing a block may take locks, which in a forked child may be held by a thread that does not exist there (R26).
        if self.core.is_forked() {
            std::mem::forget(held);
        } else {
            held.let_go(self.core.cache.pins());
        }
    }
}

impl AsRef<[u8]> for PinnedValue<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for PinnedValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PinnedValue").field(&&**self).finish()
    }
}
