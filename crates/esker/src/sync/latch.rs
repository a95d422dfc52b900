//! A latch that keeps the first failure.

use std::sync::OnceLock;

use crate::error::{Error, Result};

type Tell = Box<dyn Fn(&Error) + Send + Sync>;

/// Remembers the first failure after which no write may be accepted (contract C2, R8).
///
/// There is one per database. It never opens again: only reopening the database, which reads the
/// disk anew, shows what is really there.
#[derive(Default)]
pub struct Latch {
    failure: OnceLock<Error>,
    /// Is told the first failure.
    on_failure: Option<Tell>,
}

impl std::fmt::Debug for Latch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latch").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl Latch {
    /// A latch on which nothing has failed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`Self::new`]; `tell` is called with the first failure, by the thread that records it.
    #[cfg(not(loom))]
    pub fn telling(tell: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self { failure: OnceLock::new(), on_failure: Some(Box::new(tell)) }
    }

    /// Records a failure; later ones are ignored, since the first is the cause.
    pub fn fail(&self, error: Error) {
        let first = self.failure.set(error).is_ok();
        if let (true, Some(tell), Some(error)) = (first, &self.on_failure, self.failure.get()) {
            tell(error);
        }
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
