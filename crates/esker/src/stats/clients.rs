//! What programs were handed, or have built with the library, and have not freed: batches, in the layer for C also
//! values, lists and errors, and in the layer for Python what an object or a thread keeps between calls.
//!
//! These objects belong to no database (a batch may be empty, an error may say that there is none), so the count is
//! that of the process, and each database shows all of it. Values are handed out on the path of a get. So each thread
//! counts on its own what it makes and what it frees, and the sums meet when somebody asks.

use crate::sync::Stripes;
use std::sync::LazyLock;

const MADE: usize = 0;
const FREED: usize = 1;

static BYTES: LazyLock<Stripes<2>> = LazyLock::new(Stripes::default);

/// Bytes of all objects.
pub fn bytes() -> u64 {
    // What was freed is read first: everything in it was made before.
    let freed = BYTES.sum(FREED);
    BYTES.sum(MADE).saturating_sub(freed)
}

/// The part of one object; it has nothing any more when this is dropped.
#[derive(Debug, Default)]
pub struct Counted(u64);

impl Counted {
    /// Of an object of so many bytes.
    pub fn of(bytes: usize) -> Self {
        let mut counted = Self::default();
        counted.set(bytes);
        counted
    }

    /// The object has so many bytes now.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        if bytes != self.0 {
            self.change(bytes);
        }
    }

    fn change(&mut self, bytes: u64) {
        // Seeded: what programs have is in nobody's account.
        bug!("stats_clients_not_counted", return);
        match bytes > self.0 {
            true => BYTES.add(MADE, bytes - self.0),
            false => BYTES.add(FREED, self.0 - bytes),
        }
        self.0 = bytes;
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::of(self.0 as usize)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Seeded: what programs gave back still counts.
        bug!("stats_clients_never_end", return);
        self.set(0);
    }
}

#[cfg(test)]
mod tests;
