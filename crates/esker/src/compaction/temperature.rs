//! What is not read is compressed with Zstandard, and with LZ4 again when it is read often.
//!
//! Zstandard with a dictionary makes blocks a third to a half smaller than LZ4, and reading them costs
//! 0.6 ns more for each byte. So it is for data that nobody has read for [`Options::cold_after`]. An idle
//! worker looks now and then ([`Looks`]) which segments of settled bases these are ([`crate::run::Turn`]);
//! their partitions are compacted alone, and the compaction writes these segments, and no other.
//!
//! 1. Nothing is done for it while somebody writes, except that a compaction writes what has become warm
//!    with LZ4 where it would have taken it over as it is.
//! 2. It pays: a segment is judged once by some of its blocks, and Zstandard must save an eighth of it. A
//!    segment becomes warm when sixteen times its bytes were read from it. So what is written
//!    for temperatures is at most the data once, and an eighth of what is read besides: each segment is
//!    written once when it turns cold and once when it turns warm.
//! 3. A value segment has a temperature of its own. Its values move with their references ([`super::values`]).
//! 4. Where trees do not share the result, nothing is done, as for what is raw ([`super::settle`]).
//! 5. Segments that follow each other and are cold are written together with one dictionary, which each
//!    segment holds.
//!
//! [`Options::cold_after`]: crate::Options::cold_after

use super::key::PartitionKey;
use super::looks::Looks;
use super::plan::{Piece, Recoding, written_bytes};
use super::settle::View;
pub use super::turns::Moment;
use super::uses::Uses;
use crate::base::Millis;
use crate::block::Dictionary;
use crate::cache::BlockCache;
use crate::error::Result;
use crate::options::settings::Settings;
use crate::run::{Segment, Turn, train};
use std::sync::Arc;

/// Why such compactions are done, as events say it.
pub const CAUSE: &str = "temperature";
/// How many looks there are in the time after which data is cold.
const LOOKS: u64 = 4;

/// The partitions with segments that have turned cold or warm, and whether somebody should look again.
pub fn turned(
    looks: &mut Looks,
    view: &View<'_>,
    now: Millis,
    cache: &Arc<BlockCache>,
) -> (Vec<PartitionKey>, bool) {
    let Some(cold) = view.settings.cold.filter(|_| looks.are_due(view.settings, now)) else {
        return (Vec::new(), false);
    };
    let moment = Moment::new((now, true), view.catalog, cache);
    let known_of =
        |segment: &Segment| segment.look(now, cold) != Some(Turn::Cold) || segment.is_judged_cold();
    // All are looked at, also behind one of which something has to be read.
    let known = |segment: &Segment| {
        let uses = segment.meta().values.iter().zip(segment.values());
        let moving = uses.filter(|(used, _)| !used.is_in_pieces());
        moving.fold(known_of(segment), |known, (_, values)| known_of(values) && known)
    };
    let turns = |uses: &Uses<'_>, segment: &Segment| {
        let own = moment.recoding(segment, cold).map_or(0, |_| segment.meta().len);
        own + turned_values(moment, view.settings, uses, segment)
    };
    let (keys, more) = view.parts(&mut looks.temperature, known, turns);
    if keys.is_empty() && !more {
        looks.next = now + (cold.after / LOOKS).max(1);
    }
    (keys, more)
}

impl Moment<'_> {
    /// The pieces of a compaction with those that are written in another form, because their temperature has
    /// changed or because they are `unsettled`. What has turned warm waits if there is no `room` for all of it:
    /// the compaction must not fail for it on a device that is nearly full (C7).
    pub fn recode(
        self,
        pieces: &[Piece<Arc<Segment>>],
        (settings, room): (&Settings, f64),
        unsettled: impl Fn(&Segment) -> bool,
    ) -> Vec<Piece<Arc<Segment>>> {
        let recoded = |warms: bool| {
            let turned = |segment: &Segment| self.recoding(segment, settings.cold?);
            let recoding = |segment: &Arc<Segment>| match unsettled(segment) {
                true => Some(Recoding::Settles),
                false => turned(segment).filter(|why| warms || *why != Recoding::Warms),
            };
            let is_strong = |segment: &Arc<Segment>| segment.is_strongly_compressed();
            with_recoding(pieces.to_vec(), self.idle, recoding, is_strong)
        };
        let all = recoded(true);
        // Seeded: a compaction that is due finds no room because of run segments that turn warm.
        let fits = written_bytes(&all) <= room || bug!("compaction_segments_turn_without_room");
        if fits { all } else { recoded(false) }
    }
}

/// The bytes on disk that a run segment of a partition with these uses refers to in value segments that have turned.
fn turned_values(
    moment: Moment<'_>,
    settings: &Settings,
    uses: &Uses<'_>,
    segment: &Segment,
) -> u64 {
    let of_segment = segment.meta().values.iter().zip(segment.values());
    let turned = of_segment.filter(|(used, values)| {
        // A value in pieces never moves.
        let moves = || moment.value_move(values, settings, || uses.bytes(used.place()));
        !used.is_in_pieces() && moves().is_some()
    });
    turned.map(|(used, _)| used.disk_bytes()).sum()
}

/// The dictionary for what is cold, if it is; `Some(None)`: it gets none.
pub fn dictionary(
    why: Option<Recoding>,
    runs: &[Vec<Arc<Segment>>],
    cache: &Arc<BlockCache>,
) -> Result<Option<Option<Arc<Dictionary>>>> {
    let cools = why == Some(Recoding::Cools);
    cools.then(|| train(&runs.concat(), cache)).transpose()
}

/// The pieces of a compaction with those that have a `recoding`; `idle`: it is done for temperatures. What is cold
/// together is one piece. So are small segments that the plan joins, if all of them are cold already or
/// turn so; `is_strong`: whether a segment is compressed strongly.
fn with_recoding<S>(
    pieces: Vec<Piece<S>>,
    idle: bool,
    recoding: impl Fn(&S) -> Option<Recoding>,
    is_strong: impl Fn(&S) -> bool,
) -> Vec<Piece<S>> {
    let is_cold = |segment: &S| match recoding(segment) {
        Some(recoding) => recoding == Recoding::Cools,
        None => is_strong(segment),
    };
    let joined = |runs: &[Vec<S>]| {
        let lists = runs.iter().filter(|run| !run.is_empty()).count();
        idle && lists == 1 && runs.iter().flatten().all(is_cold)
    };
    let mut all: Vec<Piece<S>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (recoding, mut segments) = match piece {
            Piece::Reuse(segment) => match recoding(&segment) {
                Some(recoding) => (recoding, vec![segment]),
                None => {
                    all.push(Piece::Reuse(segment));
                    continue;
                }
            },
            Piece::Rewrite(runs) if joined(&runs) => {
                (Recoding::Cools, runs.into_iter().flatten().collect())
            }
            other => {
                all.push(other);
                continue;
            }
        };
        match all.last_mut() {
            Some(Piece::Recode(before, open)) if *before == recoding => open.append(&mut segments),
            _ => all.push(Piece::Recode(recoding, segments)),
        }
    }
    all
}

#[cfg(test)]
mod tests;
