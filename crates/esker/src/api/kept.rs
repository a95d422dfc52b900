//! Values that a layer above keeps for as long as its caller wants, without a handle of their database.

use crate::db::Held;
use crate::{Keyspace, Result, Snapshot};

/// A value that was found.
#[derive(Debug)]
pub enum KeptValue {
    /// Its bytes: it is short, or in no block, or what readers hold exceeds its bound.
    Copied(Vec<u8>),
    /// It stays where it lies.
    InPlace(ValueInPlace),
}

/// A value in its block, which stays in memory until this is dropped: after a write of its key, and after the database was
/// closed. It does not keep the database open. It counts as [`crate::PinnedValue`] does.
#[derive(Debug)]
pub struct ValueInPlace(
    /// There until it is dropped.
    Option<Held>,
);

impl ValueInPlace {
    /// The value.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], Held::bytes)
    }
}

impl Drop for ValueInPlace {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            held.give_back();
        }
    }
}

/// The value under a key, of a snapshot or, without one, of now: in place if that saves a copy of 4,096 bytes or more, and if
/// its block takes at most twice as much memory.
///
/// # Errors
/// As [`Keyspace::get`] and [`Snapshot::get`].
pub fn get_kept(
    keyspace: &Keyspace,
    snapshot: Option<&Snapshot>,
    key: &[u8],
) -> Result<Option<KeptValue>> {
    let core = &keyspace.handle.core;
    let at = match snapshot {
        None => None,
        Some(snapshot) => snapshot.at(keyspace)?,
    };
    let held = match core.get(keyspace.state(), key, at, |value| value.hold_if_long())? {
        None => return Ok(None),
        // It counts from here on: a get may still fail after it has found a value.
        Some(block @ Held::Block { .. }) => block.keep(core.cache.pins()),
        Some(copy) => copy,
    };
    Ok(Some(match held {
        Held::Copy(bytes) => KeptValue::Copied(bytes),
        block @ Held::Block { .. } => KeptValue::InPlace(ValueInPlace(Some(block))),
    }))
}
