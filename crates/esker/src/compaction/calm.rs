//! Tightening: what is compacted in a database to which nobody writes.
//!
//! Under load runs wait, because it is cheaper to rewrite them together with later ones. Without
//! writes there are no later ones, and readers go on paying for each run that waits. So spans are
//! pushed then, and partitions compacted, that are not due.
//!
//! 1. All that waits is taken if a part of the data was written since that was last done
//!    ([`Calm::grants_all`]), otherwise only where what waits amounts to a part of what lies below it
//!    ([`policy::is_loose`]). A tree of a few flushes is left alone. So a byte is rewritten by this a
//!    bounded number of times, however often the writes pause (S25).
//! 2. It begins when nothing was written for [`policy::CALM_AFTER`], or when a caller waits for the
//!    background. A database that was not written to since it was opened is left as it is. A write
//!    ends it: what is under way is finished, and nothing more is taken.
//! 3. The highest tier comes first, so that no partition is compacted twice.
//! 4. What several trees share is left alone: each would get a copy of its own.
//! 5. When nothing is left to tighten, settled data is compressed ([`settle`](super::settle)).
//! 6. Dead space is given back before that, more of it after [`policy::QUIET_AFTER`] ([`space`](super::space)).
//!
//! Pure: nothing here does I/O.

#[cfg(test)]
mod tests;

use super::policy;
use super::queue::PartitionKey;
use super::tiers::children;
use crate::base::{Bytewise, KeyOrder, Seq};
use crate::catalog::{Catalog, Order};
use crate::manifest::{Partition, Store, Tree, Version};
use crate::options::settings::Settings;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether writes have paused, and whether there is nothing left to tighten.
#[derive(Debug)]
pub struct Calm {
    /// The end of the writes when somebody looked last, and when it was first seen.
    seen: (Seq, Instant),
    tight: bool,
    /// Whether anything was written since the database was opened.
    written: bool,
    /// The bytes that users had written when all that waited was last taken, and the end of the
    /// writes at that time. What was begun then goes on until the next write.
    granted: (u64, Option<Seq>),
}

/// How calm a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calmness {
    /// There is nothing to tighten until the next write.
    Tight,
    /// It will be calm after so long, unless there are writes.
    After(Duration),
    /// Nothing was written for long enough.
    Calm,
}

/// Whether a database is quiet: nothing was written for so long that it gives back what is little, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// Not before the next write: nothing was written since the database was opened.
    Never,
    /// After so long, unless there are writes.
    After(Duration),
    /// It is.
    Now,
}

impl Quiet {
    /// How long it takes until it is, if it takes time.
    pub fn left(self) -> Option<Duration> {
        match self {
            Self::After(left) => Some(left),
            Self::Never | Self::Now => None,
        }
    }
}

impl Calmness {
    /// There is nothing to do but what comes after this time, if anything does.
    pub fn after(wait: Option<Duration>) -> Self {
        wait.map_or(Self::Tight, Self::After)
    }
}

impl Calm {
    /// A database that was opened now.
    pub fn new(visible: Seq, now: Instant) -> Self {
        Self { seen: (visible, now), tight: true, written: false, granted: (0, None) }
    }

    /// Looks at the end of the writes.
    pub fn look(&mut self, visible: Seq, now: Instant) -> (Calmness, Quiet) {
        if visible != self.seen.0 {
            (self.seen, self.tight, self.written) = ((visible, now), false, true);
        }
        let pause = now.saturating_duration_since(self.seen.1);
        let calmness = match (self.tight, policy::CALM_AFTER.saturating_sub(pause)) {
            (true, _) => Calmness::Tight,
            (false, Duration::ZERO) => Calmness::Calm,
            (false, left) => Calmness::After(left),
        };
        let quiet = match (self.written, policy::QUIET_AFTER.saturating_sub(pause)) {
            (false, _) => Quiet::Never,
            (true, Duration::ZERO) => Quiet::Now,
            (true, left) => Quiet::After(left),
        };
        (calmness, quiet)
    }

    /// Whether nothing was written since somebody looked.
    pub fn lasts(&self, visible: Seq) -> bool {
        // Seeded: tightening goes on beside writes.
        visible == self.seen.0 || bug!("compaction_tightens_beside_writes")
    }

    /// Whether nothing was written since there was nothing left to do.
    pub fn is_tight(&self, visible: Seq) -> bool {
        self.tight && self.lasts(visible)
    }

    /// Whether all that waits is taken, in trees with so many bytes below. Users have written
    /// `user_bytes` since the database was opened.
    pub fn grants_all(&mut self, user_bytes: u64, base_bytes: u64) -> bool {
        let (before, until) = self.granted;
        if until == Some(self.seen.0) {
            return true;
        }
        let grants = policy::is_loose(user_bytes.saturating_sub(before), base_bytes);
        if grants {
            self.granted = (user_bytes, Some(self.seen.0));
        }
        grants
    }

    /// Notes that there is nothing left to do, as somebody found who looked when the writes ended
    /// there.
    pub fn tightened(&mut self, visible: Seq) {
        self.tight |= visible == self.seen.0;
    }
}

/// The partitions and spans of all trees that are loose, those of the highest tier of each tree;
/// `all`: in which anything waits. A part with more bytes than `room` is left as it is.
pub fn loose_parts(
    version: &Version,
    (catalog, store): (&Mutex<Catalog>, &Mutex<Store>),
    (settings, all): (&Settings, bool),
    room: u64,
) -> Vec<PartitionKey> {
    let is_shared = |part: &Partition| store.lock().shares(part);
    let mut keys = Vec::new();
    for (id, tree) in version.trees() {
        let Some(owner) = catalog.lock().thawed(*id) else { continue };
        let (tier, parts) = match &owner.order {
            Order::Bytewise => loose(&Bytewise, tree, (settings, all), is_shared),
            Order::Custom(order) => loose(order, tree, (settings, all), is_shared),
            Order::Missing(_) => continue,
        };
        let bytes = |part: &Partition| part.base.bytes() + part.delta_bytes();
        let parts = parts.iter().filter(|part| bytes(part) <= room);
        let key = |lower| PartitionKey { keyspace: *id, tier, lower };
        keys.extend(parts.map(|part| key(part.lower.clone())));
    }
    keys
}

/// The loose parts of the highest row that has any: a tier with its spans, or 0 with partitions;
/// `all`: those in which anything waits. None if the tree is small, or tight.
fn loose<O: KeyOrder>(
    order: &O,
    tree: &Tree,
    (settings, all): (&Settings, bool),
    is_shared: impl Fn(&Partition) -> bool,
) -> (usize, Vec<Arc<Partition>>) {
    let row = &tree.rows()[0];
    if !is_tightened(row.base_bytes(), settings) {
        return (0, Vec::new());
    }
    let own = |part: &Arc<Partition>| (part.base.bytes(), part.delta_bytes());
    let is_loose = |part: &Arc<Partition>, (base, pending): (u64, u64)| {
        !part.deltas.is_empty() && (all || policy::is_loose(pending, base)) && !is_shared(part)
    };
    let mut bytes: Vec<(u64, u64)> = row.partitions().iter().map(own).collect();
    let parts = row.partitions().iter().zip(&bytes);
    let mut found = (0, loose_of(parts, is_loose));
    for (tier, rows) in tree.rows().windows(2).enumerate() {
        let [below, row] = rows else { break };
        let sum = |span: &Arc<Partition>| {
            let parts = bytes[children(order, below, span)].iter();
            let (base, pending) = parts.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            (base, pending + span.delta_bytes())
        };
        bytes = row.partitions().iter().map(sum).collect();
        let spans = loose_of(row.partitions().iter().zip(&bytes), is_loose);
        if !spans.is_empty() {
            found = (tier + 1, spans);
        }
    }
    found
}

fn loose_of<'p>(
    parts: impl Iterator<Item = (&'p Arc<Partition>, &'p (u64, u64))>,
    is_loose: impl Fn(&Arc<Partition>, (u64, u64)) -> bool,
) -> Vec<Arc<Partition>> {
    parts.filter(|(part, bytes)| is_loose(part, **bytes)).map(|(part, _)| part.clone()).collect()
}

/// Whether a tree of this size is tightened.
fn is_tightened(base_bytes: u64, settings: &Settings) -> bool {
    settings.small_tiers.map_or_else(
        || policy::is_worth_tightening(base_bytes, settings.flush_bytes()),
        |small| small.tightens,
    )
}
