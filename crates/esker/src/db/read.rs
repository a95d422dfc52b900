//! The path of a point read (`docs/read-path.md`): memtables, then the partition's runs from new
//! to old, until one of them has the key.
//!
//! 1. The first attempt runs inside an epoch and touches only what is in memory: no lock, no
//!    reference count, no I/O. If a block or index is missing, the attempt is repeated with owned
//!    references and may read (no I/O ever happens inside an epoch).
//! 2. The read goes through the sources from newest to oldest, so the first entry found is the
//!    newest. A range tombstone on the way hides everything older than itself. The read carries the
//!    newest tombstone so far along, and every later source is older (R18).
//! 3. Whether a value has expired depends on the time that belongs to the position; the clock is
//!    read only when such a value is found. An operand needs older entries too: a scan of this one
//!    key, over all sources, then replaces the search.
//! 4. The state is loaded before `visible` is read; see `state`.
//! 5. Only the engine's own code runs inside the epoch: it copies a value or pins its block. The
//!    caller's code runs after the epoch, since memory that is retired during a long epoch cannot
//!    be reused until the epoch ends (R25).

#[cfg(test)]
mod tests;

use crate::base::{Bytewise, KeyBuf, KeyOrder, Moment, Seq};
use crate::catalog::{KeyspaceState, Order, missing_order};
use crate::db::core::Core;
use crate::db::scan::{Scan, Scope};
use crate::error::Result;
use crate::iter::Bounds;
use crate::lookup::counting::Counting;
use crate::lookup::{Answer, Asked, Search, Seen, doubt};
use crate::run::Access;
use crate::state::memtables::DbOrder;
use crate::stats::counters::{Counter, Timed};
use crate::sync::pin;
use crate::trace::tally::bytes_read;
use crate::trace::{Explanation, Outcome, Recorder, Recording, StepSource, Unwatched};
use std::ops::Bound;
use std::sync::Arc;

impl Core {
    /// Looks a key up and hands its value to `take`, which must be the engine's own code and end
    /// soon (rule 5). `at`: a registered snapshot's moment.
    #[inline]
    pub fn get<R>(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        key: &[u8],
        at: Option<Moment>,
        take: impl FnOnce(Seen<'_>) -> R,
    ) -> Result<Option<R>> {
        self.get_as((keyspace, key, at), false, take)
    }

    /// As [`Self::get`]; if `in_place`, a value in pieces is not read: then `take` gets [`Seen::pieces`].
    #[inline]
    pub fn get_as<R>(
        self: &Arc<Self>,
        (keyspace, key, at): (&Arc<KeyspaceState>, &[u8], Option<Moment>),
        in_place: bool,
        take: impl FnOnce(Seen<'_>) -> R,
    ) -> Result<Option<R>> {
        self.check_open()?;
        let at = keyspace.moment(at);
        let Some(lane) = self.counters.count(Counter::Gets) else {
            return self.get_apart((keyspace, key, at), in_place, take);
        };
        let asked = Asked { keyspace, key, at, lane, leaves_pieces: in_place };
        self.get_recorded(asked, take, &mut Counting::new(lane))
    }

    /// The rare get that is timed, and that of a thread without counters of its own. It is a copy of
    /// the search, so that others hold no clock.
    #[cold]
    #[inline(never)]
    fn get_apart<R>(
        self: &Arc<Self>,
        (keyspace, key, at): (&Arc<KeyspaceState>, &[u8], Option<Moment>),
        leaves_pieces: bool,
        take: impl FnOnce(Seen<'_>) -> R,
    ) -> Result<Option<R>> {
        let apart = self.counters.count_apart(Counter::Gets);
        let lane = apart.lane();
        let asked = Asked { keyspace, key, at, lane, leaves_pieces };
        let timed = apart.is_timed().then(|| (self.counters.start(), bytes_read()));
        let found = self.get_recorded(asked, take, &mut Counting::new(lane));
        let Some((started, bytes)) = timed else { return found };
        let took = self.counters.since(started);
        self.counters.record(Timed::Get, took);
        if let Ok(found) = &found {
            doubt::note(found.is_some());
        }
        // A get that read a file has offered itself, with its steps.
        if bytes_read() == bytes {
            let name = &keyspace.name;
            let explain = || Explanation {
                found: matches!(found, Ok(Some(_))),
                ..Explanation::of("get", name, took)
            };
            self.slowest.offer("get", took, explain);
        }
        found
    }

    /// A get that says what it did.
    pub fn explain_get(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        key: &[u8],
        at: Option<Moment>,
    ) -> Result<Explanation> {
        self.check_open()?;
        let apart = self.counters.count_apart(Counter::Gets);
        let (at, lane) = (keyspace.moment(at), apart.lane());
        let asked = Asked { keyspace, key, at, lane, leaves_pieces: true };
        let mut recording = Recording::default();
        let found = self.get_recorded(asked, |_| (), &mut recording)?.is_some();
        let (time, steps) = recording.finish();
        let explanation = Explanation::of("get", &keyspace.name, time).with_steps(steps);
        Ok(Explanation { found, ..explanation })
    }

    #[inline(always)]
    fn get_recorded<R, T: Recorder>(
        self: &Arc<Self>,
        asked: Asked<'_>,
        take: impl FnOnce(Seen<'_>) -> R,
        recorder: &mut T,
    ) -> Result<Option<R>> {
        match &asked.keyspace.order {
            Order::Bytewise => self.get_ordered(&Bytewise, asked, take, recorder),
            Order::Custom(order) => {
                let found = self.get_ordered(order, asked, take, recorder);
                self.trust(order).and(found)
            }
            Order::Missing(name) => Err(missing_order(&asked.keyspace.name, name)),
        }
    }

    /// Fails, and ends all writing, if a custom comparator has panicked (R15).
    pub(crate) fn trust(&self, order: &impl KeyOrder) -> Result<()> {
        order.check().inspect_err(|error| self.latch.fail(error.clone()))
    }

    #[inline(always)]
    fn get_ordered<O: DbOrder, R, T: Recorder>(
        self: &Arc<Self>,
        order: &O,
        asked: Asked<'_>,
        take: impl FnOnce(Seen<'_>) -> R,
        recorder: &mut T,
    ) -> Result<Option<R>> {
        let at = asked.at;
        let mut take = Some(take);
        'cached: {
            let guard = pin();
            let state = self.state.load(&guard);
            let below = at.map_or_else(|| self.visible(), |at| at.seq);
            let search = self.search(order, asked, below);
            let answer = search.run(state, Access::Cached(&guard), &mut take, recorder);
            match answer {
                Ok(Answer::NeedsIo) => break 'cached,
                Ok(Answer::Operand) => {}
                Ok(Answer::Absent) => return asked.absent(),
                Ok(Answer::Present(value)) => return asked.present(value),
                Err(error) => return Err(error),
            }
            drop(guard);
            return self.get_folded(order, asked, take, recorder);
        }
        self.get_reading(order, asked, take, recorder)
    }

    /// The search of a key for what is older than `below`.
    #[inline]
    pub fn search<'a, O>(&'a self, order: &'a O, asked: Asked<'a>, below: Seq) -> Search<'a, O> {
        Search { order, asked, below, clock: &self.clock, cache: &self.cache }
    }

    /// The search of a key for which something is not in memory. It is slow enough to record its
    /// steps always.
    #[cold]
    #[inline(never)]
    fn get_reading<O: DbOrder, R, T: Recorder>(
        self: &Arc<Self>,
        order: &O,
        asked: Asked<'_>,
        mut take: Option<impl FnOnce(Seen<'_>) -> R>,
        recorder: &mut T,
    ) -> Result<Option<R>> {
        let Asked { keyspace, at, .. } = asked;
        let counted = recorder.counted();
        let mut own = Recording::default();
        let given = recorder.recording();
        let is_explained = given.is_some();
        let recording = given.unwrap_or(&mut own);
        recording.restart(counted);
        let state = self.state.load_arc();
        let below = at.map_or_else(|| self.visible(), |at| at.seq);
        let search = self.search(order, asked, below);
        let access = if asked.leaves_pieces { Access::Pieces } else { Access::Read };
        let answer = search.run(&state, access, &mut take, recording);
        let answer = answer.map_err(|error| error.in_keyspace(&keyspace.name, None));
        let found = match answer.inspect_err(|error| self.monitor.damage(error)) {
            Ok(Answer::Present(value)) => {
                asked.count_found(Counter::GetsElsewhere);
                asked.present(value)
            }
            Ok(Answer::Operand) => self.get_folded(order, asked, take, recording),
            Ok(Answer::Absent | Answer::NeedsIo) => asked.absent(),
            Err(error) => Err(error),
        };
        if !is_explained {
            let (took, steps) = own.finish();
            let explanation = Explanation::of("get", &keyspace.name, took).with_steps(steps);
            let found = matches!(found, Ok(Some(_)));
            self.slowest.offer("get", took, || Explanation { found, ..explanation });
        }
        found
    }

    /// Looks up a key whose newest version is an operand.
    #[cold]
    fn get_folded<O: DbOrder, R, T: Recorder>(
        self: &Arc<Self>,
        order: &O,
        asked: Asked<'_>,
        take: Option<impl FnOnce(Seen<'_>) -> R>,
        recorder: &mut T,
    ) -> Result<Option<R>> {
        let Asked { keyspace, key, at, .. } = asked;
        let low = Bound::Included(KeyBuf::from(key));
        let bounds = Bounds { high: low.clone(), low };
        let scope = Scope::new(self, keyspace, (bounds, at), false);
        let mut scan = Scan::new(scope, order.clone(), Unwatched);
        scan.find(key)?;
        let found = scan.valid();
        recorder
            .step(StepSource::Operands, Some(if found { Outcome::Found } else { Outcome::Absent }));
        match take.filter(|_| found) {
            Some(take) => {
                asked.count_found(Counter::GetsElsewhere);
                asked.present(take(Seen::copied(scan.value())))
            }
            None => asked.absent(),
        }
    }
}
