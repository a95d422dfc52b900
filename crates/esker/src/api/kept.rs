//! Values that a layer above keeps for as long as its caller wants, without a handle of their database.

use super::cached::{Cached, see_cached};
pub use super::in_place::ValueInPlace;
use crate::db::{Held, Seen};
use crate::{Keyspace, Result, Snapshot};

/// A value that was found.
#[derive(Debug)]
pub enum KeptValue {
    /// Its bytes: it is short, or in no block, or what readers hold exceeds its bound.
    Copied(Vec<u8>),
    /// It stays where it lies.
    InPlace(ValueInPlace),
}

/// Looks a key up in a snapshot or, without one, as it is now.
fn find(
    keyspace: &Keyspace,
    snapshot: Option<&Snapshot>,
    key: &[u8],
    hold: impl FnOnce(Seen<'_>) -> Held,
) -> Result<Option<Held>> {
    let at = match snapshot {
        None => None,
        Some(snapshot) => snapshot.at(keyspace)?,
    };
    keyspace.handle.core.get(keyspace.state(), key, at, hold)
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
    let Some(held) = find(keyspace, snapshot, key, |value| value.hold_if_long())? else {
        return Ok(None);
    };
    Ok(Some(match held {
        Held::Copy(bytes) => KeptValue::Copied(bytes),
        block => match ValueInPlace::new(block, &keyspace.handle.core).into_copy() {
            Ok(bytes) => KeptValue::Copied(bytes),
            Err(value) => KeptValue::InPlace(value),
        },
    }))
}

/// The value under a key, of a snapshot or, without one, of now, however long it is: as [`Keyspace::get_pinned`].
///
/// # Errors
/// As [`Keyspace::get`] and [`Snapshot::get`].
pub fn get_in_place(
    keyspace: &Keyspace,
    snapshot: Option<&Snapshot>,
    key: &[u8],
) -> Result<Option<ValueInPlace>> {
    let held = find(keyspace, snapshot, key, |value| value.hold())?;
    Ok(held.map(|held| ValueInPlace::new(held, &keyspace.handle.core)))
}

/// The same of now, if memory answers.
///
/// # Errors
/// As [`Keyspace::get`].
pub fn get_in_place_cached(keyspace: &Keyspace, key: &[u8]) -> Result<Cached<ValueInPlace>> {
    let held = see_cached(keyspace, key, |value| value.hold())?;
    Ok(held.map(|held| ValueInPlace::new(held, &keyspace.handle.core)))
}
