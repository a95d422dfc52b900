//! The background work that is due, and who does it (`docs/compaction.md`).
//!
//! 1. Flushes have a thread of their own, or go first where a single worker does everything: it lets a due
//!    flush run between the steps of a compaction. So writers do not wait for a compaction to end,
//!    unless no further run may lie over some key (S15).
//! 2. Only one worker at a time compacts a partition. The partition is *busy* meanwhile, and only
//!    deltas are added to it.
//! 3. Work that failed for lack of space is tried again when space may have been freed. A partition
//!    whose compaction failed because of damage is left alone from then on, so that other work
//!    continues (C3). A partition whose comparator is missing is left alone until the comparator is
//!    given. Compactions that failed together are tried again one by one, to find out which of them
//!    failed.
//! 4. Threads wait on a signal; none polls. An idle worker checks again when the next segment may
//!    have expired.

use super::key::BACKGROUND;
pub use super::key::{PartitionKey, Request, Urgent};
use super::looks::Looks;
use super::policy;
use super::scores::{Candidate, Shape, expiry_score};
use crate::base::{KeyspaceId, Millis};
use crate::error::Error;
use crate::manifest::{Moved, Partition, Tree};
use crate::options::settings::Settings;
use crate::sync::Signal;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Why compactions are done that a program asks for, as events say it.
pub const REQUESTED: &str = "requested";
/// Why compactions are done that give space back, as events say it.
pub const SPACE: &str = "space";
/// Small compactions are run together until their input reaches this many bytes, so that many small
/// partitions do not become many small files (R28).
const PACK_BYTES: u64 = 8 << 20;
const PACK_COUNT: usize = 512;
/// So many of the most urgent partitions and spans say how full the tree is.
const LOOKED_AT: usize = 64;

#[derive(Debug, Default)]
struct Inner {
    candidates: HashMap<PartitionKey, Candidate>,
    /// Those that are being compacted or pushed.
    taken: HashMap<PartitionKey, Candidate>,
    shapes: HashMap<KeyspaceId, Shape>,
    /// What is compacted because it was requested, and by whom.
    forced: HashMap<PartitionKey, Vec<Request>>,
    last_request: u64,
    /// Partitions and spans that are compacted and pushed while nobody writes, though not due.
    loose: HashSet<PartitionKey>,
    /// Why these are.
    loose_cause: &'static str,
    /// Partitions of which every segment is to be rewritten.
    whole: HashSet<PartitionKey>,
    /// When the next segment of a keyspace will have expired, or earlier: a segment that has been
    /// removed since is still counted until its tree is scored as a whole.
    expiries: HashMap<KeyspaceId, Millis>,
    busy: HashSet<PartitionKey>,
    /// Keyspaces that are not compacted.
    still: HashSet<KeyspaceId>,
    /// Shared with those who look at how full trees are.
    damaged: Arc<HashMap<PartitionKey, Error>>,
    /// Partitions whose compaction failed together with others.
    alone: HashSet<PartitionKey>,
    /// Why compactions that a caller waits for failed.
    failed: HashMap<PartitionKey, Error>,
    /// The busy partitions whose compaction was requested.
    requested: HashSet<PartitionKey>,
    flushing: bool,
    compacting: usize,
    flush_error: Option<Error>,
    retry: bool,
    /// A caller waits for space; `true`: even a small gain is worth it.
    relief: Option<bool>,
    relieving: bool,
    /// A flush found no space while compactions held some: they end, and the flush is tried again.
    yielding: bool,
    /// How many partitions and spans were scored.
    #[cfg(test)]
    scored: usize,
}

/// The background work that is due or under way.
#[derive(Debug)]
pub struct WorkQueue {
    signal: Arc<Signal>,
    done: Signal,
    inner: Mutex<Inner>,
    /// Held while somebody looks for what is not due; where the looks before ended.
    looking: Mutex<Looks>,
}

impl Inner {
    /// Computes how urgent the compaction of one partition is.
    fn score(
        &mut self,
        keyspace: KeyspaceId,
        (tier, partition): (usize, &Partition),
        settings: &Settings,
        time: Millis,
    ) {
        #[cfg(test)]
        {
            self.scored += 1;
        }
        let shape = self.shapes.get(&keyspace).copied().unwrap_or_default();
        let due = shape.score(tier, partition, settings);
        let score = due.max(expiry_score(partition, time));
        let segments = partition.runs().flat_map(|run| run.segments());
        let expiries = segments.map(|segment| segment.meta().specials.last_expiry);
        if let Some(next) = expiries.filter(|expiry| *expiry > time).min() {
            let known = self.expiries.entry(keyspace).or_insert(next);
            *known = next.min(*known);
        }
        if score >= 1.0 {
            let key = PartitionKey { keyspace, tier, lower: partition.lower.clone() };
            self.candidates.insert(key, Candidate::of(partition, score));
        }
    }
}

impl WorkQueue {
    /// Nothing to do yet; `signal` wakes the workers.
    pub fn new(signal: Arc<Signal>) -> Self {
        Self { signal, done: Signal::default(), inner: Mutex::default(), looking: Mutex::default() }
    }

    /// Wakes the workers.
    pub fn notify(&self) {
        self.signal.notify();
    }

    /// The signal that wakes the workers.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// The signal that wakes the workers, to keep.
    pub fn shared_signal(&self) -> Arc<Signal> {
        self.signal.clone()
    }

    /// The signal that some work ended.
    pub fn done(&self) -> &Signal {
        &self.done
    }

    /// Excludes these keyspaces from compaction, as long as they have trees.
    pub fn keep_still(&self, keyspaces: impl IntoIterator<Item = KeyspaceId>) {
        self.inner.lock().still.extend(keyspaces);
    }

    /// Has copied trees begin with what is known of their originals, before they are scored.
    pub fn inherit(&self, copies: &[(KeyspaceId, KeyspaceId)]) {
        let mut inner = self.inner.lock();
        for (copy, original) in copies {
            if let Some(shape) = inner.shapes.get(original).copied() {
                inner.shapes.insert(*copy, shape);
            }
        }
    }

    /// Recomputes the scores of a changed tree; `None`: the tree is gone. `time` is that of the
    /// earliest reader: what has expired by then can be dropped.
    pub fn refresh(
        &self,
        keyspace: KeyspaceId,
        tree: Option<&Tree>,
        settings: &Settings,
        time: Millis,
    ) {
        let mut inner = self.inner.lock();
        let was_due = !inner.candidates.is_empty();
        inner.candidates.retain(|key, _| key.keyspace != keyspace);
        inner.expiries.remove(&keyspace);
        let Some(tree) = tree else {
            inner.forced.retain(|key, _| key.keyspace != keyspace);
            inner.whole.retain(|key| key.keyspace != keyspace);
            Arc::make_mut(&mut inner.damaged).retain(|key, _| key.keyspace != keyspace);
            inner.alone.retain(|key| key.keyspace != keyspace);
            inner.failed.retain(|key, _| key.keyspace != keyspace);
            inner.loose.retain(|key| key.keyspace != keyspace);
            inner.still.remove(&keyspace);
            inner.shapes.remove(&keyspace);
            self.wake(inner, was_due);
            return;
        };
        if inner.still.contains(&keyspace) {
            return;
        }
        inner.shapes.entry(keyspace).or_default().follow(tree, settings);
        for (tier, row) in tree.rows().iter().enumerate() {
            let partitions = row.partitions().iter();
            partitions.for_each(|part| inner.score(keyspace, (tier, part), settings, time));
        }
        self.wake(inner, was_due);
    }

    /// Like [`Self::refresh`], for the partitions that a change has moved in what is now `tree`: the
    /// cost depends on these partitions, not on the tree (S17). Only if spans become due at another
    /// number of runs, all spans are scored again.
    pub fn moved(
        &self,
        keyspace: KeyspaceId,
        (tree, moved): (&Tree, &Moved),
        settings: &Settings,
        time: Millis,
    ) {
        let mut inner = self.inner.lock();
        let was_due = !inner.candidates.is_empty();
        for (tier, partition) in &moved.gone {
            let (tier, lower) = (*tier, partition.lower.clone());
            inner.candidates.remove(&PartitionKey { keyspace, tier, lower });
        }
        if inner.still.contains(&keyspace) {
            return;
        }
        let changed = inner.shapes.entry(keyspace).or_default().follow(tree, settings);
        // Seeded: each change looks at all spans of the tree.
        if changed || bug!("compaction_each_change_scores_all_spans") {
            inner.candidates.retain(|key, _| key.keyspace != keyspace || key.tier == 0);
            for (tier, row) in tree.rows().iter().enumerate().skip(1) {
                let spans = row.partitions().iter();
                spans.for_each(|span| inner.score(keyspace, (tier, span), settings, time));
            }
        }
        for (tier, partition) in &moved.come {
            let tier = *tier;
            if partition.runs().all(|run| run.is_empty()) {
                // The damaged data is gone.
                let lower = partition.lower.clone();
                let key = PartitionKey { keyspace, tier, lower };
                if inner.damaged.contains_key(&key) {
                    Arc::make_mut(&mut inner.damaged).remove(&key);
                }
            }
            inner.score(keyspace, (tier, partition), settings, time);
        }
        self.wake(inner, was_due);
    }

    /// Takes into account what a compaction has seen: the share of entries that replaced nothing.
    pub fn saw_fresh(&self, keyspace: KeyspaceId, share: f64) {
        if let Some(shape) = self.inner.lock().shapes.get_mut(&keyspace) {
            shape.saw_fresh(share);
        }
    }

    /// The share of entries that replaced nothing, as compactions have seen it.
    pub fn fresh(&self, keyspace: KeyspaceId) -> f64 {
        self.inner.lock().shapes.get(&keyspace).map_or(0.0, |shape| shape.fresh)
    }

    /// The most urgent partitions and spans, also those being compacted or pushed. At most
    /// [`LOOKED_AT`]; damaged ones are named apart.
    pub fn most_urgent(&self) -> Urgent {
        let inner = self.inner.lock();
        let waiting = inner.candidates.iter().map(|(key, candidate)| (key, candidate.score));
        let under_way = inner.taken.iter().map(|(key, candidate)| (key, candidate.score));
        let under_way = under_way.filter(|(key, _)| !inner.candidates.contains_key(key));
        let whole = |(key, _): &(&PartitionKey, f64)| !inner.damaged.contains_key(key);
        let mut all: Vec<_> = waiting.chain(under_way).filter(whole).collect();
        if all.len() > LOOKED_AT {
            all.select_nth_unstable_by(LOOKED_AT, |a, b| b.1.total_cmp(&a.1));
            all.truncate(LOOKED_AT);
        }
        let runs_max = |id| inner.shapes.get(&id).map_or(policy::RUNS_MAX, |shape| shape.runs_max);
        let part =
            |(key, score): (&PartitionKey, f64)| (key.clone(), score, runs_max(key.keyspace));
        let parts = all.into_iter().map(part).collect();
        Urgent { parts, damaged: inner.damaged.clone() }
    }

    /// Wakes the workers if a compaction is due, and a flush that waits for one if none is any more.
    fn wake(&self, inner: MutexGuard<'_, Inner>, was_due: bool) {
        let due = was_due || inner.candidates.keys().any(|key| !inner.damaged.contains_key(key));
        drop(inner);
        if due {
            self.signal.notify();
        }
    }

    /// The keyspaces in which a segment has expired at `now` since they were scored.
    pub fn expired(&self, now: Millis) -> Vec<KeyspaceId> {
        let inner = self.inner.lock();
        let due = inner.expiries.iter().filter(|(_, expiry)| **expiry <= now);
        due.map(|(id, _)| *id).collect()
    }

    /// When the next segment will have expired.
    pub fn next_expiry(&self) -> Option<Millis> {
        self.inner.lock().expiries.values().min().copied()
    }

    /// Waits for others who look for what is not due, and says where the looks before ended.
    pub fn look(&self) -> MutexGuard<'_, Looks> {
        self.looking.lock()
    }

    /// Adds partitions and spans to be tightened (`calm.rs`), and why. Returns whether any can be.
    pub fn tighten(&self, keys: Vec<PartitionKey>, cause: &'static str) -> bool {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let can = |key: &PartitionKey| {
            !inner.still.contains(&key.keyspace) && !inner.damaged.contains_key(key)
        };
        inner.loose = keys.into_iter().filter(can).collect();
        inner.loose_cause = cause;
        let any = !inner.loose.is_empty();
        if any {
            self.signal.notify();
        }
        any
    }

    /// Takes the compactions or the pushes that come next, the most urgent first; small ones are
    /// taken together. `calm`: whether nobody writes. What is not due is taken then, or to give space back,
    /// by one worker at a time.
    pub fn take_compactions(&self, calm: bool) -> Vec<PartitionKey> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        // Seeded: what gives space back waits for a pause of the writes.
        let spare = bug!("compaction_space_waits_for_calm") || inner.loose_cause != SPACE;
        if !calm && spare {
            inner.loose.clear();
        }
        let family = |(key, candidate): (&PartitionKey, &Candidate)| candidate.family(key.place());
        let mut families: HashSet<_> = inner.taken.iter().filter_map(family).collect();
        let busy_families = families.clone();
        let family_of = |key: &PartitionKey| inner.candidates.get(key)?.family(key.place());
        let free = |key: &PartitionKey| {
            !inner.busy.contains(key)
                && !inner.damaged.contains_key(key)
                && family_of(key).is_none_or(|family| !busy_families.contains(&family))
        };
        let mut due: Vec<(f64, u64, PartitionKey)> = Vec::new();
        for (key, candidate) in inner.candidates.iter().filter(|(key, _)| free(key)) {
            due.push((policy::rank(key.tier, candidate.score), candidate.bytes, key.clone()));
        }
        for key in inner.forced.keys().filter(|key| free(key)) {
            let bytes = inner.candidates.get(key).map_or(PACK_BYTES / 64, |c| c.bytes);
            due.push((f64::INFINITY, bytes, key.clone()));
        }
        if due.is_empty() && inner.compacting == 0 {
            let loose = inner.loose.iter().filter(|key| free(key));
            due.extend(loose.map(|key| (0.0, PACK_BYTES / 4, key.clone())));
        }
        // Of equals the deeper come first: what is pushed needs room below.
        due.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
        let mut taken: Vec<PartitionKey> = Vec::new();
        let mut bytes = 0;
        let mut chosen = HashSet::new();
        let pushes = due.first().is_some_and(|(_, _, key)| key.tier > 0);
        for (_, size, key) in due.into_iter().filter(|(_, _, key)| (key.tier > 0) == pushes) {
            let alone = inner.alone.contains(&key);
            if !taken.is_empty()
                && (alone || bytes + size > PACK_BYTES || taken.len() >= PACK_COUNT)
            {
                break;
            }
            if family_of(&key).is_some_and(|family| !families.insert(family)) {
                continue;
            }
            if chosen.insert(key.clone()) {
                bytes += size;
                taken.push(key);
            }
            if alone {
                break;
            }
        }
        inner.compacting += taken.len();
        inner.busy.extend(taken.iter().cloned());
        for key in &taken {
            inner.loose.remove(key);
            if inner.forced.remove(key).is_some() {
                inner.requested.insert(key.clone());
            }
            if let Some(candidate) = inner.candidates.remove(key) {
                inner.taken.insert(key.clone(), candidate);
            }
        }
        taken
    }

    /// Why these are being compacted or pushed.
    pub fn cause(&self, keys: &[PartitionKey]) -> &'static str {
        let inner = self.inner.lock();
        if keys.iter().any(|key| inner.requested.contains(key)) {
            REQUESTED
        } else if keys.iter().any(|key| inner.taken.contains_key(key)) {
            "due"
        } else {
            inner.loose_cause
        }
    }

    /// Ends compactions; `error`: why they failed.
    pub fn end_compactions(&self, keys: &[PartitionKey], error: Option<&Error>) {
        let mut inner = self.inner.lock();
        inner.compacting -= keys.len();
        for key in keys {
            inner.busy.remove(key);
            inner.taken.remove(key);
            inner.requested.remove(key);
            inner.alone.remove(key);
            match error {
                Some(
                    Error::Corruption(_) | Error::ComparatorMissing { .. } | Error::DiskFull { .. },
                ) if keys.len() > 1 => {
                    inner.alone.insert(key.clone());
                    inner.forced.entry(key.clone()).or_default().push(BACKGROUND);
                }
                Some(error @ (Error::Corruption(_) | Error::ComparatorMissing { .. })) => {
                    Arc::make_mut(&mut inner.damaged).insert(key.clone(), error.clone());
                }
                Some(Error::Closed) => {}
                None => {
                    inner.failed.remove(key);
                    // A request that comes while the compaction runs is for the next compaction.
                    if !inner.forced.contains_key(key) {
                        inner.whole.remove(key);
                    }
                }
                Some(error) => {
                    inner.retry = true;
                    // Callers that wait for this compaction get the error and wait no longer (C8).
                    inner.failed.insert(key.clone(), error.clone());
                }
            }
        }
        drop(inner);
        self.done.notify();
    }

    /// Takes partitions that are not being compacted; false: one of them is busy. As long as they
    /// are taken, only deltas are added to them.
    pub fn take(&self, keys: &[PartitionKey]) -> bool {
        let mut inner = self.inner.lock();
        let free = keys.iter().all(|key| !inner.busy.contains(key));
        if free {
            inner.compacting += keys.len();
            inner.busy.extend(keys.iter().cloned());
        }
        free
    }

    /// Releases partitions that [`Self::take`] took.
    pub fn give_back(&self, keys: &[PartitionKey]) {
        let mut inner = self.inner.lock();
        inner.compacting -= keys.len();
        inner.busy.retain(|key| !keys.contains(key));
        drop(inner);
        self.done.notify();
        // Compactions of them may be due.
        self.signal.notify();
    }

    /// Compactions of these keyspaces lacked a comparator, which is now registered.
    pub fn comparator_arrived(&self, keyspaces: &[KeyspaceId]) {
        if keyspaces.is_empty() {
            return;
        }
        // Seeded: a partition whose comparator was missing is never compacted again.
        bug!("compaction_late_comparator_resumes_no_compaction", return);
        let mut inner = self.inner.lock();
        Arc::make_mut(&mut inner.damaged).retain(|key, error| {
            !(matches!(error, Error::ComparatorMissing { .. }) && keyspaces.contains(&key.keyspace))
        });
        drop(inner);
        self.signal.notify();
    }

    /// Whether a compaction of this partition, or a push of this span, is under way.
    pub fn is_busy(&self, keyspace: KeyspaceId, tier: usize, lower: Option<&[u8]>) -> bool {
        let inner = self.inner.lock();
        // Seeded: a span that is being pushed passes for a partition that is being compacted.
        let tier = if bug!("compaction_tiers_share_names") { 0 } else { tier };
        let key = || PartitionKey { keyspace, tier, lower: lower.map(<[u8]>::to_vec) };
        !inner.busy.is_empty() && inner.busy.contains(&key())
    }

    /// Why compactions currently fail, if they do.
    pub fn compaction_error(&self) -> Option<Error> {
        self.inner.lock().failed.values().next().cloned()
    }

    /// Requests relief; `all`: also where it frees little.
    pub fn ask_relief(&self, all: bool) {
        let mut inner = self.inner.lock();
        inner.relief = Some(all || inner.relief == Some(true));
        drop(inner);
        self.signal.notify();
    }

    /// Begins the requested relief; `None`: none was requested, or another thread runs it.
    pub fn begin_relief(&self) -> Option<bool> {
        let mut inner = self.inner.lock();
        let asked = if inner.relieving { None } else { inner.relief.take() };
        inner.relieving |= asked.is_some();
        asked
    }

    /// Whether relief is requested.
    pub fn is_relief_asked(&self) -> bool {
        self.inner.lock().relief.is_some()
    }

    /// Ends relief.
    pub fn end_relief(&self) {
        self.inner.lock().relieving = false;
        self.done.notify();
    }

    /// Whether relief is the only work: no flush or compaction is under way.
    pub fn is_relief_alone(&self) -> bool {
        let inner = self.inner.lock();
        !inner.flushing && inner.compacting == 0
    }

    /// Whether nothing that may free space is under way or requested.
    pub fn is_settled(&self) -> bool {
        let inner = self.inner.lock();
        inner.relief.is_none()
            && !inner.relieving
            && !inner.yielding
            && !inner.flushing
            && inner.compacting == 0
            && inner.forced.keys().all(|key| inner.damaged.contains_key(key))
    }

    /// Whether some work failed that should be retried after a while.
    pub fn take_retry(&self) -> bool {
        std::mem::take(&mut self.inner.lock().retry)
    }

    /// Whether a compaction or a push is under way.
    pub fn is_compacting(&self) -> bool {
        self.inner.lock().compacting > 0
    }

    /// Whether no compaction is due or under way and no flush runs.
    pub fn is_quiet(&self) -> bool {
        let inner = self.inner.lock();
        let waits = |key: &PartitionKey| !inner.damaged.contains_key(key);
        !inner.flushing
            && inner.compacting == 0
            && !inner.candidates.keys().any(waits)
            && !inner.forced.keys().any(waits)
            && inner.loose.is_empty()
    }

    /// Bytes that the due compactions will have to read and write, by keyspace.
    pub fn debts(&self) -> HashMap<KeyspaceId, u64> {
        let mut debts = HashMap::new();
        for (key, candidate) in &self.inner.lock().candidates {
            *debts.entry(key.keyspace).or_default() += candidate.bytes;
        }
        debts
    }
}

mod flushes;
mod requests;
#[cfg(test)]
mod tests;
