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
//! 4. What several trees keep counts for each, so a branch that was compacted apart may hide dead values of
//!    its parent, until it is dropped.

use super::gc::VersionGc;
use super::inputs::sources;
use super::plan::{Piece, PlanLimits, plan, written_bytes};
use super::policy;
use super::stream::CompactionStream;
use crate::base::rangedel::Fragments;
use crate::base::{FileId, KeyOrder, Kind, Seq};
use crate::cache::BlockCache;
use crate::error::Result;
use crate::manifest::Partition;
use crate::options::settings::Settings;
use crate::run::{Role, Run, RunCursor, Segment, ValueRef};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A value segment, by its file and its offset.
type Place = (FileId, u64);

/// The value segments that a compaction of a partition empties.
#[derive(Debug, Default)]
pub struct Moves {
    of: HashSet<Place>,
    /// Bytes that are alive in them.
    pub bytes: u64,
}

impl Moves {
    /// Whether a value segment is emptied.
    pub fn empties(&self, values: &Segment) -> bool {
        self.of.contains(&values.meta().place())
    }

    /// Whether a run segment refers to one that is emptied.
    pub fn concern(&self, segment: &Segment) -> bool {
        // Seeded: values move out of a value segment to which another run segment still refers.
        bug!("compaction_values_move_alone", return false);
        !self.of.is_empty() && segment.values().iter().any(|values| self.empties(values))
    }
}

/// What a partition has of a value segment.
struct Part<'p> {
    values: &'p Segment,
    bytes: u64,
}

/// What a partition has of the value segments to which it refers.
fn parts(partition: &Partition) -> HashMap<Place, Part<'_>> {
    let mut parts: HashMap<Place, Part<'_>> = HashMap::new();
    for segment in partition.run_segments() {
        for (used, values) in segment.meta().values.iter().zip(segment.values()) {
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
        policy::moves_values(dead, part.bytes, all, true)
    };
    parts(partition).values().any(worth)
}

/// What a compaction of a partition gives back of value segments even if every entry stays, and what it writes for
/// that; bytes on disk. A value segment to which several partitions refer goes when all have moved their parts, so
/// each counts for the same part of what is dead.
pub fn reclaimable(partition: &Partition) -> (u64, u64) {
    let (mut dead, mut moved) = (0.0, 0.0);
    for part in parts(partition).values() {
        let meta = part.values.meta();
        let gone = part.values.dead_bytes();
        // Seeded: values that nothing refers to any more stay until their keys are compacted.
        bug!("compaction_space_forgets_values", continue);
        if policy::moves_values(gone, part.bytes, meta.raw_bytes, false) {
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
    /// Whether a program asks for it, so that it also collects what is worth little.
    pub asked: bool,
    /// The range tombstones of all runs.
    pub tombstones: &'p [Arc<Fragments>],
    /// What is kept.
    pub gc: &'p VersionGc,
    /// The sizes of everything.
    pub settings: &'p Settings,
    /// Counts what is read.
    pub cache: &'p Arc<BlockCache>,
}

impl<O: KeyOrder> Planning<'_, O> {
    /// The pieces of the output, and the value segments that are emptied; `free`: bytes of free space. It
    /// calls `pause` between steps.
    pub fn pieces(
        &self,
        free: u64,
        pause: impl FnMut() -> Result<()>,
    ) -> Result<(Vec<Piece<Arc<Segment>>>, Moves)> {
        let pieces = self.plan(&Moves::default());
        let parts = parts(self.old);
        if parts.is_empty() {
            return Ok((pieces, Moves::default()));
        }
        let alive = self.alive(&pieces, pause)?;
        let room = (free as f64 - written_bytes(&pieces)).max(0.0) as u64;
        let moves = self.choose(&parts, &alive, room);
        let pieces = if moves.of.is_empty() { pieces } else { self.plan(&moves) };
        Ok((pieces, moves))
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
            RunCursor::past_cache(run, self.order.clone(), self.cache.clone(), piece)
        };
        let cursors = runs.iter().filter(|run| !run.is_empty()).map(cursor).collect();
        let (tombstones, gc) = (self.tombstones.to_vec(), self.gc.clone());
        CompactionStream::new(self.order.clone(), cursors, tombstones, gc)
            .within(self.old.lower.clone(), self.old.upper.clone())
    }

    /// The value segments that are emptied, of which at most `room` bytes are alive.
    fn choose(
        &self,
        parts: &HashMap<Place, Part<'_>>,
        alive: &HashMap<Place, u64>,
        room: u64,
    ) -> Moves {
        let mut worth = Vec::new();
        for (place, part) in parts {
            let (all, stays) =
                (part.values.meta().raw_bytes, alive.get(place).copied().unwrap_or(0));
            let dead = part.values.dead_bytes().saturating_add(part.bytes.saturating_sub(stays));
            if stays > 0 && policy::moves_values(dead, stays, all, self.asked) {
                worth.push((dead as f64 / all.max(1) as f64, stays, *place));
            }
        }
        emptiest(worth, room)
    }
}

/// The value segments with the greatest part that is dead, of which at most `room` bytes are alive. Each comes with
/// that part, and with what is alive of it.
fn emptiest(mut worth: Vec<(f64, u64, Place)>, room: u64) -> Moves {
    worth.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    let mut moves = Moves::default();
    for (_, stays, place) in worth {
        let fits = moves.bytes.saturating_add(stays) <= room;
        // Seeded: values move although there is no space for them.
        if fits || bug!("compaction_values_move_without_room") {
            moves.bytes += stays;
            moves.of.insert(place);
        }
    }
    moves
}

#[cfg(test)]
mod tests;
