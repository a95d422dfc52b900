//! A latch that keeps the first failure.

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Remembers the first failure after which no write may be accepted (contract C2, R8).
///
/// There is one per database. It never opens again: only reopening the database, which reads the
/// disk anew, shows what is really there.
#[derive(Debug, Default)]
pub struct Latch {
    failure: OnceLock<Error>,
}

impl Latch {
    /// A latch on which nothing has failed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a failure; later ones are ignored, since the first is the cause.
    pub fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
    }

    /// Returns `Ok` if nothing has failed, else [`Error::Poisoned`] with the first failure as its
    /// cause. Costs one acquire load.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(()),
            Some(error) => Err(error.clone().poisoning()),
        }
    }

    /// The first failure, as it was recorded.
    pub fn get(&self) -> Option<Error> {
        self.failure.get().cloned()
    }
}
