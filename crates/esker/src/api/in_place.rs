//! A value that is kept where it lies, for owners with and without a handle of its database.

use crate::db::{Core, Held};

/// A value in its block, which stays in memory until this is dropped: after a write of its key, and after the database was
/// closed. It does not keep the database open. It counts as [`crate::PinnedValue`] does, and is a copy where that is one.
#[derive(Debug, Default)]
pub struct ValueInPlace(
    /// There until it is dropped.
    Option<Held>,
);

impl ValueInPlace {
    /// It counts from here on: a get may still fail after it has found a value.
    pub(super) fn new(held: Held, core: &Core) -> Self {
        Self(Some(held.keep(core.cache.pins())))
    }

    /// The value.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], Held::bytes)
    }

    /// The bytes, if they are a copy.
    pub(super) fn into_copy(mut self) -> std::result::Result<Vec<u8>, Self> {
        match self.0.take() {
            Some(Held::Copy(bytes)) => Ok(bytes),
            held => Err(Self(held)),
        }
    }

    /// Bytes that are a copy, which no account of the database has.
    pub fn copied(&self) -> usize {
        match &self.0 {
            Some(Held::Copy(bytes)) => bytes.capacity(),
            _ => 0,
        }
    }
}

impl Drop for ValueInPlace {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            held.give_back();
        }
    }
}
