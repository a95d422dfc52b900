//! How a caller ends the wait for a long call.

use super::Signal;
use crate::error::{Error, Result};
use std::time::Duration;

/// How often a call that waits asks whether it is to end: often enough that a person notices no delay.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// What a long call asks now and then; true ends it.
#[derive(Clone, Copy)]
pub struct Interruption<'a>(Option<&'a dyn Fn() -> bool>);

impl std::fmt::Debug for Interruption<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interruption").field("asks", &self.0.is_some()).finish()
    }
}

impl<'a> Interruption<'a> {
    /// The call goes on to its end.
    pub const NEVER: Self = Self(None);

    /// The call ends once `interrupted` returns true. No lock is held while it is called.
    pub fn when(interrupted: &'a dyn Fn() -> bool) -> Self {
        Self(Some(interrupted))
    }

    /// [`Error::Interrupted`] if the call is to end.
    pub fn check(&self) -> Result<()> {
        match self.0 {
            Some(interrupted) if interrupted() => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// Returns once a signal counts more than `epoch` events, or with an error if the call is to end before.
    pub fn wait_past(&self, signal: &Signal, epoch: u64) -> Result<()> {
        if self.0.is_none() {
            signal.wait_past(epoch);
            return Ok(());
        }
        loop {
            self.check()?;
            if signal.wait_past_timeout(epoch, ASK_EVERY) {
                return Ok(());
            }
        }
    }
}
