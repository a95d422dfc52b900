//! Refusing the use of a keyspace that was dropped.

use super::KeyspaceState;
use crate::error::{Error, Result};

impl KeyspaceState {
    /// Fails if it was dropped.
    #[inline]
    pub fn check_there(&self) -> Result<()> {
        if self.is_dropped() { Err(self.dropped_error()) } else { Ok(()) }
    }

    /// The error for a use after the drop.
    pub fn dropped_error(&self) -> Error {
        Error::KeyspaceDropped { keyspace: self.name.clone() }
    }
}
