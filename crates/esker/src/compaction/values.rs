//! What a compaction rewrites where values are separated from their keys.
//!
//! A value segment is given back when nothing refers to it any more. One of which a good part is dead is emptied
//! by the compactions of the partitions that refer to it: what is alive goes into new value segments, in key
//! order. So is one of which a partition has so little that a list of such would cost more than the
//! values are worth where they are.
//!
//! 1. What is alive follows from the run segments that are there (S20), and from a walk over the keys that are
//!    merged: what a compaction is about to drop counts as dead. The walk reads keys and references only.
//! 2. A value moves only with its reference. So a run segment that refers to a value segment that is emptied is
//!    rewritten, even if nothing overlaps it.
//! 3. Values move as far as there is space for them, those of the emptiest value segments first (C7).
//! 4. Values that nobody reads are written with Zstandard while a database is idle, and those that are read often as
//!    others are (`compaction/turns.rs`). A compaction writes either the ones or the others, because a value segment
//!    is read or not as a whole.
//! 5. A value in pieces never moves.
//! 6. What several trees keep counts for each, so a branch that was compacted apart may hide dead values of
//!    its parent, until it is dropped.

use super::gc::VersionGc;
use super::inputs::sources;
use super::plan::{Piece, PlanLimits, plan, written_bytes};
pub use super::policy::Emptying;
use super::policy::moves_values;
use super::queue::{REQUESTED, SPACE};
use super::stream::CompactionStream;
use super::turns::{Moment, owns};
use crate::base::rangedel::Fragments;
use crate::base::{FileId, KeyOrder, Kind, Seq};
use crate::error::Result;
use crate::manifest::Partition;
use crate::options::settings::Settings;
use crate::run::{Role, Run, RunCursor, Segment, ValueMove, ValueRef};
use std::collections::HashMap;
use std::sync::Arc;

/// A value segment, by its file and its offset.
type Place = (FileId, u64);

impl Emptying {
    /// How it goes in a compaction with this cause.
    pub fn of(cause: &str) -> Self {
        match cause {
            REQUESTED => Self::Asked,
            SPACE => Self::ForSpace,
            _ => Self::Due,
        }
    }
}

/// The value segments that a compaction of a partition empties.
#[derive(Debug, Default)]
pub struct Moves {
    of: HashMap<Place, ValueMove>,
    /// About the bytes that are written for them.
    pub bytes: u64,
}

impl Moves {
    /// Why a value segment is emptied, if it is.
    pub fn why(&self, values: &Segment) -> Option<ValueMove> {
        self.of.get(&values.meta().place()).copied()
    }

    /// Whether a run segment refers to one that is emptied.
    pub fn concern(&self, segment: &Segment) -> bool {
        // Seeded: values move out of a value segment to which another run segment still refers.
        bug!("compaction_values_move_alone", return false);
        !self.of.is_empty() && segment.values().iter().any(|values| self.why(values).is_some())
    }
}

/// What a partition has of a value segment.
struct Part<'p> {
    values: &'p Segment,
    bytes: u64,
}

impl Part<'_> {
    /// Whether a compaction for space empties the value segment because of what is dead before it. What it drops
    /// itself counts from the part on that other compactions ask for: how much of that comes is not known
    /// to those that estimate the price.
    fn gives_back(&self, why: Emptying, alone: bool) -> bool {
        let (dead, all) = (self.values.dead_bytes(), self.values.meta().raw_bytes);
        why == Emptying::ForSpace
            && moves_values(dead, self.bytes, all, why)
            && owns(alone, self.values, || self.bytes)
    }
}

/// What a partition has of the value segments to which it refers, but for values in pieces.
fn parts(partition: &Partition) -> HashMap<Place, Part<'_>> {
    let mut parts: HashMap<Place, Part<'_>> = HashMap::new();
    for segment in partition.run_segments() {
        let uses = segment.meta().values.iter().zip(segment.values());
        for (used, values) in uses.filter(|(used, _)| !used.is_in_pieces()) {
            let part = parts.entry(used.place()).or_insert(Part { values, bytes: 0 });
            part.bytes = part.bytes.saturating_add(used.bytes);
        }
    }
    parts
}

/// Whether a compaction that a program asks for would make a partition smaller because values are dead already.
pub fn holds_dead(partition: &Partition) -> bool {
    let worth = |part: &Part<'_>| {
        let (dead, all) = (part.values.dead_bytes(), part.values.meta().raw_bytes);
        moves_values(dead, part.bytes, all, Emptying::Asked)
    };
    parts(partition).values().any(worth)
}

/// What a compaction of a partition gives back of value segments even if every entry stays, and what it writes for
/// that; bytes on disk. `quiet`: nobody has written for long, so less that is dead counts; `alone`: there are no
/// branches. A value segment to which several partitions refer goes when all have moved their parts, so
/// each counts for the same part of what is dead.
pub fn reclaimable(partition: &Partition, quiet: bool, alone: bool) -> (u64, u64) {
    // Seeded: what is dead in value segments stays in a pause as it does under load.
    let quiet = quiet && !bug!("compaction_pauses_leave_dead_values");
    let why = if quiet { Emptying::ForSpace } else { Emptying::Due };
    let (mut dead, mut moved) = (0.0, 0.0);
    for part in parts(partition).values() {
        let meta = part.values.meta();
        let gone = part.values.dead_bytes();
        // Seeded: values that nothing refers to any more stay until their keys are compacted.
        bug!("compaction_space_forgets_values", continue);
        if moves_values(gone, part.bytes, meta.raw_bytes, Emptying::Due)
            || part.gives_back(why, alone)
        {
            let on_disk = meta.len as f64 / meta.raw_bytes.max(1) as f64;
            let alive = meta.raw_bytes.saturating_sub(gone).max(1);
            dead += gone as f64 * on_disk * (part.bytes as f64 / alive as f64).min(1.0);
            moved += part.bytes as f64 * on_disk;
        }
    }
    (dead as u64, moved as u64)
}

/// A compaction to be planned.
pub struct Planning<'p, O> {
    /// The order of the keys.
    pub order: &'p O,
    /// The partition.
    pub old: &'p Partition,
    /// Whether everything is rewritten.
    pub whole: bool,
    /// How much has to be dead in a value segment that is emptied.
    pub emptying: Emptying,
    /// The range tombstones of all runs.
    pub tombstones: &'p [Arc<Fragments>],
    /// What is kept.
    pub gc: &'p VersionGc,
    /// The sizes of everything.
    pub settings: &'p Settings,
    /// When it asks what has turned cold or warm; its cache counts what is read.
    pub moment: Moment<'p>,
}

impl<O: KeyOrder> Planning<'_, O> {
    /// The pieces of the output, and the value segments that are emptied; `free`: bytes of free space. It
    /// calls `pause` between steps, and `moving` if any are.
    pub fn pieces(
        &self,
        free: u64,
        pause: impl FnMut() -> Result<()>,
        moving: impl FnOnce(),
    ) -> Result<(Vec<Piece<Arc<Segment>>>, Moves)> {
        let pieces = self.plan(&Moves::default());
        let parts = parts(self.old);
        if parts.is_empty() {
            return Ok((pieces, Moves::default()));
        }
        let alive = self.alive(&pieces, pause)?;
        let room = (free as f64 - written_bytes(&pieces)).max(0.0) as u64;
        let moves = self.choose(&parts, &alive, room);
        if moves.of.is_empty() {
            return Ok((pieces, moves));
        }
        moving();
        Ok((self.plan(&moves), moves))
    }

    fn plan(&self, moves: &Moves) -> Vec<Piece<Arc<Segment>>> {
        let Self { order, old, whole, gc, .. } = *self;
        let forced = |segment: &Segment| moves.concern(segment);
        let sources = sources(order, old, whole, forced, gc.earliest_time());
        let segment_bytes = u64::from(self.settings.segment_bytes);
        let limits = PlanLimits { small_bytes: segment_bytes / 4, segment_bytes };
        plan(order, &sources, self.tombstones, gc, limits)
    }

    /// The bytes of values that the output refers to.
    fn alive(
        &self,
        pieces: &[Piece<Arc<Segment>>],
        mut pause: impl FnMut() -> Result<()>,
    ) -> Result<HashMap<Place, u64>> {
        let mut alive: HashMap<Place, u64> = HashMap::new();
        let mut keep = |segments: &[Arc<Segment>]| {
            for used in segments.iter().flat_map(|segment| &segment.meta().values) {
                *alive.entry(used.place()).or_default() += used.bytes;
            }
        };
        for piece in pieces {
            match piece {
                Piece::Drop(_) | Piece::Rewrite(_) => {}
                Piece::Reuse(segment) => keep(std::slice::from_ref(segment)),
                Piece::Recode(_, segments) => keep(segments),
            }
        }
        for piece in pieces {
            let Piece::Rewrite(runs) = piece else { continue };
            if runs.iter().flatten().all(|segment| segment.values().is_empty()) {
                continue;
            }
            let mut count = |_: &[u8], _: Seq, kind: Kind, stored: &[u8]| {
                if kind.is_separated()
                    && let Ok(reference) = ValueRef::decode(kind, stored)
                {
                    *alive.entry(reference.place()).or_default() += u64::from(reference.len);
                }
                Ok(())
            };
            let mut stream = self.stream(runs);
            while stream.advance(&mut count)? {
                pause()?;
            }
        }
        Ok(alive)
    }

    /// The entries of some segments that survive, with operands as they are.
    fn stream(
        &self,
        runs: &[Vec<Arc<Segment>>],
    ) -> CompactionStream<RunCursor<O>, O, Arc<Fragments>> {
        let piece = self.settings.piece_bytes(runs.len());
        let cursor = |segments: &Vec<Arc<Segment>>| {
            let run = Arc::new(Run::new(Role::Delta, segments.clone(), Vec::new()));
            RunCursor::past_cache(run, self.order.clone(), self.moment.cache.clone(), piece)
        };
        let cursors = runs.iter().filter(|run| !run.is_empty()).map(cursor).collect();
        let (tombstones, gc) = (self.tombstones.to_vec(), self.gc.clone());
        CompactionStream::new(self.order.clone(), cursors, tombstones, gc)
            .within(self.old.lower.clone(), self.old.upper.clone())
    }

    /// The value segments that are emptied. Of those that are because they are dead, at most `room` bytes are alive,
    /// with those that move for their temperature.
    fn choose(
        &self,
        parts: &HashMap<Place, Part<'_>>,
        alive: &HashMap<Place, u64>,
        room: u64,
    ) -> Moves {
        let stays = |place: &Place| alive.get(place).copied().filter(|stays| *stays > 0);
        let turned = self.turned(parts, |place| stays(place).is_some());
        // What has turned can wait; the compaction must not fail for it on a device that is nearly full (C7).
        // Seeded: a compaction that is due fails because values that turn warm have no room.
        let fits = turned.bytes <= room || bug!("compaction_values_turn_without_room");
        let mut moves = if fits { turned } else { Moves::default() };
        let cools = moves.of.values().any(|why| *why == ValueMove::Cools);
        let mut worth = Vec::new();
        for (place, part) in parts.iter().filter(|(place, _)| !moves.of.contains_key(*place)) {
            let Some(stays) = stays(place).filter(|_| !cools || self.is_cold(part.values)) else {
                continue;
            };
            let all = part.values.meta().raw_bytes;
            let dead = part.values.dead_bytes().saturating_add(part.bytes.saturating_sub(stays));
            // What a compaction for space drops itself counts as in one that is due.
            let asked = self.emptying == Emptying::Asked;
            let usual = if asked { Emptying::Asked } else { Emptying::Due };
            if moves_values(dead, stays, all, usual)
                || part.gives_back(self.emptying, self.moment.alone)
            {
                worth.push((dead as f64 / all.max(1) as f64, stays, *place));
            }
        }
        let (emptied, bytes) = emptiest(worth, room.saturating_sub(moves.bytes));
        moves.bytes += bytes;
        // Cold values that would lie among others become as they are.
        let cold = cools
            || moves.of.is_empty() && emptied.iter().all(|place| self.is_cold(parts[place].values));
        let why = if cold { ValueMove::EmptiesCold } else { ValueMove::Empties };
        moves.of.extend(emptied.into_iter().map(|place| (place, why)));
        moves
    }

    /// The value segments that have turned cold, or, if none has, those that have turned warm; `stays`: something of
    /// one is alive.
    fn turned(&self, parts: &HashMap<Place, Part<'_>>, stays: impl Fn(&Place) -> bool) -> Moves {
        let why =
            |part: &Part<'_>| self.moment.value_move(part.values, self.settings, || part.bytes);
        let of = parts.iter().filter(|(place, _)| stays(place));
        let mut of: HashMap<_, _> =
            of.filter_map(|(place, part)| Some((*place, why(part)?))).collect();
        if of.values().any(|why| *why == ValueMove::Cools) {
            of.retain(|_, why| *why == ValueMove::Cools);
        }
        let bytes = of.iter().map(|(place, why)| {
            let (part, meta) = (&parts[place], parts[place].values.meta());
            let on_disk = meta.len as f64 * part.bytes as f64 / meta.raw_bytes.max(1) as f64;
            // What was cold may take twice as much when it is warm.
            (on_disk * if *why == ValueMove::Warms { 2.0 } else { 1.0 }) as u64
        });
        let bytes = bytes.sum();
        Moves { of, bytes }
    }

    /// Whether a value segment is known to be cold.
    fn is_cold(&self, values: &Segment) -> bool {
        let cold = self.settings.cold.filter(|_| values.is_strongly_compressed());
        cold.is_some_and(|cold| values.turn(self.moment.now, cold).is_none())
    }
}

/// The value segments with the greatest part that is dead, of which at most `room` bytes are alive, and how many bytes
/// that are. Each comes with that part, and with what is alive of it.
fn emptiest(mut worth: Vec<(f64, u64, Place)>, room: u64) -> (Vec<Place>, u64) {
    worth.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    // Seeded: with little space, much moves for little that is given back.
    bug!("compaction_fullest_values_move_first", worth.reverse());
    let (mut of, mut bytes) = (Vec::new(), 0_u64);
    for (_, stays, place) in worth {
        let fits = bytes.saturating_add(stays) <= room;
        // Seeded: values move although there is no space for them.
        if fits || bug!("compaction_values_move_without_room") {
            bytes += stays;
            of.push(place);
        }
    }
    (of, bytes)
}

#[cfg(test)]
mod tests;
