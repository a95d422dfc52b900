//! Values that are read where they lie.

use super::in_place::ValueInPlace;
use crate::Result;
use crate::base::Moment;
use crate::catalog::KeyspaceState;
use crate::db::{Core, ShortValue};
use std::fmt;
use std::marker::PhantomData;
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
    value: ValueInPlace,
    /// It is as short-lived as the handle that it came from.
    handle: PhantomData<&'a Core>,
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
        Ok(held.map(|held| Self { value: ValueInPlace::new(held, core), handle: PhantomData }))
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
        self.value.bytes()
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
