//! Values that are read where they lie, and borrow nothing.

use super::cached::{Cached, see_cached};
use super::pinned::{keep, let_go};
use crate::base::Moment;
use crate::db::{Core, Held};
use crate::{Keyspace, Result, Snapshot};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A [`crate::PinnedValue`] that borrows nothing, for the layers of languages whose objects borrow nothing. It does not keep the
/// database open, and its bytes stay where they are when the database is closed.
pub struct OwnedValue {
    /// There until it is dropped.
    held: Option<Held>,
    core: Arc<Core>,
}

impl OwnedValue {
    /// The value under a key, as [`Keyspace::get_pinned`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn of_keyspace(keyspace: &Keyspace, key: &[u8]) -> Result<Option<Self>> {
        Self::find(keyspace, key, None)
    }

    /// The value under a key, if memory answers: as [`Self::of_keyspace`] otherwise.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn cached(keyspace: &Keyspace, key: &[u8]) -> Result<Cached<Self>> {
        let held = see_cached(keyspace, key, |value| value.hold())?;
        Ok(held.map(|held| Self::new(held, &keyspace.handle.core)))
    }

    /// The value under a key in a snapshot, as [`Snapshot::get_pinned`].
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn of_snapshot(
        snapshot: &Snapshot,
        keyspace: &Keyspace,
        key: &[u8],
    ) -> Result<Option<Self>> {
        Self::find(keyspace, key, snapshot.at(keyspace)?)
    }

    fn find(keyspace: &Keyspace, key: &[u8], at: Option<Moment>) -> Result<Option<Self>> {
        let core = &keyspace.handle.core;
        let held = core.get(&keyspace.state, key, at, |value| value.hold())?;
        Ok(held.map(|held| Self::new(held, core)))
    }

    fn new(held: Held, core: &Arc<Core>) -> Self {
        Self { held: Some(keep(held, core)), core: core.clone() }
    }

    /// Bytes that are a copy, which no account of the database has.
    pub fn copied(&self) -> usize {
        match &self.held {
            Some(Held::Copy(bytes)) => bytes.capacity(),
            _ => 0,
        }
    }
}

impl Deref for OwnedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.held.as_ref().map_or(&[], Held::bytes)
    }
}

impl Drop for OwnedValue {
    fn drop(&mut self) {
        let_go(&mut self.held, &self.core);
        // It may be the last that refers to a database that was closed before the fork (R26).
        if self.core.is_forked() {
            std::mem::forget(self.core.clone());
        }
    }
}

impl fmt::Debug for OwnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedValue").field(&&**self).finish()
    }
}
