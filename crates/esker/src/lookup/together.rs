//! Searches of several keys whose waits for memory overlap.
//!
//! One search follows about ten addresses, each of which the last one told, and none of which is in the processor's
//! cache where data are large. Searches of different keys do not depend on each other. So a group of them goes through
//! three stages, each for all keys before the next: where the block is ([`Search::locate`]), fetch its frame
//! ([`Place::prefetch`]), look into it ([`Search::finish`]). This is group prefetching (Chen et al., ICDE 2004).
//!
//! 1. A key takes this way only as long as memory answers: no memtable may hold it, no run before its block has
//!    range tombstones, and its block is cached. For all others [`Search::locate`] or [`Search::finish`] says so,
//!    nothing was counted, and [`Search::run`] finds them.
//! 2. The sources are asked in the order of [`Search::run`], newest first, so the first that has the key has its newest
//!    version.

use super::{Answer, Hit, Search, Seen};
use crate::catalog::KeyspaceState;
use crate::error::Result;
use crate::run::{Access, Awaited, Awaits, Located, Location, Probe, Wanted};
use crate::state::State;
use crate::state::memtables::DbOrder;
use crate::stats::counters::{CallLane, Counter};
use crate::sync::Guard;

/// Where the newest version of a key is, as far as memory tells.
#[derive(Clone, Copy)]
pub struct Place<'g> {
    /// The block that may have it; `None`: no run has the key.
    located: Option<Located<'g>>,
    /// Filters that said that their runs do not have it.
    absent: u64,
}

impl Place<'_> {
    /// Starts to fetch the block.
    #[inline]
    pub fn prefetch(&self) {
        if let Some(located) = &self.located {
            located.prefetch();
        }
    }

    /// Whether its block, if there is one, is cached at this moment.
    pub fn is_in_memory(&self) -> bool {
        self.located.is_none_or(|located| located.is_cached())
    }

    /// Counts what the filters answered, and where a value was found, of a search that [`Search::finish`] has ended.
    pub fn count(&self, lane: CallLane<'_>, found: bool) {
        // Where a filter let the search pass, it ended at a version, if only a delete.
        let filtered = self.located.is_some_and(|located| located.filtered);
        lane.add(Counter::FilterAbsent as usize, self.absent);
        lane.add(Counter::FilterFound as usize, u64::from(filtered));
        lane.add(Counter::GetsCached as usize, u64::from(found));
    }
}

impl<O: DbOrder> Search<'_, O> {
    /// Where the key is. `None`: a whole search has to tell.
    #[inline]
    pub fn locate<'g>(&self, hash: u64, state: &'g State, guard: &'g Guard) -> Option<Place<'g>> {
        let (keyspace, key) = (self.asked.keyspace, self.asked.key);
        let in_memory = |set| O::may_hold(set, keyspace.id_in(set.start), hash);
        // Seeded: reads of several keys see nothing that was not flushed.
        let unseen = bug!("lookup_memtables_not_located");
        if !unseen && state.memtable_sets.iter().any(|set| in_memory(set)) {
            return None;
        }
        let wanted = Wanted { key, hash, below: self.below, doubtful: false };
        let mut absent = 0;
        let tree = state.version.tree(keyspace.id);
        for (tier, row) in tree.into_iter().flat_map(|tree| tree.rows().iter().enumerate().rev()) {
            let partition = &row.partitions()[row.find(self.order, key)];
            for run in partition.runs_in(tier) {
                match run.locate(self.order, wanted, guard) {
                    Location::Absent(filtered) => absent += u64::from(filtered),
                    Location::Unknown | Location::Unread(_) => return None,
                    Location::Block(located) => {
                        return Some(Place { located: Some(located), absent });
                    }
                }
            }
        }
        Some(Place { located: None, absent })
    }

    /// Looks at the place, and hands the value to `take`. Anything but a value or its absence: a whole search has to
    /// tell.
    ///
    /// # Errors
    /// Those of [`Self::run`].
    #[inline]
    pub fn finish<'g, R, F: FnOnce(Seen<'_>) -> R>(
        &self,
        (place, hash): (Place<'g>, u64),
        guard: &'g Guard,
        take: F,
    ) -> Result<Answer<R>> {
        let Some(located) = place.located else { return Ok(Answer::Absent) };
        if !located.is_cached() {
            return Ok(Answer::NeedsIo);
        }
        let wanted = Wanted { key: self.asked.key, hash, below: self.below, doubtful: false };
        Ok(match located.get(self.order, wanted, guard)? {
            Probe::Found(found) => {
                let value = Seen { bytes: found.value(), block: Some(&found.block) };
                let hit = Hit { seq: found.seq, kind: found.kind, cover: 0, value };
                self.settle(&hit, &mut Some(take))
            }
            // Seeded: what a run does not have, older runs do not have.
            Probe::Absent if located.is_base() || bug!("lookup_older_runs_not_searched") => {
                Answer::Absent
            }
            Probe::Absent | Probe::NeedsIo => Answer::NeedsIo,
        })
    }
}

/// What a search of the key would read first. `None`: nothing, as far as memory tells.
pub fn awaited<O: DbOrder>(
    order: &O,
    keyspace: &KeyspaceState,
    wanted: Wanted<'_>,
    (state, guard): (&State, &Guard),
) -> Option<Awaited> {
    let Wanted { key, hash, below, .. } = wanted;
    for set in state.memtable_sets.iter() {
        let id = keyspace.id_in(set.start);
        if O::may_hold(set, id, hash)
            && O::tables(set, id).any(|table| {
                table.tombstone_seq(id, key, below) > 0
                    || table.get_hashed(id, key, hash, below).is_some()
            })
        {
            return None;
        }
    }
    let rows = state.version.tree(keyspace.id)?.rows();
    for (tier, row) in rows.iter().enumerate().rev() {
        let partition = &row.partitions()[row.find(order, wanted.key)];
        for run in partition.runs_in(tier) {
            match run.awaits(order, wanted, guard) {
                Awaits::NextRun => {}
                Awaits::Nothing => return None,
                Awaits::Read(awaited) => return Some(awaited),
            }
            // What a range tombstone hides is not read.
            let access = Access::Cached(guard);
            let cover = run.tombstone_seq(order, wanted.key, wanted.below, access);
            if !matches!(cover, Ok(Some(0))) {
                return None;
            }
        }
    }
    None
}
