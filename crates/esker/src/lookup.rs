//! The search of one key through the sources, from new to old: memtables, the pending runs of the
//! spans that hold the key, from the top tier down, then the runs of its partition, until one of
//! them has the key.
//!
//! The code is generic over a recorder. That of a plain read is empty but for the counts of filters,
//! so the code that describes steps is compiled out of it.

pub mod counting;
pub mod doubt;
pub mod together;

use crate::base::codec::hash_key;
use crate::base::{Kind, Moment, Seq, SteadyClock, expired, split};
use crate::cache::{BlockCache, FramePin, Pins};
use crate::catalog::KeyspaceState;
use crate::error::Result;
use crate::run::{Access, BlockRef, Pieces, Probe, Wanted};
use crate::state::State;
use crate::state::memtables::DbOrder;
use crate::stats::counters::{CallLane, Counter};
use crate::trace::{FilterAnswer, Outcome, Recorder};
use counting::counter_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first run of the newest row: a search that found its answer in memory reached no run.
const ALL_RUNS: (usize, usize) = (usize::MAX, 0);
/// No memtable is left.
const NO_MEMTABLE: (usize, usize) = (usize::MAX, 0);

/// The result of an attempt.
pub enum Answer<R> {
    /// A block or an index is not in memory.
    NeedsIo,
    /// There is no value.
    Absent,
    /// The newest version is an operand.
    Operand,
    /// What became of the value.
    Present(R),
}

/// A point read: what is asked, and the lane that counts it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The keyspace.
    pub keyspace: &'a Arc<KeyspaceState>,
    /// The key.
    pub key: &'a [u8],
    /// A registered snapshot's moment.
    pub at: Option<Moment>,
    /// The calling thread's counters.
    pub lane: CallLane<'a>,
    /// Whether a value in pieces stays where it is: then it is [`Seen::pieces`], and its bytes are none.
    pub leaves_pieces: bool,
}

impl Asked<'_> {
    /// The result of a read that found a value. A read that came after the drop of its keyspace
    /// fails, whatever it found.
    #[inline]
    pub fn present<R>(self, value: R) -> Result<Option<R>> {
        self.keyspace.check_there()?;
        Ok(Some(value))
    }

    /// The result of a read that found nothing.
    #[inline]
    pub fn absent<R>(self) -> Result<Option<R>> {
        self.keyspace.check_there()?;
        Ok(None)
    }

    /// Counts a value that was found.
    #[inline]
    pub fn count_found(self, counter: Counter) {
        // Seeded: each value that is found adds to a counter that all threads share.
        if bug!("lookup_threads_share_a_counter") {
            static SHARED: AtomicU64 = AtomicU64::new(0);
            SHARED.fetch_add(1, Ordering::Relaxed);
        }
        if !cfg!(feature = "bench-no-stats") {
            self.lane.add(counter as usize, 1);
        }
    }
}

/// A point read in progress.
pub struct Search<'a, O> {
    /// The order of the keys.
    pub order: &'a O,
    /// What is looked for.
    pub asked: Asked<'a>,
    /// Entries with smaller sequence numbers are seen.
    pub below: Seq,
    /// The time, where there is no such moment.
    pub clock: &'a SteadyClock,
    /// The cache.
    pub cache: &'a Arc<BlockCache>,
}

/// A value at the place where it was found; it stays there while the caller's function runs.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    bytes: &'a [u8],
    /// The block that holds it; `None`: it is in memory that only the search protects.
    block: Option<&'a BlockRef<'a>>,
}

impl<'a> Seen<'a> {
    /// A value that lies outside of blocks.
    pub fn copied(bytes: &'a [u8]) -> Self {
        Self { bytes, block: None }
    }

    /// The value.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The value, if it is in pieces that were not read.
    pub fn pieces(self) -> Option<&'a Pieces> {
        self.block.and_then(BlockRef::pieces)
    }

    /// Makes the value readable for a moment after the search: copies a short one into `short`, holds a longer one. A
    /// pin writes to the head of the block, whose line nobody else needs: a copy of few lines costs less.
    #[inline]
    pub fn lend(self, short: &mut ShortValue) -> Lent {
        match short.get_mut(..self.bytes.len()) {
            Some(copy) => {
                copy.copy_from_slice(self.bytes);
                Lent::Copied(self.bytes.len())
            }
            None => Lent::Held(self.hold()),
        }
    }

    /// Keeps the value for longer, by pinning its block or by a copy.
    pub fn hold(self) -> Held {
        let Some(block) = self.block else { return Held::Copy(self.bytes.to_vec()) };
        let pin = block.pin();
        let start = self.bytes.as_ptr() as usize - pin.bytes().as_ptr() as usize;
        Held::Block { pin, range: (start, start + self.bytes.len()) }
    }

    /// Keeps the value for an owner that asked for no block: pins its block only where that saves a copy of some length
    /// and the block is not much larger, so that values which are kept take at most twice their bytes.
    pub fn hold_if_long(self) -> Held {
        if self.bytes.len() < LONG {
            return Held::Copy(self.bytes.to_vec());
        }
        match self.hold() {
            Held::Block { pin, .. } if pin.size() > 2 * self.bytes.len() as u64 => {
                Held::Copy(self.bytes.to_vec())
            }
            held => held,
        }
    }
}

/// A value that is kept for an owner of any kind is copied if it has fewer bytes.
const LONG: usize = 4096;

/// Where a short value is copied to.
pub type ShortValue = [u8; 256];

/// What a search left of a value that is read soon.
#[derive(Debug)]
pub enum Lent {
    /// So many bytes are in the [`ShortValue`].
    Copied(usize),
    /// It stays where it is.
    Held(Held),
}

impl Lent {
    /// The value.
    #[inline]
    pub fn bytes<'a>(&'a self, short: &'a ShortValue) -> &'a [u8] {
        match self {
            Self::Copied(len) => &short[..*len],
            Self::Held(held) => held.bytes(),
        }
    }
}

/// A value that stays readable while this lives, without an epoch.
#[derive(Debug)]
pub enum Held {
    /// In a cached block.
    Block {
        /// Keeps the block.
        pin: FramePin,
        /// Where the value stands in it.
        range: (usize, usize),
    },
    /// Taken from a memtable, or folded from operands.
    Copy(Vec<u8>),
}

impl Held {
    /// The value.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Block { pin, range } => &pin.bytes()[range.0..range.1],
            Self::Copy(bytes) => bytes,
        }
    }

    /// Keeps the value for any time. Its block counts as what iterators hold does, until its owner
    /// [gives it back](Held::give_back); where all of them hold too much, the value is copied.
    pub fn keep(self, pins: &Pins) -> Self {
        // Seeded: values that a program keeps hold blocks without a bound.
        if pins.have_room() || bug!("lookup_pinned_values_without_bound") {
            pins.add(self.pinned());
            return self;
        }
        Self::Copy(self.bytes().to_vec())
    }

    /// Bytes of the block that it pins.
    fn pinned(&self) -> u64 {
        match self {
            Self::Block { pin, .. } => pin.size(),
            Self::Copy(_) => 0,
        }
    }

    /// Drops a value that was [kept](Held::keep). Its owner has no handle of the database, which may be closed and gone.
    pub fn give_back(self) {
        let Self::Block { pin, .. } = &self else { return };
        // Freeing a block may take locks, which in a forked child may be held by a thread that does not exist there (R26).
        if pin.is_forked() {
            std::mem::forget(self);
            return;
        }
        // Seeded: values that are gone still count as pinned.
        bug!("lookup_pinned_values_still_count", return);
        pin.pins().add(self.pinned().wrapping_neg());
    }
}

/// An entry that a search found.
struct Hit<'a> {
    seq: Seq,
    kind: Kind,
    /// The newest range tombstone that covers the key.
    cover: Seq,
    value: Seen<'a>,
}

impl<O: DbOrder> Search<'_, O> {
    /// How a step ended that found an entry.
    fn outcome<R>(&self, hit: &Hit<'_>, answer: &Answer<R>) -> Outcome {
        match (hit.kind, answer) {
            _ if hit.seq < hit.cover => Outcome::RangeDeleted,
            (Kind::Delete, _) => Outcome::Deleted,
            (_, Answer::Operand) => Outcome::Operand,
            (_, Answer::Present(_)) => Outcome::Found,
            _ => Outcome::Expired,
        }
    }

    /// Records the steps that the search did not reach: memtables from `set` on, and runs from
    /// `run` of `tier` on.
    fn not_reached<T: Recorder>(
        &self,
        state: &State,
        set: (usize, usize),
        (tier, run): (usize, usize),
        recorder: &mut T,
    ) {
        let (mut n, mut newer) = set;
        while let Some(set) = state.memtable_sets.get(n) {
            for newer in newer..O::count(set) {
                recorder.step(state.memtable::<O>(n, newer), Some(Outcome::NotReached));
            }
            (n, newer) = (n + 1, 0);
        }
        let Some(tree) = state.version.tree(self.asked.keyspace.id) else { return };
        for (at, row) in tree.rows().iter().enumerate().rev() {
            let number = row.find(self.order, self.asked.key);
            let partition = &row.partitions()[number];
            for n in 0..partition.runs_in(at).count() {
                if at < tier || (at == tier && n >= run) {
                    recorder.step(partition.source(at, number, n), Some(Outcome::NotReached));
                }
            }
        }
    }

    /// Searches `state`, and hands the value to `take`. All plain reads share one copy of it for
    /// each kind of value; so it is called, and what it calls is part of it.
    #[inline(never)]
    pub fn run<R, F: FnOnce(Seen<'_>) -> R, T: Recorder>(
        &self,
        state: &State,
        access: Access<'_>,
        take: &mut Option<F>,
        recorder: &mut T,
    ) -> Result<Answer<R>> {
        let Search { asked: Asked { keyspace, key, .. }, below, .. } = *self;
        let hash = hash_key(key);
        for (n, set) in state.memtable_sets.iter().enumerate() {
            let id = keyspace.id_in(set.start);
            // One filter answers for all memtables of a set, which hold few of the keys.
            if !T::RECORDS && !O::may_hold(set, id, hash) {
                continue;
            }
            for (newer, table) in O::tables(set, id).enumerate() {
                let cover = table.tombstone_seq(id, key, below);
                if let Some(found) = table.get_hashed(id, key, hash, below) {
                    let value = Seen { bytes: found.value, block: None };
                    let hit = Hit { seq: found.seq, kind: found.kind, cover, value };
                    let answer = self.settle(&hit, take);
                    if matches!((&answer, access), (Answer::Present(_), Access::Cached(_))) {
                        self.asked.count_found(Counter::GetsElsewhere);
                    }
                    if T::RECORDS {
                        recorder
                            .step(state.memtable::<O>(n, newer), Some(self.outcome(&hit, &answer)));
                        self.not_reached(state, (n, newer + 1), ALL_RUNS, recorder);
                    }
                    return Ok(answer);
                }
                if T::RECORDS {
                    let outcome = match table.filter_passes(id, hash) {
                        _ if cover > 0 => Outcome::RangeDeleted,
                        Some(false) => Outcome::FilterAbsent,
                        Some(true) => Outcome::FalsePositive,
                        None => Outcome::Absent,
                    };
                    recorder.step(state.memtable::<O>(n, newer), Some(outcome));
                }
                // Seeded: a get finds an entry in a run that a range delete in memory hides.
                bug!("lookup_range_delete_in_memory_not_carried", continue);
                if cover > 0 {
                    if T::RECORDS {
                        self.not_reached(state, (n, newer + 1), ALL_RUNS, recorder);
                    }
                    return Ok(Answer::Absent);
                }
            }
        }
        let wanted = Wanted { key, hash, below, doubtful: doubt::is_high() };
        self.search_runs(wanted, (state, access), take, recorder)
    }

    #[inline(always)]
    fn search_runs<R, F: FnOnce(Seen<'_>) -> R, T: Recorder>(
        &self,
        wanted: Wanted<'_>,
        (state, access): (&State, Access<'_>),
        take: &mut Option<F>,
        recorder: &mut T,
    ) -> Result<Answer<R>> {
        let Search { order, asked: Asked { keyspace, .. }, .. } = *self;
        let Some(tree) = state.version.tree(keyspace.id) else { return Ok(Answer::Absent) };
        // Seeded: a get does not see what the tiers hold.
        let rows = if bug!("lookup_tiers_not_searched") { &tree.rows()[..1] } else { tree.rows() };
        'rows: for (tier, row) in rows.iter().enumerate().rev() {
            let number = row.find(order, wanted.key);
            let partition = &row.partitions()[number];
            for (n, run) in partition.runs_in(tier).enumerate() {
                let Some(cover) = run.tombstone_seq(order, wanted.key, wanted.below, access)?
                else {
                    return Ok(Answer::NeedsIo);
                };
                match run.get(order, wanted, access, self.cache, recorder)? {
                    Probe::NeedsIo => return Ok(Answer::NeedsIo),
                    Probe::Found(found) => {
                        self.count_filters(recorder);
                        let value = Seen { bytes: found.value(), block: Some(&found.block) };
                        let hit = Hit { seq: found.seq, kind: found.kind, cover, value };
                        let answer = self.settle(&hit, take);
                        if matches!((&answer, access), (Answer::Present(_), Access::Cached(_))) {
                            self.asked.count_found(Counter::GetsCached);
                        }
                        if T::RECORDS {
                            let outcome = self.outcome(&hit, &answer);
                            recorder.step(partition.source(tier, number, n), Some(outcome));
                            self.not_reached(state, NO_MEMTABLE, (tier, n + 1), recorder);
                        }
                        return Ok(answer);
                    }
                    Probe::Absent => {
                        if T::RECORDS {
                            let outcome = (cover > 0).then_some(Outcome::RangeDeleted);
                            recorder.step(partition.source(tier, number, n), outcome);
                        }
                        // Seeded: a range delete in a tier hides nothing below the tier.
                        let ends = cover > 0
                            && !(tier > 0 && bug!("lookup_range_delete_in_tier_not_carried"));
                        if ends {
                            if T::RECORDS {
                                self.not_reached(state, NO_MEMTABLE, (tier, n + 1), recorder);
                            }
                            break 'rows;
                        }
                    }
                }
            }
        }
        self.count_filters(recorder);
        Ok(Answer::Absent)
    }

    /// Hands a found entry over, unless it is a delete or a range tombstone hides it.
    #[inline(always)]
    fn settle<R, F: FnOnce(Seen<'_>) -> R>(
        &self,
        hit: &Hit<'_>,
        take: &mut Option<F>,
    ) -> Answer<R> {
        if hit.seq < hit.cover {
            return Answer::Absent;
        }
        match hit.kind {
            // A run has fetched the value of what is separated.
            Kind::Put | Kind::SeparatedPut => {}
            Kind::Delete => return Answer::Absent,
            Kind::Merge | Kind::ExpiringMerge => return Answer::Operand,
            Kind::ExpiringPut | Kind::ExpiringSeparatedPut => {
                return self.take_expiring(hit.value, take);
            }
        }
        take.take().map_or(Answer::Absent, |take| Answer::Present(take(hit.value)))
    }

    /// Decides whether a value has expired.
    #[cold]
    fn take_expiring<R, F: FnOnce(Seen<'_>) -> R>(
        &self,
        stored: Seen<'_>,
        take: &mut Option<F>,
    ) -> Answer<R> {
        let (expiry, bytes) = split(Kind::ExpiringPut, stored.bytes);
        if expired(expiry, self.asked.at.map_or_else(|| self.clock.now(), |at| at.time)) {
            return Answer::Absent;
        }
        let value = Seen { bytes, ..stored };
        take.take().map_or(Answer::Absent, |take| Answer::Present(take(value)))
    }

    /// Adds what the filters answered, if the recorder has not counted it.
    #[inline]
    fn count_filters<T: Recorder>(&self, recorder: &T) {
        if T::RECORDS {
            let filters = recorder.uncounted();
            for answer in FilterAnswer::ALL {
                self.asked.lane.add(counter_of(answer) as usize, filters.of(answer));
            }
        }
    }
}
