//! Compactions on request, whatever is due: what is asked for, and what is taken back again.

use super::{Inner, WorkQueue};
use crate::compaction::key::{BACKGROUND, PartitionKey, Request};
use crate::error::Result;

impl Inner {
    /// Returns whether one of these was not requested yet.
    pub(super) fn force(
        &mut self,
        request: Request,
        keys: impl IntoIterator<Item = PartitionKey>,
    ) -> bool {
        let mut any = false;
        for key in keys {
            self.failed.remove(&key);
            let requests = self.forced.entry(key).or_default();
            any |= requests.is_empty();
            if !requests.contains(&request) {
                requests.push(request);
            }
        }
        any
    }
}

impl WorkQueue {
    /// Requests compactions of these partitions whatever their score.
    pub fn force(&self, keys: impl IntoIterator<Item = PartitionKey>) {
        if self.inner.lock().force(BACKGROUND, keys) {
            self.signal.notify();
        }
    }

    /// The same for a caller, who may take it back. The compactions of `whole` rewrite everything.
    pub fn request(&self, keys: &[PartitionKey], whole: &[PartitionKey]) -> Request {
        let mut inner = self.inner.lock();
        inner.last_request += 1;
        let request = Request(inner.last_request);
        inner.whole.extend(whole.iter().cloned());
        let any = inner.force(request, keys.iter().cloned());
        drop(inner);
        if any {
            self.signal.notify();
        }
        request
    }

    /// Takes back what of a request was not begun, except what others requested too.
    pub fn take_back(&self, request: Request, keys: &[PartitionKey]) {
        // Seeded: what a caller has given up is compacted all the same.
        bug!("compaction_interrupted_goes_on", return);
        let mut inner = self.inner.lock();
        let inner_mut = &mut *inner;
        for key in keys {
            let Some(requests) = inner_mut.forced.get_mut(key) else { continue };
            requests.retain(|other| *other != request);
            // Seeded: a caller that gives up takes the compaction from another that waits for it.
            if requests.is_empty() || bug!("compaction_interrupted_takes_from_others") {
                inner_mut.forced.remove(key);
                // What is being compacted is compacted as it was begun.
                // Seeded: the next compaction rewrites everything, which nobody wants any more.
                if !inner_mut.busy.contains(key) && !bug!("compaction_taken_back_stays_whole") {
                    inner_mut.whole.remove(key);
                }
            }
        }
        drop(inner);
        // There may be nothing left to do.
        self.done.notify();
    }

    /// Whether every segment of a partition that is being compacted is to be rewritten.
    pub fn is_whole(&self, key: &PartitionKey) -> bool {
        self.inner.lock().whole.contains(key)
    }

    /// Whether a requested compaction of one of these is pending or under way; the error if one cannot be.
    pub fn forced_pending(&self, keys: &[PartitionKey]) -> Result<bool> {
        let inner = self.inner.lock();
        let error = |key| inner.damaged.get(key).or_else(|| inner.failed.get(key));
        if let Some(error) = keys.iter().find_map(error) {
            return Err(error.clone());
        }
        Ok(keys.iter().any(|key| inner.forced.contains_key(key) || inner.busy.contains(key)))
    }
}

#[cfg(test)]
mod tests;
